# SPDX-License-Identifier: Apache-2.0

"""The time of the real Glance over MariaDB for closures, publications and loads.

The time of a request is wall-clock time, since MariaDB has its part in it.
"""

import contextlib
import functools
import io
import itertools
import os
import pathlib
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader
from benchmarks import catalogue, closure, server
from benchmarks.measure import Figure, ratio, scratch, wall
from glare_murano import fields, images, wire
from glare_murano.package import Archive, read_manifest
from loader.catalogs.base import Catalog
from loader.catalogs.glance import GlanceCatalog
from loader.catalogs.glare import GlareCatalog
from tests.functional import databases
from tests.functional.client import Client
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

# Packages, and all images.
SIZES = ((1_000, 10_000), (10_000, 100_000))
APPLICATION = catalogue.name(1)

_MEMBER = "member,reader"
_ADMINISTRATOR = "admin:admin:admin,member,reader"
_PROJECT = "demo"
_BATCH = 5_000
# Of an image of a virtual machine.
_PROPERTIES = {"os_distro": "debian", "os_version": "12", "hw_disk_bus": "virtio"}
_POLL_SECONDS = 0.02


def resolving_images() -> Iterator[Figure]:
    """Compare the closure of an application with a list call for the versions of one package."""
    with contextlib.ExitStack() as stack:
        clients = {
            count: stack.enter_context(_loaded(count, all_images)) for count, all_images in SIZES
        }
        for count, all_images in SIZES:
            value = ratio(
                functools.partial(_closure, clients[count]),
                functools.partial(_list, clients[count]),
                clock=wall,
            )
            yield Figure(
                f"Glance: closure of 50 / a list call, {count:,} of {all_images:,} images",
                value,
                "times",
                3,
            )
        (least, _), (most, _) = SIZES
        value = ratio(lambda: _closure(clients[most]), lambda: _closure(clients[least]), clock=wall)
    yield Figure(f"Glance: closure of 50, {most:,} / {least:,} packages", value, "times", 1.5)


@contextlib.contextmanager
def _loaded(count: int, all_images: int) -> Iterator[ImageClient]:
    """Run a Glance with packages among other images, and give a client."""
    with service.running(scratch(), databases.mariadb) as glance:
        artifacts = catalogue.artifacts(count)
        while batch := [*itertools.islice(artifacts, _BATCH)]:
            stored.store(glance, (stored.Package(a.contents, a.owner, a.visibility) for a in batch))
        _store_others(glance, all_images - count)
        yield ImageClient(glance.url, f"user:{catalogue.owner(1)}:{_MEMBER}")


def _store_others(glance: service.Glance, count: int) -> None:
    """Write images of virtual machines into the database, and the index for many images."""
    engine = sqlalchemy.create_engine(glance.database)
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine, only=["images", "image_properties", "image_locations"])
    for start in range(0, count, _BATCH):
        with engine.begin() as connection:
            for table, rows in _others(range(start, min(start + _BATCH, count))).items():
                connection.execute(metadata.tables[table].insert(), rows)
    with engine.begin() as connection:
        connection.exec_driver_sql((service.ETC / "glance-indexes.sql").read_text())
    engine.dispose()


def _others(numbers: Iterable[int]) -> Mapping[str, list[dict[str, Any]]]:
    """Return the rows of images of virtual machines by table."""
    times = {"created_at": stored.NOW, "updated_at": stored.NOW, "deleted": False}
    rows = [
        {
            **times,
            "id": str(uuid.uuid4()),
            "name": f"image{number}",
            "owner": catalogue.owner(number + catalogue.APPLICATION_SIZE),
            "status": "active",
            "visibility": "private",
            "container_format": "bare",
            "disk_format": "qcow2",
            "size": 1,
            "os_hidden": False,
            "min_disk": 0,
            "min_ram": 0,
            "protected": False,
        }
        for number in numbers
    ]
    of_images = [{**times, "image_id": row["id"]} for row in rows]
    location = {"value": "file:///image", "meta_data": "{}", "status": "active"}
    return {
        "images": rows,
        "image_properties": [
            {**of_image, "name": name, "value": value}
            for of_image in of_images
            for name, value in _PROPERTIES.items()
        ],
        "image_locations": [{**of_image, **location} for of_image in of_images],
    }


