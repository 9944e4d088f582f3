# SPDX-License-Identifier: Apache-2.0

"""The same packages in Glance and in Glare give the same answers, word for word."""

import io
import pathlib
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from glare_murano import images as form
from glare_murano.glare import server
from loader import DirectoryCatalog, GlareCatalog, PackageLoader
from tests import packages
from tests.functional.client import ARCHIVES, SUBCLASSES, Client, message
from tests.functional.glance import stored
from tests.functional.glance.conftest import Catalogs
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance

PROJECT = "same-answers"
# Of the core library, which is public.
CORE_OWNER = "admin"
YANKED = "loses data"

# FQN and version -> requirements, class -> base, and why it is yanked.
PACKAGES: Mapping[tuple[str, str], tuple[dict[str, str], dict[str, str], str]] = {
    ("io.murano", "0.9.9"): ({}, {"Object": ""}, ""),
    ("org.db", "1.0.0"): ({}, {"Db": "io.murano.Object"}, ""),
    ("org.db", "1.1.0"): ({}, {"Db": "io.murano.Object"}, YANKED),
    ("org.db", "2.0.0-rc.1"): ({}, {"Db": "io.murano.Object"}, ""),
    ("org.sql", "1.0.0"): ({"org.db": "1"}, {"Sql": "org.db.Db", "Other": "org.sql.Sql"}, ""),
    ("org.sql", "1.2.0"): ({"org.db": ">=1"}, {"Sql": "org.db.Db"}, ""),
    ("org.wiki", "1.0.0"): ({"org.sql": "*", "org.db": "1"}, {"Wiki": "org.sql.Sql"}, ""),
    ("org.exact", "1.0.0"): ({"org.db": "1.1.0"}, {"Exact": "org.db.Db"}, ""),
    ("org.cycle.a", "1.0.0"): ({"org.cycle.b": "1"}, {}, ""),
    ("org.cycle.b", "1.0.0"): ({"org.cycle.a": "1"}, {}, ""),
}


def _archive(fqn: str, version: str, require: dict[str, str], extends: dict[str, str]) -> bytes:
    classes = {f"{fqn}.{name}": f"{name}.yaml" for name in extends}
    files = packages.content(fqn, version, Classes=classes, Require=require)
    for name, base in extends.items():
        line = f"Extends: {base}\n" if base else ""
        files[f"Classes/{name}.yaml"] = f"Name: {fqn}.{name}\n{line}".encode()
    return packages.zipped(files)


@pytest.fixture(scope="module")
def both(glance: Glance, glare_url: str) -> Iterator[tuple[Client, ImageClient, dict[str, str]]]:
    """A client of each service, and NAME@VERSION by the ids in both."""
    glare = Client(glare_url, f"user:{PROJECT}:member")
    admin = Client(glare_url, server.TOKEN)
    rows, names, drafts = [], {}, {}
    core: list[str] = []
    for (fqn, version), (require, extends, yanked) in PACKAGES.items():
        data = _archive(fqn, version, require, extends)
        properties = {form.YANKED: yanked} if yanked else {}
        if fqn == "io.murano":
            core.append(admin.publish(fqn, version, data, public=True)["id"])
            rows.append(stored.package(data, CORE_OWNER, "public"))
            core.append(rows[-1].id)
        else:
            drafts[fqn, version] = glare.draft(fqn, version, data)
            rows.append(stored.package(data, PROJECT, properties=properties))
        for id_ in (drafts.get((fqn, version)) or core[0], rows[-1].id):
            names[id_] = f"{fqn}@{version}"
    assert glare.publish_all(list(drafts.values()), "private").status_code == 200
    for key, (_, _, yanked) in PACKAGES.items():
        if yanked:
            assert glare.yank(drafts[key], yanked).status_code == 200
    stored.store(glance, rows)
    yield glare, ImageClient(glance.url, f"user:{PROJECT}:member,reader"), names
    # Other tests would see the core library.
    override = {"X-Murano-Override-Checks": "true"}
    assert admin.delete(core[0], headers=override).status_code == 204
    image_admin = ImageClient(glance.url, f"user:{CORE_OWNER}:admin,member,reader")
    path = f"/v2/images/{core[1]}"
    assert image_admin.request("DELETE", path, headers=override).status_code == 204


def _named(answer: Any, names: Mapping[str, str]) -> Any:
    """Put names in the place of ids."""
    if isinstance(answer, dict):
        return {key: _named(value, names) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_named(value, names) for value in answer]
    return names.get(answer, answer) if isinstance(answer, str) else answer


@pytest.mark.parametrize(
    "query",
    [
        {"requirements": {"org.wiki": "1"}},
        {"requirements": {"org.wiki": "*", "org.exact": "*"}, "why": True},
        {"requirements": {"org.db": "*"}, "prereleases": False},
        {"requirements": {"org.db": ">=2", "org.none": "1", "org.sql": ">=3"}},
        {"requirements": {"org.db": "1"}, "pins": {"org.db": ["1.1.0"]}},
        {"requirements": {"org.wiki": "1"}, "provided": {"org.db": ["1.7.0"]}},
        {"requirements": {"org.cycle.a": "1"}},
        {"objects": [{"class": "org.sql.Sql", "version": "1.0.0"}, {"class": "org.db.Db"}]},
        {"objects": [{"class": "org.sql.Other", "version": "1.1"}, {"class": "org.none.X"}]},
        {"requirements": {"org.wiki": "1"}, "project_id": "another"},
        {},
    ],
)
def test_closures(both: tuple[Client, ImageClient, dict[str, str]], query: Any) -> None:
    glare, images, names = both

    expected, found = glare.resolve(**query), images.resolve(**query)

    assert (expected.status_code, found.status_code) == (200, 200), found.text
    assert _named(found.json(), names) == _named(expected.json(), names)


