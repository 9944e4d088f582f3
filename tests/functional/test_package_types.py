# SPDX-License-Identifier: Apache-2.0

"""What package types generate, stored by the real Glare."""

import pathlib
from collections.abc import Callable

import pytest

from glare_murano.package.manifest import FUNCTION_NAMESPACE, PLUGIN_NAMESPACE
from tests import packages
from tests.functional.client import Client, message, refusal
from tests.functional.conftest import CORE, CORE_VERSION
from tests.plugins import Site, site

pytestmark = pytest.mark.programs

__all__ = ["site"]

PLUGIN = """
import time
from glare_murano.package import Description

FORM = "Application: {'?': {type: a.B}}"

def describe(manifest, archive):
    names = archive.read("names.txt", 1000).decode().split()
    if "fail" in names:
        raise RuntimeError("the plug-in's own trouble")
    if "hang" in names:
        time.sleep(60)
    classes = {f"{manifest.fqn}.{name}": ["io.murano.Application"] for name in names}
    required = {"io.murano": "0.0", **manifest.document.get("Require", {})}
    keys = {"Name": "Names", "Tags": sorted(names), "Type": "Library", "Description": "Drawn."}
    return Description(classes, required, FORM, keys, archive.read("drawn.gif", 9))
"""

HOT = b"heat_template_version: 2013-05-23\nresources: {}\nparameters: {size: {type: number}}\n"


@pytest.fixture
def plug_in(site: Site) -> None:
    point = {FUNCTION_NAMESPACE: {"Test.Names/1.0": "names_plugin:describe"}}
    site.install("names", "1.0", point, {"names_plugin": PLUGIN})


def _package(name: str, names: str, **keys: object) -> bytes:
    content = packages.manifest(name, Format="Test.Names/1", Classes=None, **keys)
    files = {**packages.files(content), "names.txt": names.encode(), "drawn.gif": b"GIF89a..."}
    return packages.zipped(files)


@pytest.mark.usefixtures("plug_in")
def test_what_a_plug_in_generates_is_stored(glare: Client, name: str) -> None:
    artifact = glare.publish(name, "1.0.0", _package(name, "A B"))

    assert artifact["class_definitions"] == [f"{name}.A", f"{name}.B"]
    assert artifact["inherits"] == {"io.murano.Application": f"{name}.A,{name}.B"}
    # The type's own default for the core library.
    assert artifact["requirements"] == {CORE: "0.0", name: "1"}
    form = glare.request("GET", f"/{artifact['id']}/ui_definition")
    content_type = form.headers["Content-Type"]
    assert (form.text, content_type) == ("Application: {'?': {type: a.B}}", "application/x-yaml")
    assert glare.names(class_definitions=f"{name}.B") == [(name, "1.0.0")]
    assert (artifact["display_name"], sorted(artifact["tags"])) == ("Names", ["A", "B"])
    assert (artifact["type"], artifact["description"]) == ("Library", "Drawn.")
    assert artifact["keywords"] == ["a", "b", "names"]
    assert glare.request("GET", f"/{artifact['id']}/logo").content == b"GIF89a..."
    (found,) = [
        release
        for release in glare.resolve(requirements={name: "1"}).json()["releases"]
        if release["name"] == CORE
    ]
    assert (found["version"], found["required_by"][0]["range"]) == (CORE_VERSION, "0.0")


def test_requirements_and_base_classes_that_a_plug_in_generates_are_checked(
    glare: Client, name: str, site: Site
) -> None:
    library = f"{name}.library"
    code = PLUGIN.replace('"io.murano": "0.0"', f'"{library}": "1"')
    base = f"io.murano.Application' if manifest.fqn == '{library}' else '{library}.A"
    code = code.replace('["io.murano.Application"]', f"['{base}']")
    point = {FUNCTION_NAMESPACE: {"Test.Names/1.0": "names_plugin:describe"}}
    site.install("names", "1.0", point, {"names_plugin": code})
    draft = glare.draft(name, "1.0.0", _package(name, "A"))

    refused = glare.set(draft, "status", "active")
    # The base class is generated as well.
    required = glare.publish(library, "1.0.0", _package(library, "A B"))
    accepted = glare.set(draft, "status", "active")
    deleted = glare.delete(required["id"])

    assert (refused.status_code, f"{library} in the range 1" in message(refused)) == (409, True)
    assert accepted.status_code == 200, accepted.text
    assert (deleted.status_code, "[requirement-last]" in message(deleted)) == (409, True)


