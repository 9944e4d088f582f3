# SPDX-License-Identifier: Apache-2.0

"""Packages that are activated and published together, all or none."""

import uuid
from collections.abc import Callable
from typing import Any

import oslo_messaging
import pytest
import requests
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from glare.notification import Notifier
from oslo_config import cfg
from oslo_messaging.notify import _impl_test as sent
from oslo_utils import timeutils

from glare_murano import wire
from glare_murano.glare.db import transactions
from tests import packages
from tests.functional import statements
from tests.functional.client import PUBLICATIONS, Client, message, refusal

AsUser = Callable[[str], Client]
SetPolicy = Callable[[str, str], None]


def _draft(client: Client, name: str, version: str = "1.0.0", **require: str) -> str:
    """Upload a package; ``one__two="1"`` is a requirement on one.two."""
    requirements = {fqn.replace("__", "."): text for fqn, text in require.items()}
    return client.draft(name, version, packages.package(name, version, Require=requirements))


def _cycle(client: Client, name: str, length: int = 3) -> list[str]:
    """Upload packages of which each requires the next, and the last the first."""
    names = [f"{name}.p{number}" for number in range(length)]
    required = [*names[1:], names[0]]
    return [
        _draft(client, one, **{other.replace(".", "__"): "1"})
        for one, other in zip(names, required, strict=True)
    ]


def _states(client: Client, ids: list[str]) -> set[tuple[str, str]]:
    artifacts = map(client.show, ids)
    return {(artifact["status"], artifact["visibility"]) for artifact in artifacts}


def _actions(answer: requests.Response) -> list[list[str]]:
    assert answer.status_code == 200, answer.text
    return [artifact["actions"] for artifact in answer.json()["artifacts"]]


def _problems(answer: requests.Response, status: int) -> list[str]:
    assert answer.status_code == status, answer.text
    return message(answer).splitlines()


def test_a_member_activates_packages_that_require_each_other(glare: Client, name: str) -> None:
    ids = _cycle(glare, name)

    answer = glare.publish_all(ids, "private")

    assert _actions(answer) == [["activate"]] * 3
    for artifact_id, listed in zip(ids, answer.json()["artifacts"], strict=True):
        artifact = glare.show(artifact_id)
        assert listed["sha256"] == artifact["archive"]["sha256"]
        same = {k: v for k, v in listed.items() if k not in ("actions", "sha256")}
        assert artifact == {**artifact, **same}
        assert artifact["status"] == "active"
        assert artifact["activated_at"] == artifact["updated_at"]


def test_an_administrator_publishes_packages_that_require_each_other(
    glare: Client, admin: Client, as_user: AsUser, name: str, project: str
) -> None:
    drafts = _cycle(glare, name)
    active = _cycle(glare, f"{name}.active")
    assert glare.publish_all(active, "private").status_code == 200

    answer = admin.publish_all([*drafts, *active], "public")

    assert _actions(answer) == [["activate", "publish"]] * 3 + [["publish"]] * 3
    stranger = as_user(f"{project}-stranger")
    assert _states(stranger, [*drafts, *active]) == {("active", "public")}
    assert {stranger.show(artifact_id)["owner"] for artifact_id in drafts} == {project}


def test_packages_of_several_projects_are_checked_as_they_will_be(
    glare: Client, admin: Client, as_user: AsUser, name: str, project: str
) -> None:
    neighbour = as_user(f"{project}-neighbour")
    wiki = _draft(glare, f"{name}.wiki", **{f"{name}.db".replace(".", "__"): "1"})
    db = _draft(neighbour, f"{name}.db", **{f"{name}.wiki".replace(".", "__"): "1"})

    (first, second) = _problems(admin.publish_all([wiki, db], "private"), 409)
    assert f"{name}.db in the range 1 (missing, or not visible)" in first
    assert f"{name}.wiki in the range 1" in second
    assert _actions(admin.publish_all([wiki, db], "public")) == [["activate", "publish"]] * 2


def test_the_same_request_again_has_nothing_to_do(glare: Client, admin: Client, name: str) -> None:
    ids = _cycle(glare, name)
    assert glare.publish_all(ids[:1] * 2 + ids, "private").status_code == 200
    before = [glare.show(artifact_id) for artifact_id in ids]

    assert _actions(glare.publish_all(ids, "private")) == [[]] * 3
    assert [glare.show(artifact_id) for artifact_id in ids] == before
    assert _actions(admin.publish_all(ids, "public")) == [["publish"]] * 3
    before = [glare.show(artifact_id) for artifact_id in ids]
    assert _actions(admin.publish_all(ids, "public")) == [[]] * 3
    assert [glare.show(artifact_id) for artifact_id in ids] == before


