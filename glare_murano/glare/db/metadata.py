# SPDX-License-Identifier: Apache-2.0

"""What planning and loading need to know of an artifact, beside its name and version.

Nothing of it changes any more once an artifact is active, so that a process
reads it once. Who may see an artifact does change, and is not known here: only
those that a caller was shown are to be asked for.
"""

import collections
import dataclasses
import threading
from collections.abc import Collection, Mapping
from typing import Any

import cachetools
import sqlalchemy as sa
from glare.db.sqlalchemy import models

from glare_murano import fields
from glare_murano.glare.db.queries import among, checked, looked_up

_REQUIREMENTS = "requirements"
_CLASSES = "class_definitions"

# Of classes and requirements, of which one artifact has 8,000 at the most; they
# take about 20 MB, and three times as much if all names are as long as can be.
_MOST_KEPT = 100_000
# An artifact itself takes as much as so many of them.
_ARTIFACT = 3


@dataclasses.dataclass(frozen=True)
class Details:
    """What an artifact says that has an archive.

    :param requirements: FQN -> range, as the package writes it.
    :param classes: the names of those that it defines, sorted.
    :param digest: the SHA-256 of its archive, in hexadecimal.
    :param size: of its archive, in bytes.
    """

    # Texts, since a range that has been read takes fifty times their memory.
    requirements: Mapping[str, str]
    classes: tuple[str, ...]
    digest: str
    size: int


def _weight(details: Details) -> int:
    return _ARTIFACT + len(details.requirements) + len(details.classes)


_kept: cachetools.LRUCache[str, Details] = cachetools.LRUCache(_MOST_KEPT, _weight)
_guard = threading.Lock()

# Tables, since rows of mapped classes take longer.
_blobs = models.ArtifactBlob.__table__
_properties = models.ArtifactProperty.__table__

# A row for each requirement and class, and one without where there are none.
_SAID = (
    sa.select(
        _blobs.c.artifact_id,
        _blobs.c.sha256,
        _blobs.c.size,
        _properties.c.name,
        _properties.c.key_name,
        _properties.c.string_value,
    )
    .select_from(
        _blobs.outerjoin(
            _properties,
            sa.and_(
                _properties.c.artifact_id == _blobs.c.artifact_id,
                checked(_properties.c.name.in_([_REQUIREMENTS, _CLASSES])),
            ),
        )
    )
    .where(
        among(_blobs.c.artifact_id),
        checked(_blobs.c.name == fields.ARCHIVE),
        checked(_blobs.c.status == "active"),
    )
)


def of_active(connection: Any, ids: Collection[str]) -> dict[str, Details]:
    """The details of artifacts that are active.

    :param connection: one to Glare's database.
    :returns: id -> details, of those that are still there.
    """
    with _guard:
        known = {name: _kept[name] for name in ids if name in _kept}
    unknown = set(ids) - known.keys()
    if not unknown:
        return known
    found = read(connection, unknown)
    with _guard:
        _kept.update(found)
    return known | found


def read(connection: Any, ids: Collection[str]) -> dict[str, Details]:
    """The details of artifacts that have an archive, be they drafts, as they are now.

    :param connection: one to Glare's database.
    :returns: id -> details.
    """
    archives: dict[str, tuple[str, int]] = {}
    requirements: dict[str, dict[str, str]] = collections.defaultdict(dict)
    classes: dict[str, list[str]] = collections.defaultdict(list)
    for name, digest, size, field, key, text in looked_up(connection, _SAID, ids):
        archives[name] = digest, size
        if field == _REQUIREMENTS:
            requirements[name][key] = text
        elif field == _CLASSES:
            classes[name].append(text)
    return {
        name: Details(requirements[name], tuple(sorted(classes[name])), digest, size)
        for name, (digest, size) in archives.items()
    }
