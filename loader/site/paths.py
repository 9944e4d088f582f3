# SPDX-License-Identifier: Apache-2.0

"""Convert the names and versions of packages to the paths of their pages, and back.

Some file systems ignore case, and some object stores read ``+`` as a space. So a path has only
lower case letters, digits, and the characters ``.``, ``_``, ``-`` and ``~``. An upper case letter
is written as ``~`` and its lower case letter, and ``+`` as ``~0``. A file name can have 255 bytes,
so ``~/`` divides a longer path after at most 200 characters.
"""

import re

_PLAIN = re.compile(r"[a-z0-9._-]")
_PART = 200
_PLUS = "~0"
_SPLIT = "~/"

INDEX = "index.html"
HELP = "help.html"
# The version in a path that always leads to the newest release.
LATEST = "latest"


def part(name: str) -> str:
    """Convert the name of a package or a class, or a version, to a part of a path.

    :raises ValueError: if the name is empty, begins or ends with a dot, or contains a character
        that names and versions do not have, such as a slash.
    """
    if name.strip(".") != name or not name:
        raise ValueError(f"{name!r} cannot be a path")
    found = "".join(map(_written, name))
    pieces, piece = [], ""
    for written in re.findall(r"~?.", found):
        # A piece that began with a dot would be a hidden file.
        if len(piece) + len(written) > _PART and written != ".":
            pieces.append(piece)
            piece = ""
        piece += written
    return _SPLIT.join([*pieces, piece])


def name(path: str) -> str:
    """Convert a part of a path back to the name or version from which ``part`` has made it."""
    joined = path.replace(_SPLIT, "").replace(_PLUS, "+")
    return re.sub("~([a-z])", lambda found: found[1].upper(), joined)


def package(fqn: str) -> str:
    """Return the path of the page about a package."""
    return f"packages/{part(fqn)}/{INDEX}"


def release(fqn: str, version: str) -> str:
    """Return the path of the page about a version of a package."""
    return f"packages/{part(fqn)}/{part(version)}/{INDEX}"


def class_page(fqn: str, version: str, class_name: str) -> str:
    """Return the path of the page about a class in a version of a package."""
    return f"packages/{part(fqn)}/{part(version)}/classes/{part(class_name)}.html"


def to_root(path: str) -> str:
    """Return the relative URL from a page to the directory of the site.

    The URL is empty or ends in a slash.

    :param path: the path of the page.
    """
    return "../" * path.count("/")


def _written(character: str) -> str:
    if _PLAIN.match(character):
        return character
    if character == "+":
        return _PLUS
    if character.isascii() and character.isupper():
        return f"~{character.lower()}"
    raise ValueError(f"{character!r} is in no name and in no version")
