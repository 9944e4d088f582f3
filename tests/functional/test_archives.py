# SPDX-License-Identifier: Apache-2.0

"""Batches: the archives of several artifacts in one answer, from the real Glare."""

import copy
import http.client
import http.server
import io
import json
import logging
import pathlib
import random
import tarfile
import urllib.parse
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import requests
from glare.api.middleware.context import RequestContext
from glare.common import policy as glare_policy
from oslo_policy import _checks
from oslo_policy import policy as oslo_policy

import loader
from glare_murano import wire
from glare_murano.glare import request_state, server
from glare_murano.glare.api import archives, middleware
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.package import VersionSpec
from glare_murano.service import batches
from loader import fetcher
from loader.catalogs.glare import GlareCatalog
from tests import packages, web
from tests.functional.client import ARCHIVES, Client, Wire


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
        files = packages.content(fqn, **more)
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
    assert glare.delete(deleted).ok

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


@pytest.mark.parametrize("field", ["id", "name", "author", "version"])
def test_a_rule_on_a_field_decides_for_each_artifact(
    glare: Client, name: str, policy: Callable[[str, str], None], field: str
) -> None:
    ids = [
        glare.publish(fqn, version, packages.package(fqn, version, Author=f"author-of-{fqn}"))["id"]
        for fqn, version in ((f"{name}.a", "1.0.0"), (f"{name}.b", "2.0.0"), (f"{name}.c", "3.0.0"))
    ]
    value = glare.show(ids[1])[field]

    policy("artifact:download", f"'{value}':%({field})s")
    assert list(_archives(glare.batch(ids))) == [ids[1]]
    policy("artifact:download", f"not '{value}':%({field})s")
    assert list(_archives(glare.batch(ids))) == [ids[0], ids[2]]
    # In the other order, and where another rule has decided before.
    policy("artifact:download", f"project_id:%(owner)s and not '{value}':%({field})s")
    assert list(_archives(glare.batch(ids[::-1]))) == [ids[2], ids[0]]
    policy("artifact:download", "'nothing':%(no_such_field)s")
    assert _archives(glare.batch(ids)) == {}


