# SPDX-License-Identifier: Apache-2.0

"""The page of limits has the numbers of the code."""

import pathlib
import re

import pytest

from glare_murano import fields, resolver, wire
from glare_murano.glare import artifact
from glare_murano.glare.db import artifact_reads
from glare_murano.package import (
    archive_rules,
    classes,
    contents,
    manifest,
    safe_yaml,
    sandbox,
    versions,
)
from glare_murano.package.sandbox import conversation, turns
from glare_murano.service import batches, request_reading
from loader import config
from loader.murano_api import body_limits, upload_forms
from loader.transport import adapter, limited_sessions, retries

ROOT = pathlib.Path(__file__).parents[2]
WAITING = "loader/engine/cells/waiting_tasks.py"
PAGE = ROOT / "doc" / "source" / "reference" / "limits.rst"
UNITS = {"": 1, "s": 1, "KiB": 1024, "MiB": 1024**2}


def _in_source(module: str, name: str) -> int:
    """Read a constant of a module that cannot be imported beside Glare."""
    source = (ROOT / module).read_text()
    found = re.findall(rf"^{name} = (\d+)( \* 1024\*\*2)?$", source, re.MULTILINE)
    ((number, mebibytes),) = found
    return int(number) * (1024**2 if mebibytes else 1)


FIXED = {
    "Model that a task in a cell saves": sandbox.MAX_ANSWER,
    "Characters of a path": archive_rules.DEFAULT_LIMITS.path_length,
    "Directories in a path": archive_rules.DEFAULT_LIMITS.path_depth,
    "Size of a YAML file": safe_yaml.MAX_SIZE,
    "Levels in a YAML file": safe_yaml.MAX_DEPTH,
    "Values in a YAML file, with aliases expanded": safe_yaml.MAX_EXPANDED,
    "``%TAG`` directives in a YAML file": safe_yaml._MAX_TAG_DIRECTIVES,
    "Size of a logo": contents.MAX_IMAGE_SIZE,
    "Characters of a package's name, in a service": fields.MAX_NAME,
    "Characters of a version, in a service": fields.MAX_VERSION,
    "First number in a version, in a service": fields.MAX_MAJOR,
    "Other number in a version, in a service": fields.MAX_VERSION_NUMBER,
    "Digits of a number in a pre-release, in a service": fields.MAX_PRERELEASE_DIGITS,
    "Requirements of a package": manifest.MAX_REQUIREMENTS,
    "Clauses of a range": versions._MAX_CLAUSES,
    "Base classes of a class": classes.MAX_BASES,
    "Elements of all lists and mappings": fields.MAX_ELEMENTS,
    "Tags": fields.MAX_TAGS,
    "Queries of a cell without a pause": conversation._MAX_PROMPT,
    "Tasks of a project that wait in a worker": _in_source(WAITING, "MAX_WAITING"),
    "Size of these tasks": _in_source(WAITING, "MAX_SIZE"),
    "Size of the waiting tasks of all projects": _in_source(WAITING, "MAX_TOTAL_SIZE"),
    "Size of a task in a cell": _in_source(WAITING, "MAX_TASK"),
    "Size of all fields, in JSON": fields.MAX_TOTAL_SIZE,
    "Uploads of a project that wait for their turn": turns.MAX_WAITING,
    "Parts of the form of an upload, in murano-api": upload_forms.MAX_PARTS,
    "Headers of a part of this form": upload_forms.MAX_HEADERS,
    "Size of one of these headers": upload_forms.MAX_HEADER,
    "Size of the metadata of an upload, in murano-api": upload_forms.MAX_METADATA,
    "Packages of a publication": wire.MAX_PUBLICATIONS,
    "Size of a request without an archive": request_reading.MAX_BODY,
    "Body of another request, in murano-api": body_limits.MAX_BODY,
    "JSON patch, in murano-api": body_limits.MAX_PATCH,
    "Changes in such a patch": body_limits.MAX_CHANGES,
    "Characters of a query in a URL": request_reading.MAX_QUERY,
    "Levels in the JSON of a request": request_reading.MAX_DEPTH,
    "Requirements of a dependency query": wire.MAX_REQUIREMENTS,
    "Pinned versions of a package in it": wire.MAX_PINS,
    "Packages of a plan": resolver.MAX_PACKAGES,
    "Archives of a batch": wire.MAX_ARCHIVES,
    "Size of a batch": batches.MAX_SIZE,
    "Packages of a page of a list": wire.MAX_PACKAGES,
    "Artifacts of a page of Glare's own lists": artifact_reads.MAX_PAGE,
    "Attempts of a request": retries.DEFAULT_ATTEMPTS,
    "Answer of a service": limited_sessions.MAX_DOCUMENT,
    "Lists and mappings in it": adapter._MAX_VALUES.lists,
    "Values in it": adapter._MAX_VALUES.commas,
    "Refusal of a service, or token of Keystone": limited_sessions.MAX_OTHER,
    "List of a service, with all its pages": adapter._MAX_LIST,
}


def _rows(section: str) -> list[tuple[str, int, str]]:
    """Return the rows of the tables in a part of the page: what, the number, the option."""
    found = re.findall(r"^(\S.*?)  +([\d,]+) ?(s|KiB|MiB|)(?: +``(\w+)``)?$", section, re.M)
    return [(what, int(n.replace(",", "")) * UNITS[unit], name) for what, n, unit, name in found]


SERVICE, ENGINE = (_rows(part) for part in PAGE.read_text().split("\nThe engine\n==========\n"))


def _defaults(listed: list[tuple[str, list]]) -> dict[str, int]:
    return {option.name: option.default for _, options in listed for option in options}


def test_the_fixed_limits_are_those_of_the_code() -> None:
    assert {what: n for what, n, name in SERVICE + ENGINE if not name} == FIXED


@pytest.mark.parametrize(
    ("rows", "listed"),
    [(SERVICE, artifact.list_opts()), (ENGINE, config.list_opts())],
    ids=["service", "engine"],
)
def test_the_options_have_these_defaults(
    rows: list[tuple[str, int, str]], listed: list[tuple[str, list]]
) -> None:
    defaults = _defaults(listed)
    # This option counts MiB.
    shown = {name: n // 1024**2 if name == "max_task_memory" else n for _, n, name in rows if name}
    assert len(shown) >= 10
    assert shown == {name: defaults[name] for name in shown}
