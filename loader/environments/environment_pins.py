# SPDX-License-Identifier: Apache-2.0

"""The pins of an environment in Murano, over its API: read, preview, move.

A move is written into a session. It takes effect when the session is deployed; without a
deployment, nothing changes. The rules are in ``pin_moves``. Nothing is downloaded, and
Murano is not imported.
"""

import contextlib
import dataclasses
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from keystoneauth1 import adapter as ksa_adapter

from glare_murano.package import Version
from glare_murano.package.errors import shown
from glare_murano.wire import Query
from loader import errors, resolution, version_changes
from loader.catalogs.base import Catalog
from loader.environments import object_model, pin_moves
from loader.environments.pins import Pins
from loader.transport import failures, sessions
from loader.version_changes import VersionChange

# FQN -> a version, several versions, or None for the newest in range.
Table = Mapping[str, str | Sequence[str] | None]

_PATCH = "application/env-model-json-patch"
# In seconds.
_POLL_INTERVAL = 2.0


class DeploymentFailed(errors.LoaderError):
    """A deployment has failed; the message has the errors of its report."""


@dataclasses.dataclass(frozen=True)
class EnvironmentPins:
    """The pins of one environment.

    >>> pins = EnvironmentPins(murano, environment_id)
    >>> pins.read()
    Pins({'org.db': ['1.0.0'], 'org.wiki': ['1.1.0']})
    >>> pins.preview(catalogs, {"org.db": None})
    [VersionChange(fqn='org.db', before=(Version('1.0.0'),), after=(Version('1.2.0'),))]
    >>> session = pins.move({"org.db": None})
    >>> pins.deploy(session)

    Each method raises ``CatalogError`` if Murano's API fails or refuses the request.

    :param murano: a client of Murano's API (service type ``application-catalog``).
    """

    murano: ksa_adapter.Adapter
    environment_id: str

    def read(self) -> Pins:
        """Return the pins of the last deployment.

        There are none before the first deployment by ``murano-glare-engine``.

        :raises InvalidPins: if the model has other data in their place, after a failed task.
        """
        return _pins_of(self._objects())

    def preview(self, catalogs: Sequence[Catalog], table: Table) -> list[VersionChange]:
        """Return what a deployment would change if the pins were moved.

        To move all packages, pass ``dict.fromkeys(pins.read().table)``. Packages that only
        the engine's extension plug-ins require are not planned, and shown as not required.

        :param catalogs: those of the engine, in the same order.
        :param table: the packages to move.
        :raises InvalidPins: if the table is not valid, or the environment cannot use the
            requested versions.
        :raises NoSuchPackage: if a requested or a pinned version is missing.
        :raises CatalogError: if a catalogue cannot be read.
        """
        objects = self._objects()
        pins = _pins_of(objects)
        before = {fqn: list(versions) for fqn, versions in pins.table.items()}
        for fqn, versions in table.items():
            if versions is None and fqn not in before:
                raise errors.InvalidPins(
                    f"{shown(fqn)} is not pinned; the pinned packages are "
                    f"{errors.listed(sorted(before))}"
                )
        moves = pin_moves.read_moves(table, pins)
        moved = pin_moves.apply(moves, pins, {"Objects": objects})
        headers = tuple(dict.fromkeys(object_model.object_headers(moved)))
        planned = resolution.resolve(catalogs, Query(classes=headers, pins=pins.table))
        pin_moves.check(moves, planned, catalogs)
        for missing in planned.unsatisfied:
            # A package without a pin may be an extension plug-in of the engine.
            if pinned := pins.select(missing.demand.fqn, missing.demand.spec):
                raise planned.error(missing, catalogs, pinned=pinned)
        return version_changes.between(before, planned.choices)

    def move(self, table: Table) -> str:
        """Write moves into a new session, and return its id.

        :param table: the packages to move.
        :raises InvalidPins: if the table is not valid; nothing has changed then.
        """
        pin_moves.read_moves(table, Pins())
        configured = self._request("POST", "configure")
        with _known_form():
            session = str(configured["id"])
        # A package that is left out keeps its pins.
        patch = [{"op": "add", "path": f"/?/{pin_moves.KEY}", "value": dict(table)}]
        headers = {"X-Configuration-Session": session, "Content-Type": _PATCH}
        self._request("PATCH", "model/", headers=headers, json=patch)
        return session

    def deploy(self, session: str) -> None:
        """Begin the deployment of a session, which makes its moves."""
        self._request("POST", f"sessions/{session}/deploy")

    def wait(self, seconds: float) -> None:
        """Wait for the end of a deployment that ``deploy`` has begun.

        :param seconds: the longest wait.
        :raises DeploymentFailed: if the deployment fails.
        :raises CatalogUnavailable: if the deployment takes longer; it goes on.
        """
        deadline = time.monotonic() + seconds
        while True:
            # Murano refuses requests for a session once it was deployed.
            environment = _request(self.murano, "GET", f"/{_quoted(self.environment_id)}")
            with _known_form():
                status = environment["status"]
            if status == "deploy failure":
                raise DeploymentFailed(
                    f"the deployment of the environment {self.environment_id} failed: "
                    f"{self._problems()}"
                )
            if status != "deploying":
                return
            if time.monotonic() >= deadline:
                raise errors.CatalogUnavailable(
                    f"the deployment of the environment {self.environment_id} did not end within "
                    f"{seconds:g} seconds, and goes on"
                )
            time.sleep(_POLL_INTERVAL)

    def _objects(self) -> dict[str, Any]:
        objects = self._request("GET", "model/")
        if object_model.root_header({"Objects": objects}) is None:
            raise errors.CatalogError("Murano's API sent a model without a header")
        found: dict[str, Any] = objects
        return found

    def _problems(self) -> str:
        """Return the errors in the report of the last deployment."""
        deployments = self._request("GET", "deployments")
        with _known_form():
            last = _quoted(str(deployments["deployments"][0]["id"]))
        deployment = self._request("GET", f"deployments/{last}")
        with _known_form():
            reports = [each for each in deployment["reports"] if each["level"] == "error"]
            texts = [shown(str(each["text"])) for each in reports]
        return "; ".join(texts) or "its report has no error"

    def _request(self, method: str, path: str, **arguments: Any) -> Any:
        return _request(self.murano, method, f"/{_quoted(self.environment_id)}/{path}", **arguments)


