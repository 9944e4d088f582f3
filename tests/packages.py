# SPDX-License-Identifier: Apache-2.0

"""Small packages, made for a test."""

import io
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import yaml

CLASS = "Name: {name}\nMethods:\n  version:\n    Body:\n      Return: {version}\n"

FORM = b"""Version: 2.3
Application:
  ?:
    type: org.example.Thing
Forms: []
"""


def manifest(name: str, version: str | None = "1.0.0", **keys: Any) -> dict[str, Any]:
    """A manifest with one class, ``NAME.Thing``; keys replace or add.

    The core library has the classes that every application extends as well.
    """
    names = [
        "Thing",
        *(["Object", "Application", "test.TestFixture"] if name == "io.murano" else []),
    ]
    content = {
        "Format": "1.4",
        "Type": "Library",
        "FullName": name,
        "Version": version,
        "Name": "A Thing",
        "Author": "Somebody",
        "Classes": {f"{name}.{each}": f"{each}.yaml" for each in names},
        **keys,
    }
    return {key: value for key, value in content.items() if value is not None}


def files(content: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a package with this manifest."""
    found = {"manifest.yaml": yaml.safe_dump(dict(content)).encode()}
    classes = content.get("Classes")
    if isinstance(classes, dict):
        for name, path in classes.items():
            text = CLASS.format(name=name, version=content.get("Version"))
            found[f"Classes/{path}"] = text.encode()
    return found


def zipped(content: Mapping[str, bytes]) -> bytes:
    """A ZIP file of these files, the same at any time."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            info = zipfile.ZipInfo(path)
            info.external_attr = 0o600 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def content(
    name: str,
    version: str | None = "1.0.0",
    code: str = "",
    more: Mapping[str, bytes] = {},
    **keys: Any,
) -> dict[str, bytes]:
    """The files of a package with one class, ``NAME.Thing``.

    :param code: of the class, in place of a class with one method.
    :param more: files that are added or replaced.
    :param keys: of the manifest.
    """
    found = files(manifest(name, version, **keys))
    if code:
        found["Classes/Thing.yaml"] = code.encode()
    return {**found, **more}


def package(
    name: str,
    version: str | None = "1.0.0",
    code: str = "",
    more: Mapping[str, bytes] = {},
    **keys: Any,
) -> bytes:
    """The archive of a package with one class, ``NAME.Thing``; see :func:`content`."""
    return zipped(content(name, version, code, more, **keys))


def extending(name: str, base: str, version: str = "1.0.0", **keys: Any) -> bytes:
    """The archive of a package whose class ``NAME.Thing`` extends a class."""
    return package(name, version, f"Name: {name}.Thing\nExtends: {base}\n", **keys)


def write(folder: pathlib.Path, content: Mapping[str, bytes]) -> pathlib.Path:
    """Write files below a folder, and return it."""
    for path, data in content.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder
