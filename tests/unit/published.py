# SPDX-License-Identifier: Apache-2.0

"""Random packages, and catalogues of them."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from hypothesis import strategies as st

from glare_murano import wire
from glare_murano.package import Version, VersionSpec
from loader.catalogs import base

VERSIONS = ("0.9.0", "1.0.0-rc.1", "1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.0.0+b.1")
RANGES = (
    *("*", "0", "1", "1.0", "1.0.0", "2", ">=1.1", "<2", ">=1.0.0-rc.1,<1.1", ">=1,!=1.1.0,<2"),
    # Versions that differ only in their build.
    *("2.0.0", "==2.0.0+b.1"),
)
# Among them such as YAML reads as something else than text.
NAMES = ("a", "b", "c", "on", "null")

# A package -> its versions -> what each requires.
Packages = Mapping[str, Mapping[str, Mapping[str, str]]]

requirements = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(RANGES), max_size=3)
packages = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(VERSIONS), requirements, min_size=1, max_size=4),
)


def pins(names: Sequence[str] = NAMES) -> st.SearchStrategy[dict[str, list[str]]]:
    versions = st.lists(st.sampled_from(VERSIONS), max_size=2)
    return st.dictionaries(st.sampled_from(names), versions, max_size=3)


def ranges(texts: Mapping[str, str]) -> dict[str, VersionSpec]:
    return {fqn: VersionSpec.of(text) for fqn, text in texts.items()}


class Shelf(base.Catalog):
    """A catalogue of given releases."""

    def __init__(self, releases: Iterable[wire.Release]) -> None:
        super().__init__("the shelf")
        self._releases = base.newest_first(releases)

    def releases(self, fqn: str) -> list[wire.Release]:
        return [release for release in self._releases if release.fqn == fqn]

    def releases_defining(self, class_name: str) -> list[wire.Release]:
        return [release for release in self._releases if class_name in release.classes]

    def fetch(self, release: wire.Release) -> Iterable[bytes]:
        raise NotImplementedError


def catalog(found: Packages, label: str = "", replaced: Collection[str] = ()) -> Shelf:
    """Return a catalogue of packages, each with one class, ``FQN.Thing``.

    :param label: what the content of the archives depends on, beside name and version.
    :param replaced: those, as ``FQN version``, that are another archive than they were.
    """

    def digest(release: str) -> str:
        state = " again" if release in replaced else ""
        return hashlib.sha256(f"{label} {release}{state}".encode()).hexdigest()

    return Shelf(
        wire.Release(
            fqn,
            Version(version),
            ranges(required),
            frozenset([f"{fqn}.Thing"]),
            "",
            digest(f"{fqn} {version}"),
        )
        for fqn, versions in found.items()
        for version, required in versions.items()
    )
