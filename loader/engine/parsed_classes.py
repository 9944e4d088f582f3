# SPDX-License-Identifier: Apache-2.0

"""Parsed class files, which a process keeps in memory for its later tasks.

Murano 16 parses the classes of each task anew, by a YAML parser in Python. In a deployment of
20 packages this takes a fifth of the engine's processor time: 170 of 870 ms. A copy of the same
classes takes less than 5 ms.

A class is found by its code: a task gets a kept class only if it has read the same code
itself, from a package that its project can use. So no class reaches another project.
"""

import collections
import io
import pickle
import threading
from typing import Any

from murano.dsl import yaql_expression
from murano.engine import yaql_yaml_loader

from glare_murano.package import Version
from loader.engine.error_places import ClassFile

# In bytes: nine times what all class files in Murano's source distribution take.
_MAX_SIZE = 32 * 1024**2

# In bytes, measured with the core library: an expression, and each of its characters.
_EXPRESSION = 700
_CHARACTER = 30

_Key = tuple[Version, ClassFile, str | bytes]


class ParsedClasses:
    """Parsed class files, of which the least recently used are dropped."""

    def __init__(self, max_size: int = _MAX_SIZE) -> None:
        """Keep no class at first.

        :param max_size: the memory of all kept classes, in bytes, as estimated.
        """
        self._max_size = max_size
        self._size = 0
        self._kept: collections.OrderedDict[_Key, _ParsedClass] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return the number of kept class files."""
        return len(self._kept)

    def parse(self, code: str | bytes, file: ClassFile, runtime_version: Version) -> Any:
        """Return the documents of a class file, as Murano parses them.

        Their mappings and lists belong to the caller: Murano changes some of them. Expressions
        are shared, since nothing changes them.

        :param file: the file, which is in the positions of all parts.
        :param runtime_version: the version of MuranoPL, which decides how expressions are read.
        :raises Exception: any that Murano's parser raises; the file is not kept then.
        """
        key = (runtime_version, file, code)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        if kept is not None:
            return kept.copy()
        documents = yaql_yaml_loader.get_loader(runtime_version)(code, file)
        self._keep(key, _ParsedClass(documents, len(code)))
        return documents

    def _keep(self, key: _Key, parsed: "_ParsedClass") -> None:
        with self._lock:
            # Another thread may have parsed it meanwhile.
            if key in self._kept:
                return
            self._kept[key] = parsed
            self._size += parsed.size
            while self._size > self._max_size:
                _, dropped = self._kept.popitem(last=False)
                self._size -= dropped.size


class _Mapping(dict[Any, Any]):
    """A mapping with its position in the file; Murano's own class has no name to import it by."""


class _Pickler(pickle.Pickler):
    """Write mappings and lists, and refer to expressions by their numbers."""

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
    """A class file: its pickled mappings and lists, and its expressions.

    :ivar size: the memory that it takes, in bytes, as estimated.
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


# Of this process.
kept = ParsedClasses()
