# SPDX-License-Identifier: Apache-2.0

"""Add the place to errors in packages: the package, its version, the file and the line.

For an error in a class, Murano 16 does not report the file. Packages that Murano accepts stay
valid, with one exception: a string in a contract that begins with ``$`` and is not a valid
expression. Murano reads such a string as a constant, and refuses every other value. Here, the
string is an error.
"""

import contextlib
import functools
import pathlib
import re
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
from loader.formats.base import Package, path_in_package

# Errors in a contract itself, which do not depend on the value.
_CONTRACT_ERRORS = (
    exceptions.DslContractSyntaxError,
    exceptions.NoClassFound,
    yaql_exceptions.NoFunctionRegisteredException,
    yaql_exceptions.NoMethodRegisteredException,
    # A contract uses an unknown prefix of a namespace.
    KeyError,
)
_OF_CORE_LIBRARY = f"{constants.CORE_LIBRARY} "
# How many of Python's frames a stack trace may have.
_MAX_NATIVE_FRAMES = 100
# Errors that depend on the value. Contracts, defaults, and the functions that they call raise them.
_CALL_ERRORS = (
    LimitExceeded,
    ValueError,
    exceptions.NoObjectFoundError,
    re.error,
    yaql_exceptions.ResolutionError,
)


class InvalidClass(GlareMuranoError):
    """A class of a package cannot be used; the message begins with the package, file and line."""


class ClassFile(str):
    """The name of a class file in messages, such as ``org.example.App 1.2.0: Classes/App.yaml``.

    Murano gets this name instead of the file's path. It keeps the name with every expression, and
    shows it in stack traces.
    """

    @classmethod
    def of(cls, package: Package, path: str) -> Self:
        """Return the name of a class file for messages.

        :param path: the path, absolute or relative to the package.
        """
        file = path_in_package(package, path)
        return cls(f"{package.full_name} {package.version}: {file}")


def read_class(package: Package, name: str) -> tuple[bytes, ClassFile]:
    """Return the code of a class, and the name of its file."""
    code, path = package.read_class(name)
    return code, ClassFile.of(package, path)


@contextlib.contextmanager
def explaining(package: Package, name: str) -> Iterator[None]:
    """Add the place to each error that occurs in the block, which loads a class.

    :raises InvalidClass: for an error in the class. Errors from catalogues and archives, and errors
        about missing packages, are raised unchanged.
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
    """Wrap a function that evaluates contracts, so that its errors name the line of the contract.

    :param position: which argument of the function is the contract or its expression, from 0.
    :returns: a function that raises ``InvalidClass`` if the contract itself is wrong. An error
        about the value keeps its type, and the line is put in front of its message.
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
                # Add the place once. Keep the type, by which murano-api chooses the HTTP status.
                trace.document, error.args = at.start_line, (message,)
            raise

    return call


def name_place(error: Exception) -> None:
    """Put the place of a run-time error in front of its message.

    :param error: any error; only an error of MuranoPL is changed.
    """
    if isinstance(error, dsl_exception.MuranoPlException) and (frames := _frames(error)):
        error.args = (f"{_place(frames[-1]['location'])}: {error}",)


def in_frame(frame: FrameType | None) -> str:
    """Return which line of a package runs in a Python frame, or in the frames that called it.

    The innermost line outside the core library is returned. If there is none, the innermost line of
    the core library is returned.

    :returns: a string such as
        ``org.example.App 1.2.0: Classes/App.yaml:7: class org.example.App:``; an empty string if no
        line of a package runs.
    """
    innermost = ""
    for place in _places(frame):
        if not place.startswith(_OF_CORE_LIBRARY):
            return place
        innermost = innermost or place
    return innermost


def _places(frame: FrameType | None) -> Iterator[str]:
    """Yield the lines of classes that run in a frame and its callers, the innermost first."""
    place = ""
    while frame is not None:
        if (context := _context(frame)) is not None:
            if not place:
                instruction = helpers.get_current_instruction(context)
                position = getattr(instruction, "source_file_position", None)
                place = f"{_place(position)}:" if _is_in_class(position) else ""
            # An assignment's context lacks the class; the context of its method has it.
            if place and (scope := context[constants.CTX_NAMES_SCOPE]):
                yield f"{place} class {scope.name}:"
                place = ""
        frame = frame.f_back
    if place:
        yield place


def lines(error: Any) -> list[str]:
    """Return the stack trace of a run-time error as lines of class files, the outermost first."""
    return [stack_trace.format_frame(frame, "  ") for frame in _frames(error)]


def native_frames() -> list[tuple[Any, str, int | None, str, list[str]]]:
    """Return the frames of the current exception, as ``inspect.trace`` does for Murano.

    Unlike ``inspect.trace``, this function also returns frames without source code. A recursion may
    end in such a frame, for example in Python's own module ``<frozen abc>``. Only the innermost
    frames are returned: a recursion may have thousands of frames, and Murano checks each returned
    frame by a contract, which takes long.
    """
    return [
        (None, frame.filename, frame.lineno, frame.name, [frame.line or ""])
        for frame in traceback.extract_tb(sys.exc_info()[2], limit=-_MAX_NATIVE_FRAMES)
    ]


def path_in_trace(path: str) -> str:
    """Return a path as a stack trace shows it.

    The name of a class file is returned unchanged. Any other path is returned as an absolute path.
    """
    return path if isinstance(path, ClassFile) else str(pathlib.Path(path).absolute())


def _frames(error: Any) -> list[Any]:
    frames = error.stacktrace.object.get_property("frames", None)
    return [frame for frame in frames if _is_in_class(frame["location"])]


def _context(frame: FrameType) -> Any:
    """Return the YAQL context in a frame of Murano's interpreter; None for other frames."""
    if not frame.f_globals.get("__name__", "").startswith("murano.dsl."):
        return None
    if "context" not in frame.f_code.co_varnames:
        return None
    return frame.f_locals.get("context")


def _is_in_class(position: Any) -> bool:
    return position is not None and isinstance(position.file_path, ClassFile)


def _place(position: Any) -> str:
    return f"{position.file_path}:{position.start_line}"
