# SPDX-License-Identifier: Apache-2.0

"""Loaders as operators and programs make them."""

import pathlib
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import requests
from oslo_config import cfg

import loader
from glare_murano.package import VersionSpec
from loader import config
from loader.transport.sessions import Scope
from tests import configuration, packages
from tests.functional import connections
from tests.functional.client import Client
from tests.unit import faulty

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def configured(glare: Client, tmp_path: pathlib.Path) -> Callable[..., cfg.ConfigOpts]:
    """A configuration that was read from a file, with more lines if need be."""

    def read(**groups: dict[str, Any]) -> cfg.ConfigOpts:
        content: dict[str, dict[str, Any]] = {
            "glare": {
                "url": glare.url,
                "auth_type": "admin_token",
                "endpoint": glare.url,
                "token": glare.token,
            },
            "engine": {"packages_cache": tmp_path / "cache"},
        }
        for group, values in groups.items():
            content.setdefault(group, {}).update(values)
        return configuration.read(tmp_path / "loader.conf", content)

    return read


@pytest.fixture
def publish(admin: Client, name: str) -> Callable[..., str]:
    """Publishes a package for every project, since a bare token has none; returns its name."""

    def publish_one(last: str, version: str = "1.2.0", size: int = 0, **keys: Any) -> str:
        fqn = f"{name}.{last}"
        content = packages.content(fqn, version, **keys)
        content["Resources/large"] = fqn.encode() * (size // len(fqn))
        content["Resources/dense"] = random.Random(fqn).randbytes(size * 3 // 4)
        admin.publish(fqn, version, packages.zipped(content), public=True)
        return fqn

    return publish_one


def test_a_configuration_makes_a_loader(
    publish: Callable[..., str], configured: Callable[..., cfg.ConfigOpts], tmp_path: pathlib.Path
) -> None:
    name = publish("db")

    with config.package_loader(configured()) as package_loader:
        package = package_loader.load(name, VersionSpec.of("1"))

    assert str(package.version) == "1.2.0"
    assert any((tmp_path / "cache" / "archives").iterdir())


def test_catalogues_come_in_the_operators_order(
    publish: Callable[..., str], configured: Callable[..., cfg.ConfigOpts], tmp_path: pathlib.Path
) -> None:
    name = publish("db")
    for version in ("1.1.0", "2.0.0"):
        packages.write(tmp_path / "folder" / version, packages.content(name, version))
    engine = {"load_packages_from": tmp_path / "folder"}

    def loaded(catalogs: str, text: str) -> str:
        conf = configured(engine=engine, package_loader={"catalogs": catalogs})
        with config.package_loader(conf) as package_loader:
            return str(package_loader.load(name, VersionSpec.of(text)).version)

    assert loaded("directory,glare", "1") == "1.1.0"
    assert loaded("glare,directory", "1") == "1.2.0"
    assert loaded("glare,directory", "2") == "2.0.0"
    assert loaded("glare", "1") == "1.2.0"


def test_without_a_cache_nothing_is_kept(
    publish: Callable[..., str], configured: Callable[..., cfg.ConfigOpts], tmp_path: pathlib.Path
) -> None:
    name = publish("db")

    conf = configured(engine={"enable_packages_cache": False})
    with config.package_loader(conf) as package_loader:
        package = package_loader.load(name, VersionSpec.of("1"))
        assert list((tmp_path / "cache").rglob("archives/*"))
        assert pathlib.Path(package.get_resource("large")).is_file()
        assert list((tmp_path / "cache").rglob("manifest.yaml"))

    assert list((tmp_path / "cache").rglob("archives/*")) == []
    assert list((tmp_path / "cache").rglob("manifest.yaml")) == []


def test_the_cache_keeps_to_its_size(
    publish: Callable[..., str], configured: Callable[..., cfg.ConfigOpts]
) -> None:
    names = [publish(letter, size=400_000) for letter in "abcde"]
    conf = configured(package_loader={"max_cache_size": 1})

    def size() -> int:
        with loader.Cache(conf.engine.packages_cache) as cache:
            return cache.size

    # Three archives, but not a fourth.
    for name in names:
        with config.package_loader(conf) as package_loader:
            package_loader.load(name, VersionSpec.of("1"))
    assert 900_000 < size() <= 1024**2

    # For the files of one, the two others give way.
    with config.package_loader(conf) as package_loader:
        package = package_loader.load(names[-1], VersionSpec.of("1"))
        assert pathlib.Path(package.get_resource("small")).parent.is_dir()
        assert 900_000 < size() <= 1024**2


def test_offline_loading_is_the_operators_choice(
    publish: Callable[..., str],
    configured: Callable[..., cfg.ConfigOpts],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = publish("db")
    chosen = {"use_cache_when_offline": True}

    def load(**options: Any) -> str:
        with config.package_loader(configured(**options)) as package_loader:
            return str(package_loader.load(name, VersionSpec.of("1")).version)

    assert load(package_loader=chosen) == "1.2.0"

    def unreachable(*_: Any, **__: Any) -> None:
        raise requests.ConnectionError("the network is down")

    monkeypatch.setattr(requests.Session, "send", unreachable)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    with pytest.raises(loader.CatalogError):
        load(package_loader={"use_cache_when_offline": False})
    assert load(package_loader=chosen) == "1.2.0"


def test_offline_credentials_are_kept_apart_as_projects_are(
    configured: Callable[..., cfg.ConfigOpts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)

    def load(server: faulty.Faulty, user: str) -> str:
        credentials = {
            "url": server.url,
            "auth_type": "v3password",
            "auth_url": f"{server.url}/v3",
            "username": user,
            "password": "secret",
            "user_domain_id": "d",
            "project_id": f"{user}s",
        }
        conf = configured(
            glare=credentials,
            package_loader={"use_cache_when_offline": True, "catalogs": "glare"},
        )
        with config.package_loader(conf) as package_loader:
            return package_loader.load("org.faulty", VersionSpec.of("1")).full_name

    with faulty.serving(packages.package("org.faulty")) as server:
        assert load(server, "one") == "org.faulty"
        server.faults = [faulty.status(503)] * 50
        assert load(server, "one") == "org.faulty"
        with pytest.raises(loader.CatalogUnavailable):
            load(server, "another")


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"package_loader": {"catalogs": "glare,shelf"}}, "'shelf'"),
        ({"engine": {"packages_cache": "/proc/none"}}, "/proc/none"),
        ({"glare": {"auth_type": ""}}, "session"),
    ],
)
def test_mistakes_are_reported_at_once(
    configured: Callable[..., cfg.ConfigOpts], groups: dict[str, Any], words: str
) -> None:
    with pytest.raises(loader.LoaderError, match=words):
        config.package_loader(configured(**groups))


