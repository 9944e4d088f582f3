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
from glare_murano.package.reserved_names import Reservation, ReservedNames
from glare_murano.package.rules import Rule
from glare_murano.service.refusals import RefusedRequest


def check_name(
    reserved: ReservedNames, fqn: str, project_id: str | None, may_publicize: Callable[[], bool]
) -> None:
    """Check that a project may publish a package under its name.

    :param project_id: the owner of the package.
    :param may_publicize: returns whether the caller may publish the package for every project.
    :raises RefusedRequest: if the name belongs to other projects, or to the operator.
    """
    reservation = reserved.find(fqn)
    if reservation is not None:
        if project_id not in reservation.projects:
            raise _forbidden(
                f"project {project_id} may not publish {fqn}, which is under {reservation}; "
                f"{_remedy(reservation)} [{Rule.NAME_RESERVED}]"
            )
    elif fqn == CORE_LIBRARY and not may_publicize():
        raise _forbidden(
            f"{CORE_LIBRARY} is Murano's core library, which only those may publish who may "
            f"publish it for every project; choose another name [{Rule.NAME_RESERVED}]"
        )


def check_classes(
    reserved: ReservedNames, fqn: str, class_names: Iterable[str], project_id: str | None
) -> None:
    """Check that a project may publish a package with its classes.

    :raises RefusedRequest: if classes are under prefixes of other projects.
    """
    if problems := list(_find_classes(reserved, class_names, project_id)):
        raise _forbidden(f"{fqn}: {listed(problems)}")


def find_problems(
    reserved: ReservedNames, contents: Contents, project_id: str | None
) -> Iterator[Problem]:
    """Find the names in an archive that a project may not publish.

    The core library's name is checked by ``check_name``, for the caller.
    """
    fqn = contents.manifest.full_name
    reservation = reserved.find(fqn)
    if reservation is not None and project_id not in reservation.projects:
        message = f"project {project_id} may not publish {fqn}, which is under {reservation}"
        yield Problem(Rule.NAME_RESERVED, "FullName", f"{message}; {_remedy(reservation)}")
    class_names = (definition.name for definition in contents.classes)
    yield from _find_classes(reserved, class_names, project_id)


def _find_classes(
    reserved: ReservedNames, class_names: Iterable[str], project_id: str | None
) -> Iterator[Problem]:
    for name in sorted(class_names):
        reservation = reserved.find(name)
        if reservation is not None and project_id not in reservation.projects:
            message = f"project {project_id} may not define {name}, which is under {reservation}"
            yield Problem(Rule.NAME_RESERVED, "Classes", f"{message}; {_remedy(reservation)}")


def _remedy(reservation: Reservation) -> str:
    remedy = "choose a name outside of the prefix"
    return f"{remedy}, or publish as one of its owners" if reservation.projects else remedy


def _forbidden(message: str) -> RefusedRequest:
    return RefusedRequest(HTTPStatus.FORBIDDEN, message)
