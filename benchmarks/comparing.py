# SPDX-License-Identifier: Apache-2.0

"""The processor time for comparing two versions of Murano's core library."""

import functools
import io
from collections.abc import Iterator

from benchmarks.measure import Figure, ratio
from benchmarks.package import CORE_LIBRARY
from glare_murano.package import Archive, read_contents
from loader.compatibility import compare, expressions
from tests import packages

# About 140 contracts, usages and defaults differ.
_EDITS = {
    b"$.string().notNull()": b"$.string()",
    b"$.int().notNull()": b"$.int()",
    b"$.bool().notNull()": b"$.bool().notNull().check($ = true)",
    b"Usage: Runtime": b"Usage: Out",
    b"Default: null": b"Default: text",
}


def comparing() -> Iterator[Figure]:
    """Compare the guard with reading both versions, equal ones and very different ones."""
    with Archive.open(CORE_LIBRARY) as archive:
        files = {path: archive.read(path, archive.size(path)) for path in archive.paths}
    old = io.BytesIO(packages.zipped(files))
    edited = dict(files)
    for path in files:
        if path.startswith("Classes/"):
            for before, after in _EDITS.items():
                edited[path] = edited[path].replace(before, after)
    for title, new in (("equal", old), ("very different", io.BytesIO(packages.zipped(edited)))):
        value = ratio(
            functools.partial(compare, old, new),
            functools.partial(_read, old, new),
            before=expressions.parse.cache_clear,
        )
        yield Figure(f"comparing core libraries, {title} / reading both", value, "times", 2)


def _read(*versions: io.BytesIO) -> None:
    for version in versions:
        with Archive.open(version) as archive:
            read_contents(archive)


BENCHMARKS = (comparing,)
