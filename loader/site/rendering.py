# SPDX-License-Identifier: Apache-2.0

"""Write a catalogue of pages into a directory.

A rendering writes a new directory beside the old directory, and exchanges both at the end. So the
old pages stay as they are if the rendering fails. Unchanged files are not written again, but are
hard links to the old files. The documents of a package are unchanged if none of its archives has
changed. The pages of a package are unchanged if nothing that they show has changed.
"""

import concurrent.futures
import contextlib
import ctypes
import dataclasses
import datetime
import errno
import fcntl
import fnmatch
import functools
import glob
import hashlib
import importlib.metadata
import importlib.resources
import itertools
import json
import multiprocessing
import os
import pathlib
import resource
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from glare_murano.package import Version
from loader import errors, fs
from loader.compatibility.interface import Interface
from loader.drawing import pictures
from loader.site import documents, pages, paths, plans, relations, schemas, search, sources
from loader.site.documents import Document
from loader.site.relations import Base, Relations, Summary
from loader.site.sources import Entry, Source, Unreadable

# The file that marks a directory as a catalogue; it has the state for the next rendering.
STATE = "catalogue.json"
# At most this number of packages is rendered without other processes.
_FEW = 10
# The largest address space of a worker process, in bytes.
_MAX_MEMORY = 4 * 1024**3
# The largest number of base classes of a class and of all classes of a release, and of inherited
# members of these classes, that the pages show.
_MAX_BASES = 64
_MAX_ALL_BASES = 5000
_MAX_INHERITED = 20_000
# One subclass more than a page lists.
_MAX_SUBCLASSES = 101
FIRST_PAGE = paths.INDEX
# Of renameat2, which Python does not have: relative paths begin here, and both names stay.
_HERE = -100
_RENAME_EXCHANGE = 2
# Files of a package beside its pages.
_DATA = "data.json"
_WORDS = "words.json"
# The packages with the code on which the pages depend. If it changes, all pages are written again.
_CODE = (
    *("loader.site", "loader.drawing", "loader.compatibility", "glare_murano.package"),
    *("glare_murano.package.hot", "glare_murano.package.ui_form"),
)
# The style sheet, which gets the rules of pictures as well.
_STYLE = "style.css"
# What pages show of a service's fields, with the values for a package that is in no service.
_LISTED = {
    "categories": [],
    "created_at": "",
    "findings": [],
    "tags": [],
    "visibility": "",
    "yanked": "",
}


class ForeignFiles(errors.LoaderError):
    """The target directory has files that are not from a catalogue, so it is not replaced."""


