# SPDX-License-Identifier: Apache-2.0

"""Publish packages in Glare: folders go in, active artifacts come out.

    python -m examples.publish --cloud glare-murano --public FOLDER [FOLDER ...]

It shows the whole of what a client has to do: create an artifact with the
name and the version, upload the archive, activate it. Everything else is read
from the archive by the server.
"""

import argparse
import collections
import contextlib
import graphlib
import pathlib
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import openstack.config
from keystoneauth1 import adapter, exceptions

from glare_murano import fields, package

ARTIFACTS = f"/artifacts/{fields.TYPE_NAME}"


def client(session: Any, endpoint: str | None = None) -> adapter.Adapter:
    """A client of Glare over a keystoneauth session."""
    return adapter.Adapter(session, service_type="artifact", endpoint_override=endpoint)


class PublishError(Exception):
    """A package that cannot be published; the message names its folder."""


def publish(glare: adapter.Adapter, folders: Iterable[pathlib.Path], public: bool) -> list[Any]:
    """Publish the packages in folders, and return the artifacts.

    All are uploaded, then all are activated, so that they may require each
    other; they become public in the order in which they require each other.

    :raises PublishError: if Glare refuses one; those that did not become
        active are deleted again.
    """
    drafts: list[Any] = []
    active: list[Any] = []
    try:
        for folder in folders:
            with _named(folder):
                _upload(glare, folder, drafts)
        while drafts:
            with _named(drafts[0]["name"]):
                active.append(_set(glare, drafts[0], "status", "active"))
            drafts.pop(0)
    except PublishError:
        for draft in drafts:
            glare.delete(_path(draft))
        raise
    if not public:
        return active
    published = []
    for artifact in _required_first(active):
        with _named(artifact["name"]):
            published.append(_set(glare, artifact, "visibility", "public"))
    return published


def _upload(glare: adapter.Adapter, folder: pathlib.Path, drafts: list[Any]) -> None:
    """Make a draft of the package in a folder, and add it to those that there are."""
    with package.Archive.open(folder) as archive, tempfile.TemporaryFile() as packed:
        manifest = package.read_manifest(archive)
        for warning in manifest.warnings:
            print(f"{folder}: {warning}", file=sys.stderr)
        archive.pack(packed)
        packed.seek(0)
        claim = {"name": manifest.full_name, "version": str(manifest.version)}
        drafts.append(glare.post(ARTIFACTS, json=claim).json())
        headers = {"Content-Type": "application/octet-stream"}
        path = f"{_path(drafts[-1])}/{fields.ARCHIVE}"
        drafts[-1] = glare.put(path, data=packed, headers=headers).json()


def _required_first(artifacts: Iterable[Any]) -> Iterable[Any]:
    """Artifacts so that what another requires comes before it."""
    versions = collections.defaultdict(list)
    for artifact in artifacts:
        versions[artifact["name"]].append(artifact)
    graph = {name: set[str]() for name in versions}
    for name, found in versions.items():
        for artifact in found:
            graph[name] |= versions.keys() & artifact["requirements"].keys() - {name}
    try:
        order = list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        circle = " requires ".join(reversed(error.args[1]))
        raise PublishError(
            f"{circle}: an administrator makes these public, overriding the checks"
        ) from error
    return [artifact for name in order for artifact in versions[name]]


@contextlib.contextmanager
def _named(what: object) -> Iterator[None]:
    try:
        yield
    except (exceptions.ClientException, package.InvalidPackage, OSError) as error:
        raise PublishError(f"{what}: {error}") from error


def _path(artifact: Any) -> str:
    return f"{ARTIFACTS}/{artifact['id']}"


def _set(glare: adapter.Adapter, artifact: Any, field: str, value: str) -> Any:
    patch = [{"op": "replace", "path": f"/{field}", "value": value}]
    headers = {"Content-Type": "application/json-patch+json"}
    return glare.patch(_path(artifact), json=patch, headers=headers).json()


def main() -> int:
    """Publish every folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--cloud", help="the entry in clouds.yaml")
    parser.add_argument("--public", action="store_true", help="for every project")
    arguments = parser.parse_args()
    cloud = openstack.config.OpenStackConfig().get_one(cloud=arguments.cloud)
    glare = client(cloud.get_session(), cloud.get_endpoint("artifact"))
    try:
        for artifact in publish(glare, arguments.folders, arguments.public):
            print(f"{artifact['name']} {artifact['version']} is active as {artifact['id']}")
    except PublishError as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
