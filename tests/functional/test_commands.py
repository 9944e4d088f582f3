# SPDX-License-Identifier: Apache-2.0

"""What all commands have in common: exit codes, references, safe output."""

import pathlib
import socket
import subprocess
import uuid
from collections.abc import Callable

import pytest
import yaml

from loader.authoring import building
from loader.errors import LoaderError
from tests import packages, processes
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def published(glare: Client, name: str) -> dict[str, str]:
    """Versions of a package, with their ids."""
    return {
        version: glare.publish(name, version, packages.package(name, version))["id"]
        for version in ("1.0.0", "1.10.0", "1.9.0", "2.0.0")
    }


def test_a_name_means_the_newest_version_and_a_range_the_newest_in_it(
    openstack: OpenStack, name: str, published: dict[str, str]
) -> None:
    for reference, version in (
        (name, "2.0.0"),
        (f"{name}@1", "1.10.0"),
        (f"{name}@>=1,<1.10", "1.9.0"),
        (f"{name}@1.0.0", "1.0.0"),
        (published["1.9.0"], "1.9.0"),
    ):
        shown = openstack.json("package", "show", reference)
        assert (shown["version"], shown["id"]) == (version, published[version])


@pytest.mark.usefixtures("published")
def test_versions_are_listed_with_the_newest_first(openstack: OpenStack, name: str) -> None:
    listed = openstack.ok("package", "versions", name, "-f", "value", "-c", "Version")
    assert listed.out.split() == ["2.0.0", "1.10.0", "1.9.0", "1.0.0"]


@pytest.mark.usefixtures("published")
@pytest.mark.usefixtures("waits")
def test_exit_codes_tell_the_kinds_of_failures_apart(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path
) -> None:
    missing = openstack.fails("package", "show", f"{name}@>=3", code=3)
    assert f"package {name}@>=3 was not found" in missing.err
    assert "(available: 2.0.0, 1.10.0, 1.9.0, 1.0.0)" in missing.err

    misused = openstack.fails("package", "show", f"{name}@x", code=2)
    assert "'x' is not a valid range of versions" in misused.err

    closed = f"http://127.0.0.1:{processes.free_port()}"
    unreachable = OpenStack(tmp_path, closed, "user:project:member").fails(
        "package", "show", name, code=4
    )
    assert closed in unreachable.err
    assert "Traceback" not in missing.err + misused.err + unreachable.err


def test_an_unknown_id_is_not_found(openstack: OpenStack) -> None:
    openstack.fails("package", "show", uuid.uuid4(), code=3)


def test_a_private_package_of_another_project_is_not_found(
    tmp_path: pathlib.Path,
    as_user: Callable[[str], Client],
    name: str,
    published: dict[str, str],
) -> None:
    other = as_user("another")
    openstack = OpenStack(tmp_path, other.url, other.token)
    for reference in (name, published["2.0.0"]):
        openstack.fails("package", "show", reference, code=3)


def test_control_characters_do_not_reach_a_terminal(
    openstack: OpenStack, glare: Client, name: str, published: dict[str, str]
) -> None:
    hostile = "a\x1b[2J\nb"
    assert glare.set(published["2.0.0"], "description", hostile).status_code == 200
    assert openstack.json("package", "show", name)["description"] == hostile
    table = openstack.ok("package", "show", name).out
    assert "\x1b" not in table
    assert r"a\x1b[2J" in table
    plain = openstack.ok("package", "show", name, "-f", "value", "-c", "description").out
    assert plain == "a\\x1b[2J\\nb\n"


def test_a_table_without_rows_is_a_line_and_other_formats_are_empty(
    openstack: OpenStack, name: str
) -> None:
    listed = openstack.ok("package", "list", name)
    assert (listed.out, listed.err) == ("", "Nothing was found.\n")
    for form, out in (("value", ""), ("json", "[]\n")):
        listed = openstack.ok("package", "list", name, "-f", form)
        assert (listed.out, listed.err) == (out, "")
    with_header = openstack.ok("package", "list", name, "--print-empty")
    assert "| Name |" in with_header.out