class BusyTarget(errors.LoaderError):
    """Another process is rendering into the target directory."""


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of a rendering.

    :param packages: the number of packages in the catalogue.
    :param releases: the number of releases in the catalogue.
    :param read: the number of archives that were read.
    :param written: the number of packages whose pages were written again.
    :param unreadable: the packages and releases that cannot be read, with the reasons.
    """

    packages: int
    releases: int
    read: int
    written: int
    unreadable: Sequence[tuple[str, Sequence[str]]]


def render(
    source: Source,
    target: pathlib.Path,
    names: Sequence[str] = (),
    progress: Callable[[str, int, int], None] = lambda *_: None,
    with_schemas: bool = False,
) -> Report:
    """Render a catalogue into a directory, which is made if it is missing.

    :param source: the source of the packages.
    :param target: the path of the directory.
    :param names: the names of the packages to show, in which ``*`` stands for any characters; by
        default, all packages are shown.
    :param progress: a function that reports progress. It takes the verb of the step (``read`` or
        ``write``), the number of finished packages, and the number of all packages.
    :param with_schemas: whether the pages of classes show JSON schemas. The contracts of the
        classes then run in child processes.
    :returns: the numbers of packages and releases, and what could not be read.
    :raises NoEngine: if ``with_schemas`` is true, and Murano's engine is not installed.
    :raises ForeignFiles: if the directory has files that are not from a catalogue.
    :raises BusyTarget: if another process is rendering into the directory.
    :raises NotFound: if one of the names does not match any package.
    :raises CatalogError: if the source cannot be read.
    :raises OSError: if a file cannot be written.
    """
    target = target.absolute()
    with contextlib.ExitStack() as stack:
        if with_schemas:
            schemas.check_installed()
            source = sources.Kept(source, stack)
        new = stack.enter_context(_beside(target))
        before = _State.of(target)
        rendering = _Rendering(source, before, target, new, progress, with_schemas)
        report = rendering.run(names)
        if target.exists():
            shutil.copymode(target, new)
        _exchange(new, target)
    return report


@dataclasses.dataclass(frozen=True)
class _State:
    """The data that a rendering stores for the next rendering.

    :param stamps: FQN -> version -> the stamp of the release; see ``sources.Entry``.
    :param summaries: FQN -> version -> the summary of the release; see ``relations``.
    :param prints: FQN -> a digest of everything that the pages of the package show.
    :param code: a digest of the code and the templates that make the pages.
    """

    stamps: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    summaries: Mapping[str, Mapping[str, Summary]] = dataclasses.field(default_factory=dict)
    prints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    code: str = ""

    @classmethod
    def of(cls, target: pathlib.Path) -> "_State":
        """Read the state that the last rendering has stored in a directory.

        :param target: the path of the directory.
        :returns: the state. It is empty if the directory is missing or empty, if the stored state
            is damaged, or if the code of the pages has changed.
        :raises ForeignFiles: if the directory has files that are not from a catalogue, or if the
            path is not a directory.
        """
        if not os.path.lexists(target):
            return cls()
        if not target.is_dir() or target.is_symlink():
            raise ForeignFiles(f"{target} is not a directory; name another one")
        names = {entry.name for entry in target.iterdir()}
        if not names:
            return cls()
        known = {STATE, paths.INDEX, paths.HELP, "packages", "search", "static"}
        if STATE not in names or names - known:
            foreign = min(names - known or names)
            raise ForeignFiles(
                f"{target} has the file {foreign}, which is not from a catalogue, so it is not "
                f"replaced; name an empty directory, or move the file"
            )
        try:
            state = cls(**json.loads((target / STATE).read_bytes()))
        except (ValueError, TypeError):
            return cls()
        return state if state.code == _code() else cls()


class _Rendering:
    """One rendering of a catalogue, which uses the old files of unchanged packages again."""

    def __init__(
        self,
        source: Source,
        before: _State,
        target: pathlib.Path,
        new: pathlib.Path,
        progress: Callable[[str, int, int], None],
        with_schemas: bool,
    ) -> None:
        self._source = source
        self._before = before
        self._old = target
        self._new = new
        self._progress = progress
        rendered = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        self._site = pages.Site(source.title, rendered)
        self._with_schemas = with_schemas
        self._read = 0

    def run(self, names: Sequence[str]) -> Report:
        """Write all files of the catalogue.

        :param names: as in ``render``.
        :raises NotFound: if one of the names does not match any package.
        """
        unreadable: list[tuple[str, Sequence[str]]] = []
        releases: dict[str, dict[str, Entry]] = {}
        for entry in self._source.entries():
            if isinstance(entry, Unreadable):
                unreadable.append((entry.place, entry.problems))
            elif not names or any(fnmatch.fnmatchcase(entry.fqn, name) for name in names):
                releases.setdefault(entry.fqn, {}).setdefault(entry.version, entry)
        for name in names:
            if not fnmatch.filter(releases, name):
                raise errors.NotFound(f"no package has the name {name}; check the name")
        with _workers(len(releases)) as workers:
            summaries = dict(self._documents(releases, workers))
            newest = {fqn: _newest(releases[fqn], summaries[fqn]) for fqn in releases}
            prints = dict(self._pages(releases, summaries, newest, workers))
        written = sum(self._before.prints.get(fqn) != each for fqn, each in prints.items())
        self._index(releases, unreadable)
        stamps = {fqn: _stamps(entries, summaries[fqn]) for fqn, entries in releases.items()}
        state = _State(stamps, summaries, prints, _code())
        content = json.dumps(dataclasses.asdict(state), separators=(",", ":"))
        (self._new / STATE).write_text(content)
        for fqn, found_versions in summaries.items():
            for version, summary in found_versions.items():
                if "problems" in summary:
                    unreadable.append((f"{fqn} {version}", summary["problems"]))
        return Report(
            packages=len(releases),
            releases=sum(map(len, releases.values())),
            read=self._read,
            written=written,
            unreadable=unreadable,
        )

    def _documents(
        self, releases: Mapping[str, Mapping[str, Entry]], workers: concurrent.futures.Executor
    ) -> Iterator[tuple[str, dict[str, Summary]]]:
        """Write the documents of all packages, and yield the summaries.

        The archives of a package are read only if one of its releases has changed. Otherwise, the
        old documents are used again.

        :param releases: FQN -> version -> release.
        :returns: pairs: the FQN of a package, and a mapping of its versions to summaries.
        """

        def read(fqn: str) -> concurrent.futures.Future[dict[str, Summary]]:
            entries = releases[fqn]
            stamps = {version: entry.stamp for version, entry in entries.items()}
            if self._before.stamps.get(fqn) == stamps:
                for file in self._files(fqn):
                    _link(self._old / file, self._new / file)
                return _done(dict(self._before.summaries[fqn]))
            self._read += len(entries)
            folder = self._new / _folder(fqn)
            folder.mkdir(parents=True)
            places, failed = {}, {}
            with contextlib.ExitStack() as stack:
                for version, entry in entries.items():
                    try:
                        places[version] = stack.enter_context(self._source.fetched(entry))
                    except errors.LoaderError as error:
                        # It may have been deleted after it was listed.
                        failed[version] = str(error)
                future = workers.submit(_read_package, folder, places, failed)
                fetched = stack.pop_all()
            future.add_done_callback(lambda _: fetched.close())
            return future

        yield from self._each("read", releases, read)

    def _files(self, fqn: str) -> Iterator[pathlib.Path]:
        """Yield the files of a package in the previous rendering that are not pages.

        These are its documents (``data.json``) and its logos. The paths are relative to the
        directory of the catalogue.
        """
        folder = self._old / _folder(fqn)
        for file in (folder / _DATA, *folder.glob("*/logo.*")):
            yield file.relative_to(self._old)

    def _pages(
        self,
        releases: Mapping[str, Mapping[str, Entry]],
        summaries: Mapping[str, Mapping[str, Summary]],
        newest: Mapping[str, str],
        workers: concurrent.futures.Executor,
    ) -> Iterator[tuple[str, str]]:
        """Write the pages of all packages, and yield the FQN and a digest for each package.

        The digest covers everything that the pages of the package show. If the digest has not
        changed, the old pages are used again.

        :param releases: FQN -> version -> release.
        :param summaries: FQN -> version -> summary.
        :param newest: FQN -> the version that a user gets if the user requests no version.
        """
        yanked = {
            fqn: {version: entry.listed.get("yanked", "") for version, entry in entries.items()}
            for fqn, entries in releases.items()
        }
        catalog = plans.Releases(summaries, yanked)
        found = Relations(summaries, newest)
        users = plans.users(catalog, newest)

        def write(fqn: str) -> concurrent.futures.Future[str]:
            shown = [
                _related(fqn, str(version), releases[fqn], summaries[fqn], found, users)
                | {"plan": plans.make(catalog, fqn, str(version))}
                for version in relations.newest_first(releases[fqn])
            ]
            stamps = sorted(_stamps(releases[fqn], summaries[fqn]).items())
            fitting = dict(self._fitting(fqn, shown, releases))
            used = [each.stamp for entries in fitting.values() for each in entries]
            bases = (each for one in shown for found in one["bases"].values() for each in found)
            used += [releases[owner][version].stamp for _, owner, version in dict.fromkeys(bases)]
            text = json.dumps([self._site.title, newest[fqn], stamps, shown, used], sort_keys=True)
            digest = hashlib.sha256(text.encode()).hexdigest()
            if self._before.prints.get(fqn) == digest:
                old = self._old / _folder(fqn)
                for file in (old / _WORDS, *old.rglob("*.html")):
                    _link(file, self._new / file.relative_to(self._old))
                return _done(digest)
            places = {}
            try:
                for version, entries in fitting.items():
                    places[version] = [*map(self._place, entries)]
            except errors.LoaderError:
                # The next rendering tries again to make the schemas of the other versions.
                digest = ""
            arguments = (self._new, self._site, fqn, shown, places, newest[fqn], digest)
            return workers.submit(_write_package, *arguments)

        yield from self._each("write", releases, write)

    def _fitting(
        self,
        fqn: str,
        shown: Iterable[Mapping[str, Any]],
        releases: Mapping[str, Mapping[str, Entry]],
    ) -> Iterator[tuple[str, list[Entry]]]:
        """Yield each version of a package, with the releases that its JSON schemas need.

        These are the release itself, and all other releases in its plan. Nothing is yielded if the
        pages show no schemas.

        :param shown: the content of the pages of each version, with the plan.
        """
        for each in shown if self._with_schemas else ():
            chosen = [releases[one["fqn"]][one["version"]] for one in each["plan"]["chosen"]]
            yield each["version"], [releases[fqn][each["version"]], *chosen]

    def _place(self, entry: Entry) -> pathlib.Path:
        """Return the path of a package, which stays valid until the rendering ends.

        Call this only with a source of the class ``sources.Kept``.
        """
        with self._source.fetched(entry) as path:
            return path

    def _each(
        self,
        step: str,
        releases: Mapping[str, Any],
        start: Callable[[str], "concurrent.futures.Future[Any]"],
    ) -> Iterator[tuple[str, Any]]:
        """Start a task for each package, a few tasks at a time, and yield FQNs and results.

        :param step: the verb of the step, for the report of the progress.
        :param releases: a mapping whose keys are the FQNs of the packages.
        :param start: a function that takes an FQN, starts the task, and returns its future.
        :returns: the FQN and the result of each task, in the order in which the tasks end.
        """
        waiting: dict[concurrent.futures.Future[Any], str] = {}
        fqns, done = iter(releases), 0
        while True:
            for fqn in itertools.islice(fqns, 4 * _count() - len(waiting)):
                waiting[start(fqn)] = fqn
            if not waiting:
                return
            finished, _ = concurrent.futures.wait(
                waiting, return_when=concurrent.futures.FIRST_COMPLETED
            )
            for future in finished:
                yield waiting.pop(future), future.result()
                done += 1
            self._progress(step, done, len(releases))

    def _index(
        self,
        releases: Mapping[str, Mapping[str, Entry]],
        unreadable: Sequence[tuple[str, Sequence[str]]],
    ) -> None:
        """Write the files that belong to no package.

        These are the first page, the help page, the index of the search, and the static files.
        """
        listed, indexes = [], []
        for fqn in sorted(releases):
            words = json.loads((self._new / _folder(fqn) / _WORDS).read_bytes())
            listed.append(words["listed"])
            indexes.append(words["index"])
        _write(self._new, [pages.render_index(self._site, listed, unreadable)])
        _write(self._new, [pages.render_help(self._site)])
        _write(self._new, search.scripts(indexes))
        static = importlib.resources.files("loader.site") / "static"
        for file in static.iterdir():
            style = pictures.STYLE if file.name == _STYLE else ""
            _write(self._new, [(f"static/{file.name}", file.read_text() + style)])


def _stamps(entries: Mapping[str, Entry], summaries: Mapping[str, Summary]) -> dict[str, str]:
    """Return the stamps of the releases of a package, which are digests: version -> stamp.

    A release that could not be read for the moment has an empty stamp, so that the next rendering
    reads it again.
    """
    return {
        version: "" if "is_temporary" in summaries[version] else entry.stamp
        for version, entry in entries.items()
    }


def _newest(entries: Mapping[str, Entry], summaries: Mapping[str, Summary]) -> str:
    """Return the version of a package that a user gets if the user requests no version.

    It is the newest version. But a pre-release or a yanked release is returned only if there is no
    other readable release, and an unreadable release only if there is no readable release.
    """

    def rank(version: Version) -> int:
        is_yanked = bool(entries[str(version)].listed.get("yanked"))
        is_unreadable = "problems" in summaries[str(version)]
        return 2 * is_unreadable + (is_yanked or bool(version.prerelease))

    # Of equal ranks, this is the first one.
    return str(min(relations.newest_first(entries), key=rank))


def _related(
    fqn: str,
    version: str,
    entries: Mapping[str, Entry],
    summaries: Mapping[str, Summary],
    found: Relations,
    users: Mapping[tuple[str, str], Sequence[str]],
) -> dict[str, Any]:
    """Return what the pages of a release show besides its document and its plan, as JSON.

    :param entries: version -> release, for all releases of the package.
    :param summaries: version -> summary, for all releases of the package.
    :param found: the relations between all packages.
    :param users: the users of each release, from ``plans.users``.
    """
    summary, entry = summaries[version], entries[version]
    dependents = [*found.dependents(fqn, version)]
    broken = [each.fqn for each in dependents if not each.others]
    affected = {user for each in broken for user in users.get((each, found.newest(each) or ""), ())}
    links = {}
    for name in summary.get("uses", ()):
        owner = found.owner(summary, fqn, name)
        if owner is not None:
            owner_fqn, owner_version = owner
            is_newest = owner_fqn != fqn and found.newest(owner_fqn) == owner_version
            place = paths.LATEST if is_newest else owner_version
            links[name] = paths.class_page(owner_fqn, place, name)
    bases, is_cut = _bases(fqn, summary, found)
    return {
        "version": version,
        "listed": {**_LISTED, **entry.listed},
        "download": entry.download,
        "links": links,
        "dependents": [[*each] for each in dependents],
        "users": users.get((fqn, version), []),
        "affected": sorted(affected.difference(broken)),
        "requirers": [*found.requirers(fqn)],
        "bases": bases,
        "is_cut": is_cut,
        "subclasses": {
            name: [
                [each.name, paths.class_page(each.fqn, paths.LATEST, each.name)]
                for each in found.subclasses(name)[:_MAX_SUBCLASSES]
            ]
            for name in summary["classes"]
        },
    }


def _bases(fqn: str, summary: Summary, found: Relations) -> tuple[dict[str, list[Base]], bool]:
    """Return the base classes of all classes of a release.

    :returns: class -> base classes, the nearest first; and whether some were left out.
    """
    bases: dict[str, list[Base]] = {}
    left = _MAX_ALL_BASES
    is_cut = False
    for name in summary["classes"]:
        most = min(_MAX_BASES, left)
        several = [*itertools.islice(found.bases(summary, fqn, name), most + 1)] if left else []
        bases[name] = several[:most]
        left -= len(bases[name])
        is_cut = is_cut or len(several) > most
    return bases, is_cut or not left


# The next two functions run in worker processes.


def _read_package(
    folder: pathlib.Path, places: Mapping[str, pathlib.Path], failed: Mapping[str, str]
) -> dict[str, Summary]:
    """Read all archives of a package, and write their documents into a directory.

    :param folder: the directory of the package in the new catalogue.
    :param places: version -> path of the archive or the directory.
    :param failed: version -> why its archive could not be downloaded.
    :returns: version -> summary.
    """
    found: dict[str, Document] = {
        version: {"problems": [problem], "is_temporary": True}
        for version, problem in failed.items()
    }
    older: Interface | None = None
    for version in reversed(relations.newest_first(places)):
        key = str(version)
        document, interface = documents.read(places[key], folder / paths.part(key) / "logo")
        if interface is not None:
            if older is not None:
                document["changes"] = documents.changes(older, interface)
            older = interface
        found[key] = document
    (folder / _DATA).write_text(json.dumps(found, separators=(",", ":")))
    return {version: relations.of_document(version, each) for version, each in found.items()}


def _write_package(
    new: pathlib.Path,
    site: pages.Site,
    fqn: str,
    shown: Sequence[Mapping[str, Any]],
    places: Mapping[str, Sequence[pathlib.Path]],
    newest_version: str,
    digest: str,
) -> str:
    """Write the pages of a package, and its words for the search.

    :param new: the new directory of the catalogue.
    :param shown: the content of the pages of each release, besides the documents.
    :param places: version -> the paths of the releases that the JSON schemas of this version need;
        empty if the pages show no schemas.
    :param digest: a digest of everything that the pages show.
    :returns: the same digest; empty if the next rendering has to write the pages again.
    """
    found = json.loads((new / _folder(fqn) / _DATA).read_bytes())
    wanted = {
        version: (each, [one["name"] for one in found[version].get("classes", ())])
        for version, each in places.items()
    }
    made, is_final = schemas.make(fqn, {key: each for key, each in wanted.items() if each[1]})
    if not is_final:
        digest = ""
    try:
        _write_pages(new, site, fqn, found, shown, made, newest_version)
    except Exception as error:
        # No package, however odd, may keep the others from having pages.
        problems = [str(error) or repr(error)]
        found = {version: {"problems": problems} for version in found}
        _write_pages(new, site, fqn, found, shown, {}, newest_version)
        digest = ""
    return digest


def _write_pages(
    new: pathlib.Path,
    site: pages.Site,
    fqn: str,
    found: Mapping[str, Document],
    shown: Sequence[Mapping[str, Any]],
    made: Mapping[str, Mapping[str, Mapping[str, str]]],
    newest_version: str,
) -> None:
    """Write the pages of a package, and its words for the search.

    :param found: version -> document.
    :param made: version -> class -> JSON schema, from ``schemas.make``.
    """
    folder = new / _folder(fqn)
    releases = [
        pages.Release(
            **{
                **{key: value for key, value in each.items() if key != "bases"},
                "fqn": fqn,
                "document": found[each["version"]],
                "dependents": [relations.Dependent(*one) for one in each["dependents"]],
                **_inherited(new, found[each["version"]], each),
                "schemas": made.get(each["version"], {}),
            }
        )
        for each in shown
    ]
    newest = next(each for each in releases if each.version == newest_version)
    _write(new, pages.render_package(site, releases, newest))
    logo = newest.document.get("logo")
    if logo:
        _link(folder / paths.part(newest.version) / logo, folder / paths.LATEST / logo)
    listed = {
        "fqn": fqn,
        "version": newest.version,
        "path": paths.package(fqn),
        "display_name": newest.document.get("display_name", fqn),
        "description": newest.document.get("description", ""),
        "logo": f"{_folder(fqn)}/{paths.LATEST}/{logo}" if logo else "",
        "yanked": bool(newest.listed.get("yanked")),
        "problems": "problems" in newest.document,
    }
    words = {"listed": listed, "index": search.index(fqn, newest.document, newest.listed)}
    (folder / _WORDS).write_text(json.dumps(words, separators=(",", ":")))


def _inherited(new: pathlib.Path, document: Document, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inherited members of the classes of a release, as for ``pages.Release``.

    A member is left out if the class itself, or a nearer base class, has a member of the same name.

    :param shown: the content of the pages of the release, besides the document.
    """
    inherited: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    own = {each["name"]: each for each in document.get("classes", ())}
    left, is_cut = _MAX_INHERITED, shown["is_cut"]
    for name, bases in shown["bases"].items():
        seen = {key for key, _ in relations.members(own[name])} if name in own else set()
        inherited[name] = []
        for base, fqn, version in bases:
            members = _members(new, fqn).get(version, {}).get(base, {})
            new_ones = [(key, each) for key, each in members.items() if key not in seen]
            seen.update(members)
            path = paths.class_page(fqn, version, base)
            inherited[name].append((base, path, dict(new_ones[:left])))
            is_cut = is_cut or len(new_ones) > left
            left -= min(left, len(new_ones))
    return {"inherited": inherited, "is_cut": is_cut}


