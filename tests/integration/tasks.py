# SPDX-License-Identifier: Apache-2.0

"""Tasks of the real engine, as murano-api sends them."""

from typing import Any

from murano.common import engine as murano_engine
from murano.engine import execution_session

from examples import demo


def session() -> Any:
    """Return the credentials of a task."""
    found = execution_session.ExecutionSession()
    found.token = demo.USER_TOKEN
    found.project_id = demo.PROJECT
    return found


def action(object_id: str, method: str, **arguments: Any) -> dict[str, Any]:
    """Return an action: the call of a method of an object."""
    return {"object_id": object_id, "method": method, "args": arguments}


def run(
    header: dict[str, Any],
    pins: dict[str, list[str]] | None = None,
    action: dict[str, Any] | None = None,
    **properties: Any,
) -> Any:
    """Load the model of one object, which may have others, and return the engine's answer.

    :param action: None only loads the model. The object has the id ``object``.
    """
    model = {
        "Objects": {"?": {"id": "object", **header}, **properties},
        "SystemData": {"Packages": pins or {}},
        "project_id": demo.PROJECT,
        "user_id": demo.USER["user_id"],
    }
    return run_model(model, action)


def run_model(
    model: dict[str, Any], action: dict[str, Any] | None = None, owner: dict[str, str] = demo.USER
) -> Any:
    """Run an action on a whole model, such as the one in an earlier answer."""
    task = {"id": "test", "action": action, "model": model, **owner}
    return murano_engine.TaskExecutor(task).execute()


def call_static(
    class_name: str,
    method: str,
    version: str | float | None = "1",
    package_name: str | None = None,
    **arguments: Any,
) -> Any:
    """Return the result of a static action."""
    action = {
        "class_name": class_name,
        "pkg_name": package_name,
        "class_version": version,
        "method": method,
        "args": arguments,
    }
    task = {"id": "static", "action": action, **demo.USER}
    return murano_engine.StaticActionEndpoint.call_static_action({}, task)


def schemas(class_name: str, version: str | None = None, **arguments: Any) -> Any:
    """Return the schemas of a class and of its model builders."""
    return murano_engine.SchemaEndpoint.generate_schema(
        demo.USER, class_name=class_name, class_version=version, **arguments
    )
