# SPDX-License-Identifier: Apache-2.0

"""The backend ``glare_database`` of oslo.middleware's health check.

The store is not checked, since distributed stores have checks of their own.
"""

import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from oslo_log import log as logging
from oslo_middleware.healthcheck import pluginbase

LOG = logging.getLogger(__name__)


class DatabaseCheck(pluginbase.HealthcheckBaseExtension):
    """The check that the database answers."""

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Read a row of Glare's artifacts."""
        try:
            with database.get_engine().connect() as connection:
                connection.execute(sa.text("SELECT id FROM glare_artifacts LIMIT 1")).all()
        except Exception as error:
            # Every error counts. The caller is not authenticated and sees no details.
            LOG.warning("The database does not answer: %s", error)
            return pluginbase.HealthcheckResult(
                available=False, reason="the database does not answer"
            )
        return pluginbase.HealthcheckResult(available=True, reason="OK")
