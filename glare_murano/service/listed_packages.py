# SPDX-License-Identifier: Apache-2.0

"""Find the packages that meet the conditions of a list, and sort them.

The database finds the packages that may meet the conditions. This module checks the conditions
again, and sorts the packages. So the result is the same with every database, and versions are in
the order of SemVer. This module reads only the fields by which it checks and sorts the packages.

Usually a list is sorted by name. For such a list, the database sorts the names. Then this module
reads the packages of a few names, and continues with further names until the page is full.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from glare_murano.budget import Budget
from glare_murano.inheritance import find_subclasses
from glare_murano.package import Version
from glare_murano.package_order import (
    DISPLAY_NAME,
    MAX_SORTED,
    RELEVANCE,
    SEARCHED,
    Order,
    relevance,
)
from glare_murano.resolver import PackageVersion
from glare_murano.selection import ANY, READ_FIELDS, Selection
from glare_murano.service.database import Database, PackageRecord
from glare_murano.service.list_statements import NameRange
from glare_murano.service.settings import Settings
from glare_murano.service.source import CatalogSource
from glare_murano.wire import Query

_NAME = "name"
_PUBLIC = "public"
# The keys of an order that are fields.
_SORTED_FIELDS = {DISPLAY_NAME, "created_at", "updated_at"}

# What the request does, for the message if its time is over.
_STEP = "listing packages"

Fields = Mapping[str, Any]


class Listed(NamedTuple):
    """A package of a list.

    :ivar fields: the fields by which the list is sorted.
    :ivar relevance: how well the package matches a search; see ``package_order.relevance``.
    """

    package: PackageRecord
    fields: Fields
    relevance: int


class Search(NamedTuple):
    """The search for the packages of one page.

    :ivar selection: the conditions for the packages.
    :ivar order: the order of the list.
    :ivar size: the largest number of packages in the page.
    :ivar marker: the values by which the last package of the previous page was sorted; None for the
        first page.
    """

    selection: Selection
    order: Order
    size: int
    marker: Fields | None


def find(search: Search, database: Database, settings: Settings) -> Iterator[Listed]:
    """Yield the packages that a search finds, in order, from the beginning of the page on.

    The packages after the end of the page are yielded as well. The packages are found while the
    caller iterates, so the caller can stop after any package.

    :raises Unplannable: if the time of the request is over.
    """
    key = search.order.keys[0]
    packages = _defining(search, database, settings)
    if key.name != _NAME:
        yield from _sorted(search, _matching(search, database, packages), database.budget)
        return
    selection = search.selection
    if packages is not None:
        named = {each.fqn for each in packages if _is_named(each.fqn, selection)}
        selection = dataclasses.replace(selection, values={**selection.values, _NAME: named})
    wanted = NameRange(key.is_descending, search.marker[_NAME] if search.marker else None)
    # The names may include that of the marker. And one package more than the page has is needed, to
    # see whether another page follows.
    count = search.size + 2
    while names := database.find_names(selection, wanted, count):
        listed = _matching(search, database, packages, names)
        yield from _sorted(search, listed, database.budget, names)
        # All further names come after the name of the marker.
        search = search._replace(marker=None)
        wanted = NameRange(key.is_descending, after=names[-1])
        # Few packages with these names matched, or none, so more names are read at once.
        count *= 2


def find_visible(
    database: Database, selection: Selection, names: Collection[str] | None = None
) -> Iterator[PackageRecord]:
    """Find the packages that are visible to the viewer, and whose attributes meet the conditions.

    Attributes are the values in a ``PackageRecord``, such as the name and the status. Conditions
    for other fields are not checked here.

    :param names: the names of the packages to search; None to search all packages.
    """
    viewer = database.viewer
    for each in database.budget.watch(database.find_listed(selection, names), _STEP):
        # The database may have found packages of another project, since some ignore case and
        # accents.
        is_visible = viewer.is_admin or each.is_available_to(viewer.project_id)
        if is_visible and _matches(each, selection):
            yield each


def _defining(
    search: Search, database: Database, settings: Settings
) -> Collection[PackageVersion] | None:
    """Return the packages that meet the condition ``subclass_of`` of a search.

    These are the packages that define direct or indirect subclasses of the given class.

    :returns: the packages; None if the search does not have this condition.
    """
    class_name = search.selection.subclass_of
    if class_name is None:
        return None
    source = CatalogSource(database, Query(), settings.reserved_names())
    bases = set(source.defining([class_name]).get(class_name, ()))
    found = find_subclasses(class_name, bases, source, database.budget)
    return {
        PackageVersion(fqn, version)
        for subclass in found
        for fqn, versions in subclass.packages.items()
        for version in versions
    }


def _matching(
    search: Search,
    database: Database,
    packages: Collection[PackageVersion] | None,
    names: Collection[str] | None = None,
) -> list[Listed]:
    """Return the packages that meet all conditions, with the fields by which they are sorted.

    :param packages: the packages that meet the condition ``subclass_of``; None if the search does
        not have this condition.
    :param names: the names of the packages to search; None to search all packages.
    """
    selection = search.selection
    if packages is not None and names is None:
        names = {each.fqn for each in packages}
    found = find_visible(database, selection, names)
    if packages is not None:
        found = (each for each in found if each.key in packages)
    choose = _best if selection.distinct else _with_fields
    listed = list(choose(found, selection, database))
    if sorted_by := _SORTED_FIELDS.intersection(key.name for key in search.order.keys):
        read = database.find_fields([each.package.id for each in listed], sorted_by)
        listed = [
            each._replace(fields=read[each.package.id])
            for each in listed
            if each.package.id in read
        ]
    return listed


def _matches(package: PackageRecord, selection: Selection) -> bool:
    """Return whether a package meets the conditions for its attributes.

    Attributes are the values in a ``PackageRecord``, such as the name and the status.
    """
    values, project, spec = selection.values, selection.project_id, selection.version
    return (
        package.status in selection.statuses
        and package.id in values.get("id", (package.id,))
        and package.owner in values.get("owner", (package.owner,))
        and package.visibility in values.get("visibility", (package.visibility,))
        and _is_named(package.name, selection)
        and (project is None or package.is_available_to(project))
        and (spec is None or spec.match(package.version))
    )


def _is_named(name: str, selection: Selection) -> bool:
    names = selection.values.get(_NAME)
    return names is None or name in names or any(_fits(name, p) for p in names if ANY in p)


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern, in which ``*`` stands for any characters.

    No regular expression is used, since an expression with several ``.*`` could take very long.
    """
    begin, *middle, end = pattern.split(ANY)
    place = len(begin)
    for part in middle:
        place = name.find(part, place) + len(part)
        if place < len(part):
            return False
    return name.startswith(begin) and name.endswith(end) and place <= len(name) - len(end)


