# SPDX-License-Identifier: Apache-2.0

"""What importing the loader brings with it: neither services nor what they run on."""

import subprocess
import sys

import pytest

HEAVY = ("glare", "glanceclient", "murano", "eventlet", "sqlalchemy")


def _imported(statement: str) -> set[str]:
    """The top-level packages that a fresh process has after a statement."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(printed.split())


@pytest.mark.parametrize(
    "module", ["loader", "loader.catalogs.glare", "loader.catalogs.glance", "loader.config"]
)
def test_the_loader_imports_neither_glare_nor_murano_nor_what_they_run_on(module: str) -> None:
    found = _imported(f"import {module}")

    assert "loader" in found
    assert found.isdisjoint(HEAVY)


def test_catalogues_are_imported_on_first_use() -> None:
    assert _imported("import loader").isdisjoint({"keystoneauth1", "oslo_config", "requests"})
    assert "keystoneauth1" in _imported("from loader import GlareCatalog")


@pytest.mark.parametrize("heavy", HEAVY)
def test_what_is_heavy_would_be_found(heavy: str) -> None:
    assert heavy in _imported(f"import {heavy}")
