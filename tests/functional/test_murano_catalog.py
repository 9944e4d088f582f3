# SPDX-License-Identifier: Apache-2.0

"""The loader over the real murano-api."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import requests
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from oslo_config import cfg

import loader
from glare_murano.package import VersionSpec
from loader.catalogs import murano as murano_catalog
from loader.catalogs import registry
from loader.catalogs.metadata_cache import MetadataCache
from loader.catalogs.murano import MuranoCatalog
from loader.transport.sessions import Scope
from tests import packages
from tests.functional import murano_api

pytestmark = pytest.mark.programs

ANY = VersionSpec.of("*")

Upload = Callable[..., str]


@pytest.fixture
def upload(murano_url: str, project: str, name: str) -> Upload:
    """Upload a package, and return its id."""

    def send(version: str | None, owner: str = project, public: bool = False, **keys: Any) -> str:
        keys = {"FullName": name, "Classes": {f"{name}.Thing": "Thing.yaml"}, **keys}
        archive = packages.package(name, version, **keys)
        return murano_api.upload(murano_url, owner, archive, public)

    return send


def _session(url: str, project: str, roles: str = "member") -> ksa_session.Session:
    return ksa_session.Session(auth=token_endpoint.Token(url, f"user:{project}:{roles}"))


def _catalog(url: str, project: str, roles: str = "member", **others: Any) -> MuranoCatalog:
    session = _session(url, project, roles)
    return MuranoCatalog(session, project_id=project, endpoint=url, **others)


def test_version_and_requirements_are_those_of_the_archive(
    murano_url: str, project: str, name: str, upload: Upload, tmp_path: pathlib.Path
) -> None:
    reference = upload("1.10", Require={"org.db": ">=1.2,<2"})
    catalog = _catalog(murano_url, project)

    (release,) = catalog.releases(name)
    package_loader = loader.PackageLoader([catalog], loader.Cache(tmp_path))
    package = package_loader.load(name, VersionSpec.of("1"))

    assert (str(release), release.id) == (f"{name} 1.10.0", reference)
    assert (release.owner, release.visibility) == (project, "private")
    assert release.requirements["org.db"] == VersionSpec.of(">=1.2,<2")
    assert (package.full_name, str(package.version)) == (name, "1.10.0")
    assert list(catalog.releases_of([name, "org.nothing"])) == [release]


def test_a_package_without_a_version_is_0_0_0(
    murano_url: str, project: str, name: str, upload: Upload
) -> None:
    upload(None)

    (release,) = _catalog(murano_url, project).releases(name)
    assert str(release.version) == "0.0.0"


def test_a_class_is_found_in_the_package_that_defines_it(
    murano_url: str, project: str, name: str, upload: Upload
) -> None:
    upload("1.0.0")
    catalog = _catalog(murano_url, project)

    assert list(map(str, catalog.releases_defining(f"{name}.Thing"))) == [f"{name} 1.0.0"]
    assert catalog.releases_defining(f"{name}.Other") == []


@pytest.mark.parametrize("roles", ["member", "admin"])
def test_other_projects_packages_are_out_of_reach_unless_they_are_public(
    murano_url: str, project: str, name: str, upload: Upload, roles: str
) -> None:
    upload("1.0.0", owner="another")
    assert list(_catalog(murano_url, project, roles).releases(name)) == []
    assert list(_catalog(murano_url, project, roles).releases_defining(f"{name}.Thing")) == []

    public = f"{name}.public"
    upload("2.0.0", "another", True, FullName=public, Classes={f"{public}.Thing": "Thing.yaml"})
    (release,) = _catalog(murano_url, project, roles).releases(public)
    assert (release.owner, release.visibility) == ("another", "public")


def test_the_scope_decides_and_not_the_tokens_project(
    murano_url: str, project: str, name: str, upload: Upload
) -> None:
    upload("1.0.0")
    catalog = MuranoCatalog(
        _session(murano_url, project), project_id="another", endpoint=murano_url
    )

    assert list(catalog.releases(name)) == []


def test_of_one_version_the_projects_own_comes_first(
    murano_url: str, project: str, name: str, upload: Upload
) -> None:
    public = upload("1.0.0", owner="another", public=True)
    own = upload("1.0.0", Author="own")

    assert [r.id for r in _catalog(murano_url, project).releases(name)] == [own, public]
    assert [r.id for r in _catalog(murano_url, "third").releases(name)] == [public]


def test_disabled_packages_are_not_found(
    murano_url: str, project: str, name: str, upload: Upload
) -> None:
    reference = upload("1.0.0")
    answer = requests.patch(
        f"{murano_url}{murano_api.PACKAGES}/{reference}",
        data=json.dumps([{"op": "replace", "path": "/enabled", "value": False}]),
        headers={
            "X-Auth-Token": f"user:{project}:admin",
            "Content-Type": "application/murano-packages-json-patch",
        },
        timeout=60,
    )
    assert answer.status_code == 200, answer.text

    assert list(_catalog(murano_url, project).releases(name)) == []


def test_an_archive_is_downloaded_once_on_a_host(
    murano_url: str, project: str, name: str, upload: Upload, tmp_path: pathlib.Path
) -> None:
    upload("1.0.0")
    first = _catalog(murano_url, project, metadata=MetadataCache(tmp_path / "metadata"))
    cache = loader.Cache(tmp_path / "cache")
    loader.PackageLoader([first], cache).load(name, ANY)
    later = _catalog(murano_url, project, metadata=MetadataCache(tmp_path / "metadata"))
    loader.PackageLoader([later], cache).load(name, ANY)

    # A list for the package, one for the core library, which it requires and
    # which is not there, and at first the archive.
    assert first.counters.requests == 3
    assert (later.counters.requests, later.counters.bytes) == (2, 0)

    # Where the cache has lost it.
    loader.PackageLoader([later], loader.Cache(tmp_path / "new")).load(name, ANY)
    assert (later.counters.requests, later.counters.bytes) == (5, first.counters.bytes)


def test_a_package_that_breaks_a_rule_is_left_out_and_logged(
    murano_url: str, project: str, name: str, upload: Upload, caplog: pytest.LogCaptureFixture
) -> None:
    reference = upload("1.0.0", Require={"org.db": ">>1"})

    assert list(_catalog(murano_url, project).releases(name)) == []
    assert reference in caplog.text
    assert ">>1" in caplog.text


def test_all_pages_are_read(
    murano_url: str,
    project: str,
    name: str,
    upload: Upload,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(murano_catalog, "PAGE", 1)
    for owner in ("one", "two"):
        fqn = f"{name}.{owner}"
        upload("1.0.0", project, FullName=fqn, Classes={f"{fqn}.Thing": "Thing.yaml"})
    catalog = _catalog(murano_url, project)

    assert len(catalog._releases("type", "Library")) >= 2


@pytest.mark.usefixtures("waits")
def test_failures_are_reported(murano_url: str, project: str, name: str, upload: Upload) -> None:
    reference = upload("1.0.0")
    with pytest.raises(loader.CatalogError, match="401"):
        _catalog(murano_url, project, roles="").releases(name)
    with pytest.raises(loader.CatalogError, match=r"127\.0\.0\.1:9"):
        _catalog("http://127.0.0.1:9", project).releases(name)
    catalog = _catalog(murano_url, project)
    (release,) = catalog.releases(name)
    list(catalog.fetch(release))
    deleted = requests.delete(
        f"{murano_url}{murano_api.PACKAGES}/{reference}",
        headers={"X-Auth-Token": f"user:{project}:admin"},
        timeout=60,
    )
    assert deleted.status_code == 200
    with pytest.raises(loader.CatalogError, match=f"{reference}.*404"):
        list(catalog.fetch(release))


def test_it_is_chosen_and_configured_by_name(
    murano_url: str, project: str, name: str, upload: Upload, tmp_path: pathlib.Path
) -> None:
    upload("1.0.0")
    conf = cfg.ConfigOpts()
    conf([])
    conf.register_opts([cfg.StrOpt("url", default=murano_url)], "murano")
    conf.register_opts([cfg.StrOpt("packages_cache", default=str(tmp_path))], "engine")
    scope = Scope(_session(murano_url, project), project)

    (catalog,) = registry.catalogs(["murano"], conf, scope)

    assert catalog.name == f"Murano's API at {murano_url}"
    assert [str(release) for release in catalog.releases(name)] == [f"{name} 1.0.0"]
    assert list((tmp_path / "catalogs").glob("*.json"))
