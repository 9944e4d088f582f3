# SPDX-License-Identifier: Apache-2.0

import pathlib
import subprocess
import sys
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from oslo_config import cfg

import loader
from glare_murano.package import VersionSpec
from loader import config
from loader.catalogs import glare, options, registry
from loader.catalogs.directory import DirectoryCatalog
from loader.transport import sessions
from loader.transport.sessions import Scope
from tests import packages
from tests.plugins import Site

# As a third party writes it.
SHELF = """
from oslo_config import cfg
from glare_murano.package import parse_version
from glare_murano import wire
from loader.catalogs import base

class Shelf(base.Catalog):
    def __init__(self, label, project):
        super().__init__(f"the shelf {label}")
        self.project = project

    def releases(self, fqn):
        return [
            wire.Release(fqn, parse_version(text), {}, frozenset(), id=text)
            for text in ("2.0.0", "1.0.0")
        ]

    def releases_defining(self, class_name):
        return []

    def fetch(self, release):
        yield b""

def catalogs(conf, scope):
    conf.register_opt(cfg.ListOpt("labels", default=["top", "bottom"]), "shelf")
    return [Shelf(label, scope.project_id) for label in conf.shelf.labels]
"""

# A catalogue of the archives in one folder.
BOX = """
import hashlib
import pathlib
from oslo_config import cfg
from loader.catalogs import spool
from loader.catalogs import base

class Box(base.Catalog):
    def __init__(self, folder):
        super().__init__("the box")
        self._folder = folder

    def releases(self, fqn):
        return [release for release in self._all() if release.fqn == fqn]

    def releases_defining(self, class_name):
        return [release for release in self._all() if class_name in release.classes]

    def fetch(self, release):
        yield pathlib.Path(release.id).read_bytes()

    def _all(self):
        found = []
        for path in self._folder.iterdir():
            with path.open("rb") as stream:
                found.append(spool.read_release(stream, str(path)))
        return base.newest_first(found)

def catalogs(conf, scope):
    conf.register_opt(cfg.StrOpt("folder"), "box")
    return [Box(pathlib.Path(conf.box.folder))]
"""


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    found = cfg.ConfigOpts()
    found([])
    return found


def _session() -> ksa_session.Session:
    return ksa_session.Session(auth=token_endpoint.Token("http://127.0.0.1:9", "token"))


def test_a_third_partys_catalogue_is_chosen_by_its_entry_point(
    site: Site, conf: cfg.ConfigOpts, tmp_path: pathlib.Path
) -> None:
    site.install(
        "shelf", "1.0", {registry.NAMESPACE: {"shelf": "shelf:catalogs"}}, {"shelf": SHELF}
    )
    conf.register_opt(cfg.ListOpt("load_packages_from", default=[str(tmp_path)]), "engine")

    found = registry.catalogs(["shelf", "directory"], conf, Scope(project_id="mine"))

    assert [c.name for c in found] == [
        "the shelf top",
        "the shelf bottom",
        f"the directory {tmp_path}",
    ]
    top: Any = found[0]
    assert top.project == "mine"
    assert [str(release.version) for release in top.releases("org.app")] == ["2.0.0", "1.0.0"]
    assert sorted(map(str, top.releases_of(["org.a", "org.b"]))) == [
        "org.a 1.0.0",
        "org.a 2.0.0",
        "org.b 1.0.0",
        "org.b 2.0.0",
    ]


def test_a_package_is_loaded_from_a_third_partys_catalogue(
    site: Site, tmp_path: pathlib.Path
) -> None:
    site.install("box", "1.0", {registry.NAMESPACE: {"box": "box:catalogs"}}, {"box": BOX})
    (tmp_path / "box").mkdir()
    for name, require in {"org.db": {}, "org.wiki": {"org.db": "1"}}.items():
        archive = packages.package(name, "1.2.0", Require={"io.murano": "*", **require})
        (tmp_path / "box" / name).write_bytes(archive)
    (tmp_path / "box" / "core").write_bytes(packages.package("io.murano", "0.1.0"))
    (tmp_path / "loader.conf").write_text(
        f"[package_loader]\ncatalogs = box\n[box]\nfolder = {tmp_path}/box\n"
        f"[engine]\npackages_cache = {tmp_path}/cache\n"
    )
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(tmp_path / "loader.conf")])

    with config.package_loader(conf) as package_loader:
        wiki = package_loader.load("org.wiki", VersionSpec.of("1"))
        db = package_loader.load_class_package("org.db.Thing", VersionSpec.of("1"))

        assert (wiki.full_name, str(wiki.version)) == ("org.wiki", "1.2.0")
        assert "org.db.Thing" in db.classes
        assert package_loader.counters.downloads == 3
        assert db.get_class("org.db.Thing")


def test_the_operators_order_is_kept(conf: cfg.ConfigOpts, tmp_path: pathlib.Path) -> None:
    conf.register_opt(cfg.ListOpt("load_packages_from"), "engine")
    conf.set_override("load_packages_from", [str(tmp_path / "b"), str(tmp_path / "a")], "engine")
    scope = Scope(_session())

    for names in (["glare", "directory"], ["directory", "glare"]):
        found = [catalog.name for catalog in registry.catalogs(names, conf, scope)]
        folders = [f"the directory {tmp_path / name}" for name in "ba"]
        assert found == (["Glare", *folders] if names[0] == "glare" else [*folders, "Glare"])


