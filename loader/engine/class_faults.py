# SPDX-License-Identifier: Apache-2.0

"""Find the wrong part of a class file, its line, and the reason.

Murano 16 reports neither the part nor the reason: for ``{$a: 1, $b: 2}`` in a method's body, the
message of its error is ``None``. Here, an error gets a ``Trace`` with the keys that lead to the
wrong part of the class. The file is then parsed again, and the keys are looked up in it to find the
line.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml
from murano.dsl import exceptions, namespace_resolver, yaql_expression, yaql_integration
from yaql.language.exceptions import YaqlParsingException

from glare_murano.package import InvalidPackage, safe_yaml
from glare_murano.package.errors import shown
from glare_murano.package.safe_yaml import kind, line_of

# Keys and methods for which Murano has a second name.
_ALIASES = {"Methods": "Workflow", ".init": "initialize", ".destroy": "destroy"}

# Errors of Python, whose messages do not explain what is wrong in the class.
_BARE = (AttributeError, IndexError, KeyError, TypeError)


@dataclasses.dataclass
class Trace:
    """The place of an error in a class: the keys and the statements that contain it.

    :ivar document: the line where the class begins in its file; 0 if unknown.
    :ivar namespaces: Murano's resolver of the names in the class.
    :ivar keys: the keys that contain the error, such as ``Properties`` and ``size``, the outermost
        first.
    :ivar statements: the statement with the error, and then the blocks around it.
    """

    document: int = 0
    namespaces: Any = None
    keys: list[str] = dataclasses.field(default_factory=list)
    statements: list[object] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, error: Exception) -> "Trace":
        """Return the trace of an error. If the error has none, add an empty trace to the error."""
        found: Trace = error.__dict__.setdefault("_trace", cls())
        return found

    def enter_class(self, data: Any, namespaces: Any) -> None:
        """Record the class that contains the error.

        :param data: the class as Murano's parser returns it.
        :param namespaces: Murano's resolver of the names in the class.
        """
        position = getattr(data, "source_file_position", None)
        self.document = position.start_line if position else 0
        self.namespaces = namespaces

    def enter(self, *keys: str) -> None:
        """Put the keys of a part in front of the recorded keys.

        An error passes the innermost part first. So each part contains the parts that were recorded
        before.
        """
        self.keys[:0] = keys


def traced(function: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    """Wrap a function of Murano, so that each error that it raises gets a ``Trace``.

    :param note: a function that records in the trace which part of the class the wrapped function
        was reading; it gets the trace, and the arguments of the wrapped function.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            note(Trace.of(error), *args, **kwargs)
            raise

    return call


def check_contract(spec: object) -> None:
    """Refuse a contract with a string that begins with ``$`` and is not a valid expression.

    :raises DslContractSyntaxError: for such a string.
    """
    if isinstance(spec, dict):
        spec = [*spec, *spec.values()]
    if isinstance(spec, list):
        for part in spec:
            check_contract(part)
    elif isinstance(spec, str) and spec.startswith("$"):
        error = exceptions.DslContractSyntaxError(_not_yaql(spec))
        Trace.of(error).enter("Contract")
        raise error


@dataclasses.dataclass(frozen=True)
class _Fault:
    """The wrong part of a class file.

    :ivar line: the line of the part; 0 if unknown.
    :ivar label: the keys that lead to the part, joined by dots.
    :ivar reason: what is wrong; empty if the error's own message says it.
    """

    line: int
    label: str
    reason: str = ""

    def text(self, reason: str) -> str:
        label = f"{self.label}: " if self.label else ""
        return f"{f':{self.line}' if self.line else ''}: {label}{self.reason or reason}"


def explain(code: str | bytes, error: Exception) -> str:
    """Return where an error is in a class file, and why it occurs.

    :param code: the content of the file.
    :returns: the end of a message that begins with the file's name: the line, the part of the
        class, and the reason, as ``:3: Properties.size: ...``.
    """
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return _Fault(mark.line + 1 if mark else 0, "").text(f"not valid YAML: {error.problem}")
    try:
        data = code.encode() if isinstance(code, str) else code
        nodes, _ = safe_yaml.compose_all(data, "")
    except InvalidPackage:
        return _Fault(0, "").text(reason(error))
    find = _tagged if isinstance(error, YaqlParsingException) else _find
    fault = find(nodes, error) if nodes else _Fault(0, "")
    return fault.text(reason(error))


