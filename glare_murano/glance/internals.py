# SPDX-License-Identifier: Apache-2.0

"""Use and change Glance's internals.

The only stable part of Glance's interface for plug-ins is the names of the arguments that a plug-in
gets. So all uses of Glance's internals are in this module, which must be checked against each new
release of Glance. This module writes properties through Glance's database layer, where no policy,
quota or property protection applies. So an operator can use property protections to forbid
everybody, even administrators, to write these properties through the API.
"""

import contextlib
import datetime
import functools
import itertools
import pathlib
import re
import sys
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import glance.db
import glance.domain
import glance_store
import sqlalchemy as sa
import webob
import webob.exc
from glance import context, domain, gateway, housekeeping, notifier
from glance.api import common as api_common
from glance.api import policy as policies
from glance.api.v2 import policy as api_policy
from glance.async_.flows import api_image_import
from glance.common import crypt, exception, property_utils, store_utils
from glance.db.sqlalchemy import api as database_api
from glance.db.sqlalchemy import models
from glance.image_cache import ImageCache
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_policy import policy as oslo_policy
from oslo_utils import timeutils
from sqlalchemy.engine import Connection

from glare_murano import images
from glare_murano.glance import image_policies
from glare_murano.service import busy_transactions
from glare_murano.service.refusals import (
    RefusedRequest,
    conflict,
    forbidden,
    not_found,
)

Result = TypeVar("Result")


QUEUED = "queued"
# The status of an image whose data is being staged, or waits for its import.
UPLOADING = "uploading"
# The status of an image whose data is being imported.
IMPORTING = "importing"

# The property that contains the id of the task of a running import.
_LOCK = "os_glance_import_task"
# The property by which a request reserves an image, to stage or import its data; see
# ``reserved_image``. No API can write properties with the prefix ``os_glance``.
RESERVATION = "os_glance_murano_reservation"
# The property of a package that a request deletes; see ``image_removals`` and
# ``image_rows.Deletion``.
DELETION = "os_glance_murano_deletion"
# Properties that exist only during a staging or an import.
PROGRESS = (
    _LOCK,
    RESERVATION,
    "os_glance_importing_to_stores",
    "os_glance_failed_import",
    "os_glance_stage_host",
)

# Attributes that Glance computes from the data of an image.
DATA_ATTRIBUTES = ("size", "checksum", "os_hash_algo", "os_hash_value")
# Attributes from which the id of a package follows.
_FIXED = ("name", "owner")
# Attributes whose changes may publish, remove or hide a package.
_GUARDED = ("visibility", "status")
# Attributes that a save writes only if its request has changed them.
_KEPT = (*_FIXED, "visibility", "status", "locations", "container_format", *DATA_ATTRIBUTES)
# The status of a deleted image or location, and the status if the scrubber deletes the data later.
_DELETED, _PENDING_DELETE = "deleted", "pending_delete"

_add_image = glance.db.ImageRepo.add
_run_task = domain.Task.run
_remove_member = glance.db.ImageMemberRepo.remove
_save_member = glance.db.ImageMemberRepo.save
_list_images = glance.db.ImageRepo.list
_remove_image = glance.db.ImageRepo.remove
_delete_image = glance.domain.Image.delete
_cache_image = ImageCache.get_caching_iter
_load_image = glance.db.ImageRepo._format_image_from_db
_values_of_image = glance.db.ImageRepo._format_image_to_db
_save_image = glance.db.ImageRepo.save
_end_change = api_image_import.ImportActionWrapper.__exit__
_load_protections = property_utils.PropertyRules._load_rules
_protections_lock = threading.Lock()

_images = models.Image.__table__
_properties = models.ImageProperty.__table__
_locations = models.ImageLocation.__table__
# The tables, besides the table of images, that have rows of an image.
_parts = (_properties, _locations, models.ImageMember.__table__, models.ImageTag.__table__)


LOG = logging.getLogger(__name__)

# Policy for an image -> the method of Glance's policy class that checks it.
_POLICY_METHODS = {
    image_policies.DEACTIVATE: "deactivate_image",
    image_policies.REACTIVATE: "reactivate_image",
}
# Roles that callers may have although no rule names them.
_ROLES = {"admin", "manager", "member", "reader", "service"}

# While the thread saves a package, this has the names of the properties that the request has
# changed; see ``_KeptProperties``.
_saving = threading.local()
# The open session of the thread. Glance's functions join its transaction; see ``writing``.
_joined = threading.local()

