# SPDX-License-Identifier: Apache-2.0

"""The command that shows the pages of packages while their author writes them."""

import argparse

from loader.commands import base, parsing
from loader.site import preview, rendering


class ServeCatalog(base.Command):
    """Show the pages of packages on this host, and render them again after each change.

    The pages are those of "catalog render", with the findings of "package check". Only this host
    can open them. Reload a page after a change; Ctrl-C ends the command. No cloud is needed. For
    example::

        $ openstack murano catalog serve
        $ openstack murano catalog serve packages libraries --port 8001
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "paths",
            nargs="*",
            metavar="<path>",
            help="Directories with packages; by default the current one.",
        )
        parser.add_argument(
            "--port",
            type=parsing.port,
            default=8000,
            metavar="<port>",
            help="The port on this host; 0 takes any free port. The default is 8000.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        try:
            preview.serve(parsed_args.paths or ["."], parsed_args.port, self._report)
        except KeyboardInterrupt:
            self.note("Stopped.")

    def _report(self, url: str, report: rendering.Report) -> None:
        for place, problems in report.unreadable:
            self.note(f"{place} cannot be read: {'; '.join(problems)}")
        self.app.stdout.write(f"{url} shows {report.packages} packages\n")
        self.app.stdout.flush()
