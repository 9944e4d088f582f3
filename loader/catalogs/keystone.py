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
"""How catalogues ask OpenStack services: by which session, for which project."""

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from loader import errors
from loader import transfer
from loader.catalogs.base import Scope

_OPTIONS = ("cafile", "certfile", "keyfile", "insecure", "timeout")


def session(conf: cfg.ConfigOpts, group: str, scope: Scope) -> ksa_session.Session:
    """The scope's session, with the TLS options and the timeout of a group, if any are set.

    :raises CatalogError: if the scope has no session.
    """
    if scope.session is None:
        raise errors.CatalogError(f"the catalogue {group} needs a session that authenticates")
    if not any(conf[group][name] for name in _OPTIONS):
        return scope.session
    found: ksa_session.Session = ksa_loading.load_session_from_conf_options(
        conf, group, auth=scope.session.auth
    )
    return found


def project_id(client: adapter.Adapter, name: str) -> str | None:
    """The project that a client's session is scoped to; None if it is to none.

    :param name: what the service is called, for messages.
    :raises CatalogError: if the session cannot authenticate.
    """
    try:
        found: str | None = client.get_project_id()
    except ksa_exceptions.ClientException as error:
        raise transfer.failed(error, f"{name}: not authenticated") from error
    return found
