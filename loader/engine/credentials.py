# SPDX-License-Identifier: Apache-2.0

"""The credentials of a task: first its own token, then Murano's credentials."""

import contextlib
from typing import Protocol

from keystoneauth1 import access, identity, token_endpoint
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session
from murano.common import auth_utils
from murano.common import config as murano_config

from loader.transport import sessions

CONF = murano_config.CONF


class ExecutionSession(Protocol):
    """The credentials of one task: the attributes of Murano's class that are used here."""

    token: str
    project_id: str
    environment_owner_project_id: str | None


class TaskToken(identity.BaseIdentityPlugin):
    """The token of a task, which Keystone has issued to the task's user for the project.

    For each client, Murano requests another token, with the trust or with the task's token.
    Keystone then hashes a password, which takes longer than to look up the task's token. So
    another token is requested only if the task's token is invalid, expires, or belongs to
    another project.
    """

    def __init__(self, token: str, project_id: str, renewing: identity.BaseIdentityPlugin) -> None:
        """Make the plug-in; no request is sent.

        :param renewing: Murano's credentials for the task.
        """
        super().__init__(renewing.auth_url)
        self._token: str | None = token
        self._project_id = project_id
        self._renewing = renewing

    def get_auth_ref(self, session: ksa_session.Session) -> access.AccessInfo:
        """Return the task's token with its catalogue of services; later calls get another token."""
        token, self._token = self._token, None
        if token is not None:
            with contextlib.suppress(ksa_exceptions.HTTPClientError):
                described = self._described(token, session)
                if described.project_id == self._project_id:
                    return described
        return self._renewing.get_auth_ref(session)

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return the identity of Murano's credentials."""
        return self._renewing.get_cache_id_elements()

    def _described(self, token: str, session: ksa_session.Session) -> access.AccessInfo:
        versions = self.get_discovery(session, str(self.auth_url), authenticated=False)
        headers = {"X-Auth-Token": token, "X-Subject-Token": token}
        url = f"{str(versions.url_for((3, 0))).rstrip('/')}/auth/tokens"
        answer = session.get(url, headers=headers, authenticated=False)
        return access.create(resp=answer, auth_token=token)


class ForbiddenTrust(Exception):
    """A trust belongs to another project than its environment does."""


class EnvironmentTrust(identity.BaseIdentityPlugin):
    """Credentials from a trust; the trust has to belong to the environment's project.

    The id of the trust is in the environment's model. Keystone would let Murano's account use
    every trust that any user has made for this account.
    """

    def __init__(self, trust: identity.BaseIdentityPlugin, project_id: str | None) -> None:
        """Make the plug-in; no request is sent.

        :param project_id: the project that owns the environment.
        """
        super().__init__(trust.auth_url)
        self._trust = trust
        self._project_id = project_id

    def get_auth_ref(self, session: ksa_session.Session) -> access.AccessInfo:
        """Return a token that Keystone issues for the trust.

        :raises ForbiddenTrust: if the trust belongs to another project.
        """
        found = self._trust.get_auth_ref(session)
        if found.project_id != self._project_id:
            raise ForbiddenTrust(
                f"the trust of the environment belongs to project {found.project_id}, but the "
                f"environment to project {self._project_id}; have an operator remove TrustId "
                f"from the environment's model"
            )
        return found

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return the identity of the trust."""
        return self._trust.get_cache_id_elements()


def task_session(execution_session: ExecutionSession) -> ksa_session.Session:
    """Return a session for the task's project; catalogues add their own TLS options.

    :raises CatalogError: if an option of ``[murano_auth]`` is invalid.
    """
    if CONF.murano_auth.www_authenticate_uri or CONF.keystone_authtoken.www_authenticate_uri:
        renewing = auth_utils.get_client_session(execution_session).auth
        auth = TaskToken(execution_session.token, execution_session.project_id, renewing)
        return sessions.configured(CONF, auth_utils.CFG_MURANO_AUTH_GROUP, auth)
    # Without Keystone, Glare gets the token unchanged.
    as_it_is = token_endpoint.Token(CONF.glare.url, execution_session.token)
    session = ksa_session.Session(auth=as_it_is)
    sessions.set_timeout(session)
    return session
