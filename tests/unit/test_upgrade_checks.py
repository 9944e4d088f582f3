# SPDX-License-Identifier: Apache-2.0

"""The results of checks, and the libraries that an installation needs."""

import importlib.metadata
import json
import pathlib
import platform
from collections.abc import Iterator

import pytest
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from glare_murano import upgrade_checks
from glare_murano.package.sandbox import walls
from glare_murano.upgrade_checks import (
    Finding,
    UpgradeCheck,
    find_missing_walls,
    find_unmet_requirements,
)


def _nothing() -> Iterator[Finding]:
    yield from ()


def _warning() -> Iterator[Finding]:
    yield Finding("slow", is_error=False)


def _error() -> Iterator[Finding]:
    yield Finding("wrong")
    yield Finding("slow", is_error=False)


def test_the_worst_finding_of_a_check_is_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    command = UpgradeCheck("Title", {"One": _nothing, "Two": _warning, "Three": _error})

    code = upgradecheck.main(cfg.ConfigOpts(), "p", command, ["upgrade", "check", "--json"], [])

    assert code == 2
    output = json.loads(capsys.readouterr().out)
    assert output["name"] == "Title"
    assert [(check["check"], check["result"], check["details"]) for check in output["checks"]] == [
        ("One", 0, None),
        ("Two", 1, "slow"),
        ("Three", 2, "wrong\nslow"),
    ]


def test_a_warning_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    command = UpgradeCheck("Title", {"One": _nothing, "Two": _warning})

    assert upgradecheck.main(cfg.ConfigOpts(), "p", command, ["upgrade", "check"], []) == 1
    assert "Details: slow" in capsys.readouterr().out


def test_a_configuration_that_cannot_be_read_is_one_clear_line(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged.conf"
    damaged.write_text("[DEFAULT]\nno value\n")
    command = UpgradeCheck("Title", {"One": _nothing})

    for file in (tmp_path / "missing.conf", damaged):
        arguments = ["--config-file", str(file), "upgrade", "check"]
        assert (
            upgrade_checks.run("the-program", cfg.ConfigOpts(), "p", command, arguments, []) == 255
        )
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("the-program: Failed to ")
        assert str(file) in line


def test_installed_libraries_of_the_engine_are_as_required() -> None:
    assert [*find_unmet_requirements("engine")] == []


@pytest.mark.parametrize("version", ["2.0", None])
def test_a_library_of_another_version_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    installed = importlib.metadata.version

    def find(name: str) -> str:
        if name != "yaql":
            return installed(name)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", find)

    (finding,) = find_unmet_requirements("engine")
    assert not finding.is_error
    assert f"yaql is {version or 'missing'}, but >=3 is required" in finding.message
    # Glare does not need it.
    assert [*find_unmet_requirements("glare")] == []


def test_a_kernel_without_landlock_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*find_missing_walls()] == []
    monkeypatch.setattr(walls, "abi", lambda: 0)
    (found,) = find_missing_walls()
    assert not found.is_error
    assert found.message.startswith("the kernel has no Landlock")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    _, found = find_missing_walls()
    assert not found.is_error
    assert "no system calls are refused to child processes on riscv64" in found.message
