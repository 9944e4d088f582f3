# SPDX-License-Identifier: Apache-2.0

"""Make the index of the search, in several files, of which a browser loads only some.

All words that begin with the same character are in one file. A page that was opened from a disk
cannot fetch other files, but it can load scripts. So each file of the index is a script, which
calls ``catalogue.add`` (see ``static/search.js``).
"""

import collections
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from glare_murano.package.errors import escaped
from loader.site import paths
from loader.site.documents import Document

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
# Words in names such as ``WebServer``.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The largest number of words of a package, and of results for all of them together. A search does
# not find further ones.
_MAX_WORDS = 2000
_MAX_RESULTS = 10_000
# The largest number of words in a name, and the longest name.
_MAX_OF_NAME = 20
_MAX_NAME = 255


class Found(NamedTuple):
    """A package, class or property that a search can find.

    :ivar kind: ``package``, ``class`` or ``property``.
    :ivar text: the text that the browser shows in the list of results.
    :ivar path: the path of the page; for a property, with an anchor.
    """

    kind: str
    text: str
    path: str


def index(fqn: str, document: Document, listed: Mapping[str, Any]) -> dict[str, list[Found]]:
    """Return the index of a package: word -> the results of a search for this word.

    :param fqn: the FQN of the package.
    :param document: the document of the newest release.
    :param listed: the fields of this release that do not come from the archive.
    """
    # A dict keeps the order, and finds a repeated entry among many at once.
    found: dict[str, dict[Found, None]] = {}
    left = _MAX_RESULTS
    for text, entry in _entries(fqn, document, listed):
        for word in words(text[:_MAX_NAME])[:_MAX_OF_NAME]:
            if left and (word in found or len(found) < _MAX_WORDS):
                found.setdefault(word, {})[entry] = None
                left -= 1
    return {word: [*entries] for word, entries in found.items()}


def words(text: str) -> list[str]:
    """Split a text into the words that a search compares, in lower case and without duplicates.

    A name such as ``WebServer`` gives the words ``webserver``, ``web`` and ``server``.
    """
    parts = [part for word in _WORD.findall(text) for part in (word, *_HUMP.split(word))]
    # As in ``search.js``; ``casefold`` has no counterpart in JavaScript.
    return [*dict.fromkeys(part.lower() for part in parts)]


def scripts(indexes: Iterable[Mapping[str, Sequence[Sequence[str]]]]) -> Iterator[tuple[str, str]]:
    """Yield the files of the index, each as path and content.

    :param indexes: the index of each package, from ``index``.
    """
    by_part = collections.defaultdict[str, dict[str, list[Sequence[str]]]](dict)
    for each in indexes:
        for word, found in each.items():
            by_part[part(word)].setdefault(word, []).extend(found)
    for name, found_words in sorted(by_part.items()):
        content = json.dumps(found_words, sort_keys=True, separators=(",", ":"))
        yield f"search/{name}.js", f"catalogue.add({json.dumps(name)},{content});\n"


def part(word: str) -> str:
    """Return the name of the file that contains a word, without directory and suffix.

    It is the code of the first character of the word, in hexadecimal.
    """
    return f"{ord(word[0]):x}"


def _entries(
    fqn: str, document: Document, listed: Mapping[str, Any]
) -> Iterator[tuple[str, Found]]:
    package = Found("package", fqn, paths.package(fqn))
    yield fqn, package
    yield document.get("display_name", ""), package
    for tag in (*(listed.get("tags") or document.get("tags", ())), *listed.get("categories", ())):
        yield tag, package
    for each in document.get("classes", ()):
        path = paths.class_page(fqn, paths.LATEST, each["name"])
        yield each["name"], Found("class", each["name"], path)
        for one in each["properties"]:
            if len(one["name"]) > _MAX_NAME:
                continue
            text = escaped(f"{one['name']} in {each['name']}")
            anchor = urllib.parse.quote(f"property.{one['name']}")
            yield one["name"], Found("property", text, f"{path}#{anchor}")
