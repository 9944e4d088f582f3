# SPDX-License-Identifier: Apache-2.0

"""The commands for pins: the versions of packages that an environment keeps."""

import argparse

from glare_murano import resolver
from loader.commands import base, output, parsing
from loader.environments import environment_pins
from loader.environments.environment_pins import EnvironmentPins, Table

_TIMEOUT = 3600.0


class _EnvironmentCommand(base.Lister):
    """A command for the pins of one environment."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "environment",
            metavar="<environment>",
            help="Id of an environment, or its name in your project.",
        )


class ListPins(_EnvironmentCommand):
    """List the versions of packages to which an environment is pinned.

    For example::

        $ openstack murano environment pins list production
    """

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        pins = environment_pins.find(self.murano, parsed_args.environment).read()
        return ("Name", "Versions"), [
            (fqn, output.versions(resolver.newest_first(pins.table[fqn])))
            for fqn in sorted(pins.table)
        ]


class UpdatePins(_EnvironmentCommand):
    """Move an environment to other versions of packages, and deploy it.

    Before the deployment, the changes are shown, and you confirm them on a terminal. For this
    preview, only Glare or Glance is searched for packages. For example::

        $ openstack murano environment pins update production --dry-run
        $ openstack murano environment pins update production org.example.db --wait
        $ openstack murano environment pins update production org.example.db@1.2.0
    """

    # ``finish`` reports in every format that there are no changes.
    nothing = ""

    _pins: EnvironmentPins
    _table: Table
    _has_changes: bool

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "packages",
            nargs="*",
            # Without it, argparse says that a package is required, if the environment is missing.
            default=[],
            type=parsing.package_and_version,
            metavar="<package>",
            help="NAME for the newest version in range, or NAME@VERSION for this version; several "
            "versions of a package are pinned side by side. Without packages, all pinned packages "
            "get the newest version in range.",
        )
        extent = parser.add_mutually_exclusive_group()
        extent.add_argument("--dry-run", action="store_true", help="Only show the changes.")
        extent.add_argument(
            "--no-deploy",
            action="store_true",
            help="Leave the changes in a session of the environment, and show its id; nothing "
            "changes before the session is deployed.",
        )
        extent.add_argument("--wait", action="store_true", help="Wait until the deployment ends.")
        parser.add_argument(
            "--timeout",
            type=parsing.seconds,
            default=_TIMEOUT,
            metavar="<seconds>",
            help=f"How long --wait waits at most (default: {_TIMEOUT:g}).",
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        self._pins = environment_pins.find(self.murano, parsed_args.environment)
        self._table = environment_pins.table(parsed_args.packages, self._pins.read())
        changes = self._pins.preview([self.catalog], self._table)
        self._has_changes = bool(changes)
        rows = [output.change_row(change) for change in changes]
        if not (changes and parsed_args.no_deploy):
            return output.CHANGE_COLUMNS, rows
        session = self._pins.move(self._table)
        return (*output.CHANGE_COLUMNS, "Session"), [(*row, session) for row in rows]

    def finish(self, parsed_args: argparse.Namespace) -> None:
        if not self._has_changes:
            self.app.stderr.write("Nothing changes.\n")
        elif not (parsed_args.dry_run or parsed_args.no_deploy):
            if not parsed_args.yes:
                self.confirm("Deploy these changes?")
            self._deploy(parsed_args)

    def _deploy(self, arguments: argparse.Namespace) -> None:
        session = self._pins.move(self._table)
        self._pins.deploy(session)
        if not arguments.wait:
            self.note(f"The deployment of the session {session} has begun.")
            return
        self.note(
            f"Waiting for the deployment of the session {session}, {arguments.timeout:g} seconds "
            f"at most."
        )
        self.app.stderr.flush()
        self._pins.wait(arguments.timeout)
        self.app.stderr.write("Deployed.\n")
