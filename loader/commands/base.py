# SPDX-License-Identifier: Apache-2.0

"""The base classes of the commands: exit codes, access to the cloud, and confirmation.

A command authenticates when it sends its first request, not before. So a command that sends no
request needs no cloud, and the command itself chooses the exit code if Keystone is unreachable.
"""

import argparse
import contextlib
import functools
import io
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cliff import lister, show
from cliff._argparse import SmartHelpFormatter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1.loading import get_plugin_options
from openstack import exceptions as sdk_exceptions
from openstack.config import cloud_region
from openstack.connection import Connection
from osc_lib.command import command

from glare_murano.package import (
    Archive,
    GlareMuranoError,
    InvalidName,
    InvalidRange,
)
from glare_murano.package.archive import Source
from glare_murano.package.errors import escaped
from loader import clouds, errors
from loader.catalogs import package_service
from loader.catalogs.base import Catalog
from loader.catalogs.directory import DirectoryCatalog
from loader.catalogs.openstack import ServiceCatalog
from loader.catalogs.package_service import PackageService, UnknownService
from loader.catalogs.repository import Repository
from loader.commands import output
from loader.compatibility import Requirements
from loader.loader import PackageLoader
from loader.references import AmbiguousReference, PackageReference
from loader.transport import failures
from loader.transport.adapter import ServiceAdapter

# What commands return. For a table: the names of columns, and the rows. For an object: the names
# of properties, and their values.
Table = tuple[Sequence[str], Iterable[Sequence[Any]]]
Properties = tuple[Sequence[str], Sequence[Any]]

LOG = logging.getLogger(__name__)

REFUSED = 1
MISUSED = 2
NOT_FOUND = 3
UNREACHABLE = 4


class NotConfirmed(errors.LoaderError):
    """The user did not confirm a change."""


class InvalidOptions(errors.LoaderError, ValueError):
    """Each option of a command is valid, but not all of them together."""


# If an error is an instance of several classes, the first one in this order decides.
_EXIT_CODES: Mapping[type[Exception], int] = {
    errors.NotFound: NOT_FOUND,
    errors.CatalogUnavailable: UNREACHABLE,
    AmbiguousReference: MISUSED,
    UnknownService: MISUSED,
    InvalidOptions: MISUSED,
    errors.InvalidCloud: MISUSED,
    InvalidName: MISUSED,
    InvalidRange: MISUSED,
    # These three are raised if the chosen cloud is misconfigured.
    sdk_exceptions.ConfigException: MISUSED,
    ksa_exceptions.OptionError: MISUSED,
    ksa_exceptions.NoMatchingPlugin: MISUSED,
    GlareMuranoError: REFUSED,
}