def reason(error: Exception) -> str:
    """Return the message of an error; return its type if the message is empty.

    For errors of Python such as ``KeyError``, the type is put in front of the message, unless the
    message is about the prefix of a namespace.
    """
    text = str(error.args[0]) if error.args else ""
    if isinstance(error, _BARE) and "prefix" not in text:
        return f"{type(error).__name__}: {text}"
    return shown(text) or type(error).__name__


def _tagged(nodes: list[yaml.Node], _: Exception) -> _Fault:
    """Find the expression with the tag ``!yaql`` that cannot be parsed.

    :returns: a fault without a line if all these expressions can be parsed.
    """
    scalars = itertools.chain.from_iterable(map(_scalars, nodes))
    tagged = (node for node in scalars if node.tag == safe_yaml.YAQL)
    wrong = ((line_of(node), _not_yaql(node.value)) for node in tagged)
    return next((_Fault(line, "", why) for line, why in wrong if why), _Fault(0, ""))


def _find(nodes: list[yaml.Node], error: Exception) -> _Fault:
    trace = Trace.of(error)
    documents = [node for node in nodes if line_of(node) == trace.document] or nodes
    if isinstance(error, (*_BARE, exceptions.DslSyntaxError)):
        for fault in itertools.chain.from_iterable(map(_wrong_shapes, documents)):
            return fault
    for document in documents:
        if wrong := _wrong_name(document, trace.namespaces, error):
            return wrong
    return _descend(documents, trace, str(error))


def _descend(documents: list[yaml.Node], trace: Trace, message: str) -> _Fault:
    """Follow the keys of a trace into the file, and return the fault where they end.

    :param documents: the YAML documents of the class.
    :param message: the message of the error. If it mentions a key in the part where the keys of the
        trace end, the fault has the line of the mentioned key.
    """
    node, line = documents[0], trace.document
    labels = []
    for key in trace.keys:
        found = _child(node, key) or _child(node, _ALIASES.get(key, key))
        if found is None:
            break
        (written, node), line = found, line_of(found[0])
        labels.append(written.value)
    if trace.statements:
        line = _line_of_statement(node, trace.statements[0]) or line
        return _Fault(line, ".".join(labels), _wrong_statement(trace.statements[0]))
    # A message has the key in another case, and in the singular: "Unknown usage Input".
    words = set(re.findall(r"\w+", message.lower())) - {"name"}
    for written, _ in itertools.chain.from_iterable(map(_pairs, [node] if labels else documents)):
        key = str(written.value)
        if {key.lower(), key.lower().removesuffix("s")} & words:
            return _Fault(line_of(written), ".".join([*labels, key]))
    return _Fault(line, ".".join(labels))


def _line_of_statement(node: yaml.Node, statement: object) -> int:
    if position := getattr(statement, "source_file_position", None):
        return int(position.start_line)
    return next((line_of(found) for found in _scalars(node) if found.value == statement), 0)


def _wrong_statement(statement: object) -> str:
    """Return what is wrong with a statement in a method's body."""
    if isinstance(statement, dict):
        written = ", ".join(map(str, statement)) or "none"
        if any(isinstance(key, yaql_expression.YaqlExpression) for key in statement):
            return f"a statement assigns one value, but this one has several keys: {written}"
        return f"no block has these keys, or the block is incomplete: {shown(written)}"
    if isinstance(statement, str):
        return _not_yaql(statement) or f"{shown(statement)!r} is not a statement"
    found = "nothing" if statement is None else f"{shown(str(statement))}"
    return f"expected a statement, found {found}"


def _wrong_name(document: yaml.Node, namespaces: Any, error: Exception) -> _Fault | None:
    """Find the name in ``Name``, ``Extends`` or ``Import`` that has caused an error.

    :param namespaces: the resolver of the names; None if the namespaces or the class's own name are
        wrong.
    :returns: None if none of the names has caused the error.
    """
    names = namespaces or namespace_resolver.NamespaceResolver(None)
    for key in ("Extends", "Import") if namespaces else ("Name",):
        found = _child(document, key)
        for name in _items(found[1]) if found else ():
            if not isinstance(name, yaml.ScalarNode):
                reason = f"expected the name of a class, found {kind(name)}"
                return _Fault(line_of(name), key, reason)
            try:
                is_meant = f'"{names.resolve_name(name.value)}"' in str(error)
            except (ValueError, KeyError) as unresolved:
                is_meant = str(unresolved) == str(error)
            if is_meant:
                return _Fault(line_of(name), key)
    return None


