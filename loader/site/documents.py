# SPDX-License-Identifier: Apache-2.0

"""Read the content of a release that its pages show, from the archive of the release.

The result is called a document. It is JSON, and is stored beside the pages. So the next rendering
reads only the archives that have changed. No code of the package runs.
"""

import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from glare_murano.package import (
    Archive,
    Contents,
    InvalidPackage,
    read_contents,
    safe_yaml,
)
from glare_murano.package.contents import image_type
from glare_murano.package.hot.template import TEMPLATE_FILE, Template
from glare_murano.package.safe_yaml import MAX_SIZE
from glare_murano.package.ui_form import FormCheck
from glare_murano.package.ui_form.form_report import snake_case
from loader import fs
from loader.compatibility import contracts
from loader.compatibility.changes import Part
from loader.compatibility.compare import compare_interfaces
from loader.compatibility.declarations import Class, Declaration, Method
from loader.compatibility.interface import Interface, read_interface
from loader.compatibility.members import must_be_given
from loader.compatibility.nodes import entries, flow, is_null, text, values

Document = dict[str, Any]

_HEAT = "Heat.HOT"
# The metadata classes of the core library with texts for users -> the key in a document.
_TEXTS = {"io.murano.metadata.Title": "title", "io.murano.metadata.Description": "description"}
# The attributes of a field that limit its value -> the words before the limit.
_RULES = {
    "choices": "one of",
    "regexp_validator": "matches",
    "min_length": "characters: at least",
    "max_length": "characters: at most",
    "min_value": "at least",
    "max_value": "at most",
}
# The longest text on a page, and the longest document of a release, in characters. Aliases in YAML
# can repeat a long text many times.
_MAX_TEXT = 2000
_MAX_DOCUMENT = 4 * 1024**2
# The largest number of changes in a document.
_MAX_CHANGES = 200


def read(path: pathlib.Path, logo: pathlib.Path) -> tuple[Document, Interface | None]:
    """Read a release, and write its logo into a file.

    :param path: the archive or the directory of the release.
    :param logo: the path of the file for the logo. A suffix for the format of the logo is added.
    :returns: the document, and the interface, which ``changes`` compares with another release. If
        the package cannot be read, the document has only the key ``problems``, and the interface is
        None.
    """
    try:
        with Archive.open(path) as archive:
            contents = read_contents(archive, form_check=FormCheck.WARN)
            document = _of_contents(contents)
            if contents.manifest.format.name == _HEAT:
                document["template"] = _template(archive)
        interface = read_interface(path)
        document["classes"] = [_class(each) for each in interface.classes.values()]
        size = len(json.dumps(document))
    except InvalidPackage as error:
        return {"problems": [_short(str(problem)) for problem in error.problems[:100]]}, None
    except (OSError, MemoryError) as error:
        # The next rendering may succeed.
        return {"problems": [str(error) or repr(error)], "is_temporary": True}, None
    except Exception as error:
        # No package, however odd, may keep the others from having pages.
        return {"problems": [_short(str(error) or repr(error))]}, None
    if size > _MAX_DOCUMENT:
        problem = f"Its pages would show {size} characters, and at most {_MAX_DOCUMENT} are shown."
        return {"problems": [problem]}, None
    if path.is_file():
        document |= {"size": path.stat().st_size, "digest": fs.digest(path)}
    if contents.logo is not None:
        document["logo"] = f"logo.{image_type(contents.logo).removeprefix('image/')}"
        logo.parent.mkdir(parents=True, exist_ok=True)
        logo.with_name(document["logo"]).write_bytes(contents.logo)
    return document, interface


def changes(old: Interface, new: Interface) -> Document:
    """Compare two releases of a package, and return the changes for the document of the newer one.

    The result also says whether the new version number fits the changes. If the releases cannot be
    compared, it says why, and has no changes.
    """
    try:
        found = compare_interfaces(old, new)
    except Exception as error:
        return {"verdict": f"The versions cannot be compared: {error}", "changes": []}
    return {
        "since": str(found.old_version),
        "verdict": str(found.verdict),
        "changes": [
            {"part": str(each.part), "class": each.class_name, "text": _short(each.message)}
            for each in found.changes[:_MAX_CHANGES]
        ],
        "breaking": sum(each.part is Part.MAJOR for each in found.changes),
        "more": max(0, len(found.changes) - _MAX_CHANGES),
    }


def _of_contents(contents: Contents) -> Document:
    manifest = contents.manifest
    return {
        "display_name": _short(manifest.display_name),
        "description": _short(manifest.description),
        "author": _short(manifest.author),
        "supplier": {key: _short(value) for key, value in manifest.supplier.items()},
        "tags": [*map(_short, manifest.tags)],
        "type": manifest.package_type,
        "format": str(manifest.format),
        "requirements": {
            fqn: spec.text for fqn, spec in contents.requirements.items() if fqn != manifest.fqn
        },
        "warnings": [_short(str(problem)) for problem in contents.warnings[:100]],
        "form": [*_form(contents.ui)] if contents.ui is not None else [],
    }


