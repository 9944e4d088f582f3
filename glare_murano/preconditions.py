# SPDX-License-Identifier: Apache-2.0

"""Prevent clients from overwriting each other's changes to lists of a package, such as the tags.

To add a tag, a client reads all tags, and sends all of them back with the new tag. If another
client has added a tag in between, this other tag would be lost. So the client sends digests of the
lists that it has read, in the header ``HEADER``. If a list has changed since the client read it,
the service refuses the request with the status 409. In Glare, the lists are fields of the artifact.
In Glance, they are properties that the owner may set.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

HEADER = "X-Murano-Unchanged"


def write(lists: Mapping[str, Iterable[str]]) -> str:
    """Return the value of ``HEADER``: a digest of each list that a client has read.

    The order of values in a list does not matter, since Glare does not keep the order of tags.

    >>> write({"tags": ["db"]})
    'tags=...'

    :param lists: the lists: name of the field -> values.
    """
    return ",".join(f"{name}={_digest(values)}" for name, values in lists.items())


def find_changed(header: str, fields: Mapping[str, Any]) -> str:
    """Return the names of those lists in a header that have changed since the client read them.

    :param header: the value of the header ``HEADER``.
    :param fields: the present fields of the package, by name.
    :returns: the names, joined by commas for a message; empty if no list has changed.
    """
    parts = (part.strip().partition("=") for part in header.split(",") if part.strip())
    return ", ".join(name for name, _, sent in parts if sent != _digest(fields.get(name) or []))


def _digest(values: object) -> str:
    """Return the digest of a list; an empty string for any other value."""
    if not isinstance(values, list | tuple):
        return ""
    text = json.dumps(sorted(set(map(str, values))))
    return hashlib.sha256(text.encode()).hexdigest()
