# SPDX-License-Identifier: Apache-2.0

"""The command that lists packages whose names belong to other projects."""

import argparse
from collections.abc import Iterator

from glare_murano.eligibility import Eligibility
from glare_murano.package.reserved_names import ReservedNames
from loader.catalogs.stored_package import StoredPackage
from loader.commands import base


class ListReserved(base.Lister):
    """List packages that are not chosen, since their names or classes belong to other projects.

    An administrator sees the packages of all projects, drafts included. For example::

        $ openstack murano package reserved /etc/murano/reserved-names.yaml
    """

    nothing = "no package has a name of another project"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="<file>", help="The operator's file of reserved names.")

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        rules = Eligibility(ReservedNames.load(parsed_args.file))
        names = ("Name", "Version", "Owner", "Visibility", "Status", "Reason", "ID")
        rows = (
            (p.fqn, str(p.version), p.owner, p.visibility, p.status, reason, p.id)
            for p in self.repository.packages()
            for reason in _reasons(rules, p)
        )
        return names, rows


def _reasons(rules: Eligibility, package: StoredPackage) -> Iterator[str]:
    """Yield the reasons why a package is not chosen, and why its classes are not found.

    Classes under the same reserved prefix as the package are left out, since their reason would be
    the same.
    """
    if objection := rules.find_objection(package):
        yield objection
    of_name = rules.reserved.find(package.fqn)
    for name in package.fields.get("class_definitions") or ():
        reservation = rules.reserved.find(name)
        if reservation != of_name and not rules.allows_class(name, package):
            yield f"class {name} is under {reservation}"
