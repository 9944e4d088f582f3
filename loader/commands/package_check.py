# SPDX-License-Identifier: Apache-2.0

"""The command that checks packages on this host."""

import argparse
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from glare_murano.package.errors import escaped
from glare_murano.package.ui_form import FormCheck
from loader import errors
from loader.authoring import checking, findings, local_packages
from loader.authoring.findings import Finding, Level
from loader.commands import base, parsing
from loader.compatibility import Requirements


class CheckPackages(base.Command):
    """Check packages on this host, and show every problem with its file and line.

    A path is the directory of a package, a ZIP file, or a directory that is searched for packages.
    An upload would refuse a package with errors. Warnings are other probable mistakes, such as a
    class file that the manifest does not list, or a form that a dashboard cannot show. A cloud is
    needed only to compare with a published package (--against). The exit code is 1 if there are
    errors. For example::

        $ openstack murano package check --strict org.example.wiki org.example.db/dev
        $ openstack murano package check org.example.wiki --against org.example.wiki@1
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "paths",
            nargs="+",
            type=parsing.path,
            metavar="<path>",
            help="A package or a directory.",
        )
        parser.add_argument(
            "--strict",
            action="store_const",
            dest="form_check",
            const=FormCheck.ENFORCE,
            default=FormCheck.WARN,
            help="Refuse a form that a dashboard cannot show, as a service with check_forms = "
            "enforce does.",
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
        against = [] if parsed_args.against is None else [parsed_args.against]
        with self.requirements(parsed_args.requirements, *against) as requirements:
            for place in places:
                problems = checking.check(place, parsed_args.form_check, requirements)
                found += problems
                if not any(each.level is Level.ERROR for each in problems):
                    found += self._check_bases(place, requirements)
            if parsed_args.against is not None:
                found += self._compare(parsed_args, places, found, requirements)
        for line in _FORMATS[parsed_args.format](found):
            self.app.stdout.write(f"{line}\n")
        number = sum(each.level is Level.ERROR for each in found)
        self.app.stderr.write(
            f"packages: {len(places)}, errors: {number}, warnings: {len(found) - number}\n"
        )
        return base.REFUSED if number else 0

    def _check_bases(self, place: pathlib.Path, requirements: Requirements | None) -> list[Finding]:
        """Return the findings for base classes; print which required packages were not read."""
        found, unread = checking.check_bases(place, requirements)
        if unread:
            names = ", ".join(sorted(unread))
            self.app.stderr.write(
                f"{place}: base classes in these packages were not checked: {names}; name the "
                f"directory with them (--path)\n"
            )
        return found

    def _compare(
        self,
        arguments: argparse.Namespace,
        places: Sequence[pathlib.Path],
        found: Iterable[Finding],
        requirements: Requirements | None,
    ) -> list[Finding]:
        if len(places) != 1:
            raise errors.LoaderError(
                f"--against needs the path of one package, and there are {len(places)}"
            )
        if any(each.level is Level.ERROR for each in found):
            return []
        with self.source(arguments.against) as old:
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
