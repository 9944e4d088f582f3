# SPDX-License-Identifier: Apache-2.0

"""The errors of the loader; each message says what to do.

Errors in a package itself are in ``glare_murano.package.errors``.
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

from glare_murano.package import GlareMuranoError, Version, VersionSpec
from glare_murano.package.errors import quoted
from glare_murano.resolver import Demand, PackageVersion

# The length of a message is limited, since authors of packages choose the names and requirements in
# it.
MAX_CHAINS = 10
_MAX_STEPS = 10
_MAX_LISTED = 20
_MAX_LENGTH = 100


@dataclasses.dataclass(frozen=True)
class RequirementChains:
    """The chains of demands that lead from a query to a package.

    A demand is a requirement of the query or of a chosen release. A chain begins with a demand of
    the query. Each further demand comes from the release that was chosen for the previous demand.
    A chain is written as ``org.wiki 1 (1.2.0) -> org.db >=3``, with the chosen versions in
    brackets. If the beginning of a chain is missing, it is written as ``...``.

    :param shown: the first chains; each is a sequence of demands, and its last demand is for the
        package.
    :param omitted: how many further chains there are.
    """

    shown: tuple[tuple[Demand, ...], ...]
    omitted: int

    def __str__(self) -> str:
        others = [f"and {self.omitted} more"] if self.omitted else []
        return "; ".join([*map(_chain_text, self.shown), *others])


class LoaderError(GlareMuranoError):
    """The base class of the loader's errors."""


class NotFound(LoaderError, LookupError):
    """A package, a class or another requested object was not found."""


class NoSuchPackage(NotFound):
    """No catalogue has the package in the range.

    >>> try:
    ...     packages.load("org.db", ">=3")
    ... except NoSuchPackage as error:
    ...     print(error)
    package org.db in the range >=3 was not found in the directory ...packages (available:
    2.0.0, 1.2.0, 1.0.0); add a version in the range to the directory, unpacked or as a ZIP
    file; or change the range

    :ivar fqn: the name of the package.
    :ivar spec: the range.
    :ivar available: the versions of the package, the newest first, without yanked versions.
    :ivar pinned: the missing version if it is pinned; None if no version is pinned.
    :ivar chains: the chains of demands that lead to the package.
    :ivar others: the errors for other packages that are missing too.
    """

    def __init__(
        self,
        fqn: str,
        spec: VersionSpec,
        available: tuple[Version, ...],
        unusable: Mapping[str, Sequence[Version]],
        catalogs: str,
        remedy: str,
        requirer: PackageVersion | None,
        pinned: Version | None,
        chains: RequirementChains,
        excluded: Sequence[str] = (),
    ) -> None:
        """Make the error.

        :param unusable: a mapping of reasons to the versions that cannot be used for this reason,
            the newest first.
        :param catalogs: the names of the catalogues that were searched.
        :param remedy: how a user can add the version to the catalogues.
        :param requirer: the requiring package; None if no package requires the missing package.
        :param excluded: a sentence for each release that can be seen but must not be chosen.
        """
        self.fqn = fqn
        self.spec = spec
        self.available = available
        self.pinned = pinned
        self.chains = chains
        self.others: tuple[NoSuchPackage, ...] = ()
        details = [f"package {fqn} in the range {_brief(str(spec))}"]
        if requirer is not None:
            details.append(f"required by {requirer}")
        self._subject = ", ".join(details)
        alternative = "change the range"
        if pinned is not None:
            details.append(f"pinned to {pinned}")
            alternative = "remove the pin"
        # A single demand is not shown: it would repeat the beginning of the message.
        is_longer = sum(map(len, chains.shown)) > 1
        requirements = f"; the requirements on it: {chains}" if is_longer else ""
        versions = {"available": available, **{kind: v for kind, v in unusable.items() if v}}
        found = "; ".join(f"{kind}: {listed(map(str, v))}" for kind, v in versions.items())
        check = "" if any(versions.values()) or excluded else "check the name; or "
        reasons = f"; {_joined(excluded, '; ')}" if excluded else ""
        super().__init__(
            f"{', '.join(details)}{',' if len(details) > 1 else ''} was not found in "
            f"{catalogs} ({found}){reasons}; {check}{remedy}; or {alternative}{requirements}"
        )

    @classmethod
    def combine(cls, errors: Sequence["NoSuchPackage"]) -> "NoSuchPackage":
        """Return the first of several errors; its message names the other packages as well."""
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
    :ivar available: the packages that define the class, as ``FQN version``; only the newest twenty.
    """

    def __init__(
        self,
        class_name: str,
        spec: VersionSpec,
        available: tuple[str, ...],
        catalogs: str,
        remedy: str,
    ) -> None:
        self.class_name = class_name
        self.spec = spec
        self.available = available
        check = "" if available else "check the name; or "
        super().__init__(
            f"class {class_name} of a package in the range {spec} was not found in "
            f"{catalogs} (defined by: {listed(self.available)}); "
            f"{check}{remedy}; or change the range"
        )


class NotRequired(LoaderError, LookupError):
    """A package was to be loaded for another package that does not require it.

    >>> try:
    ...     packages.load_requirement(packages.load("org.wiki"), "org.bd")
    ... except NotRequired as error:
    ...     print(error)
    org.wiki 1.1.0 does not require org.bd, but io.murano, org.db, org.wiki; check the name

    :ivar fqn: the name that is not required.
    """

    def __init__(self, requirer: PackageVersion, fqn: object, required: Collection[str]) -> None:
        """Make the error.

        :param required: the names of the packages that the requirer does require.
        """
        self.fqn = fqn
        name = listed([str(fqn)])
        others = listed(sorted(required))
        super().__init__(f"{requirer} does not require {name}, but {others}; check the name")


class NameOfPlugin(LoaderError):
    """A package, or a class in it, has a name that belongs to an extension plug-in of the engine.

    Plug-ins are code of the operator, so no package may replace them.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}, which is code of the operator; publish the package under other names and "
            f"remove this release, or have the operator remove the plug-in from the engine"
        )


