# SPDX-License-Identifier: Apache-2.0

"""Packages in the real Glance count once they are published: all of a request, or none."""

import dataclasses
import pathlib
import uuid
from collections.abc import Callable, Iterator

import pytest
import requests

from glare_murano import images as form
from glare_murano import wire
from tests import packages
from tests.functional.client import message, refusal
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

pytestmark = pytest.mark.usefixtures("core_library")

Clients = Callable[..., ImageClient]

# As the configuration of the tests' Glance has them.
PLUGIN = "org.test.plugin"
MAIL = "org.test.plugin.Mail"

OVERRIDE = {"X-Murano-Override-Checks": "true"}


def _found(client: ImageClient, fqn: str) -> list[str]:
    """The versions that a range takes: one, or none."""
    answer = client.resolve(requirements={fqn: "*"})
    assert answer.status_code == 200, answer.text
    return [each["version"] for each in answer.json()["releases"] if each["name"] == fqn]


def _changed(answer: requests.Response) -> list[tuple[str, str, list[str]]]:
    assert answer.status_code == 200, answer.text
    return [(a["status"], a["visibility"], a["actions"]) for a in answer.json()["artifacts"]]


def test_a_package_counts_from_its_publication(images: ImageClient, package_name: str) -> None:
    draft = images.draft(package_name)
    before = images.show(draft)

    checked = images.publications(draft, dry_run=True)
    assert _found(images, package_name) == []
    assert images.show(draft) == before
    published = images.publications(draft)

    assert checked.json() == published.json()
    assert _changed(published) == [("active", "private", ["activate"])]
    assert _found(images, package_name) == ["1.0.0"]
    found = images.show(draft)
    assert form.is_release(found)
    assert found["updated_at"] >= before["updated_at"]
    assert _changed(images.publications(draft)) == [("active", "private", [])]


def test_a_base_class_is_in_a_required_package(images: ImageClient, package_name: str) -> None:
    library, app = f"{package_name}.library", f"{package_name}.app"
    ids = [images.draft(library)]
    for number, require in enumerate(({}, {library: "1"})):
        name = f"{app}{number}"
        data = packages.extending(name, f"{library}.Thing", Require=require)
        ids.append(images.publish_draft(name, "1.0.0", data)["id"])

    assert images.publications(ids[0], ids[2]).status_code == 200
    refused = refusal(images.publications(ids[1]), 409)
    assert refused == (
        f"no visible package that {app}0 1.0.0 requires has these base classes: {library}.Thing "
        f"(of {app}0.Thing); add their packages to Require [requirement-missing]"
    )


