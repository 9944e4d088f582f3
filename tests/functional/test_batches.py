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

"""Batches: the archives of several artifacts in one answer, asked of the real Glare."""

import io
import logging
import pathlib
import random
import tarfile
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import requests

import loader
from glare_murano import api
from glare_murano import batches
from glare_murano.package import VersionSpec
from loader import fetching
from loader.catalogs.glare import GlareCatalog
from tests import packages
from tests.functional.client import BATCHES
from tests.functional.client import Client


def _archives(answer: Any) -> dict[str, bytes]:
    """Name -> content of what a batch holds, in its order."""
    assert answer.status_code == 200, answer.text
    with tarfile.open(fileobj=io.BytesIO(answer.content), mode="r:") as batch:
        files = {member.name: batch.extractfile(member) for member in batch}
    return {name: file.read() for name, file in files.items() if file is not None}


def _published(client: Client, name: str, count: int = 3, **more: Any) -> dict[str, bytes]:
    """Ids and archives of so many packages, small and large ones."""
    dice = random.Random(name)
    found = {}
    for number in range(count):
        fqn = f"{name}{number}"
        files = packages.files(packages.manifest(fqn, **more))
        files["Resources/data"] = dice.randbytes(number * 100_000)
        archive = packages.zipped(files)
        found[client.publish(fqn, "1.0.0", archive)["id"]] = archive
    return found


def _stored(state_dir: pathlib.Path, archive: bytes) -> pathlib.Path:
    """The file in which Glare has stored an archive."""
    (path,) = (
        path
        for path in (state_dir / "blobs").iterdir()
        if path.stat().st_size == len(archive) and path.read_bytes() == archive
    )
    return path


def test_a_batch_holds_what_was_asked_for_in_that_order(glare: Client, name: str) -> None:
    published = _published(glare, name, 20)
    ids = random.Random(1).sample(list(published), len(published))

    found = _archives(glare.batch(ids))

    assert list(found) == ids
    assert found == published


def test_what_the_caller_cannot_download_is_left_out(
    glare: Client, as_user: Callable[[str], Client], admin: Client, name: str
) -> None:
    ours = _published(glare, f"{name}.ours")
    theirs = as_user("strangers").publish(name, "1.0.0", packages.package(name))["id"]
    public = admin.publish(name, "1.0.0", packages.package(name), public=True)["id"]
    draft = glare.create(f"{name}.draft").json()["id"]
    glare.upload(draft, packages.package(f"{name}.draft"))
    deactivated, *_ = _published(glare, f"{name}.deactivated", 1)
    assert admin.set(deactivated, "status", "deactivated").ok
    deleted, *_ = _published(glare, f"{name}.deleted", 1)
    assert glare.request("DELETE", f"/{deleted}").ok

    ids = [theirs, draft, *ours, deactivated, deleted, str(uuid.uuid4()), public]
    assert list(_archives(glare.batch(ids))) == [*ours, public]
    assert list(_archives(admin.batch(ids))) == [theirs, *ours, public]
    assert list(_archives(as_user("strangers").batch(ids))) == [theirs, public]
    assert _archives(glare.batch([theirs])) == {}
    assert _archives(glare.batch([])) == {}


def test_the_policy_of_a_download_rules_batches(
    glare: Client, as_user: Callable[[str], Client], name: str, policy: Callable[[str, str], None]
) -> None:
    ids = list(_published(glare, name, Author="somebody"))
    others = list(_published(glare, f"{name}.other", Author="somebody else"))
    auditor = as_user("auditors")

    # By a field that only the whole artifact has.
    policy("artifact:download", "not 'somebody':%(author)s")
    assert glare.request("GET", f"/{ids[0]}/archive").status_code == 403
    assert list(_archives(glare.batch([*ids, *others]))) == others

    policy("artifact:download_from_any_artifact", "project_id:auditors")
    assert auditor.request("GET", f"/{ids[0]}/archive").status_code == 200
    assert list(_archives(auditor.batch(ids))) == ids

    policy("artifact:list", "not project_id:auditors")
    assert auditor.batch(ids).status_code == 403


def test_an_open_policy_shows_nothing_that_a_list_call_would_not(
    glare: Client, as_user: Callable[[str], Client], name: str, policy: Callable[[str, str], None]
) -> None:
    ids = list(_published(glare, name))
    policy("artifact:download", "@")

    assert list(_archives(glare.batch(ids))) == ids
    assert as_user("strangers").request("GET", f"/{ids[0]}/archive").status_code == 404
    assert _archives(as_user("strangers").batch(ids)) == {}


def test_an_artifact_is_given_once(glare: Client, name: str) -> None:
    first, second, third = _published(glare, name)

    assert list(_archives(glare.batch([second, first, second, third]))) == [second, first, third]


def test_a_loader_asks_for_no_more_than_is_given() -> None:
    assert fetching._TOGETHER <= batches.MAX_ARCHIVES
    assert fetching._TOGETHER * fetching._SMALL <= batches.MAX_SIZE


@pytest.mark.parametrize("change", [lambda data: data + b"more", lambda data: data[:-1]])
def test_what_the_store_has_changed_ends_the_batch(
    glare: Client, name: str, state_dir: pathlib.Path, change: Callable[[bytes], bytes]
) -> None:
    published = _published(glare, name)
    damaged = list(published)[1]
    path = _stored(state_dir, published[damaged])
    path.write_bytes(change(path.read_bytes()))

    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        glare.batch(list(published))


