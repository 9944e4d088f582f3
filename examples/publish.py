# SPDX-License-Identifier: Apache-2.0

"""Publish packages from directories in Glare.

    python -m examples.publish --cloud glare-murano --public DIRECTORY [DIRECTORY ...]

A client creates an artifact with the name and the version, uploads the archive,
and activates the artifact. The server reads everything else from the archive.
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
    """Return a client of Glare over a keystoneauth session."""
    return adapter.Adapter(session, service_type="artifact", endpoint_override=endpoint)


class PublishError(Exception):
    """A failure to publish a package; the message names its directory."""


def publish(glare: adapter.Adapter, directories: Iterable[pathlib.Path], public: bool) -> list[Any]:
    """Publish the packages in directories, and return the artifacts.

    All packages are uploaded before any is activated, so that they may require each
    other. Required packages become public first.

    :raises PublishError: if Glare refuses a package; all packages that are not yet
        active are deleted.
    """
    drafts: list[Any] = []
    active: list[Any] = []
    try:
        for directory in directories:
            with _named(directory):
                _upload(glare, directory, drafts)
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


def _upload(glare: adapter.Adapter, directory: pathlib.Path, drafts: list[Any]) -> None:
    """Upload the package in a directory, and add its artifact to the drafts."""
    with package.Archive.open(directory) as archive, tempfile.TemporaryFile() as packed:
        manifest = package.read_manifest(archive)
        for warning in manifest.warnings:
            print(f"{directory}: {warning}", file=sys.stderr)
        archive.pack(packed)
        packed.seek(0)
        artifact = {"name": manifest.full_name, "version": str(manifest.version)}
        drafts.append(glare.post(ARTIFACTS, json=artifact).json())
        headers = {"Content-Type": "application/octet-stream"}
        path = f"{_path(drafts[-1])}/{fields.ARCHIVE}"
        drafts[-1] = glare.put(path, data=packed, headers=headers).json()


def _required_first(artifacts: Iterable[Any]) -> Iterable[Any]:
    """Sort artifacts so that required packages come first.

    :raises PublishError: if packages require each other in a cycle.
    """
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
        cycle = " requires ".join(reversed(error.args[1]))
        raise PublishError(
            f"dependency cycle: {cycle}; only an administrator can publish these packages, "
            "with the header X-Murano-Override-Checks"
        ) from error
    return [artifact for name in order for artifact in versions[name]]


@contextlib.contextmanager
def _named(package_name: object) -> Iterator[None]:
    try:
        yield
    except (exceptions.ClientException, package.InvalidPackage, OSError) as error:
        raise PublishError(f"{package_name}: {error}") from error


def _path(artifact: Any) -> str:
    return f"{ARTIFACTS}/{artifact['id']}"


def _set(glare: adapter.Adapter, artifact: Any, field: str, value: str) -> Any:
    patch = [{"op": "replace", "path": f"/{field}", "value": value}]
    headers = {"Content-Type": "application/json-patch+json"}
    return glare.patch(_path(artifact), json=patch, headers=headers).json()


def main() -> int:
    """Publish the directories of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="+", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--cloud", help="the entry in clouds.yaml")
    parser.add_argument("--public", action="store_true", help="for every project")
    arguments = parser.parse_args()
    cloud = openstack.config.OpenStackConfig().get_one(cloud=arguments.cloud)
    glare = client(cloud.get_session(), cloud.get_endpoint("artifact"))
    try:
        for artifact in publish(glare, arguments.directories, arguments.public):
            print(f"{artifact['name']} {artifact['version']} is active as {artifact['id']}")
    except PublishError as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
