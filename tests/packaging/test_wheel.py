# SPDX-License-Identifier: Apache-2.0

"""The wheel, installed into a new environment for each extra.

``make wheel`` builds the wheel and the environments, and runs these tests. They
run outside the checkout, so that only the installed files can be imported.
"""

import configparser
import contextlib
import email
import os
import pathlib
import subprocess
import zipfile
from collections.abc import Iterator

import pytest
import requests

ROOT = pathlib.Path(__file__).parents[2]
WHEEL = os.environ.get("WHEEL", "")
ENVIRONMENTS = ROOT / ".cache" / "wheel"
SAMPLES = {
    "glare-api.service",
    "glare-murano-sweep.service",
    "glare-murano-sweep.timer",
    "glance-api-paste.ini",
    "glance_api_audit_map.conf",
    "glance-image-import.conf",
    "glance-indexes.sql",
    "glance-murano.conf",
    "glance-policy.yaml",
    "glare.conf",
    "glare_api_audit_map.conf",
    "glare-options.conf",
    "glare-paste.ini",
    "mariadb.sql",
    "policy.yaml",
    "postgresql.sql",
    "property-protections.conf",
    "murano.conf",
    "murano-glare-engine.service",
    "murano-options.conf",
    "murano-paste.ini",
}
# The distributions that an installation without an extra must not need.
SERVICES = {"glance", "glare", "murano", "eventlet", "sqlalchemy", "glanceclient"}
START_SECONDS = 60

# Entry points by the extra that they need.
ENTRY_POINTS = {
    "none": {"glare_murano.catalogs", "io.murano.plugins.packages"},
    "glare": {"oslo.middleware.healthcheck", "oslo.policy.policies"},
    "glance": {"glance.image_import.plugins"},
    "engine": {"glare_murano.catalogs", "io.murano.plugins.packages"},
    "cli": {"glare_murano.catalogs"},
}

pytestmark = pytest.mark.skipif(not WHEEL, reason="make wheel builds the wheel and runs this test")


@pytest.fixture(scope="module")
def files() -> list[str]:
    with zipfile.ZipFile(WHEEL) as wheel:
        return wheel.namelist()


@pytest.fixture
def run(tmp_path: pathlib.Path) -> "Run":
    return Run(tmp_path)