class NotADirectory(LoaderError, ValueError):
    """A path should name a directory, but is a file."""


class NotAFile(LoaderError, ValueError):
    """A path should name a file, but is a directory."""


class InvalidCloud(LoaderError, ValueError):
    """A cloud is missing in ``clouds.yaml``, or has wrong values there."""


class CatalogError(LoaderError):
    """A catalogue cannot be read, refuses a request, or gives an invalid answer."""


class CatalogUnavailable(CatalogError):
    """A catalogue cannot be reached, or fails at the moment; a later attempt may succeed.

    :ivar catalog: the catalogue; None if it is not known.
    """

    catalog: object = None


class UnknownCatalog(LoaderError):
    """A configured catalogue is not installed, or cannot be imported."""


class DigestMismatch(LoaderError):
    """A downloaded archive has another digest than its catalogue states."""


class InvalidPins(LoaderError, ValueError):
    """Pins are not a mapping of package names to versions, or an environment cannot use them."""


class LockError(LoaderError):
    """A lock file cannot be created, read or written."""


class CacheError(LoaderError):
    """The directory of a cache cannot be used, or the cache is closed."""


class CacheBusy(CacheError):
    """Another process has locked a part of a cache for too long."""


class UnsupportedFormat(LoaderError):
    """No installed package type reads the format of a package."""


def listed(names: Iterable[str]) -> str:
    """Join names for a message; a long list is shortened, and so are long names.

    :returns: ``none`` if there are no names.
    """
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
    if chain[0].requirer is not None:
        steps.insert(0, "...")
    return " -> ".join([*steps, _demand_text(chain[-1])])


def _demand_text(demand: Demand) -> str:
    return f"{_brief(demand.fqn)} {_brief(str(demand.spec))}"


def _brief(text: str) -> str:
    return text if text.isprintable() and len(text) <= _MAX_LENGTH else quoted(text)