# Another request has reserved the image; see ``reserved_image``.
ImageReserved = exception.Duplicate
# The file of property protections is missing or malformed; Glance logs the reason.
InvalidProtections = exception.InvalidPropertyProtectionConfiguration


class ImportRefused(exception.UploadException):  # type: ignore[misc]
    """An import is refused. Glance shows the message to the owner as the message of the task."""


def is_staged_elsewhere(properties: Mapping[str, str]) -> bool:
    """Return whether another process of Glance has an image's staged data.

    Glance passes on a request to import the image to that process.

    :param properties: the properties of the image.
    """
    own = cfg.CONF.worker_self_reference_url or cfg.CONF.public_endpoint
    return bool(properties.get("os_glance_stage_host", own) != own)


def find_counted(properties: Iterable[str]) -> frozenset[str]:
    """Return those of the given property names that Glance's quota counts.

    The quota does not count Glance's own properties.
    """
    reserved = api_common.GLANCE_RESERVED_NS
    return frozenset(name for name in properties if not name.startswith(reserved))


def write_properties(image_id: str, values: Mapping[str, str], drop: Collection[str] = ()) -> None:
    """Write properties of an image during its import, without a check of permissions.

    :param values: the properties to write: name -> value.
    :param drop: the names of properties to delete.
    :raises glance.common.exception.Conflict: if the status of the image is not ``importing``.
    """
    database, admin = glance.db.get_api(), context.get_admin_context()
    written = {"properties": dict(values)}
    retry(functools.partial(database.image_update, admin, image_id, written, False, IMPORTING))
    found = database.image_get(admin, image_id)["properties"]
    for name in {each["name"] for each in found if not each["deleted"]}.intersection(drop):
        retry(functools.partial(database.image_property_delete, admin, name, image_id))


@contextlib.contextmanager
def reserved_image(image_id: str) -> Iterator[str]:
    """Reserve an image for a request that stages or imports its data.

    Until the ``with`` statement ends, no other request can reserve the image, unless it finds no
    progress for a long time and removes the reservation; see ``image_staging``.

    :returns: the reservation, which is the value of the property ``RESERVATION``.
    :raises ImageReserved: if another request has reserved the image.
    :raises RefusedRequest: if another request has deleted the image.
    """
    reservation = str(uuid.uuid4())
    entry = image_id, RESERVATION, reservation
    database = glance.db.get_api()
    try:
        retry(functools.partial(database.image_set_property_atomic, *entry))
    except db_exception.DBReferenceError as error:
        # The image has no row, since it was a draft and was deleted.
        raise not_found(f"No image found with ID {image_id}") from error
    try:
        yield reservation
    finally:
        with contextlib.suppress(exception.NotFound):
            retry(functools.partial(database.image_delete_property_atomic, *entry))


def find_task_progress(properties: Mapping[str, str]) -> datetime.datetime | None:
    """Return the time at which the task of a running import last made progress.

    :param properties: the properties of the image.
    :returns: the time in UTC; None if no task imports the image.
    """
    try:
        task = glance.db.get_api().task_get(context.get_admin_context(), properties[_LOCK])
    except (KeyError, exception.NotFound):
        return None
    updated_at: datetime.datetime = task["updated_at"]
    return updated_at


def routed_path(path: str) -> str:
    """Return the path of a request as Glance's router reads it.

    The router ignores a line break at the end of the path.
    """
    return path.removesuffix("\n")


def routed_method(request: webob.Request) -> str:
    """Return the method of a request as Glance's router reads it.

    The router reads the method from the parameter ``_method`` in the URL. It would also look for it
    in an HTML form, but ``image_requests`` refuses forms.
    """
    preferred = None
    # The router looks for the name in the query as written, before it decodes the query.
    if "_method" in request.query_string:
        with contextlib.suppress(UnicodeDecodeError):
            preferred = request.GET.get("_method")
    return str(preferred.upper() if preferred else request.method)


def may_modify(request_context: Any, image_id: str) -> bool:
    """Return whether the caller sees an image, and may change it by Glance's policies."""
    gateways = gateway.Gateway(policy_enforcer=request_context.policy_enforcer)
    try:
        image = gateways.get_repo(request_context).get(image_id)
    except exception.NotFound:
        return False
    return bool(_policy(request_context, image).check(image_policies.MODIFY_IMAGE))


def staged_file(image_id: str) -> pathlib.Path:
    """Return the path of the staged data of an image on this host."""
    return pathlib.Path(housekeeping.staging_store_path()) / image_id


