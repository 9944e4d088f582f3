# SPDX-License-Identifier: Apache-2.0

"""All uses and changes of Glance's internals, so that a new release is checked in one place.

Glance's only stable interface for plug-ins is the names of their arguments. This module writes
properties through Glance's database layer, below the policies, quotas and property protections.
So the protections can forbid everybody to write these properties, even administrators.
"""

import contextlib
import datetime
import functools
import itertools
import pathlib
import random
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import glance.db
import glance_store
import sqlalchemy as sa
import webob
import webob.exc
from glance import context, domain, gateway, housekeeping, notifier
from glance.api import common as api_common
from glance.api import policy as policies
from glance.api.v2 import policy as api_policy
from glance.common import crypt, exception, property_utils, store_utils
from glance.db.sqlalchemy import api as database_api
from glance.db.sqlalchemy import models
from glance.image_cache import ImageCache
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_policy import policy as oslo_policy
from oslo_utils import timeutils
from routes.middleware import is_form_post
from sqlalchemy.engine import Connection

from glare_murano.glance import image_policies
from glare_murano.service.refusals import RefusedRequest, forbidden, not_found

Result = TypeVar("Result")

# Seconds for which a transaction is tried again while other transactions are in its way.
_RETRY_SECONDS = 10

QUEUED = "queued"
# The status of an image whose data is being staged, or waits for its import.
UPLOADING = "uploading"
# The status of an image whose data is being imported.
IMPORTING = "importing"

# The property that holds the task of a running import.
_LOCK = "os_glance_import_task"
# The property by which a request claims an image, to stage or import its data; see ``claimed``. No
# API can write properties with the prefix ``os_glance``.
CLAIM = "os_glance_murano_claim"
# Properties that exist only during a staging or an import.
PROGRESS = (
    _LOCK,
    CLAIM,
    "os_glance_importing_to_stores",
    "os_glance_failed_import",
    "os_glance_stage_host",
)

# Attributes that follow from the data of an image.
DATA_ATTRIBUTES = ("size", "checksum", "os_hash_algo", "os_hash_value")
# Attributes from which the id of a package follows.
_FIXED = ("name", "owner")
# Attributes that a save writes only if its request has changed them.
_KEPT = (*_FIXED, "visibility", "status", "locations", "container_format", *DATA_ATTRIBUTES)
# The status of a deleted image, or location, and of one whose data the scrubber deletes later.
_DELETED, _PENDING_DELETE = "deleted", "pending_delete"

_add_image = glance.db.ImageRepo.add
_list_images = glance.db.ImageRepo.list
_remove_image = glance.db.ImageRepo.remove
_cache_image = ImageCache.get_caching_iter
_load_image = glance.db.ImageRepo._format_image_from_db
_values_of_image = glance.db.ImageRepo._format_image_to_db
_save_image = glance.db.ImageRepo.save
_load_protections = property_utils.PropertyRules._load_rules
_protections_lock = threading.Lock()

_images = models.Image.__table__
_properties = models.ImageProperty.__table__
_locations = models.ImageLocation.__table__
# The tables, besides that of images, that have rows of an image.
_parts = (_properties, _locations, models.ImageMember.__table__, models.ImageTag.__table__)


# Policies for an image -> the methods of Glance's policy class.
_POLICY_METHODS = {
    image_policies.DEACTIVATE: "deactivate_image",
    image_policies.REACTIVATE: "reactivate_image",
}
# Roles that callers may have although no rule names them.
_ROLES = {"admin", "manager", "member", "reader", "service"}

# Another request has claimed the image; see ``claimed``.
Claimed = exception.Duplicate
# The file of property protections is missing or malformed; Glance logs the reason.
InvalidProtections = exception.InvalidPropertyProtectionConfiguration


class ImportRefused(exception.UploadException):  # type: ignore[misc]
    """The refusal of an import; Glance shows its message to the owner as the task's message."""


def is_staged_elsewhere(properties: Mapping[str, str]) -> bool:
    """Return whether another process has the staged data; Glance passes imports to that process.

    :param properties: the properties of the image.
    """
    own = cfg.CONF.worker_self_reference_url or cfg.CONF.public_endpoint
    return bool(properties.get("os_glance_stage_host", own) != own)


def find_counted(properties: Iterable[str]) -> frozenset[str]:
    """Return the names of those properties that Glance's quota counts."""
    reserved = api_common.GLANCE_RESERVED_NS
    return frozenset(name for name in properties if not name.startswith(reserved))


