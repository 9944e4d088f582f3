# SPDX-License-Identifier: Apache-2.0

"""Drafts, uploads and changes of packages in the real Glance, by the loader."""

import io
import random
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

from glare_murano import images as form
from glare_murano import wire
from glare_murano.package import Version
from glare_murano.resolver import PackageVersion
from glare_murano.selection import CHOICES, CONDITIONS, Selection
from loader import errors
from loader.catalogs.glance import GlanceRepository
from loader.references import PackageReference
from tests import packages
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance

V1 = Version("1.0.0")

pytestmark = pytest.mark.usefixtures("core_library")


@pytest.fixture
def repository(glance: Glance, project: str) -> GlanceRepository:
    auth = token_endpoint.Token(glance.url, f"user:{project}:member,reader")
    session = ksa_session.Session(auth=auth)
    return GlanceRepository(session, project_id=project, endpoint=glance.url)


@pytest.fixture
def fqn(project: str) -> str:
    return f"org.{project}.db"


def _listed(repository: GlanceRepository, **conditions: Any) -> list[str]:
    values = {name: [value] for name, value in conditions.items() if name in CONDITIONS}
    others: Any = {name: value for name, value in conditions.items() if name not in CONDITIONS}
    found = repository.packages(Selection({"status": CHOICES["status"], **values}, **others))
    return [f"{package} {package.status}" for package in found]


def test_a_draft_is_uploaded_and_does_not_count_yet(
    repository: GlanceRepository, images: ImageClient, project: str, fqn: str
) -> None:
    archive = packages.package(fqn, "1.0.0")

    draft = repository.create(fqn, V1)
    assert (str(draft), draft.status, draft.digest) == (f"{fqn} 1.0.0", "drafted", "")
    assert repository.create(fqn, V1) == draft
    done = repository.upload(draft, io.BytesIO(archive), len(archive))

    assert done.id == form.image_id(project, fqn, V1)
    assert images.show(done.id)["os_hidden"] is True
    assert (done.status, done.visibility, done.owner) == ("drafted", "private", project)
    assert done.size == len(archive)
    assert done.fields["class_definitions"] == [f"{fqn}.Thing"]
    assert b"".join(repository.download(done)) == archive
    for (found,) in (list(repository.named([fqn])), repository.find(PackageReference(fqn))):
        assert (found.id, found.status, found.digest) == (done.id, "drafted", done.digest)
        read = {name: value for name, value in done.fields.items() if value}
        assert read.items() <= found.fields.items()
    assert _listed(repository, name=f"{fqn}*") == [f"{fqn} 1.0.0 drafted"]


def test_the_archive_is_downloaded_once_for_all_files(
    glance: Glance, project: str, fqn: str
) -> None:
    logo = b"\x89PNG\r\n\x1a\n" + bytes(16)
    content = packages.content(fqn) | {
        "UI/ui.yaml": b"Version: 2\n",
        "logo.png": logo,
        "Resources/image.bin": random.Random(1).randbytes(2**20),
    }
    package = stored.package(packages.zipped(content), project)
    stored.store(glance, [package])
    counted = []

    def request(name: str) -> bytes:
        # murano-api makes a repository for each request.
        session = ksa_session.Session(auth=token_endpoint.Token(glance.url, token))
        of_request = GlanceRepository(session, project_id=project, endpoint=glance.url)
        data = b"".join(of_request.file(of_request.get(package.id), name))
        counted.append(of_request._client._counters)
        return data

    token = f"user:{project}:member,reader"
    assert [request("logo"), request("logo"), request("ui_definition")] == [
        logo,
        logo,
        content["UI/ui.yaml"],
    ]
    with pytest.raises(errors.NotFound, match="has no supplier_logo"):
        request("supplier_logo")
    assert counted[0].bytes == len(package.archive) > 2**20
    assert [each.bytes for each in counted[1:]] == [0, 0]
    assert counted[1].requests == counted[2].requests < counted[0].requests
    # Whoever does not see the package does not get its files.
    token = "user:stranger:member,reader"
    with pytest.raises(errors.NotFound, match="was not found"):
        request("logo")


def test_many_subclasses_are_searched_once(
    glance: Glance, repository: GlanceRepository, project: str, fqn: str
) -> None:
    names = [f"{fqn}.Class{number}" for number in range(150)]
    classes = {name: f"{name}.yaml" for name in (f"{fqn}.Base", *names)}
    content = packages.content(fqn, Classes=classes)
    content["Classes/" + classes[f"{fqn}.Base"]] = f"Name: {fqn}.Base\n".encode()
    content |= {
        f"Classes/{name}.yaml": f"Name: {name}\nExtends: {fqn}.Base\n".encode() for name in names
    }
    stored.store(glance, [stored.package(packages.zipped(content), project)])

    (found,) = repository.packages(Selection(subclass_of=f"{fqn}.Base"))
    assert found.key == PackageVersion(fqn, V1)
    assert repository._client._counters.requests == 1


def test_a_refusal_has_its_reason_and_the_draft_can_be_uploaded_again(
    repository: GlanceRepository, fqn: str
) -> None:
    draft = repository.create(fqn, V1)
    wrong = packages.package(fqn, "1.1.0")
    with pytest.raises(errors.CatalogError, match=rf"refused {fqn} 1\.0\.0: .*1\.1\.0"):
        repository.upload(draft, io.BytesIO(wrong), len(wrong))

    archive = packages.package(fqn, "1.0.0")
    assert repository.upload(draft, io.BytesIO(archive), len(archive)).size == len(archive)


