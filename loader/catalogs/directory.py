# SPDX-License-Identifier: Apache-2.0

"""A catalogue of the packages in a directory on this host, unpacked or as ZIP files.

Below the catalogue's directory, at any depth, each directory with a manifest is a package, and so
is each ZIP file. Directories inside a package are not searched. In the layout of the specification
"Murano versioning" (section "Developer impact"), packages are in ``FQN/VERSION`` and ``FQN/dev``.
Unpacked files are used where they are, without a copy.

Each query looks for changes on the disk, and reads new and changed packages.
"""

import dataclasses
import functools
import itertools
import logging
import os
import pathlib
import threading
from collections.abc import Collection, Iterable, Iterator

from oslo_config import cfg

from glare_murano import archive_limits
from glare_murano.package import (
    Archive,
    InvalidPackage,
    InvalidVersion,
    Limits,
    parse_version,
    read_contents,
)
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.contents import CLASSES_DIRECTORY
from glare_murano.package.manifest import MANIFEST_FILE, MURANO_PL
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release
from loader import errors
from loader.catalogs import base, options
from loader.catalogs.file_stamps import FileStamps
from loader.catalogs.spool import chunks, read_release
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# The name of the directory for a package in development. The directories beside it have the
# releases of this package.
DEV = "dev"

OPTIONS: options.Options = {
    "engine": [
        cfg.ListOpt(
            "load_packages_from",
            default=[],
            help="Directories with packages, each a catalogue, in this order.",
        )
    ],
    options.GROUP: archive_limits.OPTIONS,
}