def write_properties(image_id: str, values: Mapping[str, str], drop: Collection[str] = ()) -> None:
    """Write properties of an image during its import, without a check of permissions.

    :param drop: names of properties to delete.
    :raises glance.common.exception.Conflict: if the image has another status by now.
    """
    database, admin = glance.db.get_api(), context.get_admin_context()
    written = {"properties": dict(values)}
    retry(functools.partial(database.image_update, admin, image_id, written, False, IMPORTING))
    found = database.image_get(admin, image_id)["properties"]
    for name in {each["name"] for each in found if not each["deleted"]}.intersection(drop):
        retry(functools.partial(database.image_property_delete, admin, name, image_id))


@contextlib.contextmanager
def claimed(image_id: str) -> Iterator[None]:
    """Claim an image for a request to stage or import its data.

    :raises Claimed: if another request has claimed the image.
    :raises RefusedRequest: if another request has deleted the image.
    """
    claim = str(uuid.uuid4())
    database = glance.db.get_api()
    try:
        retry(functools.partial(database.image_set_property_atomic, image_id, CLAIM, claim))
    except db_exception.DBReferenceError as error:
        # A deleted draft leaves no row.
        raise not_found(f"No image found with ID {image_id}") from error
    try:
        yield
    finally:
        # After a long time without progress, another request may have removed the claim.
        with contextlib.suppress(exception.NotFound):
            retry(functools.partial(database.image_delete_property_atomic, image_id, CLAIM, claim))


def find_task_progress(properties: Mapping[str, str]) -> datetime.datetime | None:
    """Return when the task of a running import last made progress, in UTC.

    :param properties: the properties of the image.
    :returns: None if no task imports the image.
    """
    try:
        task = glance.db.get_api().task_get(context.get_admin_context(), properties[_LOCK])
    except (KeyError, exception.NotFound):
        return None
    updated_at: datetime.datetime = task["updated_at"]
    return updated_at


def routed_path(path: str) -> str:
    """Return the path of a request as Glance's router reads it: without a newline at the end."""
    return path.removesuffix("\n")


def routed_method(request: webob.Request) -> str:
    """Return the method of a request as Glance's router reads it.

    The value of ``_method`` in the URL wins. Without that name in the URL, its value in an HTML
    form wins. A body can be a form and JSON at once.
    """
    try:
        preferred = _sent_values(request).get("_method")
    except UnicodeDecodeError:
        preferred = None
    return str(preferred.upper() if preferred else request.method)


def _sent_values(request: webob.Request) -> Mapping[str, Any]:
    """Return the values among which Glance's router looks for ``_method``."""
    values: Mapping[str, Any] = {}
    # The router looks for the name as written, before any decoding.
    if "_method" in request.query_string:
        values = request.GET
    elif request.method == "POST" and is_form_post(request.environ):
        values = request.POST
        # The body can be read again.
        request.make_body_seekable()
    return values


def may_modify(request_context: Any, image_id: str) -> bool:
    """Return whether Glance lets a caller change an image."""
    images = gateway.Gateway(policy_enforcer=request_context.policy_enforcer)
    try:
        image = images.get_repo(request_context).get(image_id)
    except exception.NotFound:
        return False
    return bool(_policy(request_context, image).check(image_policies.MODIFY_IMAGE))


def staged_file(image_id: str) -> pathlib.Path:
    """Return the path of the staged data of an image on this host."""
    return pathlib.Path(housekeeping.staging_store_path()) / image_id


def remove_residue(image_id: str, stores: Collection[str | None]) -> None:
    """Delete the files of a killed import from file stores, which refuse to overwrite files.

    :param image_id: the id of an image without data, which this process imports.
    :param stores: the identifiers of the stores to import to.
    """
    for store in filter(None, stores):
        found = glance_store.get_store_from_store_identifier(store)
        if "file" in found.get_schemes():
            for directory in _directories(found):
                (directory / image_id).unlink(missing_ok=True)


def _directories(store: Any) -> Iterator[pathlib.Path]:
    """Yield the directories of a store of files."""
    if store.multiple_datadirs:
        for paths in store.priority_data_map.values():
            yield from map(pathlib.Path, paths)
    else:
        yield pathlib.Path(store.datadir)


def property_quota() -> int:
    """Return the largest number of properties of an image; a negative number means no limit."""
    return int(cfg.CONF.image_property_quota)


