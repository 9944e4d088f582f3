# SPDX-License-Identifier: Apache-2.0

"""The real murano-api with the filter of this project, over the real Glare.

The requests are those of the real python-muranoclient, and of murano-dashboard by it. There
is no package in Murano's own database.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import yaml
from muranoclient.common import exceptions
from muranoclient.v1.client import Client as MuranoClient

from tests import packages
from tests.functional import murano_api
from tests.functional.client import Client

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
_FORM = b"Version: 2\nForms: []\n"


@pytest.fixture(scope="module")
def murano_url(glare_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with murano_api.running(tmp_path_factory.mktemp("murano"), "--glare", glare_url) as found:
        yield found


MuranoOf = Callable[..., MuranoClient]


@pytest.fixture
def murano_of(murano_url: str) -> MuranoOf:
    """Clients of Murano for users of a project."""

    def make(project: str, roles: str = "member") -> MuranoClient:
        return MuranoClient(murano_url, token=f"user:{project}:{roles}", timeout=60)

    return make


@pytest.fixture
def murano(murano_of: MuranoOf, project: str) -> MuranoClient:
    return murano_of(project)


Publish = Callable[..., str]


@pytest.fixture
def publish(as_user: Callable[[str], Client], admin: Client, project: str, name: str) -> Publish:
    """Publish a package in Glare, and return its id."""

    def send(
        version: str = "1.0.0",
        owner: str = project,
        public: bool = False,
        files: dict[str, bytes] | None = None,
        fqn: str = name,
        **keys: Any,
    ) -> str:
        archive = packages.zipped(
            packages.files(packages.manifest(fqn, version, **keys)) | (files or {})
        )
        client = as_user(owner)
        found = client.publish(fqn, version, archive)
        if public:
            answer = admin.set(found["id"], "visibility", "public")
            assert answer.status_code == 200, answer.text
        return str(found["id"])

    return send


def _names(murano: MuranoClient, **filters: Any) -> list[tuple[str, str]]:
    """Names, behind the last dot, and versions."""
    found = murano.packages.filter(owned=True, **filters)
    return [(p.fully_qualified_name.rpartition(".")[2], p.version) for p in found]


def test_a_list_has_the_newest_version_of_each_package(
    murano: MuranoClient, publish: Publish, name: str
) -> None:
    for fqn, version in (("b", "1.9.0"), ("b", "1.10.0"), ("a", "2.0.0"), ("c", "1.0.0")):
        publish(version, fqn=f"{name}.{fqn}")

    newest = [("a", "2.0.0"), ("b", "1.10.0"), ("c", "1.0.0")]
    assert _names(murano) == newest
    assert _names(murano, limit=1) == newest
    assert _names(murano, sort_dir="desc", limit=2) == newest[::-1]
    assert sorted(_names(murano, order_by="created", limit=1)) == newest
    assert _names(murano, order_by="fqn", limit=1) == newest
    assert _names(murano, fqn=f"{name}.b") == [newest[1]]
    assert _names(murano, fqn="*") == []


def test_other_versions_are_listed_on_request(
    murano: MuranoClient, publish: Publish, name: str
) -> None:
    for version in ("1.2.0", "1.2.5", "1.10.0", "2.0.0"):
        publish(version)
    listed = functools.partial(_names, murano, fqn=name)

    def versions(text: str) -> list[str]:
        return [version for _, version in listed(version=text)]

    assert versions("*") == ["2.0.0", "1.10.0", "1.2.5", "1.2.0"]
    assert versions(">=1.2.5,<2") == ["1.10.0", "1.2.5"]
    # As in a manifest: clients delete what they find so.
    assert versions("1.2") == ["1.2.0"]
    assert versions("7") == []
    with pytest.raises(exceptions.HTTPBadRequest, match="x1"):
        versions("x1")


def test_a_package_has_murano_s_form(
    murano: MuranoClient, publish: Publish, project: str, name: str, glare: Client
) -> None:
    reference = publish(
        "1.2.0",
        Type="Application",
        Name="A Shop",
        Author="Somebody",
        Description="Sells.",
        Tags=["web", "shop"],
        Supplier={"Name": "Suppliers Inc."},
    )
    glare.set(reference, "categories", ["Web"])

    found = murano.packages.get(reference).to_dict()

    assert found.pop("created") <= found.pop("updated")
    assert {key: sorted(v) if key == "tags" else v for key, v in found.items()} == {
        "id": reference,
        "fully_qualified_name": name,
        "version": "1.2.0",
        "name": "A Shop",
        "type": "Application",
        "author": "Somebody",
        "supplier": {"Name": "Suppliers Inc."},
        "description": "Sells.",
        "enabled": True,
        "is_public": False,
        "owner_id": project,
        "tags": ["shop", "web"],
        "categories": ["Web"],
        "class_definitions": [f"{name}.Thing"],
    }


def test_packages_are_found_by_each_parameter(
    murano: MuranoClient, publish: Publish, glare: Client, name: str
) -> None:
    app = publish(
        fqn=f"{name}.app", Type="Application", Name="Shop", Tags=["web"], Description="Sells things"
    )
    library = publish(fqn=f"{name}.lib", Name="Tools", Tags=["db", "old"])
    glare.set(app, "categories", ["Big Data", "Web"])
    glare.set(library, "categories", ["Databases"])

    for filters in (
        {"type": "application"},
        {"category": "Web"},
        {"tag": "web"},
        {"class_name": f"{name}.app.Thing"},
        {"name": "Shop"},
        {"id": app},
        {"search": "SELLS"},
        {"search": "nothing;shop"},
        {"search": "big data"},
        {"catalog": True, "type": "Application", "order_by": "name"},
    ):
        assert _names(murano, **filters) == [("app", "1.0.0")], filters
    assert len(_names(murano, category=["Web", "Databases"])) == 2
    assert len(_names(murano, tag="in:web,db")) == 2
    assert _names(murano, search="things,tools", order_by="name") == [
        ("lib", "1.0.0"),
        ("app", "1.0.0"),
    ]
    assert _names(murano, category="Web", tag="db") == []


def test_each_project_sees_its_own_packages_and_public_ones(
    murano_of: MuranoOf, publish: Publish, project: str, name: str
) -> None:
    private = publish("2.0.0", owner="another")
    public = publish("1.0.0", owner="another", public=True)
    user, another, admin = murano_of(project), murano_of("another"), murano_of("third", "admin")

    def ids(client: MuranoClient, **filters: Any) -> list[str]:
        return [found.id for found in client.packages.filter(fqn=name, **filters)]

    assert ids(user) == ids(user, catalog=True) == [public]
    assert ids(another) == ids(another, owned=True) == [private]
    assert ids(user, owned=True) == []
    # An administrator edits every package, and deploys those of the own project.
    assert ids(admin) == [private]
    assert ids(admin, catalog=True) == [public]
    with pytest.raises(exceptions.HTTPNotFound):
        user.packages.get(private)
    with pytest.raises(exceptions.HTTPNotFound):
        user.packages.download(private)


def test_of_one_version_the_project_s_own_is_listed(
    murano: MuranoClient, publish: Publish, name: str
) -> None:
    publish("1.0.0", owner="another", public=True)
    own = publish("1.0.0", Author="own")
    later = publish("1.0.0", fqn=f"{name}.later")

    for order in ("fqn", "name"):
        found = murano.packages.filter(search="" if order == "fqn" else "thing", order_by=order)
        ours = [each.id for each in found if each.fully_qualified_name.startswith(name)]
        assert ours == [own, later]
    pages = murano.packages.filter(catalog=True, limit=1)
    assert [p.id for p in pages if p.fully_qualified_name.startswith(name)] == [own, later]


def test_yanked_and_deactivated_packages_are_disabled_and_drafts_unknown(
    murano: MuranoClient, publish: Publish, glare: Client, admin: Client, name: str
) -> None:
    first, second, third = (publish(version) for version in ("1.0.0", "2.0.0", "3.0.0"))
    assert glare.yank(second, "loses data").status_code == 200
    assert admin.set(third, "status", "deactivated").status_code == 200
    draft = glare.draft(name, "4.0.0", packages.package(name, "4.0.0"))

    assert _names(murano) == [("package", "1.0.0")]
    assert _names(murano, include_disabled=True) == [("package", "3.0.0")]
    found = murano.packages.filter(fqn=name, version="*", include_disabled=True)
    assert [(p.id, p.enabled) for p in found] == [(third, False), (second, False), (first, True)]
    with pytest.raises(exceptions.HTTPNotFound):
        murano.packages.get(draft)


def test_files_of_a_package(murano: MuranoClient, publish: Publish) -> None:
    files = {"logo.png": _PNG, "supplier_logo.png": _PNG + b"2", "UI/ui.yaml": _FORM}
    reference = publish(files=files)

    assert murano.packages.get_ui(reference) == yaml.safe_load(_FORM)
    assert murano.packages.get_logo(reference) == _PNG
    assert murano.packages.get_supplier_logo(reference) == _PNG + b"2"
    archive = murano.packages.download(reference)
    assert archive == packages.zipped(
        packages.files(packages.manifest(murano.packages.get(reference).fully_qualified_name))
        | files
    )


def test_a_package_without_a_form_has_none_so_that_clients_use_the_schema(
    murano: MuranoClient, publish: Publish
) -> None:
    reference = publish()
    for get in ("get_ui", "get_logo", "get_supplier_logo"):
        with pytest.raises(exceptions.HTTPNotFound):
            getattr(murano.packages, get)(reference)


def test_the_answers_have_murano_s_content_types(
    murano_url: str, project: str, publish: Publish
) -> None:
    reference = publish(files={"logo.png": _PNG, "UI/ui.yaml": _FORM})

    def header(path: str) -> tuple[int, str]:
        url = f"{murano_url}{murano_api.PACKAGES}{path}"
        headers = {"X-Auth-Token": f"user:{project}:member"}
        answer = requests.get(url, headers=headers, timeout=60)
        return answer.status_code, answer.headers["Content-Type"].partition(";")[0]

    assert header(f"/{reference}/ui") == (200, "text/plain")
    assert header(f"/{reference}/logo") == (200, "application/octet-stream")
    assert header(f"/{reference}/download") == (200, "application/octet-stream")
    assert header(f"/{reference}") == header("") == (200, "application/json")


@pytest.mark.parametrize("reference", ["unknown", "..", "%2e%2e", "a%2fb", "%00", "é"])
def test_unknown_ids_are_not_found(murano_url: str, project: str, reference: str) -> None:
    headers = {"X-Auth-Token": f"user:{project}:member"}
    request = requests.Request("GET", murano_url, headers=headers).prepare()
    # By itself requests would resolve the dots.
    request.url = f"{murano_url}{murano_api.PACKAGES}/{reference}"
    with requests.Session() as session:
        assert session.send(request, timeout=60).status_code == 404


@pytest.mark.parametrize("limit", ["0", "-1", "x"])
def test_an_invalid_limit_is_refused_as_by_murano(murano: MuranoClient, limit: str) -> None:
    with pytest.raises(exceptions.HTTPBadRequest):
        list(murano.packages.filter(limit=limit))


def test_an_unknown_marker_is_not_found(murano: MuranoClient) -> None:
    with pytest.raises(exceptions.HTTPNotFound):
        list(murano.packages.filter(marker="5a4b5c5e-0000-4000-8000-000000000000"))


def test_categories_are_those_of_murano_and_of_the_packages(
    murano: MuranoClient, publish: Publish, glare: Client, name: str
) -> None:
    reference = publish(Name="Shop")
    glare.set(reference, "categories", ["Web", f"Of {name}"])

    listed = {category.name: category for category in murano.categories.list()}
    other = listed[f"Of {name}"]
    assert "Databases" in listed
    assert other.package_count == 1
    assert murano.categories.get(other.id).packages == [
        {"id": reference, "name": "Shop", "fully_qualified_name": name}
    ]
    by_count = murano.categories.list(sort_keys="package_count,name", sort_dir="desc")
    assert sorted(c.name for c in by_count) == sorted(listed)
    assert by_count[0].package_count >= by_count[-1].package_count == 0
    first, second = murano.categories.list(limit=2)
    assert murano.categories.list(limit=1, marker=first.id)[0].id == second.id
    with pytest.raises(exceptions.HTTPNotFound):
        murano.categories.get("unknown")


def test_categories_are_created_and_deleted_unless_a_package_has_them(
    murano_of: MuranoOf, publish: Publish, glare: Client, project: str, name: str
) -> None:
    murano = murano_of(project, "admin")
    created = murano.categories.add({"name": name})
    reference = publish()
    glare.set(reference, "categories", [name])
    with pytest.raises(exceptions.HTTPForbidden):
        murano.categories.delete(created.id)

    glare.set(reference, "categories", [])
    murano.categories.delete(created.id)
    assert name not in [category.name for category in murano.categories.list()]


def test_packages_are_not_changed(murano: MuranoClient, publish: Publish) -> None:
    reference = publish()
    for change in (
        lambda: murano.packages.delete(reference),
        lambda: murano.packages.update(reference, {"enabled": False}),
    ):
        with pytest.raises(exceptions.HTTPForbidden):
            change()
    assert murano.packages.get(reference).enabled


def test_calls_outside_the_catalogue_reach_murano(murano: MuranoClient) -> None:
    assert murano.environments.list() == []
