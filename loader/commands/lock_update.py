# SPDX-License-Identifier: Apache-2.0

"""The commands for lock files: create, update, check."""

import argparse
import pathlib
from collections.abc import Sequence

from glare_murano.package import Version
from loader import errors
from loader.commands import base, output, parsing
from loader.lockfiles import lock_check
from loader.lockfiles.lock import Lock
from loader.references import PackageReference

_DEFAULT_FILE = "packages.lock"


class CreateLock(base.Lister):
    """Write a lock file, which lists the exact releases of packages and of all that they require.

    For a name without a range, the newest version is chosen, also in later updates. For example::

        $ openstack murano lock create "org.example.wiki@>=1,<2" org.example.shop@1
        $ openstack murano lock create org.example.wiki --file /etc/murano/packages.lock
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "requirements",
            nargs="+",
            type=_requirement,
            metavar="<package>",
            help="Name of a package, NAME@VERSION or NAME@RANGE.",
        )
        _add_file(parser)
        parser.add_argument(
            "--provided",
            action="append",
            default=[],
            type=_provided,
            metavar="<name>@<version>",
            help="An extension plug-in of the engine, which satisfies requirements "
            "(repeat for several).",
        )
        parser.add_argument("--force", action="store_true", help="Replace an existing file.")

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        file = parsed_args.file
        if file.exists() and not parsed_args.force:
            raise errors.LockError(
                f"{file} exists; update it with the command lock update, or replace it with --force"
            )
        requirements = {wanted.fqn: wanted.spec for wanted in parsed_args.requirements}
        if len(requirements) < len(parsed_args.requirements):
            raise errors.LockError("a package is listed twice; join its ranges with a comma")
        provided: dict[str, list[str]] = {}
        for fqn, version in parsed_args.provided:
            provided.setdefault(fqn, []).append(str(version))
        lock = Lock.create(self.catalog, requirements, provided)
        lock.save(file)
        names = ("Name", "Version", "Visibility", "SHA-256")
        return names, [
            (r.fqn, str(r.version), r.visibility or "public", r.digest) for r in lock.releases
        ]


class UpdateLock(base.Lister):
    """Update packages in a lock file to the newest versions in their ranges.

    All other packages keep their versions, unless an updated package requires another version. For
    example::

        $ openstack murano lock update --dry-run
        $ openstack murano lock update org.example.db
    """

    nothing = "No package changes."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "names",
            nargs="*",
            metavar="<name>",
            help="Name of a locked package; by default, all packages.",
        )
        _add_file(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="Show the changes, and write nothing."
        )

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        lock = Lock.load(parsed_args.file)
        updated = lock.update(self.catalog, parsed_args.names or None)
        if updated != lock and not parsed_args.dry_run:
            updated.save(parsed_args.file)
        changes = lock.changes(updated)
        for change in changes:
            if change.before == change.after:
                self.app.stderr.write(f"{change.fqn}: another archive of the same version\n")
        return output.CHANGE_COLUMNS, [output.change_row(change) for change in changes]


class CheckLock(base.Lister):
    """Check that every release in a lock file can still be fetched.

    The exit code is 1 if a release is missing, or if its archive was replaced. A yanked release is
    reported, but does not change the exit code. The column Newer shows the newest version if it is
    newer than the locked one, even outside the range. To see what an update would change, use "lock
    update --dry-run". For example::

        $ openstack murano lock check --file /etc/murano/packages.lock
    """

    _checked: Sequence[lock_check.CheckedRelease]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_file(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        self._checked = lock_check.check(Lock.load(parsed_args.file), self.catalog)
        return ("Name", "Version", "State", "Newer"), [
            (c.release.fqn, str(c.release.version), _state(c), str(c.newer or ""))
            for c in self._checked
        ]

    def finish(self, parsed_args: argparse.Namespace) -> None:
        lock_check.require_available(self._checked)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--file",
        type=parsing.path,
        default=pathlib.Path(_DEFAULT_FILE),
        metavar="<path>",
        help=f"The lock file; by default {_DEFAULT_FILE} in the current directory.",
    )


def _requirement(text: str) -> PackageReference:
    wanted = parsing.reference(text)
    if wanted.id:
        raise argparse.ArgumentTypeError(f"{text} is an id; give the package as NAME@RANGE")
    return wanted


def _provided(text: str) -> tuple[str, Version]:
    fqn, version = parsing.package_and_version(text)
    if version is None:
        raise argparse.ArgumentTypeError(f"{text} has no version; add one, as NAME@VERSION")
    return fqn, version


def _state(checked: lock_check.CheckedRelease) -> str:
    if checked.fault:
        return checked.fault
    return f"yanked: {checked.yanked}" if checked.yanked else "valid"
