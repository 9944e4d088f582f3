# SPDX-License-Identifier: Apache-2.0

"""Check that the names of a package and its classes do not belong to others.

The names are checked when a package is created, uploaded, activated or published. A project may not
use names under a prefix that the operator has reserved for other projects. Nor may it use the name
of an extension plug-in, or of a class in a plug-in. The code of a plug-in runs with all rights of
the engine, and people could mistake a package of the same name for the plug-in.

Nobody can override these checks: they treat an administrator's project like any other. The name of
the core library is special. If the operator has not reserved it, a caller may use it only if the
policy of the service permits the caller to publish for every project.
"""

from collections.abc import Callable, Collection, Iterator
from http import HTTPStatus

from glare_murano.package import Problem
from glare_murano.package.errors import listed
from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.package.rules import Rule
from glare_murano.resolver import newest_first
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.settings import Settings
from glare_murano.stored_contents import StoredContents

_OF_OPERATOR = "whose code belongs to the operator of the engines"


class RefusedNames(RefusedRequest):
    """A package is refused, since some of its names belong to others.

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
    """Check that a project may use the names of a package and its classes.

    :param fqn: the FQN of the package.
    :param class_names: the names of the classes that the package defines.
    :param project_id: the project that owns the package.
    :param may_publicize: a function that returns whether the caller may publish the package for
        every project.
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
    settings: Settings, contents: StoredContents, project_id: str | None
) -> Iterator[Problem]:
    """Yield a problem for each name in an archive that the project may not use.

    The special rule for the name of the core library depends on the caller, so this function does
    not apply the rule. ``check`` applies it.

    :param contents: the contents of the archive.
    :param project_id: the project that owns the package.
    """
    return _find(settings, contents.fqn, contents.class_names, project_id)


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
    """Yield a problem for each of the given names that belongs to an extension plug-in.

    The FQN of the package must not be the FQN of a plug-in. The package must not define a class
    that a plug-in defines.

    :param fqn: the FQN of the package.
    :param class_names: the names of the classes that the package defines.
    """
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
    """Return why a project may not use a name; empty if the project may use it.

    :param reserved: the reserved names.
    :param verb: what the project wants to do with the name, for the message.
    """
    reservation = reserved.find(name)
    if reservation is None or project_id in reservation.projects:
        return ""
    remedy = "choose a name outside of the prefix"
    if reservation.projects:
        remedy = f"{remedy}, or publish as one of its owners"
    return f"project {project_id} may not {verb} {name}, which is under {reservation}; {remedy}"
