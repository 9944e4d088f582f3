# SPDX-License-Identifier: Apache-2.0

"""Define the options that Glare and Glance share. Each service has them in its own group."""

import collections
import dataclasses
import functools
from collections.abc import Collection, Mapping
from typing import Any

from oslo_config import cfg

from glare_murano.package import InvalidName, InvalidVersion, Version, parse_version
from glare_murano.package.manifest import check_fqn, check_required_name
from glare_murano.package.reserved_names import (
    InvalidReservedNames,
    ReservedNames,
    read_reserved_names,
)

OPTIONS = [
    cfg.FloatOpt(
        "plan_seconds",
        min=0.001,
        default=5,
        help="The longest time that a dependency query, or a list of packages, categories or "
        "subclasses may take, from reading the request to building the answer, in seconds. After "
        "that the query is refused, with the step, and the package or class, where it stopped. The "
        "look-ups of the checks before a change have the same limit.",
    ),
    cfg.IntOpt(
        "max_subclasses",
        min=1,
        default=1000,
        help="The largest number of subclasses of a class in one page of the answer. A link leads "
        "to the next page.",
    ),
    # The packages that engines provide: extension plug-ins, which are not published.
    cfg.ListOpt(
        "provided_packages",
        default=[],
        sample_default=["org-example-mail:1.4.0"],
        help="The extension plug-ins of the engines, each as NAME:VERSION. Packages may require "
        "them, although they are not published. Name a plug-in several times if engines have "
        "different versions. A package with the name of a plug-in is refused.",
    ),
    cfg.ListOpt(
        "provided_classes",
        default=[],
        sample_default=["org.example.mail.Mail"],
        help="The classes of the extension plug-ins: the names of their entry points in the group "
        "io.murano.extensions. A package that defines one of them is refused. Engines refuse "
        "such a package in any case.",
    ),
    cfg.StrOpt(
        "reserved_names_file",
        sample_default="/etc/murano/reserved-names.yaml",
        help="A YAML file with prefixes of package names, each with the ids of the projects that "
        "may publish under it. Packages of other projects under these names are refused, and those "
        "published earlier are not chosen. The file is read at the start. Give engines the same "
        "file.",
    ),
]


@dataclasses.dataclass(frozen=True)
class Settings:
    """The values of a service's options. ``settings[NAME]`` is the value of the option NAME.

    :param group: the name of the option group.
    """

    group: str

    def __getitem__(self, name: str) -> Any:
        return cfg.CONF[self.group][name]

    @property
    def plan_seconds(self) -> float:
        """The longest time that a query may take, in seconds."""
        return float(self["plan_seconds"])

    @property
    def max_subclasses(self) -> int:
        """The largest number of subclasses in a page."""
        return int(self["max_subclasses"])

    def provided(self) -> Mapping[str, Collection[Version]]:
        """Return the extension plug-ins that engines provide: FQN -> versions.

        :raises RuntimeError: if the option ``provided_packages`` is not valid.
        """
        return _provided(self.group, tuple(self["provided_packages"]))

    def provided_classes(self) -> frozenset[str]:
        """Return the names of the classes in the extension plug-ins of the engines.

        :raises RuntimeError: if the option ``provided_classes`` is not valid.
        """
        for name in self["provided_classes"]:
            try:
                check_fqn(name)
            except InvalidName as error:
                raise RuntimeError(
                    f"[{self.group}] provided_classes: {name!r} is not the name of a class, such "
                    f"as org.example.mail.Mail: {error}"
                ) from error
        return frozenset(self["provided_classes"])

    def reserved_names(self) -> ReservedNames:
        """Return the operator's reserved names. Only the first call reads their file.

        :raises RuntimeError: if the file is not valid.
        """
        try:
            return read_reserved_names(self["reserved_names_file"])
        except InvalidReservedNames as error:
            raise RuntimeError(f"[{self.group}] reserved_names_file: {error}") from error

    def check(self) -> None:
        """Check the options whose values oslo.config cannot check completely.

        :raises RuntimeError: if an option is not valid. Then the service does not start.
        """
        self.provided()
        self.provided_classes()
        self.reserved_names()


@functools.lru_cache(maxsize=1)
def _provided(group: str, texts: Collection[str]) -> Mapping[str, Collection[Version]]:
    found: dict[str, set[Version]] = collections.defaultdict(set)
    for text in texts:
        name, _, version = text.partition(":")
        try:
            # An empty version would be read as 0.0.0, so it is replaced by a string that is not
            # valid.
            found[check_required_name(name)].add(parse_version(version or "none"))
        except (InvalidName, InvalidVersion) as error:
            raise RuntimeError(
                f"[{group}] provided_packages: {text!r} is not a name and "
                f"a version, such as org-example-mail:1.4.0: {error}"
            ) from error
    return dict(found)
