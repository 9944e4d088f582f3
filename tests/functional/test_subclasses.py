# SPDX-License-Identifier: Apache-2.0

"""All heirs of a class, told by the real Glare."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests import packages
from tests.functional.client import Client, message

PATH = "/murano/heirs"


def _heirs(client: Client, class_name: str) -> dict[str, Any]:
    """Class -> what is told of it."""
    answer = client.query(PATH, {"class": class_name})
    assert answer.status_code == 200, answer.text
    assert answer.json()["class"] == class_name
    return {heir.pop("class"): heir for heir in answer.json()["heirs"]}


def _publish(
    client: Client, name: str, version: str, extends: dict[str, str], public: bool = False
) -> None:
    """A package whose classes extend others: class -> its base."""
    classes = {f"{name}.{heir}": f"{heir}.yaml" for heir in extends}
    files = packages.files(packages.manifest(name, version, Classes=classes))
    for heir, base in extends.items():
        text = f"Name: {name}.{heir}\nExtends: {base}\n"
        files[f"Classes/{heir}.yaml"] = text.encode()
    client.publish(name, version, packages.zipped(files), public)


def test_heirs_are_found_through_any_number_of_packages(glare: Client, name: str) -> None:
    base = f"{name}.Base"
    _publish(glare, "org.a", "1.0.0", {"Store": base})
    _publish(glare, "org.a", "1.1.0", {"Store": base, "Other": "org.a.Store"})
    _publish(glare, "org.b", "1.0.0", {"Db": "org.a.Store"})
    _publish(glare, "org.c", "1.0.0-rc.1", {"Cluster": "org.b.Db", "Unrelated": f"{name}.Else"})

    assert _heirs(glare, base) == {
        "org.a.Store": {"extends": [base], "packages": {"org.a": ["1.1.0", "1.0.0"]}},
        "org.a.Other": {"extends": ["org.a.Store"], "packages": {"org.a": ["1.1.0"]}},
        "org.b.Db": {"extends": ["org.a.Store"], "packages": {"org.b": ["1.0.0"]}},
        "org.c.Cluster": {"extends": ["org.b.Db"], "packages": {"org.c": ["1.0.0-rc.1"]}},
    }
    # The filter of a list call finds the direct ones.
    assert glare.names(inherits=base) == [("org.a", "1.0.0"), ("org.a", "1.1.0")]


def test_a_class_without_heirs_has_none(glare: Client, name: str) -> None:
    assert _heirs(glare, f"{name}.Base") == {}
    assert glare.names(inherits=f"{name}.Base") == []


def test_classes_that_inherit_from_each_other_end(glare: Client, name: str) -> None:
    _publish(glare, "org.a", "1.0.0", {"One": f"{name}.Base"})
    _publish(glare, "org.a", "2.0.0", {"One": "org.b.Two"})
    _publish(glare, "org.b", "1.0.0", {"Two": "org.a.One"})

    assert set(_heirs(glare, f"{name}.Base")) == {"org.a.One", "org.b.Two"}
    # Each is an heir of the other, and of itself through it.
    assert set(_heirs(glare, "org.a.One")) == {"org.a.One", "org.b.Two"}


def test_heirs_are_what_a_list_call_would_show(
    glare: Client, admin: Client, as_user: Callable[[str], Client], name: str
) -> None:
    base = f"{name}.Base"
    _publish(glare, "org.own", "1.0.0", {"Own": base})
    _publish(admin, name, "1.0.0", {"Public": base}, public=True)
    draft = glare.create("org.draft").json()["id"]
    files = packages.files(packages.manifest("org.draft"))
    files["Classes/Thing.yaml"] = f"Name: org.draft.Thing\nExtends: {base}\n".encode()
    assert glare.upload(draft, packages.zipped(files)).status_code == 200

    assert set(_heirs(glare, base)) == {"org.own.Own", f"{name}.Public"}
    assert set(_heirs(as_user("strangers"), base)) == {f"{name}.Public"}
    assert set(_heirs(admin, base)) == {"org.own.Own", f"{name}.Public"}


@pytest.mark.parametrize(
    "parameters",
    [{}, {"class": ""}, {"class": "a.B", "other": "1"}, {"class": ["a.B", "a.C"]}],
)
def test_a_bad_query_is_refused(glare: Client, parameters: dict[str, Any]) -> None:
    answer = glare.query(PATH, parameters)

    assert answer.status_code == 400
    assert "class=NAME" in message(answer)


def test_only_get_is_answered(glare: Client) -> None:
    headers = {"X-Auth-Token": glare.token}
    answer = requests.post(glare.url + PATH, headers=headers, timeout=60)

    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")