def _best(
    found: Iterable[PackageRecord], selection: Selection, database: Database
) -> Iterator[Listed]:
    """Yield one package of each name, or of each name and version.

    The condition ``distinct`` of the selection decides between the two cases.

    Of the packages that meet the conditions, the package with the newest version is yielded. Among
    packages with the same version, a package of the selection's project is preferred, and then a
    public package. If the selection has no project, the project of the viewer is used. The
    preferred packages are checked first. Most of them meet the conditions, and then the fields of
    the other packages need not be read.
    """
    project = selection.project_id or database.viewer.project_id
    ranked: dict[object, list[tuple[object, PackageRecord]]] = collections.defaultdict(list)
    is_compared = bool(_compared_fields(selection))
    for each in found:
        of_key = ranked[each.name if selection.distinct == _NAME else each.key]
        rank = _rank(each, project)
        if is_compared or not of_key:
            of_key.append((rank, each))
        else:
            of_key[0] = max(of_key[0], (rank, each))
    count = 1
    pending = [sorted(of_key) for of_key in ranked.values()]
    while pending:
        tried = [[each for _, each in of_key[: -count - 1 : -1]] for of_key in pending]
        listed = {
            each.package.id: each
            for each in _with_fields(itertools.chain(*tried), selection, database)
        }
        matching = [[listed[each.id] for each in some if each.id in listed] for some in tried]
        yield from (some[0] for some in matching if some)
        others = zip(pending, matching, strict=True)
        pending = [rest for of_key, some in others if not some and (rest := of_key[:-count])]
        # The step grows, so that the number of statements does not grow with the number of
        # versions.
        count *= 4


def _rank(package: PackageRecord, project: str | None) -> tuple[object, bool, bool, str]:
    return (
        _precedence(package.version),
        package.owner == project,
        package.visibility == _PUBLIC,
        package.id,
    )


# Keys are cached, since most packages share a few versions.
@functools.lru_cache(maxsize=4096)
def _precedence(version: Version) -> object:
    return version.precedence_key, version.build


def _compared_fields(selection: Selection) -> Collection[str]:
    """Return the names of the fields that must be read to check the conditions."""
    conditions = selection.values.keys() & set(READ_FIELDS)
    return {*conditions, *(SEARCHED if selection.words else ())} - {_NAME}


def _with_fields(
    found: Iterable[PackageRecord], selection: Selection, database: Database
) -> Iterator[Listed]:
    """Yield the packages whose fields meet the conditions, with their relevance.

    The fields for sorting are not read here.
    """
    names = _compared_fields(selection)
    if not names:
        yield from (Listed(each, {}, 0) for each in found)
        return
    given = selection.values
    conditions = {name: set(given[name]) for name in READ_FIELDS if name in given}
    packages = {each.id: each for each in found}
    read = database.find_fields(packages, names)
    for id_, of_package in database.budget.watch(read.items(), _STEP):
        package = packages[id_]
        fields = {**of_package, _NAME: package.name}
        if all(_has(fields, name, values) for name, values in conditions.items()):
            place = relevance(fields, selection.words) if selection.words else 0
            if place is not None:
                yield Listed(package, {}, place)


