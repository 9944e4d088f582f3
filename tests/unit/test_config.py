# SPDX-License-Identifier: Apache-2.0

"""Loaders as a configuration describes them, while Keystone or a server fails."""

import io
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg, generator

import loader
from examples import load
from glare_murano.package import InvalidArchive, VersionSpec
from loader import config
from loader.catalogs import glare, options
from loader.transport import sessions
from loader.transport.sessions import Scope
from tests import configuration, packages
from tests.unit import faulty
from tests.unit.faulty import Faulty
from tests.unit.stored import Stored

pytestmark = pytest.mark.usefixtures("waits")

Configured = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty.serving(packages.package("org.faulty")) as state:
        yield state


@pytest.fixture
def configured(tmp_path: pathlib.Path) -> Configured:
    """A configuration that was read from a file, of groups of options."""

    def read(**groups: dict[str, Any]) -> cfg.ConfigOpts:
        content = {"engine": {"packages_cache": tmp_path / "cache"}, **groups}
        return configuration.read(tmp_path / "loader.conf", content)

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
    with config.package_loader(conf) as package_loader:
        return str(package_loader.load("org.faulty", VersionSpec.of("1")))


_NONE = {"auth_type": "none", "endpoint": "http://127.0.0.1:9"}
_MISTAKES: list[tuple[dict[str, dict[str, Any]], str]] = [
    ({"glare": {}}, r"set \[glare\] auth_type"),
    ({"glare": {"auth_type": "nonsense"}}, r"\[glare\] auth_type.*'nonsense'.*Choose"),
    ({"glare": {"auth_type": "v3password"}}, r"set \[glare\] auth_url"),
    (
        {"glare": {"auth_type": "v3password", "auth_url": "http://x", "username": "u"}},
        r"\[glare\] auth_type = v3password .*user_domain_id",
    ),
    (
        {"glare": {"auth_section": "nowhere"}},
        r"\[glare\] auth_section: .*Set \[nowhere\] auth_type",
    ),
    (
        {"glare": {"auth_section": "other"}, "other": {"auth_type": "password"}},
        r"set \[other\] auth_url",
    ),
    *(
        ({"package_loader": {"catalogs": names}}, rf"catalogs = {names}: there is no catalogue")
        for names in ("", "directory")
    ),
    ({"glare": {**_NONE, "tls_ciphers": "nonsense"}}, r"\[glare\] tls_ciphers"),
    *(
        (groups, rf"\[{group}\] {message}")
        for group, base in (
            ("glare", {"glare": _NONE}),
            ("murano", {"glare": _NONE, "package_loader": {"catalogs": "murano"}}),
        )
        for options, message in (
            ({"cafile": "/no/such.pem"}, "cafile: /no/such.pem .*No such file.*Name a"),
            ({"certfile": "/no/such.pem"}, "certfile: /no/such.pem .*No such file.*Name a"),
            (
                {"certfile": __file__, "keyfile": "/no/such.pem"},
                "keyfile: /no/such.pem .*No such file.*Name a",
            ),
            ({"certfile": "/"}, "certfile: / .*directory"),
            ({"url": "glare.example.org:9494"}, "url = glare.example.org:9494: expected .*http://"),
            ({"timeout": "0"}, "timeout is 0, .*Set it"),
            ({"timeout": "-1.5"}, "timeout is -1.5, .*Set it"),
            ({"timeout": "nan"}, "timeout is nan, .*Set it"),
        )
        for groups in ({**base, group: {**base.get(group, {}), **options}},)
    ),
]


@pytest.mark.parametrize(("groups", "words"), _MISTAKES)
def test_a_mistake_is_reported_with_the_name_of_the_option(
    configured: Configured, groups: dict[str, dict[str, Any]], words: str
) -> None:
    with pytest.raises(loader.CatalogError, match=words):
        config.package_loader(configured(**groups))


