# SPDX-License-Identifier: Apache-2.0

"""The commands that list and show classes."""

import argparse
import json
import urllib.parse
from collections.abc import Sequence
from typing import TextIO

from osc_lib.cli import format_columns

from loader import errors
from loader.catalogs.stored_package import StoredPackage
from loader.commands import base, class_graph, parsing
from loader.commands.class_graph import Extension
from loader.commands.graph_format import GraphFormat
from loader.commands.package_search import Search
from loader.transport.failures import NoSuchPath

# The columns of ``-f svg``.
_EDGES = ("Class", "Package", "Extends", "Base Package", "Range")


class ListClasses(base.Lister):
    """List the classes in the newest version of each package; only loadable versions count.

    For example::

        $ openstack murano class list org.example.db@1
        $ openstack murano class list --subclass-of io.murano.Application
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_search(parser, "package")

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        search = Search(parsed_args.pattern, subclass_of=parsed_args.subclass_of)
        rows = (
            (name, _bases(package, name), package.fqn, version)
            for package in search.run(self.repository)
            for version in [str(package.version)]
            for name in package.fields.get("class_definitions") or ()
        )
        return ("Class", "Extends", "Package", "Version"), rows


class ShowClass(base.Lister):
    """List the packages and versions that define a class, and its base classes in each version.

    -f svg draws all its base classes and subclasses, in the newest version of each package. For
    example::

        $ openstack murano class show org.example.db.Database
        $ openstack murano class show org.example.db.Database -f svg > database.svg
    """

    @property
    def formatter_namespace(self) -> str:
        """The group of entry points in which the output formats are registered."""
        return "glare_murano.class_formats"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", metavar="<class>", help="Fully qualified name of the class.")

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        if parsed_args.formatter == "svg":
            return _EDGES, class_graph.find(self.repository, parsed_args.name)
        search = Search(filters={"class_definitions": parsed_args.name}, all_versions=True)
        found = list(search.run(self.repository))
        if not found:
            raise errors.NotFound(
                f"no package that can be loaded defines {parsed_args.name}; check the name"
            )
        bases = (_bases(p, parsed_args.name) for p in found)
        rows = zip((p.fqn for p in found), (str(p.version) for p in found), bases, strict=True)
        return ("Package", "Version", "Extends"), rows


class ShowSchema(base.Command):
    """Print the JSON schema of a class, as Murano's API makes it for forms.

    For example::

        $ openstack murano class schema org.example.db.Database@1
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "name",
            type=parsing.class_and_range,
            metavar="<class>",
            help="Fully qualified name of the class; @RANGE may follow, for the package's version.",
        )
        parser.add_argument("--package", metavar="<name>", help="Name of the package.")
        parser.add_argument(
            "--method",
            action="append",
            default=[],
            metavar="<name>",
            help="Print only the schema of this model builder or action (repeat for several).",
        )
        parser.add_argument(
            "--subclasses",
            action="store_true",
            help="List the subclasses as well, wherever the schema has an object.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        name, spec = parsed_args.name
        parts = [name, ",".join(parsed_args.method)] if parsed_args.method else [name]
        path = "/v1/schemas/" + "/".join(urllib.parse.quote(part, safe=",") for part in parts)
        given = {
            "classVersion": spec and spec.text,
            "packageName": parsed_args.package,
            # Murano's own API does not know this parameter; the filter ``murano-packages`` does.
            "subclasses": parsed_args.subclasses and "true",
        }
        query = urllib.parse.urlencode({key: value for key, value in given.items() if value})
        try:
            schema = self.murano.document("GET", f"{path}?{query}")
        except NoSuchPath as error:
            raise errors.NotFound(
                f"class {name} in the range {spec or '*'} was not found by Murano; check the "
                f"names and the range: {error}"
            ) from error
        self.app.stdout.write(json.dumps(schema, indent=2) + "\n")


def _bases(package: StoredPackage, name: str) -> format_columns.ListColumn:
    return format_columns.ListColumn(class_graph.bases_of(package, name))


class _Picture(GraphFormat):
    """The output format that draws the base classes and the subclasses of a class."""

    columns = _EDGES

    def drawn(
        self, rows: Sequence[Sequence[str]], stdout: TextIO, parsed_args: argparse.Namespace
    ) -> str:
        return class_graph.svg([Extension(*row) for row in rows])


# The entry point of the output format.
svg = _Picture