class Command(command.Command):
    """A command of this project.

    :cvar auth_required: false, so that the ``openstack`` command does not authenticate in advance.
    """

    auth_required = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.formatter_class = _HelpFormatter
        self.add_arguments(parser)
        return parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments; by default, it has none."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, and print its errors.

        :returns: the exit code: 0 for success, 1 if something was refused, 2 for invalid arguments,
            3 if a package was not found, and 4 if a service did not answer.
        """
        for stream in (self.app.stdout, self.app.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Escape what the stream cannot encode: the locale or a path may not be UTF-8.
                stream.reconfigure(errors="backslashreplace")
        try:
            with stopped_by_ctrl_c():
                return super().run(parsed_args)
        except tuple(_EXIT_CODES) as error:
            LOG.debug("%s", error, exc_info=True)
            self._print_error(str(error), error)
            return next(code for kind, code in _EXIT_CODES.items() if isinstance(error, kind))
        except OSError as error:
            if error.filename is None:
                # The error does not come from a file, but for example from a closed pipe.
                raise
            LOG.debug("%s", error, exc_info=True)
            self._print_error(f"{os.fsdecode(error.filename)}: {error.strerror}", error)
            return REFUSED

    def _print_error(self, message: str, error: Exception) -> None:
        """Print the message of an error, and what was added to the error with ``add_note``."""
        for text in (message, *getattr(error, "__notes__", ())):
            self.note(text)

    def note(self, text: str) -> None:
        """Write lines to the standard error; characters that control a terminal are escaped."""
        for line in text.splitlines():
            self.app.stderr.write(f"{escaped(line)}\n")

    @functools.cached_property
    def repository(self) -> Repository:
        """The client for all packages in the chosen cloud."""
        return self.service.repository(self.cloud)

    @functools.cached_property
    def catalog(self) -> ServiceCatalog:
        """The catalogue of the releases in the chosen cloud that the user's project can load."""
        return self.service.catalog(self.cloud)

    @contextlib.contextmanager
    def source(self, place: PackageReference | pathlib.Path) -> Iterator[Source]:
        """Yield the path of a package on this host, or download a package and yield its archive.

        :param place: the package; a path is a package on this host.
        :raises NotFound: if the cloud does not have the package.
        """
        if isinstance(place, pathlib.Path):
            yield place
            return
        with tempfile.TemporaryFile() as file:
            file.writelines(self.repository.download(self.repository.find_release(place)))
            file.flush()
            yield file

    @contextlib.contextmanager
    def opened(self, place: PackageReference | pathlib.Path) -> Iterator[Archive]:
        """Open the archive of a package in the cloud, or of a package on this host.

        :param place: the package; a path is a package on this host.
        :raises NotFound: if the cloud does not have the package.
        :raises InvalidArchive: if the package breaks a rule for archives.
        """
        with self.source(place) as source, Archive.open(source) as archive:
            yield archive

    @contextlib.contextmanager
    def requirements(
        self, directories: Iterable[str], *compared: PackageReference | pathlib.Path
    ) -> Iterator[Requirements | None]:
        """Yield a function that finds required packages, for a comparison of two packages.

        The function searches the given directories. If a compared package is in the cloud, the
        function also searches the cloud. If there is nothing to search, None is yielded.

        :param directories: the directories with packages.
        :param compared: the compared packages; a path is a package on this host.
        :raises OSError: if a directory cannot be read.
        """
        for each in directories:
            # Report a missing directory: the catalogue would treat it as an empty one.
            os.scandir(each).close()
        catalogs: list[Catalog] = [DirectoryCatalog(each) for each in directories]
        if any(isinstance(each, PackageReference) for each in compared):
            catalogs.append(self.catalog)
        if not catalogs:
            yield None
            return
        with tempfile.TemporaryDirectory() as cache, PackageLoader(catalogs, cache) as packages:
            yield lambda fqn, spec: packages.load(fqn, spec).source_directory

    def confirm(self, question: str) -> None:
        """Ask the user on the terminal whether to continue.

        :raises NotConfirmed: if the answer is not yes, or there is no terminal.
        """
        # A closed standard input is None.
        if self.app.stdin is None or not self.app.stdin.isatty():
            raise NotConfirmed("there is no terminal to ask on; add --yes")
        self.app.stderr.write(f"{question} [y/N] ")
        self.app.stderr.flush()
        answer = self.app.stdin.readline()
        if not answer:
            # Ctrl-D leaves the cursor behind the question.
            self.app.stderr.write("\n")
        if answer.strip().lower() not in ("y", "yes"):
            raise NotConfirmed("nothing was changed")

    @functools.cached_property
    def murano(self) -> ServiceAdapter:
        """The client for Murano's API in the chosen cloud.

        The option ``--murano-url`` of python-muranoclient can set the URL of the API.
        """
        url = self.cloud.config.get("murano_url")
        return package_service.client(self.cloud, "application-catalog", "Murano's API", url)

    @functools.cached_property
    def service(self) -> PackageService:
        """The service that keeps the packages of the chosen cloud."""
        return package_service.of_cloud(self.cloud)

    @functools.cached_property
    def cloud(self) -> cloud_region.CloudRegion:
        """The chosen cloud, as the options, the environment and ``clouds.yaml`` describe it."""
        options = self.app.options
        return clouds.checked(self.app.cloud_config.get_one, options.cloud, argparse=options)

    def other_cloud(self, name: str) -> cloud_region.CloudRegion:
        """Return a cloud of ``clouds.yaml`` by its name; the options of the command do not apply.

        :raises openstack.exceptions.ConfigException: if no cloud has this name.
        :raises InvalidCloud: if a value in the configuration has a wrong type, or is missing.
        """
        return clouds.checked(self.app.cloud_config.get_one, name)

    def cloud_for_project(self, project_id: str) -> cloud_region.CloudRegion:
        """Return the chosen cloud, with the same credentials but for another project.

        :raises CatalogError: if the credentials cannot be used for another project.
        """
        kind = self.cloud.config["auth_type"]
        if all(option.dest != "project_id" for option in get_plugin_options(kind)):
            raise errors.CatalogError(
                f"credentials of the type {kind} cannot choose a project; use those of a user"
            )
        return Connection(config=self.cloud).connect_as(project_id=project_id).config


class Lister(Command, lister.Lister):
    """A command that prints a table.

    :cvar nothing: what is printed instead of a table without rows; empty to print nothing.
    """

    nothing = "Nothing was found."

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Any]
    ) -> int:
        rows = [output.printable(row, parsed_args.formatter) for row in data]
        if rows or parsed_args.formatter != "table" or parsed_args.print_empty:
            super().produce_output(parsed_args, column_names, rows)
        elif self.nothing:
            # cliff would print an empty line.
            self.app.stderr.write(f"{self.nothing}\n")
        self.finish(parsed_args)
        return 0

    def finish(self, parsed_args: argparse.Namespace) -> None:
        """Do the work that follows the printed table, for example make the listed changes.

        By default, nothing is done.
        """


class ShowOne(Command, show.ShowOne):
    """A command that prints the properties of an object."""

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Any]
    ) -> int:
        values = output.printable(data, parsed_args.formatter)
        return super().produce_output(parsed_args, column_names, values)


@contextlib.contextmanager
def stopped_by_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C has ended the ``with`` block.

    Without this, an error in a cleanup after Ctrl-C would replace KeyboardInterrupt.
    """
    try:
        yield
    except Exception as error:
        if any(isinstance(cause, KeyboardInterrupt) for cause in failures.causes(error)):
            raise KeyboardInterrupt from error
        raise


class _HelpFormatter(SmartHelpFormatter):
    """Formats help: wraps the paragraphs of a description, and leaves its examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        paragraphs = text.replace("::\n", ":\n").split("\n\n")
        return "\n\n".join(p if p.startswith("  ") else fill(p, width, indent) for p in paragraphs)
