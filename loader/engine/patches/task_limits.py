# SPDX-License-Identifier: Apache-2.0

"""Limit the resources that a task may use; Murano 16 has no such limits."""

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
    """Report that calls are nested too deep, and where.

    In Murano 16, Python's ``RecursionError`` also occurs while the error is reported, which then
    fails with a ``TypeError``. Python gets a higher limit, so that the error can be reported.
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
    """Limit the iterations of ``While`` and ``Repeat``; ``For`` has a limit already."""
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
    """Limit the green threads of a task; nested calls of ``pselect`` multiply them."""
    parallel_select = helpers.parallel_select

    def select(collection: Any, function: Any, limit: int = 1000) -> Any:
        return task_usage.select(parallel_select, collection, function, limit)

    helpers.parallel_select = select


def limit_waits() -> None:
    """Refuse waits whose length is not a number, and shorten waits that are too long.

    eventlet keeps the waits of all tasks in one heap. A wait for ``nan`` seconds, as by
    ``sleep(float(nan))``, puts the heap out of order, so other tasks and time limits are minutes
    late. The kernel refuses a wait that is too long. This error ends the loop that runs all green
    threads.
    """
    add_timer = hub.BaseHub.add_timer

    def add(self: Any, timer: Any) -> Any:
        timer.seconds = task_usage.seconds_to_wait(timer.seconds)
        return add_timer(self, timer)

    hub.BaseHub.add_timer = add


def limit_resources() -> None:
    """Limit the YAML and JSON in a package's resources in the same way as its classes.

    Aliases in YAML can make a small file very large, and deep JSON exceeds Python's stack.
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
    """Limit the number and the length of log lines and reports, and the number of loggers.

    Python keeps every logger, and Murano's database every report.
    """
    report = status_reporter.StatusReporter._report

    def report_limited(reporter: Any, instance: Any, text: Any, *args: Any, **kwargs: Any) -> None:
        task_usage.current().count_message()
        report(reporter, instance, task_usage.shorten(text), *args, **kwargs)

    logger.logging = types.SimpleNamespace(getLogger=_TaskLogger)
    status_reporter.StatusReporter._report = report_limited


def describe_receivers() -> None:
    """In errors for unknown methods, describe the receiver as ``format`` does, without ``repr``."""

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
    """A logger of MuranoPL, whose entries count as messages of the task."""

    def __init__(self, name: str) -> None:
        task_usage.current().add_logger(name)
        self._logger = logging.getLogger(name)

    def __getattr__(self, level: str) -> Any:
        log = getattr(self._logger, level)

        def write(text: Any) -> None:
            task_usage.current().count_message()
            # The text is an argument and no template, since it may have percent signs.
            log("%s", task_usage.log_lines(text))

        return write