def find(murano: ksa_adapter.Adapter, reference: str) -> EnvironmentPins:
    """Return the pins of an environment by its id, or by its name in the user's project.

    A name is unique in its project; an operator names the environments of others by id.

    :raises NotFound: if there is no such environment.
    :raises CatalogError: if Murano's API fails.
    """
    listed = _request(murano, "GET", "")
    with _known_form():
        ids = {str(item["name"]): str(item["id"]) for item in listed["environments"]}
    environment_id = reference if reference in ids.values() else ids.get(reference, reference)
    try:
        _request(murano, "GET", f"/{_quoted(environment_id)}")
    except failures.NoSuchPath as error:
        raise errors.NotFound(
            f"there is no environment with the id or the name {shown(reference)}; the "
            f"environments of the project are {errors.listed(sorted(ids))}"
        ) from error
    return EnvironmentPins(murano, environment_id)


def table(packages: Iterable[tuple[str, Version | None]], pins: Pins) -> Table:
    """Return the table of the requested moves.

    >>> table([("org.db", Version("1.0.0")), ("org.wiki", None)], pins)
    {'org.db': ['1.0.0'], 'org.wiki': None}

    :param packages: FQNs, each with a version or None for the newest in range. Several
        versions of a package are pinned side by side. Without packages, all pinned ones move.
    :raises InvalidPins: if a package is requested both with and without a version.
    """
    versions: dict[str, list[Version | None]] = {}
    for fqn, version in packages:
        versions.setdefault(fqn, []).append(version)
    for fqn, listed in versions.items():
        if None in listed and len(listed) > 1:
            raise errors.InvalidPins(f"{fqn} is named twice; name it once, or with its versions")
    if not versions:
        return dict.fromkeys(pins.table)
    return {fqn: None if None in v else list(map(str, v)) for fqn, v in versions.items()}


def _request(murano: ksa_adapter.Adapter, method: str, path: str, **arguments: Any) -> Any:
    if murano.session.timeout is None:
        arguments["timeout"] = sessions.DEFAULT_TIMEOUT
    try:
        # keystoneauth would send the token along to any host.
        response = murano.request(f"/v1/environments{path}", method, redirect=False, **arguments)
        if response.is_redirect:
            raise failures.UnusableAnswer(
                response, f"it redirects to {shown(response.headers['Location'])}"
            )
        return response.json() if response.content else None
    except failures.FAILURES as error:
        raise failures.catalog_error(error, "Murano's API", None) from error


@contextlib.contextmanager
def _known_form() -> Iterator[None]:
    """Raise CatalogError for an answer in another form."""
    try:
        yield
    except (IndexError, KeyError, TypeError) as error:
        raise errors.CatalogError(
            f"Murano's API sent an answer in an unknown form: {error!r}"
        ) from error


def _quoted(environment_id: str) -> str:
    return urllib.parse.quote(environment_id, safe="")


def _pins_of(objects: Mapping[str, Any]) -> Pins:
    return Pins(objects["?"].get(pin_moves.KEY))