def python() -> str:
    """Return the path of Python for child processes; in uWSGI, ``sys.executable`` is uWSGI."""
    return cfg.CONF.wsgi.python_interpreter or sys.executable


class ImagesBusy(Exception):
    """Other requests are changing the same images; see ``retry``."""


def keep_properties_through_saves(names: Collection[str]) -> None:
    """Let Glance neither write nor delete the named properties when it saves an image.

    Glance reads all properties of an image, and writes all of them back. A change by another
    request in between would be lost.
    """
    glance.db.IMAGE_ATOMIC_PROPS.update(names)


def _refused(request_context: Any, message: str) -> exception.Forbidden:
    """Return an error for Glance, and keep the refusal in the context; see ``find_refusal``."""
    request_context.murano_refusal = forbidden(message)
    return exception.Forbidden(message)


def find_refusal(request_context: Any) -> RefusedRequest | None:
    """Return the refusal that this module has kept in the context of a request, if any.

    Glance answers a refusal below its API as a web page, so a filter answers it instead.
    """
    refusal: RefusedRequest | None = getattr(request_context, "murano_refusal", None)
    return refusal


class _ImageValues(dict[str, Any]):
    """Values of an image to save; a missing value reads as None, since Glance may read it."""

    def __missing__(self, name: str) -> None:
        return None


def _comparable(image: Any) -> dict[str, Any]:
    """Return the attributes in ``_KEPT``, with a copy of each list that Glance changes in place.

    The URLs of locations are not encrypted, since encrypting a URL twice gives two strings.
    """
    kept = {name: getattr(image, name) for name in _KEPT}
    return {**kept, "locations": [dict(location) for location in image.locations]}


def keep_attributes_through_saves(container_format: str) -> None:
    """Let Glance write some attributes of an image only if the request has changed them.

    Otherwise Glance writes back what it has read before, as with properties. A package could lose
    its visibility, or the status and the data that an import has given it. For the same reason, no
    saved image gets or loses the format: with data stored meanwhile, the image would become a
    package with unchecked data. A package keeps its name and owner, since its id follows from them.

    :param container_format: the format of packages; other images are saved as before.
    """

    def load(repository: Any, *row: Any) -> Any:
        image = _load_image(repository, *row)
        image.loaded_values = _comparable(image)
        return image

    def values_of(repository: Any, image: Any) -> dict[str, Any]:
        values: dict[str, Any] = _values_of_image(repository, image)
        # A new image was not loaded. Any other image may be wrapped in a proxy.
        loaded = getattr(getattr(image, "base", image), "loaded_values", {})
        formats = {image.container_format, loaded.get("container_format", image.container_format)}
        if container_format not in formats:
            return values
        if len(formats) > 1:
            raise _refused(
                repository.context,
                f"only a new image can have the container format {container_format}, and such an "
                f"image keeps it; create another image",
            )
        now = _comparable(image)
        kept = {name for name in loaded if loaded[name] == now[name]}
        if changed := [name for name in _FIXED if name in loaded.keys() - kept]:
            raise _refused(
                repository.context,
                f"the {' and the '.join(changed)} of a package cannot be changed, since the id of "
                f"its image follows from both; publish another package from its archive",
            )
        return _ImageValues({name: value for name, value in values.items() if name not in kept})

    def save(repository: Any, image: Any, *arguments: Any, **options: Any) -> None:
        _save_image(repository, image, *arguments, **options)
        # The same image may be saved again: then only later changes are written.
        getattr(image, "base", image).loaded_values = _comparable(image)

    glance.db.ImageRepo._format_image_from_db = load
    glance.db.ImageRepo._format_image_to_db = values_of
    glance.db.ImageRepo.save = save


def check_new_images(check: Callable[[Any, Mapping[str, Any], Mapping[str, str]], None]) -> None:
    """Check each new image before any request or task adds it to the database.

    :param check: takes Glance's context, the attributes of ``glance.domain.Image``, and the
        properties. It raises ``RefusedRequest``, which is answered with 403 and the message.
    """

    def add(repository: Any, image: Any) -> None:
        values = _values_of_image(repository, image)
        properties = values.pop("properties")
        attributes = {"image_id": values.pop("id"), **values, "updated_at": image.updated_at}
        try:
            check(repository.context, attributes, properties)
        except RefusedRequest as refusal:
            raise _refused(repository.context, str(refusal)) from refusal
        _add_image(repository, image)

    glance.db.ImageRepo.add = add


