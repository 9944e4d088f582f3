# SPDX-License-Identifier: Apache-2.0

"""Releases that their owners yank, in the real Glare."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests import packages
from tests.functional.client import Client, refusal

_REASON = "loses data; use 1.3.0"


def _patch(client: Client, artifact_id: str, *operations: dict[str, Any]) -> requests.Response:
    headers = {"Content-Type": "application/json-patch+json"}
    return client.request("PATCH", f"/{artifact_id}", json=operations, headers=headers)


def _publish(client: Client, fqn: str, version: str = "1.0.0", **require: str) -> str:
    """Publish a package in the client's project, and return its id."""
    data = packages.package(fqn, version, Require=require)
    return str(client.publish(fqn, version, data)["id"])


def _yank(client: Client, artifact_id: str, reason: str = _REASON) -> requests.Response:
    answer = client.set(artifact_id, "yanked", reason)
    assert answer.status_code == 200, answer.text
    assert answer.json() == client.show(artifact_id)
    assert answer.json()["yanked"] == reason
    return answer


def _chosen(client: Client, fqn: str, **query: Any) -> list[tuple[str, str | None]]:
    """The versions of a package in the answer to a query, and why they are yanked."""
    releases = client.resolve(**query).json()["releases"]
    return [(r["version"], r.get("yanked")) for r in releases if r["name"] == fqn]


@pytest.fixture
def public(glare: Client, admin: Client, name: str) -> str:
    """The id of a public package of the test's project."""
    artifact_id = _publish(glare, name)
    assert admin.set(artifact_id, "visibility", "public").status_code == 200
    return artifact_id


def test_an_owner_yanks_a_public_package_but_changes_nothing_else(
    glare: Client, public: str
) -> None:
    assert glare.show(public)["yanked"] == ""
    _yank(glare, public)

    other = {"op": "replace", "path": "/display_name", "value": "Another"}
    for operations in ([other], [other, {"op": "replace", "path": "/yanked", "value": ""}]):
        assert _patch(glare, public, *operations).status_code == 403
    assert glare.show(public)["yanked"] == _REASON

    for value in ("", None):
        _yank(glare, public)
        assert glare.set(public, "yanked", value).json()["yanked"] == ""


def test_the_resource_of_yanks_does_the_same_as_a_patch(
    glare: Client, public: str, as_user: Callable[[str], Client]
) -> None:
    name = glare.show(public)["name"]
    requiring = _publish(glare, "org.requiring", **{name: ">=1"})

    refused = as_user("stranger").yank(public, _REASON)
    assert refused.status_code == 403
    yanked = glare.yank(public, _REASON)

    expected = {"id": public, "name": name, "version": "1.0.0", "yanked": _REASON}
    assert (yanked.status_code, yanked.json()) == (200, expected)
    assert f"org.requiring 1.0.0 ({name} >=1)" in yanked.headers["Warning"], requiring
    assert glare.show(public)["yanked"] == _REASON
    assert glare.yank(public, "").json()["yanked"] == ""
    assert glare.show(public)["yanked"] == ""


@pytest.mark.parametrize("reason", ["x" * 256, "a\nb", "a\u2028b", ["a"], None])
def test_the_resource_of_yanks_takes_a_short_line(glare: Client, name: str, reason: Any) -> None:
    assert glare.yank(_publish(glare, name), reason).status_code == 400


def test_another_project_cannot_yank(
    public: str, as_user: Callable[[str], Client], admin: Client
) -> None:
    answer = as_user("stranger").set(public, "yanked", _REASON)

    assert answer.status_code == 403, answer.text
    assert admin.show(public)["yanked"] == ""
    _yank(admin, public)


def test_policy_rules_decide_who_yanks(
    glare: Client, public: str, policy: Callable[[str, str], None]
) -> None:
    own = _publish(glare, "org.own")
    policy("artifact:yank", "!")

    assert "artifact:yank" in refusal(glare.set(public, "yanked", _REASON), 403)
    # For a private package, artifact:update is enough.
    _yank(glare, own)


@pytest.mark.parametrize("reason", ["x" * 256, "a\nb", "a\x1b[31mb", "a\u2028b", ["a"], False, 1])
def test_a_reason_is_one_short_line(glare: Client, reason: object) -> None:
    db = _publish(glare, "org.db")

    answer = glare.set(db, "yanked", reason)

    assert answer.status_code == 400, answer.text
    assert glare.show(db)["yanked"] == ""
    _yank(glare, db, "ä" * 255)


