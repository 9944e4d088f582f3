# SPDX-License-Identifier: Apache-2.0

"""The import plug-in ``murano_package``, which reads a package's archive before it is stored.

Glance calls the plug-in for every import, between staging and storing. The plug-in ignores
images that are not packages. An archive is refused if the package breaks a rule. The
property ``murano_refusal`` and the message of Glance's task give the reason. The image
returns to its state before the archive was staged, and its owner can try again.
"""

import contextlib
import hashlib
import pathlib
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import IO, Any

from oslo_log import log as logging
from taskflow import task
from taskflow.patterns import linear_flow
from taskflow.types import failure

from glare_murano import fields, images
from glare_murano.glance import image_events, internals
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.glance.options import SETTINGS
from glare_murano.package import (
    Archive,
    Contents,
    InvalidManifest,
    InvalidPackage,
    Problem,
    read_contents,
)
from glare_murano.package.archive_rules import check_size
from glare_murano.package.errors import listed, quoted
from glare_murano.package.rules import Rule
from glare_murano.service import archive_settings, name_checks

LOG = logging.getLogger(__name__)

# The largest total size of a package's properties and their names, in bytes. MariaDB limits each
# property to 64 KiB.
MAX_PROPERTIES = 60 * 1024

_CHUNK_SIZE = 128 * 1024
_FILE_URL = "file://"
_FROM_STAGING = "glance-direct"
# The suffix for the copy of a staged file. Glance cleans the staging area, and takes the part of a
# file name before the first dot for the id of an image.
_SUFFIX = ".murano"
_NOT_STORED = "Glance could not store the archive; see its log"


def get_flow(
    task_id: str,
    task_type: str,
    image_id: str,
    action_wrapper: Any,
    backend: Collection[str | None],
    import_req: Mapping[str, Any],
    context: Any,
    **_: Any,
) -> linear_flow.Flow:
    """Return the flow for Glance to add to an import.

    :param action_wrapper: Glance's way to change an image during its import.
    :param backend: the stores to import to.
    :param import_req: the request of the client.
    :param context: the context of the request.
    """
    name = f"{task_type}-MuranoPackage-{task_id}"
    is_staged = import_req["method"]["name"] == _FROM_STAGING
    reading = ReadPackage(name, image_id, action_wrapper, backend, is_staged, context)
    return linear_flow.Flow(task_type).add(reading)


class ReadPackage(task.Task):  # type: ignore[misc]
    """The task that reads a staged archive, and writes the properties of its package."""

    def __init__(
        self,
        name: str,
        image_id: str,
        action_wrapper: Any,
        stores: Collection[str | None],
        is_staged: bool,
        context: Any,
    ) -> None:
        """Prepare the task, without reading the image, whose format the import may still change.

        :param is_staged: whether the owner has staged the data. Otherwise Glance fetches the data,
            and removes the data itself when the import fails.
        :param context: the context of the request for the import.
        """
        super().__init__(name=name)
        self._image_id = image_id
        self._action_wrapper = action_wrapper
        self._stores = stores
        self._is_staged = is_staged
        self._context = context
        # The staged file; None until the image is known to be a package.
        self._staged: pathlib.Path | None = None

    def execute(self, file_path: str) -> None:
        """Read the archive.

        :param file_path: the URL of the staged file.
        :raises glare_murano.glance.internals.ImportRefused: with the reason.
        """
        image = _find(self._image_id)
        if not image.is_package:
            return
        self._staged = pathlib.Path(file_path.removeprefix(_FILE_URL))
        try:
            _remove_residue(image.id, self._stores)
            with _detached(self._staged) as (archive, sha256):
                properties = _read(archive, sha256, image)
            self._action_wrapper.assert_task_lock()
            # All other properties that only the server writes come from an earlier archive, or from
            # a mistake: delete them.
            others = images.of_server(image.properties) - properties.keys()
            internals.write_properties(self._image_id, properties, others)
        except InvalidPackage as error:
            raise self._refusal(str(error)) from error
        except Exception as error:
            LOG.exception("The archive of image %s could not be read", self._image_id)
            raise self._refusal("the archive could not be read; see Glance's log") from error
        self._audit(image)

    def revert(self, result: Any, **_: Any) -> None:
        """Return the image to its state before the archive was staged.

        Glance calls this method if this task fails, or a later one, such as the storing task.
        """
        if self._staged is None:
            return
        try:
            if image_rows.find_image(self._image_id) is None:
                # Glance has deleted the image and its staged file, but this task may have written
                # the file again afterwards.
                self._staged.unlink(missing_ok=True)
                return
            # If the lock is lost, another import may have begun.
            self._action_wrapper.assert_task_lock()
            if not isinstance(result, failure.Failure):
                image = _find(self._image_id)
                self._audit(image, _NOT_STORED)
                written = images.of_server(image.properties)
                internals.write_properties(self._image_id, {}, written)
            if self._is_staged:
                self._staged.unlink(missing_ok=True)
                with self._action_wrapper as action:
                    action.remove_importing_stores(self._stores)
                    action.set_image_attribute(status=internals.QUEUED)
        except Exception:
            # Glance must go on, and revert the tasks before this one as well.
            LOG.exception("The import of image %s could not be reverted", self._image_id)

    def _audit(self, image: ImageRow, refusal: str = "") -> None:
        image_events.send_import(self._context, image, refusal)

    def _refusal(self, reason: str) -> internals.ImportRefused:
        self._action_wrapper.assert_task_lock()
        LOG.info("The package of image %s is refused: %s", self._image_id, reason)
        image = _find(self._image_id)
        written = images.of_server(image.properties)
        stored = _storable(reason)
        others = written - {images.REFUSAL}
        internals.write_properties(self._image_id, {images.REFUSAL: stored}, others)
        self._audit(image, stored)
        return internals.ImportRefused(stored)


