# SPDX-License-Identifier: Apache-2.0

"""Checks of names when a package is created, uploaded, activated or published.

A project publishes neither packages nor classes under a prefix that the operator has reserved
for other projects. Nobody overrides these checks: an administrator's project counts like any
other. Without a reservation, the core library's name belongs to those whom the policy of the
service lets publish for every project.
"""

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus

from glare_murano.package import Contents, Problem
from glare_murano.package.errors import listed
from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.package.rules import Rule
from glare_murano.service import plugin_names
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.settings import Settings


def check(
    reserved: ReservedNames,
    fqn: str,
    class_names: Iterable[str],
    project_id: str | None,
    may_publicize: Callable[[], bool],
) -> None:
    """Check that a project may publish a package under its name, and with its classes.

    :param project_id: the owner of the package.
    :param may_publicize: returns whether the caller may publish the package for every project.
    :raises RefusedRequest: if a name belongs to other projects, or to the operator.
    """
    if objection := _objection(reserved, "publish", fqn, project_id):
        raise _forbidden(f"{objection} [{Rule.NAME_RESERVED}]")
    if fqn == CORE_LIBRARY and reserved.find(fqn) is None and not may_publicize():
        raise _forbidden(
            f"{CORE_LIBRARY} is Murano's core library, which only those may publish who may "
            f"publish it for every project; choose another name [{Rule.NAME_RESERVED}]"
        )
    if problems := list(_find_classes(reserved, class_names, project_id)):
        raise _forbidden(f"{fqn}: {listed(problems)}")


def find_problems(
    settings: Settings, contents: Contents, project_id: str | None
) -> Iterator[Problem]:
    """Find the names in an archive that a project may not publish, and those of plug-ins.

    The core library's name is checked by ``check``, for the caller.
    """
    reserved, fqn = settings.reserved_names(), contents.manifest.full_name
    class_names = [definition.name for definition in contents.classes]
    yield from plugin_names.find_problems(settings, fqn, class_names)
    if objection := _objection(reserved, "publish", fqn, project_id):
        yield Problem(Rule.NAME_RESERVED, "FullName", objection)
    yield from _find_classes(reserved, class_names, project_id)


def _find_classes(
    reserved: ReservedNames, class_names: Iterable[str], project_id: str | None
) -> Iterator[Problem]:
    for name in sorted(class_names):
        if objection := _objection(reserved, "define", name, project_id):
            yield Problem(Rule.NAME_RESERVED, "Classes", objection)


def _objection(reserved: ReservedNames, verb: str, name: str, project_id: str | None) -> str:
    """Return why a project may not use a name; empty if it may."""
    reservation = reserved.find(name)
    if reservation is None or project_id in reservation.projects:
        return ""
    remedy = "choose a name outside of the prefix"
    if reservation.projects:
        remedy = f"{remedy}, or publish as one of its owners"
    return f"project {project_id} may not {verb} {name}, which is under {reservation}; {remedy}"


def _forbidden(message: str) -> RefusedRequest:
    return RefusedRequest(HTTPStatus.FORBIDDEN, message)
