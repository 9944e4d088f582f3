# SPDX-License-Identifier: Apache-2.0

"""Check Glare's database, as the plug-in ``glare_database`` of oslo.middleware's health check.

The plug-in does not check the store of blobs, since distributed stores have their own checks.
"""

import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from oslo_log import log as logging
from oslo_middleware.healthcheck import pluginbase

LOG = logging.getLogger(__name__)


class DatabaseCheck(pluginbase.HealthcheckBaseExtension):
    """A check that Glare's database answers."""

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Check that a row of Glare's table of artifacts can be read, and return the result."""
        try:
            with database.get_engine().connect() as connection:
                connection.execute(sa.text("SELECT id FROM glare_artifacts LIMIT 1")).all()
        except Exception as error:
            # The check fails for every error. The response has no details, since the caller is not
            # authenticated.
            LOG.warning("The database does not answer: %s", error)
            return pluginbase.HealthcheckResult(
                available=False, reason="the database does not answer"
            )
        return pluginbase.HealthcheckResult(available=True, reason="OK")