def _has(fields: Fields, name: str, values: set[str]) -> bool:
    """Return whether a field of a package has one of the given values.

    If no values are given, return whether the field has any value. A package's requirement on
    itself does not count.

    :param fields: the fields of the package, and its name.
    :param name: the name of the field.
    :param values: the given values.
    """
    value = fields.get(name) or ()
    found = {value} if isinstance(value, str) else set(value)
    if name == "requirements":
        # Each package requires itself.
        found.discard(fields[_NAME])
    return bool(found & values if values else found)


def _sorted(
    search: Search, listed: list[Listed], budget: Budget, names: Sequence[str] = ()
) -> list[Listed]:
    """Sort packages, and return the packages that come after the marker of the search.

    Without a marker, all packages are returned.

    :param listed: the packages.
    :param names: the names of the packages in the order of the database; empty if the database has
        not sorted the names.
    """
    last = _of_marker(search.marker) if search.marker else None
    if last is not None:
        # A package with the values of the marker is added, since the package itself may have been
        # deleted, or replaced by a newer version.
        distinct = search.selection.distinct
        listed = [last, *(each for each in listed if not _is_same(each, last, distinct))]
    is_descending = search.order.keys[0].is_descending
    values = _sort_values(names, search.marker, is_descending=is_descending)
    listed.sort(key=lambda each: each.package.id)
    for key in reversed(search.order.complete):
        budget.check(_STEP, f"sorting by {key.name}")
        listed.sort(key=values[key.name], reverse=key.is_descending)
    return listed if last is None else listed[listed.index(last) + 1 :]


def _of_marker(marker: Fields) -> Listed:
    attributes = (marker.get(name, "") for name in ("owner", "visibility", "status"))
    key = PackageVersion(marker[_NAME], marker["version"])
    package = PackageRecord(marker["id"], key, *attributes)
    return Listed(package, marker, marker.get(RELEVANCE, 0))


def _is_same(each: Listed, last: Listed, distinct: str) -> bool:
    package, other = each.package, last.package
    if distinct == _NAME:
        return package.name == other.name
    return package.key == other.key if distinct else package.id == other.id


def _sort_values(
    names: Sequence[str], marker: Fields | None, *, is_descending: bool
) -> Mapping[str, Callable[[Listed], Any]]:
    """Return the functions by which packages are sorted.

    :param names: the names of the packages in the order of the database; empty if the database has
        not sorted the names.
    :param marker: the marker of the page; None for the first page.
    :param is_descending: whether the first key of the order is descending.
    :returns: key of an order -> function that takes a package, and returns its sort value.
    """
    step = -1 if is_descending else 1
    places = {name: step * place for place, name in enumerate(names)}
    # A database that ignores case returns only one of several names that differ only in case.
    folded = {name.lower(): place for name, place in places.items()}
    if names and marker and marker[_NAME] not in places:
        # The package of the marker was deleted, or the database returned its name in another case.
        is_first = [name.lower() for name in names[:1]] == [marker[_NAME].lower()]
        places[marker[_NAME]] = 0 if is_first else -step

    def name(each: Listed) -> tuple[int, str]:
        fqn = each.package.name
        return places[fqn] if fqn in places else folded.get(fqn.lower(), 0), fqn

    return {**_SORT_VALUES, _NAME: name}


_SORT_VALUES: Mapping[str, Callable[[Listed], Any]] = {
    "version": lambda each: _precedence(each.package.version),
    DISPLAY_NAME: lambda each: _display_name(each)[:MAX_SORTED].casefold(),
    "created_at": lambda each: iso_time(each.fields["created_at"]),
    "updated_at": lambda each: iso_time(each.fields["updated_at"]),
    "owner": lambda each: each.package.owner or "",
    "status": lambda each: each.package.status,
    "visibility": lambda each: each.package.visibility,
    RELEVANCE: lambda each: each.relevance,
}


def _display_name(each: Listed) -> str:
    return each.fields.get(DISPLAY_NAME) or each.package.name


def values_of(each: Listed) -> dict[str, Any]:
    """Return the values of a package that the marker of a page can contain.

    A marker contains the id, and those values by which the list is sorted; see ``package_order``.
    """
    package = each.package
    times = ((name, each.fields.get(name)) for name in ("created_at", "updated_at"))
    return {
        "id": package.id,
        _NAME: package.name,
        "version": str(package.version),
        "owner": package.owner or "",
        "status": package.status,
        "visibility": package.visibility,
        **{name: iso_time(value) for name, value in times if value},
        DISPLAY_NAME: _display_name(each),
        RELEVANCE: each.relevance,
    }


def iso_time(value: object) -> str:
    """Convert a time to a string for JSON, such as ``2026-01-31T12:00:00Z``.

    :param value: a time from the database, which is in UTC, or from a marker.
    """
    return f"{str(value)[:19].replace(' ', 'T')}Z"
