# SPDX-License-Identifier: Apache-2.0

"""Give requests for schemas and static actions the right HTTP status."""

import functools
from collections.abc import Mapping
from typing import Any

from murano.common import engine
from murano.dsl import exceptions, executor
from yaql.language import utils
from yaql.language.exceptions import ResolutionError

from glare_murano.package import GlareMuranoError
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_fqn, check_required_name
from loader.engine import error_places, tasks, yaql_quota
from loader.engine.patches import task_execution
from loader.environments import object_model


def refuse_invalid_requests() -> None:
    """Answer an invalid request with 400, and a request for a missing method with 404.

    The specification "MuranoPL forms", section "REST API impact", requires these statuses. For an
    invalid name or version, Murano 16 answers a request for a schema with 500, and a static action
    with 503. For an unknown method, it returns an empty schema.

    Here, the engine raises errors that murano-api translates into these statuses. For schemas,
    these are Python's ``ValueError`` and ``LookupError``; for static actions,
    ``ContractViolationException``. If a class is not valid, or a contract exceeds a limit, a
    request for a schema is answered with 400, but a static action with 503, as for any other
    failure.
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
        except (error_places.InvalidClass, ResolutionError) as error:
            # The class is not valid. The message begins with the place.
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


def refuse_methods_of_objects() -> None:
    """Answer with 400 if a static action requests a method that is not static.

    Murano 16 answers with 503 and "A class instance is required", as if the server were at fault.
    Here, the call is refused before it runs, and the message says what to do.
    """
    run = executor.MuranoDslExecutor.run

    def run_checked(running: Any, cls: Any, method_name: str, this: Any, *args: Any) -> Any:
        if this is None and not cls.find_single_method(method_name).is_static:
            raise exceptions.ContractViolationException(
                f"method {method_name} of class {cls.name} is not static, so it needs an object; "
                f"call it as an action of a deployed object"
            )
        return run(running, cls, method_name, this, *args)

    executor.MuranoDslExecutor.run = run_checked


def _check(class_name: str, class_version: object, package_name: str | None) -> None:
    """Check the names and the range of versions in a request.

    :raises InvalidName: if a name is not valid.
    :raises InvalidRange: if the range is not valid.
    """
    check_fqn(class_name)
    object_model.requested_range(class_version)
    if package_name is not None:
        check_required_name(package_name)


def _check_call(action: Mapping[str, Any]) -> None:
    """Check the types of values in a request for a static action, and the names of arguments.

    :raises ContractViolationException: if a type or a name is not valid; murano-api then answers
        with 400.
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