def test_a_mistake_in_the_file_of_reserved_names_is_reported(
    configured: Configured, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "names.yaml"
    conf = configured(glare=_NONE, package_loader={"reserved_names_file": path})
    with pytest.raises(loader.LoaderError, match=r"^\[package_loader\] reserved_names_file: "):
        config.package_loader(conf)
    path.write_text("org: x")
    with pytest.raises(loader.LoaderError, match="line 1: org: expected a list of project ids"):
        config.package_loader(conf)


@pytest.mark.parametrize("private_overrides", [True, False])
def test_the_options_for_names_reach_the_loader(
    configured: Configured, tmp_path: pathlib.Path, private_overrides: bool
) -> None:
    path = tmp_path / "names.yaml"
    path.write_text("org.example: [owner]")
    options = {"reserved_names_file": path, "private_overrides": private_overrides}

    with config.package_loader(configured(glare=_NONE, package_loader=options)) as made:
        assert made._eligibility.private_overrides is private_overrides
        assert not made._eligibility.reserved.allows("org.example.db", "another")


@pytest.mark.parametrize("option", ["request_timeout", "lock_timeout", "plan_seconds"])
@pytest.mark.parametrize("seconds", ["nan", "inf"])
def test_a_limit_without_an_end_is_refused(
    configured: Configured, option: str, seconds: str
) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match=option):
        config.package_loader(configured(glare=_NONE, package_loader={option: seconds}))


