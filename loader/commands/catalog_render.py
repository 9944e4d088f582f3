# SPDX-License-Identifier: Apache-2.0

"""The command that renders a catalogue of packages as static pages."""

import argparse

from loader.commands import base, parsing, progress_bars
from loader.site import rendering, sources


class RenderCatalog(base.Command):
    """Write pages about packages into a directory: versions, requirements, classes and forms.

    The pages need no server: a browser opens index.html from the directory, a web server or an
    object store. They show the public packages of the cloud, and those of your project. With
    --path, they show packages on this host, and no cloud is needed. The same command again writes
    only what has changed. For example::

        $ openstack murano catalog render catalogue
        $ openstack murano catalog render catalogue "org.example.*" --path packages
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "directory",
            type=parsing.path,
            metavar="<directory>",
            help="The directory for the pages: a new or empty one, or one of an earlier command.",
        )
        parser.add_argument(
            "names",
            nargs="*",
            # Without it, argparse says that a name is required, if the directory is missing.
            default=[],
            metavar="<name>",
            help="Names of packages, in which * stands for any characters; by default all.",
        )
        parser.add_argument(
            "--path",
            action="append",
            default=[],
            metavar="<path>",
            help="A directory with packages, or a bundle, in place of the cloud (repeat for "
            "several).",
        )
        parser.add_argument(
            "--schemas",
            action="store_true",
            help="Show the JSON schema of each class as well. Needs Murano's engine, and runs the "
            "contracts of the packages, in child processes with limits and without your token.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        directory = parsed_args.directory
        source = sources.Local(parsed_args.path) if parsed_args.path else self._service()
        with progress_bars.counted("packages", self.app.stderr) as progress:
            report = rendering.render(
                source, directory, parsed_args.names, progress, parsed_args.schemas
            )
        for place, problems in report.unreadable:
            self.note(f"{place} cannot be read: {'; '.join(problems)}")
        self.note(
            f"{report.packages} packages with {report.releases} releases; {report.read} archives "
            f"were read, and the pages of {report.written} packages were written"
        )
        self.app.stdout.write(f"{directory / rendering.FIRST_PAGE}\n")

    def _service(self) -> sources.Service:
        project = self.repository.project()
        whom = f"project {project}" if project else "everybody"
        title = f"the packages in {self.repository.name} that {whom} can use"
        return sources.Service(self.repository, project, title)