def test_of_seven_packages_none_is_published_if_the_last_is_refused(
    glare: Client, admin: Client, name: str
) -> None:
    ids = _cycle(glare, name, 6)
    ids.append(_draft(glare, f"{name}.last", org__nowhere="1"))
    before = [glare.show(artifact_id) for artifact_id in ids]

    for answer in (glare.publish_all(ids, "private"), admin.publish_all(ids, "public")):
        problems = _problems(answer, 409)
        assert "org.nowhere in the range 1" in problems[0]
        assert problems[0].endswith("[requirement-missing]")
    assert [glare.show(artifact_id) for artifact_id in ids] == before
    assert glare.publish_all(ids[:6], "private").status_code == 200


def test_every_problem_is_reported_and_nothing_that_the_caller_cannot_see(
    glare: Client, admin: Client, as_user: AsUser, name: str, project: str
) -> None:
    neighbour = as_user(f"{project}-neighbour")
    secret = _draft(neighbour, f"{name}.secret")
    shown = _draft(neighbour, f"{name}.shown")
    assert neighbour.publish_all([secret, shown], "private").status_code == 200
    assert admin.publish_all([shown], "public").status_code == 200
    missing = str(uuid.uuid4())
    empty = glare.create(f"{name}.empty").json()["id"]
    wiki = _draft(glare, f"{name}.wiki", **{f"{name}.secret".replace(".", "__"): "1"})
    stopped = _draft(glare, f"{name}.stopped")
    assert glare.publish_all([stopped], "private").status_code == 200
    assert admin.set(stopped, "status", "deactivated").status_code == 200

    answer = glare.publish_all([secret, missing, shown, empty, wiki, stopped], "private")

    assert _problems(answer, 404) == [
        f"Artifact with id={secret} not found.",
        f"Artifact with id={missing} not found.",
        f"{name}.shown 1.0.0 belongs to another project",
        f"{name}.empty 1.0.0 has no archive yet; upload it first",
        f"{name}.stopped 1.0.0 is deactivated; publish another version",
        f"no visible package satisfies these requirements of {name}.wiki 1.0.0: {name}.secret in "
        f"the range 1 (missing, or not visible); publish them first, or change the ranges; if "
        f"engines provide one as an extension plug-in, the operator names it in the option "
        f"provided_packages [requirement-missing]",
    ]
    assert glare.show(wiki)["status"] == "drafted"
    for hidden in (secret, missing):
        assert message(glare.publish_all([hidden], "private")) == message(
            glare.request("GET", f"/{hidden}")
        )


def test_each_package_has_to_pass_both_policies(
    glare: Client, name: str, policy: SetPolicy
) -> None:
    ids = [_draft(glare, f"{name}.{which}") for which in ("one", "two")]

    assert _problems(glare.publish_all(ids, "public"), 403) == [
        f"{name}.one 1.0.0: the policy artifact:publish forbids it",
        f"{name}.two 1.0.0: the policy artifact:publish forbids it",
    ]
    policy("artifact:publish", "")
    policy("artifact:activate", f"'{name}.one':%(name)s")
    for visibility in ("private", "public"):
        assert _problems(glare.publish_all(ids, visibility), 403) == [
            f"{name}.two 1.0.0: the policy artifact:activate forbids it"
        ]
    assert _states(glare, ids) == {("drafted", "private")}
    assert _actions(glare.publish_all(ids[:1], "public")) == [["activate", "publish"]]


def test_a_name_and_version_is_public_once(
    glare: Client, admin: Client, as_user: AsUser, name: str, project: str
) -> None:
    neighbour = as_user(f"{project}-neighbour")
    versions = ("1.0.0", "1.0.0-rc.1", "1.0.0+build")
    ours = [_draft(glare, name, version) for version in versions]
    theirs = [_draft(neighbour, name, version) for version in versions]
    taken = [f"another {name} {version} is public already" for version in versions]

    assert sorted(_problems(admin.publish_all([*ours, *theirs], "public"), 409)) == sorted(
        taken * 2
    )
    assert _actions(admin.publish_all(theirs, "public")) == [["activate", "publish"]] * 3
    assert admin.set(theirs[0], "status", "deactivated").status_code == 200
    assert _problems(admin.publish_all(ours, "public"), 409) == taken
    assert _actions(glare.publish_all(ours, "private")) == [["activate"]] * 3


