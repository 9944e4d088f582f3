# SPDX-License-Identifier: Apache-2.0

"""Packages with long texts, which the database does not search."""

import json

from tests import packages
from tests.functional.client import PACKAGES
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance

# The most characters of a property's value that every database accepts.
LENGTH = 65000
# Name -> the tags that the owner has written.
_TAGS = {
    "a": ["wanted", "x" * LENGTH],
    "b": ["x" * LENGTH],
    "c": ["x" * LENGTH, "wanted"],
    "d": ["wanted"],
    "e": ["other"],
}


def store(glance: Glance, prefix: str, project: str) -> None:
    """Write packages of a project whose names have a prefix."""
    for letter, tags in _TAGS.items():
        archive = packages.package(f"{prefix}.{letter}")
        properties = {"package_tags": json.dumps(tags)}
        stored.store(glance, [stored.package(archive, project, properties=properties)])


def check(client: ImageClient, prefix: str) -> None:
    """Check the lists of these packages."""
    others = [("tags", f"none{number}") for number in range(20)]
    for condition in (
        [("tags", "wanted")],
        [("tags", "wanted"), *others],
        [("search", "WANTED")],
    ):
        for limit in (1, 2, 10):
            query = [("name", f"{prefix}.*"), ("limit", str(limit)), *condition]
            assert _names(client, query) == [f"{prefix}.{letter}" for letter in "acd"]


def _names(client: ImageClient, query: list[tuple[str, str]]) -> list[str]:
    answer = client.read(PACKAGES, query).json()
    found = [each["name"] for each in answer["packages"]]
    while "next" in answer:
        answer = client.read(answer["next"]).json()
        found += [each["name"] for each in answer["packages"]]
    return found
