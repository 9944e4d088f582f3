# SPDX-License-Identifier: Apache-2.0

"""The names of extension plug-ins, which no published package may have.

The code of a plug-in runs in the engine with all its rights. A package that has the name of a
plug-in, or defines one of its classes, could be taken for the plug-in by packages that require
it, and by whoever reviews them.
"""

from collections.abc import Iterable, Iterator

from glare_murano.package.errors import Problem
from glare_murano.package.rules import Rule
from glare_murano.resolver import newest_first
from glare_murano.service.settings import Settings

_OWNER = "whose code belongs to the operator of the engines"


def find_problems(settings: Settings, fqn: str, classes: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each name of a package that the options give to a plug-in.

    :param fqn: the name of the package.
    :param classes: the names of its classes.
    """
    if versions := settings.provided().get(fqn):
        known = ", ".join(map(str, newest_first(versions)))
        message = (
            f"{fqn} is the name of an extension plug-in ({known}, in the option "
            f"provided_packages), {_OWNER}; choose another name"
        )
        yield Problem(Rule.PLUGIN_NAME, "FullName", message)
    for name in sorted(settings.provided_classes().intersection(classes)):
        message = (
            f"class {name} is defined by an extension plug-in (in the option provided_classes), "
            f"{_OWNER}; rename the class"
        )
        yield Problem(Rule.PLUGIN_NAME, "Classes", message)
