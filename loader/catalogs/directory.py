# SPDX-License-Identifier: Apache-2.0
"""Releases that lie in a folder of this host, unpacked or as ZIP files.

A package is any folder with a manifest, and any ZIP file, however deep below
the catalogue's folder; folders inside a package are not searched. In the
version-aware layout of the specification "Murano versioning" (section
"Developer impact") they are ``FQN/VERSION`` and ``FQN/dev``. Folders are used
where they lie.

Each question looks whether anything has changed, and reads what has.
"""

import dataclasses
import functools
import itertools
import logging
import os
import pathlib
import threading
from collections.abc import Iterable, Iterator

from oslo_config import cfg

from glare_murano import wire
from glare_murano.package import (
    Archive,
    InvalidPackage,
    InvalidVersion,
    Version,
    parse_version,
    read_contents,
)
from glare_murano.package.contents import CLASSES
from glare_murano.package.manifest import FILE_NAME
from loader import errors
from loader.catalogs import base, options, spool
from loader.catalogs.file_stamps import Snapshot
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# The folder of a package under work, beside those of its released versions.
DEV = "dev"

OPTIONS: options.Options = {
    "engine": [
        cfg.ListOpt(
            "load_packages_from",
            default=[],
            help="Folders with packages, each a catalogue, in this order.",
        )
    ]
}

_CHUNK = 128 * 1024


class DirectoryCatalog(base.Catalog):
    """The packages below one folder, which may change at any time."""

    def __init__(self, folder: "str | os.PathLike[str]") -> None:
        """Make a catalogue; nothing is read yet."""
        self._root = pathlib.Path(folder).absolute()
        super().__init__(f"the folder {self._root}")
        self._lock = threading.Lock()
        self._listings: dict[pathlib.Path, _Listing] = {}
        self._places: dict[pathlib.Path, _Place] = {}
        self._told: dict[pathlib.Path, str] = {}
        self._index = _Index([])

    def releases(self, fqn: str) -> Iterable[wire.Release]:
        """See the interface."""
        return self._current().by_fqn.get(fqn, ())

    def releases_defining(self, class_name: str) -> Iterable[wire.Release]:
        """See the interface."""
        return self._current().by_class.get(class_name, ())

    def known(self, fqns: Iterable[str]) -> Iterable[wire.Release]:
        """See the interface: it looks for changes once."""
        index = self._current()
        return itertools.chain.from_iterable(index.by_fqn.get(fqn, ()) for fqn in fqns)

    def folder(self, release: wire.Release) -> pathlib.Path | None:
        """See the interface: None for a ZIP file."""
        return None if release.digest else pathlib.Path(release.id)

    def fetch(self, release: wire.Release) -> Iterator[bytes]:
        """See the interface: the content of a ZIP file."""
        try:
            with open(release.id, "rb") as stream:
                while chunk := stream.read(_CHUNK):
                    yield chunk
        except OSError as error:
            raise errors.CatalogError(f"cannot read {release.id}: {error}") from error

    def _current(self) -> "_Index":
        with self._lock:
            before = self._places
            # The folder itself may be a link, which leads elsewhere tomorrow.
            root = pathlib.Path(os.path.realpath(self._root))
            self._listings = {listing.folder: listing for listing in self._search(root)}
            found = itertools.chain.from_iterable(
                listing.packages for listing in self._listings.values()
            )
            self._places = {path: self._place(path, root) for path in found}
            if list(before.items()) != list(self._places.items()):
                self._index = _Index(self._places.values())
            self._tell()
            return self._index

    def _search(self, root: pathlib.Path) -> "Iterator[_Listing]":
        """The folder and those below it, down to packages."""
        folders = [root]
        while folders:
            folder = folders.pop()
            known = self._listings.get(folder)
            listing = known if known and known.snapshot.stands_for_sure else _list(folder, root)
            yield listing
            folders += reversed(listing.subfolders)

    def _place(self, path: pathlib.Path, root: pathlib.Path) -> "_Place":
        known = self._places.get(path)
        return known if known and known.snapshot.stands_for_sure else _read(path, root)

    def _tell(self) -> None:
        """Warn of what is wrong, once, and again when it is wrong in another way."""
        complaints = {
            **{path: listing.complaint for path, listing in self._listings.items()},
            **{path: place.complaint for path, place in self._places.items()},
            **self._index.complaints,
        }
        wrong = {path: complaint for path, complaint in complaints.items() if complaint}
        for path, complaint in wrong.items():
            if self._told.get(path) != complaint:
                LOG.warning("%s", complaint)
        self._told = wrong


@dataclasses.dataclass(frozen=True)
class _Listing:
    """What a folder holds for the catalogue.

    :param packages: ZIP files, or the folder itself, if it has a manifest.
    :param subfolders: in order, what is under work last.
    """

    folder: pathlib.Path
    snapshot: Snapshot
    packages: tuple[pathlib.Path, ...] = ()
    subfolders: tuple[pathlib.Path, ...] = ()
    complaint: str = ""


@dataclasses.dataclass(frozen=True)
class _Place:
    """A folder or a ZIP file that should be a package.

    :param release: None if it is none.
    """

    snapshot: Snapshot
    release: wire.Release | None
    complaint: str = ""


