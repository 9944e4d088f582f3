# SPDX-License-Identifier: Apache-2.0

"""The real murano-api with the filter of this project, over the real Glare.

The requests are those of the real python-muranoclient, and of murano-dashboard by it. There
is no package in Murano's own database.
"""

import concurrent.futures
import functools
import io
import json
import logging
import pathlib
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import yaml
from muranoclient.common import exceptions
from muranoclient.osc.v1 import category as osc_category
from muranoclient.osc.v1 import package as osc_package
from muranoclient.shell import MuranoShell
from muranoclient.v1.client import Client as MuranoClient

from tests import packages, processes, web
from tests.functional import murano_api
from tests.functional.client import Client
from tests.hostile import costly

pytestmark = pytest.mark.programs

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
_FORM = b"""\
Version: 2
Application:
  ?:
    type: org.test.Thing
Forms:
  - page:
      fields:
        - {name: title, type: string, label: Title}
"""


@pytest.fixture(scope="module")
def murano_url(glare_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with murano_api.running(tmp_path_factory.mktemp("murano"), "--glare", glare_url) as found:
        yield found


MuranoOf = Callable[..., MuranoClient]
Send = Callable[..., requests.Response]


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
        archive = packages.package(fqn, version, more=files or {}, **keys)
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


@pytest.mark.parametrize("more", [{"order_by": "name"}, {"search": "same"}, {}])
def test_the_page_before_has_the_packages_behind_its_marker_in_reverse(
    murano: MuranoClient, publish: Publish, name: str, more: dict[str, str]
) -> None:
    for fqn in "abcde":
        publish(fqn=f"{name}.{fqn}", Name="Same")
    publish(fqn=f"{name}.f", Name="Last", Description="The same")
    found = list(murano.packages.filter(owned=True, limit=2, **more))
    names = [package.fully_qualified_name[-1] for package in found]
    assert sorted(names) == list("abcdef")

    for number in range(1, 6):
        marker = found[number].id
        before = _names(murano, marker=marker, sort_dir="desc", limit=2, **more)
        assert [fqn for fqn, _ in before] == names[:number][::-1]


@pytest.mark.parametrize("more", [{"order_by": "name"}, {"search": "same"}, {}])
def test_several_versions_are_listed_in_reverse_as_well(
    murano: MuranoClient, publish: Publish, name: str, more: dict[str, str]
) -> None:
    for fqn, version in (("a", "1.0.0"), ("b", "1.0.0"), ("b", "1.1.0"), ("b", "2.0.0")):
        publish(version, fqn=f"{name}.{fqn}", Name="Same")
    found = _names(murano, version=">=1", **more)
    assert found == [("a", "1.0.0"), ("b", "2.0.0"), ("b", "1.1.0"), ("b", "1.0.0")]

    assert _names(murano, version=">=1", sort_dir="desc", limit=2, **more) == found[::-1]


@pytest.mark.parametrize("order", ["fqn", "name"])
def test_a_list_goes_on_when_a_newer_version_replaces_its_last_package(
    murano: MuranoClient, publish: Publish, name: str, order: str
) -> None:
    for fqn in "abc":
        publish(fqn=f"{name}.{fqn}")
    listed = murano.packages.filter(owned=True, order_by=order, limit=2)
    first, second = next(listed), next(listed)
    publish("2.0.0", fqn=f"{name}.b")

    names = [package.fully_qualified_name[-1] for package in (first, second, *listed)]
    assert names == ["a", "b", "c"]


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
        # The name has some of them as well.
        Tags=["web", "Shop", "a"],
        Supplier={
            "Name": "Suppliers Inc.",
            "CompanyUrl": {"Text": "Suppliers", "Link": "https://example.org/a.html"},
        },
    )
    glare.set(reference, "categories", ["Web"])

    found = murano.packages.get(reference).to_dict()

    assert found.pop("created") <= found.pop("updated")
    assert found == {
        "id": reference,
        "fully_qualified_name": name,
        "version": "1.2.0",
        "name": "A Shop",
        "type": "Application",
        "author": "Somebody",
        "supplier": {
            "Name": "Suppliers Inc.",
            "CompanyUrl": {"Text": "Suppliers", "Link": "https://example.org/a.html"},
        },
        "description": "Sells.",
        "enabled": True,
        "is_public": False,
        "owner_id": project,
        "tags": ["web", "Shop", "a"],
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
    assert archive == packages.package(
        murano.packages.get(reference).fully_qualified_name, more=files
    )


def test_a_download_has_the_length_of_the_archive(send: Send, publish: Publish) -> None:
    answer = send("GET", f"packages/{publish()}/download", None, "")

    assert answer.headers["Content-Length"] == str(len(answer.content))


def test_a_missing_form_or_logo_is_an_empty_answer(murano: MuranoClient, publish: Publish) -> None:
    """Murano's clients raise an error for any other status."""
    reference = publish()
    assert murano.packages.get_ui(reference) is None
    assert murano.packages.get_logo(reference) == b""
    assert murano.packages.get_supplier_logo(reference) == b""
    with pytest.raises(exceptions.HTTPNotFound):
        murano.packages.get_logo(reference[::-1])


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


@pytest.mark.parametrize(
    ("reference", "status"),
    [
        *((each, 404) for each in ("unknown", "..", "%2e%2e", "a%2fb", "%00", "é")),
        ("%ff", 400),
    ],
)
def test_unknown_ids_are_not_found(
    murano_url: str, project: str, reference: str, status: int
) -> None:
    headers = {"X-Auth-Token": f"user:{project}:member"}
    request = requests.Request("GET", murano_url, headers=headers).prepare()
    # By itself requests would resolve the dots.
    request.url = f"{murano_url}{murano_api.PACKAGES}/{reference}"
    with requests.Session() as session:
        assert session.send(request, timeout=60).status_code == status


@pytest.mark.parametrize(
    "path", ["/v1//catalog/packages", "/v1/catalog//packages", "//v1/catalog/packages//"]
)
def test_several_slashes_are_one(
    murano_url: str, project: str, publish: Publish, path: str
) -> None:
    reference = publish()

    def get(path: str) -> Any:
        headers = {"X-Auth-Token": f"user:{project}:member"}
        return requests.get(f"{murano_url}{path}", headers=headers, timeout=60).json()

    assert [package["id"] for package in get(f"{path}?owned=true")["packages"]] == [reference]
    assert get(f"{path}//{reference}")["id"] == reference


def test_a_prefix_of_the_path_is_ignored(murano_url: str, project: str, publish: Publish) -> None:
    reference = publish()
    url = f"{murano_url}{murano_api.PREFIX}{murano_api.PACKAGES}?owned=true"
    found = requests.get(url, headers={"X-Auth-Token": f"user:{project}:member"}, timeout=60)
    assert [package["id"] for package in found.json()["packages"]] == [reference]


@pytest.mark.parametrize(
    "parameter", [{"limit": "0"}, {"limit": "-1"}, {"limit": "x"}, {"sort_dir": "x"}]
)
def test_an_invalid_parameter_is_refused_as_by_murano(
    murano: MuranoClient, parameter: dict[str, str]
) -> None:
    with pytest.raises(exceptions.HTTPBadRequest):
        list(murano.packages.filter(**parameter))


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
    (before, *_) = murano.categories.list(sort_dir="desc", marker=other.id)
    assert before.name == max(category for category in listed if category < other.name)
    with pytest.raises(exceptions.HTTPNotFound):
        murano.categories.get("unknown")


def test_a_page_of_categories_names_the_next_one(send: Send) -> None:
    def page(query: str) -> Any:
        return send("GET", f"categories{query}", None, "").json()

    everything = page("")["categories"]

    assert page("?limit=1") == {"categories": everything[:1], "next_marker": everything[0]["id"]}
    for limit in (len(everything), len(everything) + 1, 10**30):
        assert page(f"?limit={limit}") == {"categories": everything}


def test_categories_are_created_and_deleted_unless_a_package_has_them(
    murano_of: MuranoOf, publish: Publish, glare: Client, project: str, name: str
) -> None:
    murano = murano_of(project, "admin")
    created = murano.categories.add({"name": name})
    reference = publish()
    glare.set(reference, "categories", [name])
    with pytest.raises(exceptions.HTTPForbidden, match=f"packages have the category: {name}"):
        murano.categories.delete(created.id)

    glare.set(reference, "categories", [])
    murano.categories.delete(created.id)
    assert name not in [category.name for category in murano.categories.list()]


def _archive(name: str, version: str = "1.0.0", **keys: Any) -> bytes:
    """A package that the client's own check lets pass."""
    return packages.package(name, version, **{"Description": "Text", **keys})


def _create(murano: MuranoClient, archive: bytes, **metadata: Any) -> Any:
    return murano.packages.create(metadata, {"file": io.BytesIO(archive)})


def test_a_package_is_uploaded(
    murano: MuranoClient, glare: Client, project: str, name: str
) -> None:
    archive = _archive(name, "1.2.0", Tags=["own"], Description="From the package")

    created = _create(murano, archive, categories=["Databases"], tags=["more"], name="ignored")

    assert (created.fully_qualified_name, created.version) == (name, "1.2.0")
    assert (created.name, created.owner_id, created.is_public) == ("A Thing", project, False)
    assert (created.categories, sorted(created.tags)) == (["Databases"], ["more", "own"])
    assert created.description == "From the package"
    assert glare.show(created.id)["status"] == "active"
    assert murano.packages.download(created.id) == archive
    # Another version beside it, which Murano alone does not keep.
    assert _create(murano, _archive(name, "2.0.0"), enabled=False).enabled is False
    assert _names(murano) == [("package", "1.2.0")]


def test_an_upload_has_no_value_of_a_refused_one(murano: MuranoClient, name: str) -> None:
    archive = _archive(name, Require={f"{name}.db": "1"}, Tags=["own"])
    with pytest.raises(exceptions.HTTPBadRequest):
        _create(murano, archive, categories=["Databases"], tags=["more"])
    _create(murano, _archive(f"{name}.db"))

    created = _create(murano, archive)

    assert (created.categories, created.tags) == ([], ["own"])


def test_an_upload_is_refused_with_murano_s_status(
    murano: MuranoClient, murano_url: str, project: str, name: str
) -> None:
    archive = _archive(name)
    _create(murano, archive)
    for other in (archive, _archive(name, Author="Another")):
        with pytest.raises(exceptions.HTTPConflict):
            _create(murano, other)
    with pytest.raises(exceptions.HTTPBadRequest, match="at most 80 characters"):
        _create(murano, _archive(name, "1.1.0", Name=81 * "n"))
    later = _archive(name, "2.0.0")
    with pytest.raises(exceptions.HTTPBadRequest):
        _create(murano, later, categories=["Unknown"])
    with pytest.raises(exceptions.HTTPBadRequest):
        _create(murano, later, unknown="key")
    # A conflict would mean that the version exists: clients skip it, or delete it first.
    with pytest.raises(exceptions.HTTPBadRequest, match=r"org\.missing"):
        _create(murano, _archive(name, "3.0.0", Require={"org.missing": "1"}))
    # By default only an administrator publishes for every project.
    with pytest.raises(exceptions.HTTPForbidden):
        _create(murano, later, is_public=True)

    def post(**arguments: Any) -> requests.Response:
        url = murano_url + murano_api.PACKAGES
        headers = {"X-Auth-Token": f"user:{project}:member"}
        return requests.post(url, headers=headers, timeout=60, **arguments)

    for content in (b"", b"no archive", _archive(name, "x.y")):
        assert post(files={"file": content}).status_code == 400
    # Murano's own answer to another content type.
    assert post(json={}).status_code == 400
    assert _names(murano, version="*") == [("package", "1.0.0")]


def _part(name: str, content: bytes, file: str = "") -> bytes:
    """Return a part of a form, whose boundary is XX."""
    header = f'--XX\r\nContent-Disposition: form-data; name="{name}"'
    header += f'; filename="{file}"' if file else ""
    return header.encode() + b"\r\n\r\n" + content + b"\r\n"


@pytest.fixture
def send(murano_url: str, project: str) -> Send:
    """Send requests that no client would send."""

    def one(
        method: str, path: str, data: Any, content_type: str, role: str = "member"
    ) -> requests.Response:
        headers = {"X-Auth-Token": f"user:{project}:{role}", "Content-Type": content_type}
        url = f"{murano_url}/v1/catalog/{path}"
        return requests.request(method, url, data=data, headers=headers, timeout=60)

    return one


_FORM_TYPE = "multipart/form-data; boundary=XX"
_END = b"--XX--\r\n"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "one file"),
        ([_END], "one file"),
        ([b"no form"], "Malformed"),
        ([_part("metadata", b"{}"), _END], "one file"),
        ([_part("a", b"PK", "a.zip"), _part("b", b"PK", "b.zip"), _END], "it has 2"),
        ([_part("a", b"PK", "a.zip"), _part("metadata", b"[]"), _END], "a JSON object"),
        ([_part("a", b"PK", "a.zip"), _part("metadata", b"{"), _END], "a JSON object"),
        (
            [_part("a", b"PK", "a.zip"), _part("m", b"{}"), _part("n", b"{}"), _END],
            "one part beside",
        ),
        ([_part("a", b"PK", "a.zip"), _part("m", b'{"tags": 1}'), _END], "not of type"),
        ([_part("a", b"PK", "a.zip")], "Malformed"),
        ([_part("a", b"PK", "a.zip"), _END], "not a ZIP file"),
        ([_part("a", b"PK", "a.zip"), _part("m", b"\xff"), _END], "a JSON object"),
        ([_part("a", b"PK", "a.zip"), _part("m", 10_000 * b"["), _END], "Malformed"),
    ],
)
def test_a_malformed_upload_is_refused(send: Send, parts: list[bytes], reason: str) -> None:
    answer = send("POST", "packages", b"".join(parts), _FORM_TYPE)
    assert answer.status_code == 400, answer.text
    assert reason in answer.text


