# SPDX-License-Identifier: Apache-2.0

"""Parse arguments that several commands take: packages, versions, paths, searches and times."""

import argparse
import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from glare_murano.package import GlareMuranoError, Version, VersionSpec, parse_version
from glare_murano.package.errors import shown
from glare_murano.package.manifest import check_fqn, check_required_name
from glare_murano.package_order import Order
from loader import time_limits
from loader.publishing import bundles
from loader.references import PackageReference, split_range

_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")


def add_package(parser: argparse.ArgumentParser, name: str = "package", **more: Any) -> None:
    """Add an argument that is a reference to a package."""
    meaning = "Name of the package, NAME@VERSION, NAME@RANGE, or its id."
    described = {"metavar": f"<{name}>", "help": meaning, **more}
    parser.add_argument(name, type=reference, **described)


def add_search(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the arguments of a search for packages: a pattern and a class.

    :param name: the name of the pattern in the help text.
    """
    parser.add_argument(
        "pattern",
        nargs="?",
        default="",
        metavar=f"<{name}>",
        help="Name of the packages, with * for any characters, and @RANGE for a range.",
    )
    parser.add_argument(
        "--subclass-of",
        metavar="<class>",
        help="Only packages with direct or indirect subclasses of this class.",
    )


def add_package_or_path(parser: argparse.ArgumentParser, name: str, purpose: str = "") -> None:
    """Add an argument for a package in the repository or on this host.

    :param purpose: the beginning of the help text.
    """
    meaning = f"{purpose}NAME@RANGE or the id of a package, or the path of a directory or ZIP file."
    metavar = f"<{name.lstrip('-')}>" if not purpose else "<package>"
    parser.add_argument(name, type=_package_or_path, metavar=metavar, help=meaning)


def add_requirements(parser: argparse.ArgumentParser) -> None:
    """Add the option for directories with required packages."""
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        dest="requirements",
        metavar="<directory>",
        help="Directory with required packages, whose classes are inherited (repeat for several).",
    )


def _package_or_path(text: str) -> PackageReference | pathlib.Path:
    return pathlib.Path(text) if "/" in text or text == "." else reference(text)


@contextlib.contextmanager
def _as_argument_error() -> Iterator[None]:
    try:
        yield
    except GlareMuranoError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def place(text: str) -> str:
    """Read a path or a URL, and refuse an empty string.

    An empty path would mean the current directory, but often comes from an unset variable.
    """
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; the current directory is .")
    return text


def publishable(text: str) -> str:
    """Read a path, or the URL of a bundle; refuse other URLs, and an empty string."""
    if _URL.match(place(text)) and not bundles.is_url(text):
        raise argparse.ArgumentTypeError(
            f"{shown(text)}: only http and https URLs of bundles can be downloaded"
        )
    return text


def port(text: str) -> int:
    """Read the number of a port."""
    if text not in map(str, range(2**16)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {2**16 - 1}")
    return int(text)


def path(text: str) -> pathlib.Path:
    """Read a path, and refuse an empty string."""
    return pathlib.Path(place(text))


def not_blank(text: str) -> str:
    """Read a value that is more than spaces, for example of a tag."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; give a value, or leave out the option")
    return text


def reason(text: str) -> str:
    """Read the reason for which a version is yanked; an empty reason would end a yank."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            'is empty; say why the version must not be chosen, such as "loses data; use 1.3.0"'
        )
    return text


def seconds(text: str) -> float:
    """Read a number of seconds; refuse ``nan`` and ``inf``, for which a wait would not end."""
    with contextlib.suppress(ValueError):
        if (found := time_limits.check(float(text), text)) >= 0:
            return found
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, such as 90 or 0.5")


@_as_argument_error()
def reference(text: str) -> PackageReference:
    """Read a reference to a package; raise argparse's error if it is not valid."""
    return PackageReference.parse(text)


@_as_argument_error()
def version(text: str) -> Version:
    """Read a version; raise argparse's error if it is not valid."""
    return parse_version(text)


@_as_argument_error()
def order(text: str) -> Order:
    """Read the keys by which a list is sorted; raise argparse's error if a key is unknown."""
    return Order.of(text)


@_as_argument_error()
def class_and_range(text: str) -> tuple[str, VersionSpec | None]:
    """Read ``CLASS`` or ``CLASS@RANGE``; raise argparse's error if it is not valid."""
    name, spec = split_range(text)
    return check_fqn(name), spec


@_as_argument_error()
def package_and_version(text: str) -> tuple[str, Version | None]:
    """Read ``NAME`` or ``NAME@VERSION``; raise argparse's error if it is not valid."""
    fqn, separator, written = text.partition("@")
    return check_required_name(fqn), parse_version(written) if separator else None
