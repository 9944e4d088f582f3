# SPDX-License-Identifier: Apache-2.0

"""A client of Glare, and the checks of its answers against the API's description."""

import dataclasses
import http.client
import json
import pathlib
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

import requests
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from openapi_core import OpenAPI
from openapi_core.contrib.requests import RequestsOpenAPIRequest, RequestsOpenAPIResponse

ARTIFACTS = "/artifacts/murano"
ARCHIVES = "/murano/v1/archives"
DEPENDENCIES = "/murano/v1/dependencies"
PUBLICATIONS = "/murano/v1/publications"
YANKS = "/murano/v1/yanks"
SUBCLASSES = "/murano/v1/subclasses"
PACKAGES = "/murano/v1/packages"
CATEGORIES = "/murano/v1/categories"

DOCUMENT = OpenAPI.from_file_path(str(pathlib.Path(__file__).parents[2] / "doc" / "openapi.yaml"))


# Method, depth of the path and status: the first answer of each is validated.
_validated_kinds: set[tuple[str, int, int]] = set()


class Client:
    """Plain requests with one token, for artifacts of one type."""

    def __init__(self, url: str, token: str, artifact_type: str = "murano") -> None:
        self.url = url
        self.token = token
        self._artifacts = f"{url}/artifacts/{artifact_type}"
        self._http = requests.Session()
        self.headers = self._http.headers
        self.headers["X-Auth-Token"] = token

    def session(self) -> ksa_session.Session:
        return ksa_session.Session(auth=token_endpoint.Token(self.url, self.token))

    def request(self, method: str, path: str, **kwargs: Any) -> requests.Response:
        answer = self._http.request(method, f"{self._artifacts}{path}", timeout=60, **kwargs)
        kind = method, path.partition("?")[0].count("/"), answer.status_code
        if self._artifacts.endswith(ARTIFACTS) and kind not in _validated_kinds:
            validated(answer)
            _validated_kinds.add(kind)
        return answer

    def create(self, name: str, version: str | None = "1.0.0", **fields: Any) -> requests.Response:
        sent = {"name": name, "version": version, **fields}
        return self.request("POST", "", json={k: v for k, v in sent.items() if v is not None})

    def upload(
        self, artifact_id: str, data: bytes | Iterable[bytes], blob: str = "archive"
    ) -> requests.Response:
        headers = {"Content-Type": "application/octet-stream"}
        return self.request("PUT", f"/{artifact_id}/{blob}", data=data, headers=headers)

    def resolve(self, **body: Any) -> requests.Response:
        """Send a dependency query."""
        return self.post(DEPENDENCIES, body)

    def batch(self, ids: list[str]) -> requests.Response:
        """Ask for the archives of artifacts in one answer."""
        return self.post(ARCHIVES, {"artifacts": ids})

    def publish_all(self, ids: list[str], visibility: str, **body: Any) -> requests.Response:
        """Activate several artifacts, and make them public, all or none."""
        return self.post(PUBLICATIONS, {"ids": ids, "visibility": visibility, **body})

    def yank(self, artifact_id: str, reason: str) -> requests.Response:
        """Yank a package by the resource of yanks, in place of a patch."""
        return self.post(YANKS, {"id": artifact_id, "reason": reason})

    def post(self, path: str, body: Any) -> requests.Response:
        """Send a request to a path beside Glare's own API."""
        return validated(self._http.post(f"{self.url}{path}", json=body, timeout=60))

    def query(self, path: str, parameters: Any = ()) -> requests.Response:
        """Send a request to a path beside Glare's own API."""
        return validated(self._http.get(f"{self.url}{path}", params=parameters, timeout=60))

    def set(self, artifact_id: str, field: str, value: Any) -> requests.Response:
        headers = {"Content-Type": "application/json-patch+json"}
        patch = [{"op": "replace", "path": f"/{field}", "value": value}]
        return self.request("PATCH", f"/{artifact_id}", json=patch, headers=headers)

    def delete(self, artifact_id: str, **more: Any) -> requests.Response:
        return self.request("DELETE", f"/{artifact_id}", **more)

    def show(self, artifact_id: str) -> Any:
        return self.request("GET", f"/{artifact_id}").json()

    def names(self, **filters: str) -> list[tuple[str, str]]:
        """Names and versions of the artifacts that pass the filters."""
        answer = self.request("GET", "", params={**filters, "limit": "100"})
        assert answer.status_code == 200, answer.text
        return sorted((found["name"], found["version"]) for found in answer.json()["artifacts"])

    def draft(self, name: str, version: str, data: bytes) -> str:
        """Create and upload a package; return the id of its artifact."""
        artifact_id: str = self.create(name, version).json()["id"]
        answer = self.upload(artifact_id, data)
        assert answer.status_code == 200, answer.text
        return artifact_id

    def publish(
        self, name: str, version: str, data: bytes | Iterable[bytes], public: bool = False
    ) -> Any:
        """Create, upload, activate, and publish it if ``public``; return the artifact."""
        created = self.create(name, version)
        assert created.status_code == 201, created.text
        artifact_id = created.json()["id"]
        for answer in (
            self.upload(artifact_id, data),
            self.set(artifact_id, "status", "active"),
            *([self.set(artifact_id, "visibility", "public")] if public else []),
        ):
            assert answer.status_code == 200, answer.text
        return answer.json()


def validated(answer: requests.Response) -> requests.Response:
    """The answer, if it has the form that the document of the API promises."""
    DOCUMENT.validate_response(
        RequestsOpenAPIRequest(answer.request), RequestsOpenAPIResponse(answer)
    )
    return answer


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came back of a request that was sent as it was written."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


class Wire:
    """Requests as they are written: no URL is encoded, and no body prepared."""

    def __init__(self, client: Client) -> None:
        self._http = http.client.HTTPConnection(urllib.parse.urlsplit(client.url).netloc)
        self._http.timeout = 60
        self._token = client.token

    def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request.

        :param target: path and query; only characters that would end it are encoded.
        """
        sent = {"X-Auth-Token": self._token, **(headers or {})}
        self._http.request(method, urllib.parse.quote(target, safe=_WRITTEN), body, sent)
        answer = self._http.getresponse()
        return Answer(answer.status, answer.headers, answer.read())

    def close(self) -> None:
        self._http.close()


# What a request line can hold.
_WRITTEN = "".join(map(chr, range(0x21, 0x7F)))


def message(answer: requests.Response | Answer) -> str:
    """What the service says of an error."""
    text: str = answer.json()["error"]["message"]
    return text


def refusal(answer: requests.Response | Answer, status: int) -> str:
    """Check the status of a refused request, and return what the service says of it."""
    assert answer.status_code == status, answer.content
    return message(answer)
