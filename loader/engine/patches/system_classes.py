# SPDX-License-Identifier: Apache-2.0

"""Let system classes act only for the running task, its environment and its user."""

import types
from typing import Any

from castellan import options as castellan_options
from keystoneauth1 import identity
from murano.common import auth_utils, engine
from murano.dsl import helpers
from murano.engine.system import heat_stack, system_objects, yaql_functions
from yaql.language import specs, yaqltypes

from loader.engine import credentials, stored_secrets, task_system_classes
from loader.engine.adapter import CONF


def act_for_own_environment() -> None:
    """Let reporters, instance notifiers and agents act only for the environment of their task.

    Murano 16 takes the environment, or its id, from the package, and murano-api trusts it. So a
    package can report to another tenant's environment, or send messages to its agents. Here, the
    classes in ``task_system_classes`` replace Murano's, and take the environment from the task.
    """
    initialize = engine.TaskExecutor.__init__
    register = system_objects.register

    def name_environment(executor: Any, task: Any, reporter: Any = None) -> None:
        initialize(executor, task, reporter)
        executor.session.environment_id = task["id"]

    def register_own(package: Any) -> None:
        # Murano uses the first class that is registered under a name.
        package.register_class(task_system_classes.TaskReporter)
        package.register_class(task_system_classes.TaskInstanceNotifier)
        package.register_class(task_system_classes.TaskAgent)
        register(package)

    engine.TaskExecutor.__init__ = name_environment
    system_objects.register = register_own


def use_own_trusts() -> None:
    """Use a trust only if it belongs to the project of the environment.

    Murano 16 uses any trust that the model names, whatever project it belongs to. If an
    administrator deploys an environment of another project, Murano 16 also keeps the
    administrator's trust for all later tasks of this environment. Here, the trust is checked, see
    ``credentials.EnvironmentTrust``, and the administrator's task uses the administrator's token
    instead of a trust.
    """
    create_trust = engine.TaskExecutor._create_trust
    get_session = auth_utils.get_client_session

    def create_own_trust(executor: Any) -> None:
        task = executor.session
        is_own = task.project_id == task.environment_owner_project_id
        if is_own or task.system_attributes.get("TrustId"):
            create_trust(executor)

    def session_of_environment(execution_session: Any = None, conf: str | None = None) -> Any:
        task = execution_session or helpers.get_execution_session()
        session = get_session(task, conf)
        auth = getattr(session, "auth", None)
        if task.trust_id is not None and isinstance(auth, identity.BaseIdentityPlugin):
            session.auth = credentials.EnvironmentTrust(auth, task.environment_owner_project_id)
        return session

    engine.TaskExecutor._create_trust = create_own_trust
    auth_utils.get_client_session = session_of_environment


def name_refused_tokens() -> None:
    """Say in the message if a stack cannot be created because the user's token has expired.

    Murano 16 creates a stack with the token of the user who has started the task. If Keystone
    refuses this token, the task fails with Keystone's message, such as ``Failed to validate token
    (HTTP 404)``. Here, the message says which token is refused, and what to do.
    """

    def client_of_user(stack: Any) -> Any:
        # Murano's own tests replace the module's auth_utils.
        session = heat_stack.auth_utils.get_token_client_session(conf="heat")
        session.auth = credentials.StackCreatorToken(session.auth)
        return stack._create_client(session, stack._region_name)

    heat_stack.HeatStack._get_token_client = client_of_user


def read_secrets_of_user() -> None:
    """Let ``decryptData`` read only secrets that the task's user may read.

    In Murano 16, the function reads any secret for every package, with the credentials in
    castellan's options. Here, the function reads secrets of Barbican with the token of the task,
    see ``stored_secrets``. It fails unless the operator has enabled it with
    ``[engine] decrypt_data``.
    """
    # castellan registers its options only here. A cell gets those that are registered.
    castellan_options.set_defaults(CONF)
    read = yaql_functions.decrypt_data

    def decrypt_data(value: str) -> Any:
        stored_secrets.check_call(value, CONF)
        return read(value)

    def manager() -> stored_secrets.TaskSecrets:
        return stored_secrets.manager(CONF)

    def credentials_of_task(**_: Any) -> Any:
        return stored_secrets.task_session()

    # Murano's function uses only these names of the two modules.
    yaql_functions.key_manager = types.SimpleNamespace(API=manager)
    yaql_functions.castellan_utils = types.SimpleNamespace(credential_factory=credentials_of_task)
    specs.parameter("value", yaqltypes.String())(decrypt_data)
    yaql_functions.decrypt_data = specs.extension_method(decrypt_data)
