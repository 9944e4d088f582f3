# SPDX-License-Identifier: Apache-2.0

"""A catalogue of many packages, written directly into Glare's database.

The rows are the same as for packages published through Glare's API; a functional
test compares them. Only the blobs themselves are missing. A larger catalogue
contains the smaller ones, and each contains an application of 50 packages.
"""

import collections
import dataclasses
import datetime
import functools
import hashlib
import itertools
import pathlib
import random
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy
from glare.common import semver_db
from glare.db.sqlalchemy import models

from glare_murano import fields
from glare_murano.package import Contents, Manifest, Version, VersionSpec
from glare_murano.package.classes import ClassDefinition
from glare_murano.package.manifest import Format

CORE = "io.murano"
VERSIONS = (*(f"1.{minor}.0" for minor in range(7)), "2.0.0", "2.1.0", "2.2.0-rc.1")
# Most requirements are upon a major version; some packages end up in two.
RANGES = ("1", "1", "1", ">=1.2.0,<2", ">=1.2.0,<2", ">=1.0,!=1.6.0,<2", "1.4", ">=2.0.0")

# The number of the application's packages on each level of its graph. All of them
# also require the core library.
LEVELS = (1, 5, 10, 14, 12, 7)
APPLICATION_SIZE = 1 + sum(LEVELS)
_LEVEL_STARTS = tuple(itertools.accumulate(LEVELS, initial=1))

_REQUIRED = 3
_PROJECTS = 40
_BATCH = 500
_PUBLISHED_AT = datetime.datetime(2025, 1, 1)


def _id() -> str:
    return str(uuid.uuid4())


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A version of a package, and its project."""

    contents: Contents
    owner: str
    visibility: str
    status: str = "active"
    id: str = dataclasses.field(default_factory=_id)


def name(number: int) -> str:
    """Return the name of a package: 0 is the core library, 1 the application."""
    return CORE if number == 0 else f"org.vendor{number % 97}.Package{number}"


def owner(number: int) -> str:
    """Return a package's project; the application's packages share a project."""
    return f"project{0 if number < APPLICATION_SIZE else number % _PROJECTS}"


def artifacts(count: int) -> Iterator[Artifact]:
    """Generate this many artifacts, ten versions of each package."""
    for number in range(count // len(VERSIONS)):
        dice = random.Random(number)
        public = number == 0 or dice.random() < 0.7
        for version in VERSIONS:
            requirements = {
                name(required): dice.choice(RANGES) if required else "1"
                for required in _required_by(number, dice)
            }
            yield Artifact(
                contents=contents(name(number), version, requirements),
                owner=owner(number),
                visibility="public" if public else "private",
            )


def contents(fqn: str, version: str, requirements: Mapping[str, str]) -> Contents:
    """Return the contents of a package with four classes."""
    server = f"{fqn}.Server"
    classes = (
        ClassDefinition(f"{fqn}.Client", (f"{CORE}.Object",)),
        ClassDefinition(f"{fqn}.Cluster", (server,)),
        ClassDefinition(f"{fqn}.Main", (f"{CORE}.Application",)),
        ClassDefinition(server, (f"{CORE}.Object",)),
    )
    label = fqn.rpartition(".")[2]
    manifest = Manifest(
        fqn=fqn,
        version=Version(version),
        format=Format.of("1.4"),
        package_type="Application",
        display_name=f"{label} as a service",
        description=f"{label}, with its clients.",
        author="A Vendor",
        supplier={"Name": "A Vendor", "CompanyUrl.Link": "https://vendor.example.org"},
        tags=("cluster", label),
        classes={definition.name: f"{definition.name}.yaml" for definition in classes},
        # A package implicitly requires its own major version.
        requirements={
            required: _spec(range_)
            for required, range_ in {**requirements, fqn: version.partition(".")[0]}.items()
        },
        ui="ui.yaml",
        logo=None,
        document={},
        warnings=(),
    )
    return Contents(manifest, classes, manifest.requirements)


@functools.cache
def _spec(range_: str) -> VersionSpec:
    return VersionSpec.of(range_)


def _required_by(number: int, dice: random.Random) -> Collection[int]:
    """Return the numbers of a package's requirements.

    They are on the next level in the application, and any earlier packages elsewhere.
    """
    if number == 0:
        return ()
    if number >= APPLICATION_SIZE:
        return 0, *dice.sample(range(1, number), _REQUIRED)
    level = next(level for level, end in enumerate(_LEVEL_STARTS[1:]) if number < end)
    if level + 1 == len(LEVELS):
        return (0,)
    below = range(*_LEVEL_STARTS[level + 1 : level + 3])
    # The packages of a level together require all packages of the next.
    own = below[number - _LEVEL_STARTS[level] :: LEVELS[level]]
    return {0, *own, *dice.sample(below, _REQUIRED)}


def load(database: pathlib.Path, artifacts: Iterable[Artifact]) -> None:
    """Write artifacts into the SQLite database of an idle Glare."""
    engine = sqlalchemy.create_engine(f"sqlite:///{database}")
    remaining = iter(artifacts)
    with engine.connect() as connection:
        for setting in ("synchronous = off", "journal_mode = off", "cache_size = -1000000"):
            connection.exec_driver_sql(f"pragma {setting}")
        with connection.begin():
            while batch := [*itertools.islice(remaining, _BATCH)]:
                insert(connection, batch)
    engine.dispose()


def remove(database: pathlib.Path, project: str) -> None:
    """Delete the artifacts of a project from the SQLite database of an idle Glare."""
    owned = sqlalchemy.select(models.Artifact.id).where(models.Artifact.owner == project)
    engine = sqlalchemy.create_engine(f"sqlite:///{database}")
    with engine.begin() as connection:
        for model in (models.ArtifactTag, models.ArtifactProperty, models.ArtifactBlob):
            connection.execute(sqlalchemy.delete(model).where(model.artifact_id.in_(owned)))
        connection.execute(
            sqlalchemy.delete(models.Artifact).where(models.Artifact.owner == project)
        )
    engine.dispose()


def insert(connection: sqlalchemy.engine.Connection, artifacts: Iterable[Artifact]) -> None:
    """Write artifacts into Glare's database, in the transaction of a connection."""
    for model, rows in _rows(artifacts).items():
        if rows:
            connection.execute(sqlalchemy.insert(model), rows)


