# SPDX-License-Identifier: Apache-2.0

"""Represent the declarations of a class: properties, methods, arguments and metadata."""

import dataclasses
from collections.abc import Collection, Mapping

import yaml

from loader.compatibility import contracts
from loader.compatibility.changes import Place
from loader.compatibility.nodes import flow, frozen


@dataclasses.dataclass(frozen=True)
class Declaration:
    """The declaration of a property, or of an argument of a method.

    :param usage: the ``Usage`` as written, or MuranoPL's default.
    :param contract: the YAML of the contract; None without a contract.
    :param default: the YAML of the default; None without a default.
    :param namespaces: a mapping of prefixes to namespaces, as the class declares them.
    :param metadata: the attached metadata, in a form that can be compared.
    :param place: the file and the line of the declaration.
    """

    name: str
    usage: str
    contract: yaml.Node | None
    default: yaml.Node | None
    namespaces: Mapping[str, str]
    metadata: Collection[object]
    place: Place

    def read_contract(self) -> contracts.Contract:
        """Parse the contract."""
        return contracts.read(self.contract, self.namespaces)

    def has_contract_of(self, other: "Declaration") -> bool:
        """Return whether another declaration has the same contract, written in the same way."""
        return self.namespaces == other.namespaces and frozen(self.contract) == frozen(
            other.contract
        )

    def written_contract(self) -> str:
        """Return the contract on one line, as it is written, for messages."""
        return "$" if self.contract is None else flow(self.contract)


@dataclasses.dataclass(frozen=True)
class Method:
    """The declaration of a method.

    :param usage: ``Runtime`` (also for actions), ``Static`` or ``Extension``.
    :param is_public: whether the method can be called through the API.
    """

    name: str
    usage: str
    is_public: bool
    arguments: tuple[Declaration, ...]
    metadata: Collection[object]
    place: Place


@dataclasses.dataclass(frozen=True)
class Class:
    """A class with all its declarations.

    :param bases: the names of the direct base classes, without the root class.
    :param usage: ``Class`` or ``Meta``.
    :param targets: for a metadata class, to what its objects can be attached, such as ``Property``.
    :param has_many: for a metadata class, whether several objects can be attached to one target.
    :param is_inherited: for a metadata class, whether subclasses inherit the attached objects.
    :param initializer: the arguments of ``initialize``, by name.
    :param methods: all other methods except ``destroy``, which only the engine calls.
    """

    name: str
    bases: tuple[str, ...]
    usage: str
    targets: frozenset[str]
    has_many: bool
    is_inherited: bool
    properties: Mapping[str, Declaration]
    methods: Mapping[str, Method]
    initializer: Mapping[str, Declaration]
    metadata: Collection[object]
    place: Place
