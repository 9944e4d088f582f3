# SPDX-License-Identifier: Apache-2.0

"""All uses and changes of Glance's internals, in one place for the tests of a new release.

Glance has no stable interface for plug-ins but the names of their arguments. Properties
are written by Glance's database layer, below its policies, quotas and property
protections: so the protections can forbid everybody, administrators included.
"""

import contextlib
import dataclasses
import datetime
import functools
import pathlib
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import glance.db
import glance_store
import sqlalchemy as sa
import webob
import webob.exc
from glance import context, domain, gateway, housekeeping, notifier
from glance.api import common as api_common
from glance.api.v2 import policy as api_policy
from glance.common import crypt, exception, property_utils
from glance.db.sqlalchemy import api as database_api
from glance.db.sqlalchemy import models
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_policy import policy as oslo_policy
from oslo_utils import timeutils
from sqlalchemy.engine import Connection

Result = TypeVar("Result")

# Seconds for which a transaction is tried again while others are in its way.
_RETRY_SECONDS = 10

# The policy of yanks, which is not one of Glance's. A member may yank a public package as well.
YANK_RULE = oslo_policy.DocumentedRuleDefault(
    "murano:yank",
    "rule:context_is_admin or (role:member and project_id:%(project_id)s)",
    "Yank a package, or end the yank.",
    [{"path": "/murano/v1/yanks", "method": "POST"}],
)

QUEUED = "queued"
# The status of an image whose data is being staged, or waits for its import.
UPLOADING = "uploading"
# The status of an image whose data is being imported.
IMPORTING = "importing"

# The property that holds the task of a running import.
_LOCK = "os_glance_import_task"
# The property with the claim of a request that stages or imports data. No API can write a property
# with this prefix.
CLAIM = "os_glance_murano_claim"
# Properties that exist only during a staging or an import.
_PROGRESS = (
    _LOCK,
    CLAIM,
    "os_glance_importing_to_stores",
    "os_glance_failed_import",
    "os_glance_stage_host",
)

# Attributes that follow from the data of an image.
_DATA_ATTRIBUTES = ("size", "checksum", "os_hash_algo", "os_hash_value")
# Attributes that other requests change during the save of an image.
_KEPT = ("visibility", "status", "locations", "container_format", *_DATA_ATTRIBUTES)

_load_image = glance.db.ImageRepo._format_image_from_db
_values_of_image = glance.db.ImageRepo._format_image_to_db
_save_image = glance.db.ImageRepo.save
_load_protections = property_utils.PropertyRules._load_rules
_protections_lock = threading.Lock()

_images = models.Image.__table__
_properties = models.ImageProperty.__table__
_locations = models.ImageLocation.__table__


# Another request has claimed the image; see ``claimed``.
Claimed = exception.Duplicate


class ImportRefused(exception.UploadException):  # type: ignore[misc]
    """Ends an import; Glance shows the message to the owner, as the message of the task."""


@dataclasses.dataclass(frozen=True)
class StoredImage:
    """An image in the database.

    :param properties: its properties, including Glance's own ones.
    :param locations: where its data is stored; empty before that.
    :param updated_at: the time of the last change, in UTC.
    """

    id: str
    name: str | None
    owner: str | None
    status: str
    container_format: str | None
    properties: Mapping[str, str]
    locations: Sequence[Any]
    updated_at: datetime.datetime

    @property
    def is_stored(self) -> bool:
        """Whether the image has its data, which then never changes."""
        return self.status not in (QUEUED, UPLOADING, IMPORTING)

    @property
    def is_begun(self) -> bool:
        """Whether a staging or an import has begun; its process may have been killed since."""
        return CLAIM in self.properties or self.status in (UPLOADING, IMPORTING)

    @property
    def is_staged_elsewhere(self) -> bool:
        """Whether another process has the staged data; Glance passes imports on to it."""
        own = cfg.CONF.worker_self_reference_url or cfg.CONF.public_endpoint
        return bool(self.properties.get("os_glance_stage_host", own) != own)

    @property
    def counted_properties(self) -> frozenset[str]:
        """The names of the properties that Glance's quota counts."""
        reserved = api_common.GLANCE_RESERVED_NS
        return frozenset(name for name in self.properties if not name.startswith(reserved))


def find_image(image_id: str) -> StoredImage | None:
    """Return an image of any owner; None if the image is missing or deleted."""
    try:
        return get_image(image_id)
    except exception.NotFound:
        return None


def get_image(image_id: str) -> StoredImage:
    """Return an image of any owner.

    :raises glance.common.exception.NotFound: if the image is missing or deleted.
    """
    found = glance.db.get_api().image_get(context.get_admin_context(), image_id)
    # Administrators see deleted images.
    if found["deleted"]:
        raise exception.ImageNotFound(image_id=image_id)
    properties = {row["name"]: row["value"] for row in found["properties"] if not row["deleted"]}
    names = (field.name for field in dataclasses.fields(StoredImage))
    values = {name: found[name] for name in names if name != "properties"}
    return StoredImage(properties=properties, **values)