def remove_residue(image_id: str, stores: Collection[str | None]) -> None:
    """Delete the files that a killed import has left in file stores.

    A file store refuses to overwrite a file, so the next import of the image would fail.

    :param image_id: the id of an image that has no data, and that this process imports.
    :param stores: the identifiers of the stores that receive the data; None is ignored.
    """
    for store in filter(None, stores):
        found = glance_store.get_store_from_store_identifier(store)
        if "file" in found.get_schemes():
            for directory in _directories(found):
                (directory / image_id).unlink(missing_ok=True)


def _directories(store: Any) -> Iterator[pathlib.Path]:
    """Yield the directories of a file store."""
    if store.multiple_datadirs:
        for paths in store.priority_data_map.values():
            yield from map(pathlib.Path, paths)
    else:
        yield pathlib.Path(store.datadir)


def property_quota() -> int:
    """Return the largest number of properties of an image; a negative number means no limit."""
    return int(cfg.CONF.image_property_quota)


def python() -> str:
    """Return the path of the Python interpreter that runs child processes.

    ``sys.executable`` is not enough: in uWSGI, it is the path of uWSGI.
    """
    return cfg.CONF.wsgi.python_interpreter or sys.executable


BUSY = "other requests are changing these packages; try again"


class ImagesBusy(Exception):
    """Other requests are changing the same images; see ``retry``."""


def keep_properties_through_saves(names: Collection[str]) -> None:
    """Make Glance leave the named properties unchanged when it saves an image.

    Glance reads all properties of an image, and later writes all of them back. Without this change,
    a property that another request has changed in between would get its old value again.

    :param names: the names of the properties.
    """
    glance.db.IMAGE_ATOMIC_PROPS = _KeptProperties({*glance.db.IMAGE_ATOMIC_PROPS, *names})


class _KeptProperties(frozenset[str]):
    """The names of the properties that Glance leaves unchanged when it saves an image.

    While Glance saves a package, the set also contains every property that the request has not
    changed. So a save of one property does not undo another request's change of another property.
    """

    def __contains__(self, name: object) -> bool:
        changed = getattr(_saving, "changed", None)
        return super().__contains__(name) or (changed is not None and name not in changed)


def _refused(request_context: Any, refusal: RefusedRequest) -> exception.Forbidden:
    """Return an error for Glance, and store the refusal in the request's context.

    ``find_refusal`` returns the stored refusal.
    """
    request_context.murano_refusal = refusal
    return exception.Forbidden(str(refusal))


def find_refusal(request_context: Any) -> RefusedRequest | None:
    """Return the refusal that this module has stored in a request's context; None if there is none.

    Glance would answer an error of its database layer with HTML. So a filter answers with the
    refusal instead.
    """
    refusal: RefusedRequest | None = getattr(request_context, "murano_refusal", None)
    return refusal


def keep_headers(request_context: Any, is_override: bool, unchanged: str) -> None:
    """Store the values of headers in a request's context, for checks in Glance's database layer.

    :param is_override: whether the request overrides the checks of requirements.
    :param unchanged: the value of the header ``preconditions.HEADER``; empty without the header.
    """
    request_context.murano_override = is_override
    request_context.murano_unchanged = unchanged


def is_override(request_context: Any) -> bool:
    """Return whether a request overrides the checks of requirements."""
    return bool(getattr(request_context, "murano_override", False))


def unchanged(request_context: Any) -> str:
    """Return the value of a request's header ``preconditions.HEADER``; empty without the header."""
    return str(getattr(request_context, "murano_unchanged", ""))


class _ImageValues(dict[str, Any]):
    """The values of an image that Glance saves. Any other value that Glance reads is None."""

    def __missing__(self, name: str) -> None:
        return None


def _comparable(image: Any) -> dict[str, Any]:
    """Return the values of an image's attributes in ``_KEPT``, to compare them with later values.

    Locations are copied, since Glance changes them in place. The URLs in the locations are not
    encrypted: encrypting a URL twice gives two strings, so encrypted URLs cannot be compared.
    """
    kept = {name: getattr(image, name) for name in _KEPT}
    return {**kept, "locations": [dict(location) for location in image.locations]}


def _remember(image: Any) -> None:
    """Store copies of an image's attributes and properties in the object, to find later changes."""
    base = getattr(image, "base", image)
    base.loaded_values = _comparable(image)
    base.loaded_properties = _properties_of(image)


def _properties_of(image: Any) -> dict[str, str]:
    # Iterating over Glance's mapping yields no names.
    return {name: image.extra_properties[name] for name in image.extra_properties.keys()}  # noqa: SIM118


