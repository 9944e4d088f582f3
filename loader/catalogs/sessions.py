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

"""Sessions as an operator configures them, among the options of what they ask."""

from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import plugin
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from loader import transfer


def configured(
    conf: cfg.ConfigOpts, group: str, auth: plugin.BaseAuthPlugin | None = None
) -> ksa_session.Session:
    """A session with the TLS options and the timeout of a group.

    :param auth: what it authenticates by, if it does.
    """
    session: ksa_session.Session = ksa_loading.load_session_from_conf_options(
        conf, group, auth=auth
    )
    transfer.limit(session)
    return session
