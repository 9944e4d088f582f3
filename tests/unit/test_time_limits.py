# SPDX-License-Identifier: Apache-2.0

"""No limit of time that a program sets is without an end."""

import math
import pathlib
from collections.abc import Callable

import pytest
from keystoneauth1 import session as ksa_session

import loader
from loader.catalogs.glare import GlareCatalog
from loader.environments.environment_pins import EnvironmentPins
from loader.transport.adapter import ServiceAdapter
from tests.descriptors import open_files


def _wait(place: pathlib.Path, seconds: float) -> None:
    murano = ServiceAdapter(ksa_session.Session(), "Murano's API", endpoint_override="http://x")
    EnvironmentPins(murano, "1").wait(seconds)


_LIMITS: dict[str, Callable[[pathlib.Path, float], object]] = {
    "plan_seconds": lambda place, seconds: loader.PackageLoader(
        loader.DirectoryCatalog(place), place, plan_seconds=seconds
    ),
    "lock_timeout": lambda place, seconds: loader.Cache(place, lock_timeout=seconds),
    "request_timeout": lambda place, seconds: GlareCatalog(
        ksa_session.Session(), request_timeout=seconds
    ),
    "seconds": _wait,
}


@pytest.mark.parametrize("name", _LIMITS)
@pytest.mark.parametrize("seconds", [math.nan, math.inf])
def test_a_limit_without_an_end_is_refused(
    tmp_path: pathlib.Path, name: str, seconds: float
) -> None:
    with pytest.raises(ValueError, match=f"^{name} is {seconds}; expected a finite number"):
        _LIMITS[name](tmp_path, seconds)

    assert open_files(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
