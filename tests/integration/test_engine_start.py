# SPDX-License-Identifier: Apache-2.0

"""The start of the engine's service: the check of its configuration."""

import configparser
import gc
import json
import logging
import os
import pathlib
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from oslo_config import cfg
from oslo_service import service as oslo_service

from examples import demo
from glare_murano.package.sandbox import walls
from loader import config
from loader.catalogs import options as catalog_options
from loader.engine import result_queue, service, shutdown, start_checks
from loader.engine.cells import cell_calls
from tests import processes
from tests.integration import tasks

pytestmark = pytest.mark.programs

_UNIT = processes.ROOT / "loader" / "engine" / "etc" / "murano-glare-engine.service"

_CONFIGURATION = """\
[DEFAULT]
transport_url = rabbit://nobody@127.0.0.1:1/
[engine]
packages_cache = {cache}
[glare]
url = http://127.0.0.1:9494
[package_loader]
fetch_workers = {workers}
"""


def _run(
    folder: pathlib.Path,
    *arguments: str,
    workers: object = 4,
    files: Iterable[pathlib.Path] = (),
    environment: Mapping[str, str] | None = None,
) -> Any:
    configuration = folder / "murano.conf"
    configuration.write_text(_CONFIGURATION.format(cache=folder / "cache", workers=workers))
    command = [sys.executable, "-W", "ignore", "-m", "loader.engine.service", *arguments]
    for file in (configuration, *files):
        command += ["--config-file", str(file)]
    environment = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


@pytest.fixture
def options(conf: Any) -> Iterator[Any]:
    """The configuration, to be changed by one test."""
    catalog_options.register(conf, config.OPTIONS)
    yield conf
    for option, group in (
        ("catalogs", "package_loader"),
        ("lock_file", "package_loader"),
        ("packages_cache", "engine"),
        ("agent_timeout", "engine"),
        ("request_seconds", "engine"),
        ("enabled_plugins", "murano"),
    ):
        conf.clear_override(option, group)


def test_a_valid_configuration_says_where_packages_come_from(tmp_path: pathlib.Path) -> None:
    ended = _run(tmp_path, "--check")

    assert ended.returncode == 0, ended.stderr
    expected = f"Packages come from Glare at http://127.0.0.1:9494, and are kept in {tmp_path}"
    assert expected in ended.stdout


def test_the_check_logs_how_many_prefixes_are_reserved(tmp_path: pathlib.Path) -> None:
    names, more = tmp_path / "names.yaml", tmp_path / "more.conf"
    names.write_text("io.murano: [core]\norg.example: []\n")
    more.write_text(f"[package_loader]\nreserved_names_file = {names}\n")

    ended = _run(tmp_path, "--check", files=[more])

    assert ended.returncode == 0, ended.stderr
    assert f"Names under 2 prefixes are reserved, by {names}" in ended.stdout