def test_the_example_reports_a_mistake_in_one_line(
    configured: Configured,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    configured(glare={"auth_type": "nonsense"})
    arguments = ["load", "--config-file", str(tmp_path / "loader.conf"), "org.faulty"]
    monkeypatch.setattr("sys.argv", arguments)

    assert load.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("load: [glare] auth_type: ")


@pytest.mark.parametrize(
    "unused", [{"cafile": "/no/such.pem", "insecure": "true"}, {"keyfile": "/no/such.pem"}]
)
def test_an_unused_file_may_be_missing(configured: Configured, unused: dict[str, str]) -> None:
    config.package_loader(configured(glare={**_NONE, **unused})).close()


def test_a_directory_may_contain_the_certificates_of_authorities(
    configured: Configured, tmp_path: pathlib.Path
) -> None:
    conf = configured(glare={**_NONE, "cafile": tmp_path})

    with config.package_loader(conf) as package_loader:
        (catalog,) = cast(Any, package_loader)._catalogs

    assert catalog._client.session.verify == str(tmp_path)


@pytest.mark.parametrize("option", ksa_loading.get_session_conf_options(), ids=lambda o: o.dest)
def test_every_option_of_a_session_makes_one(
    configured: Configured, option: cfg.Opt, tmp_path: pathlib.Path
) -> None:
    scope = Scope(session=ksa_session.Session())
    conf = configured()
    options.register(conf, glare.OPTIONS)
    assert sessions.for_service(conf, "glare", scope) is scope.session

    (tmp_path / "some.pem").touch()
    values = {"timeout": 5.0, "tls_ciphers": "ECDHE+AESGCM", "tls_min_version": "1.3"}
    value = True if isinstance(option, cfg.BoolOpt) else str(tmp_path / "some.pem")
    conf.set_override(option.dest, values.get(option.dest, value), "glare")
    assert sessions.for_service(conf, "glare", scope) is not scope.session


def test_options_reach_the_catalogues_and_the_fetcher(
    configured: Configured, tmp_path: pathlib.Path
) -> None:
    for name in ("certificate.pem", "key.pem"):
        (tmp_path / name).touch()
    pair = (str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem"))
    files = {"certfile": pair[0], "keyfile": pair[1]}
    conf = configured(
        DEFAULT={"home_region": "here"},
        glare={**_NONE, **files, "endpoint_type": "internalURL"},
        murano={**files, "endpoint_type": "adminURL"},
        package_loader={"catalogs": "glare,murano", "fetch_workers": 7, "plan_seconds": 9},
    )

    with config.package_loader(conf) as package_loader:
        inside = cast(Any, package_loader)

    own, other = inside._catalogs
    assert [own._client.interface, other._client.interface] == ["internalURL", "adminURL"]
    assert [own._client.region_name, other._client.region_name] == ["here", "here"]
    assert [own._client.session.cert, other._client.session.cert] == [pair] * 2
    assert inside._fetcher._workers == 7
    assert inside._plan_seconds == 9


@pytest.mark.parametrize("catalog", ["directory", "glare", "murano"])
def test_an_operator_raises_the_limits_of_packages(
    server: Faulty, configured: Configured, tmp_path: pathlib.Path, catalog: str
) -> None:
    content = packages.content("org.faulty")
    server.archive = packages.zipped({**content, **{f"Resources/{n}": b"" for n in range(10_000)}})
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "large.zip").write_bytes(server.archive)

    def load(**limits: int) -> str:
        place = {"url": server.url}
        engine = {
            "load_packages_from": tmp_path / "packages",
            # An attempt does not find the archive of an earlier one.
            "packages_cache": tmp_path / f"cache{limits}",
        }
        groups = {"glare": {**place, **_credentials(server)}, "murano": place, "engine": engine}
        return _loaded(configured(**groups, package_loader={"catalogs": catalog, **limits}))

    with pytest.raises((InvalidArchive, loader.NoSuchPackage)):
        load()
    assert "org.faulty 1.0.0" in load(max_archive_entries=20_000)


def test_a_download_above_the_operators_limit_is_refused(
    server: Faulty, configured: Configured
) -> None:
    glare = {"url": server.url, **_credentials(server)}
    conf = configured(glare=glare, package_loader={"catalogs": "glare", "max_archive_size": 100})

    with pytest.raises(InvalidArchive, match=r"the archive of org.faulty 1.0.0.*at most 100 are"):
        _loaded(conf)


def test_a_cache_that_is_not_kept_has_the_operators_limits(configured: Configured) -> None:
    conf = configured(
        engine={"enable_packages_cache": False}, package_loader={"max_archive_size": 100}
    )

    with config.open_cache(conf) as cache, pytest.raises(InvalidArchive, match="at most 100 are"):
        Stored.named("org.large").take_archive(cache)


def test_the_sample_has_each_option_that_is_read(configured: Configured) -> None:
    conf = configured(package_loader={"catalogs": "directory,glare,glance,murano"})
    for group in ("glance", "glare"):
        ksa_loading.register_auth_conf_options(conf, group)
    config.package_loader(conf, Scope(session=ksa_session.Session())).close()
    for known in (config.API_OPTIONS, config.SERVICE_OPTIONS):
        options.register(conf, known)

    read = {
        f"{group}.{name}"
        for group in ("engine", "glance", "glare", "murano", "package_loader")
        for name in conf[group]
    }
    assert _in_sample() == read | {"DEFAULT.home_region"}


def _in_sample() -> set[str]:
    """The options that ``oslo-config-generator`` writes, as ``group.name``."""
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(["--namespace", "glare_murano.loader"], default_config_files=[])
    sample = io.StringIO()
    generator.generate(conf, sample)
    found, group = set(), ""
    for line in sample.getvalue().splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        elif option := re.match(r"#(\w+) =", line):
            found.add(f"{group}.{option[1]}")
    return found


@pytest.mark.parametrize("catalog", ["glare", "murano"])
def test_a_keystone_that_hangs_ends_in_a_timeout(
    server: Faulty, configured: Configured, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "DEFAULT_TIMEOUT", (0.2, 0.2))
    server.tokens, server.identity_faults = set(), [faulty.hang] * 20
    groups = {"glare": _credentials(server), "package_loader": {"catalogs": catalog}}
    groups.setdefault(catalog, {})["url"] = server.url

    with pytest.raises(loader.CatalogUnavailable, match="timed out"):
        _loaded(configured(**groups))


@pytest.mark.parametrize(("option", "expected"), [({}, None), ({"timeout": 7}, 7.0)])
def test_sessions_have_the_timeout_that_is_configured_or_the_usual_one(
    configured: Configured, option: dict[str, Any], expected: float | None
) -> None:
    conf = configured(
        glare={"insecure": True, "auth_type": "none", "endpoint": "http://x", **option},
        murano={"insecure": True, **option},
        package_loader={"catalogs": "glare,murano"},
    )

    with config.package_loader(conf) as package_loader:
        own, other = cast(Any, package_loader)._catalogs

    for session in (own._client.session, other._client.session):
        assert session.timeout == (expected or sessions.DEFAULT_TIMEOUT)
