# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
