# SPDX-License-Identifier: Apache-2.0

"""Whether an API process can do its work, for oslo.middleware's health check.

The check is the backend ``glare_database``: the database answers. The store is
not asked, since one that scales out has checks of its own.
"""

import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from oslo_log import log as logging
from oslo_middleware.healthcheck import pluginbase

LOG = logging.getLogger(__name__)


class DatabaseCheck(pluginbase.HealthcheckBaseExtension):
    """Asks the database for one row of Glare's artifacts."""

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Tell whether the database answers."""
        try:
            with database.get_engine().connect() as connection:
                connection.execute(sa.text("SELECT id FROM glare_artifacts LIMIT 1")).all()
        except Exception as error:
            # Whatever it is, the process cannot serve requests. Whoever asks
            # is not authenticated, and is told no more than that.
            LOG.warning("The database does not answer: %s", error)
            return pluginbase.HealthcheckResult(
                available=False, reason="the database does not answer"
            )
        return pluginbase.HealthcheckResult(available=True, reason="OK")