_LONG_HEADERS = b"--XX\r\nContent-Disposition: form-data" + 500_000 * b";a" + b"\r\n\r\n\r\n"
_NESTED = b"--XX\r\nContent-Type: multipart/mixed; boundary=YY\r\n\r\n--YY\r\n\r\n{}\r\n--YY--\r\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # Murano would look for each name in all the others, which takes six seconds.
        (b"".join(_part(str(n), b"") for n in range(10_000)), "at most 10 parts"),
        # webob would copy the rest of a header for each parameter: a MB of them for 17 seconds.
        (_LONG_HEADERS + _END, "headers of 4096 bytes"),
        (_part("a", b"PK", "a.zip") + _NESTED + _END, "Malformed"),
    ],
    ids=["parts", "headers", "nested"],
)
def test_a_form_that_takes_long_to_parse_is_refused(send: Send, body: bytes, reason: str) -> None:
    answer = send("POST", "packages", body, _FORM_TYPE)
    assert answer.status_code == 400
    assert reason in answer.text


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; boundary= "])
def test_a_form_without_a_boundary_is_refused(send: Send, content_type: str) -> None:
    answer = send("POST", "packages", _part("a", b"PK", "a.zip") + _END, content_type)
    assert answer.status_code == 400
    assert "Malformed request body" in answer.text


