# SPDX-License-Identifier: Apache-2.0

"""Murano's policies for packages and categories, which murano-api checks with this project."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from tests import packages
from tests.functional import murano_api
from tests.functional.client import Client

pytestmark = pytest.mark.programs

RULES = (
    "get_package",
    "upload_package",
    "modify_package",
    "publicize_package",
    "manage_public_package",
    "delete_package",
    "download_package",
    "add_category",
    "get_category",
    "delete_category",
    "get_schema",
)
_TAG = [{"op": "add", "path": "/tags", "value": ["changed"]}]
_PUBLIC = [{"op": "replace", "path": "/is_public", "value": True}]

# A change -> its rule, whether the package is public, and the body of the request.
_PATCHES: dict[str, tuple[str, bool, list[dict[str, Any]]]] = {
    "change": ("modify_package", False, _TAG),
    "publicize": ("publicize_package", False, _PUBLIC),
    "change of a public package": ("manage_public_package", True, _TAG),
}

Send = Callable[..., requests.Response]


@pytest.fixture(scope="module")
def murano_url(glare_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Murano API that permits what a rule says to the role of the rule's name."""
    folder = tmp_path_factory.mktemp("murano")
    rules = {rule: f"role:{rule}" for rule in RULES}
    (folder / murano_api.POLICY_FILE).write_text(json.dumps(rules))
    with murano_api.running(folder, "--glare", glare_url) as found:
        yield found


@pytest.fixture
def send(murano_url: str, project: str) -> Send:
    """Send a request as a user who has the roles of all rules but one."""

    def one(without: str, method: str, path: str, **content: Any) -> requests.Response:
        roles = ",".join(["admin", *(rule for rule in RULES if rule != without)])
        headers = {"X-Auth-Token": f"user:{project}:{roles}", **content.pop("headers", {})}
        url = f"{murano_url}/v1/catalog/{path}"
        return requests.request(method, url, headers=headers, timeout=60, **content)

    return one


@pytest.fixture
def publish(glare: Client, admin: Client, name: str) -> Callable[..., str]:
    """Publish a version of a package in Glare, and return its id."""

    def one(is_public: bool = False) -> str:
        found = glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
        if is_public:
            admin.set(found["id"], "visibility", "public")
        return str(found["id"])

    return one


def _patch(send: Send, without: str, reference: str, changes: Any) -> requests.Response:
    headers = {"Content-Type": "application/murano-packages-json-patch"}
    data = json.dumps(changes)
    return send(without, "PATCH", f"packages/{reference}", headers=headers, data=data)


def _upload(send: Send, without: str, name: str, is_public: bool) -> requests.Response:
    files = {
        "file": ("p.zip", packages.package(name, "1.0.0")),
        "__metadata__": (None, json.dumps({"is_public": is_public})),
    }
    return send(without, "POST", "packages", files=files)


@pytest.mark.parametrize("path", ["", "/{}", "/{}/ui", "/{}/logo", "/{}/supplier_logo"])
def test_packages_are_shown_by_the_policy(
    send: Send, publish: Callable[..., str], path: str
) -> None:
    path = f"packages{path.format(publish())}"

    assert send("get_package", "GET", path).status_code == 403
    assert send("", "GET", path).status_code == 200


def test_a_package_is_downloaded_by_the_policy(send: Send, publish: Callable[..., str]) -> None:
    path = f"packages/{publish()}/download"

    assert send("download_package", "GET", path).status_code == 403
    assert send("", "GET", path).status_code == 200


@pytest.mark.parametrize(
    ("rule", "is_public"), [("upload_package", False), ("publicize_package", True)]
)
def test_a_package_is_uploaded_by_the_policy(
    send: Send, glare: Client, name: str, rule: str, is_public: bool
) -> None:
    assert _upload(send, rule, name, is_public).status_code == 403
    assert glare.names(name=name) == []
    assert _upload(send, "", name, is_public).status_code == 200


@pytest.mark.parametrize("change", _PATCHES)
def test_a_package_is_changed_by_the_policy(
    send: Send, publish: Callable[..., str], change: str
) -> None:
    rule, is_public, changes = _PATCHES[change]
    reference = publish(is_public)
    before = send("", "GET", f"packages/{reference}").json()

    assert _patch(send, rule, reference, changes).status_code == 403
    assert send("", "GET", f"packages/{reference}").json() == before
    assert _patch(send, "", reference, changes).status_code == 200


@pytest.mark.parametrize(
    ("rule", "is_public"), [("delete_package", False), ("manage_public_package", True)]
)
def test_a_package_is_deleted_by_the_policy(
    send: Send, publish: Callable[..., str], rule: str, is_public: bool
) -> None:
    path = f"packages/{publish(is_public)}"

    assert send(rule, "DELETE", path).status_code == 403
    assert send("", "GET", path).status_code == 200
    assert send("", "DELETE", path).status_code == 200


def test_a_public_package_may_be_called_public(send: Send, publish: Callable[..., str]) -> None:
    reference = publish(is_public=True)

    assert _patch(send, "publicize_package", reference, _PUBLIC).status_code == 200


def test_a_private_package_needs_no_rule_for_public_ones(
    send: Send, publish: Callable[..., str]
) -> None:
    reference = publish()

    assert _patch(send, "manage_public_package", reference, _TAG).status_code == 200
    assert send("manage_public_package", "DELETE", f"packages/{reference}").status_code == 200


def test_public_packages_of_others_are_listed_by_the_policy(
    murano_url: str, publish: Callable[..., str], name: str
) -> None:
    reference = publish(is_public=True)

    def listed(roles: str, **parameters: str) -> list[str]:
        answer = requests.get(
            f"{murano_url}/v1/catalog/packages",
            params={"fqn": name, **parameters},
            headers={"X-Auth-Token": f"user:another:member,get_package,{roles}"},
            timeout=60,
        )
        return [package["id"] for package in answer.json()["packages"]]

    assert listed("member") == []
    assert listed("manage_public_package") == [reference]
    # Users choose applications from the catalogue.
    assert listed("member", catalog="true") == [reference]


def test_categories_are_managed_by_the_policy(send: Send, name: str) -> None:
    for refused in (name, None):
        answer = send("add_category", "POST", "categories", json={"name": refused})
        assert answer.status_code == 403
    category = send("", "POST", "categories", json={"name": name})
    path = f"categories/{category.json()['id']}"

    for rule, method in (("get_category", "GET"), ("delete_category", "DELETE")):
        assert send(rule, method, path).status_code == 403
        assert send("", method, path).status_code == 200
    assert send("", "GET", path).status_code == 404


@pytest.mark.parametrize("path", ["", "/create", "/create,destroy"])
def test_schemas_are_made_by_the_policy(send: Send, path: str) -> None:
    """A request for subclasses never reaches Murano's own API, which does not know them."""
    path = f"../schemas/org.test.Class{path}?subclasses=perhaps"

    assert send("get_schema", "GET", path).status_code == 403
    answer = send("", "GET", path)
    assert answer.status_code == 400
    assert "perhaps" in answer.text
