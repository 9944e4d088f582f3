# SPDX-License-Identifier: Apache-2.0

"""The command that migrates the packages of a Murano API into Glare or Glance."""

import argparse
import pathlib
import tempfile

from loader.catalogs.repository import Repository
from loader.commands import base, progress_bars
from loader.commands.package_publish import drafts_stay
from loader.publishing import migration


class MigratePackages(base.Lister):
    """Migrate the packages of Murano's API to Glare or Glance.

    Owner, visibility, display name, description, categories and tags are kept. By default, public
    packages and the packages of your project are migrated. To migrate packages of other projects,
    you need a role in these projects. To migrate public packages, you need the rights of an
    administrator.

    If some packages are refused, the others are migrated, and the exit code is 1. You can run the
    command again after that: it migrates only packages that are missing. For example::

        $ openstack murano migrate --all-projects --dry-run
    """

    _is_refused = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--all-projects",
            action="store_true",
            help="Migrate the packages of all projects; for administrators.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Check everything, and upload nothing."
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        code = super().run(parsed_args)
        return code or (base.REFUSED if self._is_refused else 0)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        packages = list(migration.find(self.murano, all_projects=parsed_args.all_projects))
        with tempfile.TemporaryDirectory() as folder:
            with progress_bars.shown("read", self.app.stderr) as report:
                entries = migration.read(self.murano, packages, pathlib.Path(folder), report)
            migration.compare(entries, self.repository, self._scope)
            migration.check_requirements(entries, self.repository, self.catalog)
            if not parsed_args.dry_run:
                with (
                    drafts_stay(self.app.stderr) as uploads,
                    progress_bars.shown("uploaded", self.app.stderr) as report,
                ):
                    migration.migrate(entries, self.repository, uploads.watched(report))
        self._is_refused = any(entry.result is migration.Result.REFUSED for entry in entries)
        entries.sort(key=lambda e: (e.package.fqn, e.package.owner))
        for entry in entries:
            # If a package is refused, the column Reason already contains its warnings.
            if entry.result in (migration.Result.READY, migration.Result.MIGRATED):
                for warning in entry.warnings:
                    self.note(f"{entry.package}: {warning}")
        return ("Name", "Version", "Owner", "Visibility", "Result", "Reason"), [
            (
                entry.package.fqn,
                str(entry.version or ""),
                entry.package.owner,
                entry.package.visibility,
                entry.result.value,
                entry.reason,
            )
            for entry in entries
        ]

    def _scope(self, project: str) -> Repository:
        if project == self.repository.project():
            return self.repository
        return self.service.repository(self.cloud_for_project(project))