def _changed_properties(image: Any) -> set[str] | None:
    """Return the names of the properties that a request has changed; None for a new image."""
    loaded = getattr(getattr(image, "base", image), "loaded_properties", None)
    if loaded is None:
        return None
    now = _properties_of(image)
    return {name for name in {*loaded, *now} if loaded.get(name) != now.get(name)}


# These functions take the context of a request, the id of a package, its changes, and a function
# that writes the changes. They check the changes in a transaction, and then call that function, or
# refuse the changes.
_Write = Callable[[], None]
CheckedSave = Callable[[Any, str, Mapping[str, Any], _Write], None]
CheckedMember = Callable[[Any, str, str, str, _Write], None]


def keep_attributes_through_saves(container_format: str, check: CheckedSave) -> None:
    """Make Glance save an attribute of a package only if the request has changed the attribute.

    Glance itself writes back all values that it has read. So a package could lose changes that
    another request has made after the values were read, such as a new visibility, or the status and
    the data after an import.

    A save can neither add nor remove the container format of packages: otherwise, an image that has
    data could become a package with unchecked data. A save cannot change the name or the owner of a
    package, since the id of the package follows from them.

    A save that changes the status of a package is refused if another request has changed the status
    meanwhile. Glance checks this for some saves only. For example, it returns an image to
    ``queued`` after a failed staging, even if the image was published since.

    :param container_format: the container format of packages; Glance saves other images as before.
    :param check: a function that checks and writes a save. It is called if the save changes the
        visibility of a package, or activates or deactivates the package. It is also called if the
        request has the header ``preconditions.HEADER``. It takes the request's context, the id, the
        changed attributes, and the function that writes the save.
    """

    def load(repository: Any, *row: Any) -> Any:
        image = _load_image(repository, *row)
        _remember(image)
        return image

    def values_of(repository: Any, image: Any) -> dict[str, Any]:
        values: dict[str, Any] = _values_of_image(repository, image)
        loaded = _loaded_values(image)
        formats = {image.container_format, loaded.get("container_format", image.container_format)}
        if container_format not in formats:
            return values
        if len(formats) > 1:
            raise _refused(
                repository.context,
                forbidden(
                    f"only a new image can have the container format {container_format}, and such "
                    f"an image keeps it; create another image"
                ),
            )
        now = _comparable(image)
        kept = {name for name in loaded if loaded[name] == now[name]}
        if changed := [name for name in _FIXED if name in loaded.keys() - kept]:
            raise _refused(
                repository.context,
                forbidden(
                    f"the {' and the '.join(changed)} of a package cannot be changed, since the id "
                    f"of its image follows from both; publish another package from its archive"
                ),
            )
        return _ImageValues({name: value for name, value in values.items() if name not in kept})

    def save(repository: Any, image: Any, from_state: str | None = None) -> None:
        is_package = image.container_format == container_format
        if is_package:
            from_state = from_state or _former_status(image)
        write = functools.partial(_save_image, repository, image, from_state=from_state)
        changes = _checked_changes(image) if is_package else {}
        _saving.changed = _changed_properties(image) if is_package else None
        if changes or (is_package and unchanged(repository.context)):
            checking = functools.partial(check, repository.context, image.image_id, changes)
            _checked(repository.context, checking, write)
        else:
            write()
        # The same image may be saved again. Then only later changes are written.
        _remember(image)

    glance.db.ImageRepo._format_image_from_db = load
    glance.db.ImageRepo._format_image_to_db = values_of
    glance.db.ImageRepo.save = save


def _loaded_values(image: Any) -> dict[str, Any]:
    """Return the values of attributes that ``_remember`` has stored; empty for a new image."""
    # The image may be wrapped in a proxy.
    loaded: dict[str, Any] = getattr(getattr(image, "base", image), "loaded_values", {})
    return loaded


def _former_status(image: Any) -> str | None:
    """Return the status that Glance has read; None for a new image, or for an unchanged status."""
    former: str | None = _loaded_values(image).get("status")
    return former if former != image.status else None


def _checked_changes(image: Any) -> dict[str, Any]:
    """Return the changed attributes of a package that must be checked.

    These are the visibility, and the status of a package that is activated or deactivated.
    """
    loaded = _loaded_values(image)
    now = {name: getattr(image, name) for name in _GUARDED if name in loaded}
    changes = {name: value for name, value in now.items() if value != loaded[name]}
    statuses = {loaded.get("status"), image.status}
    if statuses != {images.ACTIVE, images.DEACTIVATED}:
        # An import or a deletion makes all other changes of the status.
        changes.pop("status", None)
    return changes