def write_properties(image_id: str, values: Mapping[str, str], drop: Collection[str] = ()) -> None:
    """Write properties of an image during its import, without a check of permissions.

    :param drop: names of properties to delete.
    :raises glance.common.exception.Conflict: if the image has another status by now.
    """
    database, admin = glance.db.get_api(), context.get_admin_context()
    written = {"properties": dict(values)}
    retry(functools.partial(database.image_update, admin, image_id, written, False, IMPORTING))
    for name in set(drop) & set(get_image(image_id).properties):
        retry(functools.partial(database.image_property_delete, admin, name, image_id))


@contextlib.contextmanager
def claimed(image_id: str) -> Iterator[None]:
    """Claim an image for a request to stage or import its data.

    :raises Claimed: if another request has a claim.
    """
    claim = str(uuid.uuid4())
    database = glance.db.get_api()
    retry(functools.partial(database.image_set_property_atomic, image_id, CLAIM, claim))
    try:
        yield
    finally:
        # After a long time without progress, another request may have removed the claim.
        with contextlib.suppress(exception.NotFound):
            retry(functools.partial(database.image_delete_property_atomic, image_id, CLAIM, claim))


def find_last_progress(image: StoredImage) -> datetime.datetime:
    """Return when the staging or the import of an image last made progress, in UTC."""
    task_id = image.properties.get(_LOCK)
    if task_id is None:
        return image.updated_at
    try:
        found = glance.db.get_api().task_get(context.get_admin_context(), task_id)
    except exception.NotFound:
        return image.updated_at
    updated_at: datetime.datetime = found["updated_at"]
    return max(image.updated_at, updated_at)


def cancel_import(image: StoredImage, drop: Collection[str]) -> bool:
    """Return an image to its state before the staging or the import.

    A process still at work on the image loses Glance's lock, and cannot activate the image.

    :param image: the image as read before.
    :param drop: names of further properties to delete.
    :returns: False, without any change, if the image has changed meanwhile.
    """
    is_this = sa.and_(_images.c.id == image.id, _images.c.status == image.status)
    values = {"status": QUEUED, "updated_at": timeutils.utcnow(), **dict.fromkeys(_DATA_ATTRIBUTES)}
    is_progress = sa.and_(
        _properties.c.image_id == image.id, _properties.c.name.in_([*_PROGRESS, *drop])
    )
    with database_api.session_for_write() as session:
        connection = session.connection()
        is_unchanged = sa.and_(is_this, _images.c.updated_at == image.updated_at)
        if connection.execute(sa.update(_images).where(is_unchanged).values(values)).rowcount != 1:
            return False
        connection.execute(sa.delete(_properties).where(is_progress))
        # Of several stores, some may have the data already.
        connection.execute(sa.delete(_locations).where(_locations.c.image_id == image.id))
    return True


def routed_path(path: str) -> str:
    """Return the path of a request as Glance's router reads it, which ignores a last newline."""
    return path.removesuffix("\n")


def routed_method(request: webob.Request) -> str:
    """Return the method of a request as Glance's router reads it: ``_method`` in the URL first."""
    # The router looks for the name as written, before any decoding.
    if "_method" not in request.query_string:
        return str(request.method)
    try:
        preferred = request.GET.get("_method")
    except UnicodeDecodeError:
        preferred = None
    return str(preferred.upper() if preferred else request.method)


def may_modify(request_context: Any, image_id: str) -> bool:
    """Return whether Glance lets a caller change an image."""
    images = gateway.Gateway(policy_enforcer=request_context.policy_enforcer)
    try:
        image = images.get_repo(request_context).get(image_id)
    except exception.NotFound:
        return False
    return bool(_policy(request_context, image).check("modify_image"))


def staged_file(image_id: str) -> pathlib.Path:
    """Return the path of the staged data of an image on this host."""
    return pathlib.Path(housekeeping.staging_store_path()) / image_id


def remove_residue(image: StoredImage, stores: Collection[str | None]) -> None:
    """Delete the files of a killed import from file stores, which refuse to overwrite files.

    :param image: an image that this process imports; nothing is deleted if it has data.
    :param stores: the identifiers of the stores to import to.
    """
    if image.locations:
        return
    for store in filter(None, stores):
        found = glance_store.get_store_from_store_identifier(store)
        if "file" in found.get_schemes():
            for directory in _directories(found):
                (directory / image.id).unlink(missing_ok=True)


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
    """Let Glance neither write nor delete properties when it saves an image.

    Glance reads all properties of an image, and writes all of them back. A change by another
    request in between would be lost.
    """
    glance.db.IMAGE_ATOMIC_PROPS.update(names)


