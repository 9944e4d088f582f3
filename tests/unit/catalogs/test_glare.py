# SPDX-License-Identifier: Apache-2.0

"""Invalid answers of a Glare, and the errors of the loader."""

import itertools
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader
from glare_murano.package import VersionSpec
from loader.catalogs.glare import GlareCatalog
from tests import packages
from tests.unit import faulty
from tests.unit.faulty import Faulty, Handler

ANSWER: dict[str, Any] = {
    "id": "0",
    "name": "org.db",
    "version": "1.0.0",
    "requirements": {},
    "class_definitions": [],
    "sha256": "0" * 64,
    "size": 1,
    "required_by": [],
}
ARTIFACT: dict[str, Any] = {
    "id": "0",
    "name": "org.db",
    "version": "1.0.0",
    "requirements": {},
    "class_definitions": [],
    "owner": faulty.PROJECT,
    "visibility": "private",
    "archive": {"sha256": "0" * 64, "size": 1},
}


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty.serving(packages.package("org.faulty")) as state:
        yield state


@pytest.fixture
def load(server: Faulty, tmp_path: pathlib.Path) -> Callable[[], loader.PackageLoader]:
    """Loads a package that the server answers for."""

    def load_one() -> loader.PackageLoader:
        session = ksa_session.Session(token_endpoint.Token(server.url, "token"))
        catalog = GlareCatalog(session, project_id=faulty.PROJECT, endpoint=server.url, attempts=1)
        with loader.PackageLoader([catalog], loader.Cache(tmp_path)) as package_loader:
            package_loader.load("org.db", VersionSpec.of("1"))
        return package_loader

    return load_one


def _sending(content: Any) -> Callable[[Handler], None]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return lambda handler: handler.send_other(body)


def _closure(**changes: Any) -> dict[str, Any]:
    return {"releases": [{**ANSWER, **changes}], "unsatisfied": [], "undefined": []}


_OTHER = {"name": "org.other", "range": "1", "requirer": None}
_CLOSURES = {
    "nothing": {"releases": [], "unsatisfied": [], "undefined": []},
    "another package": _closure(name="org.other"),
    "another version": _closure(version="3.0.0"),
    "another range": {
        "releases": [],
        "unsatisfied": [{**_OTHER, "available": []}],
        "undefined": [],
    },
    "a list for a name": _closure(name=["org.db"]),
    "a number for a name": _closure(name=1),
    "a word for a size": _closure(size="large"),
    "a size without end": _closure(size=float("inf")),
    "a path for a digest": _closure(sha256="../../etc"),
    "lists in lists": b"[" * 100_000,
}


@pytest.mark.parametrize("content", _CLOSURES.values(), ids=_CLOSURES)
def test_a_closure_of_something_else_is_an_error(
    server: Faulty, load: Callable[[], object], content: Any
) -> None:
    server.faults = [_sending(content)]

    with pytest.raises(loader.LoaderError, match=r"org\.db"):
        load()


_LISTS = {
    "a list for a name": {"artifacts": [{**ARTIFACT, "name": ["org.db"]}]},
    "a size without end": {
        "artifacts": [{**ARTIFACT, "archive": {"sha256": "0" * 64, "size": float("inf")}}]
    },
    "lists in lists": b"[" * 100_000,
    "another package": {"artifacts": [{**ARTIFACT, "name": "Org.db"}]},
}


@pytest.mark.parametrize("content", _LISTS.values(), ids=_LISTS)
def test_a_list_of_something_else_is_an_error(
    server: Faulty, load: Callable[[], object], content: Any
) -> None:
    server.faults = [faulty.status(404), _sending(content)]

    with pytest.raises(loader.LoaderError, match=r"package org\.db in the range 1"):
        load()


def test_an_endless_list_is_not_read_for_ever(
    server: Faulty, load: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.adapter._MAX_PAGES", 5)
    page = _sending({"artifacts": [ARTIFACT], "next": "/"})
    server.faults = [faulty.status(404), *itertools.repeat(page, 20)]

    with pytest.raises(loader.CatalogError, match="more than 5 pages"):
        load()


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        (
            [{"packages": [ARTIFACT], "next": "http://[/x?marker=1"}],
            "a list of packages with a wrong reference to its next page: Invalid IPv6 URL",
        ),
        (
            [
                None,
                {"artifacts": [{k: v for k, v in ARTIFACT.items() if k != "id"}], "next": "x"},
            ],
            "a list of artifacts with a wrong reference to its next page: id is missing",
        ),
    ],
)
def test_a_wrong_reference_to_the_next_page_is_an_error(
    server: Faulty, faults: list[dict[str, Any] | None], reason: str
) -> None:
    server.faults = [faulty.status(404) if each is None else _sending(each) for each in faults]
    session = ksa_session.Session(token_endpoint.Token(server.url, "token"))
    catalog = GlareCatalog(session, project_id=faulty.PROJECT, endpoint=server.url, attempts=1)

    with pytest.raises(loader.CatalogError, match=f"Glare at {server.url} sent {reason}"):
        list(catalog.releases("org.db"))


def test_a_long_list_is_not_read_to_its_end(
    server: Faulty, load: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.adapter._MAX_LIST", 5000)
    page = _sending({"artifacts": [{**ARTIFACT, "description": "x" * 1000}], "next": "/"})
    server.faults = [faulty.status(404), *itertools.repeat(page, 20)]

    with pytest.raises(
        loader.CatalogError,
        match=r"Glare at http.* sent a list of artifacts with more than 5000 bytes; report this",
    ):
        load()
    assert len(server.seen) < 8


@pytest.mark.parametrize(
    ("content", "excess"),
    [
        (b'{"releases": [' + b"[]," * 1_000_000 + b"[]]}", "1000000 lists and mappings"),
        (b'{"releases": [' + b"1," * 2_000_001 + b"1]}", "2000000 values"),
    ],
)
def test_an_answer_with_too_many_values_is_not_parsed(
    server: Faulty,
    load: Callable[[], object],
    content: bytes,
    excess: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loader.transport.adapter.json.loads", lambda _: pytest.fail("parsed"))
    server.faults = [_sending(content)]

    with pytest.raises(loader.CatalogError, match=f"Glare at http.* it has more than {excess}"):
        load()
