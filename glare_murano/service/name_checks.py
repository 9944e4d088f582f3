# SPDX-License-Identifier: Apache-2.0

"""Checks of names when a package is created, uploaded, activated or published.

No project may publish packages or classes under a prefix that the operator has reserved for other
projects, or with the names of an extension plug-in. The code of a plug-in runs with all rights of
the engine. Packages that require the plug-in, and people who review them, could take a package
with the same name for the plug-in.

Nobody can override these checks: they treat an administrator's project like any other. If the
core library's name is not reserved, it belongs to those who may publish for every project by the
policy of the service.
"""

from collections.abc import Callable, Collection, Iterator
from http import HTTPStatus

from glare_murano.package import Contents, Problem
from glare_murano.package.errors import listed
from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.package.rules import Rule
from glare_murano.resolver import newest_first
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.settings import Settings

_OF_OPERATOR = "whose code belongs to the operator of the engines"


class RefusedNames(RefusedRequest):
    """The refusal of a package with names that belong to others.

    :ivar problems: a problem for each such name.
    """

    def __init__(self, fqn: str, problems: list[Problem]) -> None:
        super().__init__(HTTPStatus.FORBIDDEN, f"{fqn}: {listed(problems)}")
        self.problems = problems


def check(
    settings: Settings,
    fqn: str,
    class_names: Collection[str],
    project_id: str | None,
    may_publicize: Callable[[], bool],
) -> None:
    """Check that a project may publish a package under its name, and with its classes.

    :param project_id: the owner of the package.
    :param may_publicize: returns whether the caller may publish the package for every project.
    :raises RefusedNames: if a name belongs to other projects, to the operator or to a plug-in.
    """
    problems = list(_find(settings, fqn, class_names, project_id))
    is_reserved = settings.reserved_names().find(fqn) is not None
    if fqn == CORE_LIBRARY and not is_reserved and not may_publicize():
        message = (
            f"{CORE_LIBRARY} is Murano's core library, which only those may publish who may "
            f"publish it for every project; choose another name"
        )
        problems.append(Problem(Rule.NAME_RESERVED, "FullName", message))
    if problems:
        raise RefusedNames(fqn, problems)


def find_problems(
    settings: Settings, contents: Contents, project_id: str | None
) -> Iterator[Problem]:
    """Find the names in an archive that a project may not publish.

    Only ``check`` includes the core library's name, since who may use it depends on the caller.
    """
    class_names = [definition.name for definition in contents.classes]
    return _find(settings, contents.manifest.full_name, class_names, project_id)


def _find(
    settings: Settings, fqn: str, class_names: Collection[str], project_id: str | None
) -> Iterator[Problem]:
    yield from _of_plugins(settings, fqn, class_names)
    reserved = settings.reserved_names()
    if objection := _objection(reserved, "publish", fqn, project_id):
        yield Problem(Rule.NAME_RESERVED, "FullName", objection)
    for name in sorted(class_names):
        if objection := _objection(reserved, "define", name, project_id):
            yield Problem(Rule.NAME_RESERVED, "Classes", objection)


def _of_plugins(settings: Settings, fqn: str, class_names: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each name that the options give to a plug-in."""
    if versions := settings.provided().get(fqn):
        known = ", ".join(map(str, newest_first(versions)))
        message = (
            f"{fqn} is the name of an extension plug-in ({known}, in the option "
            f"provided_packages), {_OF_OPERATOR}; choose another name"
        )
        yield Problem(Rule.PLUGIN_NAME, "FullName", message)
    for name in sorted(settings.provided_classes().intersection(class_names)):
        message = (
            f"class {name} is defined by an extension plug-in (in the option provided_classes), "
            f"{_OF_OPERATOR}; rename the class"
        )
        yield Problem(Rule.PLUGIN_NAME, "Classes", message)


def _objection(reserved: ReservedNames, verb: str, name: str, project_id: str | None) -> str:
    """Return why a project may not use a name; empty if it may."""
    reservation = reserved.find(name)
    if reservation is None or project_id in reservation.projects:
        return ""
    remedy = "choose a name outside of the prefix"
    if reservation.projects:
        remedy = f"{remedy}, or publish as one of its owners"
    return f"project {project_id} may not {verb} {name}, which is under {reservation}; {remedy}"
