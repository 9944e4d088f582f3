# SPDX-License-Identifier: Apache-2.0

"""All subclasses of a class, from the real Glare."""

import re
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest

from tests import packages
from tests.functional.client import SUBCLASSES, Client, refusal


def _subclasses(client: Client, class_name: str, **parameters: str) -> dict[str, Any]:
    """Class -> its description."""
    answer = client.query(SUBCLASSES, {"class": class_name, **parameters})
    assert answer.status_code == 200, answer.text
    assert answer.json()["class"] == class_name
    return {subclass.pop("class"): subclass for subclass in answer.json()["subclasses"]}


def _publish(
    client: Client,
    name: str,
    version: str,
    extends: dict[str, str],
    require: dict[str, str] | None = None,
    public: bool = False,
) -> None:
    """A package whose classes extend others: class -> its base.

    :param require: by default any version of the packages of the bases.
    """
    classes = {f"{name}.{subclass}": f"{subclass}.yaml" for subclass in extends}
    if require is None:
        require = {base.rpartition(".")[0]: "*" for base in extends.values()}
        require.pop(name, None)
    manifest = packages.manifest(name, version, Classes=classes, Require=require)
    files = packages.files(manifest)
    for subclass, base in extends.items():
        text = f"Name: {name}.{subclass}\nExtends: {base}\n"
        files[f"Classes/{subclass}.yaml"] = text.encode()
    client.publish(name, version, packages.zipped(files), public)


@pytest.fixture
def base(glare: Client, name: str) -> str:
    """A class in two versions of a package."""
    for version in ("1.0.0", "2.0.0"):
        _publish(glare, name, version, {"Base": "io.murano.Thing"})
    return f"{name}.Base"


def test_subclasses_are_found_through_any_number_of_packages(glare: Client, base: str) -> None:
    _publish(glare, "org.a", "1.0.0", {"Store": base})
    _publish(glare, "org.a", "1.1.0", {"Store": base, "Other": "org.a.Store"})
    _publish(glare, "org.b", "1.0.0", {"Db": "org.a.Store"})
    _publish(glare, "org.c", "1.0.0-rc.1", {"Cluster": "org.b.Db", "Unrelated": "io.murano.Thing"})

    assert _subclasses(glare, base) == {
        "org.a.Store": {"extends": [base], "packages": {"org.a": ["1.1.0", "1.0.0"]}},
        "org.a.Other": {"extends": ["org.a.Store"], "packages": {"org.a": ["1.1.0"]}},
        "org.b.Db": {"extends": ["org.a.Store"], "packages": {"org.b": ["1.0.0"]}},
        "org.c.Cluster": {"extends": ["org.b.Db"], "packages": {"org.c": ["1.0.0-rc.1"]}},
    }
    # The filter of a list call finds the direct ones.
    assert glare.names(inherits=base) == [("org.a", "1.0.0"), ("org.a", "1.1.0")]


def test_a_class_without_subclasses_has_none(glare: Client, base: str) -> None:
    assert _subclasses(glare, base) == {}
    assert _subclasses(glare, f"{base}.Unknown") == {}


def test_a_base_counts_only_in_the_versions_that_a_package_requires(
    glare: Client, name: str, base: str, set_option: Callable[[str, object], None]
) -> None:
    set_option("check_requirements", "warn")
    _publish(glare, "org.old", "1.0.0", {"Old": base}, {name: "1"})
    _publish(glare, "org.new", "1.0.0", {"New": base}, {name: ">=2"})
    _publish(glare, "org.new", "1.1.0", {"New": base}, {name: "*"})
    # It extends Old in a version that does not exist, and a class of what it does not require.
    _publish(glare, "org.old", "2.0.0", {"Other": "io.murano.Thing"}, {})
    _publish(glare, "org.far", "1.0.0", {"Far": "org.old.Old"}, {"org.old": "2"})
    _publish(glare, "org.lone", "1.0.0", {"Lone": base}, {})

    def found(**parameters: str) -> dict[str, Any]:
        return {
            subclass.rpartition(".")[2]: each["packages"][subclass.rpartition(".")[0]]
            for subclass, each in _subclasses(glare, base, **parameters).items()
        }

    assert found() == {"Old": ["1.0.0"], "New": ["1.1.0", "1.0.0"]}
    assert found(version="1.0.0") == {"Old": ["1.0.0"], "New": ["1.1.0"]}
    assert found(version=">=2,<3", package=name) == {"New": ["1.1.0", "1.0.0"]}
    assert found(version="3") == found(package="org.old") == {}


def test_a_page_says_where_it_ends_and_leads_to_the_next(glare: Client, base: str) -> None:
    _publish(glare, "org.a", "1.0.0", {f"C{number}": base for number in range(5)})

    answer = glare.query(SUBCLASSES, {"class": base, "version": "1", "limit": "2"}).json()
    pages = [answer["subclasses"]]
    while "next" in answer:
        path, _, query = answer["next"].partition("?")
        answer = glare.query(path, dict(urllib.parse.parse_qsl(query))).json()
        pages.append(answer["subclasses"])

    assert [[each["class"] for each in page] for page in pages] == [
        ["org.a.C0", "org.a.C1"],
        ["org.a.C2", "org.a.C3"],
        ["org.a.C4"],
    ]
    assert set(_subclasses(glare, base, marker="org.a.C3")) == {"org.a.C4"}