class DirectoryCatalog(base.Catalog):
    """A catalogue of the packages below a directory, which may change at any time.

    >>> catalog = DirectoryCatalog("packages")
    >>> for release in catalog.releases("org.wiki"):
    ...     print(release)
    org.wiki 1.1.0
    org.wiki 1.0.0
    """

    def __init__(self, directory: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> None:
        """Make a catalogue; no file is read before the first query.

        :param limits: the limits for a package.
        """
        self._root = pathlib.Path(directory).absolute()
        super().__init__(f"the directory {self._root}")
        self._limits = limits
        self._lock = threading.Lock()
        self._listings: dict[pathlib.Path, _Listing] = {}
        self._candidates: dict[pathlib.Path, _Candidate] = {}
        self._logged: dict[pathlib.Path, str] = {}
        self._index = _Index([])

    def releases(self, fqn: str) -> Iterable[Release]:
        return self._updated().by_fqn.get(fqn, ())

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return self._updated().by_class.get(class_name, ())

    def releases_extending(self, class_names: Collection[str]) -> Iterable[Release]:
        index = self._updated()
        found = (release for name in class_names for release in index.by_base.get(name, ()))
        return base.one_of_each(found)

    def releases_of(self, fqns: Iterable[str]) -> Iterable[Release]:
        index = self._updated()
        return itertools.chain.from_iterable(index.by_fqn.get(fqn, ()) for fqn in fqns)

    def remedy(self, missing: str) -> str:
        return f"add {missing} to the directory, unpacked or as a ZIP file"

    def directory(self, release: Release) -> pathlib.Path | None:
        return None if release.digest else pathlib.Path(release.id)

    def fetch(self, release: Release) -> Iterator[bytes]:
        try:
            with open(release.id, "rb") as stream:
                yield from chunks(stream)
        except OSError as error:
            raise errors.CatalogError(f"cannot read {release.id}: {error}") from error

    def _updated(self) -> "_Index":
        """Read all changes on the disk, and return the index of the releases."""
        with self._lock:
            before = self._candidates
            # The root may be a symbolic link, and its target may change.
            root = pathlib.Path(os.path.realpath(self._root))
            self._listings = {listing.directory: listing for listing in self._search(root)}
            paths = (path for listing in self._listings.values() for path in listing.packages)
            self._candidates = {path: self._candidate(path, root) for path in paths}
            if list(before.items()) != list(self._candidates.items()):
                self._index = _Index(self._candidates.values())
            self._log_problems()
            return self._index

    def _search(self, root: pathlib.Path) -> "Iterator[_Listing]":
        """List the root and all directories below it, except directories inside packages."""
        directories = [root]
        while directories:
            directory = directories.pop()
            known = self._listings.get(directory)
            listing = known if known and known.stamps.surely_unchanged else _list(directory, root)
            yield listing
            directories += reversed(listing.subdirectories)

    def _candidate(self, path: pathlib.Path, root: pathlib.Path) -> "_Candidate":
        known = self._candidates.get(path)
        return known if known and known.stamps.surely_unchanged else _read(path, root, self._limits)

    def _log_problems(self) -> None:
        """Log each problem that was not logged before."""
        problems = {path: listing.problem for path, listing in self._listings.items()}
        problems |= {path: found.problem for path, found in self._candidates.items()}
        problems |= self._index.problems
        for path, problem in problems.items():
            if problem and problem != self._logged.get(path):
                LOG.warning("%s", problem)
        self._logged = problems


@dataclasses.dataclass(frozen=True)
class _Listing:
    """The packages and the subdirectories in a directory; symbolic links are left out.

    If the directory has a manifest, the directory itself is the only package.

    :param stamps: the state of the directory when it was listed.
    """

    directory: pathlib.Path
    stamps: FileStamps
    packages: tuple[pathlib.Path, ...] = ()
    subdirectories: tuple[pathlib.Path, ...] = ()
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A path at which there may be a package: a directory with a manifest, or a ZIP file.

    :param stamps: the state of the files that were read.
    :param release: the release in the directory or the ZIP file; None if the package is invalid.
    """

    stamps: FileStamps
    release: Release | None
    problem: str = ""


class _Index:
    """Releases by FQN, by class and by base class; each version of a package has one release.

    If several candidates have the same version of a package, the first one is used.
    """

    def __init__(self, candidates: Iterable[_Candidate]) -> None:
        self.by_fqn: dict[str, list[Release]] = {}
        self.by_class: dict[str, list[Release]] = {}
        self.by_base: dict[str, list[Release]] = {}
        self.problems: dict[pathlib.Path, str] = {}
        used: dict[PackageVersion, Release] = {}
        for release in (found.release for found in candidates if found.release):
            first = used.setdefault(release.key, release)
            if first is not release:
                self.problems[pathlib.Path(release.id)] = (
                    f"Left out {release} in {release.id}, since {first.id} is the same version"
                )
        for release in base.newest_first(used.values()):
            self.by_fqn.setdefault(release.fqn, []).append(release)
            for name in release.classes:
                self.by_class.setdefault(name, []).append(release)
            for name in release.inherits:
                self.by_base.setdefault(name, []).append(release)


def _list(directory: pathlib.Path, root: pathlib.Path) -> _Listing:
    stamps = FileStamps([directory])
    packages: list[pathlib.Path] = []
    subdirectories: list[pathlib.Path] = []
    problems: list[str] = []
    try:
        with os.scandir(directory) as scanned:
            # A hidden entry may be a package that is being unpacked.
            entries = [entry for entry in scanned if not entry.name.startswith(".")]
        if any(entry.name == MANIFEST_FILE for entry in entries):
            return _Listing(directory, stamps, (directory,))
        for entry in sorted(entries, key=lambda e: (e.name == DEV, e.name)):
            path = pathlib.Path(entry.path)
            is_zip = path.suffix.lower() == ".zip"
            if entry.is_symlink():
                target = pathlib.Path(os.path.realpath(path))
                if not target.is_relative_to(root) and (is_zip or os.path.isdir(path)):
                    problems.append(f"Left out {path}, a symbolic link to a target outside {root}")
            elif entry.is_dir(follow_symlinks=False):
                subdirectories.append(path)
            elif is_zip and entry.is_file(follow_symlinks=False):
                packages.append(path)
    except OSError as error:
        problems.append(f"Cannot look for packages in {directory}: {error}")
    return _Listing(directory, stamps, tuple(packages), tuple(subdirectories), "; ".join(problems))


def _read(path: pathlib.Path, root: pathlib.Path, limits: Limits) -> _Candidate:
    is_directory = os.path.isdir(path)
    decisive, all_paths = _paths(path) if is_directory else ([path], [path])
    stamps, whole = FileStamps(decisive), FileStamps(all_paths)
    try:
        if is_directory:
            with Archive.open(path, limits) as archive:
                contents = read_contents(archive)
            release = Release.from_contents(contents, str(path))
            if contents.manifest.format.name != MURANO_PL:
                # For another package type, the release may depend on any file of the package.
                stamps = whole
        else:
            with open(path, "rb") as stream:
                release = read_release(stream, str(path), limits)
        if not whole.unchanged:
            raise OSError("it changed while being read")
    except (InvalidPackage, OSError) as error:
        return _Candidate(whole, None, f"Left out the package in {path}: {error}")
    return _Candidate(stamps, release, _misplaced(path, root, release) if is_directory else "")


def _paths(package: pathlib.Path) -> tuple[list[str], list[str]]:
    """List the paths of an unpacked package.

    :returns: the paths of the files and directories that determine the package's release (its
        manifest and its classes), and then all its paths.
    """
    decisive = [f"{package}/{MANIFEST_FILE}"]
    all_paths = []
    for directory, subdirectories, names in os.walk(package):
        files = [f"{directory}/{name}" for name in names]
        all_paths += [directory, *(f"{directory}/{name}" for name in subdirectories), *files]
        inside = pathlib.Path(directory).relative_to(package).parts
        if not any(part.startswith(".") for part in inside):
            decisive.append(directory)
        if inside[:1] == (CLASSES_DIRECTORY,):
            decisive += files
    return decisive, all_paths


def _misplaced(directory: pathlib.Path, root: pathlib.Path, release: Release) -> str:
    """Return a warning if the path of a package contradicts its manifest; else an empty string.

    Only a path that ends with ``NAME/VERSION`` or ``NAME/dev`` can contradict the manifest: if the
    manifest has another name or another version. ``root`` itself may have any name.

    :param directory: the directory of the package.
    :param root: the directory of the catalogue.
    """
    try:
        version = None if directory.name == DEV else parse_version(directory.name)
    except InvalidVersion:
        return ""
    name = directory.parent.name
    is_other = directory.parent != root and directory != root and name != release.fqn
    if not is_other and version in (None, release.version):
        return ""
    return (
        f"The directory {directory} contains {release}, which disagrees with its name; the "
        f"manifest counts"
    )


# All scopes of the process share one catalogue for each directory.
_catalog = functools.cache(DirectoryCatalog)


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[DirectoryCatalog]:
    """Make a catalogue for each directory in the options; this is an entry point."""
    options.register(conf, OPTIONS)
    directories = map(pathlib.Path, conf.engine.load_packages_from)
    limits = archive_limits.limits(conf[options.GROUP])
    return [_catalog(directory.absolute(), limits) for directory in directories]
