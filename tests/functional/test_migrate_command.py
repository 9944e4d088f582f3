# SPDX-License-Identifier: Apache-2.0

"""``openstack murano migrate``: the packages of the real murano-api, into the real Glare.

The credentials for another project need Keystone: see ``tests/integration/test_cloud.py``.
"""

import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import requests
from muranoclient.v1.client import Client as MuranoClient

from loader.catalogs import murano as murano_catalog
from loader.catalogs.glare import GlareCatalog, GlareRepository
from loader.publishing import migration
from loader.publishing.migration import Result
from tests import packages
from tests.functional import migrating, murano_api
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack

pytestmark = pytest.mark.programs

_PATCH = {"Content-Type": "application/murano-packages-json-patch"}


Upload = Callable[..., str]


@pytest.fixture
def upload(murano_url: str, project: str) -> Iterator[Upload]:
    """Upload a package to Murano, and return its id; the packages are deleted at the end."""
    sent: list[str] = []

    def send(
        name: str,
        version: str | None = "1.0.0",
        owner: str = project,
        public: bool = False,
        metadata: Any = None,
        files: Mapping[str, bytes] | None = None,
        **keys: Any,
    ) -> str:
        archive = packages.package(name, version, more=files or {}, **keys)
        sent.append(murano_api.upload(murano_url, owner, archive, public, metadata))
        return sent[-1]

    yield send
    for reference in sent:
        murano_api.delete(murano_url, reference)


@pytest.fixture
def openstack(tmp_path: pathlib.Path, glare: Client, murano_url: str) -> OpenStack:
    command = OpenStack(tmp_path, glare.url, glare.token)
    place = {"application_catalog_endpoint_override": murano_url}
    command.add_cloud("test", glare.url, glare.token, **place)
    return command


@pytest.fixture
def migrate(
    murano_url: str, admin: Client, tmp_path: pathlib.Path
) -> Callable[[], migrating.Results]:
    """Migrates the packages of all projects as an administrator, with a role in each project."""
    source = migrating.murano(murano_url, admin.session())
    catalog = GlareCatalog(admin.session(), project_id="admin", endpoint=admin.url)

    def scope(owner: str) -> GlareRepository:
        return _repository(Client(admin.url, f"admin:{owner}:member"))

    return lambda: migrating.migrate(source, catalog, _repository(admin), scope, tmp_path)


def _repository(user: Client) -> GlareRepository:
    return GlareRepository(user.session(), project_id=user.token.split(":")[1], endpoint=user.url)


def _found(user: Client, name: str, owner: str) -> Any:
    answer = user.request("GET", "", params={"name": name, "owner": owner})
    (found,) = answer.json()["artifacts"]
    return found


def test_own_packages_are_migrated_with_their_fields_and_the_second_run_does_nothing(
    openstack: OpenStack, glare: Client, upload: Upload, name: str, project: str
) -> None:
    upload(f"{name}.app", "1.2.0", Require={name: ">=0", f"{name}.other": 0})
    # They require each other.
    upload(f"{name}.other", None, Require={f"{name}.app": 1})
    metadata = {"categories": ["Web"], "tags": ["mine"], "name": "Mine"}
    upload(name, None, metadata=metadata)
    upload(f"{name}.foreign", owner="another")

    dry = openstack.json("migrate", "--dry-run")
    assert {row["Result"] for row in dry} == {"would be migrated"}
    assert glare.names(owner=project) == []
    rows = openstack.json("migrate")

    mine = {"Owner": project, "Visibility": "private", "Result": "migrated", "Reason": ""}
    assert rows == [
        {"Name": name, "Version": "0.0.0", **mine},
        {"Name": f"{name}.app", "Version": "1.2.0", **mine},
        {"Name": f"{name}.other", "Version": "0.0.0", **mine},
    ]
    found = _found(glare, name, project)
    assert (found["status"], found["visibility"]) == ("active", "private")
    assert (found["categories"], found["tags"]) == (["Web"], ["mine"])
    again = openstack.ok("migrate")
    assert again.out.count("skipped, was migrated before") == 3
    assert "uploaded" not in again.err


def test_invalid_packages_and_those_that_require_them_do_not_stop_the_rest(
    openstack: OpenStack, glare: Client, upload: Upload, name: str, project: str
) -> None:
    upload(f"{name}.old", Require={"org.db": ">>1"}, Version="1.x")
    upload(f"{name}.user", Require={f"{name}.old": 1})
    upload(f"{name}.lost", Require={f"{name}.nowhere": 1})
    upload(f"{name}.good")

    result = openstack.fails("migrate", "-f", "json")

    rows = {row["Name"]: row for row in result.json()}
    assert rows[f"{name}.good"]["Result"] == "migrated"
    for part, reasons in {
        "old": ("Version, line", ">>1"),
        "user": (f"it requires {name}.old in the range 1", f"{name}.old of {project} is refused"),
        "lost": (f"it requires {name}.nowhere in the range 1",),
    }.items():
        assert rows[f"{name}.{part}"]["Result"] == "refused"
        for reason in reasons:
            assert reason in rows[f"{name}.{part}"]["Reason"]
    assert glare.names(owner=project) == [(f"{name}.good", "1.0.0")]


