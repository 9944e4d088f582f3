# SPDX-License-Identifier: Apache-2.0

"""Packages of a few classes, each version from a string."""

import io
import re
from typing import Any

from tests import packages

NAME = "org.a"
HEADER = "Namespaces: {=: org.a, other: org.b}\n"


def package(classes: str, **keys: Any) -> io.BytesIO:
    """A package whose classes are the documents of a string.

    Each class without a name is ``org.a.Thing``. Keys replace those of the manifest.
    """
    documents = [each.strip() for each in re.split(r"^---$", classes, flags=re.MULTILINE)]
    named = [each if "Name: " in each else f"Name: Thing\n{each}" for each in documents]
    names = [re.search(r"^Name: (\w+)", each, re.MULTILINE)[1] for each in named]
    prefix = keys.get("FullName", NAME)
    header = HEADER.replace("org.a", prefix)
    manifest = packages.manifest(
        prefix, **{"Classes": {f"{prefix}.{name}": "all.yaml" for name in names}, **keys}
    )
    content = packages.files(manifest)
    content["Classes/all.yaml"] = header.encode() + "\n---\n".join(named).encode()
    return io.BytesIO(packages.zipped(content))
