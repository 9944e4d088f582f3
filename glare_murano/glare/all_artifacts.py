# SPDX-License-Identifier: Apache-2.0

"""Limit the filters and the sorting of ``GET /artifacts/all``, which also lists packages.

The limits are those of lists of packages. Glare always serves the type ``all``.
"""

from typing import Any

from glare.objects import all as all_types

from glare_murano.glare import field_types, list_filters
from glare_murano.glare.interfaces import RequestContext


def install() -> None:
    """Check the filters and the sorting of all lists of the type ``all``.

    The filters by keys of ``metadata`` begin to work, and those by versions with too large numbers
    are refused; Glare itself answers both with 500. A second call changes nothing.
    """
    all_types.All.fields["metadata"] = field_types.declare_metadata()
    all_types.All.fields["version"] = field_types.declare_version_of_all()
    all_types.All._parse_filter_values = classmethod(_parse_filter_values)
    all_types.All.list = classmethod(_list)


def _parse_filter_values(cls: Any, filters: Any) -> Any:
    inherited: Any = super(all_types.All, cls)
    return list_filters.parse(filters, inherited._parse_filter_values)


def _list(
    cls: Any, context: RequestContext, filters: Any, marker: Any, limit: Any, sort: Any, *rest: bool
) -> Any:
    list_filters.check_sorting(sort, marker)
    return super(all_types.All, cls).list(context, filters, marker, limit, sort, *rest)