@pytest.mark.usefixtures("plug_in")
def test_a_manifest_overrides_the_types_default_for_the_core_library(
    glare: Client, name: str
) -> None:
    artifact = glare.publish(name, "1.0.0", _package(name, "A", Require={CORE: ">=0.0.1"}))

    assert artifact["requirements"] == {CORE: ">=0.0.1", name: "1"}


def test_a_heat_templates_form_and_class_are_stored(glare: Client, name: str) -> None:
    keys = {"Format": "Heat.HOT/1.0", "Type": "Application", "Classes": None}
    files = packages.content(name, more={"template.yaml": HOT}, **keys)

    artifact = glare.publish(name, "1.0.0", packages.zipped(files))

    assert artifact["inherits"] == {"io.murano.Application": name}
    assert '"name": "size"' in glare.request("GET", f"/{artifact['id']}/ui_definition").text


def test_a_form_of_its_own_is_stored_and_an_invalid_template_refused(
    glare: Client, name: str
) -> None:
    keys = {"Format": "Heat.HOT/1.0", "Type": "Application", "Classes": None}
    files = packages.content(name, more={"UI/ui.yaml": packages.FORM}, **keys)
    artifact_id = glare.create(name).json()["id"]

    wrong = glare.upload(artifact_id, packages.zipped({**files, "template.yaml": b"outputs: {}"}))
    right = glare.upload(artifact_id, packages.zipped({**files, "template.yaml": HOT}))

    assert (wrong.status_code, right.status_code) == (400, 200)
    assert message(wrong).endswith("there is no section 'resources' [template-resources]")
    assert glare.request("GET", f"/{artifact_id}/ui_definition").content == packages.FORM


@pytest.mark.usefixtures("plug_in")
@pytest.mark.parametrize(
    ("names", "status", "words"),
    [
        ("fail", 500, "the package type Test.Names/1.0.0 failed; see the log"),
        ("hang", 400, "reading it took more than 1 seconds of processor time, or more than 3"),
        ("no-name", 400, "'{name}.no-name' is not a valid name"),
    ],
)
def test_a_failure_refuses_the_upload_and_leaves_nothing(
    glare: Client,
    name: str,
    state_dir: pathlib.Path,
    set_option: Callable[[str, object], None],
    names: str,
    status: int,
    words: str,
) -> None:
    set_option("max_reading_seconds", 1 if names == "hang" else 20)
    artifact_id = glare.create(name).json()["id"]
    stored = set((state_dir / "blobs").iterdir())

    refused = glare.upload(artifact_id, _package(name, names))

    assert (refused.status_code, words.format(name=name) in message(refused)) == (status, True)
    assert "trouble" not in refused.text
    assert "Traceback" not in refused.text
    artifact = glare.show(artifact_id)
    assert (artifact["archive"], artifact["class_definitions"]) == (None, [])
    assert set((state_dir / "blobs").iterdir()) == stored
    set_option("max_reading_seconds", 20)
    assert glare.upload(artifact_id, _package(name, "A")).status_code == 200


def test_a_type_without_a_function_needs_its_classes_listed(
    glare: Client, name: str, site: Site
) -> None:
    site.install("names", "1.0", {PLUGIN_NAMESPACE: {"Test.Names/1.0": "no.such:Class"}}, {})
    artifact_id = glare.create(name).json()["id"]

    refused = refusal(glare.upload(artifact_id, _package(name, "A")), 400)

    assert refused.startswith("Classes: has to list the classes, since no function is ")
    content = packages.manifest(name, Format="Test.Names/1", Classes={f"{name}.A": "generated"})
    listed = packages.zipped(packages.files(content))
    assert glare.upload(artifact_id, listed).status_code == 200
    assert glare.show(artifact_id)["class_definitions"] == [f"{name}.A"]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("1.5", "'1.5' is newer than MuranoPL/1.4.0, the newest version of this package type "),
        ("muranopl/1.0", "'muranopl/1.0' is unknown; did you mean MuranoPL/1.0.0?"),
    ],
)
def test_an_unknown_format_is_refused_with_a_hint(
    glare: Client, name: str, written: str, words: str
) -> None:
    artifact_id = glare.create(name).json()["id"]

    refused = glare.upload(artifact_id, packages.package(name, Format=written))

    assert (refused.status_code, words in message(refused)) == (400, True)
