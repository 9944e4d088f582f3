# SPDX-License-Identifier: Apache-2.0

"""The check of Glance's settings for packages; if a setting is missing, Glance does not start.

Without such a setting, Glance would serve unchecked data as a package. The check evaluates the
policy for callers of every role, so that the operator may write the rules in any form.
"""

import functools
from collections.abc import Iterator

from glare_murano import images
from glare_murano.glance import image_policies, internals
from glare_murano.glance.configuration import ETC, PLUGIN

_GUARD = f"not '{images.CONTAINER_FORMAT}':%(container_format)s"
# Some databases ignore the case of property names.
_PROTECTED = (*sorted(images.PROPERTIES), *map(str.upper, sorted(images.PROPERTIES)))
_PLUGINS = "[image_import_opts] image_import_plugins"


@functools.cache
def check() -> None:
    """Check the settings; each filter of this project calls this function at its creation.

    :raises RuntimeError: with what is missing and what to write, so that Glance does not start.
    """
    problems = [*_find_formats(), *_find_plugins(), *_find_protections(), *_find_policies()]
    if problems:
        raise RuntimeError(
            "Glance's settings do not protect packages. The command glare-murano-glance-configure "
            "writes all of them. Missing:\n" + "\n".join(problems)
        )


def _find_formats() -> Iterator[str]:
    if images.CONTAINER_FORMAT not in internals.container_formats():
        yield f"[image_format] container_formats: add {images.CONTAINER_FORMAT} to the list"


def _find_plugins() -> Iterator[str]:
    found = internals.import_plugins()
    expected = [*(name for name in found if name != PLUGIN), PLUGIN]
    if found != expected:
        yield (
            f"{_PLUGINS}: {PLUGIN} should be the last plug-in, since Glance must store what it has "
            f"read; write {expected}"
        )
    if "image_decompression" in found:
        yield (
            f"{_PLUGINS}: remove image_decompression, which unpacks ZIP files, so that each import "
            f"of a package fails"
        )
    if "image_conversion" in found and internals.conversion_format() != images.DISK_FORMAT:
        yield (
            f"[image_conversion] output_format: write {images.DISK_FORMAT}, or remove "
            f"image_conversion from {_PLUGINS}; it converts packages, so that each import of a "
            f"package fails"
        )


def _find_protections() -> Iterator[str]:
    shipped, file = ETC / "property-protections.conf", internals.protection_file()
    if not file:
        yield f"[DEFAULT] property_protection_file: write the path of a copy of {shipped}"
        return
    try:
        writer = next(internals.find_writers(_PROTECTED), None)
    except internals.InvalidProtections:
        yield f"[DEFAULT] property_protection_file: {file} cannot be read; see Glance's log"
        return
    if writer:
        roles, action, name = writer
        yield (
            f"[DEFAULT] property_protection_file: by {file}, callers may {action} the property "
            f"{name} (roles: {roles}); write the first section of {shipped} before all others"
        )


def _find_policies() -> Iterator[str]:
    permitted = internals.find_permitted(image_policies.DATA_POLICIES, images.CONTAINER_FORMAT)
    for rule, roles in permitted.items():
        yield (
            f"[oslo_policy] policy_file: by the rule {rule}, callers may give a package data that "
            f'nobody has checked (roles: {roles}); join the rule with "and {_GUARD}", as in '
            f"{ETC / 'glance-policy.yaml'}"
        )
