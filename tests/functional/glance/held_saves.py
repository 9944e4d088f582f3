# SPDX-License-Identifier: Apache-2.0

"""A filter inside Glance that lets one save of an image wait for the test.

Files in the directory of the configuration take turns: ``hold`` is written by the test,
``held`` by Glance once a save waits, and ``release`` by the test.
"""

import os
import pathlib
from collections.abc import Callable
from typing import Any

import glance.db

from tests.functional.glance import trusted_tokens
from tests.processes import wait_until

_save = glance.db.ImageRepo.save


def filter_factory(conf: dict[str, str], **options: str) -> Callable[[Any], Any]:
    """Return the filter ``trusted_tokens``, for paste.deploy."""
    glance.db.ImageRepo.save = _save_later
    return trusted_tokens.filter_factory(conf, **options)


def _save_later(*arguments: Any, **options: Any) -> Any:
    folder = pathlib.Path(os.environ["OS_GLANCE_CONFIG_DIR"])
    if (folder / "hold").exists():
        (folder / "hold").rename(folder / "held")
        wait_until((folder / "release").exists, "the test")
    return _save(*arguments, **options)
