# SPDX-License-Identifier: Apache-2.0

"""The common part of all catalogues in services with the filter of ``glare_murano``.

The filter answers a dependency query in one request, and sends several archives in one answer.
A service without the filter can do neither.
"""

import dataclasses
import logging
from collections.abc import Collection, Iterator

from glare_murano import wire
from glare_murano.wire import Answer, Query, Release
from loader import errors
from loader.catalogs.batches import BATCH_ERRORS, read_batch
from loader.catalogs.openstack import ServiceCatalog
from loader.transport.failures import NoSuchPath

LOG = logging.getLogger(__name__)

# How many seconds a batch may take; other processes wait for its archives meanwhile.
_BATCH_TIMEOUT = 60


class PlanningCatalog(ServiceCatalog):
    """A catalogue in a service that plans closures and sends batches, if it has the filter."""

    gives_batches = True
    _answers_queries = True

    def resolve(self, query: Query) -> Answer | None:
        if not self._answers_queries:
            return None
        # No project has an empty id, so for this id only public packages are chosen.
        scoped = dataclasses.replace(query, project_id=self._project() or "")
        body = wire.query_to_json(scoped)
        if body is None:
            return None
        try:
            wanted = (f"{name} {spec}" for name, spec in (*query.requirements, *query.classes))
            subject = f"the closure of {errors.listed(wanted)} (POST {wire.DEPENDENCIES_PATH})"
            answer = self._client.document("POST", wire.DEPENDENCIES_PATH, subject, json=body)
            if answer is not None:
                return wire.answer_from_json(answer)
        except NoSuchPath:
            pass
        except wire.Malformed as error:
            raise errors.CatalogError(
                f"{self.name} answered a dependency query in an unknown form: {error}"
            ) from error
        LOG.info("%s has no dependency queries; its lists are used, level by level", self.name)
        self._answers_queries = False
        return None

    def batch(self, releases: Collection[Release]) -> Iterator[tuple[Release, bytes]]:
        by_id = {release.id: release for release in releases}
        sizes = {release.id: release.size or 0 for release in releases}
        label = "several archives in one answer"
        body = {"artifacts": list(by_id)}
        pieces = self._client.stream("POST", wire.ARCHIVES_PATH, label, _BATCH_TIMEOUT, json=body)
        try:
            for artifact_id, archive in read_batch(pieces, sizes):
                self.counters.count(bytes=len(archive))
                yield by_id[artifact_id], archive
            # The connection can be used again only after the end of the answer is read.
            next(pieces, b"")
        except NoSuchPath:
            self.gives_batches = False
        except BATCH_ERRORS as error:
            raise errors.CatalogError(f"{self.name} did not send {label}: {error}") from error
        finally:
            pieces.close()