def test_the_operator_limits_pages(
    glare: Client, base: str, set_option: Callable[[str, object], None]
) -> None:
    _publish(glare, "org.a", "1.0.0", {f"C{number}": base for number in range(3)})
    set_option("max_subclasses", 2)

    page = glare.query(SUBCLASSES, {"class": base, "limit": "100"}).json()
    assert [each["class"] for each in page["subclasses"]] == ["org.a.C0", "org.a.C1"]
    assert "marker=org.a.C1" in page["next"]


def test_a_base_in_an_older_version_of_the_package_counts_if_it_is_required(
    glare: Client, base: str, name: str, set_option: Callable[[str, object], None]
) -> None:
    set_option("check_requirements", "warn")
    child = {"Child": base}
    for version, require in (("3.0.0", {name: "2"}), ("4.0.0", {}), ("4.1.0", {name: ">=2"})):
        _publish(glare, name, version, child, require)

    assert _subclasses(glare, base)[f"{name}.Child"]["packages"] == {name: ["3.0.0"]}


def test_a_missing_older_version_of_the_package_is_a_missing_requirement(
    glare: Client, name: str
) -> None:
    artifact = glare.create(name, "2.0.0").json()["id"]
    assert glare.upload(artifact, packages.package(name, "2.0.0", Require={name: "1"})).ok

    refused = refusal(glare.set(artifact, "status", "active"), 409)
    assert f"requirements of {name} 2.0.0: {name} in the range 1" in refused
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    assert glare.set(artifact, "status", "active").ok


def test_classes_that_inherit_from_each_other_end(glare: Client, base: str) -> None:
    _publish(glare, "org.a", "1.0.0", {"One": base})
    two = glare.create("org.b", "1.0.0").json()["id"]
    files = packages.content("org.b", Classes={"org.b.Two": "Two.yaml"})
    files["manifest.yaml"] += b"Require: {org.a: '*'}\n"
    files["Classes/Two.yaml"] = b"Name: org.b.Two\nExtends: org.a.One\n"
    assert glare.upload(two, packages.zipped(files)).status_code == 200
    assert glare.set(two, "status", "active").status_code == 200
    _publish(glare, "org.a", "2.0.0", {"One": "org.b.Two"})

    assert set(_subclasses(glare, base)) == {"org.a.One", "org.b.Two"}
    # Each is a subclass of the other, and of itself through it.
    assert set(_subclasses(glare, "org.a.One")) == {"org.a.One", "org.b.Two"}


def test_subclasses_are_what_a_list_call_would_show(
    glare: Client, admin: Client, as_user: Callable[[str], Client], name: str
) -> None:
    base = f"{name}.base.Base"
    _publish(admin, f"{name}.base", "1.0.0", {"Base": "io.murano.Thing"}, public=True)
    _publish(glare, f"{name}.own", "1.0.0", {"Own": base})
    _publish(admin, name, "1.0.0", {"Public": base}, public=True)
    draft = glare.create("org.draft").json()["id"]
    archive = packages.extending("org.draft", base, Require={f"{name}.base": "1"})
    assert glare.upload(draft, archive).status_code == 200

    assert set(_subclasses(glare, base)) == {f"{name}.own.Own", f"{name}.Public"}
    assert set(_subclasses(as_user("strangers"), base)) == {f"{name}.Public"}
    assert set(_subclasses(admin, base)) == {f"{name}.own.Own", f"{name}.Public"}


def test_a_list_past_its_time_is_refused_with_the_step_where_it_stopped(
    glare: Client, name: str, set_option: Callable[[str, object], None]
) -> None:
    links = {f"C{number}": f"{name}.C{number - 1}" for number in range(1, 100)}
    _publish(glare, name, "1.0.0", {"C0": "io.murano.Thing", **links})
    assert glare.query(SUBCLASSES, {"class": f"{name}.C0"}).status_code == 200
    set_option("plan_seconds", 0.001)

    refused = refusal(glare.query(SUBCLASSES, {"class": f"{name}.C0"}), 400)

    assert re.fullmatch(
        r"\w.* stopped( at .+)?, after 0\.001 seconds; request those of another class, or raise "
        r"the option plan_seconds",
        refused,
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "'class' is a required property"),
        ({"class": ""}, "class: ''"),
        ({"class": "a b"}, "class: 'a b' is not a valid name"),
        ({"class": "a.B", "package": "a-b"}, "package: 'a-b' is not a valid name"),
        ({"class": "a.B", "version": "one"}, "version: 'one' is not a valid range"),
        ({"class": "a.B", "marker": "."}, "marker: '.' is not a valid name"),
        ({"class": "a.B", "limit": "0"}, "limit: expected a number from 1 to 1000, found '0'"),
        ({"class": "a.B", "limit": "many"}, "limit: expected a number from 1 to 1000"),
        ({"class": "a.B", "other": "1"}, "'other' was unexpected"),
        ({"class": ["a.B", "a.C"]}, "class: ['a.B', 'a.C'] is not of type 'string'"),
    ],
)
def test_a_bad_query_is_refused(glare: Client, parameters: dict[str, Any], words: str) -> None:
    assert words in refusal(glare.query(SUBCLASSES, parameters), 400)
