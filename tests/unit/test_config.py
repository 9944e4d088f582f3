# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Loaders as a configuration describes them, while Keystone or a server fails."""

import pathlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import cast

import pytest
from oslo_config import cfg

import loader
from glare_murano.package import VersionSpec
from loader import transfer
from tests import packages
from tests.unit import faulty
from tests.unit.faulty import Faulty

Configured = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty.serving(packages.package("org.faulty")) as state:
        yield state


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between tries; nobody waits in these tests."""
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    return waited


@pytest.fixture
def configured(tmp_path: pathlib.Path) -> Configured:
    """A configuration that was read from a file, of groups of options."""

    def read(**groups: dict[str, Any]) -> cfg.ConfigOpts:
        lines = ["[engine]", f"packages_cache = {tmp_path / 'cache'}"]
        for group, values in groups.items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in values.items())]
        (tmp_path / "loader.conf").write_text("\n".join(lines))
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[str(tmp_path / "loader.conf")])
        return conf

    return read


def _credentials(server: Faulty) -> dict[str, Any]:
    return {
        "auth_type": "v3password",
        "auth_url": f"{server.url}/v3",
        "username": "u",
        "password": "p",
        "user_domain_id": "d",
        "project_id": faulty.PROJECT,
    }


def _loaded(conf: cfg.ConfigOpts) -> str:
    with loader.PackageLoader.from_config(conf) as package_loader:
        return str(package_loader.load_package("org.faulty", VersionSpec.of("1")))


@pytest.mark.parametrize("catalog", ["glare", "murano"])
def test_a_keystone_that_hangs_is_not_waited_for_without_end(
    server: Faulty, configured: Configured, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "DEFAULT_TIMEOUT", (0.2, 0.2))
    server.tokens, server.identity_faults = set(), [faulty.hang] * 20
    groups = {"glare": _credentials(server), "package_loader": {"catalogs": catalog}}
    groups.setdefault(catalog, {})["url"] = server.url

    with pytest.raises(loader.NoAnswer, match="timed out"):
        _loaded(configured(**groups))


@pytest.mark.parametrize(("option", "expected"), [({}, None), ({"timeout": 7}, 7.0)])
def test_sessions_have_the_timeout_that_is_configured_or_the_usual_one(
    configured: Configured, option: dict[str, Any], expected: float | None
) -> None:
    conf = configured(
        glare={"insecure": True, "auth_type": "none", "endpoint": "http://x", **option},
        murano={"insecure": True, **option},
        package_loader={"http_url": "http://x", "catalogs": "glare,murano,http", **option},
    )

    with loader.PackageLoader.from_config(conf) as package_loader:
        glare, murano, static = cast(Any, package_loader)._catalogs

    for session in (glare._client.session, murano._client.session, static._web._session):
        assert session.timeout == (expected or transfer.DEFAULT_TIMEOUT)
