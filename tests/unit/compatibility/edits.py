# SPDX-License-Identifier: Apache-2.0

"""Random edits of real packages, as a developer or a mistake makes them.

Each edit takes a draft and a function that draws one of several values. It returns False if the
drawn class has nothing to edit in this way.
"""

import functools
import io
import pathlib
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import yaml

from glare_murano.package import Archive
from tests import prerequisites

T = TypeVar("T")
Draw = Callable[[Sequence[T]], T]

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "packages"

OPTIONAL = ["$", "$.int()", "$.string()", "$.class(Unknown)", "[$.int().notNull()]", "{}"]
CONTRACTS = [
    *OPTIONAL,
    "$.int().notNull().check($ > 0)",
    "$.string().check($ in list(a, b))",
    "$.class('io.murano.Object').owned()",
    "[$.string(), 1, 3]",
    "{a: $.int(), b: {c: $}}",
    "$.check($this.f($))",
    "$.upper()",
    "$.int(",
    "text",
]
USAGES = ["In", "Out", "InOut", "Const", "Runtime", "Static", "Config", "Action", "Extension", "x"]
JUNK = ["1", "true", "null", "text", "'$'", "$.x()", "[]", "{}", "[[a]]", "{a: [b]}", "{[a]: b}"]


def paths() -> list[pathlib.Path]:
    """The directories of the packages."""
    library = prerequisites.core_library()
    return [*sorted(EXAMPLES.glob("*/*/")), *sorted(library.glob("io.*"))]


@functools.cache
def files(path: pathlib.Path) -> dict[str, bytes]:
    """The files of a package that its interface depends on."""
    with Archive.open(path) as archive:
        return {
            name: archive.read(name, archive.size(name))
            for name in archive.paths
            if name == "manifest.yaml" or name.startswith("Classes/")
        }


class Draft:
    """A package that is edited."""

    def __init__(self, path: pathlib.Path) -> None:
        self.files = dict(files(path))
        self.manifest = yaml.safe_load(self.files["manifest.yaml"])
        self._documents: dict[str, list[yaml.Node]] = {}

    def pack(self) -> io.BytesIO:
        for name, nodes in self._documents.items():
            self.files[name] = yaml.serialize_all(nodes, Dumper=yaml.CSafeDumper).encode()
        self.files["manifest.yaml"] = yaml.safe_dump(self.manifest).encode()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, data in self.files.items():
                archive.writestr(name, data)
        return packed

    def documents(self, name: str) -> list[yaml.Node]:
        """The documents of a class file, which may be changed."""
        if name not in self._documents:
            found = yaml.compose_all(self.files[name], Loader=yaml.CSafeLoader)
            self._documents[name] = [node for node in found if isinstance(node, yaml.MappingNode)]
        return self._documents[name]

    def draw_class(self, draw: Draw[Any]) -> yaml.MappingNode:
        """One of the classes in the manifest."""
        name = draw(sorted(self.manifest["Classes"]))
        documents = self.documents(f"Classes/{self.manifest['Classes'][name]}")
        names = [str(getattr(_get(each, "Name"), "value", "")) for each in documents]
        short = [re.split("[.:]", each)[-1] for each in names]
        return documents[short.index(name.rpartition(".")[2])]


def node(text: str) -> yaml.Node:
    return yaml.compose(text, Loader=yaml.CSafeLoader) or yaml.ScalarNode(
        "tag:yaml.org,2002:null", ""
    )