def test_a_rule_on_visibility_decides_within_a_project(
    glare: Client, project: str, name: str, policy: Callable[[str, str], None]
) -> None:
    private = list(_published(glare, name, 2))
    fqn = f"{name}.public"
    manager = Client(glare.url, f"manager:{project}:admin")
    public = manager.publish(fqn, "1.0.0", packages.package(fqn), public=True)["id"]
    ids = [private[0], public, private[1]]

    policy("artifact:download", "'public':%(visibility)s")
    assert list(_archives(glare.batch(ids))) == [public]
    policy("artifact:download", "'private':%(visibility)s")
    assert list(_archives(glare.batch(ids))) == private


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count decisions of rules, and whole artifacts read."""
    counts: Counter[str] = Counter()
    authorize, show = glare_policy.authorize, MuranoPackageArtifact.show

    def count_rule(name: str, *arguments: Any, **options: Any) -> Any:
        counts[name] += 1
        return authorize(name, *arguments, **options)

    def count_show(*arguments: Any) -> Any:
        counts["show"] += 1
        return show(*arguments)

    monkeypatch.setattr(glare_policy, "authorize", count_rule)
    monkeypatch.setattr(MuranoPackageArtifact, "show", staticmethod(count_show))
    return counts


@pytest.fixture(scope="module")
def readable(glare_url: str) -> tuple[Client, list[str]]:
    """A member of a project, with five packages of it and two public ones."""
    client = Client(glare_url, "user:readers:member")
    admin = Client(glare_url, server.TOKEN)
    ids = list(_published(client, "org.readable.ours", 5))
    for number in range(2):
        fqn = f"org.readable.public{number}"
        ids.append(admin.publish(fqn, "1.0.0", packages.package(fqn), public=True)["id"])
    return client, ids


@pytest.mark.parametrize(
    ("rule", "decisions", "read"),
    [
        (None, 2, 0),
        ("project_id:%(owner)s or 'public':%(visibility)s", 2, 0),
        ("'active':%(status)s", 2, 0),
        ("not 'nobody':%(author)s", 7, 7),
        ("not 'nobody':%(author)s and not 'nothing':%(name)s", 7, 7),
        # Whether it comes to the field depends on the owner.
        ("project_id:%(owner)s or not 'nobody':%(author)s", 3, 2),
    ],
)
def test_a_rule_decides_once_for_each_kind_of_artifacts(
    readable: tuple[Client, list[str]],
    policy: Callable[[str, str], None],
    counts: Counter[str],
    rule: str | None,
    decisions: int,
    read: int,
) -> None:
    client, ids = readable
    if rule is not None:
        policy("artifact:download", rule)
    counts.clear()

    assert list(_archives(client.batch(ids))) == ids

    assert counts["artifact:download"] == decisions
    assert counts["show"] == read


def _target(request: web.Request) -> Any:
    """Return the artifact about which a service decides for a rule of the policy."""
    return json.loads(urllib.parse.parse_qs(request.body.decode())["target"][0])


def test_a_service_that_decides_receives_whole_artifacts(
    glare: Client, name: str, policy: Callable[[str, str], None], counts: Counter[str]
) -> None:
    ids = [
        glare.publish(
            f"{name}{number}", "1.0.0", packages.package(f"{name}{number}", Author=author)
        )
        for number, author in enumerate(("one", "refused", "another"))
    ]
    ids = [artifact["id"] for artifact in ids]
    with web.recording(
        lambda request: web.Answer(200, str(_target(request)["author"] != "refused"))
    ) as judge:
        policy("artifact:download", f"{judge.url}/%(name)s")
        answers = [glare.request("GET", f"/{one}/archive").status_code for one in ids]
        counts.clear()
        found = _archives(glare.batch(ids))

    assert answers == [200, 403, 200]
    assert list(found) == [ids[0], ids[2]]
    targets = [_target(request) for request in judge.requests]
    assert [target["id"] for target in targets] == ids * 2
    # The very same as for downloads one by one.
    assert targets[len(ids) :] == targets[: len(ids)]
    assert counts["show"] == len(ids)


class _Copying(oslo_policy.Check):
    """A check that an operator has added, and that looks at a copy."""

    def __call__(self, target: Any, *_: Any) -> bool:
        return bool(copy.copy(target)["author"] != self.match)


class _Printing(oslo_policy.Check):
    """One that looks at the target as it is printed."""

    def __call__(self, target: Any, *_: Any) -> bool:
        return f"'{self.match}'" not in str(target)


@pytest.mark.parametrize("check", [_Copying, _Printing])
def test_a_check_that_sees_the_target_in_another_form_decides_for_each_artifact(
    glare: Client,
    name: str,
    policy: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    check: type[oslo_policy.Check],
) -> None:
    monkeypatch.setitem(_checks.registered_checks, "seen", check)
    first, refused, last = (
        next(iter(_published(glare, f"{name}.{author}", 1, Author=author)))
        for author in ("one", "refused", "another")
    )

    policy("artifact:download", "seen:refused")

    assert list(_archives(glare.batch([first, refused, last]))) == [first, last]
    assert list(_archives(glare.batch([refused, last, first]))) == [last, first]


def _delete(client: Client, artifact: str) -> None:
    assert client.delete(artifact).ok


def _deactivate(client: Client, artifact: str) -> None:
    assert client.set(artifact, "status", "deactivated").ok


@pytest.mark.parametrize("rule", [None, "'somebody':%(author)s"])
@pytest.mark.parametrize(("change", "place"), [(_delete, 2), (_delete, -2), (_deactivate, -2)])
def test_what_is_gone_while_a_batch_is_sent_is_left_out(
    glare: Client,
    admin: Client,
    project: str,
    name: str,
    policy: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    rule: str | None,
    change: Callable[[Client, str], None],
    place: int,
) -> None:
    monkeypatch.setattr(batches, "_LOOK_UP", 4)
    ids = []
    for number in range(8):
        archive = packages.package(f"{name}{number}", Author="somebody")
        ids.append(glare.publish(f"{name}{number}", "1.0.0", archive)["id"])
    if rule is not None:
        policy("artifact:download", rule)
    # Each piece is sent by itself.
    monkeypatch.setattr(batches, "_CHUNK_SIZE", 1)
    context = RequestContext(user_id="user", project_id=project, roles=["member"])
    request_state.of(context).is_filtered = True
    pieces = batches.stream(archives.downloadable(context, ids))

    sent = next(pieces)
    change(admin, ids[place])
    sent += b"".join(pieces)

    with tarfile.open(fileobj=io.BytesIO(sent), mode="r:") as batch:
        assert batch.getnames() == [each for each in ids if each != ids[place]]


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


def test_a_loader_requests_no_more_than_a_batch_holds() -> None:
    assert fetcher._BATCH_SIZE <= wire.MAX_ARCHIVES
    assert fetcher._BATCH_SIZE * fetcher._SMALL <= batches.MAX_SIZE


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


def test_a_batch_that_ends_too_early_brings_all_that_came_before(
    glare: Client, name: str, state_dir: pathlib.Path, wire: Wire
) -> None:
    (whole,) = _published(glare, name, 1).items()
    (damaged,) = _published(glare, f"{name}.damaged", 1).items()
    _stored(state_dir, damaged[1]).write_bytes(damaged[1][:-1])
    body = json.dumps({"artifacts": [whole[0], damaged[0]]}).encode()

    with pytest.raises(http.client.IncompleteRead) as broken:
        wire.send("POST", ARCHIVES, body, {"Content-Type": "application/json"})

    assert whole[1] in broken.value.partial
    assert broken.value.partial.endswith(damaged[1][:-1])


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
    answer = glare.post(ARCHIVES, body)

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
    some = list(catalog.releases_of([f"{name}{number}" for number in range(3)]))

    for _ in range(4):
        assert len(list(catalog.batch(some))) == 3

    pools = catalog._client.session.session.adapters["http://"].poolmanager.pools
    (pool,) = (pools[key] for key in pools.keys())  # noqa: SIM118 - no mapping
    assert pool.num_connections == 1


def test_a_closure_takes_two_requests(glare: Client, name: str, tmp_path: pathlib.Path) -> None:
    _chain(glare, name, 10)
    reported: list[loader.Progress] = []
    with loader.Cache(tmp_path) as cache:
        fetcher = loader.Fetcher(cache, report=reported.append)
        packages_ = loader.PackageLoader([_catalog(glare)], cache, fetcher=fetcher)

        for number in range(10):
            assert packages_.load(f"{name}{number}", VersionSpec.of("1"))

        assert packages_.counters.requests == 2
        assert packages_.counters.downloads == 11
        assert packages_.counters.bytes == sum(progress.done for progress in reported)
    assert {progress.name.split()[0] for progress in reported} >= {f"{name}{n}" for n in range(10)}
    assert all(progress.done == progress.total for progress in reported)
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_large_archive_travels_by_itself(
    glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    large = packages.content(f"{name}.large")
    large["Resources/data"] = random.Random(name).randbytes(2**20)
    glare.publish(f"{name}.large", "1.0.0", packages.zipped(large))
    archive = packages.package(name, Require={f"{name}.large": "1"})
    glare.publish(name, "1.0.0", archive)

    with loader.Cache(tmp_path) as cache:
        packages_ = loader.PackageLoader([_catalog(glare)], cache)
        packages_.load(name, VersionSpec.of("1"))

        # A query, a batch, and a download.
        assert packages_.counters.requests == 3
        assert packages_.counters.downloads == 3


@pytest.mark.usefixtures("waits")
def test_a_batch_that_breaks_off_leaves_the_rest_to_be_fetched(
    glare: Client, name: str, state_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The store has only a part of one archive: the others are loaded."""
    _chain(glare, name, 10)
    damaged = f"{name}9"
    catalog = _catalog(glare)
    (release,) = catalog.releases(damaged)
    path = _stored(state_dir, b"".join(catalog.fetch(release)))
    path.write_bytes(path.read_bytes()[:-10])

    with loader.Cache(tmp_path) as cache:
        packages_ = loader.PackageLoader([_catalog(glare)], cache)
        for number in range(9):
            assert packages_.load(f"{name}{number}", VersionSpec.of("1"))
        with pytest.raises(loader.LoaderError, match=damaged):
            packages_.load(damaged, VersionSpec.of("1"))
        assert packages_.counters.downloads == 10


def test_without_the_filter_archives_are_fetched_one_by_one(
    glare: Client, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _chain(glare, name, 3)
    monkeypatch.delitem(middleware.ROUTES, ARCHIVES)

    with loader.Cache(tmp_path) as cache:
        catalog = _catalog(glare)
        packages_ = loader.PackageLoader([catalog], cache)
        for number in range(3):
            assert packages_.load(f"{name}{number}", VersionSpec.of("1"))

        # A query, the batch that is refused, and four downloads.
        assert packages_.counters.requests == 6
        assert not catalog.gives_batches