def test_an_upload_beyond_the_limit_is_refused(send: Send) -> None:
    def form(*sizes: int) -> bytes:
        return b"".join(_part("a", size * b"x", "a.zip") for size in sizes) + _END

    # The last form is not parsed, since the files together exceed the limit.
    for sizes in ([5 * 1024**2 + 1], [7 * 1024**2], [4 * 1024**2, 4 * 1024**2]):
        answer = send("POST", "packages", form(*sizes), _FORM_TYPE)
        assert answer.status_code == 400
        assert "package_size_limit is 5 MB" in answer.text


def test_the_metadata_of_an_upload_have_a_limit(send: Send) -> None:
    def upload(*sizes: int) -> str:
        others = [_part("metadata", b"{}".ljust(size)) for size in sizes]
        body = b"".join([_part("a", b"PK", "a.zip"), *others, _END])
        answer = send("POST", "packages", body, _FORM_TYPE)
        assert answer.status_code == 400
        return answer.text

    limit = 1024**2
    assert "not a ZIP file" in upload(limit)
    for sizes in ([limit + 1], [limit - 9, 10]):
        assert f"has {limit + 1} bytes besides files" in upload(*sizes)
        assert f"at most {limit} bytes" in upload(*sizes)


@pytest.mark.parametrize(
    ("method", "path", "content_type", "limit"),
    [
        ("POST", "categories", "application/json", 4 * 1024**2),
        ("POST", "../actions", "application/json", 4 * 1024**2),
        ("POST", "packages", "application/json", 4 * 1024**2),
        ("PATCH", "packages/x", "application/murano-packages-json-patch", 256 * 1024),
    ],
)
def test_a_body_without_a_file_has_a_limit(
    send: Send, method: str, path: str, content_type: str, limit: int
) -> None:
    for size, status in ((limit, 400), (limit + 1, 413)):
        answer = send(method, path, b"[1]".ljust(size), content_type, "admin")
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{}", 400),
        (b"null", 400),
        (b"{", 400),
        (b"[1]", 400),
        (b"[{}]", 400),
        (b"\xff", 400),
        (100_000 * b"[", 400),
        (b'[{"op": "replace", "path": 1, "value": "x"}]', 400),
        (b'[{"op": "replace", "path": null, "value": "x"}]', 400),
        (b'[{"op": "replace", "path": "name", "value": "x"}]', 400),
        (b'[{"op": "replace", "path": "/name/x", "value": "x"}]', 400),
        (b'[{"op": "replace", "path": "/name", "value": 1}]', 400),
        (b'[{"op": "replace", "path": "/name", "value": "\\u0000"}]', 400),
        (b'[{"op": ["x"], "path": "/name", "value": "x"}]', 403),
        (b'[{"op": "replace", "path": "/version", "value": "9.0.0"}]', 403),
        (b'[{"op": "replace", "path": "/owner_id", "value": "x"}]', 403),
    ],
)
def test_a_malformed_change_is_refused(
    send: Send, publish: Publish, body: bytes, status: int
) -> None:
    content_type = "application/murano-packages-json-patch"
    answer = send("PATCH", f"packages/{publish()}", body, content_type)
    assert answer.status_code == status, answer.text


