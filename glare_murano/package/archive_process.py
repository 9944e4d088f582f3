# SPDX-License-Identifier: Apache-2.0

"""Read archives in child processes with limits.

A function runs in the child process, and returns JSON. ``read`` raises ``InvalidPackage`` if the
child refuses the package, reaches a limit, or fails. The caller of ``read`` must check the result,
since a hostile archive may have taken control of the child.
"""

import logging
from collections.abc import Callable, Mapping
from typing import IO, Any

from glare_murano.package import sandbox
from glare_murano.package.errors import InvalidPackage, Problem, shown
from glare_murano.package.rules import Rule
from glare_murano.package.sandbox import Answer, ChildFailed, ChildSettings, LimitReached

LOG = logging.getLogger(__name__)

# The largest number of problems, and of warnings, that a child reports. The message for the user
# lists fewer.
MAX_REPORTED = 1000
# The largest number of characters in the message of a reported problem, and in its place.
_MAX_TEXT = 500

_FAILED = "the archive could not be read; see the log of the service"


def answered(read: Callable[[], Any]) -> dict[str, Any]:
    """Call a function that reads a package, and return its result or the problems of the package.

    Use this in the child process. ``archive_process.read`` evaluates the returned mapping in the
    parent process.

    :param read: a function that reads a package, or raises ``InvalidPackage``.
    :returns: a mapping with the ``result`` of the function, or with ``problems`` and ``warnings``.
    """
    try:
        return {"result": read()}
    except InvalidPackage as error:
        return {"problems": to_json(error.problems), "warnings": to_json(error.warnings)}


def read(
    function: str,
    archive: IO[bytes],
    parameters: Mapping[str, Any],
    settings: ChildSettings,
    label: str,
    meanwhile: Callable[[], object] = lambda: None,
) -> Any:
    """Read an archive with a function in a child process.

    :param function: the name of the function, as ``MODULE:NAME``. The function has to use
        ``answered``, so that the child also returns the problems of a refused package.
    :param archive: an open file that has a file descriptor.
    :param parameters: the arguments of the function, besides the archive.
    :param settings: the limits of the child.
    :param label: the name of the package in the log.
    :param meanwhile: a function that is called every second, as in ``sandbox.run``.
    :returns: the result of the function, which the caller must not trust.
    :raises InvalidPackage: if the package is refused, a limit is reached, or the child fails.
    """
    try:
        answer = sandbox.run(function, archive, parameters, settings, meanwhile)
    except LimitReached as error:
        message = f"reading it {error}; simplify the package"
        raise InvalidPackage([Problem(Rule.READING_LIMIT, "archive", message)]) from error
    except ChildFailed as error:
        raise failure(label, str(error), error.output) from error
    return _result(answer, label)


def failure(label: str, reason: str, output: str = "") -> InvalidPackage:
    """Log that a child process failed, and return the error that the caller has to raise.

    :param label: the name of the package in the log.
    :param reason: why the child failed, for the log.
    :param output: what the child has printed, as in ``ChildFailed``.
    """
    LOG.error("The child that read the archive of %s failed: %s%s", label, shown(reason), output)
    return InvalidPackage([Problem(Rule.READING_FAILURE, "archive", _FAILED)])


def to_json(problems: tuple[Problem, ...]) -> list[list[Any]]:
    """Convert the first ``MAX_REPORTED`` problems to a list for JSON. Long texts are cut off."""
    return [
        [problem.rule, problem.where[:_MAX_TEXT], problem.message[:_MAX_TEXT], problem.line]
        for problem in problems[:MAX_REPORTED]
    ]


def from_json(content: object) -> tuple[Problem, ...]:
    """Read problems that a child has sent.

    :param content: a list in the form that ``to_json`` returns.
    :raises ValueError: if the content does not have this form.
    """
    if not isinstance(content, list) or len(content) > MAX_REPORTED:
        raise ValueError("the problems are not a short list")
    return tuple(map(_problem, content))


def _problem(content: object) -> Problem:
    match content:
        case [str() as rule, str() as where, str() as message, int() as line]:
            return Problem(Rule(rule), where[:_MAX_TEXT], message[:_MAX_TEXT], line)
    raise ValueError("a problem is malformed")


def _result(answer: Answer, label: str) -> Any:
    try:
        match answer.content:
            case {"problems": [_, *_] as problems, "warnings": warnings}:
                error = InvalidPackage(from_json(problems), from_json(warnings))
            case {"result": result}:
                return result
            case _:
                raise ValueError("the answer is neither a result nor problems")
    except ValueError as invalid:
        raise failure(label, str(invalid), answer.output) from invalid
    if any(problem.rule is Rule.READING_FAILURE for problem in error.problems):
        LOG.error("The package type of %s failed:%s", label, answer.output)
    raise error
