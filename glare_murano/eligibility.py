# SPDX-License-Identifier: Apache-2.0

"""Decide which releases may be chosen, by their names, owners and visibility.

Servers and the loader apply these rules before they plan, so both choose the same releases:

- A release whose name is under a reserved prefix must belong to a project for which the prefix is
  reserved.
- A release of the core library, which is the package ``io.murano``, must be public. This rule does
  not apply if the operator has reserved that name.
- If a query sets ``private_overrides`` to false, releases that are not public must not have the
  name of a public release that may be chosen.

These rules never exclude a release that comes from the operator; see ``is_from_operator``.
"""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Protocol, TypeVar

from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.package.reserved_names import NO_RESERVED_NAMES, ReservedNames
from glare_murano.resolver import PackageVersion

PUBLIC = "public"

_NOT_PUBLIC = f"of the core library {CORE_LIBRARY}, only public releases are used"
_BEHIND_PUBLIC = (
    "it is not public, and a public package has its name; only that one is used, since "
    "private_overrides is false"
)


class Offer(Protocol):
    """A release that a catalogue has, or a package that a service stores."""

    @property
    def key(self) -> PackageVersion:
        """The FQN and the version of the release."""

    @property
    def id(self) -> str:
        """The identifier of the release in its catalogue."""

    @property
    def owner(self) -> str | None:
        """The project that owns the release; None in a catalogue without projects."""

    @property
    def visibility(self) -> str | None:
        """The visibility of the release; None in a catalogue without projects."""


_Offer = TypeVar("_Offer", bound=Offer)


@dataclasses.dataclass(frozen=True)
class Excluded:
    """A release that the client can see, but that must not be chosen.

    :param owner: the project that owns the release.
    :param reason: why the release must not be chosen, for a message.
    """

    key: PackageVersion
    id: str
    owner: str
    reason: str

    def __str__(self) -> str:
        return f"{self.key} of project {self.owner} is not used: {self.reason}"


@dataclasses.dataclass(frozen=True)
class Eligibility:
    """The rules by which one query chooses releases.

    :param reserved: the operator's reserved names; by default, no names are reserved.
    :param private_overrides: whether a release that is not public may be chosen although a public
        release has the same name.
    """

    reserved: ReservedNames = NO_RESERVED_NAMES
    private_overrides: bool = True

    def find_objection(self, offer: Offer) -> str:
        """Check the name, the owner and the visibility of a release against the rules.

        Other releases of the same name are not considered, so ``private_overrides`` has no effect
        here. ``select`` considers them.

        :returns: why the release must not be chosen; empty if it may be chosen.
        """
        return self._find_objection(offer.key.fqn, offer.owner, offer.visibility)

    def _find_objection(self, fqn: str, owner: str | None, visibility: str | None) -> str:
        if _is_from_operator(owner, visibility):
            return ""
        reservation = self.reserved.find(fqn)
        if reservation is not None:
            return "" if owner in reservation.projects else f"its name is under {reservation}"
        return _NOT_PUBLIC if fqn == CORE_LIBRARY and visibility != PUBLIC else ""

    def allows_class(self, class_name: str, offer: Offer) -> bool:
        """Return whether the reserved names allow a release to define a class.

        A release from the operator may define any class.
        """
        return is_from_operator(offer) or self.reserved.allows(class_name, offer.owner)

    def select(self, offers: Iterable[_Offer]) -> tuple[list[_Offer], list[Excluded]]:
        """Separate the releases that may be chosen from the excluded releases.

        :param offers: all visible releases of some packages, from all catalogues.
        :returns: the releases that may be chosen, in the given order, and the excluded releases.
        """
        find_objection = functools.cache(self._find_objection)
        reasons = [
            (each, find_objection(each.key.fqn, each.owner, each.visibility)) for each in offers
        ]
        public = {each.key.fqn for each, reason in reasons if _is_public(each) and not reason}
        selected, excluded = [], []
        for offer, reason in reasons:
            is_behind = not (self.private_overrides or _is_public(offer))
            if is_behind and offer.key.fqn in public:
                reason = reason or _BEHIND_PUBLIC
            if reason:
                excluded.append(Excluded(offer.key, offer.id, offer.owner or "", reason))
            else:
                selected.append(offer)
        return selected, excluded


def is_from_operator(offer: Offer) -> bool:
    """Return whether a release comes from the operator.

    Such a release has no owner and no visibility. It comes from a directory on an engine's host, or
    from a lock file of public releases.
    """
    return _is_from_operator(offer.owner, offer.visibility)


def _is_from_operator(owner: str | None, visibility: str | None) -> bool:
    return owner is None and visibility is None


def _is_public(offer: Offer) -> bool:
    # Releases with the visibility shared or community are not public.
    return offer.visibility == PUBLIC or is_from_operator(offer)
