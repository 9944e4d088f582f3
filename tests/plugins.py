# SPDX-License-Identifier: Apache-2.0

"""Python distributions with plug-ins, installed for a test."""

import contextlib
import importlib
import pathlib
import sys
from collections.abc import Iterator, Mapping

import pytest
from stevedore import _cache, extension

from glare_murano.package import manifest
from loader import entry_points
from loader.catalogs import registry


class Site:
    """A folder of ``sys.path`` with distributions in it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def install(
        self,
        name: str,
        version: str,
        entry_points: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str],
    ) -> None:
        """Install a distribution.

        :param entry_points: group -> name -> object.
        :param modules: name -> code.
        """
        information = self._folder / f"{name.replace('-', '_')}-{version}.dist-info"
        information.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (information / "METADATA").write_text(metadata)
        lines = []
        for group, points in entry_points.items():
            lines.append(f"[{group}]")
            lines += [f"{point} = {target}" for point, target in points.items()]
        (information / "entry_points.txt").write_text("\n".join(lines))
        for module, code in modules.items():
            (self._folder / f"{module}.py").write_text(code)
        _forget()


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Iterator[Site]:
    """An empty site; what is installed there is gone after the test."""
    folder = tmp_path / "site"
    folder.mkdir()
    with activated(folder) as found:
        yield found


@contextlib.contextmanager
def activated(folder: pathlib.Path) -> Iterator[Site]:
    """Import distributions from a folder while the block runs."""
    modules = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield Site(folder)
    for module in set(sys.modules) - modules:
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(folder)):
            del sys.modules[module]
    _forget()


def _forget() -> None:
    """Let everybody look up anew what is installed."""
    extension.ExtensionManager.ENTRY_POINT_CACHE.clear()
    _cache._c._internal.clear()
    manifest.registered_formats.cache_clear()
    entry_points.installed.cache_clear()
    registry._factory.cache_clear()
    importlib.invalidate_caches()