def _template(archive: Archive) -> Document:
    data = archive.read(TEMPLATE_FILE, MAX_SIZE)
    template = Template.parse(data)
    outputs = values(values(safe_yaml.compose(data, TEMPLATE_FILE)).get("outputs"))
    return {
        "parameters": [
            {
                "name": _short(each.name),
                "type": str(each.kind),
                "title": _short(each.label or ""),
                "description": _short(each.description or ""),
                "default": _short(str(each.default)) if each.has_default else None,
            }
            for each in template.parameters.values()
        ],
        "outputs": [
            {
                "name": _short(name),
                "description": _short(text(values(outputs.get(name)).get("description"), "")),
            }
            for name in template.outputs
        ],
    }


def _form(data: bytes) -> Iterator[Document]:
    """Yield the steps of a form, each with its fields. Yield nothing if the form is unreadable."""
    try:
        root = safe_yaml.compose(data, "form")
    except InvalidPackage:
        return
    forms = values(root).get("Forms")
    for step in forms.value if isinstance(forms, yaml.SequenceNode) else ():
        for name, (_, content) in entries(step).items():
            fields = values(content).get("fields")
            listed = fields.value if isinstance(fields, yaml.SequenceNode) else ()
            yield {"name": _short(name), "fields": [_field(values(each)) for each in listed]}


def _field(keys: Mapping[str, yaml.Node]) -> Document:
    written = {snake_case(key): node for key, node in keys.items()}
    found = {
        key: _short(text(written.get(key), "")) for key in ("name", "type", "label", "description")
    }
    return {
        **found,
        "description": found["description"] or _short(text(written.get("help_text"), "")),
        "required": _short(text(written.get("required"), "true").lower()),
        "default": _short(flow(written["initial"])) if "initial" in written else "",
        "rules": [*map(_short, _rules(written))],
    }


def _rules(written: Mapping[str, yaml.Node]) -> Iterator[str]:
    """Describe the rules for the value of a field: limits, choices, and messages of validators.

    :param written: the attributes of the field, by name.
    """
    for key, words in _RULES.items():
        if key in written:
            yield f"{words} {flow(written[key])}"
    validators = written.get("validators")
    for each in validators.value if isinstance(validators, yaml.SequenceNode) else ():
        if message := text(values(each).get("message"), ""):
            yield message


def _class(each: Class) -> Document:
    return {
        "name": each.name,
        "bases": [*each.bases],
        "usage": each.usage,
        "file": each.place.file,
        "line": each.place.line,
        **_texts(each.metadata),
        "metadata": [*_metadata(each.metadata)],
        "properties": [_declaration(one) for one in each.properties.values()],
        "initializer": [_declaration(one) for one in each.initializer.values()],
        "methods": [_method(one) for one in each.methods.values()],
    }


def _method(method: Method) -> Document:
    return {
        "name": method.name,
        "usage": method.usage,
        "public": method.is_public,
        "arguments": [_declaration(one) for one in method.arguments],
        **_texts(method.metadata),
        "metadata": [*_metadata(method.metadata)],
    }


def _declaration(one: Declaration) -> Document:
    return {
        "name": one.name,
        "usage": one.usage,
        "contract": _short(one.written_contract()),
        "classes": [*dict.fromkeys(contracts.type_names(one.read_contract()))],
        "default": None
        if is_null(one.default) or one.default is None
        else _short(flow(one.default)),
        "required": must_be_given(one),
        **_texts(one.metadata),
        "metadata": [*_metadata(one.metadata)],
    }


def _texts(metadata: Iterable[Any]) -> dict[str, str]:
    """Return the title and the description for users, from the metadata of a class or a member.

    A text that the metadata does not contain is left out.
    """
    found = {}
    for name, properties in metadata:
        if name in _TEXTS and isinstance(properties, frozenset):
            given = {key[1]: value[1] for key, value in properties if _is_text(key, value)}
            if "text" in given:
                found[_TEXTS[name]] = _short(str(given["text"]))
    return found


def _metadata(metadata: Iterable[Any]) -> Iterator[str]:
    """Yield the attached metadata other than texts for users: name of the class, and properties."""
    for name, properties in sorted(metadata, key=lambda each: str(each[0])):
        if name not in _TEXTS:
            given = _given(properties)
            yield _short(name if given in ("null", "{}") else f"{name}: {given}")


def _given(value: Any) -> str:
    """Write a value that ``nodes.frozen`` has made.

    :param value: a frozenset of pairs for a mapping, a tuple for a list, and a pair of a type and a
        value for a scalar.
    """
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(f"{_given(key)}: {_given(one)}" for key, one in value)) + "}"
    if isinstance(value, tuple) and not (len(value) == 2 and isinstance(value[0], str)):
        return "[" + ", ".join(map(_given, value)) + "]"
    plain = value[1] if isinstance(value, tuple) else value
    if plain is None or isinstance(plain, bool):
        return "null" if plain is None else str(plain).lower()
    return str(plain)


def _is_text(key: Any, value: Any) -> bool:
    return isinstance(key, tuple) and isinstance(value, tuple) and len(key) == len(value) == 2


def _short(text: str) -> str:
    """Return a text, of which the end is left out if it is too long for a page."""
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
