# SPDX-License-Identifier: Apache-2.0

"""Find and run tests in MuranoPL: the methods ``test...`` of classes that extend ``TestFixture``.

Each test has its own object and executor, and runs between ``setUp`` and ``tearDown``. It can use
``inject`` and ``withOriginal``, Murano's functions for mocks. ``test_runner`` has the command that
runs tests.
"""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from murano.dsl import dsl_exception, executor, helpers
from murano.engine.mock_context_manager import MockContextManager

from glare_murano.package import GlareMuranoError
from loader.engine import error_places, tasks

_FIXTURE = "io.murano.test.TestFixture"
_TEST = re.compile("test(?![a-z])")


class NoTests(GlareMuranoError):
    """A package has no tests, or lacks some of the requested tests; the message says which."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A test: a method, and the class of the object on which it runs."""

    murano_class: Any
    method: str

    def __str__(self) -> str:
        return f"{self.murano_class.name}.{self.method}"

    @property
    def names(self) -> set[str]:
        """The names by which a user can select the test: method, class, or ``CLASS.METHOD``."""
        name = self.murano_class.name
        classes = {name, name.rpartition(".")[2]}
        return {self.method, *classes, *(f"{each}.{self.method}" for each in classes)}


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error in a test.

    :param reason: the place of the error, and its message.
    :param trace: the stack trace as lines of class files, the outermost first.
    """

    reason: str
    trace: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """Describe an error. For a failed assertion, the type of the error is left out."""
        if not isinstance(error, dsl_exception.MuranoPlException):
            return cls(str(error) or type(error).__name__)
        trace = tuple(error_places.lines(error))
        if isinstance(getattr(error, "original_exception", None), AssertionError):
            error.args = (error.message,)
        error_places.name_place(error)
        return cls(str(error), trace)


def find(package: Any) -> list[Case]:
    """Return the tests in a package, in the order of its classes and their methods.

    :raises NoTests: if the package has no tests.
    """
    fixture = package.find_class(_FIXTURE)
    classes = (package.find_class(name, False) for name in sorted(package.classes))
    cases = [
        Case(found, method)
        for found in classes
        if fixture.is_compatible(found)
        for method in _methods(found)
    ]
    if not cases:
        raise NoTests(
            f"{package.name} {package.version} has no tests: no class extends {_FIXTURE} and has a "
            f"method whose name begins with 'test'"
        )
    return cases


def select(cases: Iterable[Case], names: Iterable[str]) -> list[Case]:
    """Return the tests that have one of the given names; without names, return all tests.

    :param names: the names, as in ``Case.names``.
    :raises NoTests: if a name selects no test.
    """
    cases, wanted = list(cases), set(names)
    if unknown := wanted - set().union(*(case.names for case in cases)):
        known = ", ".join(map(str, cases))
        raise NoTests(f"no test is called {', '.join(sorted(unknown))}; the tests are {known}")
    return [case for case in cases if not wanted or case.names & wanted]


def run_limited(case: Case, limit: tasks.TimeLimit, *args: Any) -> list[Failure]:
    """Run a test as a task, so that the watchdog can interrupt it, and return its failures.

    :param limit: the longest time that the test may take.
    :param args: the arguments of ``run`` that follow ``case``.
    """
    task = tasks.Task(limit)
    try:
        return tasks.running.run(task, task.run_limited, run, case, *args)
    except tasks.TaskLimitExceeded as error:
        return [Failure.of(error)]


def run(case: Case, package_loader: Any, session: Any) -> list[Failure]:
    """Run a test, and return its failures.

    If the test and ``tearDown`` both fail, there are two failures. If ``setUp`` fails, neither the
    test nor ``tearDown`` runs.

    :param session: Murano's session of a task, which starts and ends with the test.
    """
    runner = executor.MuranoDslExecutor(package_loader, MockContextManager(), session)
    try:
        test = runner.object_store.load({}, None, default_type=case.murano_class)
    except Exception as error:
        return [Failure.of(error)]
    session.start()
    try:
        if failures := _call(runner, test, "setUp"):
            return failures
        return _call(runner, test, case.method) + _call(runner, test, "tearDown")
    finally:
        session.finish()
        # The objects end with the test; their ``.destroy`` is not called.
        runner.object_store.finalize()


def _methods(found: Any) -> Iterable[str]:
    """Return the names of the test methods in a class and its ancestors, each once."""
    methods = (name for each in (found, *found.ancestors()) for name in each.methods)
    return dict.fromkeys(name for name in methods if _TEST.match(name))


def _call(runner: Any, test: Any, name: str) -> list[Failure]:
    try:
        with helpers.with_object_store(runner.object_store):
            method = test.type.find_single_method(name)
            # Unlike an action, ``setUp`` and the tests need not be public.
            runner.invoke_method(method, test, None, (), {}, invoke_action=False)
    except Exception as error:
        return [Failure.of(error)]
    return []
