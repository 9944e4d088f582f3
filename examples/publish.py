# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Publish packages in Glare: folders go in, active artifacts come out.

    python -m examples.publish --cloud glare-murano --public FOLDER [FOLDER ...]

It shows the whole of what a client has to do: create an artifact with the
name and the version, upload the archive, activate it. Everything else is read
from the archive by the server.
"""

import argparse
import pathlib
import sys
import tempfile
from typing import Any

import openstack.config
from keystoneauth1 import adapter
from keystoneauth1 import exceptions

from glare_murano import fields
from glare_murano import package

ARTIFACTS = f"/artifacts/{fields.TYPE_NAME}"


def client(session: Any, endpoint: str | None = None) -> adapter.Adapter:
    """A client of Glare over a keystoneauth session."""
    return adapter.Adapter(session, service_type="artifact", endpoint_override=endpoint)


def publish(glare: adapter.Adapter, folder: pathlib.Path, public: bool) -> Any:
    """Publish the package in a folder, and return the artifact.

    :raises keystoneauth1.exceptions.ClientException: if Glare refuses it;
        nothing is left in Glare then.
    """
    with package.Archive.open(folder) as archive, tempfile.TemporaryFile() as packed:
        manifest = package.read_manifest(archive)
        for warning in manifest.warnings:
            print(f"{folder}: {warning}", file=sys.stderr)
        archive.pack(packed)
        packed.seek(0)
        claim = {"name": manifest.full_name, "version": str(manifest.version)}
        artifact = glare.post(ARTIFACTS, json=claim).json()
        path = f"{ARTIFACTS}/{artifact['id']}"
        try:
            headers = {"Content-Type": "application/octet-stream"}
            glare.put(f"{path}/{fields.ARCHIVE}", data=packed, headers=headers)
            artifact = _set(glare, path, "status", "active")
            return _set(glare, path, "visibility", "public") if public else artifact
        except exceptions.ClientException:
            glare.delete(path)
            raise


def _set(glare: adapter.Adapter, path: str, field: str, value: str) -> Any:
    patch = [{"op": "replace", "path": f"/{field}", "value": value}]
    headers = {"Content-Type": "application/json-patch+json"}
    return glare.patch(path, json=patch, headers=headers).json()


def main() -> int:
    """Publish every folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--cloud", help="the entry in clouds.yaml")
    parser.add_argument("--public", action="store_true", help="for every project")
    arguments = parser.parse_args()
    cloud = openstack.config.OpenStackConfig().get_one(cloud=arguments.cloud)
    glare = client(cloud.get_session(), cloud.get_endpoint("artifact"))
    failed = False
    for folder in arguments.folders:
        try:
            artifact = publish(glare, folder, arguments.public)
            print(f"{artifact['name']} {artifact['version']} is active as {artifact['id']}")
        except (exceptions.ClientException, package.InvalidPackage, OSError) as error:
            print(f"{folder}: {error}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
