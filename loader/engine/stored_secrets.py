# SPDX-License-Identifier: Apache-2.0

"""Read secrets in Barbican with the token of a task."""

import uuid
from typing import Any

from barbicanclient import client as barbican_client
from castellan import key_manager
from castellan.common import exception
from castellan.key_manager import barbican_key_manager
from keystoneauth1 import session as ksa_session
from murano.common import auth_utils
from murano.dsl import helpers
from oslo_config import cfg


class SecretsDisabled(Exception):
    """No package may read secrets; the message says which option the operator has to change."""


class TaskSecrets(barbican_key_manager.BarbicanKeyManager):
    """A client of Barbican that uses a given session; castellan's client makes a new session."""

    def _get_barbican_client(self, context: Any) -> Any:
        context.verify = self._verify
        endpoint = self._get_barbican_endpoint(context.auth, context)
        version = self.conf.barbican.barbican_api_version
        return barbican_client.Client(version=version, session=context, endpoint=endpoint)


def check_call(secret_id: str, conf: cfg.ConfigOpts) -> None:
    """Check that packages may read secrets, and that the id of a secret is valid.

    :raises SecretsDisabled: if packages may not read secrets.
    :raises ValueError: if the id is not valid.
    """
    if not conf.engine.decrypt_data:
        raise SecretsDisabled(
            "decryptData is disabled on this engine; the operator can enable it with "
            "[engine] decrypt_data"
        )
    try:
        uuid.UUID(secret_id)
    except ValueError as error:
        raise ValueError("decryptData: the argument is not the id of a secret") from error


def manager(conf: cfg.ConfigOpts) -> TaskSecrets:
    """Return a client of Barbican.

    castellan can use other key managers. They read secrets with the engine's credentials, so they
    are refused.

    :raises SecretsDisabled: if the operator has chosen another key manager.
    """
    if not isinstance(key_manager.API(conf), barbican_key_manager.BarbicanKeyManager):
        raise SecretsDisabled(
            f"decryptData reads secrets of Barbican only, with the token of the task; "
            f"[key_manager] backend is {conf.key_manager.backend}"
        )
    return TaskSecrets(conf)


def task_session() -> ksa_session.Session:
    """Return a session with the token of the running task.

    :raises AuthTypeInvalidError: if no task of an environment runs, as in a static action.
    """
    task = helpers.get_execution_session()
    if task is None or task.token is None:
        raise exception.AuthTypeInvalidError(
            "decryptData needs a task of an environment, whose token is used"
        )
    session: ksa_session.Session = auth_utils.get_token_client_session(task.token, task.project_id)
    return session
