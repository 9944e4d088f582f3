# SPDX-License-Identifier: Apache-2.0

"""Releases in Glare, found with Glare's own filters.

Lists are limited to active artifacts of the type ``murano`` that belong to the
caller's project or are public. Without this limit, an administrator's token would show
the packages of every project.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from oslo_config import cfg

from glare_murano import fields, wire
from glare_murano.package import GlareMuranoError
from glare_murano.wire import Release
from loader import errors
from loader.catalogs import base
from loader.catalogs.name_lists import name_lists
from loader.catalogs.planning import PlanningCatalog
from loader.transport.sessions import Scope

ARTIFACTS_PATH = f"/artifacts/{fields.TYPE_NAME}"
# How many artifacts one page of a list has.
_PAGE = 100
_MAX_CLASS_NAME = 255
# How many values one filter has; all filters of a request may have 300 together.
_MAX_VALUES = 200


class GlareCatalog(PlanningCatalog):
    """The packages in a Glare that a project can use.

    A Glare without the filter of ``glare_murano`` has neither queries nor batches.

    >>> catalog = GlareCatalog(session, project_id="my-project", region_name="north")
    """

    title = "Glare"
    service_type = "artifact"
    group = "glare"

    def releases(self, fqn: str) -> Iterable[Release]:
        # Glare refuses filters with longer names.
        return self._releases([("name", f"eq:{fqn}")]) if len(fqn) <= fields.MAX_NAME else ()

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return self._releases([("class_definitions", f"eq:{class_name}")])

    def releases_extending(self, class_names: Collection[str]) -> Iterator[Release]:
        for names in name_lists(class_names, _MAX_CLASS_NAME, "%2C"):
            for start in range(0, len(names), _MAX_VALUES):
                some = names[start : start + _MAX_VALUES]
                yield from self._releases([("inherits", f"in:{','.join(some)}")])

    def known(self, fqns: Collection[str]) -> Iterator[Release]:
        for names in name_lists(fqns, fields.MAX_NAME, "%2C"):
            yield from self._releases([("name", f"in:{','.join(names)}")])

    def fetch(self, release: Release) -> Iterator[bytes]:
        path = f"{ARTIFACTS_PATH}/{release.id}/{fields.ARCHIVE}"
        return self._client.download(path, f"the archive of {release} (artifact {release.id})")

    def _releases(self, filters: list[tuple[str, str]]) -> Iterator[Release]:
        """Yield the releases that match filters, in the order that the interface requires."""
        project = self._project()
        available = [
            *([("owner", f"or:eq:{project}")] if project else []),
            ("visibility", "or:eq:public" if project else "public"),
        ]
        query = [
            *filters,
            *available,
            ("status", "active"),
            ("sort", "version:desc"),
            ("limit", str(_PAGE)),
        ]
        found = map(_release, self._client.items(ARTIFACTS_PATH, "artifacts", query, next_marker))
        # The database sorts pre-releases by its collation. Therefore all releases with the
        # same major, minor and patch are sorted again. In each version, the project's own
        # release comes before a public one.
        for _, peers in itertools.groupby(found, key=lambda r: r.version.truncate()):
            own_first = sorted(peers, key=lambda r: r.owner == project, reverse=True)
            yield from base.newest_first(own_first)


def next_marker(answer: Mapping[str, Any]) -> Any:
    """Return the marker of the page after a list of artifacts; None at the end."""
    # A short page need not be the last one: an operator may limit the length of pages.
    artifacts = answer["artifacts"]
    return artifacts[-1]["id"] if "next" in answer and artifacts else None


def _release(artifact: Any) -> Release:
    """Read a release from Glare's list; its digest and size are in the blob."""
    try:
        archive = wire.get(artifact, fields.ARCHIVE, wire.mapping)
        owner = "" if artifact.get("owner") is None else artifact["owner"]
        # A release without a visibility would be taken for one of the operator's.
        wire.get(artifact, "visibility", wire.string)
        digest = {"sha256": archive.get("sha256"), "size": archive.get("size")}
        return wire.release_from_json({**artifact, "owner": owner, **digest})
    except GlareMuranoError as error:
        raise errors.CatalogError(
            f"Glare sent an artifact that is not a valid package: {error}"
        ) from error


OPTIONS = GlareCatalog.service_options()


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[GlareCatalog]:
    """Make the catalogue of the entry point ``glare``."""
    return [GlareCatalog.configured(conf, scope)]