class Run:
    """Runs the programs of an environment in a directory of their own."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def __call__(
        self, extra: str, program: str, *arguments: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [ENVIRONMENTS / extra / "bin" / program, *arguments],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )

    def output(self, extra: str, program: str, *arguments: str) -> str:
        """Return the output of a program, which must succeed."""
        done = self(extra, program, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_wheel_contains_both_typed_packages_and_no_tests(files: list[str]) -> None:
    packages = {name.partition("/")[0] for name in files if ".dist-info/" not in name}

    assert {"glare_murano/py.typed", "loader/py.typed"} <= set(files)
    assert {name for name in packages if not name.endswith(".data")} == {"glare_murano", "loader"}
    assert not [name for name in files if "tests" in pathlib.PurePath(name).parts]


def test_wheel_contains_every_module(files: list[str]) -> None:
    modules = {
        str(path.relative_to(ROOT))
        for package in ("glare_murano", "loader")
        for path in (ROOT / package).rglob("*.py")
    }

    assert {name for name in files if name.endswith(".py")} == modules


def test_wheel_contains_the_sample_files(files: list[str]) -> None:
    samples = [name for name in files if ".data/data/etc/glare-murano/" in name]

    assert {pathlib.PurePath(name).name for name in samples} == SAMPLES


def test_metadata_names_author_urls_and_pythons(files: list[str]) -> None:
    with zipfile.ZipFile(WHEEL) as wheel:
        (name,) = (name for name in files if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(wheel.read(name))
    classifiers = metadata.get_all("Classifier", [])

    assert metadata["Author"]
    assert metadata["License"] == "Apache-2.0"
    assert metadata.get_all("Project-URL")
    assert metadata["Requires-Python"] == ">=3.11"
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    assert {"glare", "glance", "engine", "cli"} <= set(metadata.get_all("Provides-Extra", []))
    (imghdr,) = (r for r in metadata.get_all("Requires-Dist", []) if "standard-imghdr" in r)
    assert 'python_version >= "3.13"' in imghdr
    assert 'extra == "engine"' in imghdr


@pytest.mark.parametrize("extra", ["none", "glare", "glance", "engine", "cli"])
def test_installation_is_consistent(run: Run, extra: str) -> None:
    run.output(extra, "python", "-m", "pip", "check")


def test_loader_works_without_services(run: Run) -> None:
    script = (
        "import importlib.util, loader, glare_murano.package\n"
        f"print(*(name for name in {sorted(SERVICES)} if importlib.util.find_spec(name)))\n"
        "print(loader.__file__)\n"
    )
    installed, path = run.output("none", "python", "-c", script).splitlines()

    assert not installed
    assert path.startswith(str(ENVIRONMENTS / "none"))


@pytest.mark.parametrize("extra", ENTRY_POINTS)
def test_entry_points_load(run: Run, extra: str) -> None:
    script = (
        "from importlib import metadata\n"
        "for point in metadata.distribution('glare-murano').entry_points:\n"
        f"    if point.group in {ENTRY_POINTS[extra]}:\n"
        "        point.load()\n"
        "        print(point.group)\n"
    )

    assert set(run.output(extra, "python", "-c", script).split()) == ENTRY_POINTS[extra]


def test_engine_prints_its_help(run: Run) -> None:
    assert "--config-file" in run.output("engine", "murano-glare-engine", "--help")


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        ("glare-murano-manage", "glare"),
        ("glare-murano-server", "glare"),
        ("murano-glare-engine", "engine"),
    ],
)
def test_program_names_the_extra_that_is_missing(run: Run, program: str, extra: str) -> None:
    done = run("none", program, "--help")

    assert done.returncode == 1
    assert f"'.[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_openstack_command_starts_with_the_extra_cli(run: Run) -> None:
    assert run.output("cli", "openstack", "--version").startswith("openstack ")


@pytest.mark.parametrize(
    ("extra", "namespace", "sample"),
    [
        ("glare", "glare_murano", "glare-options.conf"),
        ("none", "glare_murano.loader", "murano-options.conf"),
    ],
)
def test_sample_lists_the_present_options(
    run: Run, extra: str, namespace: str, sample: str
) -> None:
    options = run.output(extra, "oslo-config-generator", "--namespace", namespace)

    assert _sample(extra, sample).read_text() == options, "make samples writes it again"


def test_sample_policy_lists_the_present_rules(run: Run) -> None:
    rules = run.output("glare", "oslopolicy-sample-generator", "--namespace", "glare_murano")
    defaults = {line for line in rules.splitlines() if line.startswith('#"')}

    assert defaults
    assert defaults <= set(_sample("glare", "policy.yaml").read_text().splitlines())


def test_sample_of_the_engine_is_valid() -> None:
    sample = configparser.ConfigParser()
    sample.read(_sample("none", "murano.conf"))

    assert sample["engine"]["packages_cache"] == "/var/cache/murano/packages"


def test_server_answers(run: Run) -> None:
    with _server(run) as url:
        _check_glare(url)


@contextlib.contextmanager
def _server(run: Run) -> Iterator[str]:
    """Run the installed development server, and give its URL."""
    command = [ENVIRONMENTS / "glare" / "bin" / "glare-murano-server", "--port", "0"]
    with subprocess.Popen(
        [*command, "--state-dir", run.directory],
        cwd=run.directory,
        env=run.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()
        assert server.wait(timeout=START_SECONDS) == 0


def _check_glare(url: str) -> None:
    headers = {"X-Auth-Token": "admin:admin:admin"}
    artifacts = requests.get(f"{url}/artifacts/murano", headers=headers, timeout=START_SECONDS)

    assert artifacts.json()["artifacts"] == []
    for path in ("/healthcheck", "/metrics"):
        assert requests.get(url + path, timeout=START_SECONDS).status_code == 200


def _sample(extra: str, name: str) -> pathlib.Path:
    return ENVIRONMENTS / extra / "etc" / "glare-murano" / name