class _ImageValues(dict[str, Any]):
    """Values of an image to save; Glance looks up some that are left out."""

    def __missing__(self, name: str) -> None:
        return None


def _comparable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes in ``_KEPT``, with a copy of each list that Glance changes in place."""
    kept = {name: values[name] for name in _KEPT}
    return {**kept, "locations": [dict(location) for location in values["locations"]]}


def keep_attributes_through_saves(container_format: str) -> None:
    """Let Glance write some attributes of an image only if changed by the request.

    Otherwise Glance writes back the attributes read before, as with properties: a package would
    lose its visibility, or its status and its data after an import. For the same reason, no image
    gets the format or loses it: with data stored meanwhile, the image would be a package with data
    that nobody has checked.

    :param container_format: of the images; other images are saved as before.
    """

    def load(repository: Any, *row: Any) -> Any:
        image = _load_image(repository, *row)
        image.loaded_values = _comparable(_values_of_image(repository, image))
        return image

    def values_of(repository: Any, image: Any) -> dict[str, Any]:
        values: dict[str, Any] = _values_of_image(repository, image)
        # A new image was not loaded. Any other image may be in a proxy.
        loaded = getattr(getattr(image, "base", image), "loaded_values", {})
        formats = {image.container_format, loaded.get("container_format", image.container_format)}
        if container_format not in formats:
            return values
        if len(formats) > 1:
            raise exception.Forbidden(
                f"only a new image can have the container format {container_format}, and such an "
                f"image keeps it; create another image"
            )
        now = _comparable(values)
        kept = {name for name in loaded if loaded[name] == now[name]}
        return _ImageValues({name: value for name, value in values.items() if name not in kept})

    def save(repository: Any, image: Any, *arguments: Any, **options: Any) -> None:
        _save_image(repository, image, *arguments, **options)
        # The same image may be saved again: then only later changes are written.
        saved = _comparable(_values_of_image(repository, image))
        getattr(image, "base", image).loaded_values = saved

    glance.db.ImageRepo._format_image_from_db = load
    glance.db.ImageRepo._format_image_to_db = values_of
    glance.db.ImageRepo.save = save


def read_protections_in_turn() -> None:
    """Let the threads of a process read the file of property protections in turn.

    Glance reads the file for each request into an object shared by all threads. Two threads
    reading at once see half of the file: a request then ends with 500, or with 403.
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
        # The other databases do so by default.
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
    # Each one has connections of its own.
    return notifier.Notifier()


def retry(function: Callable[[], Result]) -> Result:
    """Call a function again, for some seconds, while other transactions are in its way.

    :raises ImagesBusy: after that time.
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


def may_list(request_context: Any) -> bool:
    """Return whether the caller of a request may list images, by Glance's policies."""
    return bool(_policy(request_context, {}).check("get_images"))


def may(
    request_context: Any,
    action: str,
    attributes: Mapping[str, Any],
    properties: Mapping[str, str],
) -> bool:
    """Return whether the caller may do something with an image, by Glance's policies.

    :param action: ``get_image``, ``download_image``, ``modify_image``, ``publicize_image``, or
        the name of ``YANK_RULE``.
    :param attributes: of ``glance.domain.Image``.
    """
    policy = _policy(request_context, domain.Image(extra_properties=dict(properties), **attributes))
    if action == "publicize_image":
        return bool(policy.check("update_property", "visibility", "public"))
    if action == YANK_RULE.name:
        return bool(_may_yank(request_context, policy))
    return bool(policy.check(action))


def _may_yank(request_context: Any, policy: Any) -> bool:
    enforcer = policy.enforcer
    # Each pipeline has an enforcer of its own, which threads share.
    with contextlib.suppress(oslo_policy.DuplicatePolicyError):
        enforcer.register_default(YANK_RULE)
    return bool(enforcer.check(request_context, YANK_RULE.name, policy._target))


def _policy(request_context: Any, target: Any) -> Any:
    enforcer = request_context.policy_enforcer
    return api_policy.ImageAPIPolicy(request_context, target, enforcer)


def load(request_context: Any, url: str, store: str | None) -> Iterator[bytes]:
    """Yield the data of an image.

    :param url: the URL of its location, from the database.
    :param store: the name of its store, if there are several.
    """
    if cfg.CONF.metadata_encryption_key:
        url = crypt.urlsafe_decrypt(cfg.CONF.metadata_encryption_key, url)
    if cfg.CONF.enabled_backends:
        data, _ = glance_store.get(url, store, context=request_context)
    else:
        data, _ = glance_store.get_from_backend(url, context=request_context)
    yield from data