@functools.lru_cache(maxsize=4)
def _members(new: pathlib.Path, fqn: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the members of all classes of a package: version -> class -> members.

    Many packages extend the classes of few ones, such as the core library.
    """
    found = json.loads((new / _folder(fqn) / _DATA).read_bytes())
    return {
        version: {each["name"]: dict(relations.members(each)) for each in one.get("classes", ())}
        for version, one in found.items()
    }


def _write(folder: pathlib.Path, files: Iterable[tuple[str, str]]) -> None:
    for path, text in files:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _link(old: pathlib.Path, new: pathlib.Path) -> None:
    """Make a hard link to a file, or a copy if the file system does not support hard links.

    If the file ``new`` exists, it is replaced: it may be a link to a file of an earlier rendering.
    If the file ``old`` is missing, nothing is done.
    """
    if not old.exists():
        return
    new.parent.mkdir(parents=True, exist_ok=True)
    new.unlink(missing_ok=True)
    fs.link_or_copy(old, new)


@contextlib.contextmanager
def _beside(target: pathlib.Path) -> Iterator[pathlib.Path]:
    """Make a new directory beside the target, and remove it when the ``with`` statement ends.

    This also removes the directories that killed renderings have left beside the target. After
    ``_exchange``, the removed directory contains the old pages.

    :raises BusyTarget: if another process is rendering into the target.
    """
    # The name may be as long as names can be.
    parent, prefix = target.parent, f".{target.name[:32]}."
    parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        with _locked(parent):
            for other in parent.glob(f"{glob.escape(prefix)}{'?' * 32}"):
                with _abandoned(other, target):
                    shutil.rmtree(other)
            new = parent / f"{prefix}{uuid.uuid4().hex}"
            new.mkdir()
            stack.callback(shutil.rmtree, new, ignore_errors=True)
            stack.enter_context(_locked(new))
        yield new


@contextlib.contextmanager
def _abandoned(folder: pathlib.Path, target: pathlib.Path) -> Iterator[None]:
    """Lock the directory that another rendering has left beside the target.

    :param folder: the directory.
    :param target: the target of the rendering, for the message.
    :raises BusyTarget: if the other rendering is still running.
    """
    try:
        with _locked(folder, fcntl.LOCK_NB):
            yield
    except BlockingIOError as error:
        raise BusyTarget(
            f"another process is rendering {target}; try again when it has ended"
        ) from error


@contextlib.contextmanager
def _locked(folder: pathlib.Path, flag: int = 0) -> Iterator[None]:
    """Lock a directory until the ``with`` statement ends, so that no other process can lock it.

    :param flag: by default, wait for the lock; with ``fcntl.LOCK_NB``, do not wait.
    :raises BlockingIOError: if another process has the lock, and ``flag`` forbids to wait.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | flag)
        yield
    finally:
        os.close(descriptor)


