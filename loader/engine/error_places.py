# SPDX-License-Identifier: Apache-2.0

"""The places of errors in packages: the package, its version, the file and the line.

Murano 16 reports an error in a class without the file. The place is added to the errors of
Murano, and valid packages stay valid. There is one exception: Murano compares every value with
a string in a contract that begins with ``$`` and is not a valid expression. Here, such a string
is an error.
"""

import contextlib
import functools
import os
import pathlib
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Self

from murano.dsl import constants, dsl_exception, exceptions, helpers
from murano.dsl.principal_objects import stack_trace
from yaql.language import exceptions as yaql_exceptions

from glare_murano.package import GlareMuranoError
from loader.engine import class_faults
from loader.engine.yaql_quota import LimitExceeded
from loader.formats.base import Package

# Errors of a contract itself, whatever the value is.
_CONTRACT_ERRORS = (
    exceptions.DslContractSyntaxError,
    exceptions.NoClassFound,
    yaql_exceptions.NoFunctionRegisteredException,
    yaql_exceptions.NoMethodRegisteredException,
    # An unknown prefix of a namespace.
    KeyError,
)
# Murano creates one for each error, in the class where the error arose.
_STACK_TRACE = "io.murano.StackTrace"
# Python's frames in the stack trace of an error.
_MAX_NATIVE_FRAMES = 100
# Errors of a contract or a default for the value at hand, and of the functions that it calls.
_CALL_ERRORS = (
    LimitExceeded,
    ValueError,
    exceptions.NoObjectFoundError,
    yaql_exceptions.ResolutionError,
)


class InvalidClass(GlareMuranoError):
    """A class of a package cannot be used; the message begins with the place."""


class ClassFile(str):
    """The file of a class, such as ``org.example.App 1.2.0: Classes/App.yaml``.

    Murano keeps the file with every expression, and shows the file in stack traces.
    """

    @classmethod
    def of(cls, package: Package, path: str) -> Self:
        """Name a file of a package; the package type of a plug-in may return an absolute path."""
        if pathlib.PurePath(path).is_absolute():
            path = os.path.relpath(path, package.source_directory)
        return cls(f"{package.full_name} {package.version}: {path}")


def read_class(package: Package, name: str) -> tuple[str | bytes, ClassFile]:
    """Return the code of a class, and its file."""
    found = package.get_class(name)
    code, path = found if isinstance(found, tuple) else (found, name)
    return code, ClassFile.of(package, path)


@contextlib.contextmanager
def explaining(package: Package, name: str) -> Iterator[None]:
    """Explain errors while a class is loaded.

    :raises InvalidClass: instead of an error of the class; errors of catalogues, of archives
        and about missing packages stay as they are.
    """
    try:
        yield
    except (GlareMuranoError, exceptions.NoPackageFound, exceptions.NoPackageForClassFound):
        raise
    except FileNotFoundError as error:
        file = ClassFile.of(package, error.filename)
        raise InvalidClass(f"{file}: the file of class {name} is missing") from error
    except Exception as error:
        code, file = read_class(package, name)
        raise InvalidClass(f"{file}{class_faults.explain(code, error)}") from error


def place_in_contract(function: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Return a function of contracts, whose errors name the place of the contract.

    :param position: the position of the contract, or of its expression, in the function's
        arguments.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (*_CONTRACT_ERRORS, *_CALL_ERRORS) as error:
            expression = getattr(args[position], "spec", args[position])
            at: Any = getattr(expression, "source_file_position", None)
            if not _is_in_class(at) or (isinstance(error, KeyError) and "prefix" not in str(error)):
                raise
            message = f"{_place(at)}: Contract: {class_faults.reason(error)}"
            if isinstance(error, _CONTRACT_ERRORS):
                raise InvalidClass(message) from error
            trace = class_faults.Trace.of(error)
            if not trace.document:
                # Add the place once, and keep the type, from which murano-api takes the status.
                trace.document, error.args = at.start_line, (message,)
            raise

    return call


def name_place(error: Exception) -> None:
    """Begin the message of a run-time error with its place."""
    if isinstance(error, dsl_exception.MuranoPlException) and (frames := _frames(error)):
        error.args = (f"{_place(frames[-1]['location'])}: {error}",)


def in_frame(frame: FrameType | None) -> str:
    """Return the place in a class that a Python frame evaluates, and the class.

    :returns: such as ``org.example.App 1.2.0: Classes/App.yaml:7: class org.example.App:``;
        an empty string outside of packages.
    """
    place = ""
    while frame is not None:
        if (context := _context(frame)) is not None:
            if not place:
                instruction = helpers.get_current_instruction(context)
                position = getattr(instruction, "source_file_position", None)
                place = f"{_place(position)}:" if _is_in_class(position) else ""
            # An assignment has a context without the class, inside that of its method.
            if place and (scope := context[constants.CTX_NAMES_SCOPE]):
                if scope.name != _STACK_TRACE:
                    return f"{place} class {scope.name}:"
                place = ""
        frame = frame.f_back
    return place


def lines(error: Any) -> list[str]:
    """Return the lines of classes in the stack trace of a run-time error, the outermost first."""
    return [stack_trace.format_frame(frame, "  ") for frame in _frames(error)]


def native_frames() -> list[tuple[Any, str, int | None, str, list[str]]]:
    """Return what ``inspect.trace`` returns, for frames without a source as well.

    Python's own modules such as ``<frozen abc>`` have none. A recursion may end in one of them,
    and has thousands of frames: only the innermost are returned, since Murano checks each by a
    contract.
    """
    return [
        (None, frame.filename, frame.lineno, frame.name, [frame.line or ""])
        for frame in traceback.extract_tb(sys.exc_info()[2], limit=-_MAX_NATIVE_FRAMES)
    ]


def path_in_trace(path: str) -> str:
    """Return a path for a stack trace: absolute, except that of a class."""
    return path if isinstance(path, ClassFile) else str(pathlib.Path(path).absolute())


def _frames(error: Any) -> list[Any]:
    frames = error.stacktrace.object.get_property("frames", None)
    return [frame for frame in frames if _is_in_class(frame["location"])]


def _context(frame: FrameType) -> Any:
    """Return the YAQL context of a function of Murano's language; None of other functions."""
    if not frame.f_globals.get("__name__", "").startswith("murano.dsl."):
        return None
    if "context" not in frame.f_code.co_varnames:
        return None
    return frame.f_locals.get("context")


def _is_in_class(position: Any) -> bool:
    return position is not None and isinstance(position.file_path, ClassFile)


def _place(position: Any) -> str:
    return f"{position.file_path}:{position.start_line}"
