# SPDX-License-Identifier: Apache-2.0

"""The packages that engines provide: extension plug-ins, which are not published."""

import collections
import functools
from collections.abc import Collection, Mapping

from oslo_config import cfg

from glare_murano import fields
from glare_murano.package import InvalidName, InvalidVersion, Version, parse_version
from glare_murano.package.manifest import check_required_name

# Options of the group [artifact_type:murano].
OPTIONS = [
    cfg.ListOpt(
        "provided_packages",
        default=[],
        sample_default=["org-example-mail:1.4.0"],
        help="The extension plug-ins of the engines, each as NAME:VERSION. Packages may require "
        "them, although they are not published. Name a plug-in several times if engines have "
        "different versions.",
    )
]


def packages() -> Mapping[str, Collection[Version]]:
    """Return the versions that engines provide, by FQN.

    :raises RuntimeError: if the option is not valid.
    """
    return _parse(tuple(cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"].provided_packages))


@functools.lru_cache(maxsize=1)
def _parse(texts: Collection[str]) -> Mapping[str, Collection[Version]]:
    found: dict[str, set[Version]] = collections.defaultdict(set)
    for text in texts:
        name, _, version = text.partition(":")
        try:
            # An empty version would be 0.0.0.
            found[check_required_name(name)].add(parse_version(version or "none"))
        except (InvalidName, InvalidVersion) as error:
            raise RuntimeError(
                f"[artifact_type:{fields.TYPE_NAME}] provided_packages: {text!r} is not a name and "
                f"a version, such as org-example-mail:1.4.0: {error}"
            ) from error
    return dict(found)
