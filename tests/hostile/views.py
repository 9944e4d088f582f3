# SPDX-License-Identifier: Apache-2.0

"""Archives that programs read differently, as data: what each is, and the rule that it breaks.

Each is the package of ``script_package``, and says two things about it: one in the directory,
another in front of the data or behind them, in an extra field, or in another end. Which files
and which contents a program finds depends on where it looks.
"""

from tests.hostile import end_views, entry_views
from tests.hostile.cases import Case
from tests.hostile.script_package import package


def _entries() -> tuple[Case, ...]:
    groups = {
        "name": (entry_views.second_names(), entry_views.names()),
        "header": (entry_views.headers(),),
        "sizes": (entry_views.sizes(),),
        "sizes behind": (entry_views.descriptors(),),
        "data": (entry_views.data(),),
        "type": (entry_views.types(),),
    }
    return tuple(
        Case(f"{group}: {name}", rule, lambda members=tuple(members): package(*members))
        for group, views in groups.items()
        for each in views
        for name, (rule, members) in each.items()
    )


def _ends() -> tuple[Case, ...]:
    groups = (end_views.unlisted(), end_views.ends(), end_views.zip64_ends())
    return tuple(
        Case(name, rule, build) for views in groups for name, (rule, build) in views.items()
    )


VIEWS = (*_entries(), *_ends())