def hide_markers() -> None:
    """Let a list whose marker is a hidden image fail as if that image did not exist.

    Glance itself answers 403, which reveals to anybody that the image exists.
    """

    def list_after(repository: Any, marker: str | None = None, **options: Any) -> Any:
        try:
            return _list_images(repository, marker=marker, **options)
        except exception.Forbidden as error:
            raise exception.ImageNotFound(f"No image found with ID {marker}") from error

    glance.db.ImageRepo.list = list_after


def keep_drafts_from_cache(is_draft: Callable[[str], bool]) -> None:
    """Keep drafts out of Glance's cache, since a new draft may get the id of a deleted one.

    A process that deletes an image removes the data from its own cache only.

    :param is_draft: returns whether the image with an id is a draft of a package.
    """

    def cache(image_cache: Any, image_id: str, checksum: str | None, data: Any) -> Any:
        if is_draft(image_id):
            return data
        return _cache_image(image_cache, image_id, checksum, data)

    ImageCache.get_caching_iter = cache


def remove_drafts_for_good(container_format: str, published: str) -> None:
    """Let Glance remove a package in one transaction, and leave no row of a draft.

    Glance itself takes two transactions, and keeps the row of a deleted image. A process that is
    killed between them would leave an image that can be neither used nor deleted.

    :param container_format: the format of packages; other images are removed as before.
    :param published: the property that each published package has.
    """

    def remove(repository: Any, image: Any) -> None:
        if image.container_format != container_format:
            _remove_image(repository, image)
            return
        if not image.extra_properties.get(published):
            _delete_remaining_data(repository.context, image)
        retry(functools.partial(_remove_package, repository, image, published))

    glance.db.ImageRepo.remove = remove


def _remove_package(repository: Any, image: Any, published: str) -> None:
    # Glance's own transactions join this one.
    with database_api.session_for_write() as session:
        _remove_image(repository, image)
        session.flush()
        connection = session.connection()
        # Glance has locked the image, and has only marked its properties as deleted. The properties
        # are locked, too: otherwise MariaDB may not show what the last publication has written.
        columns = (_properties.c.name, _properties.c.value)
        rows = sa.select(*columns).where(_properties.c.image_id == image.image_id)
        if not any(n == published and v for n, v in connection.execute(rows.with_for_update())):
            for part in _parts:
                connection.execute(sa.delete(part).where(part.c.image_id == image.image_id))
            connection.execute(sa.delete(_images).where(_images.c.id == image.image_id))


def _delete_remaining_data(request_context: Any, image: Any) -> None:
    """Delete the data that Glance has left in the stores.

    Glance leaves the data to its scrubber, which needs the rows of the image. The owner of a
    deactivated image does not see the locations, so Glance would never delete the data.
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


def read_protections_in_turn() -> None:
    """Let the threads of a process read the file of property protections in turn.

    Glance reads the file for each request into an object that all threads share. Two threads that
    read at once see half of the file, and a request ends with 500 or 403.
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
        # The other databases give a snapshot by default.
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        yield session.connection(execution_options=options)


@contextlib.contextmanager
def writing() -> Iterator[Connection]:
    """Open a transaction to change Glance's database; an error rolls the changes back."""
    with database_api.session_for_write() as session:
        yield session.connection()


def notify(image_ids: Iterable[str]) -> None:
    """Send Glance's notification for changed images, as Glance does after its own changes."""
    # Making the notifier registers the option ``driver``.
    sender = _notifier()
    if not cfg.CONF.oslo_messaging_notifications.driver:
        return
    repository = glance.db.ImageRepo(context.get_admin_context(), glance.db.get_api())
    proxy = notifier.ImageRepoProxy(repository, repository.context, sender)
    for image_id in image_ids:
        # Another request may have deleted the image meanwhile.
        with contextlib.suppress(exception.NotFound):
            proxy.send_notification("image.update", repository.get(image_id))


def send(event_type: str, payload: Mapping[str, Any]) -> None:
    """Send a notification of this project, unless ``disabled_notifications`` has its type."""
    sender = _notifier()
    if cfg.CONF.oslo_messaging_notifications.driver:
        notifier._send_notification(sender.info, event_type, payload)


@functools.cache
def _notifier() -> Any:
    # Each notifier has connections of its own.
    return notifier.Notifier()


