# SPDX-License-Identifier: Apache-2.0

"""Read the archive of a package before Glance stores it: the import plug-in ``murano_package``.

Glance calls the plug-in for every import, between staging and storing. The plug-in ignores images
that are not packages. It refuses an archive if the package breaks a rule. The image then returns to
its state before the archive was staged, and its owner can try again. The property
``murano_refusal`` and the message of Glance's task contain the reason.
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

from glare_murano import archive_limits, archive_reading, fields, images
from glare_murano.glance import image_events, import_log, internals
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.glance.options import SETTINGS
from glare_murano.package import InvalidManifest, InvalidPackage, Problem
from glare_murano.package.archive_rules import check_size
from glare_murano.package.errors import listed, quoted
from glare_murano.package.rules import Rule
from glare_murano.service import name_checks
from glare_murano.stored_contents import StoredContents

LOG = logging.getLogger(__name__)

_CHUNK_SIZE = 128 * 1024
_FILE_URL = "file://"
_FROM_STAGING = "glance-direct"
# The suffix for the copy of a staged file. When Glance cleans the staging area, it reads the part
# of a file name before the first dot as the id of an image.
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
    """Return the flow of tasks that Glance adds to an import. Glance calls this function.

    :param action_wrapper: Glance's object that changes the image during its import.
    :param backend: the identifiers of the stores that receive the data.
    :param import_req: the body of the client's request.
    :param context: the context of the request.
    """
    import_log.install()
    name = f"{task_type}-MuranoPackage-{task_id}"
    is_staged = import_req["method"]["name"] == _FROM_STAGING
    reading = ReadPackage(name, image_id, action_wrapper, backend, is_staged, context)
    return linear_flow.Flow(task_type).add(reading)


class ReadPackage(task.Task):  # type: ignore[misc]
    """The task that reads a staged archive, and writes the properties of its image."""

    def __init__(
        self,
        name: str,
        image_id: str,
        action_wrapper: Any,
        stores: Collection[str | None],
        is_staged: bool,
        context: Any,
    ) -> None:
        """Prepare the task.

        The image is not read yet, since the import may still change its format.

        :param name: the name of the task.
        :param image_id: the id of the image.
        :param action_wrapper: Glance's object that changes the image during its import.
        :param stores: the identifiers of the stores that receive the data.
        :param is_staged: whether the owner has staged the data. If Glance has fetched the data
            instead, Glance removes the data itself when the import fails.
        :param context: the context of the request that began the import.
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
        """Read the archive of a package, and write the properties of its image.

        :param file_path: the URL of the staged file.
        :raises glare_murano.glance.internals.ImportRefused: if the package breaks a rule, or its
            archive cannot be read.
        """
        image = _find(self._image_id)
        if not image.is_package:
            return
        self._staged = pathlib.Path(file_path.removeprefix(_FILE_URL))
        try:
            # Another import may have begun during a long download.
            self._action_wrapper.assert_task_lock()
            _remove_residue(image.id, self._stores)
            with _detached(self._staged) as (archive, sha256):
                properties = _read(archive, sha256, image)
            self._action_wrapper.assert_task_lock()
            # All other properties that only the server writes come from an earlier archive, or from
            # a mistake, so they are deleted.
            others = images.of_server(image.properties) - properties.keys()
            internals.write_properties(self._image_id, properties, others)
        except InvalidPackage as error:
            raise self._refusal(str(error)) from error
        except Exception as error:
            LOG.exception("The archive of image %s could not be read", self._image_id)
            raise self._refusal("the archive could not be read; see Glance's log") from error
        self._audit(image)

    def revert(self, result: Any, **_: Any) -> None:
        """Return the image of a package to its state before the archive was staged.

        Glance calls this method if this task fails, or if a later task fails, such as the task that
        stores the data. If Glance has fetched the data itself, this method only deletes the
        properties that ``execute`` has written, and Glance does the rest. Errors are logged, and
        not raised.

        :param result: the result of ``execute``, or its failure.
        """
        if self._staged is None:
            return
        try:
            if image_rows.find_image(self._image_id) is None:
                # Glance has deleted the image and its staged file, but this task may have written
                # the file again.
                self._staged.unlink(missing_ok=True)
                return
            # This fails if the lock was lost, since another import may have begun.
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
            # No error is raised, so that Glance also reverts the tasks before this one.
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

    :raises internals.ImportRefused: if the image was deleted during the import.
    """
    image = image_rows.find_image(image_id)
    if image is None:
        raise internals.ImportRefused(f"image {image_id} was deleted")
    return image


def _remove_residue(image_id: str, stores: Collection[str | None]) -> None:
    """Delete the files that a killed import has left in the stores, unless the image has data.

    :param stores: the identifiers of the stores that receive the data.
    """
    with internals.reading() as connection:
        has_data = image_rows.find_locations(connection, [image_id])
    if not has_data:
        internals.remove_residue(image_id, stores)


@contextlib.contextmanager
def _detached(staged: pathlib.Path) -> Iterator[tuple[IO[bytes], str]]:
    """Copy a staged file, and replace the file by the copy when the ``with`` statement ends.

    Another request may still be staging data. It continues to write to the replaced file, and not
    to the copy. So Glance stores exactly the data that this plug-in has read.

    :returns: the open copy, and its SHA-256 digest in hexadecimal.
    :raises InvalidPackage: if the file is larger than an archive may be.
    """
    limits = archive_limits.limits(SETTINGS)
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
    """Read the package in an archive, and return the properties of its image.

    :param sha256: the SHA-256 digest of the archive, in hexadecimal.
    :raises InvalidPackage: if the package breaks a rule, or belongs to another image.
    """
    owner, label, python = image.owner, f"image {image.id}", internals.python()
    contents = archive_reading.read(SETTINGS, archive, owner, label, python)
    if contents.warnings:
        LOG.warning("The package of image %s: %s", image.id, listed(contents.warnings))
    problems = [
        *_find_mismatches(contents, image),
        *name_checks.find_problems(SETTINGS, contents, image.owner),
    ]
    properties = images.properties(contents, sha256)
    problems = problems or [
        *_find_too_many(properties, image),
        *_find_lookalikes(properties, image),
    ]
    if problems:
        raise InvalidManifest(problems)
    return properties


def _find_mismatches(contents: StoredContents, image: ImageRow) -> Iterator[Problem]:
    """Yield a problem if the name or the id of the image does not match the package."""
    if contents.fqn != image.name:
        message = (
            f"the package says {quoted(contents.fqn)}, but the image was created with "
            f"the name {quoted(image.name)}"
        )
        yield Problem(Rule.MANIFEST_MISMATCH, "FullName", message)
        return
    expected = images.image_id(image.owner, contents.fqn, contents.version)
    if expected != image.id:
        message = (
            f"the package says {quoted(str(contents.version))}; in project "
            f"{quoted(image.owner)}, the image of this version has the id {expected}"
        )
        yield Problem(Rule.MANIFEST_MISMATCH, "Version", message)


def _find_too_many(properties: Mapping[str, str], image: ImageRow) -> list[Problem]:
    """Return a problem if the properties of a package are too many to be stored.

    :param properties: the properties that this project will write.
    :param image: the image, with the properties of the owner, which Glance's quota also counts.
    """
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
    """Yield a problem for each property of the owner that a database could take for a new property.

    Some databases ignore case and accents in the names of properties.

    :param properties: the properties that this project will write.
    :param image: the image, with the properties of the owner.
    """
    folded = {_folded(name): name for name in properties}
    for name in internals.find_counted(image.properties) - folded.keys():
        if own := folded.get(_folded(name)):
            message = f"some databases cannot distinguish this name from {own}; delete the property"
            yield Problem(Rule.MANIFEST_LIMIT, name, message)


def _folded(name: str) -> str:
    """Return a name without the differences that MariaDB ignores: case, accents, final spaces."""
    letters = unicodedata.normalize("NFKD", name)
    return "".join(each for each in letters if not unicodedata.combining(each)).casefold().rstrip()


def _storable(text: str) -> str:
    """Convert a string to a form that every database can store.

    Characters that cannot be stored are escaped, and a string that is too long is cut off.
    """
    escaped = fields.UNSTORABLE.sub(lambda found: ascii(found[0])[1:-1], text)
    return escaped.encode()[: fields.MAX_TOTAL_SIZE].decode(errors="ignore")
