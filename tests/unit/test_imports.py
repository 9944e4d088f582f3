# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What importing the loader brings with it: neither services nor what they run on."""

import subprocess
import sys

import pytest

HEAVY = ("glare", "murano", "eventlet", "sqlalchemy")


def _imported(statement: str) -> set[str]:
    """The top-level packages that a fresh process has after a statement."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(printed.split())


@pytest.mark.parametrize("module", ["loader", "loader.catalogs.glare", "loader.config"])
def test_the_loader_imports_neither_glare_nor_murano_nor_what_they_run_on(module: str) -> None:
    found = _imported(f"import {module}")

    assert "loader" in found
    assert found.isdisjoint(HEAVY)


@pytest.mark.parametrize("heavy", HEAVY)
def test_what_is_heavy_would_be_found(heavy: str) -> None:
    assert heavy in _imported(f"import {heavy}")