_STRINGS = [str(number) for number in range(1025)]
_ADDED = {"op": "add", "path": "/tags", "value": ["x"]}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([_ADDED] * 201, "at most 200 changes"),
        ([{**_ADDED, "value": _STRINGS}], "more than 1024 elements"),
        # Murano would compare each element with all others: 5,000 of them for half a minute.
        ([{**_ADDED, "value": [{"a": 1}, "x"]}], "an element is not of type string"),
    ],
)
@pytest.mark.parametrize("kind", ["murano-packages", "env-model"])
def test_a_change_that_takes_long_to_check_is_refused(
    send: Send, kind: str, changes: list[Any], reason: str
) -> None:
    content_type = f"application/{kind}-json-patch"
    answer = send("PATCH", "packages/x", json.dumps(changes), content_type)
    assert answer.status_code == 400
    assert reason in answer.text


@pytest.mark.parametrize(
    ("tags", "reason"),
    [(_STRINGS, "more than 1024 elements"), ([[], "x"], "an element is not of type string")],
)
def test_an_upload_whose_values_take_long_to_check_is_refused(
    send: Send, tags: list[Any], reason: str
) -> None:
    metadata = json.dumps({"tags": tags}).encode()
    body = _part("a", b"PK", "a.zip") + _part("m", metadata) + _END
    answer = send("POST", "packages", body, _FORM_TYPE)
    assert answer.status_code == 400
    assert reason in answer.text


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type"),
    [
        ("PUT", "packages?_method=POST", _part("a", b"PK", "a.zip") + _END, _FORM_TYPE),
        ("PUT", "packages/x/download?_method=GET", b"", "application/json"),
        ("POST", "packages/x", b"_method=DELETE", "application/x-www-form-urlencoded"),
        ("PUT", "../actions?_method=POST", b"[]", "application/json"),
        ("PUT", "..//actions/?_method=POST", b"[]", "application/json"),
        ("PUT", "../actions%0A?_method=POST", b"[]", "application/json"),
        ("GET", "", b"", "application/json"),
    ],
)
def test_no_request_reaches_murano_s_own_catalogue(
    send: Send, method: str, path: str, body: bytes, content_type: str
) -> None:
    answer = send(method, path, body, content_type)
    assert (answer.status_code, answer.headers["Content-Length"]) == (404, str(len(answer.content)))
    assert "The resource could not be found" in answer.text


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("catalog/packages", "application/octet-stream"),
        ("catalog/categories", "application/octet-stream"),
        ("actions", "application/octet-stream"),
        ("actions", "application/xml"),
    ],
)
def test_an_answer_that_cannot_be_written_is_refused(
    murano_url: str, project: str, path: str, accept: str
) -> None:
    headers = {"X-Auth-Token": f"user:{project}:member", "Accept": accept}
    method = "POST" if path == "actions" else "GET"
    body = {"className": "a.B", "methodName": "c"} if path == "actions" else None
    answer = requests.request(
        method, f"{murano_url}/v1/{path}", json=body, headers=headers, timeout=60
    )
    assert answer.status_code == 406


