# SPDX-License-Identifier: Apache-2.0

"""The command that checks packages on this host."""

import argparse
import contextlib
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from glare_murano.package.errors import escaped
from loader import errors
from loader.authoring import checking, findings, local_packages
from loader.authoring.findings import Finding, Level
from loader.commands import base, parsing


class CheckPackages(base.Command):
    """Check packages on this host, and show every problem with its file and line.

    A path is the directory of a package, a ZIP file, or a directory that is searched for both.
    An upload would refuse a package with errors. Warnings are other probable mistakes, such as a
    class file that the manifest does not list. A cloud is needed only to compare with a published
    package (--against). The exit code is 1 if there are errors. For example::

        $ openstack murano package check org.example.wiki org.example.db/dev
        $ openstack murano package check org.example.wiki --against org.example.wiki@1
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "paths",
            nargs="+",
            type=parsing.path,
            metavar="<path>",
            help="A package or a directory.",
        )
        parser.add_argument(
            "--format",
            choices=tuple(_FORMATS),
            default="text",
            help="How to write the problems: as text, as annotations of GitHub Actions, or as "
            "SARIF 2.1.0.",
        )
        parsing.add_package_or_path(
            parser,
            "--against",
            "Also check that the version is enough for all changes since this release: ",
        )
        parsing.add_requirements(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        places: list[pathlib.Path] = []
        found: list[Finding] = []
        for path in parsed_args.paths:
            try:
                inside = list(local_packages.find(path, omitted=()))
            except OSError as error:
                place = pathlib.Path(error.filename or path)
                found.append(checking.unreadable(place, error.strerror or str(error)))
                continue
            if not inside:
                found.append(checking.unreadable(path, "there is no package"))
            places += inside
        for place in places:
            found += checking.check(place)
        if parsed_args.against is not None:
            found += self._compare(parsed_args, places, found)
        for line in _FORMATS[parsed_args.format](found):
            self.app.stdout.write(f"{line}\n")
        number = sum(each.level is Level.ERROR for each in found)
        self.app.stderr.write(
            f"packages: {len(places)}, errors: {number}, warnings: {len(found) - number}\n"
        )
        return base.REFUSED if number else 0

    def _compare(
        self,
        arguments: argparse.Namespace,
        places: Sequence[pathlib.Path],
        found: Iterable[Finding],
    ) -> list[Finding]:
        if len(places) != 1:
            raise errors.LoaderError(
                f"--against needs the path of one package, and there are {len(places)}"
            )
        if any(each.level is Level.ERROR for each in found):
            return []
        with contextlib.ExitStack() as stack:
            old = stack.enter_context(self.source(arguments.against))
            requirements = stack.enter_context(
                self.requirements(arguments.requirements, arguments.against)
            )
            return checking.check_version(places[0], old, requirements)


def _text(found: Sequence[Finding]) -> Iterable[str]:
    return (escaped(str(each)) for each in found)


def _annotations(found: Sequence[Finding]) -> Iterable[str]:
    return map(escaped, findings.annotations(found))


_FORMATS: Mapping[str, Callable[[Sequence[Finding]], Iterable[str]]] = {
    "text": _text,
    "github": _annotations,
    "sarif": lambda found: [findings.sarif(found)],
}