def test_a_dry_run_says_what_the_migration_does(
    openstack: OpenStack,
    upload: Upload,
    name: str,
    project: str,
    set_option: Callable[[str, object], None],
) -> None:
    """For forms, requirements and fields, which each service may check in another way."""
    upload(f"{name}.form", files={"UI/ui.yaml": b"Forms: []\n"})
    upload(f"{name}.good")
    upload(f"{name}.user", Require={f"{name}.lost": 1})
    upload(f"{name}.tags", metadata={"tags": ["a/b"]})
    problem = "UI/ui.yaml, line 1: the section 'Application' is missing [form-section]"
    lost = f"it requires {name}.lost in the range 1, which was not found (Murano has: none)"

    def results(*options: str) -> dict[str, tuple[str, str]]:
        result = openstack.run("migrate", "-f", "json", *options)
        return {
            row["Name"].removeprefix(f"{name}."): (row["Result"], row["Reason"])
            for row in result.json()
        } | {"": ("", result.err)}

    set_option("check_forms", "enforce")
    dry = results("--dry-run")
    assert dry["form"] == ("refused", f"{name}.form of {project}: {problem}")
    assert dry["good"] == ("would be migrated", "")
    assert dry["user"][0] == "refused"
    assert dry["user"][1].startswith(lost)
    assert dry["user"][1].endswith("names it in the option provided_packages")
    assert dry["tags"][0] == "refused"
    assert "a tag is empty, or contains a comma or a slash [manifest-limit]" in dry["tags"][1]

    set_option("check_forms", "warn")
    set_option("check_requirements", "warn")
    dry = results("--dry-run")
    assert {part: result for part, (result, _) in dry.items() if part} == {
        **dict.fromkeys(("form", "good", "user"), "would be migrated"),
        "tags": "refused",
    }
    assert f"{name}.form of {project}: {problem}\n" in dry[""][1]
    assert f"{name}.user of {project}: {lost}" in dry[""][1]
    real = results()
    assert {part for part, (result, _) in real.items() if result == "migrated"} == {
        *("form", "good", "user")
    }
    assert f"{name}.form of {project}: {problem}\n" in real[""][1]


def test_packages_of_all_projects_keep_owner_and_visibility(
    migrate: Callable[[], migrating.Results], admin: Client, upload: Upload, name: str, project: str
) -> None:
    shared, app = f"{name}.shared", f"{name}.app"
    upload(shared, "1.0.0", owner=f"a{project}", public=True)
    # It shadows the public one.
    upload(shared, "2.0.0", owner=f"b{project}")
    for letter in "ab":
        upload(app, "1.0.0", owner=f"{letter}{project}", Author=letter, Require={shared: ">=1"})
    # They require each other, so neither can become public before the other.
    one, two = f"{name}.one", f"{name}.two"
    upload(one, owner=f"a{project}", public=True, Require={two: 1})
    upload(two, owner=f"b{project}", public=True, Require={one: 1})
    # A public package cannot use a private one, which only its project has.
    upload(f"{name}.public", owner=f"b{project}", public=True, Require={shared: 2})

    results = migrate()

    result, reason = results.pop((f"{name}.public", f"b{project}"))
    assert (result, f"requires {shared} in the range 2" in reason) == ("refused", True)
    assert set(results.values()) == {("migrated", "")}
    for (fqn, owner), visibility, version in (
        ((shared, f"a{project}"), "public", "1.0.0"),
        ((shared, f"b{project}"), "private", "2.0.0"),
        ((one, f"a{project}"), "public", "1.0.0"),
        ((two, f"b{project}"), "public", "1.0.0"),
        ((app, f"a{project}"), "private", "1.0.0"),
        ((app, f"b{project}"), "private", "1.0.0"),
    ):
        found = _found(admin, fqn, owner)
        assert (found["status"], found["visibility"]) == ("active", visibility)
        assert found["version"] == version
    assert {result for result, _ in migrate().values()} == {Result.SKIPPED, "refused"}
    # It was refused before an upload, though its project has the private package by now.
    found = admin.request("GET", "", params={"name": f"{name}.public"}).json()
    assert found["artifacts"] == []


