# SPDX-License-Identifier: Apache-2.0

"""References to packages, as users type them: an id, a name, or a name with a range."""

import dataclasses
import uuid
from typing import Self

from glare_murano.package import VersionSpec
from glare_murano.package.manifest import check_required_name
from loader import errors


class AmbiguousReference(errors.LoaderError, ValueError):
    """A reference means several packages, and one was expected."""


@dataclasses.dataclass(frozen=True)
class PackageReference:
    """A reference to one package.

    >>> PackageReference.parse("org.db@>=1,<2")
    PackageReference(org.db@>=1,<2)

    :param fqn: the name of the package; empty if it is referred to by its id.
    :param spec: the range of its versions; every version without one.
    :param id: the id of its artifact or image, or empty.
    """

    fqn: str = ""
    spec: VersionSpec = dataclasses.field(default_factory=lambda: VersionSpec.of("*"))
    id: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``NAME``, ``NAME@VERSION``, ``NAME@RANGE`` or an id, which is a UUID.

        :raises InvalidName: if the name is not valid.
        :raises InvalidRange: if the range is not valid; it cannot be empty.
        """
        if _is_id(text):
            return cls(id=text.lower())
        fqn, spec = split_range(text)
        return cls(check_required_name(fqn), VersionSpec.of("*") if spec is None else spec)

    def __str__(self) -> str:
        if self.id:
            return self.id
        return self.fqn if self.spec.text == "*" else f"{self.fqn}@{self.spec}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


def split_range(text: str) -> tuple[str, VersionSpec | None]:
    """Split ``NAME@RANGE`` into the name and the range; None without a range.

    :raises InvalidRange: if the range is not valid; it cannot be empty.
    """
    name, separator, written = text.partition("@")
    # VersionSpec reads an empty range as in a manifest, where it means 0.x.
    return name, VersionSpec.of(written or "@") if separator else None


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