def _exchange(new: pathlib.Path, target: pathlib.Path) -> None:
    """Exchange the names of two directories, so that ``target`` contains the new pages.

    If ``target`` does not exist, the directory ``new`` is only renamed.
    """
    if not target.exists():
        new.rename(target)
        return
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    done = exchange(_HERE, os.fsencode(new), _HERE, os.fsencode(target), _RENAME_EXCHANGE)
    if done != 0:
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, os.strerror(number), str(target))
        # This file system cannot exchange two names at once.
        old = new.with_name(f"{new.name[:-32]}{uuid.uuid4().hex}")
        target.rename(old)
        new.rename(target)
        old.rename(new)


def _folder(fqn: str) -> str:
    return f"packages/{paths.part(fqn)}"


@functools.cache
def _code() -> str:
    """Return a digest of the code, the templates and the static files that make the pages."""
    digest = hashlib.sha256()
    root = importlib.resources.files("loader.site")
    code = map(importlib.resources.files, _CODE)
    # The engine makes the schemas, and need not be installed.
    engine = importlib.resources.files("loader") / "engine"
    for folder in (*code, root / "templates", root / "static", engine, engine / "patches"):
        for file in sorted(folder.iterdir(), key=lambda each: each.name):
            if file.is_file():
                digest.update(file.read_bytes())
    for name in ("murano", "yaql"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(importlib.metadata.version(name).encode())
    return digest.hexdigest()


def _done(result: Any) -> "concurrent.futures.Future[Any]":
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_result(result)
    return future


def _count() -> int:
    return len(os.sched_getaffinity(0))


def _workers(packages: int) -> concurrent.futures.Executor:
    """Return an executor for the work on packages.

    It uses other processes if there are more than ``_FEW`` packages, and otherwise this process:
    the start of two processes takes one and a half seconds, and ten packages take less time.
    """
    if packages <= _FEW:
        return _Here()
    # A fork would copy the connections of this process.
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(
        _count(), mp_context=context, initializer=_limit_memory
    )


def _limit_memory() -> None:
    """Limit the memory of a worker process, so that the kernel has no reason to kill it."""
    _, largest = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MAX_MEMORY if largest == resource.RLIM_INFINITY else min(_MAX_MEMORY, largest)
    resource.setrlimit(resource.RLIMIT_AS, (limit, largest))


class _Here(concurrent.futures.Executor):
    """An executor that runs functions in this process, one after the other."""

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> "concurrent.futures.Future[Any]":
        """Run a function, and return a finished future with the result of the function."""
        return _done(function(*args, **kwargs))
