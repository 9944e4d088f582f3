# SPDX-License-Identifier: Apache-2.0

"""What can go wrong when a package is loaded, told to whoever deploys.

What is wrong with a package itself is in ``glare_murano.package.errors``.
"""

from collections.abc import Iterable

from glare_murano.package import GlareMuranoError, Version, VersionSpec
from loader.chains import Chains, brief

# How many versions a message tells.
_MOST_TOLD = 20
_NO_CHAINS = Chains()


def listed(texts: Iterable[str]) -> str:
    """Texts that others wrote, the first ones only."""
    all_of_them = tuple(texts)
    told = ", ".join(brief(text) for text in all_of_them[:_MOST_TOLD])
    others = len(all_of_them) - _MOST_TOLD
    return f"{told} and {others} more" if others > 0 else told


class LoaderError(GlareMuranoError):
    """The root of every error that the loader raises."""


# What helps where nothing is found: another project's packages are not seen.
_PUBLISH = "publish one in the range where this project sees it, or change the range"


class NotFound(LoaderError, LookupError):
    """No catalogue has what was asked for."""


class NoSuchPackage(NotFound):
    """No catalogue has the package in the range.

    :ivar fqn: the package that was asked for.
    :ivar spec: the range.
    :ivar available: versions that there are, the newest first.
    :ivar chains: the requirements upon the package, each from what was asked
        for down to it, and first the one that could not be met.
    """

    def __init__(
        self,
        fqn: str,
        spec: VersionSpec,
        available: Iterable[Version],
        catalogs: Iterable[str],
        required_by: str | None = None,
        pinned: Version | None = None,
        chains: Chains = _NO_CHAINS,
    ) -> None:
        """Say what is missing.

        :param required_by: who asks.
        :param chains: the requirements upon the package.
        """
        self.fqn = fqn
        self.spec = spec
        self.available = tuple(available)
        self.chains = chains
        asker = f", required by {required_by}," if required_by else ""
        if pinned is not None:
            asker += f" which is pinned to {pinned},"
        versions = listed(map(str, self.available))
        there = f"there is {versions}" if versions else "there is no version of it at all"
        mend = "publish that version again, or take the pin out" if pinned else _PUBLISH
        requirements = f"; the requirements upon it: {chains}" if chains.tell_more else ""
        super().__init__(
            f"no package {fqn} in the range {spec}{asker} was found in {', '.join(catalogs)}: "
            f"{there}; {mend}{requirements}"
        )


class NoSuchClass(NotFound):
    """No catalogue has a package in the range that defines the class.

    :ivar class_name: the class that was asked for.
    :ivar spec: the range.
    :ivar available: packages that define it, as ``FQN version``.
    """

    def __init__(
        self,
        class_name: str,
        spec: VersionSpec,
        available: Iterable[str],
        catalogs: Iterable[str],
    ) -> None:
        self.class_name = class_name
        self.spec = spec
        self.available = tuple(available)
        defining = listed(self.available)
        there = f"it is defined by {defining}" if defining else "no package defines it at all"
        super().__init__(
            f"no package in the range {spec} that defines class {class_name} was found in "
            f"{', '.join(catalogs)}: {there}; {_PUBLISH}"
        )


class CatalogError(LoaderError):
    """A catalogue could not be asked, or answered what it must not."""


class NoAnswer(CatalogError):
    """A catalogue does not answer now, and may do so later: it cannot be reached, or fails.

    A refusal is an answer.

    :ivar catalog: the catalogue, where that is known.
    """

    catalog: object = None


class UnknownCatalog(LoaderError):
    """A catalogue was chosen that is not installed, or that cannot be imported."""


class DigestMismatch(LoaderError):
    """An archive that arrived is not the one that the catalogue promised."""


class InvalidPins(LoaderError, ValueError):
    """A fixation table that is none: not packages, each with a list of versions."""


class LockError(LoaderError):
    """A lock file that cannot be read, written or made."""


class CacheError(LoaderError):
    """The cache folder cannot be used."""


class UnsupportedFormat(LoaderError):
    """No installed package type can read a package of this format."""