def _get(mapping: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = mapping.value if isinstance(mapping, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _put(mapping: yaml.MappingNode, key: str, value: yaml.Node) -> None:
    _drop(mapping, key)
    mapping.value.append((yaml.ScalarNode("tag:yaml.org,2002:str", key), value))


def _drop(mapping: yaml.MappingNode, key: str) -> bool:
    before = len(mapping.value)
    mapping.value = [(name, value) for name, value in mapping.value if name.value != key]
    return len(mapping.value) < before


def _section(class_: yaml.MappingNode, key: str) -> yaml.MappingNode:
    found = _get(class_, key)
    if not isinstance(found, yaml.MappingNode):
        found = yaml.MappingNode("tag:yaml.org,2002:map", [])
        _put(class_, key, found)
    return found


def _draw_member(draft: Draft, draw: Draw[Any], key: str) -> Any:
    """A class's section and one of its entries, or None."""
    section = _get(draft.draw_class(draw), key)
    names = [name.value for name, _ in section.value] if section else []
    return (section, draw(names)) if names else None


def _draw_declaration(draft: Draft, draw: Draw[Any]) -> yaml.MappingNode | None:
    """A property or an argument."""
    class_ = draft.draw_class(draw)
    properties = _get(class_, "Properties")
    found = [value for _, value in properties.value] if properties else []
    methods = _get(class_, "Methods")
    for _, method in methods.value if methods else []:
        found += [value for argument in _arguments(method) for _, value in argument.value]
    found = [each for each in found if isinstance(each, yaml.MappingNode)]
    return draw(found) if found else None


def _arguments(method: yaml.Node) -> list[yaml.Node]:
    found = _get(method, "Arguments")
    is_list = isinstance(found, yaml.SequenceNode)
    return [each for each in found.value if each.value] if is_list else []


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    yield root
    if isinstance(root, yaml.MappingNode):
        for _, value in root.value:
            yield from _nodes(value)
    elif isinstance(root, yaml.SequenceNode):
        for value in root.value:
            yield from _nodes(value)


def add_class(draft: Draft, draw: Draw[Any]) -> bool:
    draft.manifest["Classes"]["org.added.Added"] = "Added.yaml"
    draft.files["Classes/Added.yaml"] = b"Name: org.added.Added\nMethods: {m: {}}\n"
    return True


def add_property(draft: Draft, draw: Draw[Any]) -> bool:
    declaration = node(f"{{Usage: {draw(USAGES[:7])}}}")
    _put(declaration, "Contract", node(draw(OPTIONAL)))
    _put(_section(draft.draw_class(draw), "Properties"), "added", declaration)
    return True


def add_method(draft: Draft, draw: Draw[Any]) -> bool:
    _put(_section(draft.draw_class(draw), "Methods"), "added", node("{Arguments: [a: {}]}"))
    return True


def add_argument(draft: Draft, draw: Draw[Any]) -> bool:
    found = _draw_member(draft, draw, "Methods")
    if found is None or found[1] == "destroy" or found[1].startswith("_"):
        return False  # not part of the interface
    method = _get(*found)
    arguments = _arguments(method) if method else []
    last = arguments[-1].value[0][1] if arguments else None
    if last is None or _get(last, "Usage"):
        return False
    _get(method, "Arguments").value.append(node(f"{{added: {{Contract: {draw(['$', '[]'])}}}}}"))
    return True


def remove_class(draft: Draft, draw: Draw[Any]) -> bool:
    classes = draft.manifest["Classes"]
    return bool(classes and classes.pop(draw(sorted(classes))))


def remove_member(draft: Draft, draw: Draw[Any]) -> bool:
    found = _draw_member(draft, draw, draw(["Properties", "Methods"]))
    return found is not None and _drop(*found)


def rename_member(draft: Draft, draw: Draw[Any]) -> bool:
    found = _draw_member(draft, draw, draw(["Properties", "Methods"]))
    if found is None:
        return False
    section, name = found
    value = _get(section, name)
    _drop(section, name)
    _put(section, f"{name}Renamed", value)
    return True


def remove_argument(draft: Draft, draw: Draw[Any]) -> bool:
    found = _draw_member(draft, draw, "Methods")
    arguments = _arguments(_get(*found)) if found else []
    if arguments:
        _get(_get(*found), "Arguments").value.remove(draw(arguments))
    return bool(arguments)


def reverse_arguments(draft: Draft, draw: Draw[Any]) -> bool:
    found = _draw_member(draft, draw, "Methods")
    arguments = _arguments(_get(*found)) if found else []
    if arguments:
        _get(_get(*found), "Arguments").value.reverse()
    return len(arguments) > 1


def change_declaration(draft: Draft, draw: Draw[Any]) -> bool:
    declaration = _draw_declaration(draft, draw)
    if declaration is None:
        return False
    key = draw(["Contract", "Contract", "Contract", "Usage", "Default", "Meta"])
    values = {"Contract": CONTRACTS, "Usage": [*USAGES, "VarArgs", "KwArgs"], "Default": JUNK}
    _put(declaration, key, node(draw(values.get(key, JUNK))))
    return True


def drop_key(draft: Draft, draw: Draw[Any]) -> bool:
    declaration = _draw_declaration(draft, draw)
    key = draw(["Contract", "Default", "Usage"])
    return declaration is not None and _drop(declaration, key)


def change_method(draft: Draft, draw: Draw[Any]) -> bool:
    found = _draw_member(draft, draw, "Methods")
    method = found and _get(*found)
    if not isinstance(method, yaml.MappingNode):
        return False
    key = draw(["Usage", "Scope", "Meta"])
    values = {"Usage": USAGES[5:], "Scope": ["Public", "Session", "x"]}
    _put(method, key, node(draw(values.get(key, JUNK))))
    return True


def change_class(draft: Draft, draw: Draw[Any]) -> bool:
    class_ = draft.draw_class(draw)
    key = draw(["Extends", "Usage", "Meta", "Cardinality", "Applies", "Inherited", "Import"])
    values = {"Extends": ["io.murano.Object", "[io.murano.Application, a.B]", "Unknown"]}
    _put(class_, key, node(draw(values.get(key, ["Meta", "Many", "true", *JUNK]))))
    return True


def break_something(draft: Draft, draw: Draw[Any]) -> bool:
    """Replace any value in the sections of a class."""
    class_ = draft.draw_class(draw)
    section = _get(class_, draw(["Properties", "Methods", "Meta"]))
    if section is None:
        return False
    target, value = draw(list(_nodes(section))), node(draw(JUNK))
    target.__class__, target.__dict__ = value.__class__, value.__dict__
    return True


def shuffle_keys(draft: Draft, draw: Draw[Any]) -> bool:
    """Reverse the keys of all mappings, but for arguments that are written as a mapping."""
    class_ = draft.draw_class(draw)
    in_order = {id(_get(each, "Arguments")) for each in _nodes(class_)}
    for each in _nodes(class_):
        if isinstance(each, yaml.MappingNode) and id(each) not in in_order:
            each.value.reverse()
    return True


def change_body(draft: Draft, draw: Draw[Any]) -> bool:
    found = _draw_member(draft, draw, "Methods")
    method = found and _get(*found)
    if not isinstance(method, yaml.MappingNode):
        return False
    _put(method, "Body", node("[$.added(), {Return: 1}]"))
    return True


def reverse_classes(draft: Draft, draw: Draw[Any]) -> bool:
    draft.manifest = dict(reversed(draft.manifest.items()))
    draft.manifest["Classes"] = dict(reversed(draft.manifest["Classes"].items()))
    return True


ADDITIONS = [add_class, add_property, add_method, add_argument]
REMOVALS = [remove_class, remove_member, rename_member, remove_argument]
CHANGES = [
    reverse_arguments,
    change_declaration,
    drop_key,
    change_method,
    change_class,
    break_something,
]
NEUTRAL = [shuffle_keys, change_body, reverse_classes]
ALL = [*ADDITIONS, *REMOVALS, *CHANGES, *NEUTRAL]
