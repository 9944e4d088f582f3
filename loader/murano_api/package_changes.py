# SPDX-License-Identifier: Apache-2.0

"""Upload and change packages in Glare or Glance for requests to Murano's API."""

import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule
from loader import errors
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage, Visibility
from loader.murano_api import package_json
from loader.murano_api.uploaded_package import UploadedPackage
from loader.publishing import publication
from loader.publishing.target import Target
from loader.transport.failures import Conflict

# A client of Murano disables a package by yanking it; this is the reason of such a yank.
DISABLED = "disabled by a client of Murano"
# The longest name of a package in Murano.
_MAX_NAME = 80
_FIELDS = {"name": "display_name", "description": "description"}


class UnsupportedChange(errors.LoaderError):
    """A change that Murano's API allows, but Glare and Glance do not."""


class MissingValue(errors.NotFound):
    """A request removes a tag or a category that the package does not have."""


class LongName(errors.LoaderError):
    """The name of a package is longer than Murano's API allows."""


class MissingRequirement(errors.LoaderError):
    """An uploaded package requires packages that are missing.

    The request is not answered with the status 409 (conflict). From this status, Murano's clients
    would conclude that the version exists already, and would skip it, or delete it first.
    """


def upload(
    repository: Repository,
    archive: IO[bytes],
    metadata: Mapping[str, Any],
    settings: Mapping[str, Any],
    project_id: str | None,
) -> StoredPackage:
    """Publish the package in an archive, with the values in a request.

    As in Murano, the manifest gives the name and the description, and the request may add tags.

    :param metadata: the values in the request: ``categories``, ``tags``, ``is_public``,
        ``enabled``.
    :param settings: how archives are read; see ``uploaded_package.configure``.
    :param project_id: the project of the request.
    :raises ServiceBusy: if too many archives are read at the same time.
    :raises InvalidPackage: if the package breaks rules; the message has all problems.
    :raises LongName: if the name in the manifest is too long; if there is none, the FQN is the
        name.
    :raises PublishError: if the version is published already.
    :raises MissingRequirement: if a required package is missing; it has to be uploaded first.
    :raises CatalogError: if the service refuses the package.
    """
    visibility: Visibility = "public" if metadata.get("is_public") else "private"
    # The archive is copied to a file of its own, to be read, checked and sent.
    with tempfile.TemporaryFile() as file:
        package = UploadedPackage.read(archive, file, settings, project_id)
        _check_name(package.values["display_name"])
        steps = publication.plan(Target(repository), [package], visibility)
        publication.check_unpublished(steps)
        stored = steps[0].stored
        # If an earlier upload was refused, its draft may have other categories and tags.
        is_again = stored is not None and not package_json.is_shown(stored)
        own: dict[str, Iterable[str]] = {"categories": (), "tags": package.values["tags"]}
        values = {
            name: _each_once(own[name], metadata.get(name, ()))
            for name in own
            if is_again or metadata.get(name)
        }
        draft = publication.upload_one(repository, steps[0], values, lambda _: None)
    try:
        publication.publish(repository, [draft], visibility)
    except Conflict as error:
        if f"[{Rule.REQUIREMENT_MISSING}]" in str(error):
            raise MissingRequirement(str(error)) from None
        raise
    published = repository.get(draft.id)
    return _set_enabled(repository, published, metadata.get("enabled", True))


@dataclasses.dataclass
class Changes:
    """The changes in one request, which are applied one after the other.

    :param edit: a function that takes the package, and returns the new values of its fields. The
        function is called again if another client changes the package meanwhile.
    :param values: the new values of the package's fields.
    :param enabled: whether new deployments may use the package; None for no change.
    :param is_published: whether the package becomes public.
    """

    edit: Callable[[StoredPackage], Mapping[str, Any]]
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    enabled: bool | None = None
    is_published: bool = False

    def apply(self, repository: Repository, package: StoredPackage) -> StoredPackage:
        """Make the changes, and return the changed package.

        :raises CatalogError: if the service refuses a change; earlier changes are kept.
        """
        if self.values:
            package = repository.edit(package, self.edit)
        # A public package cannot become private again, so it is published only after the service
        # has accepted the new values.
        if self.is_published:
            repository.publish([package], "public")
            package = repository.get(package.id)
        return package if self.enabled is None else _set_enabled(repository, package, self.enabled)


def read(package: StoredPackage, changes: Iterable[Mapping[str, Any]]) -> Changes:
    """Read the changes that a request makes to a package.

    :param changes: mappings with ``op``, ``path`` and ``value``, which Murano has validated.
    :raises UnsupportedChange: if a public package would become private.
    :raises MissingValue: if a tag or a category is removed that the package does not have.
    :raises LongName: if a new name is too long.
    """
    changes = list(changes)
    found = Changes(lambda again: read(again, changes).values)
    for change in changes:
        (name,), value = change["path"], change["value"]
        if name == "name":
            _check_name(value)
        if name in _FIELDS:
            found.values[_FIELDS[name]] = value
        elif name == "enabled":
            found.enabled = value
        elif name == "is_public":
            if package.visibility == "public" and not value:
                raise UnsupportedChange(
                    f"{package} is public, and stays so, since packages of other projects may "
                    f"require it; disable it instead"
                )
            found.is_published = value and package.visibility != "public"
        else:
            before = found.values.get(name, package.fields.get(name) or [])
            found.values[name] = _changed(change["op"], before, value, name)
    return found


def _check_name(name: str) -> None:
    if len(name) > _MAX_NAME:
        raise LongName(
            f"the name of a package has at most {_MAX_NAME} characters, and {quoted(name)} has "
            f"{len(name)}; shorten it"
        )


def _changed(operation: str, before: Sequence[str], value: Sequence[str], name: str) -> list[str]:
    if operation == "replace":
        return _each_once(value)
    if operation == "add":
        return _each_once(before, value)
    known, removed = set(before), set(value)
    for each in value:
        if each not in known:
            raise MissingValue(f"the {name} of the package do not contain {quoted(each)}")
    return [each for each in before if each not in removed]


def _each_once(*lists: Iterable[str]) -> list[str]:
    """Join lists, and drop repeated and empty strings; murano-dashboard sends "" for no tags."""
    return list(dict.fromkeys(filter(None, itertools.chain(*lists))))


def _set_enabled(repository: Repository, package: StoredPackage, enabled: bool) -> StoredPackage:
    """Enable or disable a package, and return the changed package.

    A package is disabled by yanking it. If a deactivated package is enabled, it is also activated.
    """
    if enabled == package_json.is_enabled(package):
        return package
    if enabled and package.status != package_json.ACTIVE:
        package = repository.change(package, status=package_json.ACTIVE)
    if enabled == bool(package.yanked):
        repository.yank(package, "" if enabled else DISABLED)
    return repository.get(package.id)