@pytest.mark.parametrize(
    "parameters",
    [
        {"class": "io.murano.Object"},
        {"class": "io.murano.Object", "limit": "2"},
        {"class": "io.murano.Object", "marker": "org.exact.Exact"},
        {"class": "org.db.Db", "version": ">=2"},
        {"class": "org.db.Db", "package": "org.other"},
        {"class": "org.none.Thing"},
        {"class": "org..db"},
        {"class": "org.db.Db", "limit": "0"},
    ],
)
def test_subclasses(both: tuple[Client, ImageClient, dict[str, str]], parameters: Any) -> None:
    glare, images, _ = both

    expected = glare.query(SUBCLASSES, parameters)
    found = images.request("GET", SUBCLASSES, params=parameters)

    assert found.status_code == expected.status_code
    assert found.json() == expected.json()


def test_subclasses_of_the_core_library_by_the_loader(
    both: tuple[Client, ImageClient, dict[str, str]], catalog_of: Catalogs, tmp_path: pathlib.Path
) -> None:
    """Also from directories, and if half of the packages lie in another catalogue."""
    glare, _, _ = both
    folders = [tmp_path / "all", tmp_path / "some", tmp_path / "others"]
    for number, ((fqn, version), (require, extends, _)) in enumerate(PACKAGES.items()):
        for folder in (folders[0], folders[1 + number % 2]):
            folder.mkdir(exist_ok=True)
            data = _archive(fqn, version, require, extends)
            (folder / f"{fqn}-{version}.zip").write_bytes(data)
    name = "io.murano.Object"
    expected = glare.query(SUBCLASSES, {"class": name}).json()["subclasses"]
    of_glare = GlareCatalog(glare.session(), endpoint=glare.url, project_id=PROJECT)
    of_glance = catalog_of(PROJECT)
    whole, *halves = map(DirectoryCatalog, folders)

    for catalogs in ([of_glare], [of_glance], [whole], halves, [halves[0], of_glare, of_glance]):
        with PackageLoader(catalogs, tmp_path / "cache") as loader:
            assert [each.to_json() for each in loader.subclasses(name).found] == expected


def test_the_package_of_a_query_and_an_unknown_one(
    both: tuple[Client, ImageClient, dict[str, str]],
) -> None:
    glare, images, names = both
    ids = [id_ for id_, name in names.items() if name == "org.wiki@1.0.0"]

    expected, found = glare.resolve(package=ids[0]), images.resolve(package=ids[1])

    assert _named(found.json(), names) == _named(expected.json(), names)
    unknown = [client.resolve(package="0" * 36) for client in (glare, images)]
    assert [answer.status_code for answer in unknown] == [404, 404]
    assert message(unknown[0]) == message(unknown[1])


def test_batches(both: tuple[Client, ImageClient, dict[str, str]]) -> None:
    glare, images, names = both
    missing = "00000000-0000-0000-0000-000000000000"

    def archives(answer: Any) -> list[tuple[str, bytes]]:
        assert answer.status_code == 200, answer.text
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as batch:
            return [(names[m.name], batch.extractfile(m).read()) for m in batch]  # type: ignore[union-attr]

    ids = list(names)
    expected = archives(glare.batch([missing, *ids[0::2]]))
    found = archives(images.query(ARCHIVES, artifacts=[missing, *ids[1::2]]))

    assert len(found) == len(PACKAGES)
    assert found == expected


@pytest.mark.parametrize("count", [1, 2])
def test_the_same_requirements_are_missing(
    both: tuple[Client, ImageClient, dict[str, str]], count: int
) -> None:
    glare, images, _ = both
    require = {f"org.missing{number}": ">=1" for number in range(count)}
    fqn = f"org.lone{count}"
    data = packages.package(fqn, Require={**require, "org.db": ">=3"})

    expected = glare.publish_all([glare.draft(fqn, "1.0.0", data)], "private")
    draft = images.publish_draft(fqn, "1.0.0", data)["id"]
    found = images.publications(draft)

    assert (expected.status_code, found.status_code) == (409, 409)
    assert found.json() == expected.json()
    assert "1.1.0 (yanked)" in message(found)


def test_the_same_packages_depend_on_one(
    both: tuple[Client, ImageClient, dict[str, str]],
    glance: Glance,
) -> None:
    glare, images, names = both
    ids = [id_ for id_, name in names.items() if name == "org.sql@1.2.0"]
    require = {"org.sql": ">=1.1"}
    data = packages.package("org.requiring", Require=require)
    glare.publish("org.requiring", "1.0.0", data)
    stored.store(glance, [stored.package(data, PROJECT)])

    expected = glare.set(ids[0], "status", "deactivated")
    refused = [glare.delete(ids[0]), images.delete(ids[1])]
    yanked = [client.yank(id_, "old") for client, id_ in ((glare, ids[0]), (images, ids[1]))]

    assert expected.status_code in (403, 409)
    assert [answer.status_code for answer in refused] == [409, 409]
    assert message(refused[1]) == message(refused[0])
    assert yanked[0].headers["Warning"] == yanked[1].headers["Warning"]
    assert _named(yanked[1].json(), names) == _named(yanked[0].json(), names)
    for client, id_ in ((glare, ids[0]), (images, ids[1])):
        assert client.yank(id_, "").json()["yanked"] == ""
