# SPDX-License-Identifier: Apache-2.0

"""Changes of Glance's own code, each a function, for requests at the same time.

Glance saves whole images, and reads a file into an object that all threads share.
"""

import threading
from collections.abc import Collection, Mapping
from typing import Any

import glance.db
from glance.common import exception, property_utils

from glare_murano.glance.internals import DATA_ATTRIBUTES

_load_image = glance.db.ImageRepo._format_image_from_db
_values_of_image = glance.db.ImageRepo._format_image_to_db
_save_image = glance.db.ImageRepo.save
_load_protections = property_utils.PropertyRules._load_rules
_protections_lock = threading.Lock()

# Attributes that other requests change meanwhile.
_KEPT = ("visibility", "status", "locations", "container_format", *DATA_ATTRIBUTES)


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