def _checked(request_context: Any, check: Callable[[_Write], None], write: _Write) -> None:
    """Call a function that checks and writes a change, and convert its refusal to Glance's error.

    :param check: a function that checks the change, and then calls ``write``.
    :param write: the function that writes the change.
    :raises glance.common.exception.Forbidden: if the change is refused.
    """
    try:
        check(write)
    except (ImagesBusy, exception.Conflict) as error:
        # Glance itself would answer with 500 if the status of the image was changed in between.
        raise _refused(request_context, conflict(BUSY)) from error
    except RefusedRequest as refusal:
        raise _refused(request_context, refusal) from refusal


def check_member_changes(container_format: str, check: CheckedMember) -> None:
    """Make Glance call a function that checks and writes each change of a package's members.

    :param container_format: the container format of packages; members of other images change as
        before.
    :param check: the function. It takes the request's context, the id of the package, the member,
        the member's new status (empty for a removed member), and the function that writes the
        change.
    """

    def change(repository: Any, member: Any, status: str, write: _Write) -> None:
        if repository.image.container_format != container_format:
            write()
            return
        image_id, member_id = repository.image.image_id, member.member_id
        checking = functools.partial(check, repository.context, image_id, member_id, status)
        _checked(repository.context, checking, write)

    def remove(repository: Any, member: Any) -> None:
        change(repository, member, "", functools.partial(_remove_member, repository, member))

    def save(repository: Any, member: Any, *arguments: Any, **options: Any) -> None:
        write = functools.partial(_save_member, repository, member, *arguments, **options)
        change(repository, member, member.status, write)

    glance.db.ImageMemberRepo.remove = remove
    glance.db.ImageMemberRepo.save = save


def check_new_images(check: Callable[[Any, Mapping[str, Any], Mapping[str, str]], None]) -> None:
    """Make Glance check each new image before any request or task adds it to the database.

    :param check: a function that takes Glance's context, the attributes of ``glance.domain.Image``,
        and the properties. It raises ``RefusedRequest`` to refuse the image. The response then has
        the status 403 and the message.
    """

    def add(repository: Any, image: Any) -> None:
        values = _values_of_image(repository, image)
        properties = values.pop("properties")
        attributes = {"image_id": values.pop("id"), **values, "updated_at": image.updated_at}
        try:
            check(repository.context, attributes, properties)
        except RefusedRequest as refusal:
            raise _refused(repository.context, refusal) from refusal
        _add_image(repository, image)

    glance.db.ImageRepo.add = add


def hide_markers() -> None:
    """Make Glance treat the marker of a list as missing if the caller may not see its image.

    The marker is the id of an image. If the caller may not see this image, Glance itself answers
    with 403. So the response would reveal that the image exists.
    """

    def list_after(repository: Any, marker: str | None = None, **options: Any) -> Any:
        try:
            return _list_images(repository, marker=marker, **options)
        except exception.Forbidden as error:
            raise exception.ImageNotFound(f"No image found with ID {marker}") from error

    glance.db.ImageRepo.list = list_after


def keep_drafts_from_cache(may_be_draft: Callable[[str], bool]) -> None:
    """Make Glance keep the data of drafts out of its cache.

    A new draft may get the id of a deleted draft. A process that deletes an image removes the data
    from its own cache only, so another process could serve the data of the deleted draft.

    :param may_be_draft: a function that returns whether an image, given by its id, is a draft, or
        was one and is deleted.
    """

    def cache(image_cache: Any, image_id: str, checksum: str | None, data: Any) -> Any:
        if may_be_draft(image_id):
            return data
        return _cache_image(image_cache, image_id, checksum, data)

    ImageCache.get_caching_iter = cache


def remove_drafts_for_good(
    container_format: str, was_published: Callable[[Iterable[tuple[str, str]]], bool]
) -> None:
    """Make Glance remove a package in one transaction, and also remove the rows of a draft.

    Glance itself needs two transactions. A process that is killed between them would leave an image
    that can be neither used nor deleted. Glance also keeps the row of every deleted image, so the
    version of a deleted draft could not be published.

    :param container_format: the container format of packages; other images are removed as before.
    :param was_published: a function that takes the names and values of a package's properties, and
        returns whether the package was ever published.
    """

    def remove(repository: Any, image: Any) -> None:
        if image.container_format != container_format:
            _remove_image(repository, image)
            return
        if not was_published(_properties_of(image).items()):
            _delete_remaining_data(repository.context, image)
        retry(functools.partial(_remove_package, repository, image, was_published))

    glance.db.ImageRepo.remove = remove