def retry(function: Callable[[], Result]) -> Result:
    """Call a function again, for some seconds, while other transactions are in its way.

    :raises ImagesBusy: if they are still in its way after that time.
    """
    end = time.monotonic() + _RETRY_SECONDS
    while True:
        try:
            return function()
        except (ImagesBusy, db_exception.DBError) as error:
            if not _is_busy(error):
                raise
            if time.monotonic() > end:
                raise ImagesBusy from error
            time.sleep(random.uniform(0.05, 0.5))  # noqa: S311 - no secret


def _is_busy(error: Exception) -> bool:
    # SQLite may refuse to write in a transaction that has read before.
    is_known = isinstance(error, ImagesBusy | db_exception.DBDeadlock)
    return is_known or "database is locked" in str(error)


def container_formats() -> list[str]:
    """Return the container formats that images may have."""
    return list(cfg.CONF.image_format.container_formats)


def import_plugins() -> list[str]:
    """Return the names of the enabled import plug-ins, in their order."""
    option = ("image_import_plugins", "glance.async_.flows.api_image_import", "image_import_opts")
    cfg.CONF.import_opt(*option)
    return list(cfg.CONF.image_import_opts.image_import_plugins)


def conversion_format() -> str:
    """Return the disk format to which the import plug-in ``image_conversion`` converts."""
    module = "glance.async_.flows.plugins.image_conversion"
    cfg.CONF.import_opt("output_format", module, "image_conversion")
    return str(cfg.CONF.image_conversion.output_format)


def protection_file() -> str:
    """Return the path of the file of property protections; empty if none is configured."""
    return cfg.CONF.property_protection_file or ""


def find_writers(names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Find callers whom the property protections allow to write properties.

    :returns: for each, the caller's roles, the action and the name of the property.
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
    """Find the policy rules that allow any caller to change a new image of the caller's project.

    :param rules: the names of the rules to try.
    :returns: the name of such a rule -> roles of a caller whom it allows the change.
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
    """Return contexts of callers: one caller for each single role, and one caller with all roles.

    :param roles: further roles, besides the usual ones and those in the policy.
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
    """Return whether the caller of a request may list images, by Glance's policies."""
    return bool(_policy(request_context, {}).check(image_policies.GET_IMAGES))


def may(
    request_context: Any,
    action: str,
    attributes: Mapping[str, Any],
    properties: Mapping[str, str],
) -> bool:
    """Return whether the caller may do something with an image, by Glance's policies.

    :param action: one of ``image_policies``.
    :param attributes: the attributes of ``glance.domain.Image``.
    """
    image = domain.Image(extra_properties=dict(properties), **attributes)
    policy = _policy(request_context, image)
    if action in (image_policies.DELETE_MEMBER, image_policies.MODIFY_MEMBER):
        enforcer = request_context.policy_enforcer
        members = api_policy.MemberAPIPolicy(request_context, image, enforcer=enforcer)
        return bool(policy.check(image_policies.GET_IMAGE) and members.check(action))
    if action == image_policies.PUBLICIZE_IMAGE:
        return bool(policy.check("update_property", "visibility", "public"))
    if action == image_policies.YANK:
        return bool(_may_yank(request_context, policy))
    return bool(policy.check(_POLICY_METHODS.get(action, action)))


def _may_yank(request_context: Any, policy: Any) -> bool:
    enforcer = policy.enforcer
    # Each pipeline has an enforcer of its own, which threads share.
    with contextlib.suppress(oslo_policy.DuplicatePolicyError):
        enforcer.register_default(image_policies.YANK_RULE)
    return bool(enforcer.check(request_context, image_policies.YANK, policy._target))


def _policy(request_context: Any, target: Any) -> Any:
    enforcer = request_context.policy_enforcer
    return api_policy.ImageAPIPolicy(request_context, target, enforcer)


def load(request_context: Any, url: str, store: str | None) -> Iterator[bytes]:
    """Yield the data of an image.

    :param url: the URL of the image's location, from the database.
    :param store: the name of the image's store, if there are several stores.
    """
    if cfg.CONF.enabled_backends:
        data, _ = glance_store.get(_plain_url(url), store, context=request_context)
    else:
        data, _ = glance_store.get_from_backend(_plain_url(url), context=request_context)
    yield from data


def _plain_url(url: str) -> str:
    """Return the plain URL of a location; the database may have an encrypted URL."""
    key = cfg.CONF.metadata_encryption_key
    return str(crypt.urlsafe_decrypt(key, url)) if key else url
