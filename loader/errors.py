# SPDX-License-Identifier: Apache-2.0

"""The errors of the loader, with messages that name the remedy.

The errors of a package itself are in ``glare_murano.package.errors``.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from glare_murano.package import GlareMuranoError, Version, VersionSpec
from glare_murano.package.errors import quoted
from glare_murano.resolver import Demand

# Limits of one message, since names and requirements are written by others.
MAX_CHAINS = 10
_MAX_STEPS = 10
_MAX_LISTED = 20
_MAX_LENGTH = 100

_REMEDY = "that this project can see, or change the range"


@dataclasses.dataclass(frozen=True)
class RequirementChains:
    """The requirements on a package, each with the chain of demands from a root.

    As a string, a chain is ``org.wiki 1 (1.2.0) -> org.db >=3``, with chosen versions
    in brackets.

    :param shown: the first chains, each from a root to the package.
    :param omitted: the number of other chains.
    """

    shown: tuple[tuple[Demand, ...], ...]
    omitted: int

    def __str__(self) -> str:
        others = [f"and {self.omitted} more"] if self.omitted else []
        return "; ".join([*map(_chain_text, self.shown), *others])


class LoaderError(GlareMuranoError):
    """The base class of the loader's errors."""


class NotFound(LoaderError, LookupError):
    """No catalogue has the package or the class."""


class NoSuchPackage(NotFound):
    """No catalogue has the package in the range.

    >>> try:
    ...     packages.load_package("org.db", ">=3")
    ... except NoSuchPackage as error:
    ...     print(error)
    package org.db in the range >=3 was not found in the directory ...packages (available:
    2.0.0, 1.2.0, 1.0.0); publish a version in the range that this project can see, or
    change the range

    :ivar fqn: the name of the package.
    :ivar spec: the range.
    :ivar available: the versions of the package, the newest first.
    :ivar chains: the requirements on the package, unsatisfied requirements first.
    :ivar others: the errors of other missing packages.
    """

    def __init__(
        self,
        fqn: str,
        spec: VersionSpec,
        available: tuple[Version, ...],
        catalogs: str,
        required_by: str | None,
        pinned: Version | None,
        chains: RequirementChains,
    ) -> None:
        """Make the error.

        :param catalogs: the names of the searched catalogues.
        :param required_by: the requiring package, as ``FQN version``.
        :param pinned: the missing version, if pinned.
        """
        self.fqn = fqn
        self.spec = spec
        self.available = available
        self.chains = chains
        self.others: tuple[NoSuchPackage, ...] = ()
        details = [f"package {fqn} in the range {spec}"]
        if required_by:
            details.append(f"required by {required_by}")
        self._subject = ", ".join(details)
        remedy = f"publish a version in the range {_REMEDY}"
        if pinned is not None:
            details.append(f"pinned to {pinned}")
            remedy = "publish that version again, or remove the pin"
        # A single requirement of a root repeats the subject.
        is_longer = sum(map(len, chains.shown)) > 1
        requirements = f"; the requirements on it: {chains}" if is_longer else ""
        super().__init__(
            f"{', '.join(details)}{',' if len(details) > 1 else ''} was not found in "
            f"{catalogs} (available: {listed(map(str, self.available))}); {remedy}{requirements}"
        )

    @classmethod
    def combine(cls, errors: Sequence["NoSuchPackage"]) -> "NoSuchPackage":
        """Return the first of several errors, and name the other packages in its message."""
        first, *others = errors
        if others:
            first.others = tuple(others)
            subjects = [error._subject for error in others]
            first.args = (f"{first}; also missing: {_joined(subjects, '; ')}",)
        return first


class NoSuchClass(NotFound):
    """No catalogue has a package in the range that defines the class.

    :ivar class_name: the name of the class.
    :ivar spec: the range.
    :ivar available: the packages that define the class, as ``FQN version``.
    """

    def __init__(
        self, class_name: str, spec: VersionSpec, available: tuple[str, ...], catalogs: str
    ) -> None:
        self.class_name = class_name
        self.spec = spec
        self.available = available
        super().__init__(
            f"class {class_name} of a package in the range {spec} was not found in "
            f"{catalogs} (defined by: {listed(self.available)}); "
            f"publish a package in the range that defines the class, and {_REMEDY}"
        )


class CatalogError(LoaderError):
    """A catalogue cannot be read, refuses a request, or gives an invalid answer."""


class CatalogUnavailable(CatalogError):
    """A catalogue cannot be reached or fails at present; a later attempt may succeed.

    :ivar catalog: the catalogue, if known.
    """

    catalog: object = None


class UnknownCatalog(LoaderError):
    """A configured catalogue is not installed, or cannot be imported."""


class DigestMismatch(LoaderError):
    """A downloaded archive has another digest than its catalogue states."""


class InvalidPins(LoaderError, ValueError):
    """A fixation table is not a mapping of package names to lists of versions."""


class LockError(LoaderError):
    """A lock file cannot be created, read or written."""


class CacheError(LoaderError):
    """The directory of a cache cannot be used, or the cache is closed."""


class UnsupportedFormat(LoaderError):
    """No installed package type reads the format of a package."""


def listed(names: Iterable[str]) -> str:
    """Join the first names, with long names quoted and cut; without names, return ``none``."""
    return _joined([_brief(name) for name in names], ", ") or "none"


def _joined(texts: Sequence[str], separator: str) -> str:
    others = len(texts) - _MAX_LISTED
    more = f" and {others} more" if others > 0 else ""
    return separator.join(texts[:_MAX_LISTED]) + more


def _chain_text(chain: Sequence[Demand]) -> str:
    steps = [
        f"{_demand_text(demand)} ({_brief(str(following.requirer.version))})"
        for demand, following in itertools.pairwise(chain)
        if following.requirer is not None
    ]
    if len(steps) > _MAX_STEPS:
        half = _MAX_STEPS // 2
        steps[half:-half] = [f"{len(steps) - 2 * half} more"]
    return " -> ".join([*steps, _demand_text(chain[-1])])


def _demand_text(demand: Demand) -> str:
    return f"{_brief(demand.fqn)} {_brief(str(demand.spec))}"


def _brief(text: str) -> str:
    return text if text.isprintable() and len(text) <= _MAX_LENGTH else quoted(text)
