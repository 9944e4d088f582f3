# SPDX-License-Identifier: Apache-2.0

"""The declarations of a class: properties, methods, arguments and metadata, with their places."""

import dataclasses
from collections.abc import Collection, Mapping

import yaml

from loader.compatibility import contracts
from loader.compatibility.changes import Place
from loader.compatibility.nodes import flow, frozen


@dataclasses.dataclass(frozen=True)
class Declaration:
    """A property, or an argument of a method.

    :param usage: the ``Usage`` as written, or MuranoPL's default.
    :param contract: the YAML of the contract; None without a contract.
    :param default: the YAML of the default; None without a default.
    :param namespaces: a mapping of prefixes to namespaces, as the class declares them.
    :param metadata: the attached metadata, in a form that can be compared.
    :param place: where it is declared.
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
    """A method.

    :param usage: ``Runtime`` (also for actions), ``Static`` or ``Extension``.
    :param is_public: whether it can be called through the API.
    """

    name: str
    usage: str
    is_public: bool
    arguments: tuple[Declaration, ...]
    metadata: Collection[object]
    place: Place


@dataclasses.dataclass(frozen=True)
class Class:
    """A class.

    :param bases: the names of its direct base classes, without the root class.
    :param usage: ``Class`` or ``Meta``.
    :param targets: for a metadata class, what it can be attached to, such as properties.
    :param has_many: for a metadata class, whether several objects can be attached to one target.
    :param is_inherited: for a metadata class, whether subclasses inherit its objects.
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