def _wrong_shapes(document: yaml.Node) -> Iterator[_Fault]:
    """Yield a fault for each part of a class that has another type than Murano expects."""
    if kind(document) not in ("nothing", "a mapping"):
        yield _Fault(line_of(document), "", f"expected a class, found {kind(document)}")
    for key, value in _pairs(document):
        if check := _CHECKS.get(key.value):
            yield from _wrong_members(key, value, check)


def _wrong_members(
    key: yaml.Node,
    node: yaml.Node,
    check: Callable[[yaml.Node, yaml.Node], Iterator[_Fault]],
) -> Iterator[_Fault]:
    if kind(node) not in ("nothing", "a mapping"):
        yield _Fault(line_of(key), key.value, f"expected a mapping, found {kind(node)}")
    for name, value in _pairs(node):
        for fault in check(name, value):
            yield dataclasses.replace(fault, label=f"{key.value}.{fault.label}")


def _wrong_namespace(name: yaml.Node, value: yaml.Node) -> Iterator[_Fault]:
    is_string = isinstance(value, yaml.ScalarNode) and value.tag == safe_yaml.STR
    is_name = is_string and namespace_resolver.NS_RE.match(value.value)
    if not is_name and kind(value) != "nothing":
        found = shown(value.value) if isinstance(value, yaml.ScalarNode) else kind(value)
        reason = f"expected a name such as org.example, found {found}"
        yield _Fault(line_of(name), name.value, reason)


def _wrong_declaration(name: yaml.Node, value: yaml.Node) -> Iterator[_Fault]:
    if not isinstance(value, yaml.MappingNode):
        reason = f"expected a mapping with the key Contract, found {kind(value)}"
        yield _Fault(line_of(name), name.value, reason)
    elif _child(value, "Contract") is None:
        yield _Fault(line_of(name), name.value, "the key Contract is missing")


def _wrong_method(name: yaml.Node, value: yaml.Node) -> Iterator[_Fault]:
    if kind(value) not in ("nothing", "a mapping"):
        yield _Fault(line_of(name), name.value, f"expected a mapping, found {kind(value)}")
    found = _child(value, "Arguments")
    if found is None or kind(found[1]) == "nothing":
        return
    key, arguments = found
    for item in _items(arguments):
        is_single = item is arguments or len(_pairs(item)) == 1
        if not isinstance(item, yaml.MappingNode) or not is_single:
            reason = f"an argument is a mapping with one key, its name; found {kind(item)}"
            yield _Fault(line_of(item), f"{name.value}.Arguments", reason)
        for fault in _wrong_members(key, item, _wrong_declaration):
            yield dataclasses.replace(fault, label=f"{name.value}.{fault.label}")


# A key of a class whose value is a mapping -> the function that checks each entry of this mapping.
_CHECKS: Mapping[str, Callable[[yaml.Node, yaml.Node], Iterator[_Fault]]] = {
    "Namespaces": _wrong_namespace,
    "Properties": _wrong_declaration,
    "Methods": _wrong_method,
    "Workflow": _wrong_method,
}


def _not_yaql(text: str) -> str:
    """Return why a string is not a valid expression; an empty string if it is valid."""
    try:
        yaql_integration.ENGINE_12(text)
    except YaqlParsingException as error:
        return f"{text!r} is not a valid YAQL expression: {error}"
    return ""


def _pairs(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _items(node: yaml.Node) -> list[yaml.Node]:
    """Return the items of a sequence; for any other node, the node itself."""
    return node.value if isinstance(node, yaml.SequenceNode) else [node]


def _child(node: yaml.Node, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Find a key in a mapping, or in a list of mappings.

    :returns: the node of the key and the node of its value; None if the key is missing.
    """
    pairs = (pair for part in _items(node) for pair in _pairs(part))
    return next((pair for pair in pairs if pair[0].value == key), None)


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    for part in node.value if not isinstance(node, yaml.ScalarNode) else ():
        for each in part if isinstance(part, tuple) else (part,):
            yield from _scalars(each)
