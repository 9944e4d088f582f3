# SPDX-License-Identifier: Apache-2.0

"""Read, preview and move the pins of an environment through Murano's API.

To move a pin is to request another version of the pinned package. The request is written into a
session of the environment. It takes effect when the session is deployed, and not before.
``pin_moves`` has the rules. Nothing is downloaded, and Murano is not imported.
"""

import contextlib
import dataclasses
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from glare_murano.package import Version
from glare_murano.package.errors import shown
from glare_murano.wire import Query
from loader import errors, resolution, time_limits, version_changes
from loader.catalogs.base import Catalog
from loader.environments import object_model, pin_moves
from loader.environments.pins import Pins
from loader.transport import failures
from loader.transport.adapter import ServiceAdapter
from loader.version_changes import VersionChange

# Requested moves: FQN -> a version, several versions, or None for the newest version in range.
Table = Mapping[str, str | Sequence[str] | None]

_ENVIRONMENTS = "/v1/environments"
_PATCH = "application/env-model-json-patch"
# The time between two requests for the state of a deployment, in seconds.
_POLL_INTERVAL = 2.0


class DeploymentFailed(errors.LoaderError):
    """A deployment has failed; the message has the errors from the report of the deployment."""


@dataclasses.dataclass(frozen=True)
class EnvironmentPins:
    """The pins of one environment.

    >>> murano = ServiceAdapter(session, "Murano's API", service_type="application-catalog")
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

    murano: ServiceAdapter
    environment_id: str

    def read(self) -> Pins:
        """Return the pins that the last deployment has written.

        There are no pins before the first deployment by ``murano-glare-engine``.

        :raises InvalidPins: if the model has other data where the pins should be; a failed task can
            leave such data.
        """
        return _pins_of(self._objects())

    def preview(self, catalogs: Sequence[Catalog], table: Table) -> list[VersionChange]:
        """Return what a deployment would change if pins were moved; nothing is changed.

        To move all packages, pass ``dict.fromkeys(pins.read().table)``. This method does not know
        the extension plug-ins of the engine. So a package that only plug-ins require is shown as no
        longer required.

        :param catalogs: the catalogues of the engine, in the same order.
        :param table: the packages to move, as the function ``table`` returns them.
        :raises InvalidPins: if the table is not valid, or the environment cannot use the requested
            versions.
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
        """Write the requested moves of pins into a new session, and return the id of the session.

        The pins are moved when the session is deployed.

        :param table: the packages to move, as the function ``table`` returns them.
        :raises InvalidPins: if the table is not valid; no session is made in this case.
        """
        pin_moves.read_moves(table, Pins())
        configured = self._request("POST", "configure")
        with _expected_form():
            session = str(configured["id"])
        # A package that is left out keeps its pins.
        patch = [{"op": "add", "path": f"/?/{pin_moves.KEY}", "value": dict(table)}]
        headers = {"X-Configuration-Session": session, "Content-Type": _PATCH}
        self._request("PATCH", "model/", headers=headers, json=patch)
        return session

    def deploy(self, session: str) -> None:
        """Begin the deployment of a session; during the deployment, the engine moves the pins.

        :param session: the id that ``move`` returned.
        """
        # The request is sent once: the deployment may have begun although the answer was lost.
        self.murano.start(_path(self.environment_id, f"sessions/{session}/deploy"), "a deployment")

    def wait(self, seconds: float) -> None:
        """Wait for the end of a deployment that ``deploy`` has begun.

        :param seconds: the longest time to wait.
        :raises ValueError: if the time is not finite.
        :raises DeploymentFailed: if the deployment fails.
        :raises CatalogUnavailable: if the deployment takes longer; the deployment continues.
        """
        deadline = time.monotonic() + time_limits.check(seconds, "seconds")
        while True:
            # Murano refuses requests for a deployed session, so the environment is requested.
            environment = self.murano.document("GET", _path(self.environment_id))
            with _expected_form():
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
        with _expected_form():
            last = urllib.parse.quote(str(deployments["deployments"][0]["id"]), safe="")
        deployment = self._request("GET", f"deployments/{last}")
        with _expected_form():
            reports = [each for each in deployment["reports"] if each["level"] == "error"]
            texts = [shown(str(each["text"])) for each in reports]
        return "; ".join(texts) or "its report has no error"

    def _request(self, method: str, path: str, **arguments: Any) -> Any:
        return self.murano.document(method, _path(self.environment_id, path), **arguments)


def find(murano: ServiceAdapter, reference: str) -> EnvironmentPins:
    """Find an environment by its id or name, and return an object that reads and moves its pins.

    :param reference: the environment's id, or its name in the user's project, where names are
        unique. For an environment of another project, an operator has to give the id.
    :raises NotFound: if no environment has this id or name.
    :raises CatalogError: if Murano's API fails.
    """
    listed = murano.document("GET", _ENVIRONMENTS)
    with _expected_form():
        ids = {str(item["name"]): str(item["id"]) for item in listed["environments"]}
    environment_id = reference if reference in ids.values() else ids.get(reference, reference)
    try:
        murano.document("GET", _path(environment_id))
    except failures.NoSuchPath as error:
        raise errors.NotFound(
            f"there is no environment with the id or the name {shown(reference)}; the "
            f"environments of the project are {errors.listed(sorted(ids))}"
        ) from error
    return EnvironmentPins(murano, environment_id)


def table(packages: Iterable[tuple[str, Version | None]], pins: Pins) -> Table:
    """Return the moves that a user requests, as a table for ``EnvironmentPins``.

    >>> table([("org.db", Version("1.0.0")), ("org.wiki", None)], pins)
    {'org.db': ['1.0.0'], 'org.wiki': None}

    :param packages: pairs of an FQN and a version, or None for the newest version in range. Several
        versions of a package are pinned side by side. Without packages, all pinned packages are
        moved to the newest version in range.
    :param pins: the pins of the environment, which are used if there are no packages.
    :raises InvalidPins: if a package is requested both with and without a version.
    """
    versions: dict[str, list[Version | None]] = {}
    for fqn, version in packages:
        versions.setdefault(fqn, []).append(version)
    for fqn, listed in versions.items():
        if None in listed and len(listed) > 1:
            raise errors.InvalidPins(
                f"{fqn} is listed twice, with and without a version; list it once, or give each "
                f"version"
            )
    if not versions:
        return dict.fromkeys(pins.table)
    return {fqn: None if None in v else list(map(str, v)) for fqn, v in versions.items()}


@contextlib.contextmanager
def _expected_form() -> Iterator[None]:
    """Raise ``CatalogError`` if the block cannot read an answer of Murano's API.

    The block reads keys and items of the answer, which an unexpected answer lacks.
    """
    try:
        yield
    except (IndexError, KeyError, TypeError) as error:
        raise errors.CatalogError(
            f"Murano's API sent an answer in an unknown form: {error!r}"
        ) from error


def _path(environment_id: str, *below: str) -> str:
    return "/".join([_ENVIRONMENTS, urllib.parse.quote(environment_id, safe=""), *below])


def _pins_of(objects: Mapping[str, Any]) -> Pins:
    return Pins(objects["?"].get(pin_moves.KEY))