@pytest.mark.parametrize(
    "command",
    [
        ["build", "missing"],
        ["compare", "./missing", "./here"],
        ["compare", "./here", "./missing"],
        ["compare", "./here", "./here", "--path", "missing"],
        ["check", "here", "--against", "./missing"],
        ["diff", "./here", "./missing"],
        ["publish", "missing"],
    ],
)
def test_a_missing_path_is_one_plain_sentence(
    openstack: OpenStack,
    name: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    packages.write(tmp_path / "here", packages.content(name))
    monkeypatch.chdir(tmp_path)
    result = openstack.run("package", *command)
    assert (result.code, result.err) == (1, "missing: No such file or directory\n")


def test_a_file_that_cannot_be_written_is_named(
    openstack: OpenStack, published: dict[str, str], name: str, tmp_path: pathlib.Path
) -> None:
    source = packages.write(tmp_path / "here", packages.content(name))
    target = tmp_path / "missing" / "package.zip"
    built = openstack.fails("package", "build", source, "--file", target)
    assert f"cannot write {target}: No such file or directory; name a file in" in built.err
    saved = openstack.run("package", "save", name, "--file", target)
    assert (saved.code, saved.err) == (1, f"{target}: No such file or directory\n")


@pytest.mark.parametrize("kind", [LoaderError, OSError, ValueError])
def test_an_error_of_the_cleanup_after_ctrl_c_does_not_replace_it(
    openstack: OpenStack, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def interrupted(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise kind(1, "an open file cannot be closed", "here")

    monkeypatch.setattr(building, "build", interrupted)
    result = openstack.run("package", "build", "here")
    assert (result.code, result.out, result.err) == (130, "", "")


@pytest.mark.usefixtures("waits")
def test_a_server_that_does_not_listen_is_named_once(tmp_path: pathlib.Path, glare: Client) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        result = OpenStack(tmp_path, url, glare.token).run("package", "list")
    assert result.code == 4
    # Where the attempts take five seconds, a line before says so.
    assert result.err.splitlines()[-1] == f"Glare at {url} did not answer: Connection refused"


def test_a_shell_reads_values_and_runs_none_of_them(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    """Descriptions are text of whoever published a package."""
    found = glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    text = f'a $(touch {tmp_path}/1) `touch {tmp_path}/2` $HOME \\ "; touch {tmp_path}/3; "\nb'
    assert glare.set(found["id"], "description", text).status_code == 200
    shown = openstack.ok("package", "show", name, "-f", "shell").out
    script = f'{shown}\nprintf "%s" "$description"'
    run = subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True)
    assert run.stdout == text
    assert list(tmp_path.glob("[0-9]")) == []
    assert glare.set(found["id"], "description", "\x1b[2J").status_code == 200
    assert "\\x1b[2J" in openstack.ok("package", "show", name, "-f", "shell").out


def test_an_empty_path_is_not_the_current_directory(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.write(tmp_path / "here", packages.content(name))
    monkeypatch.chdir(tmp_path / "here")
    for command in ("publish", "check", "build", "release"):
        result = openstack.fails("package", command, "", code=2)
        assert "the path is empty" in result.err


@pytest.mark.parametrize(
    "wrong", [{"auth": {"endpoint": "http://127.0.0.1"}}, {"api_timeout": "long"}]
)
def test_a_cloud_with_wrong_values_is_a_misuse(
    openstack: OpenStack, tmp_path: pathlib.Path, wrong: dict[str, object]
) -> None:
    file = tmp_path / "clouds.yaml"
    clouds = yaml.safe_load(file.read_text())
    clouds["clouds"]["test"] |= wrong
    file.write_text(yaml.safe_dump(clouds))
    result = openstack.fails("package", "list", code=2)
    assert "the cloud test cannot be used as configured" in result.err


@pytest.mark.parametrize("end", ["\n", "\u20ac"])
def test_a_token_that_no_header_can_hold_is_not_shown(
    tmp_path: pathlib.Path, glare: Client, end: str
) -> None:
    result = OpenStack(tmp_path, glare.url, f"user:secret:member{end}x").fails("package", "list")
    assert "characters that HTTP does not allow" in result.err
    assert "secret" not in result.err


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "-1", "1e999", "soon", ""])
def test_a_time_is_a_number_of_seconds(openstack: OpenStack, seconds: str) -> None:
    update = ("environment", "pins", "update", "production", "--wait")
    refused = openstack.fails(*update, f"--timeout={seconds}", code=2)
    message = f"argument --timeout: {seconds!r} is not a number of seconds, such as 90 or 0.5"
    assert message in refused.err
