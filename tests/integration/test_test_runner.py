# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-test-runner``, with the real engine and the real Glare."""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from examples import demo
from glare_murano.package import VersionSpec
from loader.authoring import package_template
from loader.engine import adapter, test_cases, test_runner
from loader.errors import CatalogError
from tests import packages, processes
from tests.integration import publish, tasks

pytestmark = pytest.mark.programs

_FIXTURE = """\
Namespaces: {{test: io.murano.test, app: {0}.app, lib: {0}}}
Name: {0}.{1}
Extends: test:TestFixture
"""

_FAILING = """\
Methods:
  setUp:
    Body: [{$.expected: 2}]
  testEqual:
    Body:
      - $.check(1)
  testPass:
    Body:
      - $.check(2)
  testThrow:
    Body:
      - $.expected: 3
      - Throw: NoRoom
        Message: none left
  tester:
    Body: [Throw: NotATest]
  check:
    Arguments:
      - number:
          Contract: $.int()
    Body:
      - $.assertEqual($.expected, $number)
  tearDown:
    Body:
      - If: $.expected != 2
        Then: [$.missing()]
Properties:
  expected:
    Contract: $.int()
    Usage: Runtime
"""

_ENDLESS = """\
Methods:
  testEndless:
    Body:
      - While: (true)
        Do:
          - $x: regex("^(a+)+$").matches(a * 40 + b)
  testNext:
    Body: [$.assertTrue(1 = 1)]
"""

_CONTROLLING = """\
Methods:
  "test\\e[31m":
    Body:
      - $text: "log\\e[2J"
      - logger(tests).info($text)
      - Throw: NoRoom
        Message: "none\\e]0;title\\a left"
"""

_VERSIONS = """\
Methods:
  testVersions:
    Body:
      - $.assertEqual('1.1.0', new(lib:Thing).version())
      - $.assertEqual('2.0.0', new(app:Thing).version())
"""

_NEW = "new('lib:Thing').version()"


def run(home: pathlib.Path, *arguments: object) -> Any:
    """Run the command, with the configuration and the cache of a user in a directory."""
    command = [sys.executable, "-m", "loader.engine.test_runner", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=processes.ROOT,
        env={
            **os.environ,
            "OS_CLIENT_CONFIG_FILE": str(home / "clouds.yaml"),
            "XDG_CACHE_HOME": str(home / "cache"),
        },
    )