@pytest.mark.parametrize("options", [{}, {"timeout": 50}])
@pytest.mark.parametrize("is_locked", [False, True])
def test_a_closed_loader_leaves_no_connection(
    configured: Callable[..., cfg.ConfigOpts],
    publish: Callable[..., str],
    glare: Client,
    tmp_path: pathlib.Path,
    options: dict[str, Any],
    is_locked: bool,
) -> None:
    name = publish("db")
    chosen = {"catalogs": "glare"}
    if is_locked:
        with config.package_loader(configured(package_loader=chosen)) as made:
            loader.Lock.create(made.catalogs, {name: "1"}).save(tmp_path / "packages.lock")
        chosen["lock_file"] = str(tmp_path / "packages.lock")
    before = connections.ports(glare.url)

    with config.package_loader(configured(glare=options, package_loader=chosen)) as made:
        made.load(name)
        # The connection of a list is kept for the next request.
        made.subclasses(f"{name}.Thing")
        assert connections.ports(glare.url) - before

    assert not connections.ports(glare.url) - before


@pytest.mark.parametrize(("options", "left"), [({}, 1), ({"timeout": 50}, 0)])
def test_the_connections_of_a_programs_session_stay_open(
    configured: Callable[..., cfg.ConfigOpts],
    publish: Callable[..., str],
    glare: Client,
    options: dict[str, Any],
    left: int,
) -> None:
    """With options of its own, a catalogue has a session of its own."""
    name = publish("db")
    scope = Scope(session=glare.session())
    before = connections.ports(glare.url)

    for _ in range(2):
        conf = configured(glare=options, package_loader={"catalogs": "glare"})
        with config.package_loader(conf, scope) as made:
            made.subclasses(f"{name}.Thing")
        assert len(connections.ports(glare.url) - before) == left


def test_a_program_needs_only_a_session(
    glare: Client, project: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    glare.publish("org.db", "1.2.0", packages.package("org.db", "1.2.0"))

    # A bare token does not tell its project.
    nobody = loader.PackageLoader(session=glare.session())
    with nobody, pytest.raises(loader.NoSuchPackage):
        nobody.load("org.db", VersionSpec.of("1"))
    with loader.PackageLoader(session=glare.session(), project_id=project) as package_loader:
        assert package_loader.load("org.db", VersionSpec.of("1")).full_name == "org.db"
    assert (tmp_path / "glare-murano" / "archives").is_dir()


def test_a_loader_needs_catalogues_or_a_session() -> None:
    with pytest.raises(ValueError, match="catalogues, or a session"):
        loader.PackageLoader()


def test_the_sample_names_every_option() -> None:
    sample = {group: {option.name for option in found} for group, found in config.list_opts()}

    assert sample["engine"] >= {"packages_cache", "enable_packages_cache", "load_packages_from"}
    assert sample["glare"] >= {"url", "endpoint_type", "cafile", "timeout", "auth_type"}
    assert sample["package_loader"] >= {"catalogs", "max_cache_size", "use_cache_when_offline"}
    options = [option for _, found in config.list_opts() for option in found]
    assert [option.name for option in options if not option.help] == []


def test_the_example_loads_a_closure(
    publish: Callable[..., str], configured: Callable[..., cfg.ConfigOpts], tmp_path: pathlib.Path
) -> None:
    db = publish("db")
    wiki = publish("wiki", "1.0.0", Require={db: "1"})
    configured()
    command = [sys.executable, "-m", "examples.load", "--config-file", tmp_path / "loader.conf"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=60, cwd=ROOT
        )

    done = run(wiki, "1")
    assert done.returncode == 0, done.stderr
    assert f"{wiki} 1.0.0" in done.stdout
    assert f"{db} 1.2.0" in done.stdout
    assert f"{wiki}.Thing" in done.stdout
    assert f"{db} 1.2.0" in run(db).stdout
    failed = run(wiki, "2")
    assert failed.returncode == 1
    assert "(available: 1.0.0)" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_scope_of_ones_own_is_used(
    glare: Client, configured: Callable[..., cfg.ConfigOpts]
) -> None:
    glare.publish("org.db", "1.2.0", packages.package("org.db", "1.2.0"))
    scope = Scope(session=glare.session(), project_id="strangers")

    package_loader = config.package_loader(configured(), scope)
    with package_loader, pytest.raises(loader.NoSuchPackage):
        package_loader.load("org.db", VersionSpec.of("1"))