def test_a_services_name_contains_its_place(conf: cfg.ConfigOpts) -> None:
    def names(scope: Scope) -> list[str]:
        return [catalog.name for catalog in registry.catalogs(["glare", "murano"], conf, scope)]

    assert names(Scope(_session())) == ["Glare", "Murano's API"]
    conf.set_override("home_region", "north")
    assert names(Scope(_session())) == [
        "Glare of the region north",
        "Murano's API of the region north",
    ]
    south = Scope(_session(), region_name="south")
    assert names(south)[1] == "Murano's API of the region south"
    conf.set_override("url", "http://127.0.0.1:9", "glare")
    assert names(south)[0] == "Glare at http://127.0.0.1:9"


def test_a_catalogue_shows_its_place_and_project(
    conf: cfg.ConfigOpts, tmp_path: pathlib.Path
) -> None:
    scope = Scope(_session(), "mine", "south")
    (catalog,) = registry.catalogs(["glare"], conf, scope)

    assert repr(catalog) == "<GlareCatalog: Glare of the region south, project mine>"
    assert repr(DirectoryCatalog(tmp_path)) == f"<DirectoryCatalog: the directory {tmp_path}>"


def test_an_unknown_catalogue_is_reported_with_the_installed_ones(
    conf: cfg.ConfigOpts,
) -> None:
    with pytest.raises(loader.UnknownCatalog) as refusal:
        registry.catalogs(["directory", "glense"], conf, Scope())

    for word in ("'glense'", "directory, glance, glare, murano", registry.NAMESPACE):
        assert word in str(refusal.value)


def test_a_failing_import_of_a_catalogue_is_reported_with_the_reason(
    site: Site, conf: cfg.ConfigOpts
) -> None:
    point = {registry.NAMESPACE: {"bad": "bad_catalog:catalogs"}}
    site.install("bad", "1.0", point, {"bad_catalog": "raise ImportError('no libshelf')"})

    with pytest.raises(loader.UnknownCatalog, match=r"'bad'.*bad_catalog.*no libshelf"):
        registry.catalogs(["bad"], conf, Scope())


def test_a_name_that_two_register_is_refused(site: Site, conf: cfg.ConfigOpts) -> None:
    point = {registry.NAMESPACE: {"glare": "shelf:catalogs"}}
    site.install("shelf", "1.0", point, {"shelf": SHELF})

    with pytest.raises(loader.UnknownCatalog, match="glare-murano and shelf"):
        registry.catalogs(["glare"], conf, Scope(_session()))


def test_glare_needs_a_session(conf: cfg.ConfigOpts) -> None:
    with pytest.raises(loader.CatalogError, match="glare needs a session"):
        registry.catalogs(["glare"], conf, Scope())


def test_options_that_another_has_registered_already_stay_as_they_are(conf: cfg.ConfigOpts) -> None:
    conf.register_opt(cfg.StrOpt("url", help="Another's words.", default="http://glare"), "glare")

    (found,) = registry.catalogs(["glare"], conf, Scope(_session()))

    assert found.name == "Glare at http://glare"


def test_the_groups_own_tls_options_are_used_if_any_is_set(conf: cfg.ConfigOpts) -> None:
    options.register(conf, glare.OPTIONS)
    scope = Scope(_session())

    assert sessions.for_service(conf, "glare", scope) is scope.session
    conf.set_override("insecure", True, "glare")
    conf.set_override("timeout", 7, "glare")
    session = sessions.for_service(conf, "glare", scope)
    assert (session.verify, session.timeout) == (False, 7)
    assert scope.session is not None
    assert session.auth is scope.session.auth


def test_importing_the_loader_imports_no_catalogue() -> None:
    code = (
        "import sys, loader; "
        "print(*sorted(m for m in sys.modules if m.startswith('loader.catalogs.')), "
        "*({'glare', 'murano', 'eventlet', 'sqlalchemy', 'glanceclient'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["loader.catalogs.base"]


def test_a_package_is_loaded_from_the_first_catalogue_that_has_it(
    conf: cfg.ConfigOpts, tmp_path: pathlib.Path
) -> None:
    for folder, version in (("first", "1.0.0"), ("second", "1.1.0")):
        content = packages.content("org.app", version)
        packages.write(tmp_path / folder / "org.app" / version, content)
    conf.register_opt(cfg.ListOpt("load_packages_from"), "engine")
    folders = [str(tmp_path / "first"), str(tmp_path / "second")]
    conf.set_override("load_packages_from", folders, "engine")
    catalogs = registry.catalogs(["directory"], conf, Scope())
    package_loader = loader.PackageLoader(catalogs, loader.Cache(tmp_path / "cache"))

    package = package_loader.load("org.app", VersionSpec.of("1"))

    assert str(package.version) == "1.0.0"