def keep_releases(is_release: Callable[[Mapping[str, Any]], bool]) -> None:
    """Make Glance refuse to delete a published package, so that only drafts are deleted.

    Before Glance deletes a package, ``image_removals`` makes the package a draft. But the package
    stays published if Glance is expected to refuse the request, for example since the image is
    protected. Another request may then remove the protection before Glance checks it. Glance checks
    the protection only in the method ``delete`` of images. So this function changes that method.
    The changed method refuses the deletion of a published package as well.

    :param is_release: a function that takes the properties of an image, and returns whether they
        are those of a published package.
    """

    def delete(image: Any) -> None:
        if not image.protected and is_release(image.extra_properties):
            raise exception.Forbidden(BUSY)
        _delete_image(image)

    glance.domain.Image.delete = delete


def _remove_package(
    repository: Any, image: Any, was_published: Callable[[Iterable[tuple[str, str]]], bool]
) -> None:
    with writing() as connection:
        properties = _lock_rows(connection, image.image_id)
        _remove_image(repository, image)
        _joined.session.flush()
        if not was_published(properties):
            for part in _parts:
                connection.execute(sa.delete(part).where(part.c.image_id == image.image_id))
            connection.execute(sa.delete(_images).where(_images.c.id == image.image_id))


def _lock_rows(connection: Connection, image_id: str) -> list[tuple[str, str]]:
    """Lock all rows of an image, and return its properties, including deleted ones.

    An import adds and deletes properties in other transactions. Glance fails to delete an image if
    a property that it has read is missing by then.

    :returns: the names and values of the properties.
    """
    is_image = _images.c.id == image_id
    if connection.dialect.name == "sqlite":
        connection.execute(sa.update(_images).where(is_image).values(status=_images.c.status))
    connection.execute(sa.select(_images.c.id).where(is_image).with_for_update()).all()
    for part in _parts:
        rows = sa.select(part.c.image_id).where(part.c.image_id == image_id)
        connection.execute(rows.with_for_update()).all()
    columns = (_properties.c.name, _properties.c.value)
    found = connection.execute(sa.select(*columns).where(_properties.c.image_id == image_id))
    return [(row.name, row.value) for row in found]


def _delete_remaining_data(request_context: Any, image: Any) -> None:
    """Delete the data of an image that Glance would leave in the stores.

    Call this for an image whose rows will be removed. Glance can leave the data to its scrubber,
    but the scrubber needs the rows. If the owner deletes a deactivated image, Glance never deletes
    the data, since it hides the image's locations from the owner.
    """
    found = glance.db.get_api().image_get(
        context.get_admin_context(), image.image_id, force_show_deleted=True
    )
    for location in found["locations"]:
        if location["status"] != _DELETED:
            plain = {**location, "url": _plain_url(location["url"])}
            store_utils.safe_delete_from_backend(request_context, image.image_id, plain)
    if image.status == _PENDING_DELETE:
        image.status = _DELETED


def delete_data_after_deletions(container_format: str) -> None:
    """Make an import delete the data that it has stored if the package was deleted meanwhile.

    Glance itself leaves the data in the store. No row of the database has its location, so no quota
    counts the data, and nothing deletes it. The same happens if the package was also created again,
    since its image has the same id.

    :param container_format: the container format of packages; other images are imported as before.
    """

    def end_change(wrapper: Any, *error: Any) -> None:
        try:
            _end_change(wrapper, *error)
        except Exception:
            image = wrapper._image
            if image.container_format == container_format and _is_without_data(image.image_id):
                _delete_new_data(image)
            raise

    api_image_import.ImportActionWrapper.__exit__ = end_change


def _is_without_data(image_id: str) -> bool:
    """Return whether an image is missing, or has neither data nor an import."""
    try:
        found = glance.db.get_api().image_get(context.get_admin_context(), image_id)
    except exception.NotFound:
        return True
    properties = {each["name"] for each in found["properties"] if not each["deleted"]}
    return not found["locations"] and _LOCK not in properties


def _delete_new_data(image: Any) -> None:
    """Delete the data of those locations of an image that are not in the database."""
    for location in image.locations:
        # Glance gives an id to a location that it reads from the database.
        if "id" not in location:
            admin = context.get_admin_context()
            store_utils.safe_delete_from_backend(admin, image.image_id, dict(location))


def read_protections_in_turn() -> None:
    """Make the threads of Glance's process read the file of property protections one by one.

    Glance reads the file for each request, into an object that all threads share. If two threads
    read it at the same time, one of them may find half of the rules. Then its request ends with 500
    or 403.
    """
    property_utils.PropertyRules._load_rules = _load_protections_alone