def _closure(client: ImageClient) -> None:
    query = {"requirements": {APPLICATION: "1"}}
    answer = client.request("POST", wire.DEPENDENCIES_PATH, json=query).json()
    assert len({release["name"] for release in answer["releases"]}) == catalogue.APPLICATION_SIZE
    assert not answer["unsatisfied"]


def _list(client: ImageClient) -> None:
    """List all versions of a package, as a loader does whose Glance has no dependency queries."""
    filters = {
        "name": f'in:"{APPLICATION}"',
        "container_format": images.CONTAINER_FORMAT,
        "status": images.ACTIVE,
        "os_hidden": "true",
        "limit": "100",
    }
    found = client.request("GET", "/v2/images", params=filters).json()["images"]
    assert len(found) == len(catalogue.VERSIONS)


def publishing_images() -> Iterator[Figure]:
    """Compare publishing the core library with uploading it as a plain image."""
    packed = closure.archives()[closure.CORE]
    with Archive.open(io.BytesIO(packed)) as archive:
        manifest = read_manifest(archive)
    # A project can publish a version once.
    projects = (f"project{number}" for number in itertools.count())
    with service.running(scratch(), databases.mariadb) as glance:

        def upload(**values: str) -> ImageClient:
            # The core library's name belongs to those who may publish it for every project.
            client = ImageClient(glance.url, f"user:{next(projects)}:admin,{_MEMBER}")
            created = client.create(manifest.fqn, str(manifest.version), **values)
            _imported(client, created.json()["id"], packed)
            return client

        def publish() -> None:
            client = upload()
            image_id = client.id_of(manifest.fqn, str(manifest.version))
            _publish(client, [image_id], "private")

        value = ratio(
            publish, lambda: upload(container_format="bare", id=str(uuid.uuid4())), clock=wall
        )
    yield Figure("Glance: publishing the core library / a plain image", value, "times", 2)


def _imported(client: ImageClient, image_id: str, data: bytes) -> None:
    """Import data into an image, without a long wait between two looks at its status."""
    for answer in (client.put(image_id, data), client.start_import(image_id)):
        assert answer.ok, answer.text
    while "os_glance_import_task" in (image := client.show(image_id)):
        time.sleep(_POLL_SECONDS)
    assert image["status"] == "active", image


def _publish(client: ImageClient, ids: list[str], visibility: str) -> None:
    answer = client.publications(*ids, visibility=visibility)
    assert answer.ok, answer.text


def loading_images() -> Iterator[Figure]:
    """Compare loading a closure of 30 packages from Glance with loading it from Glare."""
    with (
        server.running(fields.TYPE_NAME) as glare,
        service.running(scratch(), databases.mariadb) as glance,
    ):
        closure.publish(Client(glare.url, _ADMINISTRATOR))
        _publish_closure(ImageClient(glance.url, _ADMINISTRATOR))
        token = f"user:{_PROJECT}:{_MEMBER}"
        ours, theirs = (
            make(
                ksa_session.Session(auth=token_endpoint.Token(url, token)),
                endpoint=url,
                project_id=_PROJECT,
            )
            for make, url in ((GlanceCatalog, glance.url), (GlareCatalog, glare.url))
        )
        cold = ratio(
            lambda: _load(ours, scratch()),
            lambda: _load(theirs, scratch()),
            # The next action does not wait for the writes of the last one.
            before=os.sync,
            clock=wall,
        )
        caches = scratch(), scratch()
        warm = ratio(lambda: _load(ours, caches[0]), lambda: _load(theirs, caches[1]), clock=wall)
    yield Figure("closure of 30, cold, from Glance / from Glare", cold, "times", 1.5)
    yield Figure("closure of 30, warm, from Glance / from Glare", warm, "times", 1.5)


def _publish_closure(client: ImageClient) -> None:
    ids = []
    for name, data in closure.archives().items():
        with Archive.open(io.BytesIO(data)) as archive:
            version = str(read_manifest(archive).version)
        image_id = client.create(name, version).json()["id"]
        _imported(client, image_id, data)
        ids.append(image_id)
    _publish(client, ids, "public")


def _load(catalog: Catalog, cache: pathlib.Path) -> None:
    with loader.PackageLoader([catalog], loader.Cache(cache)) as package_loader:
        closure.load(package_loader)


BENCHMARKS = (resolving_images, publishing_images, loading_images)
