# SPDX-License-Identifier: Apache-2.0

"""Answer requests for schemas and static actions with the right status."""

import functools
from collections.abc import Mapping
from typing import Any

from murano.common import engine
from murano.dsl import exceptions
from yaql.language import utils

from glare_murano.package import GlareMuranoError, VersionSpec
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_full_name, check_required_name
from loader.engine import tasks, yaql_quota
from loader.engine.patches import task_execution


def refuse_invalid_requests() -> None:
    """Answer an invalid request with 400, and a request for a missing method with 404.

    The specification "MuranoPL forms", section "REST API impact", requires these statuses.
    murano-api chooses the status by the engine's error: it knows Python's ``ValueError`` and
    ``LookupError`` for schemas, and ``ContractViolationException`` for static actions. For an
    invalid name or version, Murano 16 answers a request for a schema with 500, and a static
    action with 503. For an unknown method, it returns an empty schema.

    If a contract exceeds a limit, a request for a schema is answered with 400, as for other
    errors of a package. A static action is then answered with 503, like any that fails.
    """
    generate_schema = engine.SchemaEndpoint.generate_schema
    call_static_action = engine.StaticActionEndpoint.call_static_action

    # murano-api passes the arguments by name.
    def generate(context: Any, *args: Any, class_name: str, **kwargs: Any) -> Any:
        try:
            _check(class_name, kwargs.get("class_version"), kwargs.get("package_name"))
        except GlareMuranoError as error:
            raise ValueError(str(error)) from error
        generated = functools.partial(generate_schema, class_name=class_name, **kwargs)
        try:
            return task_execution.run_request("request for a schema", generated, context, *args)
        except exceptions.NoMethodFound as error:
            raise LookupError(f"class {class_name}: {error}") from error
        except tasks.TaskLimitExceeded as error:
            raise ValueError(str(error)) from error
        except (yaql_quota.LimitExceeded, ValueError) as error:
            # An error in metadata has no place, so the class is named.
            raise ValueError(f"class {class_name}: {error}") from error

    def call(context: Any, task: Mapping[str, Any]) -> Any:
        action = task["action"]
        try:
            _check(action["class_name"], action["class_version"], action["pkg_name"])
        except GlareMuranoError as error:
            raise exceptions.ContractViolationException(str(error)) from error
        _check_call(action)
        return call_static_action(context, task)

    engine.SchemaEndpoint.generate_schema = staticmethod(generate)
    engine.StaticActionEndpoint.call_static_action = staticmethod(call)


def _check(class_name: str, class_version: str | None, package_name: str | None) -> None:
    """Check the names and the range in a request.

    :raises InvalidName: if a name is not valid.
    :raises InvalidRange: if the range is not valid.
    """
    check_full_name(class_name)
    VersionSpec.of(class_version)
    if package_name is not None:
        check_required_name(package_name)


def _check_call(action: Mapping[str, Any]) -> None:
    """Check the types in a request for a static action, and the names of its arguments.

    :raises ContractViolationException: if one is not valid; murano-api then answers 400.
    """
    for key, kind in (("method", str), ("args", Mapping)):
        if not isinstance(action[key], kind):
            found = type(action[key]).__name__
            raise exceptions.ContractViolationException(f"{key} is of the wrong type {found}")
    for name in action["args"]:
        if not utils.is_keyword(name):
            raise exceptions.ContractViolationException(
                f"{quoted(name)} is not a valid name of an argument"
            )