@pytest.fixture
def write(name: str, tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Write a package with one class, ``NAME.Thing``."""

    def write_package(suffix: str, version: str, code: str, **keys: Any) -> pathlib.Path:
        manifest = packages.manifest(f"{name}{suffix}", version, **keys)
        content = {**packages.files(manifest), "Classes/Thing.yaml": code.encode()}
        return packages.write(tmp_path / "packages" / f"{name}{suffix}-{version}", content)

    return write_package


@pytest.mark.parametrize("package_type", ["Application", "Library"])
def test_the_tests_of_a_new_package_pass(
    package_type: Any, core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    place = tmp_path / "new"
    package_template.create(place, "org.example.web_shop", package_type)

    ended = run(tmp_path, "-p", core_library, place)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "org.example.web_shop 0.1.0: 1 passed, 0 failed" in ended.stdout


def test_a_package_does_not_control_the_terminal(
    core_library: pathlib.Path,
    name: str,
    write: Callable[..., pathlib.Path],
    tmp_path: pathlib.Path,
) -> None:
    code = _FIXTURE.format(name, "Thing") + _CONTROLLING
    place = write("", "1.0.0", code)

    ended = run(tmp_path, "-v", "-p", core_library, place)

    assert ended.returncode == 1, ended.stderr
    assert f"{name}.Thing.test\\x1b[31m ... FAILED\n" in ended.stdout
    assert "\\x1b]0;title\\x07" in ended.stdout
    assert "log\\x1b[2J" in ended.stderr
    assert (ended.stdout + ended.stderr).replace("\n", "").isprintable()
    unknown = run(tmp_path, "-p", core_library, place, "testOther")
    assert unknown.returncode == 2
    assert unknown.stderr.replace("\n", "").isprintable()


@pytest.mark.usefixtures("engine_conf")
def test_failed_tests_are_named_with_their_places(
    glare_url: str, name: str, write: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    folder = write("", "1.2.0", _FIXTURE.format(name, "Thing") + _FAILING)
    file, test = f"{name} 1.2.0: Classes/Thing.yaml", f"{name}.Thing"
    # The core library comes from the catalogue of an engine's configuration.
    conf = tmp_path / "murano.conf"
    auth = f"auth_type = admin_token\nendpoint = {glare_url}\ntoken = {demo.USER_TOKEN}"
    cache = f"packages_cache = {tmp_path}/packages-cache"
    conf.write_text(f"[engine]\n{cache}\n[glare]\nurl = {glare_url}\n{auth}\n")

    places = ("--config-file", conf, "-p", folder.parent)
    ended = run(tmp_path, *places, f"{name}@1", "testEqual", "Thing")

    assert ended.returncode == 1, ended.stderr
    results, equal, throw, end = ended.stdout.split("\nFAILED ")
    assert results.splitlines() == [
        f"{test}.testEqual ... FAILED",
        f"{test}.testPass ... ok",
        f"{test}.testThrow ... FAILED",
    ]
    assert equal.splitlines() == [
        f"{test}.testEqual",
        f"{file}:25: 2 != 1",
        f'  File "{file}", line 9:9 in method testEqual of type {test}',
        "      $.check(1)",
        f'  File "{file}", line 25:9 in method check of type {test}',
        "      $.assertEqual($.expected, $number)",
    ]
    assert throw.startswith(f"{test}.testThrow\n{file}:16: [NoRoom]: none left\n")
    assert end.startswith(f"{test}.testThrow\n{file}:29: ")
    assert 'Unknown method "missing"' in end
    assert f"\n{name} 1.2.0: 1 passed, 2 failed in " in end
    assert len(list((tmp_path / "packages-cache" / "archives").iterdir())) == 1


def test_a_test_that_computes_without_an_end_fails_as_in_the_engine(
    core_library: pathlib.Path,
    name: str,
    write: Callable[..., pathlib.Path],
    tmp_path: pathlib.Path,
) -> None:
    folder = write("", "1.2.0", _FIXTURE.format(name, "Thing") + _ENDLESS)
    conf = tmp_path / "murano.conf"
    cache = f"packages_cache = {tmp_path}/packages-cache"
    conf.write_text(
        f"[engine]\n{cache}\nblocking_seconds = 1\n[package_loader]\ncatalogs = directory\n"
    )

    ended = run(tmp_path, "--config-file", conf, "-p", core_library, folder)

    assert ended.returncode == 1, ended.stderr
    file, test = f"{name} 1.2.0: Classes/Thing.yaml", f"{name}.Thing"
    assert {f"{test}.testEndless ... FAILED", f"{test}.testNext ... ok"} <= set(
        ended.stdout.splitlines()
    )
    assert f"{file}:9: class {test}: the task computed for more than 1 seconds" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_packages_come_from_the_glare_of_a_cloud_in_two_versions_side_by_side(
    engine_conf: Any,
    glare: Any,
    glare_url: str,
    name: str,
    write: Callable[..., pathlib.Path],
    tmp_path: pathlib.Path,
) -> None:
    library = "Name: {0}.Thing\nMethods:\n  version: {{Body: [{{Return: {1}}}]}}\n"
    app = f"Name: {name}.app.Thing\nMethods:\n  version: {{Body: [{{Return: {_NEW}}}]}}\n"
    tests = _FIXTURE.format(name, "tests.Thing") + _VERSIONS
    folders = [
        *(write("", version, library.format(name, version)) for version in ("1.1.0", "2.0.0")),
        write(".app", "1.0.0", app.replace("lib:", f"{name}."), Require={name: "2"}),
        write(".tests", "1.0.0", tests, Require={name: "1", f"{name}.app": "1"}),
    ]
    # Private ones of the project.
    publish.publish(glare, folders, public=False)
    auth = {"endpoint": glare_url, "token": demo.PUBLISHER_TOKEN}
    entry = {
        "auth_type": "admin_token",
        "auth": auth,
        "artifact_endpoint_override": glare_url,
        "artifact_project_id": demo.PUBLISHER_TOKEN.split(":")[1],
    }
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"here": entry}}))

    ended = run(tmp_path, "--os-cloud", "here", "-v", f"{name}.tests")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith(f"{name}.tests.Thing.testVersions ... ok\n")
    for version in ("1.1.0", "2.0.0"):
        assert f"Package {name} {version} of Glare at {glare_url} was chosen" in ended.stderr


def test_a_missing_package_is_named_and_missing_tests_are_listed(
    conf: Any, name: str, write: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    write("", "1.0.0", f"{_FIXTURE.format(name, 'Thing')}Methods: {{testOne: {{Body: []}}}}")
    write(".sub", "1.0.0", f"Name: {name}.sub.Thing\nExtends: {name}.Thing", Require={name: "1"})
    write(".none", "1.0.0", f"Name: {name}.none.Thing\nMethods: {{testOne: {{Body: []}}}}")
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")
    spec = VersionSpec.of("1")

    with adapter.EnginePackageLoader.for_task(tasks.session()) as loader:
        _, cases = test_runner.load_tests(loader, name, spec, [])
        _, (inherited,) = test_runner.load_tests(loader, f"{name}.sub", spec, [])
        for missing, selected, kind, message in (
            ("", ["testOne", "Two"], test_cases.NoTests, f"called Two; the tests are {name}.Thi"),
            (".none", [], test_cases.NoTests, f"{name}.none 1.0.0 has no tests: no class extends"),
            (".missing", [], CatalogError, f"package {name}.missing in the range <2"),
        ):
            with pytest.raises(kind, match=re.escape(message)):
                test_runner.load_tests(loader, name + missing, spec, selected)

    assert str(inherited) == f"{name}.sub.Thing.testOne"
    for selected in ("testOne", "Thing", "Thing.testOne", f"{name}.Thing", f"{name}.Thing.testOne"):
        assert test_cases.select(cases, [selected]) == cases


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["org.test"], "no source of packages is given: add directories with --path"),
        (["org.test@new"], "'new' is not a valid range"),
        (["{path}"], "{path}: Classes/Thing.yaml, line 5: not valid YAML: "),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str],
    name: str,
    write: Callable[..., pathlib.Path],
    arguments: list[str],
    message: str,
) -> None:
    path = write("", "1.0.0", f"{_FIXTURE.format(name, 'Thing')}Methods: [")

    assert test_runner.main([each.format(path=path) for each in arguments]) == 2

    printed = capsys.readouterr()
    assert printed.err.startswith(f"murano-glare-test-runner: {message.format(path=path)}")
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--help"], 0, "The exit code is 0 if all tests pass, 1 if one fails"),
        (["--version"], 0, "glare-murano "),
        (["-p", "/no/such", "org.test"], 2, "/no/such is not a directory"),
        (["--config-file", "/no/such", "org.test"], 2, "/no/such is not a file"),
        (["--config-file", sys.executable, "org.test"], 2, f"{sys.executable} is not UTF-8 text"),
    ],
)
def test_the_arguments_are_checked_first(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        test_runner.main(arguments)

    assert ended.value.code == code
    printed = capsys.readouterr()
    assert text in " ".join((printed.out + printed.err).split())


def test_only_the_package_is_reported_as_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        test_runner.main([])

    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("the following arguments are required: PACKAGE\n")