def test_a_change_before_the_publication_takes_its_locks_is_seen(
    glare: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = _draft(glare, name)
    other = packages.package(name, Require={f"{name}.missing": "1"})
    prepare = transactions.prepare
    uploads: list[int] = []

    def prepare_and_change(check: Any) -> Any:
        prepared = prepare(check)
        if not uploads:
            uploads.append(Client(glare.url, glare.token).upload(draft, other).status_code)
        return prepared

    monkeypatch.setattr(transactions, "prepare", prepare_and_change)
    refused = _problems(glare.publish_all([draft], "private"), 409)

    assert uploads == [200]
    assert f"{name}.missing" in refused[0]
    assert _states(glare, [draft]) == {("drafted", "private")}


def test_a_dry_run_answers_the_same_and_changes_nothing(
    glare: Client, admin: Client, name: str
) -> None:
    ids = _cycle(glare, name)
    broken = _draft(glare, f"{name}.broken", org__nowhere="1")
    before = [glare.show(artifact_id) for artifact_id in ids]

    refused = glare.publish_all([*ids, broken], "private", dry_run=True)
    dry = admin.publish_all(ids, "public", dry_run=True)

    assert [glare.show(artifact_id) for artifact_id in ids] == before
    assert refused.json() == glare.publish_all([*ids, broken], "private").json()
    assert _actions(dry) == [["activate", "publish"]] * 3
    assert dry.json() == admin.publish_all(ids, "public", dry_run=False).json()


def test_more_packages_of_a_publication_take_no_more_statements(glare: Client, name: str) -> None:
    counts = []
    for length in (2, 6):
        ids = _cycle(glare, f"{name}.of{length}", length)
        with statements.recorded() as found:
            assert glare.publish_all(ids, "private").status_code == 200
        counts.append(statements.of_artifacts(found))
    # The rows are locked in the order of their ids, that of the core library shared.
    assert abs(counts[1] - counts[0]) <= 1


def test_a_public_package_stays_public(admin: Client, name: str) -> None:
    artifact_id = admin.publish(name, "1.0.0", packages.package(name), public=True)["id"]

    assert _problems(admin.publish_all([artifact_id], "private"), 409) == [
        f"{name} 1.0.0 is public, and cannot become private again"
    ]


def test_a_request_has_a_hundred_ids_at_most(glare: Client) -> None:
    ids = [str(uuid.uuid4()) for _ in range(wire.MAX_PUBLICATIONS)]

    assert len(_problems(glare.publish_all(ids, "private"), 404)) == len(ids) == 100
    assert "ids" in refusal(glare.publish_all([*ids, str(uuid.uuid4())], "private"), 400)


@pytest.mark.parametrize(
    "body",
    [
        {"ids": [], "visibility": "private"},
        {"ids": ["x"], "visibility": "private"},
        {"ids": [str(uuid.uuid4())]},
        {"ids": [str(uuid.uuid4())], "visibility": "shared"},
        {"ids": [str(uuid.uuid4())], "visibility": "private", "dry_run": "yes"},
    ],
)
def test_a_malformed_request_is_refused(glare: Client, body: dict[str, Any]) -> None:
    assert glare.post(PUBLICATIONS, body).status_code == 400


def test_an_administrator_overrides_the_checks(glare: Client, admin: Client, name: str) -> None:
    lonely = _draft(glare, name, org__nowhere="1")
    admin.headers["X-Murano-Override-Checks"] = "true"

    assert _actions(admin.publish_all([lonely], "public")) == [["activate", "publish"]]


def test_the_notifications_are_those_of_glares_own_requests(
    glare: Client, admin: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = oslo_messaging.get_notification_transport(cfg.CONF, url="fake://")
    notifier = oslo_messaging.Notifier(transport, publisher_id="test", driver="test")
    one, two = (_draft(glare, f"{name}.{which}") for which in ("one", "two"))

    def events(artifact_id: str, work: Callable[[], None]) -> list[tuple[str, str, str]]:
        monkeypatch.setattr(Notifier, "GLARE_NOTIFIER", notifier)
        sent.reset()
        work()
        bodies = [(found["event_type"], found["payload"]) for _, found, *_ in sent.NOTIFICATIONS]
        assert {body["id"] for _, body in bodies} == {artifact_id}
        return [(event, body["status"], body["visibility"]) for event, body in bodies]

    def patched() -> None:
        headers = {"Content-Type": "application/json-patch+json"}
        wanted = {"status": "active", "visibility": "public"}
        patch = [{"op": "replace", "path": f"/{k}", "value": v} for k, v in wanted.items()]
        answer = admin.request("PATCH", f"/{one}", json=patch, headers=headers)
        assert answer.status_code == 200, answer.text

    def published() -> None:
        assert admin.publish_all([two], "public", dry_run=True).status_code == 200
        assert sent.NOTIFICATIONS == []
        assert admin.publish_all([one, two], "public").status_code == 200

    expected = events(one, patched)
    assert expected
    assert events(two, published) == expected


def test_a_lock_of_glares_own_does_not_delay_a_publication(admin: Client, name: str) -> None:
    artifact_id = _draft(admin, name)
    session = database.get_session()
    lock = models.ArtifactLock(id=f"murano:{name}:1.0.0", acquired_at=timeutils.utcnow())
    with session.begin():
        session.add(lock)

    assert _actions(admin.publish_all([artifact_id], "public")) == [["activate", "publish"]]
    with session.begin():
        session.delete(lock)