def _rows(artifacts: Iterable[Artifact]) -> dict[type, list[dict[str, Any]]]:
    """Return the rows of artifacts by table, as Glare stores them."""
    rows = collections.defaultdict(list)
    for artifact in artifacts:
        contents = artifact.contents
        row = _artifact(artifact)
        rows[models.Artifact].append(row)
        for model, parts in (
            (models.ArtifactTag, [{"value": tag} for tag in contents.manifest.tags]),
            (models.ArtifactProperty, _properties(contents)),
            (models.ArtifactBlob, _blobs(contents)),
        ):
            rows[model] += [{"id": _id(), "artifact_id": row["id"], **part} for part in parts]
    return rows


def _artifact(artifact: Artifact) -> dict[str, Any]:
    manifest = artifact.contents.manifest
    prefix, suffix, meta = semver_db.parse(str(manifest.version)).__composite_values__()
    return {
        "id": artifact.id,
        "name": manifest.fqn,
        "type_name": fields.TYPE_NAME,
        "version_prefix": prefix,
        "version_suffix": suffix,
        "version_meta": meta,
        "description": manifest.description,
        "visibility": artifact.visibility,
        "status": artifact.status,
        "owner": artifact.owner,
        "created_at": _PUBLISHED_AT,
        "updated_at": _PUBLISHED_AT,
        "activated_at": None if artifact.status == "drafted" else _PUBLISHED_AT,
        "display_type_name": "Murano packages",
    }


def _properties(contents: Contents) -> Iterator[dict[str, Any]]:
    values = dict(fields.from_contents(contents))
    for name in fields.COMMON:
        del values[name]
    for field, value in values.items():
        row = {"name": field, "string_value": value, "position": None, "key_name": None}
        if isinstance(value, str):
            yield row
        elif isinstance(value, list):
            for position, item in enumerate(value):
                yield {**row, "string_value": item, "position": position}
        else:
            for key, item in value.items():
                yield {**row, "string_value": item, "key_name": key}


def _blobs(contents: Contents) -> Iterator[dict[str, Any]]:
    """Generate the rows of the archive and the form; nothing reads their URLs."""
    digest = hashlib.sha256(str(contents.manifest).encode()).hexdigest()
    for field, content_type in (
        (fields.ARCHIVE, "application/octet-stream"),
        ("ui_definition", "application/x-yaml"),
    ):
        yield {
            "name": field,
            "size": 4096,
            "md5": digest[:32],
            "sha1": digest[:40],
            "sha256": digest,
            "external": False,
            "url": f"file:///blobs/{digest}",
            "status": "active",
            "content_type": content_type,
        }