@pytest.mark.parametrize("content_type", ["application/json", "application/xml"])
@pytest.mark.parametrize(
    "body",
    [b"null", b"[]", b'"x"', b'{"name": ["x"]}', b'{"name": "\\ud800"}', b"{", b"<a/>"],
)
def test_a_malformed_category_is_refused(send: Send, body: bytes, content_type: str) -> None:
    answer = send("POST", "categories", body, content_type, "admin")
    assert answer.status_code == 400, answer.text


def test_a_character_that_cannot_be_stored_is_named(send: Send) -> None:
    answer = send("POST", "categories", rb'{"name": "a\u0000b"}', "application/json", "admin")

    assert answer.status_code == 400
    assert r"a character that cannot be stored: &#x27;\x00&#x27;" in answer.text


@pytest.mark.parametrize("content_type", ["application/json", "application/xml"])
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"x"', b"{}", b"{", 100_000 * b"["])
def test_a_malformed_static_action_is_refused(send: Send, body: bytes, content_type: str) -> None:
    answer = send("POST", "../actions", body, content_type)
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("authors", ["aaaa", "abcd"])
def test_a_version_that_clients_upload_at_once_is_that_of_one(
    murano: MuranoClient, name: str, authors: str
) -> None:
    archives = [_archive(name, Author=author) for author in authors]

    def upload(archive: bytes) -> bytes | None:
        try:
            _create(murano, archive)
        except (exceptions.HTTPConflict, exceptions.HTTPForbidden):
            return None
        return archive

    with concurrent.futures.ThreadPoolExecutor() as threads:
        uploaded = {archive for archive in threads.map(upload, archives) if archive}

    (package,) = murano.packages.filter(owned=True)
    assert uploaded == {murano.packages.download(package.id)}


def test_an_upload_that_takes_too_long_to_read_is_refused(
    glare_url: str, project: str, tmp_path: pathlib.Path
) -> None:
    (case,) = [each for each in costly.COSTLY if "max_reading_seconds" in each.options]
    options = "--glare", glare_url, "--max-reading-seconds", "1"
    with murano_api.running(tmp_path, *options) as url:
        answer = requests.post(
            url + murano_api.PACKAGES,
            headers={"X-Auth-Token": f"user:{project}:member"},
            files={"file": case.build()},
            timeout=60,
        )
    assert answer.status_code == 400
    assert "simplify the package [reading-limit]" in answer.text


def test_a_service_that_does_not_answer_is_reported(tmp_path: pathlib.Path) -> None:
    glare = f"http://127.0.0.1:{processes.free_port()}"
    with murano_api.running(tmp_path, "--glare", glare, "--no-waits") as url:
        murano = MuranoClient(url, token="user:project:member", timeout=60)
        for use in (
            lambda: list(murano.packages.list()),
            lambda: _create(murano, _archive("org.test.unreachable")),
            murano.categories.list,
        ):
            with pytest.raises(exceptions.HTTPServiceUnavailable, match=glare):
                use()
        assert murano.environments.list() == []


def test_an_administrator_publishes_for_every_project(
    murano_of: MuranoOf, project: str, name: str
) -> None:
    admin, user = murano_of("admin-project", "admin"), murano_of(project)
    private = _create(admin, _archive(name))
    public = _create(admin, _archive(f"{name}.public"), is_public=True)
    assert public.is_public
    with pytest.raises(exceptions.HTTPNotFound):
        user.packages.get(private.id)

    with pytest.raises(exceptions.HTTPBadRequest):
        admin.packages.update(private.id, {"is_public": True, "tags": ["a,b"]})
    assert not admin.packages.get(private.id).is_public

    # By murano-dashboard's button.
    admin.packages.toggle_public(private.id)

    assert user.packages.get(private.id).is_public
    with pytest.raises(exceptions.HTTPForbidden):
        admin.packages.update(private.id, {"is_public": False})
    for change in (
        lambda: user.packages.update(private.id, {"name": "Mine"}),
        lambda: user.packages.delete(private.id),
    ):
        with pytest.raises(exceptions.HTTPForbidden):
            change()


def test_a_package_is_changed(murano: MuranoClient, publish: Publish) -> None:
    reference = publish(Tags=["first"])

    def change(values: dict[str, Any], operation: str = "replace") -> Any:
        return murano.packages.update(reference, values, operation)[1]

    changed = change({"name": "New", "description": "Text", "tags": ["second"]})
    assert (changed["name"], changed["description"], changed["tags"]) == ("New", "Text", ["second"])
    assert sorted(change({"tags": ["third", "second"]}, "add")["tags"]) == ["second", "third"]
    assert change({"categories": ["Web"]}, "add")["categories"] == ["Web"]
    assert change({"tags": ["second"]}, "remove")["tags"] == ["third"]
    # As murano-dashboard sends that there are none.
    assert change({"tags": [""]})["tags"] == []
    assert change({"is_public": False})["is_public"] is False
    for values, operation, status in (
        ({"tags": ["third"]}, "remove", exceptions.HTTPNotFound),
        ({"categories": ["Unknown"]}, "add", exceptions.HTTPBadRequest),
        ({"name": 81 * "n"}, "replace", exceptions.HTTPBadRequest),
        ({"is_public": True}, "replace", exceptions.HTTPForbidden),
    ):
        with pytest.raises(status):
            change(values, operation)
    assert murano.packages.get(reference).name == "New"


