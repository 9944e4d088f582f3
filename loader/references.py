# SPDX-License-Identifier: Apache-2.0

"""Parse references to packages, as users write them: an id, a name, or a name with a range."""

import dataclasses
import uuid
from typing import Self

from glare_murano.package import VersionSpec
from glare_murano.package.manifest import check_required_name
from loader import errors


class AmbiguousReference(errors.LoaderError, ValueError):
    """A reference stands for several packages where only one is allowed."""


@dataclasses.dataclass(frozen=True)
class PackageReference:
    """A reference to a package.

    >>> PackageReference.parse("org.db@>=1,<2")
    PackageReference(org.db@>=1,<2)

    :param fqn: the name of the package; empty if the reference is an id.
    :param spec: the range of versions; a reference without a range allows any version.
    :param id: the id of the package's artifact in Glare, or of its image in Glance; empty if the
        reference is a name.
    """

    fqn: str = ""
    spec: VersionSpec = dataclasses.field(default_factory=lambda: VersionSpec.of("*"))
    id: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a reference: ``NAME``, ``NAME@VERSION``, ``NAME@RANGE``, or an id, which is a UUID.

        :raises InvalidName: if the name is not valid.
        :raises InvalidRange: if the range after ``@`` is empty or not valid.
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
    """Split ``NAME@RANGE`` into the name and the range; the range of ``NAME`` is None.

    :raises InvalidRange: if the range after ``@`` is empty or not valid.
    """
    name, separator, written = text.partition("@")
    # An empty range is replaced by "@", which is refused. VersionSpec would read it as in a
    # manifest, where it means 0.x.
    return name, VersionSpec.of(written or "@") if separator else None


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
