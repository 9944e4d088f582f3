# SPDX-License-Identifier: Apache-2.0

"""A client of Glance's API: plain requests, and the way of a package into it."""

from typing import Any

import requests
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

from glare_murano import images, wire
from tests import packages, processes
from tests.functional.client import validated


class ImageClient:
    """Plain requests with one token of ``trusted_tokens``, or of Keystone."""

    def __init__(self, url: str, token: str, project: str = "") -> None:
        self.url = url
        self.token = token
        self.project = project or token.split(":")[1]
        self._http = requests.Session()
        self._http.headers.update({"X-Auth-Token": token, "Accept": "application/json"})

    def request(self, method: str, path: str, **kwargs: Any) -> requests.Response:
        """Send a request to a path below the service."""
        return self._http.request(method, f"{self.url}{path}", timeout=60, **kwargs)

    def session(self) -> ksa_session.Session:
        """Return a session of keystoneauth for a token of ``trusted_tokens``."""
        return ksa_session.Session(auth=token_endpoint.Token(self.url, self.token))

    def id_of(self, name: str, version: str) -> str:
        """Return the id of a package of this project."""
        return images.image_id(self.project, name, version)

    def create(self, name: str, version: str = "1.0.0", **values: Any) -> requests.Response:
        """Create the image of a package, as publishers do; values replace or add."""
        body = {
            "id": self.id_of(name, version),
            "name": name,
            "container_format": images.CONTAINER_FORMAT,
            "disk_format": images.DISK_FORMAT,
            "visibility": "private",
            "os_hidden": True,
            images.OWN_VERSION: version,
            **values,
        }
        return self.request("POST", "/v2/images", json=body)

    def put(self, image_id: str, data: bytes, into: str = "stage") -> requests.Response:
        """Send data to the staging area, or into the image: ``file``."""
        headers = {"Content-Type": "application/octet-stream"}
        return self.request("PUT", f"/v2/images/{image_id}/{into}", data=data, headers=headers)

    def start_import(self, image_id: str, **method: Any) -> requests.Response:
        """Begin the import of the staged data."""
        body = {"method": {"name": "glance-direct", **method}}
        return self.request("POST", f"/v2/images/{image_id}/import", json=body)

    def show(self, image_id: str) -> dict[str, Any]:
        """Return the image, with its properties."""
        answer = self.request("GET", f"/v2/images/{image_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def wait(self, image_id: str) -> dict[str, Any]:
        """Wait for the end of the import, and return the image."""

        def finished() -> dict[str, Any] | None:
            image = self.show(image_id)
            # Glance's lock is dropped last, and SQLite is locked until then.
            is_final = image["status"] in ("active", "queued")
            return image if is_final and "os_glance_import_task" not in image else None

        found: dict[str, Any] = processes.wait_until(finished, f"the import of {image_id}")
        return found

    def wait_idle(self, image_id: str) -> None:
        """Wait until Glance itself changes an image no more: SQLite takes one writer."""
        processes.wait_until(
            lambda: "os_glance_import_task" not in self.show(image_id),
            f"Glance to leave {image_id}",
        )

    def imported(self, image_id: str, data: bytes) -> dict[str, Any]:
        """Stage and import data into an image, and return the image after that."""
        for answer in (self.put(image_id, data), self.start_import(image_id)):
            assert answer.ok, answer.text
        return self.wait(image_id)

    def publish_draft(self, name: str, version: str, data: bytes, **values: Any) -> dict[str, Any]:
        """Create, stage and import a package, which is not published yet."""
        created = self.create(name, version, **values)
        assert created.status_code == 201, created.text
        return self.imported(created.json()["id"], data)

    def patch(self, image_id: str, *operations: dict[str, Any]) -> requests.Response:
        """Change an image by operations of a JSON patch."""
        headers = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
        return self.request(
            "PATCH", f"/v2/images/{image_id}", json=list(operations), headers=headers
        )

    def set(self, image_id: str, name: str, value: Any, op: str = "replace") -> requests.Response:
        """Change one attribute or property of an image."""
        return self.patch(image_id, {"op": op, "path": f"/{name}", "value": value})

    def delete(self, image_id: str) -> requests.Response:
        """Delete an image."""
        return self.request("DELETE", f"/v2/images/{image_id}")

    def query(self, path: str, **body: Any) -> requests.Response:
        """Send a request to the API of packages."""
        return validated(self.request("POST", path, json=body))

    def draft(self, name: str, version: str = "1.0.0", **require: str) -> str:
        """Import a package that requires others, and return the id of its image."""
        data = packages.package(name, version, Require=require)
        image_id = str(self.publish_draft(name, version, data)["id"])
        self.wait_idle(image_id)
        return image_id

    def publish(
        self, name: str, version: str, data: bytes, visibility: str = "private", **values: Any
    ) -> dict[str, Any]:
        """Create, import and publish a package, and return its image."""
        image_id = self.publish_draft(name, version, data, **values)["id"]
        self.wait_idle(image_id)
        answer = self.query(wire.PUBLICATIONS_PATH, ids=[image_id], visibility=visibility)
        assert answer.status_code == 200, answer.text
        return self.show(image_id)

    def publications(self, *ids: str, visibility: str = "private", **body: Any) -> Any:
        """Publish packages that were imported, all or none."""
        return self.query(wire.PUBLICATIONS_PATH, ids=ids, visibility=visibility, **body)

    def resolve(self, **body: Any) -> requests.Response:
        """Send a dependency query."""
        return self.query(wire.DEPENDENCIES_PATH, **body)

    def read(self, path: str, parameters: Any = ()) -> requests.Response:
        """Send a request with parameters to the API of packages."""
        return validated(self.request("GET", path, params=parameters))

    def subclasses(self, class_name: str, **parameters: Any) -> requests.Response:
        """List subclasses."""
        return self.read(wire.SUBCLASSES_PATH, {"class": class_name, **parameters})

    def lost(self, *packages: tuple[str, str]) -> list[tuple[str, str]]:
        """Return which names and versions cannot be published again."""
        listed = [{"name": name, "version": version} for name, version in packages]
        answer = self.query(wire.DELETIONS_PATH, packages=listed)
        assert answer.status_code == 200, answer.text
        return [(each["name"], each["version"]) for each in answer.json()["packages"]]

    def yank(self, image_id: str, reason: str) -> requests.Response:
        """Yank a package."""
        return self.query(wire.YANKS_PATH, id=image_id, reason=reason)
