# SPDX-License-Identifier: Apache-2.0

"""Find out whether a contract accepts all values that another contract accepts."""

from collections.abc import Callable, Iterator

from glare_murano.package import VersionSpec
from loader.compatibility import conditions
from loader.compatibility.answers import Answer, all_of
from loader.compatibility.contracts import (
    ANYTHING,
    Contract,
    Invalid,
    Items,
    Keys,
    Kind,
    Type,
    Unknown,
    Value,
    accepts_missing,
    read_constant,
)

IsSubclass = Callable[[str, str], bool | None]
"""Returns whether the first class is the second one or extends it; None if unknown."""


def fits(given: Contract, wanted: Contract, is_subclass: IsSubclass) -> Answer:
    """Return whether all values that pass a first contract also pass a second one unchanged.

    It does not matter if the second contract drops keys of mappings; ``lost_keys`` finds them.

    :param given: the first contract.
    :param wanted: the second contract.
    :param is_subclass: a function that returns whether one class is another, or extends it.
    """
    if given == wanted:
        return Answer.YES
    match given, wanted:
        case _, Value() if wanted == ANYTHING:
            return Answer.YES
        case Value(), Value():
            return _value_fits(given, wanted, is_subclass)
        case Items(), Items():
            return _items_fit(given, wanted, is_subclass)
        case Keys(), Keys():
            return _keys_fit(given, wanted, is_subclass)
        case (Unknown() | Invalid(), _) | (_, Unknown() | Invalid()):
            return Answer.UNKNOWN
        case Items() | Keys(), Value(kind=Kind.ANY):
            # A list or a mapping satisfies notNull(); conditions on them are not compared.
            return Answer.UNKNOWN if wanted.conditions | wanted.raw else Answer.YES
    return Answer.NO


def lost_keys(old: Contract, new: Contract, path: str = "") -> Iterator[str]:
    """Yield the keys of mappings that the old contract keeps and the new contract drops.

    The keys are paths such as ``volume.size``. In a path, ``*`` means all keys that the old
    contract does not name.

    :param path: the beginning of each path, for contracts inside other contracts.
    """
    match old, new:
        case Keys(), Keys():
            for key, contract in old.named.items():
                if key in new.named:
                    yield from lost_keys(contract, new.named[key], f"{path}{key}.")
                elif new.others is None:
                    yield f"{path}{key}"
            if old.others is not None:
                if new.others is None:
                    yield f"{path}*"
                else:
                    yield from lost_keys(old.others[1], new.others[1], f"{path}*.")
        case Items(), Items():
            for index in range(max(len(old.contracts), len(new.contracts))):
                yield from lost_keys(old.contract(index), new.contract(index), f"{path}{index}.")


def _value_fits(given: Value, wanted: Value, is_subclass: IsSubclass) -> Answer:
    answers = [
        Answer.of(wanted.kind in (Kind.ANY, given.kind)),
        Answer.of(wanted.is_owned in (None, given.is_owned)),
        _null_fits(given, wanted),
        *(conditions.implied(each, given.conditions) for each in wanted.conditions),
        # Conditions before a conversion are equal only if they are written in the same form.
        Answer.YES if wanted.raw <= given.raw else Answer.UNKNOWN,
    ]
    if given.type is not None and wanted.type is not None:
        answers.append(_type_fits(given.type, wanted.type, is_subclass))
    return all_of(answers)


def _null_fits(given: Value, wanted: Value) -> Answer:
    accepted = given.accepts_null
    if accepted is False:
        return Answer.YES
    if wanted.is_not_null:
        return Answer.NO if accepted else Answer.UNKNOWN
    if wanted.skips_null or not given.skips_null:
        # Null satisfies the given conditions, and therefore all conditions that they imply.
        return Answer.YES
    return Answer.of(conditions.admit_null(wanted.conditions | wanted.raw))


def _type_fits(given: Type, wanted: Type, is_subclass: IsSubclass) -> Answer:
    answers = [
        Answer.of(is_subclass(given.name, wanted.name)),
        _versions_fit(given.versions, wanted.versions),
        Answer.of(given.excluded <= wanted.excluded),
    ]
    if given.default is not None:
        # An object that does not name its class has the properties of the given default class.
        answers.append(Answer.of(is_subclass(wanted.default or wanted.name, given.default)))
    return all_of(answers)


def _versions_fit(given: str | None, wanted: str | None) -> Answer:
    if wanted is None or given == wanted:
        return Answer.YES
    if given is None:
        return Answer.NO
    try:
        inner, outer = VersionSpec.of(given), VersionSpec.of(wanted)
    except ValueError:
        return Answer.UNKNOWN
    edges = inner.edges | outer.edges
    return Answer.of(all(outer.match(each) for each in edges if inner.match(each)))


def _items_fit(given: Items, wanted: Items, is_subclass: IsSubclass) -> Answer:
    count = max(len(given.contracts), len(wanted.contracts))
    return all_of(
        [
            Answer.of(wanted.least <= given.least and given.greatest <= wanted.greatest),
            *(
                fits(given.contract(index), wanted.contract(index), is_subclass)
                for index in range(count)
                if index < given.greatest
            ),
        ]
    )


def _keys_fit(given: Keys, wanted: Keys, is_subclass: IsSubclass) -> Answer:
    return all_of(
        [*_named_fit(given, wanted, is_subclass), *_others_fit(given, wanted, is_subclass)]
    )


def _named_fit(given: Keys, wanted: Keys, is_subclass: IsSubclass) -> Iterator[Answer]:
    for key, contract in wanted.named.items():
        if key in given.named:
            yield fits(given.named[key], contract, is_subclass)
            continue
        yield Answer.of(accepts_missing(contract))
        if given.others is not None:
            yield fits(given.others[1], contract, is_subclass)


def _others_fit(given: Keys, wanted: Keys, is_subclass: IsSubclass) -> Iterator[Answer]:
    if wanted.others is None:
        return
    wanted_key, wanted_value = wanted.others
    for key, contract in given.named.items():
        if key not in wanted.named:
            yield fits(read_constant(key), wanted_key, is_subclass)
            yield fits(contract, wanted_value, is_subclass)
    if given.others is not None:
        yield fits(given.others[0], wanted_key, is_subclass)
        yield fits(given.others[1], wanted_value, is_subclass)
