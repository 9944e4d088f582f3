# SPDX-License-Identifier: Apache-2.0

"""Make the credentials of a task: the user's own token, or else a token that Murano requests.

A task uses the token with which the user started it, as long as Keystone accepts this token.
"""

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
    """The credentials of a task, as Murano's class ``ExecutionSession`` has them."""

    token: str
    project_id: str
    user_id: str | None
    environment_owner_project_id: str | None
    trust_id: str | None


class TaskToken(identity.BaseIdentityPlugin):
    """A plug-in of keystoneauth, which uses the token with which the user started the task.

    Without it, Murano requests another token for each client, with the trust or with the task's
    token. For each such request, Keystone hashes a password, which takes longer than to look up the
    task's token. With this plug-in, Murano requests another token only if Keystone refuses the
    task's token, or if the task's token has expired or belongs to another project.
    """

    def __init__(self, token: str, project_id: str, renewing: identity.BaseIdentityPlugin) -> None:
        """Make the plug-in; no request is sent.

        :param token: the task's token.
        :param project_id: the project of the task.
        :param renewing: the credentials with which Murano requests another token.
        """
        super().__init__(renewing.auth_url)
        self._token: str | None = token
        self._project_id = project_id
        self._renewing = renewing

    def get_auth_ref(self, session: ksa_session.Session) -> access.AccessInfo:
        """Return a token with its catalogue of services: the task's token, or another one.

        The first call returns the task's token, if Keystone accepts it and it belongs to the task's
        project. Otherwise, and in each later call, Murano requests another token. keystoneauth
        calls this method again when the token has expired or was refused.
        """
        token, self._token = self._token, None
        if token is not None:
            with contextlib.suppress(ksa_exceptions.HTTPClientError):
                described = self._described(token, session)
                if described.project_id == self._project_id:
                    return described
        return self._renewing.get_auth_ref(session)

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return the values that identify these credentials in keystoneauth's cache."""
        return self._renewing.get_cache_id_elements()

    def _described(self, token: str, session: ksa_session.Session) -> access.AccessInfo:
        versions = self.get_discovery(session, str(self.auth_url), authenticated=False)
        headers = {"X-Auth-Token": token, "X-Subject-Token": token}
        url = f"{str(versions.url_for((3, 0))).rstrip('/')}/auth/tokens"
        answer = session.get(url, headers=headers, authenticated=False)
        return access.create(resp=answer, auth_token=token)


class ForbiddenTrust(Exception):
    """The trust in an environment's model belongs to another project than the environment."""


class EnvironmentTrust(identity.BaseIdentityPlugin):
    """Credentials from a trust, which has to belong to the environment's project.

    The environment's model has the trust's id, and a tenant could write another id there. Keystone
    would accept every trust that any user has made for Murano's account.
    """

    def __init__(self, trust: identity.BaseIdentityPlugin, project_id: str | None) -> None:
        """Make the plug-in; no request is sent.

        :param trust: Murano's credentials, which get tokens for the trust.
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
        """Return the values that identify these credentials in keystoneauth's cache."""
        return self._trust.get_cache_id_elements()


class RefusedToken(Exception):
    """Keystone refuses the token of the user who has started the task."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(
            f"the stack cannot be created: Heat creates a stack only with the token of the user "
            f"who has started the task, and Keystone refuses this token ({reason}). It has "
            f"probably expired. Log in again, and repeat the deployment or the action"
        )


class StackCreatorToken(identity.BaseIdentityPlugin):
    """Credentials from the task's token only, with which Heat creates a stack.

    From a token of a trust, Heat cannot make the trust that it needs for a new stack.
    """

    def __init__(self, token: identity.BaseIdentityPlugin) -> None:
        """Make the plug-in; no request is sent.

        :param token: credentials that exchange the task's token.
        """
        super().__init__(token.auth_url)
        self._token = token

    def get_auth_ref(self, session: ksa_session.Session) -> access.AccessInfo:
        """Return a token that Keystone issues for the task's token.

        :raises RefusedToken: if the task's token has expired, or was revoked.
        """
        try:
            return self._token.get_auth_ref(session)
        except (ksa_exceptions.NotFound, ksa_exceptions.Unauthorized) as error:
            raise RefusedToken(error) from error

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return the values that identify these credentials in keystoneauth's cache."""
        return self._token.get_cache_id_elements()


def task_session(execution_session: ExecutionSession) -> ksa_session.Session:
    """Return a session for the task's project.

    :returns: a session with the TLS options in ``[murano_auth]``; without Keystone, a session
        without TLS options. A catalogue with TLS options of its own uses another session.
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