def test_a_package_has_more_tags_than_its_name_has_characters(
    murano: MuranoClient, publish: Publish
) -> None:
    tags = sorted(f"tag{number}" for number in range(100))

    _, changed = murano.packages.update(publish(), {"tags": tags})

    assert sorted(changed["tags"]) == tags


def test_a_missing_category_is_named(murano: MuranoClient, publish: Publish) -> None:
    changes = {"categories": ["Web", "Unknown"]}

    with pytest.raises(exceptions.HTTPBadRequest, match=r"no category .*Unknown.*; an admin"):
        murano.packages.update(publish(), changes, "add")


def test_a_package_is_disabled_as_if_yanked(
    murano: MuranoClient, publish: Publish, glare: Client
) -> None:
    old, new = publish("1.0.0"), publish("2.0.0")

    murano.packages.toggle_active(new)
    assert glare.show(new)["yanked"] == "disabled by a client of Murano"
    assert [package.id for package in murano.packages.filter(owned=True)] == [old]

    murano.packages.toggle_active(new)
    assert glare.show(new)["yanked"] == ""
    assert [package.id for package in murano.packages.filter(owned=True)] == [new]


def test_a_deactivated_package_is_activated_when_enabled(
    murano_of: MuranoOf, publish: Publish, admin: Client, project: str
) -> None:
    reference = publish()
    assert admin.set(reference, "status", "deactivated").status_code == 200

    murano_of(project, "admin").packages.toggle_active(reference)

    assert admin.show(reference)["status"] == "active"
    assert murano_of(project).packages.get(reference).enabled


def test_a_version_is_deleted_unless_others_require_it(
    murano: MuranoClient, publish: Publish, name: str
) -> None:
    old, new = publish("1.0.0"), publish("2.0.0")
    publish(fqn=f"{name}.user", Require={name: "2"})

    murano.packages.delete(old)
    assert _names(murano, fqn=name, version="*") == [("package", "2.0.0")]
    with pytest.raises(exceptions.HTTPNotFound):
        murano.packages.delete(old)
    with pytest.raises(exceptions.HTTPConflict):
        murano.packages.delete(new)


@pytest.fixture
def command(
    murano_url: str, project: str, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., str]]:
    """Run a command of python-muranoclient, and return what it prints."""

    def run(*arguments: object, role: str = "member") -> str:
        place = ["--murano-url", murano_url, "--os-no-client-auth"]
        token = ["--os-auth-token", f"user:{project}:{role}", "--murano-packages-service", "murano"]
        MuranoShell().main([*place, *token, *map(str, arguments)])
        return capsys.readouterr().out

    # The shell adds a handler for each command, which writes to the test's standard error.
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield run
    root.handlers[:] = handlers
    root.setLevel(level)


def test_the_commands_for_a_package(
    command: Callable[..., str], tmp_path: pathlib.Path, name: str
) -> None:
    archive = tmp_path / "package.zip"
    archive.write_bytes(_archive(name, "1.2.0"))
    updated = _archive(name, "1.2.0", Author="Another")

    assert name in command("package-import", archive, "--categories", "Web")
    (reference,) = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", command("package-list", "--fqn", name))
    assert name in command("package-show", reference)
    command("package-download", reference, tmp_path / "downloaded.zip")
    assert (tmp_path / "downloaded.zip").read_bytes() == archive.read_bytes()
    command("package-update", reference, "--name", "Renamed", "--tags", "a", "b")
    assert "Renamed" in command("package-list", "--search", "renamed")
    assert "Skipping" in command("package-import", archive, "--exists-action", "s")
    archive.write_bytes(updated)
    assert "Deleting package" in command("package-import", archive, "--exists-action", "u")
    (again,) = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", command("package-list", "--fqn", name))
    assert again != reference
    command("package-delete", again)
    assert name not in command("package-list", "--owned")
    assert "Databases" in command("category-list")


Run = Callable[..., Any]

_TEMPLATE = """\
heat_template_version: 2013-05-23
description: A template
parameters:
  size: {type: number, default: 1}
resources: {}
"""


def test_a_package_that_the_client_creates_is_imported(
    command: Callable[..., str], murano: MuranoClient, tmp_path: pathlib.Path, name: str
) -> None:
    template, archive = tmp_path / "template.yaml", tmp_path / "package.zip"
    template.write_text(_TEMPLATE)
    described = ("--full-name", name, "--description", "Text", "--author", "Somebody")
    command("package-create", "--template", template, "--output", archive, *described)
    command("package-import", archive)

    (package,) = murano.packages.filter(owned=True)
    assert (package.fully_qualified_name, package.type) == (name, "Application")
    assert murano.packages.download(package.id) == archive.read_bytes()


def test_a_package_of_classes_that_the_client_creates_is_imported(
    run: Run, murano: MuranoClient, tmp_path: pathlib.Path, name: str
) -> None:
    code = f"Namespaces: {{=: {name}}}\nName: Thing\n".encode()
    classes = packages.write(tmp_path / "classes", {"Thing.yaml": code})
    form, logo, archive = (tmp_path / file for file in ("ui.yaml", "logo.png", "package.zip"))
    form.write_bytes(_FORM)
    logo.write_bytes(_PNG)
    described = ("--full-name", name, "--description", "Text", "--author", "Somebody")
    described += ("--name", "A Thing", "--type", "Library", "--tags", "web")
    files = ("--classes-dir", classes, "--ui", form, "--logo", logo, "--output", archive)
    run(osc_package.CreatePackage, *files, *described)
    run(osc_package.ImportPackage, archive)

    (package,) = murano.packages.filter(owned=True)
    assert package.class_definitions == [f"{name}.Thing"]
    assert murano.packages.get_ui(package.id) == yaml.safe_load(_FORM)
    assert murano.packages.get_logo(package.id) == _PNG


