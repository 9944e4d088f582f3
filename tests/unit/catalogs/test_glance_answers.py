# SPDX-License-Identifier: Apache-2.0

"""Answers of a Glance, some of them invalid, and the errors of the catalogue."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader
from glare_murano import images
from loader.catalogs.glance import GlanceCatalog
from tests import packages
from tests.unit import faulty
from tests.unit.faulty import Faulty, Handler

FQN = "org.faulty"
SCHEMA = {"name": "image", "properties": {}, "additionalProperties": {"type": "string"}}
IMAGE = {
    "id": images.image_id(faulty.PROJECT, FQN, "1.0.0"),
    "name": FQN,
    "owner": faulty.PROJECT,
    "visibility": "private",
    "status": images.ACTIVE,
    "container_format": images.CONTAINER_FORMAT,
    "size": 1,
    images.VERSION: "1.0.0",
    images.PUBLISHED: "2026-01-01T00:00:00Z",
    images.SHA256: "0" * 64,
}


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty.serving(packages.package(FQN)) as state:
        yield state


@pytest.fixture
def catalog(server: Faulty) -> GlanceCatalog:
    """The catalogue of a Glance that lacks the filter."""
    server.faults = [faulty.status(404)]
    session = ksa_session.Session(token_endpoint.Token(server.url, "token"))
    return GlanceCatalog(session, project_id=faulty.PROJECT, endpoint=server.url, attempts=1)


def _sending(content: Any) -> Callable[[Handler], None]:
    return lambda handler: handler.send_other(json.dumps(content).encode())


def _list(*found: Any, **others: Any) -> Any:
    return {"images": [{**IMAGE, **each} for each in found], **others}


def test_a_valid_list_is_read(server: Faulty, catalog: GlanceCatalog) -> None:
    server.faults += map(_sending, (_list({}), SCHEMA, _list()))

    (release,) = catalog.releases(FQN)

    assert (str(release), release.id) == (f"{FQN} 1.0.0", IMAGE["id"])


@pytest.mark.parametrize(
    "answers",
    [
        ([],),
        ({},),
        ({"images": 1},),
        ({"images": [1]},),
        (_list({}), {"name": "image"}),
        (_list({}), []),
        (_list({}, next=1), SCHEMA),
        (_list({}, next="http://127.0.0.1:9/v2/images"), SCHEMA),
        (_list({images.SHA256: "0"}), SCHEMA),
        (_list({images.REQUIREMENTS: "{"}), SCHEMA),
        (_list({images.REQUIREMENTS: "[]"}), SCHEMA),
        (_list({images.CLASSES: '{"a": 1}'}), SCHEMA),
    ],
)
def test_a_list_of_another_form_is_an_error(
    server: Faulty, catalog: GlanceCatalog, answers: tuple[Any, ...]
) -> None:
    server.faults += map(_sending, answers)

    with pytest.raises(loader.CatalogError):
        list(catalog.releases(FQN))
    assert not server.faults


def test_an_empty_page_is_the_last_one(server: Faulty, catalog: GlanceCatalog) -> None:
    server.faults += [_sending(_list(next="/v2/images?marker=1"))] * 2

    assert list(catalog.releases(FQN)) == []
    assert not server.faults


def test_a_missing_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(loader.CatalogError, match="install glare-murano"):
        GlanceCatalog(ksa_session.Session())


def test_the_library_is_imported_for_lists_and_downloads_alone() -> None:
    code = (
        "import sys; from keystoneauth1.session import Session; from loader import GlanceCatalog; "
        "GlanceCatalog(Session()); sys.exit('glanceclient' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0
