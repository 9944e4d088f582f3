# SPDX-License-Identifier: Apache-2.0

"""The command that publishes packages."""

import argparse
import contextlib
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from loader.authoring import local_packages
from loader.catalogs.stored_package import Visibility
from loader.commands import base, parsing, progress_bars
from loader.progress import Progress, Report
from loader.publishing import bundles, publication, requirements
from loader.publishing.publication import State, Step
from loader.publishing.target import Target

# The state of a package before the command -> the result in the table: ``WOULD`` is for a dry run,
# and ``DONE`` for all other runs.
WOULD = {
    State.MISSING: "would be uploaded and published",
    State.UPLOADED: "would be published",
    State.PRIVATE: "would become public",
    State.PUBLISHED: "is published",
}
DONE = {
    State.MISSING: "published",
    State.UPLOADED: "published, was uploaded before",
    State.PRIVATE: "public now",
    State.PUBLISHED: "skipped, was published before",
}

_DRAFTS_STAY = "Uploaded packages stay as drafts, and the same command goes on with them."


class PublishPackages(base.Lister):
    """Publish packages, all of them or none.

    A path is the directory of a package, a ZIP file, a directory that is searched for packages, a
    bundle file, or the URL of a bundle. The search leaves out directories that are called "dev". A
    URL without TLS has to end with "#sha256=" and the digest of the bundle. All packages are
    checked before the first is uploaded. Packages may require each other.

    If the command fails or is stopped, run it again: it uploads only what is missing. A published
    version never changes: a version that is published already is skipped if its files are the
    same, and refused if they are different. For example::

        $ openstack murano package publish --public org.example.wiki/1.1.0 org.example.db
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "paths",
            nargs="+",
            type=parsing.publishable,
            metavar="<path>",
            help="A package, a directory, or a bundle.",
        )
        visibility = parser.add_mutually_exclusive_group()
        visibility.add_argument(
            "--public",
            action="store_const",
            dest="visibility",
            const="public",
            default="private",
            help="Publish for every project; by default, only administrators can do this.",
        )
        visibility.add_argument(
            "--private",
            action="store_const",
            dest="visibility",
            const="private",
            help="Publish for your project (default).",
        )
        parser.add_argument(
            "--category",
            action="append",
            default=[],
            dest="categories",
            type=parsing.not_blank,
            metavar="<category>",
            help="Put the packages into a category (repeat for several).",
        )
        parser.add_argument(
            "--if-exists",
            choices=("skip", "fail"),
            default="skip",
            help="What to do with packages that are published already with the same files.",
        )
        parser.add_argument(
            "--with-requirements",
            metavar="<directory>",
            type=parsing.path,
            help="Publish required packages from this directory as well, if they are missing.",
        )
        parser.add_argument(
            "--as-version",
            metavar="<version>",
            type=parsing.version,
            help="Publish the packages as this version, instead of the one in their manifests.",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Check all that can be checked without an upload. The service checks your rights "
            "only if all packages are uploaded already, and names of packages only at the upload.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        with tempfile.TemporaryDirectory() as temporary:
            steps = self._prepare(parsed_args, pathlib.Path(temporary))
            if not parsed_args.dry_run:
                self._publish(steps, parsed_args.categories, parsed_args.visibility)
        results = WOULD if parsed_args.dry_run else DONE
        rows = [(s.package.fqn, str(s.package.version), results[s.state]) for s in steps]
        return ("Name", "Version", "Result"), rows

    def _prepare(self, arguments: argparse.Namespace, folder: pathlib.Path) -> list[Step]:
        paths = _paths(arguments.paths, folder)
        packages = local_packages.read_all(paths, folder, arguments.as_version)
        for package in packages:
            for warning in package.warnings:
                self.note(f"{package.place}: {warning}")
        directory = arguments.with_requirements
        available = local_packages.read_all([directory], folder) if directory else []
        target = Target(self.repository)
        packages += requirements.find(
            packages, target, self.catalog, available, arguments.visibility, self.note
        )
        steps = publication.plan(target, packages, arguments.visibility)
        publication.check_uploads(self.repository, steps)
        if arguments.if_exists == "fail":
            publication.check_unpublished(steps)
        if arguments.dry_run:
            publication.check_by_service(self.repository, steps, arguments.visibility)
        return steps

    def _publish(
        self, steps: Sequence[Step], categories: Sequence[str], visibility: Visibility
    ) -> None:
        with drafts_stay(self.app.stderr) as uploads:
            with progress_bars.shown("uploaded", self.app.stderr) as report:
                uploaded = publication.upload(
                    self.repository,
                    steps,
                    lambda _: {"categories": list(categories)} if categories else {},
                    uploads.watched(report),
                )
            publication.publish(self.repository, uploaded, visibility)


class Uploads:
    """The uploads of a command.

    :ivar is_any_complete: whether the service has accepted a package.
    """

    def __init__(self) -> None:
        self.is_any_complete = False

    def watched(self, report: Report) -> Report:
        """Return a function that passes on the progress of uploads, and notices complete ones."""

        def pass_on(progress: Progress) -> None:
            if progress.done == progress.total:
                self.is_any_complete = True
            report(progress)

        return pass_on


@contextlib.contextmanager
def drafts_stay(stream: TextIO) -> Iterator[Uploads]:
    """If the ``with`` block fails after an upload, say that uploads stay for the next attempt.

    ``Command.run`` prints this after the message of the error. It is always printed after Ctrl-C,
    since the service may have accepted a package without an answer yet.

    :param stream: where it is printed after Ctrl-C, which has no message.
    """
    uploads = Uploads()
    try:
        with base.stopped_by_ctrl_c():
            yield uploads
    except KeyboardInterrupt:
        stream.write(f"{_DRAFTS_STAY}\n")
        raise
    except Exception as error:
        if uploads.is_any_complete:
            error.add_note(_DRAFTS_STAY)
        raise


def _paths(places: Iterable[str], folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the paths of packages; the packages in bundles are downloaded first.

    :param places: the paths and URLs that the user gives.
    :param folder: the directory for downloaded packages.
    """
    paths: list[pathlib.Path] = []
    for place in places:
        if bundles.is_bundle(place):
            paths += bundles.fetch(bundles.read(place), folder)
        else:
            paths.append(pathlib.Path(place))
    return paths
