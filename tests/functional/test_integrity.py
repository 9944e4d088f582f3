# SPDX-License-Identifier: Apache-2.0

"""What the real Glare refuses when a package comes, or goes."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import requests

from glare_murano.glare.db.glare_database import GlareDatabase
from tests import packages
from tests.functional import statements
from tests.functional.client import Client, message, refusal

SetOption = Callable[[str, str], None]


def _draft(client: Client, name: str, version: str = "1.0.0", **require: str) -> str:
    """A package that is uploaded, and not active yet; returns its id."""
    artifact_id: str = client.create(name, version).json()["id"]
    requirements = {fqn.replace("__", "."): text for fqn, text in require.items()}
    data = packages.package(name, version, Require=requirements)
    assert client.upload(artifact_id, data).status_code == 200
    return artifact_id


def _activate(client: Client, artifact_id: str) -> requests.Response:
    return client.set(artifact_id, "status", "active")


def _active(client: Client, name: str, version: str = "1.0.0", **require: str) -> str:
    artifact_id = _draft(client, name, version, **require)
    answer = _activate(client, artifact_id)
    assert answer.status_code == 200, answer.text
    return artifact_id


def test_a_missing_core_library_is_named_as_such(
    glare: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = _draft(glare, name, org__nowhere="1")
    find = GlareDatabase.find_candidates

    def find_without_core(database: GlareDatabase, names: Iterable[str]) -> Any:
        return find(database, set(names) - {"io.murano"})

    monkeypatch.setattr(GlareDatabase, "find_candidates", find_without_core)
    refused = message(_activate(glare, draft))
    assert "io.murano in the range 0 (missing, or not visible), org.nowhere in" in refused
    assert "io.murano is Murano's core library, which an administrator publishes" in refused
    assert "the operator names it in the option provided_packages" in refused


def _publish(admin: Client, artifact_id: str) -> None:
    answer = admin.set(artifact_id, "visibility", "public")
    assert answer.status_code == 200, answer.text


def _force(client: Client) -> Client:
    """The same client, which overrides the checks."""
    forced = Client(client.url, client.token)
    forced.headers["X-Murano-Override-Checks"] = "true"
    return forced


def _refused(answer: requests.Response, rule: str, *words: str) -> None:
    assert f"[{rule}]" in refusal(answer, 409)
    for word in words:
        assert word in message(answer)


def _extending(client: Client, name: str, base: str, **require: str) -> str:
    """A draft whose class extends another."""
    artifact_id: str = client.create(name).json()["id"]
    data = packages.extending(name, base, Require=require)
    assert client.upload(artifact_id, data).status_code == 200
    return artifact_id


def test_a_base_class_is_in_a_required_package(
    glare: Client, name: str, set_option: SetOption
) -> None:
    library, app = f"{name}.library", f"{name}.app"
    _active(glare, library)
    base = f"{library}.Thing"
    draft = _extending(glare, app, base)
    refused = _activate(glare, draft)

    _refused(refused, "requirement-missing")
    assert message(refused) == (
        f"no visible package that {app} 1.0.0 requires has these base classes: {base} (of "
        f"{app}.Thing); add their packages to Require [requirement-missing]"
    )
    # A version out of the range has the class; or nobody has.
    newer = packages.package(library, "2.0.0", Classes={f"{library}.Newer": "Thing.yaml"})
    glare.publish(library, "2.0.0", newer)
    for number, (missing, text) in enumerate([(f"{library}.Newer", "1"), ("io.murano.None", "2")]):
        wrong = _extending(glare, f"{app}{number}", missing, **{library: text})
        _refused(_activate(glare, wrong), "requirement-missing", missing)
    for number, right in enumerate((base, "io.murano.Application")):
        draft = _extending(glare, f"{app}.right{number}", right, **{library: "1"})
        assert _activate(glare, draft).status_code == 200
    set_option("check_requirements", "warn")
    assert _activate(glare, wrong).status_code == 200


def test_a_class_that_extends_itself_is_refused(glare: Client, name: str) -> None:
    code = f"Name: {name}.Thing\nExtends: {name}.Thing\n"
    draft = glare.create(name).json()["id"]

    refused = glare.upload(draft, packages.zipped(packages.content(name, code=code)))

    assert (refused.status_code, "[class-cycle]" in message(refused)) == (400, True)


def test_base_classes_of_packages_in_one_publication_are_found(glare: Client, name: str) -> None:
    library, app = f"{name}.library", f"{name}.app"
    ids = [_draft(glare, library), _extending(glare, app, f"{library}.Thing", **{library: "1"})]

    assert glare.publish_all(ids, "private").status_code == 200


def test_classes_of_plug_ins_may_be_base_classes(
    glare: Client, name: str, set_option: SetOption
) -> None:
    set_option("provided_packages", ["org.plugin:1.4.0"])
    draft = _extending(glare, name, "org.plugin.Mail", **{"org.plugin": "1"})

    assert _activate(glare, draft).status_code == 200


def test_classes_that_only_code_names_may_be_missing(glare: Client, name: str) -> None:
    """The engine searches for them when the code runs."""
    code = f"Name: {name}.Thing\nProperties:\n  other: {{Contract: $.class('org.none.Thing')}}\n"
    code += "Methods:\n  make:\n    Body: [new('org.none.Thing')]\n"
    glare.publish(name, "1.0.0", packages.package(name, code=code))


def test_nothing_becomes_active_before_what_it_requires(glare: Client) -> None:
    wiki = _draft(glare, "org.wiki", org__db=">=1.2,<2", org__log="1")
    _active(glare, "org.db", "1.1.0")
    _active(glare, "org.db", "2.0.0")

    answer = _activate(glare, wiki)

    _refused(answer, "requirement-missing", "org.wiki 1.0.0", "org.db", ">=1.2,<2", "2.0.0, 1.1.0")
    assert "org.log in the range 1 (missing, or not visible)" in message(answer)
    assert glare.show(wiki)["status"] == "drafted"
    _active(glare, "org.db", "1.2.0")
    _active(glare, "org.log")
    assert _activate(glare, wiki).status_code == 200


def test_every_missing_requirement_is_reported_in_the_order_of_names(glare: Client) -> None:
    wiki = _draft(glare, "org.wiki", org__log="1", org__db=">=3")
    _active(glare, "org.db", "1.1.0")

    answer = _activate(glare, wiki)

    missing = [
        "requirements of org.wiki 1.0.0: org.db in the range >=3 (available: 1.1.0)",
        "org.log in the range 1 (missing, or not visible); publish",
    ]
    _refused(answer, "requirement-missing", ", ".join(missing))


def test_a_draft_counts_only_in_the_publication_that_publishes_it(glare: Client) -> None:
    one = _draft(glare, "org.one", org__two="1")
    _refused(_activate(glare, one), "requirement-missing", "(missing, or not visible)")
    two = _draft(glare, "org.two", org__one="1")

    for refused in (_activate(glare, one), glare.publish_all([one], "private")):
        _refused(
            refused,
            "requirement-missing",
            "org.two in the range 1 (drafts: 1.0.0)",
            "publish the drafts in one request with the package that requires them",
        )
    assert glare.show(one)["status"] == "drafted"
    assert glare.publish_all([one, two], "private").status_code == 200


def test_a_draft_in_another_range_is_shown_and_does_not_help(glare: Client) -> None:
    one = _draft(glare, "org.one", org__two="2")
    _draft(glare, "org.two")

    answer = _activate(glare, one)

    _refused(answer, "requirement-missing", "org.two in the range 2 (drafts: 1.0.0); publish them")
    assert "a draft counts only" not in message(answer)


def test_another_project_counts_only_what_is_public(
    glare: Client, admin: Client, as_user: Callable[[str], Client], project: str, name: str
) -> None:
    required = _active(glare, name)
    stranger = as_user(f"{project}-stranger")
    wiki = _draft(stranger, "org.wiki", **{name.replace(".", "__"): "1"})

    answer = _activate(stranger, wiki)
    _refused(answer, "requirement-missing", f"{name} in the range 1 (missing, or not visible)")

    _publish(admin, required)
    assert _activate(stranger, wiki).status_code == 200


def test_a_pre_release_satisfies_the_requirement_on_itself(glare: Client) -> None:
    assert _active(glare, "org.db", "2.0.0-rc.1")


def test_what_is_public_requires_only_what_is_public(
    glare: Client, admin: Client, name: str
) -> None:
    db, wiki = f"{name}.db", f"{name}.wiki"
    required = _active(glare, db)
    requiring = _active(glare, wiki, **{db.replace(".", "__"): "1"})

    answer = admin.set(requiring, "visibility", "public")

    _refused(answer, "requirement-private", wiki, f"{db} in the range 1", "publish them first")
    assert glare.show(requiring)["visibility"] == "private"
    _publish(admin, required)
    _publish(admin, requiring)


def test_activation_and_publication_in_one_request_are_both_checked(
    admin: Client, name: str
) -> None:
    artifact_id = _draft(admin, name, org__nowhere="1")
    patch = [
        {"op": "replace", "path": "/status", "value": "active"},
        {"op": "replace", "path": "/visibility", "value": "public"},
    ]

    def send() -> requests.Response:
        headers = {"Content-Type": "application/json-patch+json"}
        return admin.request("PATCH", f"/{artifact_id}", json=patch, headers=headers)

    _refused(send(), "requirement-missing")
    assert admin.show(artifact_id)["status"] == "drafted"
    _active(admin, "org.nowhere")
    _refused(send(), "requirement-private")
    assert admin.show(artifact_id)["status"] == "drafted"


@pytest.mark.parametrize("removal", ["delete", "deactivate"])
def test_the_last_package_that_another_needs_stays(
    glare: Client, admin: Client, removal: str
) -> None:
    def remove(artifact_id: str) -> requests.Response:
        if removal == "delete":
            return glare.delete(artifact_id)
        return admin.set(artifact_id, "status", "deactivated")

    first = _active(glare, "org.db", "1.0.0")
    second = _active(glare, "org.db", "1.1.0")
    _active(glare, "org.db", "2.0.0")
    wiki = _active(glare, "org.wiki", org__db="1")

    assert remove(first).status_code in (200, 204)
    _refused(remove(second), "requirement-last", "org.db 1.1.0", "org.wiki 1.0.0 (org.db 1)")
    assert glare.show(second)["status"] == "active"
    assert glare.delete(wiki).status_code == 204
    assert remove(second).status_code in (200, 204)


def test_a_draft_needs_nothing_yet(glare: Client) -> None:
    db = _active(glare, "org.db")
    _draft(glare, "org.wiki", org__db="1")

    assert glare.delete(db).status_code == 204


def test_a_draft_does_not_replace_the_package_that_an_active_one_needs(glare: Client) -> None:
    required = _active(glare, "org.db", "1.0.0")
    draft = _draft(glare, "org.db", "1.1.0")
    _active(glare, "org.wiki", org__db="1")

    _refused(glare.delete(required), "requirement-last", "org.wiki 1.0.0")
    assert glare.delete(draft).status_code == 204


def test_what_a_public_package_needs_is_replaced_only_by_what_is_public(
    admin: Client, name: str
) -> None:
    db, wiki = f"{name}.db", f"{name}.wiki"
    required = _active(admin, db)
    _publish(admin, required)
    requiring = _active(admin, wiki, **{db.replace(".", "__"): "1"})
    _publish(admin, requiring)
    other = _active(admin, db, "1.1.0")

    _refused(admin.delete(required), "requirement-last", wiki)
    _publish(admin, other)
    assert admin.delete(required).status_code == 204


def test_what_a_private_package_needs_may_be_replaced_by_a_private_one(
    admin: Client, name: str
) -> None:
    required = _active(admin, f"{name}.db")
    _publish(admin, required)
    _active(admin, f"{name}.wiki", **{f"{name}.db".replace(".", "__"): "1"})

    _refused(admin.delete(required), "requirement-last", f"{name}.wiki")
    _active(admin, f"{name}.db", "1.1.0")
    assert admin.delete(required).status_code == 204


def test_a_private_package_does_not_keep_another_projects(
    glare: Client, as_user: Callable[[str], Client], project: str
) -> None:
    db = _active(glare, "org.db")
    neighbour = as_user(f"{project}-neighbour")
    _active(neighbour, "org.db")
    _active(neighbour, "org.wiki", org__db="1")

    assert glare.delete(db).status_code == 204


def test_a_deactivated_package_comes_back_only_with_what_it_requires(
    glare: Client, admin: Client
) -> None:
    db = _active(glare, "org.db")
    wiki = _active(glare, "org.wiki", org__db="1")
    assert admin.set(wiki, "status", "deactivated").status_code == 200
    assert glare.delete(db).status_code == 204

    _refused(admin.set(wiki, "status", "active"), "requirement-missing", "org.db")
    _active(glare, "org.db", "1.5.0")
    assert admin.set(wiki, "status", "active").status_code == 200


def test_an_error_names_no_package_that_the_caller_cannot_list(
    glare: Client,
    admin: Client,
    as_user: Callable[[str], Client],
    name: str,
    project: str,
    policy: Callable[[str, str], None],
) -> None:
    policy("artifact:delete_public", "")
    required = _active(glare, name)
    _publish(admin, required)
    secret = as_user(f"{project}-secret")
    _active(secret, "org.secret", **{name.replace(".", "__"): "1"})

    answer = glare.delete(required)

    _refused(answer, "requirement-last", "packages of other projects")
    assert "org.secret" not in message(answer)
    assert "org.secret 1.0.0" in message(admin.delete(required))
    policy("artifact:list_all_artifacts", f"project_id:{project}")
    assert "org.secret 1.0.0" in message(glare.delete(required))


def test_only_what_is_required_is_looked_up(glare: Client) -> None:
    """Never all that is active, of which a large Glare has many."""
    _active(glare, "org.db")
    _active(glare, "org.log")
    wiki = _draft(glare, "org.wiki", org__db="1", org__log="1")

    with statements.recorded() as found:
        assert _activate(glare, wiki).status_code == 200

    checks = [pair for pair in found if "glare_artifacts.name IN" in pair[0]]
    assert len(checks) == 2
    for check in checks:
        artifacts, uploaded = statements.plans([check])
        assert "_name_and_version" in artifacts
        assert "_artifact_id " in uploaded


def test_a_request_locks_few_of_the_packages_that_it_could_rely_on(glare: Client) -> None:
    older, newer = (_active(glare, "org.db", version) for version in ("1.0.0", "1.1.0"))
    wiki, other, draft = (
        _draft(glare, "org.wiki", org__db="1"),
        _draft(glare, "org.other", org__db="1"),
        _draft(glare, "org.db", "1.0.5"),
    )

    with statements.recorded() as found:
        assert _activate(glare, wiki).status_code == 200
    assert {wiki, newer} < _locked(found)
    assert older not in _locked(found)

    with statements.recorded() as found:
        assert glare.publish_all([draft, other], "private").status_code == 200
    assert {draft, other} < _locked(found)
    assert newer not in _locked(found)


def _locked(found: Iterable[statements.Statement]) -> set[str]:
    """Return the ids of the artifacts that some statements lock."""
    begin, end = "SELECT glare_artifacts.id \nFROM", "ORDER BY glare_artifacts.id"
    locking = (values for text, values in found if text.startswith(begin) and text.endswith(end))
    return {id_ for values in locking for id_ in values}


def test_ten_dependents_are_named(glare: Client) -> None:
    db = _active(glare, "org.db")
    for number in range(10):
        _active(glare, f"org.wiki{number}", org__db="1")
    assert refusal(glare.delete(db), 409).count("org.wiki") == 10
    assert "and more" not in refusal(glare.delete(db), 409)

    _active(glare, "org.wiki10", org__db="1")
    refused = refusal(glare.delete(db), 409)
    assert refused.count("org.wiki") == 10
    assert " and more" in refused


def test_of_many_dependents_no_more_are_looked_up_than_are_named(glare: Client) -> None:
    db = _active(glare, "org.db")
    for number in range(11):
        _active(glare, f"org.wiki{number}", org__db=f">=0.{number}")

    def refused() -> int:
        with statements.recorded() as found:
            _refused(glare.delete(db), "requirement-last", " and more")
        return len(found)

    eleven = refused()
    for number in range(11, 15):
        _active(glare, f"org.wiki{number}", org__db=f">=0.{number}")
    assert refused() == eleven


def test_an_administrator_may_override(glare: Client, admin: Client) -> None:
    db = _active(glare, "org.db")
    _active(glare, "org.wiki", org__db="1")

    assert admin.delete(db).status_code == 409
    answer = _force(admin).delete(db)
    assert answer.status_code == 204
    # Only the response to a yank has a warning.
    assert "Warning" not in answer.headers


def test_packages_that_require_each_other_become_public_by_overriding(
    glare: Client, admin: Client, name: str
) -> None:
    one, two = f"{name}.one", f"{name}.two"
    drafts = [
        _draft(glare, one, **{two.replace(".", "__"): "1"}),
        _draft(glare, two, **{one.replace(".", "__"): "1"}),
    ]
    assert glare.publish_all(drafts, "private").status_code == 200

    for artifact_id in drafts:
        _refused(admin.set(artifact_id, "visibility", "public"), "requirement-private")
    _publish(_force(admin), drafts[0])
    _publish(admin, drafts[1])


def test_activation_and_deactivation_are_overridden_as_well(glare: Client, admin: Client) -> None:
    lonely = _draft(glare, "org.lonely", org__nowhere="1")
    db = _active(glare, "org.db")
    _active(glare, "org.wiki", org__db="1")

    _refused(_activate(admin, lonely), "requirement-missing")
    assert _activate(_force(admin), lonely).status_code == 200
    _refused(admin.set(db, "status", "deactivated"), "requirement-last")
    assert _force(admin).set(db, "status", "deactivated").status_code == 200


def test_nobody_else_may_override(glare: Client) -> None:
    db = _active(glare, "org.db")
    _active(glare, "org.wiki", org__db="1")

    assert "murano:override_checks" in refusal(_force(glare).delete(db), 403)
    assert glare.show(db)["status"] == "active"


_CHECKS = {
    "check_requirements": "requirement-missing",
    "check_public_requirements": "requirement-private",
    "check_dependents": "requirement-last",
}


@pytest.mark.parametrize(("option", "rule"), _CHECKS.items())
@pytest.mark.parametrize("mode", ["enforce", "warn", "off"])
def test_each_check_is_the_operators_choice(
    admin: Client,
    name: str,
    set_option: SetOption,
    caplog: pytest.LogCaptureFixture,
    option: str,
    rule: str,
    mode: str,
) -> None:
    caplog.set_level(logging.INFO)
    db, wiki = f"{name}.db", f"{name}.wiki"
    require = {db.replace(".", "__"): "1"}
    breaking: dict[str, Callable[[], requests.Response]] = {
        "check_requirements": lambda: _activate(admin, _draft(admin, wiki, **require)),
        "check_public_requirements": lambda: _published(admin, db, wiki, require),
        "check_dependents": lambda: _last_deleted(admin, db, wiki, require),
    }
    set_option(option, mode)

    answer = breaking[option]()

    assert (answer.status_code == 409) == (mode == "enforce"), answer.text
    logged = [record for record in caplog.records if f"[{rule}]" in record.getMessage()]
    levels = {"enforce": ["INFO"], "warn": ["WARNING"], "off": []}
    assert [record.levelname for record in logged] == levels[mode]


def test_a_dry_run_accepts_no_problem(
    admin: Client, name: str, set_option: SetOption, caplog: pytest.LogCaptureFixture
) -> None:
    set_option("check_requirements", "warn")
    draft = _draft(admin, name, **{f"{name}.missing".replace(".", "__"): "1"})

    assert admin.publish_all([draft], "private", dry_run=True).status_code == 200
    assert "Accepted" not in caplog.text
    assert admin.publish_all([draft], "private").status_code == 200
    assert caplog.text.count("Accepted, since check_requirements is warn") == 1


def _published(admin: Client, db: str, wiki: str, require: dict[str, Any]) -> requests.Response:
    _active(admin, db)
    return admin.set(_active(admin, wiki, **require), "visibility", "public")


def _last_deleted(admin: Client, db: str, wiki: str, require: dict[str, Any]) -> requests.Response:
    required = _active(admin, db)
    _active(admin, wiki, **require)
    return admin.delete(required)