def test_packages_of_a_cycle_are_published_together(
    images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    names = [f"{package_name}.{letter}" for letter in "abc"]
    ids = [
        images.draft(name, **{required: "1"})
        for name, required in zip(names, [*names[1:], names[0]], strict=True)
    ]

    refused = image_admin.publications(*ids[:2], visibility="public")
    published = image_admin.publications(*ids, visibility="public")

    for line, rule in zip(refusal(refused, 409).splitlines(), ("missing", "private"), strict=True):
        assert f"{names[2]} in the range 1 (drafts: 1.0.0); a draft counts only in the" in line
        assert line.endswith(f"[requirement-{rule}]")
    assert _changed(published) == [("active", "public", ["activate", "publish"])] * 3
    assert _found(image_admin, names[0]) == ["1.0.0"]


def test_all_problems_are_named_and_nothing_is_changed(
    images: ImageClient, images_of: Clients, package_name: str
) -> None:
    good = images.draft(package_name)
    lone = images.draft(f"{package_name}.lone", **{f"{package_name}.missing": ">=2"})
    empty = images.create(f"{package_name}.empty").json()["id"]
    other = images_of(f"{images.project}-other").draft(f"{package_name}.other")

    refused = refusal(images.publications(good, lone, empty, other), 404)

    assert refused.splitlines() == [
        f"Image with id={other} not found.",
        f"{package_name}.empty ({empty}) has no archive yet; upload it first",
        f"no visible package satisfies these requirements of {package_name}.lone 1.0.0: "
        f"{package_name}.missing in the range >=2 (missing, or not visible); publish them first, "
        "or change the ranges; if engines provide one as an extension plug-in, the operator "
        "names it in the option provided_packages [requirement-missing]",
    ]
    assert form.PUBLISHED not in images.show(good)


def test_the_names_of_a_plugin_are_refused(
    images: ImageClient, image_admin: ImageClient, glance: service.Glance, package_name: str
) -> None:
    named = refusal(images.create(PLUGIN, "2.0.0"), 403)
    assert f"FullName: {PLUGIN} is the name of an extension plug-in" in named
    archive = packages.package(package_name, Classes={MAIL: "Mail.yaml"})
    defining = images.publish_draft(package_name, "1.0.0", archive)
    assert f"class {MAIL} is defined by an extension plug-in" in defining[form.REFUSAL]

    # Published before the option was set.
    archive = packages.package(package_name, "1.1.0", Classes={MAIL: "Mail.yaml"})
    old = stored.package(archive, images.project)
    stored.store(glance, [old])
    refused = refusal(image_admin.publications(old.id, visibility="public"), 403)
    assert f"{package_name}: Classes: class {MAIL}" in refused
    assert "[plugin-name]" in refused


def test_policies_decide_who_publishes(
    images: ImageClient, images_of: Clients, image_admin: ImageClient, package_name: str
) -> None:
    draft = images.draft(package_name)
    reader = images_of(images.project, "reader")

    assert reader.publications(draft).status_code == 403
    refused = refusal(images.publications(draft, visibility="public"), 403)
    assert refused == f"{package_name} 1.0.0: the policy publicize_image forbids it"
    assert _changed(image_admin.publications(draft, visibility="public"))[0][1] == "public"

    stranger = refusal(images_of("stranger").publications(draft), 403)
    assert stranger == f"{package_name} 1.0.0 belongs to another project"


def test_one_package_of_a_name_and_version_is_public(
    images: ImageClient, images_of: Clients, image_admin: ImageClient, package_name: str
) -> None:
    ids = [client.draft(package_name) for client in (images, images_of(f"{images.project}-b"))]
    for id_ in ids:
        assert _changed(image_admin.publications(id_))[0][0] == "active"
    assert image_admin.publications(ids[0], visibility="public").ok

    for refused in (
        image_admin.publications(ids[1], visibility="public"),
        image_admin.set(ids[1], "visibility", "public"),
    ):
        assert refused.status_code == 409
        assert f"another {package_name} 1.0.0 is public already" in refused.text
    back = image_admin.publications(ids[0])
    assert message(back) == f"{package_name} 1.0.0 is public, and cannot become private again"


def test_a_draft_that_was_deactivated_is_not_published(
    images: ImageClient, package_name: str
) -> None:
    draft = images.draft(package_name)
    assert images.request("POST", f"/v2/images/{draft}/actions/deactivate").ok

    assert "is deactivated; publish another version" in refusal(images.publications(draft), 409)


def test_a_draft_whose_row_was_changed_in_the_database_is_not_published(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    data = packages.package(package_name, Require={"io.murano": "*"})
    changed = {"name": "org.another"}
    draft = stored.package(data, images.project, changed=changed, properties={form.PUBLISHED: ""})
    stored.store(glance, [draft])

    assert "its name or its project has changed" in refusal(images.publications(draft.id), 409)


def test_data_that_no_import_has_read_is_not_published(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    image_id = images.create(package_name).json()["id"]
    stored.activate(glance, image_id, 1)

    refused = images.publications(image_id)

    assert refused.status_code == 409
    assert form.PUBLISHED not in images.show(image_id)


def test_an_image_of_another_kind_is_not_published(images: ImageClient) -> None:
    body = {"name": "a server", "container_format": "bare", "disk_format": "raw"}
    machine = images.request("POST", "/v2/images", json=body).json()["id"]
    assert images.put(machine, b"data", "file").ok

    assert images.publications(machine).status_code == 404


def test_an_administrator_overrides_the_checks(
    images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    draft = images.draft(package_name, **{f"{package_name}.missing": "1"})
    body = {"ids": [draft], "visibility": "private"}

    answers = [
        client.request("POST", "/murano/v1/publications", json=body, headers=OVERRIDE)
        for client in (images, image_admin)
    ]

    assert [answer.status_code for answer in answers] == [403, 200]


def test_an_administrator_overrides_the_checks_of_glances_requests(
    glance: service.Glance, images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    require = {"io.murano": "*"}
    required = stored.package(packages.package(package_name, Require=require), images.project)
    requiring = packages.package(f"{package_name}.requiring", Require={package_name: "1"})
    stored.store(glance, [required, stored.package(requiring, images.project)])
    path = f"/v2/images/{required.id}"

    assert image_admin.delete(required.id).status_code == 409
    assert images.request("DELETE", path, headers=OVERRIDE).status_code == 403
    assert image_admin.request("DELETE", path, headers=OVERRIDE).status_code == 204


def test_the_last_package_for_a_requirement_stays(images: ImageClient, package_name: str) -> None:
    required, requiring = f"{package_name}.required", f"{package_name}.requiring"
    ids = [images.draft(required), images.draft(requiring, **{required: "1"})]
    assert images.publications(*ids).ok
    action = f"/v2/images/{ids[0]}/actions"

    for refused in (
        images.delete(ids[0]),
        images.request("POST", f"{action}/deactivate"),
    ):
        assert refused.status_code == 409
        assert f"{requiring} 1.0.0 ({required} 1)" in refused.text
        assert "[requirement-last]" in refused.text
    assert _found(images, requiring) == ["1.0.0"]

    # What is not the catalogue's is Glance's own.
    assert images.set(ids[0], "description", "", "add").ok
    assert images.delete(ids[1]).status_code == 204
    assert images.request("POST", f"{action}/deactivate").status_code == 204
    assert _found(images, required) == []
    assert images.request("POST", f"{action}/reactivate").status_code == 204
    assert _found(images, required) == ["1.0.0"]
    assert images.delete(ids[0]).status_code == 204


_UNPUBLISHED = {"op": "replace", "path": "/visibility", "value": "private"}


@pytest.mark.parametrize(
    ("method", "suffix", "changed"),
    [
        ("DELETE", "%0A", {}),
        ("POST", "/actions/deactivate%0A", {}),
        ("POST", "?_method=DELETE", {}),
        ("GET", "?a=1&_method=delete", {}),
        ("GET", "/actions/deactivate?_method=POST", {}),
        ("DELETE", "?_method=", {}),
        ("POST", "?_method=PATCH", _UNPUBLISHED),
        ("PATCH", "%0A", _UNPUBLISHED),
        ("PATCH", "", {**_UNPUBLISHED, "path": "/ visibility"}),
        ("PATCH", "", {**_UNPUBLISHED, "path": "//visibility\u3000"}),
        ("PATCH", "", {**_UNPUBLISHED, "replace": "/name"}),
    ],
)
def test_requests_are_checked_in_each_form_that_glance_takes(
    glance: service.Glance,
    image_manager: ImageClient,
    images_of: Clients,
    package_name: str,
    method: str,
    suffix: str,
    changed: dict[str, str],
) -> None:
    other = images_of(f"{image_manager.project}-other")
    data = packages.package(package_name, Require={"io.murano": "*"})
    required = stored.package(data, image_manager.project, "public")
    requiring = packages.package(f"{package_name}.requiring", Require={package_name: "1"})
    owners = (image_manager.project, other.project)
    stored.store(glance, [required, *(stored.package(requiring, owner) for owner in owners)])
    headers = {"Content-Type": "application/openstack-images-v2.1-json-patch"}

    refused = image_manager.request(
        method,
        f"/v2/images/{required.id}{suffix}",
        json=[changed] if changed else None,
        headers=headers if changed else {},
    )

    assert refused.status_code == 409, refused.text
    assert "[requirement-last]" in refused.text


def test_a_shared_package_stays_for_its_members_alone(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    member, stranger = f"{images.project}-member", f"{images.project}-stranger"
    data = packages.package(package_name, Require={"io.murano": "*"})
    shared = {"visibility": "shared", "members": {member: "accepted"}}
    package = stored.package(data, images.project, **shared)
    requiring = packages.package(f"{package_name}.requiring", Require={package_name: "1"})
    stored.store(glance, [package, stored.package(requiring, stranger)])

    # A stranger's package lacks its requirement already.
    assert images.yank(package.id, "old").headers.get("Warning") is None
    assert images.yank(package.id, "").ok
    stored.store(glance, [stored.package(requiring, member)])

    refused = refusal(images.delete(package.id), 409)
    assert "requirements of active packages: packages of other projects" in refused


@dataclasses.dataclass(frozen=True)
class Shared:
    """A package that two projects have accepted; a package of the first one requires it."""

    id: str
    owner: ImageClient
    members: tuple[ImageClient, ImageClient]
    requiring: str

    def path(self, member: ImageClient) -> str:
        return f"/v2/images/{self.id}/members/{member.project}"


@pytest.fixture
def shared(glance: service.Glance, images_of: Clients, package_name: str) -> Shared:
    owner, *members = (images_of(f"{package_name}-{name}") for name in ("owner", "one", "two"))
    accepted = {member.project: "accepted" for member in members}
    data = packages.package(package_name, Require={"io.murano": "*"})
    package = stored.package(data, owner.project, "shared", members=accepted)
    data = packages.package(f"{package_name}.requiring", Require={package_name: "1"})
    requiring = stored.package(data, members[0].project)
    stored.store(glance, [package, requiring])
    return Shared(package.id, owner, (members[0], members[1]), requiring.id)


def _is_kept(refused: requests.Response, dependents: str) -> bool:
    """Whether a request is refused since packages depend on a package alone."""
    expected = f"satisfies requirements of active packages: {dependents};"
    return refused.status_code == 409 and expected in refused.text


@pytest.mark.parametrize("visibility", ["private", "community"])
def test_a_package_stays_shared_while_members_depend_on_it(shared: Shared, visibility: str) -> None:
    refused = shared.owner.set(shared.id, "visibility", visibility)

    assert _is_kept(refused, "packages of other projects"), refused.text
    assert shared.members[0].delete(shared.requiring).status_code == 204
    assert shared.owner.set(shared.id, "visibility", visibility).status_code == 200


@pytest.mark.parametrize("suffix", ["", "?_method=DELETE"])
def test_a_member_stays_while_its_packages_depend_on_the_shared_one(
    shared: Shared, suffix: str
) -> None:
    one, two = shared.members
    method = "POST" if "_method" in suffix else "DELETE"

    refused = shared.owner.request(method, shared.path(one) + suffix)

    assert _is_kept(refused, "packages of other projects"), refused.text
    # Glance refuses a stranger itself, and the answer does not show what depends on the package.
    assert two.request("DELETE", shared.path(one)).status_code == 404
    assert shared.owner.request("DELETE", shared.path(two)).status_code == 204
    assert one.delete(shared.requiring).status_code == 204
    assert shared.owner.request("DELETE", shared.path(one)).status_code == 204


@pytest.mark.parametrize("status", ["rejected", "pending"])
def test_a_member_keeps_a_package_that_its_own_packages_need(
    shared: Shared, package_name: str, status: str
) -> None:
    one, two = shared.members

    refused = one.request("PUT", shared.path(one), json={"status": status})

    requiring = f"{package_name}.requiring 1.0.0 ({package_name} 1)"
    assert _is_kept(refused, requiring), refused.text
    assert two.request("PUT", shared.path(one), json={"status": status}).status_code == 404
    assert one.request("PUT", shared.path(one), json={"status": "accepted"}).status_code == 200
    assert one.request("PUT", shared.path(one), json={"status": "none"}).status_code == 400
    assert two.request("PUT", shared.path(two), json={"status": status}).status_code == 200


def test_a_change_of_a_member_by_another_method_is_checked(shared: Shared) -> None:
    one = shared.members[0]
    path, change = f"{shared.path(one)}?_method=put", {"status": "rejected"}

    assert "[requirement-last]" in refusal(one.request("POST", path, json=change), 409)
    assert one.delete(shared.requiring).status_code == 204
    assert one.request("POST", path, json=change).status_code == 200


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "application/x-www-form-urlencoded;a=b"]
)
def test_a_form_that_glance_reads_as_another_method_is_refused(
    shared: Shared, content_type: str
) -> None:
    """The body is a form with the field ``_method``, and JSON as well."""
    one = shared.members[0]
    headers = {"Content-Type": content_type}
    data = b'{"status": "rejected", "form": "&_method=put&"}'

    refusal(one.request("POST", shared.path(one), data=data, headers=headers), 415)
    assert one.request("GET", shared.path(one)).json()["status"] != "rejected"


def test_a_public_package_becomes_shared_with_the_projects_that_need_it(
    glance: service.Glance, images_of: Clients, package_name: str
) -> None:
    owner = images_of(f"{package_name}-owner", "manager,member,reader")
    one, two = (images_of(f"{package_name}-{name}") for name in ("one", "two"))
    data = packages.package(package_name, Require={"io.murano": "*"})
    package = stored.package(data, owner.project, "public", members={one.project: "accepted"})
    data = packages.package(f"{package_name}.requiring", Require={package_name: "1"})
    requiring = [stored.package(data, each.project) for each in (one, two)]
    stored.store(glance, [package, *requiring])

    refused = owner.set(package.id, "visibility", "shared")

    assert _is_kept(refused, "packages of other projects"), refused.text
    assert two.delete(requiring[1].id).status_code == 204
    assert owner.set(package.id, "visibility", "shared").status_code == 200


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    """A Glance whose members may delete and deactivate images, but not change them.

    By the policy, administrators and auditors alone are shown the images of other projects, and
    guests may not delete images.
    """

    def restrict(etc: pathlib.Path) -> None:
        (etc / "policy.d").mkdir()
        rules = (
            '"modify_image": "rule:context_is_admin"\n'
            '"get_image": "rule:context_is_admin or role:auditor or project_id:%(project_id)s"\n'
            '"delete_image": "role:auditor or project_id:%(project_id)s and not role:guest"\n'
        )
        (etc / "policy.d" / "restricted.yaml").write_text(rules)

    folder = tmp_path_factory.mktemp("restricted")
    with service.running(folder, change=restrict) as running:
        yield running


def test_a_request_is_checked_by_the_policy_of_its_own(
    restricted: service.Glance, package_name: str
) -> None:
    client = ImageClient(restricted.url, f"user:{package_name}:member,reader")
    names = [f"{package_name}.{name}" for name in ("required", "requiring", "lone")]
    required, requiring, lone = (
        stored.package(packages.package(name, Require={fqn: "1"}), client.project, **others)
        for name, fqn, others in (
            (names[0], names[0], {}),
            (names[1], names[0], {}),
            (names[2], f"{package_name}.missing", {"changed": {"status": "deactivated"}}),
        )
    )
    stored.store(restricted, [required, requiring, lone])
    assert client.set(required.id, "os_distro", "debian", "add").status_code == 403

    for refused in (
        client.delete(required.id),
        client.request("POST", f"/v2/images/{required.id}/actions/deactivate"),
    ):
        assert _is_kept(refused, f"{names[1]} 1.0.0 ({names[0]} 1)"), refused.text
    refused = refusal(client.request("POST", f"/v2/images/{lone.id}/actions/reactivate"), 409)
    assert "[requirement-missing]" in refused
    assert client.delete(requiring.id).status_code == 204
    assert client.delete(required.id).status_code == 204


def test_packages_that_the_policy_hides_are_not_listed(
    restricted: service.Glance, package_name: str
) -> None:
    client = ImageClient(restricted.url, f"user:{package_name}:member,reader")
    admin = ImageClient(restricted.url, "user:admin:admin,member,reader")
    names = [f"{package_name}.{letter}" for letter in "abcde"]
    own = {names[0], names[4]}
    stored.store(
        restricted,
        [
            stored.package(packages.package(name), client.project if name in own else "other", v)
            for name, v in zip(names, ["private", *["public"] * 3, "private"], strict=True)
        ],
    )
    query = [("name", f"{package_name}.*"), ("limit", "1")]

    answer = client.read(wire.PACKAGES_PATH, query).json()
    (first,), following = answer["packages"], answer["next"]
    answer = client.read(following).json()

    # Neither the packages nor the markers show what is hidden.
    assert [first["name"], *(each["name"] for each in answer["packages"])] == sorted(own)
    assert not [name for name in names[1:4] if name in following]
    assert "next" not in answer
    assert len(admin.read(wire.PACKAGES_PATH, query[:1]).json()["packages"]) == len(names)


@pytest.mark.parametrize("request_of", ["publications", "yank"])
def test_a_package_that_the_policy_hides_is_as_if_missing(
    restricted: service.Glance, package_name: str, request_of: str
) -> None:
    client = ImageClient(restricted.url, f"user:{package_name}:member,reader")
    hidden = stored.package(packages.package(package_name), "other", "public")
    stored.store(restricted, [hidden])
    missing = str(uuid.uuid4())

    def refused(image_id: str) -> str:
        if request_of == "yank":
            return refusal(client.yank(image_id, "loses data"), 404)
        return refusal(client.publications(image_id), 404)

    assert refused(hidden.id) == refused(missing).replace(missing, hidden.id)


@pytest.mark.parametrize(
    ("other", "role"), [("", "guest"), (".other", "auditor"), (".other", "member")]
)
def test_a_deletion_that_glance_refuses_does_not_name_what_requires_the_package(
    restricted: service.Glance, package_name: str, other: str, role: str
) -> None:
    fqn = f"{package_name}.required"
    required, requiring = (
        stored.package(packages.package(name, Require={fqn: "1"}), package_name, "public")
        for name in (fqn, f"{package_name}.requiring")
    )
    stored.store(restricted, [required, requiring])
    client = ImageClient(restricted.url, f"user:{package_name}{other}:{role},member,reader")

    refused = client.delete(required.id)

    assert refused.status_code in (403, 404)
    assert "requiring" not in refused.text


@pytest.mark.parametrize("other", ["0", "zzz"])
def test_a_package_belongs_to_its_own_project_alone(
    restricted: service.Glance, package_name: str, other: str
) -> None:
    """Projects whose ids come before and after that of the owner are others as well."""
    private = stored.package(packages.package(package_name), package_name)
    public = stored.package(packages.package(f"{package_name}.x"), package_name, "public")
    stored.store(restricted, [private, public])
    # The policy would show the package.
    client = ImageClient(restricted.url, f"user:{other}:auditor,manager,member,reader")

    assert f"id={private.id} not found" in refusal(client.yank(private.id, "loses data"), 404)
    assert "belongs to another project" in refusal(client.yank(public.id, "loses data"), 403)


def test_a_package_becomes_public_by_glance_if_its_requirements_are(
    images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    required = images.draft(f"{package_name}.required")
    assert images.publications(required).ok
    requiring = images.draft(package_name, **{f"{package_name}.required": "1"})
    assert images.publications(requiring).ok

    assert images.set(requiring, "visibility", "public").status_code == 403
    refused = refusal(image_admin.set(requiring, "visibility", "public"), 409)
    assert "no public package satisfies" in refused
    assert image_admin.set(required, "visibility", "public").ok
    assert image_admin.set(requiring, "visibility", "public").ok


@pytest.mark.parametrize("visibility", ["private", "shared", "community"])
def test_a_package_stays_public_while_others_depend_on_it(
    image_manager: ImageClient,
    images_of: Clients,
    image_admin: ImageClient,
    package_name: str,
    visibility: str,
) -> None:
    required = image_manager.draft(package_name)
    assert image_admin.publications(required, visibility="public").ok
    own = image_manager.draft(f"{package_name}.own", **{package_name: "1"})
    assert image_manager.publications(own).ok
    other = images_of(f"{image_manager.project}-other")
    requiring = other.draft(f"{package_name}.other", **{package_name: "1"})
    assert other.publications(requiring).ok

    refused = refusal(image_manager.set(required, "visibility", visibility), 409)
    assert "packages of other projects" in refused
    assert "[requirement-last]" in refused
    assert _found(other, f"{package_name}.other") == ["1.0.0"]
    assert image_admin.set(required, "visibility", "public").status_code == 200
    # The own packages can still use it.
    assert other.delete(requiring).status_code == 204
    assert image_manager.set(required, "visibility", visibility).status_code == 200


def test_a_public_image_is_checked_when_it_begins_to_count(
    images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    required = images.draft(f"{package_name}.required")
    assert images.publications(required).ok
    requiring = images.draft(package_name, **{f"{package_name}.required": "1"})
    assert image_admin.set(requiring, "visibility", "public").ok

    assert "no public package satisfies" in refusal(image_admin.publications(requiring), 409)
    published = image_admin.publications(required, requiring, visibility="public")
    assert [each[2] for each in _changed(published)] == [["publish"], ["activate"]]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/murano/v1/publications", b"{", 400),
        ("POST", "/murano/v1/publications", b'{"ids": [], "visibility": "private"}', 400),
        ("POST", "/murano/v1/publications", b'{"ids": "' + b"x" * 2**20 + b'"}', 413),
        ("GET", "/murano/v1/publications", None, 405),
        ("GET", "/murano/v1/nothing", None, 404),
        ("GET", "/murano/v1/%ff", None, 400),
        ("POST", "/murano/v1/dependencies", b'{"requirements": {"a": "no range"}}', 400),
        ("GET", "/murano/v1/subclasses?class=a..b", None, 400),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_form(
    images: ImageClient, method: str, path: str, body: bytes | None, status: int
) -> None:
    headers = {"Content-Type": "application/json"} if body else {}

    refused = images.request(method, path, data=body, headers=headers)

    assert refused.status_code == status, refused.text
    assert refused.json()["code"] == status
    assert message(refused)


def test_versions_need_no_token_and_packages_do(images: ImageClient) -> None:
    url = f"{images.url}/murano"

    found = requests.get(url, timeout=60).json()["versions"]
    assert found[0]["links"][0]["href"] == f"{url}/v1/"
    version = requests.get(f"{url}/v1/", timeout=60).json()["version"]
    assert version["id"] == "v1"
    assert version["checks"] == {
        "check_forms": "warn",
        "check_public_requirements": "enforce",
        "check_requirements": "enforce",
    }
    refused = requests.post(f"{url}/v1/dependencies", json={}, timeout=60)
    assert (refused.status_code, refused.json()["code"]) == (401, 401)


def test_a_shared_package_of_the_project_does_not_keep_another_public(
    glance: service.Glance, images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    """The project itself still sees what the shared package requires."""
    db = stored.package(packages.package(f"{package_name}.db"), images.project, "public")
    requiring = packages.package(package_name, Require={f"{package_name}.db": "1"})
    wiki = stored.package(requiring, images.project, "shared")
    stored.store(glance, [db, wiki])

    assert image_admin.set(db.id, "visibility", "private").status_code == 200
