# SPDX-License-Identifier: Apache-2.0

"""List the packages that a caller sees, and their categories.

These are the resources ``packages`` and ``categories``. Packages are listed page by page. This
module reads the fields of the packages in a page; ``listed_packages`` finds these packages.
"""

import collections
import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import webob

from glare_murano import fields, wire
from glare_murano.budget import Budget
from glare_murano.package.errors import quoted
from glare_murano.package_order import BY_NAME, Order
from glare_murano.selection import (
    PARAMETERS,
    InvalidParameter,
    Selection,
    read_one,
    read_selection,
)
from glare_murano.service import listed_packages, request_reading
from glare_murano.service.database import Database
from glare_murano.service.listed_packages import Listed, Search, find_visible, iso_time
from glare_murano.service.refusals import bad_request
from glare_murano.service.settings import Settings

_TIMES = ("created_at", "updated_at")
# What the client can do instead if a list of packages or categories takes too long.
REMEDY = "add conditions or request a smaller page"
CATEGORIES_REMEDY = "request those of fewer statuses"
# What a request does, for the message if its time is over.
STEP, _CATEGORIES_STEP = "reading a page of packages", "listing categories"
# The fields of a package in a page.
FIELDS = frozenset(
    {*(field.name for field in fields.FIELDS), *fields.COMMON, fields.ARCHIVE, *_TIMES}
)

# The lists and mappings of a package, which are in each page.
_EMPTY: Mapping[str, Any] = {
    "tags": [],
    **{field.name: [] for field in fields.FIELDS if field.kind == "list"},
    **{field.name: {} for field in fields.FIELDS if field.kind == "dict"},
}
_CATEGORIES = "categories"
_DEFAULT_LIMIT = 100
# The number of packages that are read at once, and the largest number of characters in a page. A
# few packages of another project could have hundreds of MiB of fields.
_SHARE = 100
_MAX_SIZE = 16 * 1024**2

# A function that takes ids of packages, and returns their fields by id, without packages that the
# caller may not see.
Read = Callable[[Collection[str]], Mapping[str, Mapping[str, Any]]]


class ListRequest(NamedTuple):
    """The parameters of a request for a page.

    :ivar selection: the conditions for the packages.
    :ivar order: the order of the list.
    :ivar limit: the largest number of packages in the page.
    :ivar marker: the values by which the last package before the page was sorted; None for the
        first page.
    """

    selection: Selection
    order: Order
    limit: int
    marker: Mapping[str, Any] | None


def read_parameters(req: webob.Request) -> ListRequest:
    """Read the parameters of a request for packages.

    :raises RefusedRequest: if a parameter is unknown, or a value is not valid.
    """
    try:
        values = _read_values(req, (*PARAMETERS, "sort", "limit", "marker"))
        order = read_one(values, "sort", Order.of) or BY_NAME
        limit = read_one(values, "limit", _read_limit) or _DEFAULT_LIMIT
        marker = read_one(values, "marker", order.read_marker)
        return ListRequest(read_selection(values), order, limit, marker)
    except InvalidParameter as error:
        raise bad_request(str(error)) from error


def read_statuses(req: webob.Request) -> Selection:
    """Read the parameters of a request for categories: the statuses of the packages.

    :raises RefusedRequest: if a parameter is unknown, or a value is not valid.
    """
    try:
        return read_selection(_read_values(req, ("status",)))
    except InvalidParameter as error:
        raise bad_request(str(error)) from error


def _read_values(req: webob.Request, names: Collection[str]) -> Mapping[str, list[str]]:
    values: Mapping[str, list[str]] = req.GET.dict_of_lists()
    for name in values:
        if name not in names:
            raise InvalidParameter(
                f"{quoted(name)} is not a parameter; the parameters are {', '.join(names)}"
            )
    return values


def _read_limit(text: str) -> int:
    return request_reading.read_limit(text, wire.MAX_PACKAGES)


def list_packages(
    req: webob.Request, request: ListRequest, database: Database, settings: Settings, read: Read
) -> dict[str, Any]:
    """Return a page of packages, as a JSON object.

    :param request: the parameters of the request.
    :param read: a function that takes ids of packages, and returns the fields of the packages.
    :raises Unplannable: if the time of the request is over.
    """
    search = Search(request.selection, request.order, request.limit, request.marker)
    found = listed_packages.find(search, database, settings)
    page, is_last = _read_page(found, search.size, read, database.budget)
    body: dict[str, Any] = {"packages": [item for _, item in page]}
    if not is_last:
        query = [(name, value) for name, value in req.GET.items() if name != "marker"]
        marker = request.order.marker(listed_packages.values_of(page[-1][0]))
        body["next"] = request_reading.link(wire.PACKAGES_PATH, [*query, ("marker", marker)])
    return body


def _read_page(
    found: Iterator[Listed], size: int, read: Read, budget: Budget
) -> tuple[list[tuple[Listed, dict[str, Any]]], bool]:
    """Read the fields of the packages in a page.

    The page ends earlier if its packages have more than ``_MAX_SIZE`` characters together.

    :param found: the packages from the beginning of the page on.
    :param size: the largest number of packages in the page.
    :param read: as in ``list_packages``.
    :returns: the packages, each with its JSON object, and whether this is the last page.
    """
    page: list[tuple[Listed, dict[str, Any]]] = []
    room = _MAX_SIZE
    # One package more than the page has shows whether another page follows.
    while share := [*itertools.islice(found, min(_SHARE, size + 1 - len(page)))]:
        budget.check(STEP)
        shown = read([each.package.id for each in share])
        for each in budget.watch(share, STEP):
            if each.package.id not in shown:
                continue
            item = _to_json(each, shown[each.package.id])
            room -= len(json.dumps(item))
            if page and (len(page) == size or room < 0):
                return page, False
            page.append((each, item))
    return page, True


def _to_json(each: Listed, shown: Mapping[str, Any]) -> dict[str, Any]:
    package = each.package
    return {
        "id": package.id,
        "name": package.name,
        "version": str(package.version),
        "status": package.status,
        "visibility": package.visibility,
        "owner": package.owner or "",
        **_EMPTY,
        **shown,
        **{name: iso_time(shown[name]) for name in _TIMES},
    }


def list_categories(selection: Selection, database: Database) -> dict[str, Any]:
    """Return the categories of all visible packages with given statuses, as a JSON object.

    :param selection: the statuses of the packages.
    :raises Unplannable: if the time of the request is over.
    """
    wanted = Selection({**selection.values, _CATEGORIES: ()})
    found = list(find_visible(database, wanted))
    read = database.find_fields([each.id for each in found], [_CATEGORIES, "created_at"])
    names: dict[str, set[str]] = collections.defaultdict(set)
    times: dict[str, list[str]] = collections.defaultdict(list)
    for each in database.budget.watch(found, _CATEGORIES_STEP):
        shown = read.get(each.id, {})
        for category in filter(None, shown.get(_CATEGORIES, ())):
            names[category].add(each.name)
            times[category].append(iso_time(shown["created_at"]))
    listed = [
        {
            "name": category,
            "packages": len(names[category]),
            "created_at": min(times[category]),
            "updated_at": max(times[category]),
        }
        for category in sorted(names)
    ]
    return {_CATEGORIES: listed}