def test_a_deactivated_package_is_not_yanked(glare: Client, admin: Client, name: str) -> None:
    db = _publish(glare, name)
    assert admin.set(db, "status", "deactivated").status_code == 200

    assert glare.set(db, "yanked", _REASON).status_code == 403
    assert _patch(glare, db, {"op": "remove", "path": "/yanked"}).status_code == 400


def test_a_yanked_release_serves_only_pins_and_its_exact_range(glare: Client, name: str) -> None:
    _publish(glare, name, "1.1.0")
    db = _publish(glare, name, "1.2.0")
    _publish(glare, "org.exact", **{name: "1.2.0"})
    _publish(glare, "org.wiki", **{name: ">=1"})
    # Now the process has read all of them.
    both = {"org.wiki": "1", "org.exact": "1"}
    assert _chosen(glare, name, requirements=both) == [("1.2.0", None)]

    _yank(glare, db)

    assert _chosen(glare, name, requirements={"org.wiki": "1"}) == [("1.1.0", None)]
    exact = [("1.1.0", None), ("1.2.0", _REASON)]
    assert _chosen(glare, name, requirements=both) == exact
    pinned = {"requirements": {"org.wiki": "1"}, "pins": {name: ["1.2.0"]}}
    assert _chosen(glare, name, **pinned) == [("1.2.0", _REASON)]
    header = [{"class": f"{name}.Thing", "version": "1.2"}]
    assert _chosen(glare, name, objects=header) == []
    header = [{"class": f"{name}.Thing", "version": "1"}]
    assert _chosen(glare, name, objects=header) == [("1.1.0", None)]
    _yank(glare, db, "")
    assert _chosen(glare, name, requirements=both) == [("1.2.0", None)]


def test_yanked_packages_are_listed(glare: Client, name: str) -> None:
    _publish(glare, name, "1.1.0")
    _yank(glare, _publish(glare, name, "1.2.0"))

    assert glare.names(name=name, yanked="neq:") == [(name, "1.2.0")]
    assert glare.names(name=name, yanked="", version="latest") == [(name, "1.1.0")]
    assert glare.names(name=name) == [(name, "1.1.0"), (name, "1.2.0")]


def test_a_yanked_package_satisfies_no_requirement_but_an_exact_one(
    glare: Client, name: str
) -> None:
    _yank(glare, _publish(glare, name, "1.2.0"))

    def draft(fqn: str, range_: str) -> requests.Response:
        artifact_id = glare.create(fqn, "1.0.0").json()["id"]
        glare.upload(artifact_id, packages.package(fqn, Require={name: range_}))
        return glare.set(artifact_id, "status", "active")

    refused = refusal(draft("org.wiki", "1"), 409)

    assert f"{name} in the range 1 (available: 1.2.0 (yanked))" in refused
    assert draft("org.exact", "1.2.0").status_code == 200


def test_yanking_the_last_release_that_is_needed_warns(
    glare: Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (_publish(glare, name, version) for version in ("1.1.0", "1.2.0"))
    _publish(glare, "org.exact", **{name: "1.1.0"})
    _publish(glare, "org.wiki", **{name: ">=1"})

    assert "Warning" not in _yank(glare, second).headers
    caplog.set_level(logging.WARNING, "glare_murano")
    warning = _yank(glare, first).headers["Warning"]

    assert warning.startswith(f'299 - "no version of {name} is left')
    assert f"org.wiki 1.0.0 ({name} >=1)" in warning
    assert "org.exact" not in warning
    assert "1.1.0 is yanked" in caplog.text
    # The package stays for those that are deployed with it.
    assert glare.delete(first).status_code == 409


def test_a_warning_names_no_package_that_the_caller_cannot_list(
    glare: Client,
    public: str,
    name: str,
    as_user: Callable[[str], Client],
    project: str,
    policy: Callable[[str, str], None],
) -> None:
    _publish(as_user(f"{project}-secret"), "org.secret", **{name: "1"})

    warning = _yank(glare, public).headers["Warning"]

    assert "packages of other projects" in warning
    assert "org.secret" not in warning
    _yank(glare, public, "")
    policy("artifact:list_all_artifacts", f"project_id:{project}")
    assert "org.secret 1.0.0" in _yank(glare, public).headers["Warning"]