class _Index:
    """Releases by what they are asked for; the first of each version counts."""

    def __init__(self, places: Iterable[_Place]) -> None:
        self.by_fqn: dict[str, list[wire.Release]] = {}
        self.by_class: dict[str, list[wire.Release]] = {}
        self.complaints: dict[pathlib.Path, str] = {}
        found = [place.release for place in places if place.release]
        counting: dict[tuple[str, Version], wire.Release] = {}
        for release in found:
            first = counting.setdefault((release.fqn, release.version), release)
            if first is not release:
                self.complaints[pathlib.Path(release.id)] = (
                    f"Left out {release} in {release.id}, since {first.id} is the same version"
                )
        for release in base.newest_first(counting.values()):
            self.by_fqn.setdefault(release.fqn, []).append(release)
            for name in release.classes:
                self.by_class.setdefault(name, []).append(release)


def _list(folder: pathlib.Path, root: pathlib.Path) -> _Listing:
    snapshot = Snapshot([folder])
    packages: list[pathlib.Path] = []
    subfolders: list[pathlib.Path] = []
    complaints: list[str] = []
    try:
        with os.scandir(folder) as scanned:
            # What is hidden may be a package that is being unpacked.
            entries = [entry for entry in scanned if not entry.name.startswith(".")]
        if any(entry.name == FILE_NAME for entry in entries):
            return _Listing(folder, snapshot, (folder,))
        for entry in sorted(entries, key=lambda e: (e.name == DEV, e.name)):
            path = pathlib.Path(entry.path)
            if entry.is_symlink():
                complaints += _leads_out(path, root)
            elif entry.is_dir(follow_symlinks=False):
                subfolders.append(path)
            elif entry.is_file(follow_symlinks=False) and _is_zip(path):
                packages.append(path)
    except OSError as error:
        complaints.append(f"Cannot look for packages in {folder}: {error}")
    return _Listing(folder, snapshot, tuple(packages), tuple(subfolders), "; ".join(complaints))


def _is_zip(path: pathlib.Path) -> bool:
    return path.suffix.lower() == ".zip"


def _leads_out(link: pathlib.Path, root: pathlib.Path) -> Iterator[str]:
    """A complaint, if a package may have been meant that is not found otherwise."""
    target = os.path.realpath(link)
    if not pathlib.Path(target).is_relative_to(root) and (os.path.isdir(link) or _is_zip(link)):
        yield f"Left out {link}, a link that leads out of {root}"


def _read(path: pathlib.Path, root: pathlib.Path) -> _Place:
    is_folder = os.path.isdir(path)
    telling, all_paths = _paths(path) if is_folder else ([path], [path])
    snapshot, whole = Snapshot(telling), Snapshot(all_paths)
    try:
        release = _read_folder(path) if is_folder else _read_zip(path)
    except (InvalidPackage, OSError) as error:
        return _Place(whole, None, f"Left out the package in {path}: {error}")
    if not whole.stands:
        return _Place(whole, None, f"Left out the package in {path}: it changed while it was read")
    return _Place(snapshot, release, _disagreement(path, root, release) if is_folder else "")


def _paths(package: pathlib.Path) -> tuple[list[str], list[str]]:
    """What tells a change of what is known of a package, and a change of anything in it."""
    telling = [f"{package}/{FILE_NAME}"]
    all_paths = []
    for folder, subfolders, names in os.walk(package):
        files = [f"{folder}/{name}" for name in names]
        all_paths += [folder, *(f"{folder}/{name}" for name in subfolders), *files]
        inside = pathlib.Path(folder).relative_to(package).parts
        if not any(part.startswith(".") for part in inside):
            telling.append(folder)
        if inside[:1] == (CLASSES,):
            telling += files
    return telling, all_paths


def _read_folder(folder: pathlib.Path) -> wire.Release:
    with Archive.open(folder) as archive:
        manifest = read_contents(archive).manifest
    return wire.Release.from_manifest(manifest, str(folder))


def _read_zip(path: pathlib.Path) -> wire.Release:
    with open(path, "rb") as stream:
        return spool.read(stream, str(path))


def _disagreement(folder: pathlib.Path, root: pathlib.Path, release: wire.Release) -> str:
    """What to say of a folder of the version-aware layout that another package lies in."""
    try:
        version = None if folder.name == DEV else parse_version(folder.name)
    except InvalidVersion:
        return ""
    named = folder.parent.name
    is_other = folder.parent != root and folder != root and named != release.fqn
    if not is_other and version in (None, release.version):
        return ""
    return f"The folder {folder} holds {release}, whatever its name says: the manifest counts"


@functools.cache
def _catalog(folder: pathlib.Path) -> DirectoryCatalog:
    """One for all scopes of this process, so that it reads once for all of them."""
    return DirectoryCatalog(folder)


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[base.Catalog]:
    """The catalogues of the entry point ``directory``, one a folder."""
    options.register(conf, OPTIONS)
    return [_catalog(pathlib.Path(folder).absolute()) for folder in conf.engine.load_packages_from]
