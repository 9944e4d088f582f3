# SPDX-License-Identifier: Apache-2.0

"""Read artifacts with a statement for each kind of their parts, and at most 100 artifacts a page.

Glare reads an artifact with one statement that joins its properties, its tags and its blobs. The
database returns a row for each combination of them: 1,000 properties and 100 tags are 100,000 rows.
A page of Glare can have 1,000 artifacts, so a million rows.
"""

from typing import Any

from glare.api.v1 import resource
from glare.db import artifact_api
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from sqlalchemy import orm

from glare_murano.glare.db.glare_database import snapshot_session
from glare_murano.glare.interfaces import RequestContext

# The most artifacts of a page, unless the operator sets Glare's option ``max_api_limit``.
MAX_PAGE = 100

_retry = artifact_api.retry(
    retry_on_exception=artifact_api._retry_on_connection_error,
    wait_fixed=1000,
    stop_max_attempt_number=20,
)


class ArtifactApi(artifact_api.ArtifactAPI):  # type: ignore[misc]
    """Glare's class for the database. It reads artifacts in a transaction on a snapshot.

    Glare's own class needs no transaction, since it reads an artifact with one statement.
    """

    @_retry  # type: ignore[untyped-decorator]
    def get(
        self,
        context: RequestContext,
        type_name: str | None,
        artifact_id: str,
        get_any_artifact: bool = False,
    ) -> dict[str, Any]:
        """Return the values of an artifact."""
        with snapshot_session() as session:
            values: dict[str, Any] = database.get(
                context, type_name, artifact_id, session, get_any_artifact
            )
            return values

    @_retry  # type: ignore[untyped-decorator]
    def list(self, context: RequestContext, *conditions: Any) -> dict[str, Any]:
        """Return the values of the artifacts on a page, and the number of artifacts in the list.

        :param conditions: the other parameters of Glare's method, in the same order.
        """
        with snapshot_session() as session:
            found: dict[str, Any] = database.get_all(context, session, *conditions)
            return found


def with_parts(query: Any) -> Any:
    """Make a query for artifacts read their properties, tags and blobs in statements of their own.

    The number of statements does not depend on the number of artifacts.
    """
    parts = (models.Artifact.properties, models.Artifact.tags, models.Artifact.blobs)
    return query.options(*map(orm.selectinload, parts))


def _query(context: RequestContext, session: orm.Session, list_all_artifacts: bool = False) -> Any:
    query = with_parts(session.query(models.Artifact))
    return database._apply_query_base_filters(query, context, list_all_artifacts)


def install() -> None:
    """Replace Glare's query for artifacts, and the default of ``max_api_limit``.

    A second call changes nothing.
    """
    database._do_artifacts_query = _query
    resource.CONF.set_default("max_api_limit", MAX_PAGE)