def _load_protections_alone(rules: property_utils.PropertyRules) -> None:
    with _protections_lock:
        _load_protections(rules)


@contextlib.contextmanager
def reading() -> Iterator[Connection]:
    """Open a transaction on a snapshot of Glance's database."""
    with database_api.session_for_read() as session:
        is_postgresql = session.get_bind().dialect.name == "postgresql"
        # Transactions of the other databases use a snapshot by default.
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        yield session.connection(execution_options=options)


@contextlib.contextmanager
def writing() -> Iterator[Connection]:
    """Open a transaction to change Glance's database. After an error, roll it back.

    Functions of Glance's database layer that this thread calls in the ``with`` statement join the
    transaction.
    """
    with database_api.session_for_write() as session:
        _joined.session = session
        try:
            yield session.connection()
        finally:
            _joined.session = None


def log_lost_tasks() -> None:
    """Make Glance log each error that ends a task.

    Glance runs tasks in threads, and does not report an error that occurs outside the flow of a
    task. For example, SQLite may be locked when Glance marks a task as begun.
    """

    def run(task: Any, executor: Any) -> None:
        try:
            _run_task(task, executor)
        except Exception:
            LOG.exception("Task %s (%s) has failed", task.task_id, task.type)
            raise

    domain.Task.run = run


def repeat_whole_transactions() -> None:
    """Prevent Glance's database functions from repeating their own part of a transaction.

    The functions join the transaction of ``writing``. After a deadlock, the database rolls back the
    whole transaction, and releases its locks. Then the function that has failed would repeat only
    its own statements. ``retry`` repeats the whole transaction instead.
    """
    for name in ("image_update", "image_destroy"):
        setattr(database_api, name, _repeated_alone(getattr(database_api, name)))


