# SPDX-License-Identifier: Apache-2.0
"""What was learnt of files elsewhere, so that they are read once on this host.

A fact is a JSON document, kept with what tells whether the file still stands.
It is no cache of packages: it holds no archive, and losing it costs only time.
"""

import dataclasses
import functools
import hashlib
import json
import logging
import pathlib
from collections.abc import Mapping
from typing import Any

from loader import fs

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Fact:
    """What was learnt of one file.

    :param document: plain JSON.
    :param validator: what the file's server tells it by, such as its ETag.
    """

    document: Any
    validator: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Facts:
    """Facts by key, in memory, and in a folder that other processes use as well."""

    def __init__(self, folder: pathlib.Path | None = None) -> None:
        """Make a store.

        :param folder: where to keep them; None to keep them in memory alone.
        """
        self._folder = folder
        self._facts: dict[str, Fact] = {}

    @staticmethod
    @functools.cache
    def shared(folder: pathlib.Path) -> "Facts":
        """The store of a folder, one for this process."""
        return Facts(folder)

    def get(self, key: str) -> Fact | None:
        """What is known, if anything is."""
        if key not in self._facts and self._folder is not None:
            try:
                content = json.loads(self._path(self._folder, key).read_bytes())
                if content["key"] == key:
                    self._facts[key] = Fact(content["document"], dict(content["validator"]))
            except (OSError, ValueError, TypeError, KeyError, RecursionError):
                return None  # it was never written, or not to the end
        return self._facts.get(key)

    def note(self, key: str, fact: Fact) -> None:
        """Keep a fact in memory alone, since it may be another in another process."""
        self._facts[key] = fact

    def put(self, key: str, fact: Fact) -> None:
        """Keep a fact in the place of what was known before."""
        self.note(key, fact)
        if self._folder is None:
            return
        content = {"key": key, "document": fact.document, "validator": dict(fact.validator)}
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fs.replace(self._path(self._folder, key), json.dumps(content).encode())
        except OSError as error:
            LOG.warning("What was learnt of an archive cannot be kept for others: %s", error)

    def forget(self, key: str) -> None:
        """Drop what turned out to be wrong."""
        self._facts.pop(key, None)
        if self._folder is not None:
            try:
                self._path(self._folder, key).unlink(missing_ok=True)
            except OSError as error:
                LOG.warning("What is known of an archive is wrong and stays: %s", error)

    @staticmethod
    def _path(folder: pathlib.Path, key: str) -> pathlib.Path:
        return folder / f"{hashlib.sha256(key.encode(errors='replace')).hexdigest()}.json"