def test_disabled_packages_and_the_core_library_are_left_out(
    migrate: Callable[[], migrating.Results],
    murano_url: str,
    upload: Upload,
    name: str,
    project: str,
) -> None:
    reference = upload(name)
    requests.patch(
        f"{murano_url}{murano_api.PACKAGES}/{reference}",
        data=json.dumps([{"op": "replace", "path": "/enabled", "value": False}]),
        headers={"X-Auth-Token": f"user:{project}:admin", **_PATCH},
        timeout=60,
    ).raise_for_status()
    upload("io.murano", None, owner="admin", public=True)

    results = migrate()

    assert results[name, project] == (
        "left out",
        "the package is disabled in Murano; enable it there first",
    )
    result, reason = results["io.murano", "admin"]
    assert result == "left out"
    assert "published already: io.murano 0.0.1" in reason


def test_a_stopped_migration_goes_on(
    migrate: Callable[[], migrating.Results],
    upload: Upload,
    admin: Client,
    name: str,
    project: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upload(name)
    upload(f"{name}.app", Require={name: 1})
    with monkeypatch.context() as patch:
        # As Ctrl-C between the uploads and the publications.
        patch.setattr(migration.publication, "publish", _stop)
        with pytest.raises(KeyboardInterrupt):
            migrate()
    assert len(admin.names(owner=project, status="drafted")) == 2

    assert set(migrate().values()) == {("migrated", "")}
    assert len(admin.names(owner=project, status="active")) == 2


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_project_without_a_role_is_reported_and_public_ones_need_an_administrator(
    openstack: OpenStack, upload: Upload, name: str, project: str
) -> None:
    upload(name, owner=project, public=True)
    upload(f"{name}.foreign", owner=f"a{project}", public=True)

    result = openstack.fails("migrate", "-f", "json")

    reasons = {row["Name"]: row["Reason"] for row in result.json()}
    assert "the policy artifact:publish forbids it" in reasons[name]
    assert f"give your user a role in the project a{project}" in reasons[f"{name}.foreign"]


def test_the_url_of_murano_s_client_counts(
    openstack: OpenStack, glare: Client, murano_url: str, upload: Upload, name: str
) -> None:
    """The option of python-muranoclient, which comes before the cloud's configuration."""
    upload(name)
    wrong = {"application_catalog_endpoint_override": "http://127.0.0.1:1"}
    openstack.add_cloud("test", glare.url, glare.token, **wrong)

    openstack.fails("migrate", "--dry-run", code=4)
    result = openstack.run("migrate", "-f", "json", options=["--murano-url", murano_url])
    assert [row["Name"] for row in result.json()] == [name]


def test_all_pages_are_read(
    murano_url: str, admin: Client, upload: Upload, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(murano_catalog, "PAGE", 1)
    for number in range(3):
        upload(f"{name}{number}")
    found = migration.find(migrating.murano(murano_url, admin.session()), all_projects=True)
    assert len(list(found)) == 3


def test_murano_s_clients_see_the_migrated_packages_as_before(
    glare: Client, tmp_path: pathlib.Path, name: str, project: str
) -> None:
    """The steps of "Move an existing Murano" in the documentation, and back."""
    form = {"UI/ui.yaml": packages.FORM, "logo.png": b"\x89PNG\r\n\x1a\n" + bytes(16)}
    manifest = packages.manifest(
        name,
        "1.2.0",
        Description="Sells",
        Logo="logo.png",
        Supplier={"Name": "Inc.", "CompanyUrl": {"Text": "Us", "Link": "https://example.org"}},
        Tags=["web", "shop", "a"],
    )
    archive = packages.zipped(packages.files(manifest) | form)

    def read(url: str) -> tuple[Any, ...]:
        murano = MuranoClient(url, token=f"user:{project}:member", timeout=60)
        (found,) = murano.packages.filter(owned=True)
        files = (
            murano.packages.get_ui,
            murano.packages.get_logo,
            # There is none.
            murano.packages.get_supplier_logo,
            murano.packages.download,
        )
        fields = found.to_dict()
        # The service gives another id, and Murano's own packages have no version.
        for key in ("id", "created", "updated", "version"):
            fields.pop(key, None)
        return fields, *(get(found.id) for get in files)

    with murano_api.running(tmp_path) as url:
        murano_api.upload(url, project, archive, metadata={"categories": ["Web"]})
        before = read(url)
        openstack = OpenStack(tmp_path, glare.url, glare.token)
        place = {"application_catalog_endpoint_override": url}
        openstack.add_cloud("test", glare.url, glare.token, **place)
        assert [row["Result"] for row in openstack.json("migrate")] == ["migrated"]
    with murano_api.running(tmp_path, "--glare", glare.url) as url:
        after = read(url)
    with murano_api.running(tmp_path) as url:
        again = read(url)

    assert before == after == again
