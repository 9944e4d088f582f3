# SPDX-License-Identifier: Apache-2.0

"""The service of a request to murano-api, with the caller's token."""

import pathlib
import types
from typing import Any

import pytest
from oslo_config import cfg

from glare_murano.package import Limits
from loader import errors
from loader.catalogs.glance import GlanceRepository
from loader.catalogs.glare import GlareRepository
from loader.murano_api.request_repository import RequestRepositories

# keystonemiddleware sends this form, also for tokens of Keystone's version 3.
_CATALOG = [
    {
        "type": kind,
        "name": kind,
        "endpoints": [
            {"region": region, "publicURL": f"http://{kind}.{region}", "internalURL": "http://in"}
            for region in ("north", "south")
        ],
    }
    for kind in ("artifact", "image")
]


def _repositories(folder: pathlib.Path, settings: str) -> RequestRepositories:
    file = folder / "murano.conf"
    file.write_text(settings)
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)])
    return RequestRepositories(conf)


def _context(catalog: Any, token: str = "secret") -> Any:
    return types.SimpleNamespace(auth_token=token, project_id="demo", service_catalog=catalog)


@pytest.mark.parametrize(
    ("settings", "kind", "url"),
    [
        ("[DEFAULT]\nhome_region = south", GlareRepository, "http://artifact.south"),
        ("[glare]\nendpoint_type = internalURL", GlareRepository, "http://in"),
        ("[glare]\nurl = http://here", GlareRepository, "http://here"),
        (
            "[DEFAULT]\nhome_region = north\n[package_loader]\ncatalogs = directory,glance,glare",
            GlanceRepository,
            "http://image.north",
        ),
    ],
)
def test_the_service_is_found_and_the_token_is_the_callers(
    tmp_path: pathlib.Path, settings: str, kind: type[Any], url: str
) -> None:
    repositories = _repositories(tmp_path, settings)
    found = repositories.of_request(_context(_CATALOG))

    assert type(found) is kind
    assert found.name.endswith(f" at {url}")
    assert found.project() == "demo"
    assert found._client.session.auth.get_token(None) == "secret"
    other = repositories.of_request(_context(_CATALOG, "another"))
    assert found._client.session.auth.get_token(None) == "secret"
    assert other._client.session.auth.get_token(None) == "another"
    assert other._client.session.session is found._client.session.session


def test_archives_have_the_operators_limits(tmp_path: pathlib.Path) -> None:
    settings = "[package_loader]\ncatalogs = glance\nmax_archive_size = 5"

    repository = _repositories(tmp_path, settings).of_request(_context(_CATALOG))

    assert repository._limits == Limits(archive_size=5)


@pytest.mark.parametrize("catalog", [None, [], [{**_CATALOG[1]}]])
def test_a_missing_endpoint_is_reported(tmp_path: pathlib.Path, catalog: Any) -> None:
    repositories = _repositories(tmp_path, "")
    with pytest.raises(errors.CatalogError, match=r"artifact; set \[glare\] url"):
        repositories.of_request(_context(catalog))


def test_a_catalogue_without_a_service_is_refused_at_the_start(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.CatalogError, match="add glare or glance"):
        _repositories(tmp_path, "[package_loader]\ncatalogs = directory")
