# SPDX-License-Identifier: Apache-2.0

"""The page for operators of the engine: its messages are those of the loader."""

import pathlib
import re
from collections.abc import Callable, Iterator
from typing import IO

import pytest
from oslo_config import cfg

import loader
from glare_murano.package import GlareMuranoError, Version, VersionSpec
from loader import config
from loader.cache import store
from loader.catalogs import options
from loader.catalogs.glare import GlareCatalog
from loader.engine import tasks
from tests import packages, processes
from tests.functional.client import Client

PAGE = processes.ROOT / "doc" / "source" / "guides" / "operators" / "operating-engine.rst"
RANGE = VersionSpec.of("2")


def messages() -> list[str]:
    """Return the messages on the page as regular expressions."""
    _, _, failures = PAGE.read_text().partition("\n.. failures\n")
    found = re.findall(r"^\.\. code-block:: text\n\n((?:    .*\n)+)", failures, re.M)
    texts = (" ".join(text.split()) for text in found)
    return [re.sub(r"\b[A-Z]{3,}\b(?!-)", ".+", re.escape(text)) for text in texts]


def _loader(glare: Client, folder: pathlib.Path, url: str | None = None) -> loader.PackageLoader:
    catalog = GlareCatalog(glare.session(), endpoint=url or glare.url, attempts=1)
    return loader.PackageLoader([catalog], loader.Cache(folder / "cache"))


def _missing(glare: Client, name: str, folder: pathlib.Path) -> None:
    packages_ = _loader(glare, folder)
    wiki = packages_.provide("org.test.wiki", Version("1.0.0"), requirements={name: RANGE})
    packages_.load_requirement(wiki, name)


def _missing_class(glare: Client, name: str, folder: pathlib.Path) -> None:
    _loader(glare, folder).load_class_package(f"{name}.Thing", RANGE)


def _missing_pin(glare: Client, name: str, folder: pathlib.Path) -> None:
    pinned = _loader(glare, folder)
    pinned.pins.load({name: ["2.0.0"]})
    pinned.load(name, RANGE)


def _unreachable(glare: Client, name: str, folder: pathlib.Path) -> None:
    url = f"http://127.0.0.1:{processes.free_port()}"
    _loader(glare, folder, url).load(name, RANGE)


def _refused_token(glare: Client, name: str, folder: pathlib.Path) -> None:
    _loader(Client(glare.url, "x"), folder).load(name, RANGE)


def _open(directory: pathlib.Path) -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    options.register(conf, config.OPTIONS)
    conf.set_override("packages_cache", str(directory), "engine")
    config.open_cache(conf)


def _unusable_cache(glare: Client, name: str, folder: pathlib.Path) -> None:
    (folder / "file").touch()
    _open(folder / "file")


def _writable_cache(glare: Client, name: str, folder: pathlib.Path) -> None:
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    _open(folder / "open")


def _full_disk(glare: Client, name: str, folder: pathlib.Path) -> None:
    def open_full(*_: object, **__: object) -> IO[bytes]:
        return open("/dev/full", "r+b", buffering=0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "open", open_full, raising=False)
        loader.Cache(folder / "cache").package("0" * 64, lambda: iter([b"content"]))


def _locked_package(glare: Client, name: str, folder: pathlib.Path) -> None:
    def fetch() -> Iterator[bytes]:
        loader.Cache(folder / "cache", lock_timeout=0.1).package("0" * 64, lambda: iter([]))
        yield b""

    loader.Cache(folder / "cache").package("0" * 64, fetch)


def _damaged(glare: Client, name: str, folder: pathlib.Path) -> None:
    loader.Cache(folder / "cache").package("0" * 64, lambda: iter([b"damaged"]))


def _stopped(glare: Client, name: str, folder: pathlib.Path) -> None:
    raise tasks.EngineStopped


_PLACE = "org.test.wiki 1.0.0: Classes/Wiki.yaml:7: class org.test.wiki.Wiki:"


def _blocking(glare: Client, name: str, folder: pathlib.Path) -> None:
    raise tasks.TaskLimitExceeded.of_blocking(_PLACE, 5)


def _too_long(glare: Client, name: str, folder: pathlib.Path) -> None:
    limit = tasks.TimeLimit("task", 7200, "task_seconds")
    raise tasks.TaskLimitExceeded.of_time(_PLACE, limit)


# In the order of the page.
FAILURES: tuple[Callable[[Client, str, pathlib.Path], None], ...] = (
    _missing,
    _missing_class,
    _missing_pin,
    _unreachable,
    _refused_token,
    _unusable_cache,
    _writable_cache,
    _full_disk,
    _locked_package,
    _damaged,
    _stopped,
    _blocking,
    _too_long,
)


def test_every_message_on_the_page_is_the_real_one(
    admin: Client, name: str, tmp_path: pathlib.Path
) -> None:
    admin.publish(name, "1.0.0", packages.package(name), public=True)
    for shown, fail in zip(messages(), FAILURES, strict=True):
        with pytest.raises((GlareMuranoError, tasks.EngineStopped)) as failure:
            fail(admin, name, tmp_path)

        assert re.fullmatch(shown, str(failure.value), re.S)