def _find(image_id: str) -> ImageRow:
    """Return the image of an import.

    :raises internals.ImportRefused: if the image was deleted meanwhile.
    """
    image = image_rows.find_image(image_id)
    if image is None:
        raise internals.ImportRefused(f"image {image_id} was deleted")
    return image


def _remove_residue(image_id: str, stores: Collection[str | None]) -> None:
    """Delete what a killed import has left in the stores, unless the image has data."""
    with internals.reading() as connection:
        has_data = image_rows.find_locations(connection, [image_id])
    if not has_data:
        internals.remove_residue(image_id, stores)


@contextlib.contextmanager
def _detached(staged: pathlib.Path) -> Iterator[tuple[IO[bytes], str]]:
    """Copy a staged file for reading, and replace the file by the copy afterwards.

    A request that is still staging data writes to the file that was replaced, not to the copy. So
    Glance stores exactly the data that this plug-in has read.

    :returns: the open copy, and its SHA-256.
    :raises InvalidPackage: if the file is larger than an archive may be.
    """
    limits = archive_settings.limits(SETTINGS)
    copy = staged.with_name(staged.name + _SUFFIX)
    try:
        with staged.open("rb") as source, copy.open("w+b") as target:
            digest = hashlib.sha256()
            while chunk := source.read(_CHUNK_SIZE):
                digest.update(chunk)
                check_size(target.tell() + len(chunk), limits)
                target.write(chunk)
            target.seek(0)
            yield target, digest.hexdigest()
        copy.replace(staged)
    finally:
        copy.unlink(missing_ok=True)


def _read(archive: IO[bytes], sha256: str, image: ImageRow) -> dict[str, str]:
    """Return the properties of a package.

    :raises InvalidPackage: if the package breaks a rule, or belongs to another image.
    """
    sandbox = archive_settings.sandbox(SETTINGS, internals.python())
    with Archive.open(archive, archive_settings.limits(SETTINGS)) as opened:
        contents = read_contents(opened, sandbox.describe, archive_settings.form_check(SETTINGS))
        # A damaged file is refused here, rather than by every engine.
        opened.verify()
    if contents.warnings:
        LOG.warning("The package of image %s: %s", image.id, listed(contents.warnings))
    problems = [
        *_find_mismatches(contents, image),
        *name_checks.find_problems(SETTINGS, contents, image.owner),
        *fields.find_excess(fields.from_contents(contents)),
    ]
    properties = images.properties(contents, sha256)
    problems = problems or [
        *_find_too_many(properties, image),
        *_find_lookalikes(properties, image),
    ]
    if problems:
        raise InvalidManifest(problems)
    return properties


def _find_mismatches(contents: Contents, image: ImageRow) -> Iterator[Problem]:
    """Compare the name and the version of a package with the name and the id of its image."""
    manifest = contents.manifest
    if manifest.full_name != image.name:
        message = (
            f"the package says {quoted(manifest.full_name)}, but the image was created with "
            f"the name {quoted(image.name)}"
        )
        yield Problem(Rule.MANIFEST_MISMATCH, "FullName", message)
        return
    expected = images.image_id(str(image.attributes["owner"]), manifest.full_name, manifest.version)
    if expected != image.id:
        message = (
            f"the package says {quoted(str(manifest.version))}; in project "
            f"{quoted(image.owner)}, the image of this version has the id {expected}"
        )
        yield Problem(Rule.MANIFEST_MISMATCH, "Version", message)


def _find_too_many(properties: Mapping[str, str], image: ImageRow) -> list[Problem]:
    """Return a problem if the properties of a package are too large or too many to be stored.

    Otherwise the database might store some of them, and refuse the others.
    """
    sizes = {name: len((name + value).encode()) for name, value in properties.items()}
    if (total := sum(sizes.values())) > MAX_PROPERTIES:
        largest = max(sizes, key=lambda name: sizes[name])
        message = (
            f"{sizes[largest]} bytes, and {total} with all other properties of the package; at "
            f"most {MAX_PROPERTIES} are allowed"
        )
        return [Problem(Rule.MANIFEST_LIMIT, largest, message)]
    counted = internals.find_counted(image.properties)
    own = counted - images.of_server(counted)
    count, quota = len(own) + len(properties), internals.property_quota()
    if 0 <= quota < count:
        message = (
            f"the image has {len(own)} other properties, and the package needs {len(properties)}; "
            f"together, at most {quota} are allowed (image_property_quota)"
        )
        return [Problem(Rule.MANIFEST_LIMIT, "properties", message)]
    return []


def _find_lookalikes(properties: Mapping[str, str], image: ImageRow) -> Iterator[Problem]:
    """Find the owner's properties that some databases confuse with those of the package."""
    folded = {_folded(name): name for name in properties}
    for name in internals.find_counted(image.properties) - folded.keys():
        if own := folded.get(_folded(name)):
            message = f"some databases cannot distinguish this name from {own}; delete the property"
            yield Problem(Rule.MANIFEST_LIMIT, name, message)


def _folded(name: str) -> str:
    """Return a name without what MariaDB's default order ignores: case, accents, final spaces."""
    letters = unicodedata.normalize("NFKD", name)
    return "".join(each for each in letters if not unicodedata.combining(each)).casefold().rstrip()


def _storable(text: str) -> str:
    """Return a string that every database can store."""
    escaped = fields.UNSTORABLE.sub(lambda found: ascii(found[0])[1:-1], text)
    return escaped.encode()[:MAX_PROPERTIES].decode(errors="ignore")