def test_the_commands_for_a_category(
    command: Callable[..., str], publish: Publish, glare: Client, name: str
) -> None:
    assert name in command("category-create", name, role="admin")
    (row,) = [line for line in command("category-list").splitlines() if name in line]
    category = row.split("|")[1].strip()
    reference = publish(Name="Shop")
    glare.set(reference, "categories", [name])
    assert "Shop" in command("category-show", category)
    glare.set(reference, "categories", [])
    command("category-delete", category, role="admin")
    assert name not in command("category-list")


@pytest.fixture
def run(murano_of: MuranoOf, project: str) -> Run:
    """Run a command of python-muranoclient for ``openstack``."""

    def one(command: type[Any], *arguments: object, role: str = "member") -> Any:
        clients = types.SimpleNamespace(application_catalog=murano_of(project, role))
        made = command(types.SimpleNamespace(client_manager=clients), None)
        return made.take_action(made.get_parser("openstack").parse_args(list(map(str, arguments))))

    return one


def test_the_commands_of_openstack_for_categories_and_bundles(
    run: Run, murano: MuranoClient, tmp_path: pathlib.Path, name: str
) -> None:
    _, ((category, _),) = run(osc_category.CreateCategory, name, role="admin")
    assert name in run(osc_category.ShowCategory, category)[1]
    run(osc_category.DeleteCategory, category, role="admin")
    (tmp_path / f"{name}.zip").write_bytes(_archive(name))
    bundle = tmp_path / "test.bundle"
    bundle.write_text(json.dumps({"Packages": [{"Name": name}]}))
    run(osc_package.ImportBundle, bundle)
    assert _names(murano) == [("package", "1.0.0")]


def test_the_commands_of_openstack(run: Run, tmp_path: pathlib.Path, name: str) -> None:
    archive = tmp_path / "package.zip"
    archive.write_bytes(_archive(name, "1.2.0"))
    _, imported = run(osc_package.ImportPackage, archive)
    assert [(row[2], row[-1]) for row in imported] == [(name, "1.2.0")]
    _, listed = run(osc_package.ListPackages, "--fqn", name)
    assert listed == imported
    reference = listed[0][0]
    assert name in run(osc_package.ShowPackage, reference)[1]
    assert "New" in run(osc_package.UpdatePackage, reference, "--name", "New")[1]
    run(osc_package.DownloadPackage, reference, tmp_path / "downloaded.zip")
    assert (tmp_path / "downloaded.zip").read_bytes() == archive.read_bytes()
    _, categories = run(osc_category.ListCategories)
    assert "Databases" in [row[1] for row in categories]
    run(osc_package.DeletePackage, reference)
    assert run(osc_package.ListPackages, "--owned")[1] == []


def test_the_commands_for_a_bundle(
    command: Callable[..., str], tmp_path: pathlib.Path, name: str, murano: MuranoClient
) -> None:
    (tmp_path / f"{name}.db.zip").write_bytes(_archive(f"{name}.db"))
    app = _archive(f"{name}.app", Require={f"{name}.db": "1"})
    (tmp_path / f"{name}.app.zip").write_bytes(app)
    bundle = tmp_path / "test.bundle"
    bundle.write_text(json.dumps({"Packages": [{"Name": f"{name}.app"}]}))

    # The client imports required packages first.
    command("bundle-import", bundle)

    assert _names(murano) == [("app", "1.0.0"), ("db", "1.0.0")]
    assert command("bundle-import", bundle, "--exists-action", "s").count("Skipping") == 2
    archives = [f"{tmp_path}/{name}.{each}.zip" for each in ("db", "app")]
    assert command("package-import", *archives, "--exists-action", "s").count("Skipping") == 2


@pytest.fixture
def repository(tmp_path: pathlib.Path, name: str) -> Iterator[str]:
    """A site with a bundle of a package, and with the package that it requires; yields its URL."""
    folder = tmp_path / "site"
    packages.write(
        folder,
        {
            # The client looks for NAME.RANGE.zip, and for NAME.zip if there is no range.
            f"apps/{name}.db.zip": _archive(f"{name}.db", "0.1.0"),
            f"apps/{name}.app.zip": _archive(f"{name}.app", Require={f"{name}.db": None}),
            "bundles/shop.bundle": json.dumps({"Packages": [{"Name": f"{name}.app"}]}).encode(),
        },
    )
    with web.serving_files(folder) as url:
        yield url