@pytest.mark.parametrize("missing", [0, 30], ids=["whole", "in part"])
def test_an_upload_that_was_interrupted_goes_on(
    repository: GlanceRepository, images: ImageClient, fqn: str, missing: int
) -> None:
    archive = packages.package(fqn, "1.0.0")
    draft = repository.create(fqn, V1)
    staged = images.put(draft.id, archive[: len(archive) - missing])
    assert staged.status_code == 204, staged.text

    assert repository.upload(draft, io.BytesIO(archive), len(archive)).size == len(archive)


def test_other_files_of_a_version_are_refused(repository: GlanceRepository, fqn: str) -> None:
    first, other = (packages.package(fqn, "1.0.0", Author=name) for name in ("A", "B"))
    draft = repository.create(fqn, V1)
    repository.upload(draft, io.BytesIO(first), len(first))

    with pytest.raises(errors.CatalogError, match="publish these files as another version"):
        repository.upload(draft, io.BytesIO(other), len(other))


def test_a_deleted_release_cannot_be_created_again(
    glance: Glance, repository: GlanceRepository, project: str, fqn: str
) -> None:
    stored.store(glance, [stored.package(packages.package(fqn, "1.0.0"), project)])
    (release,) = repository.find(PackageReference(fqn))
    repository.delete(release)

    with pytest.raises(errors.CatalogError, match=rf"{fqn} 1\.0\.0 was deleted .* keeps its id"):
        repository.create(fqn, V1)


def test_a_deleted_draft_can_be_created_and_uploaded_again(
    repository: GlanceRepository, fqn: str
) -> None:
    for author in ("A", "B"):
        archive = packages.package(fqn, "1.0.0", Author=author)
        done = repository.upload(repository.create(fqn, V1), io.BytesIO(archive), len(archive))
        assert done.fields["author"] == author
        repository.delete(done)

    assert repository.blocked([PackageVersion(fqn, V1)]) == {}


def test_deleted_versions_are_found_in_several_requests(
    glance: Glance,
    repository: GlanceRepository,
    project: str,
    fqn: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions = [PackageVersion(fqn, Version(f"1.{number}.0")) for number in range(5)]
    archives = [packages.package(fqn, str(package.version)) for package in versions[:3]]
    stored.store(glance, [stored.package(archive, project) for archive in archives])
    for package in list(repository.named([fqn])):
        repository.delete(package)

    monkeypatch.setattr(wire, "MAX_PUBLICATIONS", 2)

    assert list(repository.blocked(versions)) == versions[:3]


def test_what_the_owner_may_change_is_changed(
    glance: Glance, repository: GlanceRepository, project: str, fqn: str
) -> None:
    archive = packages.package(fqn, "1.0.0", Tags=["fast"], Description="A database.")
    stored.store(glance, [stored.package(archive, project)])
    (package,) = repository.find(PackageReference(fqn))
    assert (package.status, package.fields["tags"]) == ("active", ["fast"])

    changed = repository.change(
        package, display_name="Base", description="", tags=[], categories=["Web"]
    )

    assert repository.get(package.id) == changed
    names = ("display_name", "description", "tags", "categories", "author")
    assert [changed.fields[name] for name in names] == ["Base", "", [], ["Web"], "Somebody"]
    assert changed.digest == package.digest


def test_packages_are_found_by_their_fields(
    glance: Glance, repository: GlanceRepository, project: str, fqn: str
) -> None:
    yanked = {form.YANKED: "loses data"}
    stored.store(
        glance,
        [
            stored.package(packages.package(fqn, "1.2.0"), project),
            stored.package(packages.package(fqn, "1.10.0", Tags=["fast"]), project),
            stored.package(packages.package(fqn, "2.0.0"), project, properties=yanked),
        ],
    )
    pattern = f"{fqn}*"

    assert _listed(repository, name=pattern, yanked=False, distinct="name") == [
        f"{fqn} 1.10.0 active"
    ]
    assert _listed(repository, name=fqn, yanked=True) == [f"{fqn} 2.0.0 active"]
    assert _listed(repository, tags="fast") == [f"{fqn} 1.10.0 active"]
    assert _listed(repository, class_definitions=f"{fqn}.Thing") == [
        f"{fqn} {version} active" for version in ("2.0.0", "1.10.0", "1.2.0")
    ]
    assert _listed(repository, requirements="org.nothing") == []


def test_a_package_of_another_project_is_not_found(
    glance: Glance, repository: GlanceRepository, fqn: str
) -> None:
    other = stored.package(packages.package(fqn, "1.0.0"), "another")
    stored.store(glance, [other])

    with pytest.raises(errors.NotFound, match=f"package {other.id} was not found in Glance"):
        repository.get(other.id)
    with pytest.raises(errors.NotFound, match="check the name and the range"):
        repository.find(PackageReference(fqn))


def test_a_package_is_deactivated_and_reactivated(
    glance: Glance, repository: GlanceRepository, project: str, fqn: str
) -> None:
    stored.store(glance, [stored.package(packages.package(fqn, "1.0.0"), project)])
    (package,) = repository.find(PackageReference(fqn))

    assert repository.change(package, status="deactivated").status == "deactivated"
    assert repository.change(package, status="active").status == "active"
