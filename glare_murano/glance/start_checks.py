# SPDX-License-Identifier: Apache-2.0

"""Check that Glance's configuration protects packages.

If a setting is missing, Glance does not start: without the setting, Glance would serve unchecked
data as a package. The operator may write policy rules in any form, since the check evaluates the
rules for example callers with every role.

``glare-murano-glance-status upgrade check`` also reports findings that do not prevent the start.
"""

import functools
import pathlib
import sys
from collections.abc import Iterator, Mapping

import sqlalchemy as sa

from glare_murano import images
from glare_murano.glance import configuration, image_policies, internals
from glare_murano.glance.configuration import ETC, PLUGIN
from glare_murano.package import sandbox
from glare_murano.upgrade_checks import (
    Check,
    Finding,
    find_missing_walls,
    find_unmet_requirements,
    reads_database,
)

_GUARD = f"not '{images.CONTAINER_FORMAT}':%(container_format)s"
# Names in upper case are checked as well, since some databases ignore the case of property names.
_PROTECTED = (*sorted(images.PROPERTIES), *map(str.upper, sorted(images.PROPERTIES)))
_PLUGINS = "[image_import_opts] image_import_plugins"


@functools.cache
def check() -> None:
    """Check that Glance's configuration protects packages.

    The filter for Glance's own API and the application for this project's API call this function
    when they are created.

    :raises RuntimeError: if settings are missing. The message lists them, and says what to write.
        Then Glance does not start.
    """
    problems = [finding.message for find in START_CHECKS.values() for finding in find()]
    if problems:
        raise RuntimeError(
            "Glance's settings do not protect packages. The command glare-murano-glance-configure "
            "writes all of them. Missing:\n" + "\n".join(problems)
        )


def _find_formats() -> Iterator[Finding]:
    if images.CONTAINER_FORMAT not in internals.container_formats():
        yield Finding(
            f"[image_format] container_formats: add {images.CONTAINER_FORMAT} to the list"
        )


def _find_plugins() -> Iterator[Finding]:
    found = internals.import_plugins()
    expected = [*(name for name in found if name != PLUGIN), PLUGIN]
    if found != expected:
        yield Finding(
            f"{_PLUGINS}: {PLUGIN} should be the last plug-in, since Glance must store what it has "
            f"read; write {expected}"
        )
    if "image_decompression" in found:
        yield Finding(
            f"{_PLUGINS}: remove image_decompression, which unpacks ZIP files, so that each import "
            f"of a package fails"
        )
    if "image_conversion" in found and internals.conversion_format() != images.DISK_FORMAT:
        yield Finding(
            f"[image_conversion] output_format: write {images.DISK_FORMAT}, or remove "
            f"image_conversion from {_PLUGINS}; it converts packages, so that each import of a "
            f"package fails"
        )


def _find_protections() -> Iterator[Finding]:
    shipped, file = ETC / "property-protections.conf", internals.protection_file()
    if not file:
        yield Finding(f"[DEFAULT] property_protection_file: write the path of a copy of {shipped}")
        return
    try:
        writer = next(internals.find_writers(_PROTECTED), None)
    except internals.InvalidProtections:
        yield Finding(
            f"[DEFAULT] property_protection_file: {file} cannot be read; see Glance's log"
        )
        return
    if writer:
        roles, action, name = writer
        yield Finding(
            f"[DEFAULT] property_protection_file: by {file}, callers may {action} the property "
            f"{name} (roles: {roles}); write the first section of {shipped} before all others"
        )


def _find_policies() -> Iterator[Finding]:
    permitted = internals.find_permitted(image_policies.DATA_POLICIES, images.CONTAINER_FORMAT)
    for rule, roles in permitted.items():
        yield Finding(
            f"[oslo_policy] policy_file: by the rule {rule}, callers may give a package data that "
            f'nobody has checked (roles: {roles}); join the rule with "and {_GUARD}", as in '
            f"{ETC / 'glance-policy.yaml'}"
        )


def _find_interpreter() -> Iterator[Finding]:
    """Check the Python interpreter for child processes."""
    path = internals.python()
    if not sandbox.is_interpreter(path):
        yield Finding(
            f"[wsgi] python_interpreter: write the path of Glance's Python, such as "
            f"{pathlib.Path(sys.prefix, 'bin', 'python')}; it reads the archives, and "
            f"{path or 'an empty path'} cannot run it"
        )


def _find_changed_files() -> Iterator[Finding]:
    """Find files that differ from what ``glare-murano-glance-configure`` would write."""
    file = internals.configuration_file()
    if file is None:
        yield Finding(
            "glance-api.conf was not found; set OS_GLANCE_CONFIG_DIR to its directory",
            is_error=False,
        )
        return
    try:
        changes = configuration.find_changes(file.parent)
    except (configuration.ConfigurationError, OSError) as error:
        yield Finding(str(error), is_error=False)
        return
    for path in changes:
        yield Finding(
            f"{path}: pipelines, protections or rules of packages are missing; run "
            f"glare-murano-glance-configure {file.parent}, and restart Glance",
            is_error=False,
        )


@reads_database
def _find_missing_index() -> Iterator[Finding]:
    columns = ["container_format", "name"]
    with internals.reading() as connection:
        indexes = sa.inspect(connection).get_indexes("images")
    if not any(index["column_names"][:2] == columns for index in indexes):
        yield Finding(
            f"the table images has no index of {' and '.join(columns)}, so that queries of "
            f"packages read all images; run {ETC / 'glance-indexes.sql'} in the database",
            is_error=False,
        )


# If one of these checks finds an error, Glance does not start.
START_CHECKS: Mapping[str, Check] = {
    "Container formats": _find_formats,
    "Import plug-ins": _find_plugins,
    "Property protections": _find_protections,
    "Policies": _find_policies,
    "Interpreter": _find_interpreter,
}
UPGRADE_CHECKS: Mapping[str, Check] = {
    **START_CHECKS,
    "Pipelines and files": _find_changed_files,
    "Index": _find_missing_index,
    "Landlock": find_missing_walls,
    "Libraries": functools.partial(find_unmet_requirements, "glance"),
}
