# SPDX-License-Identifier: Apache-2.0

"""Keep parsed class files in memory for later tasks of the process.

Murano 16 parses all classes again in each task, with a YAML parser written in Python. In a
deployment of 20 packages, this takes a fifth of the engine's processor time: 170 of 870 ms. A copy
of the same parsed classes takes less than 5 ms.

The key of a parsed class contains its code. So a task gets a parsed class only if it has read the
same code from a package that its project can use. No class reaches another project.
"""

import contextlib
import io
import operator
import pickle
import threading
from typing import Any

import cachetools
from murano.dsl import yaql_expression
from murano.engine import yaql_yaml_loader

from glare_murano.package import Version
from loader.engine.error_places import ClassFile

# The maximum size in bytes. All parsed class files of Murano's source code take a ninth of it.
_MAX_SIZE = 32 * 1024**2

# The bytes that a parsed expression takes, and the bytes that each of its characters adds. These
# numbers were measured with the core library.
_EXPRESSION = 700
_CHARACTER = 30

_Key = tuple[Version, ClassFile, str | bytes]


class ParsedClasses:
    """A cache of parsed class files, which drops the least recently used files."""

    def __init__(self, max_size: int = _MAX_SIZE) -> None:
        """Make an empty cache.

        :param max_size: how many bytes all kept classes may take; their memory is estimated.
        """
        self._kept: cachetools.LRUCache[_Key, _ParsedClass] = cachetools.LRUCache(
            max_size, operator.attrgetter("size")
        )
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return the number of class files in the cache."""
        return len(self._kept)

    def parse(self, code: str | bytes, file: ClassFile, runtime_version: Version) -> Any:
        """Return the YAML documents in a class file, from the cache or from Murano's parser.

        Each call returns new mappings and lists, since Murano changes some of them. Expressions are
        shared between calls, since nothing changes them.

        :param file: the name of the file; the positions of all parts contain it.
        :param runtime_version: the version of MuranoPL, which decides how expressions are parsed.
        :raises Exception: what Murano's parser raises; then the file is not kept.
        """
        key = (runtime_version, file, code)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None:
            return kept.copy()
        documents = yaql_yaml_loader.get_loader(runtime_version)(code, file)
        parsed = _ParsedClass(documents, len(code))
        # A class larger than the cache is not kept.
        with self._lock, contextlib.suppress(ValueError):
            self._kept[key] = parsed
        return documents


class _Mapping(dict[Any, Any]):
    """A mapping with its position in the file.

    Murano's own class for this cannot be pickled, since it is defined inside a function.
    """


class _Pickler(pickle.Pickler):
    """Pickles mappings and lists, but not the expressions in them.

    :ivar expressions: the expressions; each is pickled as its index in this list.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.expressions: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, yaql_expression.YaqlExpression):
            return None
        self.expressions.append(value)
        return len(self.expressions) - 1

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return NotImplemented
        return _Mapping, (), vars(value), None, iter(value.items())


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, expressions: list[Any]) -> None:
        super().__init__(file)
        self._expressions = expressions

    def persistent_load(self, number: int) -> Any:
        return self._expressions[number]


class _ParsedClass:
    """A class file in the cache: its pickled mappings and lists, and its expressions.

    :ivar size: the estimated memory that it takes, in bytes.
    """

    def __init__(self, documents: Any, code_size: int) -> None:
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(documents)
        self._pickled = file.getvalue()
        self._expressions = pickler.expressions
        characters = sum(len(str(expression)) for expression in self._expressions)
        expressions = len(self._expressions) * _EXPRESSION + characters * _CHARACTER
        self.size = code_size + len(self._pickled) + expressions

    def copy(self) -> Any:
        return _Unpickler(io.BytesIO(self._pickled), self._expressions).load()


# The parsed classes of this process.
kept = ParsedClasses()
