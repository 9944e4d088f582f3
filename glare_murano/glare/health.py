# SPDX-License-Identifier: Apache-2.0

"""The plug-in ``glare_database`` for the health check of oslo.middleware.

It does not check the store of blobs, since distributed stores have checks of their own.
"""

import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from oslo_log import log as logging
from oslo_middleware.healthcheck import pluginbase

LOG = logging.getLogger(__name__)


class DatabaseCheck(pluginbase.HealthcheckBaseExtension):
    """A check that Glare's database answers."""

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Return whether a row of Glare's artifacts can be read."""
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