def test_a_batch_has_a_limit(glare: Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    published = _published(glare, name, 4)
    monkeypatch.setattr(batches, "MAX_SIZE", 250_000)

    first, second, third, _ = published

    assert list(_archives(glare.batch(list(published)))) == [first, second]
    assert list(_archives(glare.batch([third, second, first]))) == [third, first]


def test_what_the_store_has_lost_is_left_out(
    glare: Client, name: str, state_dir: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    published = _published(glare, name)
    lost, *left = published
    _stored(state_dir, published[lost]).unlink()

    with caplog.at_level(logging.WARNING):
        assert list(_archives(glare.batch(list(published)))) == left
    assert lost in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"artifacts": "id"},
        {"artifacts": [1]},
        {"artifacts": ["a,b"]},
        {"artifacts": ["a" * 36]},
        {"artifacts": [str(uuid.UUID(int=1)).upper(), f"{uuid.UUID(int=1)} "]},
        {"artifacts": [number for pair in range(50_000) for number in (pair, str(pair))]},
        {"artifacts": [{}] * 100_000},
        {"artifacts": [str(uuid.UUID(int=number)) for number in range(101)]},
        {"artifacts": [], "more": 1},
    ],
)
def test_a_bad_request_is_refused(glare: Client, body: Any) -> None:
    answer = glare.post(BATCHES, body)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def _project(client: Client) -> str:
    return client.token.split(":")[1]


def _catalog(client: Client) -> GlareCatalog:
    return GlareCatalog(client.session(), endpoint=client.url, project_id=_project(client))


def _chain(client: Client, name: str, count: int) -> None:
    """Packages of which each requires the next."""
    for number in reversed(range(count)):
        require = {f"{name}{number + 1}": "1"} if number < count - 1 else {}
        fqn = f"{name}{number}"
        archive = packages.package(fqn, Require=require, Description=fqn * 100)
        client.publish(fqn, "1.0.0", archive)


def test_a_connection_serves_one_batch_after_the_other(glare: Client, name: str) -> None:
    _published(glare, name, 3)
    catalog = _catalog(glare)
    releases = [catalog.newest(f"{name}{number}", VersionSpec.of("1")) for number in range(3)]
    some = [release for release in releases if release is not None]

    for _ in range(4):
        assert len(list(catalog.batch(some))) == 3

    pools = catalog._client.session._session.adapters["http://"].poolmanager.pools
    (pool,) = (pools[key] for key in pools.keys())  # noqa: SIM118 - no mapping
    assert pool.num_connections == 1


def test_a_closure_takes_two_requests(glare: Client, name: str, tmp_path: pathlib.Path) -> None:
    _chain(glare, name, 10)
    told: list[loader.Progress] = []
    with loader.Cache(tmp_path) as cache:
        fetcher = loader.Fetcher(cache, progress=told.append)
        packages_ = loader.PackageLoader([_catalog(glare)], cache, fetcher=fetcher)

        for number in range(10):
            assert packages_.load_package(f"{name}{number}", VersionSpec.of("1"))

        assert packages_.counters.requests == 2
        assert packages_.counters.downloads == 11
        assert packages_.counters.bytes == sum(progress.received for progress in told)
    assert {progress.release.fqn for progress in told} >= {f"{name}{n}" for n in range(10)}
    assert all(progress.received == progress.total for progress in told)
    assert list((tmp_path / "partial").iterdir()) == []


def test_a_large_archive_travels_by_itself(
    glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    large = packages.files(packages.manifest(f"{name}.large"))
    large["Resources/data"] = random.Random(name).randbytes(2**20)
    glare.publish(f"{name}.large", "1.0.0", packages.zipped(large))
    archive = packages.package(name, Require={f"{name}.large": "1"})
    glare.publish(name, "1.0.0", archive)

    with loader.Cache(tmp_path) as cache:
        packages_ = loader.PackageLoader([_catalog(glare)], cache)
        packages_.load_package(name, VersionSpec.of("1"))

        # A query, a batch, and a download.
        assert packages_.counters.requests == 3
        assert packages_.counters.downloads == 3


def test_a_batch_that_breaks_off_leaves_the_rest_to_be_fetched(
    glare: Client, name: str, state_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The store has only a part of one archive: it is told, and the others are loaded."""
    _chain(glare, name, 10)
    damaged = f"{name}9"
    catalog = _catalog(glare)
    release = catalog.newest(damaged, VersionSpec.of("1"))
    assert release is not None
    path = _stored(state_dir, b"".join(catalog.fetch(release)))
    path.write_bytes(path.read_bytes()[:-10])

    with loader.Cache(tmp_path) as cache:
        packages_ = loader.PackageLoader([_catalog(glare)], cache)
        for number in range(9):
            assert packages_.load_package(f"{name}{number}", VersionSpec.of("1"))
        with pytest.raises(loader.LoaderError, match=damaged):
            packages_.load_package(damaged, VersionSpec.of("1"))
        assert packages_.counters.downloads == 10


def test_without_the_filter_archives_are_fetched_one_by_one(
    glare: Client, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _chain(glare, name, 3)
    monkeypatch.delitem(api._QUERIES, "/murano/archives")

    with loader.Cache(tmp_path) as cache:
        catalog = _catalog(glare)
        packages_ = loader.PackageLoader([catalog], cache)
        for number in range(3):
            assert packages_.load_package(f"{name}{number}", VersionSpec.of("1"))

        # A query, the batch that is refused, and four downloads.
        assert packages_.counters.requests == 6
        assert not catalog.gives_batches
