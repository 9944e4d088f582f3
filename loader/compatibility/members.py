# SPDX-License-Identifier: Apache-2.0

"""Find the changes of properties, methods and arguments.

``class_changes`` finds the members to compare, declared and inherited.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import yaml

from loader.compatibility import contracts
from loader.compatibility.answers import Answer
from loader.compatibility.changes import Part, Place, Rule
from loader.compatibility.containment import IsSubclass, fits, lost_keys
from loader.compatibility.contracts import Contract
from loader.compatibility.declarations import Declaration, Method
from loader.compatibility.nodes import flow, frozen, is_null

# Usage of a property -> what users can do with the property (document "MuranoPL reference",
# "Property usage"): set it, set it again after the first deployment, find it in the object model,
# use it on the class, or set it in configuration files.
_USES: Mapping[str, frozenset[str]] = {
    "In": frozenset({"set by users", "set again by users", "part of the object model"}),
    "InOut": frozenset({"set by users", "set again by users", "part of the object model"}),
    "Const": frozenset({"set by users", "part of the object model"}),
    "Out": frozenset({"part of the object model"}),
    "Runtime": frozenset(),
    "Static": frozenset({"a property of the class itself"}),
    "Config": frozenset({"read from configuration files"}),
}
INPUTS = frozenset({"In", "Const", "InOut", "Static", "Config"})
OUTPUTS = frozenset({"Out", "Runtime", "InOut", "Static", "Config"})
# The usages of properties and arguments whose values the engine checks. If such a value is omitted
# and the contract refuses null, the engine refuses the object or the call.
_CHECKED = frozenset({"In", "Out", "InOut", "Const", "Standard"})


class MemberChange(NamedTuple):
    """A change of a property, a method or an argument; the name of its class is added later."""

    rule: Rule
    member: str
    message: str
    place: Place


def must_be_given(declaration: Declaration) -> bool:
    """Return whether users must give a property or an argument; true if this is unknown."""
    if declaration.usage not in _CHECKED or not is_null(declaration.default):
        return False
    return contracts.accepts_missing(declaration.read_contract()) is not True


def compare_properties(
    old: Declaration, new: Declaration, is_subclass: IsSubclass
) -> Iterator[MemberChange]:
    """Yield the changes between two versions of a property."""
    subject, name, place = f"property {new.name}", new.name, new.place
    lost = sorted(_USES.get(old.usage, frozenset()) - _USES.get(new.usage, frozenset()))
    if old.usage != new.usage:
        message = f"{subject} has Usage {new.usage} instead of {old.usage}"
        if lost:
            message += f" and is no longer {' and '.join(lost)}"
        rule = Rule.PROPERTY_USAGE if lost else Rule.PROPERTY_USAGE_EXTENDED
        yield MemberChange(rule, name, message, place)
    yield from _compare_values(
        old,
        new,
        subject,
        name,
        is_subclass,
        _InputRules(Rule.PROPERTY_NARROWED, Rule.PROPERTY_WIDENED, Rule.PROPERTY_REQUIRED),
    )


def compare_methods(old: Method, new: Method, is_subclass: IsSubclass) -> Iterator[MemberChange]:
    """Yield the changes between two versions of a method, and the changes of its arguments."""
    subject, name, place = f"method {new.name}", new.name, new.place
    if old.usage != new.usage:
        is_callable = (old.usage, new.usage) == ("Runtime", "Static") and not old.is_public
        rule = Rule.METHOD_STATIC if is_callable else Rule.METHOD_USAGE
        message = f"{subject} has Usage {new.usage} instead of {old.usage}"
        yield MemberChange(rule, name, message, place)
    if old.is_public and not new.is_public:
        message = f"{subject} has no Scope Public any more"
        yield MemberChange(Rule.METHOD_NOT_PUBLIC, name, message, place)
    elif new.is_public and not old.is_public:
        yield MemberChange(Rule.METHOD_PUBLIC, name, f"{subject} has Scope Public now", place)
    if old.metadata != new.metadata:
        message = f"the metadata of {subject} was changed"
        yield MemberChange(Rule.METADATA_CHANGED, name, message, place)
    yield from _compare_arguments(old, new, is_subclass)


def compare_argument(
    old: Declaration, new: Declaration, method: str, is_subclass: IsSubclass
) -> Iterator[MemberChange]:
    """Yield the changes between two versions of an argument; its position is not compared.

    :param method: the name of the method.
    """
    subject, member = _subject(new, method), f"{method}.{new.name}"
    if old.usage != new.usage:
        message = f"{subject} has Usage {new.usage} instead of {old.usage}"
        yield MemberChange(Rule.ARGUMENT_USAGE, member, message, new.place)
    yield from _compare_values(
        old,
        new,
        subject,
        member,
        is_subclass,
        _InputRules(Rule.ARGUMENT_NARROWED, Rule.ARGUMENT_WIDENED, Rule.ARGUMENT_REQUIRED),
    )


def added_argument(new: Declaration, method: str) -> MemberChange:
    """Return the change for a new argument, as if it were the last argument of its method.

    :param method: the name of the method.
    """
    subject, member = _subject(new, method), f"{method}.{new.name}"
    if must_be_given(new):
        message = f"{subject} was added and must be given"
        return MemberChange(Rule.ARGUMENT_REQUIRED, member, message, new.place)
    return MemberChange(Rule.ARGUMENT_ADDED, member, f"{subject} was added", new.place)


def removed_argument(old: Declaration, method: str) -> MemberChange:
    """Return the change for a removed argument.

    :param method: the name of the method.
    """
    message = f"{_subject(old, method)} was removed"
    return MemberChange(Rule.ARGUMENT_REMOVED, f"{method}.{old.name}", message, old.place)


class _InputRules(NamedTuple):
    """The rules that apply to changes of a value that users give."""

    narrowed: Rule
    widened: Rule
    required: Rule


def _compare_values(
    old: Declaration,
    new: Declaration,
    subject: str,
    member: str,
    is_subclass: IsSubclass,
    rules: _InputRules,
) -> Iterator[MemberChange]:
    """Yield the changes of the contract, the default and the metadata of a declaration."""
    found = list(_compare_contracts(old, new, subject, is_subclass, rules))
    is_changed = found or old.usage != new.usage or frozen(old.default) != frozen(new.default)
    # If the new contract breaks callers anyway, the finding "must be given" adds nothing.
    is_broken = any(rule.part is Part.MAJOR for rule, _, _ in found)
    if is_changed and not is_broken and must_be_given(new) and not must_be_given(old):
        found.append((rules.required, f"{subject} must be given now", new.place))
    else:
        found += _compare_defaults(old, new, subject)
    if old.metadata != new.metadata:
        found.append((Rule.METADATA_CHANGED, f"the metadata of {subject} was changed", new.place))
    for rule, message, place in found:
        yield MemberChange(rule, member, message, place)


def _compare_contracts(
    old: Declaration, new: Declaration, subject: str, is_subclass: IsSubclass, rules: _InputRules
) -> Iterator[tuple[Rule, str, Place]]:
    if old.has_contract_of(new):
        return
    before, after = old.read_contract(), new.read_contract()
    if before == after:
        return
    texts = f"from {old.written_contract()} to {new.written_contract()}"
    message = f"the contract of {subject} was changed {texts}"
    for declaration, contract in ((new, after), (old, before)):
        invalid = contracts.invalid_part(contract)
        if invalid is not None:
            reason = f"{message}; {invalid.text} is not valid YAQL: {invalid.reason}"
            yield Rule.CONTRACT_INVALID, reason, declaration.place
            return
    yield from (
        (rule, f"{message}{suffix}", new.place)
        for rule, suffix in _judge(before, after, old.usage, is_subclass, rules)
    )


def _judge(
    before: Contract, after: Contract, usage: str, is_subclass: IsSubclass, rules: _InputRules
) -> Iterator[tuple[Rule, str]]:
    """Yield each rule that applies to a changed contract, with the last words of its message."""
    is_output, is_input = usage in OUTPUTS, usage in INPUTS or usage not in OUTPUTS
    lost = list(lost_keys(before, after))
    if lost:
        rule = rules.narrowed if is_input else Rule.PROPERTY_REMOVED
        yield rule, f", which has no key {' and '.join(lost)}"
        return
    accepted = fits(before, after, is_subclass) if is_input else Answer.YES
    expected = fits(after, before, is_subclass) if is_output else Answer.YES
    if accepted is Answer.NO:
        yield rules.narrowed, ", which does not accept all previous values"
    if expected is Answer.NO:
        yield Rule.OUTPUT_WIDENED, ", which readers may not expect"
    if Answer.NO in (accepted, expected):
        return
    if Answer.UNKNOWN in (accepted, expected):
        yield Rule.CONTRACT_UNKNOWN, ", which cannot be judged"
    else:
        yield rules.widened if is_input else Rule.OUTPUT_CHANGED, ""


def _compare_defaults(
    old: Declaration, new: Declaration, subject: str
) -> Iterator[tuple[Rule, str, Place]]:
    has_none = is_null(old.default) and is_null(new.default)
    if has_none or _default_value(old) == _default_value(new):
        return
    if is_null(new.default):
        message = f"the default {_written_default(old)} of {subject} was removed"
        yield Rule.DEFAULT_REMOVED, message, new.place
    else:
        message = f"the default of {subject} is {_written_default(new)} instead of "
        yield Rule.DEFAULT_CHANGED, f"{message}{_written_default(old)}", new.place


def _default_value(declaration: Declaration) -> object:
    """Return the value that the engine uses if a property or an argument is omitted.

    This is the default. Without a default, it is an empty list for a contract of a list, an empty
    mapping for a contract of a mapping, and None for any other contract.

    :returns: the value in a form that can be compared.
    """
    if not is_null(declaration.default):
        return frozen(declaration.default)
    if isinstance(declaration.contract, yaml.SequenceNode):
        return ()
    return frozenset() if isinstance(declaration.contract, yaml.MappingNode) else None


def _written_default(declaration: Declaration) -> str:
    return "null" if declaration.default is None else flow(declaration.default)


def _compare_arguments(old: Method, new: Method, is_subclass: IsSubclass) -> Iterator[MemberChange]:
    pairs = _paired(old.arguments, new.arguments)
    for before in old.arguments:
        after = pairs.get(id(before))
        if after is None:
            yield removed_argument(before, new.name)
            continue
        if before.name != after.name and after.usage == "Standard":
            message = f"{_subject(before, new.name)} was renamed to {after.name}"
            member = f"{new.name}.{after.name}"
            yield MemberChange(Rule.ARGUMENT_RENAMED, member, message, after.place)
        yield from compare_argument(before, after, new.name, is_subclass)
    order = [pairs[id(before)] for before in old.arguments if id(before) in pairs]
    yield from _moved(order, new)
    yield from _added(order, new)


def _paired(old: Sequence[Declaration], new: Sequence[Declaration]) -> Mapping[int, Declaration]:
    """Find the new argument for each old argument.

    Arguments with the same name belong together. The old and the new ``VarArgs`` belong together
    whatever their names, and so do the old and the new ``KwArgs``. Any other argument that was
    renamed is found by its position.

    :returns: a mapping of the ``id()`` of an old argument to the new argument.
    """
    by_name = {each.name: each for each in new}
    by_usage = {each.usage: each for each in new if each.usage != "Standard"}
    old_names = {each.name for each in old}
    pairs: dict[int, Declaration] = {}
    used: set[int] = set()

    def pair(before: Declaration, after: Declaration | None) -> None:
        if after is not None and id(after) not in used:
            used.add(id(after))
            pairs[id(before)] = after

    for each in old:
        pair(each, by_usage.get(each.usage) or by_name.get(each.name))
    for before, after in zip(old, new, strict=False):
        is_renamed = after.name not in old_names and before.usage == after.usage
        if is_renamed and id(before) not in pairs:
            pair(before, after)
    return pairs


def _moved(order: Sequence[Declaration], new: Method) -> Iterator[MemberChange]:
    """Yield the changes for arguments that have another order now.

    :param order: the arguments of the new version that the old version also has, in the order of
        the old version.
    """
    kept = set(map(id, order))
    now = [each for each in new.arguments if id(each) in kept]
    for before, after in zip(order, now, strict=True):
        if before is not after:
            message = f"{_subject(after, new.name)} has another position"
            member = f"{new.name}.{after.name}"
            yield MemberChange(Rule.ARGUMENT_MOVED, member, message, after.place)


def _added(order: Sequence[Declaration], new: Method) -> Iterator[MemberChange]:
    """Yield the changes for new arguments.

    A new argument changes the positions of the old arguments that follow it. Then the rule of its
    change is ``ARGUMENT_MOVED``, unless the new argument must be given: this is reported instead.
    Old ``KwArgs`` have no position, so they do not count here.

    :param order: the arguments of the new version that the old version also has.
    """
    kept = set(map(id, order))
    following = ""
    for each in reversed(new.arguments):
        if id(each) not in kept:
            finding = added_argument(each, new.name)
            if following and finding.rule is Rule.ARGUMENT_ADDED:
                message = f"{finding.message} before {following}"
                finding = finding._replace(rule=Rule.ARGUMENT_MOVED, message=message)
            yield finding
        elif each.usage != "KwArgs":
            following = each.name


def _subject(argument: Declaration, method: str) -> str:
    return f"argument {argument.name} of method {method}"
