# SPDX-License-Identifier: Apache-2.0

"""The benchmarks' catalogue holds what Glare itself would have stored."""

import dataclasses
import importlib.util
import itertools
import pathlib

import pytest
import sqlalchemy
from glare.db.sqlalchemy import api, models

from benchmarks import __main__, catalogue
from glare_murano.package import Contents
from tests import packages
from tests.functional.client import Client

# Chance, the clock, the test's own choice, and what is not there: the blobs.
APART = {
    *("id", "artifact_id", "created_at", "updated_at", "activated_at", "owner"),
    *("size", "md5", "sha1", "sha256", "url"),
}


def _archive(contents: Contents) -> bytes:
    """The archive of a package that says the same."""
    said = contents.manifest
    manifest = packages.manifest(
        said.fqn,
        str(said.version),
        Type=said.package_type,
        Name=said.display_name,
        Description=said.description,
        Author=said.author,
        Supplier=dict(said.supplier),
        Tags=list(said.tags),
        Classes=dict(said.classes),
        Require={fqn: spec.text for fqn, spec in said.requirements.items()},
    )
    files = packages.files(manifest)
    for definition in contents.classes:
        text = f"Name: {definition.name}\nExtends: {definition.extends[0]}\n"
        files[f"Classes/{said.classes[definition.name]}"] = text.encode()
    return packages.zipped({**files, "UI/ui.yaml": packages.FORM})


def _rows(owner: str) -> dict[str, list[str]]:
    """What the database has of a project's one artifact, by table."""
    with api.get_engine().connect() as connection:
        table = models.Artifact.__table__
        artifact = connection.execute(sqlalchemy.select(table).filter_by(owner=owner)).one()
        found = {table.name: [artifact]}
        for model in (models.ArtifactTag, models.ArtifactProperty, models.ArtifactBlob):
            rows = sqlalchemy.select(model.__table__).filter_by(artifact_id=artifact.id)
            found[model.__tablename__] = connection.execute(rows).all()
    return {
        name: sorted(str({k: row[k] for k in row._fields if k not in APART}) for row in rows)
        for name, rows in found.items()
    }


# The core library, a pre-release of the application, and some other package.
@pytest.mark.parametrize("number", [5, 19, 1509])
def test_its_rows_are_those_of_a_package_that_was_published(
    glare_url: str, project: str, state_dir: pathlib.Path, number: int
) -> None:
    [artifact] = itertools.islice(catalogue.artifacts(2000), number, number + 1)
    manifest = artifact.contents.manifest
    publisher = Client(glare_url, f"admin:{project}:admin")
    # What it requires is not there.
    publisher.headers["X-Murano-Override-Checks"] = "true"
    publisher.publish(manifest.fqn, str(manifest.version), _archive(artifact.contents))
    copy = dataclasses.replace(artifact, owner=f"{project}-copy", visibility="private")

    catalogue.load(state_dir / "glare.sqlite", [copy])

    assert _rows(copy.owner) == _rows(project)


def test_every_benchmark_can_be_imported() -> None:
    # "make test" runs no benchmark: this finds names that have changed.
    assert all(benchmark.__doc__ for benchmark in __main__.BENCHMARKS)
    assert importlib.util.find_spec("benchmarks.engine_process")
    for process in ("fetching_process", "loading_process"):
        importlib.import_module(f"benchmarks.{process}")
