# SPDX-License-Identifier: Apache-2.0

"""The command ``glare-murano-manage``, beside a server that runs."""

import datetime
import pathlib
import uuid
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from oslo_config import cfg
from oslo_utils import timeutils

from glare_murano.glare import blobs, leases, manage
from glare_murano.glare.db import glare_database
from tests import packages
from tests.functional import sites
from tests.functional.client import Client
from tests.functional.sites import Site

pytestmark = pytest.mark.programs

_LOCKS = "INSERT INTO glare_artifact_locks VALUES (:id, :time)"
_MARK = (
    "INSERT INTO glare_artifact_blobs (id, artifact_id, name, external, status)"
    " VALUES (:id, :artifact, 'archive', false, 'saving')"
)
_CHANGED = "UPDATE glare_artifacts SET updated_at = :time WHERE id = :id"


site = sites.fixture(sites.shared, ["development"])


@pytest.fixture
def orphan(site: Site) -> Iterator[pathlib.Path]:
    """A blob without a row."""
    path = site.folder / "blobs" / str(uuid.uuid4())
    path.write_bytes(b"stored by a server that was killed")
    yield path
    path.unlink(missing_ok=True)


def _execute(site: Site, statement: str, **values: object) -> None:
    with site.database.begin() as connection:
        connection.execute(sa.text(statement), values)


