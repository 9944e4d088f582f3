# SPDX-License-Identifier: Apache-2.0

"""Limit the resources that a task may use.

Murano 16 has no such limits, so a single package can stop the engine for all projects.
"""

import itertools
import json
import sys
import types
from typing import Any

import yaml
from eventlet.hubs import hub
from murano.dsl import dsl_exception, executor, helpers, macros
from murano.engine.system import logger, resource_manager, status_reporter
from oslo_log import log as logging
from yaql.language import exceptions as yaql_exceptions

from glare_murano.package import safe_yaml
from loader.engine import task_usage, yaql_format, yaql_quota


def limit_recursion() -> None:
    """Fail with a clear message if calls are nested too deep.

    In Murano 16, Python's ``RecursionError`` occurs again while the error is reported, so the
    report fails with a ``TypeError``. Here, a call is refused while enough of Python's frames are
    left for the report. Python's own limit is raised, since its default allows only about 20 nested
    calls of MuranoPL.
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), task_usage.RECURSION_LIMIT))
    invoke = executor.MuranoDslExecutor.invoke_method
    from_python = dsl_exception.MuranoPlException.from_python_exception

    def invoke_method(*args: Any, **kwargs: Any) -> Any:
        task_usage.check_frames()
        return invoke(*args, **kwargs)

    def from_python_exception(error: BaseException, context: Any) -> Any:
        return from_python(task_usage.explain_recursion(error), context)

    executor.MuranoDslExecutor.invoke_method = invoke_method
    dsl_exception.MuranoPlException.from_python_exception = staticmethod(from_python_exception)


def limit_iterations() -> None:
    """Limit the iterations of ``While`` and ``Repeat``.

    Murano 16 limits only the iterations of ``For``, so the other loops can run without end.
    """
    run_while = macros.WhileDoMacro.execute
    run_repeat = macros.RepeatMacro.execute

    def execute_while(loop: Any, context: Any) -> None:
        rounds = itertools.count()

        def is_true(context: Any) -> Any:
            task_usage.check_iterations(next(rounds))
            return loop._condition(context)

        run_while(types.SimpleNamespace(_code=loop._code, _condition=is_true), context)

    def execute_repeat(loop: Any, context: Any) -> None:
        count = helpers.evaluate(loop._count, context)
        task_usage.check_iterations(count)
        run_repeat(types.SimpleNamespace(_code=loop._code, _count=count), context)

    macros.WhileDoMacro.execute = execute_while
    macros.RepeatMacro.execute = execute_repeat


def limit_green_threads() -> None:
    """Limit how many green threads a task runs at a time.

    Murano 16 limits each parallel block, but nested calls of ``pselect`` multiply the number. Here,
    all blocks of a task share one limit.
    """
    parallel_select = helpers.parallel_select

    def select(collection: Any, function: Any, limit: int = 1000) -> Any:
        return task_usage.select(parallel_select, collection, function, limit)

    helpers.parallel_select = select


def limit_waits() -> None:
    """Refuse a wait whose length is not a number, and shorten a wait that is too long.

    Murano 16 passes any length to eventlet, which keeps the waits of all tasks in one heap. A wait
    of ``nan`` seconds, as by ``sleep(float(nan))``, puts the heap out of order: other tasks and
    time limits are then minutes late. For a wait that is too long, the kernel returns an error,
    which ends the loop that runs all green threads. Here, eventlet never gets such lengths.
    """
    add_timer = hub.BaseHub.add_timer

    def add(self: Any, timer: Any) -> Any:
        timer.seconds = task_usage.seconds_to_wait(timer.seconds)
        return add_timer(self, timer)

    hub.BaseHub.add_timer = add


def limit_resources() -> None:
    """Limit the size and the nesting of YAML and JSON in a package's resources.

    Murano 16 reads any file. Aliases in YAML can make a small file very large, and deeply nested
    JSON exceeds Python's stack. Here, the limits of class files apply.
    """
    open_resource = resource_manager.open

    def open_limited(path: str, mode: str) -> Any:
        file = open_resource(path, mode)
        size = file.seek(0, 2)
        file.seek(0)
        if size > safe_yaml.MAX_SIZE:
            file.close()
            raise yaql_quota.LimitExceeded(
                f"a resource has {size:,} bytes, at most {safe_yaml.MAX_SIZE:,} can be read"
            )
        return file

    def load_yaml(text: str, **_: Any) -> Any:
        safe_yaml.compose_all(text.encode(), "a resource")
        # Murano has added constructors to this loader, and passes it.
        return yaml.load(text, Loader=yaml.CSafeLoader)

    def load_json(text: str) -> Any:
        try:
            return json.loads(text)
        except RecursionError as error:
            raise yaql_quota.LimitExceeded("the JSON of a resource is nested too deep") from error

    resource_manager.open = open_limited
    resource_manager.yamllib = types.SimpleNamespace(load=load_yaml)
    resource_manager.jsonlib = types.SimpleNamespace(loads=load_json)


def limit_messages() -> None:
    """Limit the number of log lines, reports and loggers, and the length of lines and reports.

    In Murano 16, they are not limited, but Python keeps every logger, and Murano's database keeps
    every report.
    """
    report = status_reporter.StatusReporter._report

    def report_limited(reporter: Any, instance: Any, text: Any, *args: Any, **kwargs: Any) -> None:
        task_usage.current().count_message()
        report(reporter, instance, task_usage.shorten(text), *args, **kwargs)

    logger.logging = types.SimpleNamespace(getLogger=_TaskLogger)
    status_reporter.StatusReporter._report = report_limited


def describe_receivers() -> None:
    """In errors about an unknown method, describe the object of the call as ``format`` does.

    YAQL uses Python's ``repr``, which may have any length, and shows memory addresses of objects.
    Here, the description has at most 200 characters of the object. If ``format`` cannot write the
    object, only its type is named.
    """

    def describe(receiver: Any) -> str:
        try:
            text = yaql_format.write(receiver)
        except (TypeError, yaql_quota.LimitExceeded):
            text = f"of the type {type(receiver).__name__}"
        return text if len(text) <= 200 else f"{text[:200]}..."

    for kind in (
        yaql_exceptions.NoMethodRegisteredException,
        yaql_exceptions.NoMatchingMethodException,
        yaql_exceptions.AmbiguousMethodException,
    ):
        _describe_in(kind, describe)


def _describe_in(kind: Any, describe: Any) -> None:
    init = kind.__init__

    def init_described(error: Any, name: Any, receiver: Any) -> None:
        init(error, name, describe(receiver))

    kind.__init__ = init_described


class _TaskLogger:
    """A logger for MuranoPL, which counts the messages that the task writes."""

    def __init__(self, name: str) -> None:
        task_usage.current().add_logger(name)
        self._logger = logging.getLogger(name)

    def __getattr__(self, level: str) -> Any:
        log = getattr(self._logger, level)

        def write(text: Any) -> None:
            task_usage.current().count_message()
            # The text is an argument, not the template, since it may have percent signs.
            log("%s", task_usage.log_lines(text))

        return write