def _saved(folder: pathlib.Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_commands_for_a_repository(
    command: Callable[..., str],
    repository: str,
    murano: MuranoClient,
    tmp_path: pathlib.Path,
    name: str,
) -> None:
    of_repository = functools.partial(command, "--murano-repo-url", repository)
    archives = {f"{name}.app.zip", f"{name}.db.zip"}
    bundle, package = tmp_path / "bundle", tmp_path / "package"
    of_repository("bundle-save", "shop", "--path", bundle)
    of_repository("package-save", f"{name}.app", "--path", package)
    assert (_saved(bundle), _saved(package)) == (archives | {"shop.bundle"}, archives)

    # What was saved can be imported without the repository.
    command("bundle-import", bundle / "shop.bundle")

    assert _names(murano) == [("app", "1.0.0"), ("db", "0.1.0")]
    for found in murano.packages.filter(owned=True):
        saved = package / f"{found.fully_qualified_name}.zip"
        assert murano.packages.download(found.id) == saved.read_bytes()
        murano.packages.delete(found.id)
    # A required package is imported first.
    of_repository("package-import", f"{name}.app")
    assert _names(murano) == [("app", "1.0.0"), ("db", "0.1.0")]
    assert of_repository("bundle-import", "shop", "--exists-action", "s").count("Skipping") == 2


def test_calls_outside_the_catalogue_reach_murano(murano: MuranoClient) -> None:
    assert murano.environments.list() == []


@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("POST", "environments", "multipart/form-data; boundary=XX"),
        ("POST", "environments", "application/x-www-form-urlencoded"),
        ("POST", "x", "Multipart/Form-Data; boundary=XX"),
        ("POST", "schemas/io.murano.Object", "multipart/form-data; boundary=XX"),
        ("GET", "environments", "multipart/form-data; boundary=XX"),
        ("PUT", "environments/x/services", "multipart/mixed; boundary=XX"),
        ("PATCH", "environments/x/model/?_method=POST", "multipart/form-data; boundary=XX"),
        ("DELETE", "templates/x", "application/x-www-form-urlencoded; charset=utf-8"),
    ],
)
def test_a_form_outside_the_catalogue_is_refused(
    send: Send, method: str, path: str, content_type: str
) -> None:
    # webob would parse a MiB of these for more than a second.
    form = _part("_method", 100_000 * b"\r\n") + _END

    answer = send(method, f"../{path}", form, content_type)

    assert answer.status_code == 415, answer.text
    assert "send application/json" in answer.text


def test_a_form_without_content_reaches_murano(send: Send) -> None:
    # curl sends this type by default.
    kind = "application/x-www-form-urlencoded"
    assert send("POST", "../environments/x/configure", b"", kind).status_code == 404


def test_a_body_outside_the_catalogue_has_a_limit(send: Send, name: str) -> None:
    limit = 4 * 1024**2
    body = json.dumps({"name": name}).encode().ljust(limit)

    accepted = send("POST", "../templates", body, "application/json")
    refused = send("POST", "../templates", body + b" ", "application/json")

    assert accepted.status_code == 200, accepted.text
    assert refused.status_code == 413
    assert f"The body has {limit + 1} bytes, at most {limit} are allowed" in refused.text


_MODEL_PATCH = "application/env-model-json-patch"
_CHANGE = {"op": "replace", "path": "/name", "value": "x"}


@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", "environments/x/model/"), ("POST", "environments")]
)
@pytest.mark.parametrize(
    ("body", "kind", "status", "reason"),
    [
        (201 * [_CHANGE], _MODEL_PATCH, 400, "at most 200 changes"),
        (json.dumps([_CHANGE]).ljust(256 * 1024 + 1), _MODEL_PATCH, 413, "262144 are allowed"),
        ("{", _MODEL_PATCH, 400, "not valid JSON"),
        (100_000 * "[", _MODEL_PATCH, 400, "not valid JSON"),
        ([_ADDED], "application/murano-packages-json-patch", 415, "changes no package"),
    ],
)
def test_a_patch_outside_the_catalogue_is_refused(
    send: Send, method: str, path: str, body: Any, kind: str, status: int, reason: str
) -> None:
    data = body if isinstance(body, str) else json.dumps(body)
    answer = send(method, f"../{path}", data, kind)
    assert answer.status_code == status, answer.text
    assert reason in answer.text


def test_a_patch_of_a_model_reaches_murano(send: Send) -> None:
    body = json.dumps(200 * [_CHANGE]).ljust(256 * 1024)
    answer = send("PATCH", "../environments/x/model/", body, _MODEL_PATCH)
    assert answer.status_code == 404
    assert "Environment" in answer.text

    body = json.dumps([{**_CHANGE, "value": 1}])
    answer = send("PATCH", "../environments/x/model/", body, _MODEL_PATCH)
    assert "1 is not of type" in answer.text


# eventlet's server, which is that of murano-api, passes a body without a length on, however long it
# is. The server of the other tests reads such a body first. Printed are the status, and how many
# requests the filter has passed on.
_CHUNKS = """
import eventlet
eventlet.monkey_patch()
import http.client
from eventlet import wsgi
from loader.murano_api.middleware import CatalogFilter
passed = []
def application(environ, start_response):
    passed.append(environ)
    start_response("200 OK", [])
    return [b""]
listener = eventlet.listen(("127.0.0.1", 0))
eventlet.spawn(wsgi.server, listener, CatalogFilter(application, object()), log_output=False)
for path in ("environments", "catalog/packages"):
    client = http.client.HTTPConnection(*listener.getsockname(), timeout=60)
    headers = {"Content-Type": "application/json"}
    client.request("POST", f"/v1/{path}", iter([b"{}"]), headers, encode_chunked=True)
    answer = client.getresponse()
    print(answer.status, len(passed), b"Content-Length" in answer.read())
"""


def test_a_body_in_chunks_is_refused() -> None:
    # Murano replaces modules of Python when it is imported.
    command = [sys.executable, "-W", "ignore", "-c", _CHUNKS]
    ended = subprocess.run(command, cwd=murano_api.ROOT, capture_output=True, text=True)
    assert ended.stdout == 2 * "411 0 True\n", ended.stderr