@pytest.mark.parametrize(
    ("options", "code", "found"),
    [
        ("", 0, {}),
        ("[engine]\nrequest_seconds = 12\n", 1, {"Limits of time": "request_seconds = 12"}),
        (
            "[engine]\nrequest_seconds = 12\ntask_seconds = 1\npackages_service = glaer\n",
            2,
            {"Limits of time": "task_seconds = 1:", "Source of packages": "glaer: murano-api and"},
        ),
        ("[heat]\nkeyfile = /etc/heat.key\n", 1, {"Cells": "[heat] keyfile: packages cannot"}),
        ("[engine]\npackage_loader = murano\n", 1, {"Cells": "package_loader = murano: code of"}),
        ("[package_loader]\ncatalogs = glaer\n", 2, {"Cache and catalogues": "'glaer' is not"}),
    ],
)
def test_the_upgrade_check_prints_what_all_checks_find(
    tmp_path: pathlib.Path, options: str, code: int, found: dict[str, str]
) -> None:
    configuration = tmp_path / "murano.conf"
    text = _CONFIGURATION.format(cache=tmp_path / "cache", workers=4)
    configuration.write_text(text + options)
    command = [sys.executable, "-W", "ignore", "-m", "loader.engine.status"]
    command += ["--config-file", str(configuration), "upgrade", "check", "--json"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    checks = json.loads(done.stdout.splitlines()[-1])["checks"]
    details = {check["check"]: check["details"] for check in checks if check["result"]}
    assert done.returncode == code, details
    assert len(checks) == 10
    assert details.keys() == found.keys()
    for title, message in found.items():
        assert message in details[title]


def test_the_check_of_cells_warns_of_what_they_lack(
    conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[str]:
        return [finding.message for finding in start_checks.upgrade_checks(conf)["Cells"]()]

    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for option in ("task_cells", "request_cells"):
        conf.set_override(option, True, "engine")
    assert found() == []
    monkeypatch.setattr(walls, "abi", lambda: 0)
    monkeypatch.setenv("https_proxy", "http://user:secret@127.0.0.1:3128")
    landlock, proxy = found()
    assert "the kernel has no Landlock" in landlock
    assert "the proxy of the environment has a password" in proxy
    for option in ("task_cells", "request_cells"):
        conf.set_override(option, False, "engine")
    (without,) = found()
    assert "[engine] task_cells = false, [engine] request_cells = false: code of" in without


def test_the_engine_does_not_start_if_no_cell_can_run(tmp_path: pathlib.Path) -> None:
    # Each new Python process whose PYTHONPATH has this directory runs the file.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'glare_murano.package.sandbox.fork_server' in sys.orig_argv: os._exit(7)\n"
    )
    more = tmp_path / "more.conf"

    def check(options: str) -> Any:
        more.write_text(f"[engine]\n{options}")
        path = os.pathsep.join((str(tmp_path), str(processes.ROOT)))
        return _run(tmp_path, "--check", files=[more], environment={"PYTHONPATH": path})

    ended = check("")
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.startswith("murano-glare-engine: the cell of the check has failed: ")
    assert "so no package can be deployed" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    ended = check("task_cells = false\nrequest_cells = false\n")
    assert ended.returncode == 0, ended.stderr
    assert "code of packages runs in the engine's process" in ended.stdout


_BROKER = """\
[rabbitmq]
host = {host}
login = {login}
password = {password}
virtual_host = {virtual_host}
"""


@pytest.mark.parametrize(
    ("host", "login", "password", "virtual_host", "shared"),
    [
        ("rabbit.example.org", "murano", "secret", "agents", "user murano"),
        ("other.example.org", "murano", "secret", "agents", "user murano"),
        ("rabbit.example.org", "agents", "other", "/", "virtual host /"),
        ("rabbit.example.org", "agents", "other", "agents", None),
        ("other.example.org", "agents", "other", "/", None),
    ],
)
def test_the_check_warns_if_the_agents_share_the_rabbitmq_of_the_services(
    tmp_path: pathlib.Path,
    host: str,
    login: str,
    password: str,
    virtual_host: str,
    shared: str | None,
) -> None:
    broker = tmp_path / "broker.conf"
    settings = {"host": host, "login": login, "password": password, "virtual_host": virtual_host}
    url = "[DEFAULT]\ntransport_url = rabbit://murano:secret@rabbit.example.org:5672/\n"
    broker.write_text(url + _BROKER.format(**settings))

    ended = _run(tmp_path, "--check", files=[broker])

    assert ended.returncode == 0, ended.stderr
    assert (f"has the {shared} of the services" in ended.stdout + ended.stderr) == bool(shared)
    assert "secret" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "[engine]\nreachable_endpoints = example.org\n",
            "[engine] reachable_endpoints = example.org: expected HOST:PORT",
        ),
        (
            "[engine]\nreachable_endpoints = http://example.org:80\n",
            "[engine] reachable_endpoints = http://example.org:80: expected HOST:PORT",
        ),
        (
            "[engine]\nreachable_endpoints = example.org:99999\n",
            "[engine] reachable_endpoints = example.org:99999: expected HOST:PORT",
        ),
        ("[package_loader]\nreserved_names_file = /nowhere/names.yaml\n", "/nowhere/names.yaml"),
        ("[engine]\nclass_configs = {0}\n", "io.murano.Environment-0.yaml"),
    ],
)
def test_a_mistake_in_what_packages_reach_ends_the_service(
    tmp_path: pathlib.Path, options: str, message: str
) -> None:
    (tmp_path / "io.murano.Environment-0.yaml").write_text("regionConfigs: {one: {}}\n")
    more = tmp_path / "more.conf"
    more.write_text(options.format(tmp_path))

    ended = _run(tmp_path, "--check", files=[more])

    assert ended.returncode == 1
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_an_invalid_option_ends_the_service_in_one_line(tmp_path: pathlib.Path) -> None:
    ended = _run(tmp_path, workers="many")

    assert ended.returncode == 1
    assert ended.stderr.startswith("murano-glare-engine: ")
    assert "fetch_workers" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_negative_time_to_stop_is_refused(tmp_path: pathlib.Path) -> None:
    configuration = tmp_path / "murano.conf"
    configuration.write_text("[engine]\ngraceful_stop_seconds = -1\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(configuration)])
    catalog_options.register(conf, config.SERVICE_OPTIONS)

    with pytest.raises(cfg.ConfigFileValueError, match="graceful_stop_seconds"):
        _ = conf.engine.graceful_stop_seconds


def test_a_task_has_more_time_than_an_agent(options: Any, caplog: Any) -> None:
    service.check(options)
    assert "request_seconds" not in caplog.text
    options.set_override("agent_timeout", 7200, "engine")
    with pytest.raises(service.InvalidConfiguration, match=r"task_seconds = 7200: .* agent_ti"):
        service.check(options)


def test_a_late_answer_of_requests_is_a_warning(options: Any, caplog: Any) -> None:
    options.set_override("request_seconds", 12, "engine")
    service.check(options)

    assert "[engine] request_seconds = 12: murano-api waits 15 seconds" in caplog.text


def test_systemd_waits_for_the_longest_stop() -> None:
    unit = configparser.ConfigParser()
    unit.read(_UNIT)
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    catalog_options.register(conf, config.SERVICE_OPTIONS)

    assert unit["Service"].getint("TimeoutStopSec") >= shutdown.longest_stop(conf)
    # All signals but the last go to the main process alone.
    assert unit["Service"]["KillMode"] == "mixed"


def test_the_help_says_what_the_command_is(tmp_path: pathlib.Path) -> None:
    assert (
        "Run Murano's engine with packages in several versions" in _run(tmp_path, "--help").stdout
    )


@pytest.mark.parametrize(
    ("group", "option", "value", "message"),
    [
        (
            "engine",
            "packages_service",
            "glare",
            r"\[engine\] packages_service = glare: murano-api .*package_loader is murano",
        ),
        (
            "package_loader",
            "catalogs",
            ["directory", "glaer"],
            r"\[package_loader\] catalogs = directory, glaer: the catalogue 'glaer' is not",
        ),
        (
            "package_loader",
            "lock_file",
            "/no/such.lock",
            r"\[package_loader\] lock_file = /no/such.lock: there is no lock file",
        ),
        (
            "engine",
            "packages_cache",
            "/proc/packages",
            r"\[engine\] packages_cache = /proc/packages: cannot make directories",
        ),
        (
            "murano",
            "enabled_plugins",
            ["a-plugin"],
            r"\[murano\] enabled_plugins = a-plugin: no installed distribution of this name",
        ),
    ],
)
def test_a_wrong_option_is_named_with_its_value(
    options: Any, group: str, option: str, value: object, message: str
) -> None:
    options.set_override(option, value, group)

    with pytest.raises(service.InvalidConfiguration, match=message):
        service.check(options)


def test_murano_s_own_loader_stays_selectable(
    options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    options.set_override("package_loader", "murano", "engine")

    with caplog.at_level(logging.INFO):
        service.check(options)

    assert "Packages come from Murano's API" in caplog.text


def test_an_engine_without_rabbitmq_starts_and_says_what_it_does_not_know(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "murano.conf").write_text(_CONFIGURATION.format(cache=tmp_path, workers=4))
    command = [sys.executable, "-W", "ignore", "-m", "loader.engine.service"]
    command += ["--config-file", tmp_path / "murano.conf"]
    output = tmp_path / "engine.out"

    with processes.running(command, output) as process:
        processes.wait_until(
            lambda: (
                "Whether RabbitMQ keeps results for murano-api is not known" in (output.read_text())
            ),
            "the warning",
        )
        processes.wait_until(lambda: "retrying in 3.0 seconds" in output.read_text(), "the service")
        assert process.poll() is None


def test_another_driver_than_that_of_rabbitmq_is_a_warning(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = tmp_path / "murano.conf"
    configuration.write_text("[DEFAULT]\ntransport_url = fake://\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(configuration)])

    result_queue.check(conf)

    assert "transport_url: only RabbitMQ reports a message that reaches no queue" in caplog.text


def test_a_task_without_a_loader_reports_the_reason(options: Any) -> None:
    options.set_override("packages_cache", "/proc/packages", "engine")
    model = {"Objects": None, "project_id": demo.PROJECT, "user_id": "alice"}

    result = tasks.run_model(model)

    assert result["action"]["isException"]
    assert "/proc/packages" in result["action"]["result"]["message"]
    assert result["model"] == model


def test_the_engine_s_own_objects_are_excluded_from_collections(
    conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is stopped where it would start to take tasks."""
    frozen: list[int] = []

    class Started(Exception):
        pass

    def start(*_: object, **__: object) -> None:
        frozen.append(gc.get_freeze_count())
        raise Started

    catalog_options.register(conf, config.SERVICE_OPTIONS)
    monkeypatch.setattr(oslo_service.ServiceLauncher, "launch_service", start)
    conf.set_override("engine_workers", 1, "engine")
    try:
        with pytest.raises(Started):
            shutdown.serve(conf)
    finally:
        conf.clear_override("engine_workers", "engine")
        gc.unfreeze()

    # Murano's modules alone have this many objects.
    assert frozen[0] > 100_000


@pytest.fixture
def hard_limit() -> Iterator[int]:
    """Allow this process 1024 open files for a test, and return how many it may allow itself."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_cells_have_half_of_the_files_of_the_engine(conf: Any, hard_limit: int) -> None:
    assert cell_calls.settings("", [], seconds=1).files == 512
    shutdown._allow_many_files()
    raised = min(hard_limit, 65_536)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (raised, hard_limit)
    assert cell_calls.settings("", [], seconds=1).files == min(4096, raised // 2)


def test_the_limit_of_open_files_is_not_raised_further_than_cells_need(
    hard_limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutdown, "_MAX_FILES", 2048)
    shutdown._allow_many_files()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2048, hard_limit)
