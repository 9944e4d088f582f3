# SPDX-License-Identifier: Apache-2.0

"""All subclasses of a class, from the real Glare."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests import packages
from tests.functional.client import SUBCLASSES, Client, message


def _subclasses(client: Client, class_name: str) -> dict[str, Any]:
    """Class -> its description."""
    answer = client.query(SUBCLASSES, {"class": class_name})
    assert answer.status_code == 200, answer.text
    assert answer.json()["class"] == class_name
    return {subclass.pop("class"): subclass for subclass in answer.json()["subclasses"]}


def _publish(
    client: Client, name: str, version: str, extends: dict[str, str], public: bool = False
) -> None:
    """A package whose classes extend others: class -> its base."""
    classes = {f"{name}.{subclass}": f"{subclass}.yaml" for subclass in extends}
    files = packages.files(packages.manifest(name, version, Classes=classes))
    for subclass, base in extends.items():
        text = f"Name: {name}.{subclass}\nExtends: {base}\n"
        files[f"Classes/{subclass}.yaml"] = text.encode()
    client.publish(name, version, packages.zipped(files), public)


def test_subclasses_are_found_through_any_number_of_packages(glare: Client, name: str) -> None:
    base = f"{name}.Base"
    _publish(glare, "org.a", "1.0.0", {"Store": base})
    _publish(glare, "org.a", "1.1.0", {"Store": base, "Other": "org.a.Store"})
    _publish(glare, "org.b", "1.0.0", {"Db": "org.a.Store"})
    _publish(glare, "org.c", "1.0.0-rc.1", {"Cluster": "org.b.Db", "Unrelated": f"{name}.Else"})

    assert _subclasses(glare, base) == {
        "org.a.Store": {"extends": [base], "packages": {"org.a": ["1.1.0", "1.0.0"]}},
        "org.a.Other": {"extends": ["org.a.Store"], "packages": {"org.a": ["1.1.0"]}},
        "org.b.Db": {"extends": ["org.a.Store"], "packages": {"org.b": ["1.0.0"]}},
        "org.c.Cluster": {"extends": ["org.b.Db"], "packages": {"org.c": ["1.0.0-rc.1"]}},
    }
    # The filter of a list call finds the direct ones.
    assert glare.names(inherits=base) == [("org.a", "1.0.0"), ("org.a", "1.1.0")]


def test_a_class_without_subclasses_has_none(glare: Client, name: str) -> None:
    assert _subclasses(glare, f"{name}.Base") == {}
    assert glare.names(inherits=f"{name}.Base") == []


def test_classes_that_inherit_from_each_other_end(glare: Client, name: str) -> None:
    _publish(glare, "org.a", "1.0.0", {"One": f"{name}.Base"})
    _publish(glare, "org.a", "2.0.0", {"One": "org.b.Two"})
    _publish(glare, "org.b", "1.0.0", {"Two": "org.a.One"})

    assert set(_subclasses(glare, f"{name}.Base")) == {"org.a.One", "org.b.Two"}
    # Each is a subclass of the other, and of itself through it.
    assert set(_subclasses(glare, "org.a.One")) == {"org.a.One", "org.b.Two"}


def test_subclasses_are_what_a_list_call_would_show(
    glare: Client, admin: Client, as_user: Callable[[str], Client], name: str
) -> None:
    base = f"{name}.Base"
    _publish(glare, "org.own", "1.0.0", {"Own": base})
    _publish(admin, name, "1.0.0", {"Public": base}, public=True)
    draft = glare.create("org.draft").json()["id"]
    files = packages.files(packages.manifest("org.draft"))
    files["Classes/Thing.yaml"] = f"Name: org.draft.Thing\nExtends: {base}\n".encode()
    assert glare.upload(draft, packages.zipped(files)).status_code == 200

    assert set(_subclasses(glare, base)) == {"org.own.Own", f"{name}.Public"}
    assert set(_subclasses(as_user("strangers"), base)) == {f"{name}.Public"}
    assert set(_subclasses(admin, base)) == {"org.own.Own", f"{name}.Public"}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "'class' is a required property"),
        ({"class": ""}, "class: ''"),
        ({"class": "a.B", "other": "1"}, "'other' was unexpected"),
        ({"class": ["a.B", "a.C"]}, "class: ['a.B', 'a.C'] is not of type 'string'"),
    ],
)
def test_a_bad_query_is_refused(glare: Client, parameters: dict[str, Any], words: str) -> None:
    answer = glare.query(SUBCLASSES, parameters)

    assert answer.status_code == 400
    assert words in message(answer)


def test_only_get_is_answered(glare: Client) -> None:
    headers = {"X-Auth-Token": glare.token}
    answer = requests.post(glare.url + SUBCLASSES, headers=headers, timeout=60)

    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")