def _repeated_alone(function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        is_joined = getattr(_joined, "session", None) is not None
        return (function.__wrapped__ if is_joined else function)(*arguments, **options)

    return call


def notify(image_ids: Iterable[str]) -> None:
    """Send Glance's notification for changed images, as Glance does after its own changes.

    :param image_ids: the ids of the images.
    """
    # Making the notifier registers the option ``driver``.
    sender = _notifier()
    if not cfg.CONF.oslo_messaging_notifications.driver:
        return
    repository = glance.db.ImageRepo(context.get_admin_context(), glance.db.get_api())
    proxy = notifier.ImageRepoProxy(repository, repository.context, sender)
    for image_id in image_ids:
        # Another request may have deleted the image by now.
        with contextlib.suppress(exception.NotFound):
            proxy.send_notification("image.update", repository.get(image_id))


def send(event_type: str, payload: Mapping[str, Any]) -> None:
    """Send a notification of glare-murano, unless ``disabled_notifications`` lists its type.

    :param event_type: the type of the notification, such as ``package.yank``.
    :param payload: the content of the notification.
    """
    sender = _notifier()
    if cfg.CONF.oslo_messaging_notifications.driver:
        notifier._send_notification(sender.info, event_type, payload)


@functools.cache
def _notifier() -> Any:
    # One notifier is enough, and each has its own connections.
    return notifier.Notifier()


def retry(function: Callable[[], Result]) -> Result:
    """Call a function, and repeat the call while other transactions block it.

    The call is repeated for some seconds.

    :returns: the result of the function.
    :raises ImagesBusy: if other transactions still block the last call.
    """
    return busy_transactions.while_busy(ImagesBusy)(function)()


def configuration_file() -> pathlib.Path | None:
    """Return the path of ``glance-api.conf``; None if Glance reads no such file."""
    files = [pathlib.Path(name).absolute() for name in cfg.CONF.config_file or ()]
    return next((file for file in files if file.name == "glance-api.conf"), None)


def container_formats() -> list[str]:
    """Return the container formats that images may have."""
    return list(cfg.CONF.image_format.container_formats)


def import_plugins() -> list[str]:
    """Return the names of the enabled import plug-ins, in their order."""
    option = ("image_import_plugins", "glance.async_.flows.api_image_import", "image_import_opts")
    cfg.CONF.import_opt(*option)
    return list(cfg.CONF.image_import_opts.image_import_plugins)


def conversion_format() -> str:
    """Return the disk format to which Glance's plug-in ``image_conversion`` converts images."""
    module = "glance.async_.flows.plugins.image_conversion"
    cfg.CONF.import_opt("output_format", module, "image_conversion")
    return str(cfg.CONF.image_conversion.output_format)


def protection_file() -> str:
    """Return the path of the file of property protections; empty if none is configured."""
    return cfg.CONF.property_protection_file or ""


def find_writers(names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Find example callers that the property protections permit to write properties.

    :param names: the names of the properties.
    :returns: for each permission, the caller's roles, the action (``create``, ``update`` or
        ``delete``), and the name of the property.
    :raises InvalidProtections: if the protections cannot be read.
    """
    enforcer = policies.Enforcer(suppress_deprecation_warnings=True)
    protections = property_utils.PropertyRules(enforcer)
    listed = {
        role for _, rule in protections.rules for roles in rule.values() for role in roles
    } - {"@", "!"}
    actions = ("create", "update", "delete")
    for caller in _find_callers(enforcer, listed):
        for action, name in itertools.product(actions, names):
            if protections.check_property_rules(name, action, caller):
                yield ", ".join(caller.roles), action, name


def find_permitted(rules: Iterable[str], container_format: str) -> dict[str, str]:
    """Find policy rules that permit an action on a new image to at least one example caller.

    The image belongs to the project of the caller. ``_find_callers`` returns the example callers.

    :param rules: the names of the rules to evaluate.
    :param container_format: the container format of the image.
    :returns: the name of each such rule -> the roles of the first caller that the rule permits.
    """
    enforcer = policies.Enforcer(suppress_deprecation_warnings=True)
    now = timeutils.utcnow()
    permitted: dict[str, str] = {}
    for rule, caller in itertools.product(rules, _find_callers(enforcer, ())):
        values = {"owner": caller.project_id, "container_format": container_format}
        image = domain.Image(str(uuid.uuid4()), QUEUED, now, now, **values)
        if enforcer.check(caller, rule, policies.ImageTarget(image)):
            permitted.setdefault(rule, ", ".join(caller.roles))
    return permitted


def _find_callers(enforcer: Any, roles: Iterable[str]) -> list[Any]:
    """Return the contexts of example callers: one caller for each role, and one with all roles.

    :param roles: further roles, besides the usual roles and the roles that the policy names.
    """
    enforcer.load_rules()
    named = re.findall(r"\brole:([^\s()%]+)", " ".join(map(str, enforcer.rules.values())))
    every = sorted(_ROLES | {role.lower() for role in (*named, *roles)})
    return [
        context.RequestContext(
            project_id="project", roles=chosen, policy_enforcer=enforcer, overwrite=False
        )
        for chosen in (*([role] for role in every), every)
    ]


def may_list(request_context: Any) -> bool:
    """Return whether Glance's policies permit the caller of a request to list images."""
    return bool(_policy(request_context, {}).check(image_policies.GET_IMAGES))


def may(
    request_context: Any,
    action: str,
    attributes: Mapping[str, Any],
    properties: Mapping[str, str],
) -> bool:
    """Return whether Glance's policies permit the caller an action on an image.

    :param action: a constant of ``image_policies``.
    :param attributes: the values of the attributes of ``glance.domain.Image``.
    :param properties: the properties of the image.
    """
    image = domain.Image(extra_properties=dict(properties), **attributes)
    policy = _policy(request_context, image)
    if action == image_policies.PUBLICIZE_IMAGE:
        return bool(policy.check("update_property", "visibility", "public"))
    if action == image_policies.YANK:
        return bool(_may_yank(request_context, policy))
    return bool(policy.check(_POLICY_METHODS.get(action, action)))


def _may_yank(request_context: Any, policy: Any) -> bool:
    enforcer = policy.enforcer
    # Each pipeline has its own enforcer, which threads share, so the rule may already be
    # registered.
    with contextlib.suppress(oslo_policy.DuplicatePolicyError):
        enforcer.register_default(image_policies.YANK_RULE)
    return bool(enforcer.check(request_context, image_policies.YANK, policy._target))


def _policy(request_context: Any, target: Any) -> Any:
    enforcer = request_context.policy_enforcer
    return api_policy.ImageAPIPolicy(request_context, target, enforcer)


def load(request_context: Any, url: str, store: str | None) -> Iterator[bytes]:
    """Yield the data of an image in pieces.

    :param url: the URL of the image's location, from the database.
    :param store: the name of the image's store, if there are several stores.
    """
    if cfg.CONF.enabled_backends:
        data, _ = glance_store.get(_plain_url(url), store, context=request_context)
    else:
        data, _ = glance_store.get_from_backend(_plain_url(url), context=request_context)
    yield from data


def _plain_url(url: str) -> str:
    """Return the URL of a location without encryption. The URL in the database may be encrypted."""
    key = cfg.CONF.metadata_encryption_key
    return str(crypt.urlsafe_decrypt(key, url)) if key else url