def _ago(**duration: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(**duration)


def _begin_upload(site: Site, artifact_id: str, seconds_ago: float) -> None:
    """What an upload has in the database that made its last progress some time ago."""
    _execute(site, _MARK, id=str(uuid.uuid4()), artifact=artifact_id)
    lease = f"murano-upload:{artifact_id}:{uuid.uuid4()}"
    _execute(site, _LOCKS, id=lease, time=_ago(seconds=seconds_ago))


def test_a_blob_that_no_row_names_is_deleted(site: Site, name: str, orphan: pathlib.Path) -> None:
    client = site.client("project")
    data = packages.package(name)
    artifact_id = client.publish(name, "1.0.0", data)["id"]
    note = site.folder / "blobs" / "README"
    note.touch()

    listed = site.manage("sweep", "--dry-run")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.startswith(f"Would delete blob file://{orphan}: 34 bytes, stored 2")
    assert orphan.exists()

    swept = site.manage("sweep")
    assert (swept.returncode, swept.stderr) == (0, "")
    assert swept.stdout == listed.stdout.replace("Would delete", "Deleted")
    assert not orphan.exists()
    assert note.exists()
    note.unlink()
    assert client.request("GET", f"/{artifact_id}/archive").content == data
    assert site.leftovers() == {}
    assert site.manage("sweep").stdout == ""


def test_the_draft_and_the_blobs_of_a_running_upload_are_kept(
    site: Site, name: str, orphan: pathlib.Path
) -> None:
    client = site.client("project")
    artifact_id = client.create(name).json()["id"]
    _begin_upload(site, artifact_id, seconds_ago=30)
    _execute(site, _CHANGED, id=artifact_id, time=_ago(hours=2))

    kept = site.manage("sweep", "--older-than", "1h")

    assert kept.returncode == 0
    draft, blobs_ = kept.stdout.splitlines()
    assert draft.startswith(f"Kept draft {artifact_id}: {name} 1.0.0 of project project")
    assert "an archive is being uploaded" in draft
    assert blobs_.startswith("Kept 1 blobs that may belong to running uploads")
    assert orphan.exists()
    assert client.upload(artifact_id, packages.package(name)).status_code == 409
    assert client.delete(artifact_id).status_code == 204


@pytest.mark.usefixtures("orphan")
def test_an_abandoned_upload_is_ended_before_its_blobs_are_deleted(site: Site, name: str) -> None:
    client = site.client("project")
    artifact_id = client.create(name).json()["id"]
    _begin_upload(site, artifact_id, seconds_ago=120)

    assert "Would delete blob" in site.manage("sweep", "--dry-run").stdout
    assert "Deleted blob" in site.manage("sweep").stdout

    assert site.leftovers() == {}
    assert client.show(artifact_id)["archive"] is None


def test_an_upload_that_expires_during_a_sweep_may_still_end_well(
    glare: Client, name: str, state_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logo = state_dir / "blobs" / str(uuid.uuid4())
    artifact_id = glare.create(name).json()["id"]
    session = database.get_session()
    with session.begin():
        session.execute(sa.text(_MARK), {"id": str(uuid.uuid4()), "artifact": artifact_id})
        leases.Lease(artifact_id).begin(session.connection())

    def list_slowly() -> Iterator[blobs.StoredBlob]:
        logo.write_bytes(b"stored by the upload")
        found = list(blobs._list_files())
        timeutils.advance_time_seconds(100)
        yield from found

    monkeypatch.setitem(blobs._LISTERS, "file", list_slowly)
    timeutils.set_time_override()
    try:
        assert manage.sweep(None, is_dry_run=False) == 0
    finally:
        timeutils.clear_time_override()

    assert logo.exists()
    logo.unlink()
    assert glare.delete(artifact_id).status_code == 204


def test_old_drafts_are_deleted(site: Site, name: str) -> None:
    client = site.client("project")
    old, new = (client.create(f"{name}.{part}").json()["id"] for part in ("old", "new"))
    assert client.upload(old, packages.package(f"{name}.old")).status_code == 200
    _execute(site, _CHANGED, id=old, time=_ago(days=40))

    assert site.manage("sweep").stdout == ""
    listed = site.manage("sweep", "--dry-run", "--older-than", "30d")
    assert f"Would delete draft {old}: {name}.old 1.0.0 of project project" in listed.stdout
    swept = site.manage("sweep", "--older-than", "30d")

    assert swept.returncode == 0
    assert f"Deleted draft {old}" in swept.stdout
    assert len(swept.stdout.splitlines()) == 1
    statuses = [client.request("GET", f"/{id_}").status_code for id_ in (old, new)]
    assert statuses == [404, 200]
    assert site.leftovers() == {}


@pytest.mark.parametrize(
    ("section", "options", "reason"),
    [
        ("database", "connection = sqlite:///{folder}/empty.sqlite", "glare_artifacts"),
        ("DEFAULT", "enabled_artifact_types = images", "/wrong.conf); name the file"),
    ],
)
def test_a_wrong_configuration_is_one_clear_line(
    site: Site,
    orphan: pathlib.Path,
    tmp_path: pathlib.Path,
    section: str,
    options: str,
    reason: str,
) -> None:
    wrong = tmp_path / "wrong.conf"
    wrong.write_text(f"[{section}]\n{options.format(folder=tmp_path)}\n")

    ended = site.manage("--config-file", str(wrong), "sweep")

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("glare-murano-manage: ")
    assert reason in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert orphan.exists()


def test_glances_images_are_not_taken_for_orphans(
    application: object, state_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "_GLANCE_DIRECTORY", str(state_dir / "blobs"))

    with pytest.raises(blobs.StoreError, match="Glance may store its images"):
        blobs.find_orphans(timeutils.utcnow())


def test_a_store_that_cannot_be_listed_is_named(application: object) -> None:
    cfg.CONF.set_override("stores", ["file", "rbd"], "glance_store")
    try:
        with pytest.raises(blobs.StoreError, match="the store rbd cannot be listed"):
            blobs.find_orphans(timeutils.utcnow())
    finally:
        cfg.CONF.clear_override("stores", "glance_store")


@pytest.mark.usefixtures("application")
def test_an_empty_database_is_taken_for_the_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glare_database, "is_empty", lambda _: True)

    with pytest.raises(blobs.StoreError, match=r"check \[database\] connection"):
        blobs.find_orphans(timeutils.utcnow())
