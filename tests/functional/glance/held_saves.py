# SPDX-License-Identifier: Apache-2.0

"""A filter inside Glance that lets one save of an image, or one deletion, wait for the test.

A deletion waits where Glance has marked the image as deleted, and begins its second transaction;
or before it deletes the data; or, as any other request, before Glance reads the image. A request
that stages data waits before Glance reads the data. An import waits after Glance has stored the
data, or when Glance then saves the location of the data.

Files in the directory of the configuration take turns: ``hold``, or ``hold-data`` for a deletion
that is to wait before it deletes the data, or ``hold-get`` for a request that is to wait before
Glance reads the image, or ``hold-staging`` for one that stages data, or
``hold-stored`` or ``hold-location`` for an import, is written by the test,
``held`` by Glance once a change waits, and ``release`` by the test.
"""

import functools
import os
import pathlib
from collections.abc import Callable
from typing import Any

import glance.db
from glance import location
from glance.common import utils
from glance.common.scripts.image_import import main as image_import
from glance.db.sqlalchemy import api

from tests.functional.glance import trusted_tokens
from tests.processes import wait_until


def filter_factory(conf: dict[str, str], **options: str) -> Callable[[Any], Any]:
    """Return the filter ``trusted_tokens``, for paste.deploy."""
    trusting = trusted_tokens.filter_factory(conf, **options)

    def held(application: Any) -> Any:
        _hold()
        return trusting(application)

    return held


def _hold() -> None:
    """Let functions wait, most of which the filter of packages has replaced by its own."""
    assert glance.db.ImageRepo.save.__module__ == "glare_murano.glance.internals"
    glance.db.ImageRepo.save = _later(glance.db.ImageRepo.save)
    api.image_destroy = _later(api.image_destroy)
    location.ImageProxy.delete = _later(location.ImageProxy.delete, "hold-data")
    glance.db.ImageRepo.get = _later(glance.db.ImageRepo.get, "hold-get")
    utils.LimitingReader = _later(utils.LimitingReader, "hold-staging")
    image_import.set_image_data = _then_hold(image_import.set_image_data)


def _then_hold(store: Callable[..., None]) -> Callable[..., None]:
    """Let a function that stores data wait at its end, or let the save wait that follows it."""

    @functools.wraps(store)
    def call(*arguments: Any, **options: Any) -> None:
        store(*arguments, **options)
        _later(lambda: None, "hold-stored")()
        folder = pathlib.Path(os.environ["OS_GLANCE_CONFIG_DIR"])
        if (folder / "hold-location").exists():
            (folder / "hold-location").rename(folder / "hold")

    return call


def _later(function: Callable[..., Any], hold: str = "hold") -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        folder = pathlib.Path(os.environ["OS_GLANCE_CONFIG_DIR"])
        if (folder / hold).exists():
            (folder / hold).rename(folder / "held")
            wait_until((folder / "release").exists, "the test")
        return function(*arguments, **options)

    return call
