# SPDX-License-Identifier: Apache-2.0

"""The images of a package: what a logo may be, as Murano has it."""

from glare_murano.package import errors
from glare_murano.package.archive import Archive

MAX_SIZE = 500 * 1024

# By the first bytes of a file, whatever its name is.
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


def read_image(
    archive: Archive, named: str | None, default: str, key: str
) -> tuple[bytes | None, list[errors.Problem]]:
    """Read an image that a manifest names, or the one that is there by default.

    :param named: the file that the manifest names, if it does.
    :param default: the file that is taken otherwise, if it is there.
    :param key: the manifest's key, for messages.
    :returns: its content, or None where there is none; and what is wrong: the
        file named is missing, larger than 500 KiB, or neither PNG nor JPEG
        nor GIF.
    :raises InvalidArchive: if the file is damaged.
    """
    path = named or default
    if path not in archive.paths:
        if not named:
            return None, []
        return None, [errors.Problem("image-missing", key, f"there is no file {named}")]
    if archive.size(path) > MAX_SIZE:
        message = f"{path} has {archive.size(path)} bytes, at most {MAX_SIZE} are allowed"
        return None, [errors.Problem("image-size", key, message)]
    data = archive.read(path, MAX_SIZE)
    if not data.startswith(_SIGNATURES):
        message = f"{path} is neither PNG nor JPEG nor GIF"
        return None, [errors.Problem("image-type", key, message)]
    return data, []
