# SPDX-License-Identifier: Apache-2.0

"""Secrets in Barbican, read with the token of a task."""

import uuid
from typing import Any

from barbicanclient import client as barbican_client
from castellan import key_manager
from castellan import options as castellan_options
from castellan.key_manager import barbican_key_manager
from murano.common import auth_utils
from murano.dsl import helpers
from oslo_config import cfg

from loader import config
from loader.catalogs import options


class SecretsDisabled(Exception):
    """``decryptData`` cannot be used; the message says why."""


class TaskSecrets(barbican_key_manager.BarbicanKeyManager):
    """Barbican, with a session in place of castellan's own context and session."""

    def _get_barbican_client(self, context: Any) -> Any:
        endpoint = self._get_barbican_endpoint(context.auth, context)
        version = self.conf.barbican.barbican_api_version
        return barbican_client.Client(version=version, session=context, endpoint=endpoint)


def decrypt(secret_id: str, conf: cfg.ConfigOpts) -> bytes | None:
    """Return a secret that the task's user may read.

    :raises SecretsDisabled: if the operator has not allowed it, or the secrets are not in
        Barbican, or no task of an environment runs.
    :raises ValueError: if the id is not valid.
    :raises KeyManagerError: if the secret is missing, or may not be read.
    """
    options.register(conf, config.SERVICE_OPTIONS)
    if not conf[options.GROUP].decrypt_data:
        raise SecretsDisabled(
            "decryptData is disabled on this engine; the operator can enable it with "
            "[package_loader] decrypt_data"
        )
    castellan_options.set_defaults(conf, barbican_endpoint_type="internal")
    manager = key_manager.API(conf)
    if not isinstance(manager, barbican_key_manager.BarbicanKeyManager):
        raise SecretsDisabled(
            f"decryptData reads secrets of Barbican only, by the task's token; [key_manager] "
            f"backend is {conf.key_manager.backend}"
        )
    task = helpers.get_execution_session()
    if task is None:
        raise SecretsDisabled("decryptData needs a task of an environment, whose token is used")
    try:
        name = str(uuid.UUID(secret_id))
    except ValueError as error:
        raise ValueError("decryptData: the argument is not the id of a secret") from error
    session = auth_utils.get_token_client_session(task.token, task.project_id)
    secrets = TaskSecrets(conf)
    session.verify = secrets._verify
    context: Any = session
    return secrets.get(context, name).get_encoded()
