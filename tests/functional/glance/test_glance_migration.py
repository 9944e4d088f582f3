# SPDX-License-Identifier: Apache-2.0

"""``openstack murano migrate``: the packages of the real murano-api, into the real Glance.

``tests/functional/test_migrate_command.py`` has what both services share.
"""

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from loader.catalogs.glance import GlanceCatalog, GlanceRepository
from loader.catalogs.stored_package import StoredPackage
from loader.publishing import migration
from tests import packages
from tests.functional import migrating, murano_api
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance
from tests.functional.openstack_command import OpenStack

pytestmark = pytest.mark.usefixtures("core_library")

Upload = Callable[..., None]


@pytest.fixture
def upload(murano_url: str) -> Iterator[Upload]:
    """Upload a package to Murano; the packages are deleted at the end."""
    sent: list[str] = []

    def send(
        fqn: str, owner: str, *, public: bool = False, metadata: Any = None, **require: str
    ) -> None:
        archive = packages.package(fqn, "1.0.0", Author=owner, Require=require)
        sent.append(murano_api.upload(murano_url, owner, archive, public, metadata))

    yield send
    for package_id in sent:
        murano_api.delete(murano_url, package_id)


@pytest.fixture
def migrate(
    murano_url: str, image_admin: ImageClient, tmp_path: pathlib.Path
) -> Callable[[], migrating.Results]:
    """Migrates the packages of all projects as an administrator, with a role in each project."""
    session = image_admin.session()
    source = migrating.murano(murano_url, session)
    catalog = GlanceCatalog(session, project_id="admin", endpoint=image_admin.url)

    def scope(owner: str) -> GlanceRepository:
        return _repository(ImageClient(image_admin.url, f"admin:{owner}:member,reader"))

    return lambda: migrating.migrate(source, catalog, _repository(image_admin), scope, tmp_path)


def _repository(user: ImageClient) -> GlanceRepository:
    return GlanceRepository(user.session(), project_id=user.project, endpoint=user.url)


def _found(user: ImageClient, fqn: str, owner: str) -> StoredPackage:
    (found,) = (each for each in _repository(user).named([fqn]) if each.owner == owner)
    return found


def test_own_packages_are_migrated_with_their_fields_and_the_second_run_does_nothing(
    glance: Glance,
    images: ImageClient,
    murano_url: str,
    upload: Upload,
    tmp_path: pathlib.Path,
    package_name: str,
) -> None:
    command = OpenStack(tmp_path, glance.url, images.token)
    place = {"application_catalog_endpoint_override": murano_url}
    command.add_glance("test", glance.url, images.token, **place)
    name, other = package_name, f"{package_name}.other"
    # They require each other.
    upload(name, images.project, **{other: "1"})
    upload(other, images.project, metadata={"categories": ["Web"], "tags": ["mine"]}, **{name: "1"})

    dry = command.json("migrate", "--dry-run")
    assert {row["Result"] for row in dry} == {"would be migrated"}
    assert list(_repository(images).named([name, other])) == []
    rows = command.json("migrate")

    mine = {"Owner": images.project, "Visibility": "private", "Result": "migrated", "Reason": ""}
    assert rows == [{"Name": fqn, "Version": "1.0.0", **mine} for fqn in (name, other)]
    found = _found(images, other, images.project)
    assert (found.status, found.visibility) == ("active", "private")
    assert (found.fields["categories"], found.fields["tags"]) == (["Web"], ["mine"])
    again = command.ok("migrate")
    assert again.out.count("skipped, was migrated before") == 2
    assert "uploaded" not in again.err


def test_packages_of_all_projects_keep_owner_and_visibility(
    migrate: Callable[[], migrating.Results],
    image_admin: ImageClient,
    upload: Upload,
    project: str,
    package_name: str,
) -> None:
    first, second = f"a{project}", f"b{project}"
    shared, app = f"{package_name}.shared", f"{package_name}.app"

    # Public packages of two projects require each other.
    upload(shared, first, public=True, **{f"{shared}.base": "1"})
    upload(f"{shared}.base", second, public=True, **{shared: "1"})
    for owner in (first, second):
        upload(app, owner, **{shared: ">=1"})
    # A public package cannot use a private one.
    upload(f"{app}.public", first, public=True, **{app: "1"})

    results = migrate()

    result, reason = results.pop((f"{app}.public", first))
    assert (result, f"requires {app} in the range 1" in reason) == ("refused", True)
    assert set(results.values()) == {("migrated", "")}
    for (fqn, owner), visibility in (
        ((shared, first), "public"),
        ((f"{shared}.base", second), "public"),
        ((app, first), "private"),
        ((app, second), "private"),
    ):
        found = _found(image_admin, fqn, owner)
        assert (found.status, found.visibility) == ("active", visibility)
        assert found.fields["author"] == owner
    assert {result for result, _ in migrate().values()} == {
        "skipped, was migrated before",
        "refused",
    }
    assert list(_repository(image_admin).named([f"{app}.public"])) == []


def test_a_version_that_was_deleted_from_glance_is_refused(
    migrate: Callable[[], migrating.Results],
    glance: Glance,
    images: ImageClient,
    upload: Upload,
    package_name: str,
) -> None:
    upload(package_name, images.project)
    release = stored.package(packages.package(package_name), images.project)
    stored.store(glance, [release])
    assert images.delete(release.id).status_code == 204

    result, reason = migrate()[package_name, images.project]

    assert result == "refused"
    assert f"{package_name} 1.0.0 was deleted from Glance" in reason


def test_a_stopped_migration_goes_on(
    migrate: Callable[[], migrating.Results],
    image_admin: ImageClient,
    upload: Upload,
    project: str,
    package_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upload(package_name, project)
    upload(f"{package_name}.app", project, **{package_name: "1"})

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # As Ctrl-C between the uploads and the publications.
        patch.setattr(migration.publication, "publish", stop)
        with pytest.raises(KeyboardInterrupt):
            migrate()
    assert _found(image_admin, package_name, project).status == "drafted"

    assert set(migrate().values()) == {("migrated", "")}
    assert _found(image_admin, package_name, project).status == "active"
