# SPDX-License-Identifier: Apache-2.0

"""The command ``glare-murano-server``, as a user runs it."""

import contextlib
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import openstack.config
import pytest
import requests
from keystoneauth1 import adapter

from glare_murano.glare import server
from tests import packages
from tests.functional.client import Client

pytestmark = pytest.mark.programs

COMMAND = pathlib.Path(sys.executable).with_name("glare-murano-server")


@contextlib.contextmanager
def _running(state: pathlib.Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server, and what it printed when it was ready."""
    with subprocess.Popen(
        [COMMAND, "--state-dir", state, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            while "OS_CLIENT_CONFIG_FILE" not in lines[-1]:
                assert lines[-1], process.stderr.read() if process.stderr else ""
                lines.append(process.stdout.readline())
            yield process, "".join(lines)
        finally:
            process.kill()


def _refusal(*arguments: str) -> list[str]:
    """The lines that a server which cannot start leaves."""
    finished = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60)
    assert finished.returncode == 1
    assert finished.stdout == ""
    return finished.stderr.splitlines()


def test_it_prints_its_url_and_how_to_use_it(tmp_path: pathlib.Path) -> None:
    with _running(tmp_path / "its state") as (_, printed):
        url = printed.split()[3]
        command = printed.splitlines()[1].removeprefix("To use it: export ")
        variables = dict(word.split("=", 1) for word in shlex.split(command))
        file = variables["OS_CLIENT_CONFIG_FILE"]
        assert file == str(tmp_path / "its state" / "clouds.yaml")
        config = openstack.config.OpenStackConfig(config_files=[file])
        cloud = config.get_one(cloud=variables["OS_CLOUD"])
        client = adapter.Adapter(
            cloud.get_session(),
            service_type="artifact",
            endpoint_override=cloud.get_endpoint("artifact"),
        )

        assert client.get("/artifacts/murano").json()["artifacts"] == []
        assert client.get_endpoint() == url


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly_and_finds_everything_again(
    tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    data = packages.package("org.test.kept")
    with _running(tmp_path / "state") as (process, printed):
        client = Client(printed.split()[3], "a:b:member")
        admin = Client(client.url, server.TOKEN)
        admin.publish("io.murano", "0.0.1", packages.package("io.murano", "0.0.1"), public=True)
        client.publish("org.test.kept", "1.0.0", data)
        process.send_signal(number)
        _, complaints = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Traceback" not in complaints

    with _running(tmp_path / "state") as (_, printed):
        client = Client(printed.split()[3], "a:b:member")
        found = client.request("GET", "", params={"name": "org.test.kept"}).json()["artifacts"][0]
        assert client.request("GET", f"/{found['id']}/archive").content == data


def test_an_upload_that_died_with_it_can_be_made_again(tmp_path: pathlib.Path) -> None:
    content = packages.content("org.test.killed")
    content["Resources/large"] = random.Random(0).randbytes(60 * 1024**2)
    data = packages.zipped(content)
    with _running(tmp_path / "state") as (process, printed):
        client = Client(printed.split()[3], "a:b:member")
        artifact_id = client.create("org.test.killed").json()["id"]

        def upload() -> None:
            with contextlib.suppress(requests.ConnectionError):
                Client(client.url, client.token).upload(artifact_id, data)

        sender = threading.Thread(target=upload)
        sender.start()
        while (client.show(artifact_id)["archive"] or {}).get("status") != "saving":
            assert sender.is_alive()
            time.sleep(0.005)
        process.kill()
        sender.join()

    with _running(tmp_path / "state") as (_, printed):
        client = Client(printed.split()[3], "a:b:member")
        assert client.show(artifact_id)["archive"] is None
        assert client.upload(artifact_id, data).status_code == 200
        assert client.delete(artifact_id).status_code == 204
        assert list((tmp_path / "state/blobs").iterdir()) == []


def test_settings_of_the_users_own_are_read_after_its_own(tmp_path: pathlib.Path) -> None:
    (tmp_path / "local.conf").write_text("[DEFAULT]\nmax_artifact_number = 0\n")

    with _running(tmp_path) as (_, printed):
        answer = Client(printed.split()[3], "a:b:member").create("org.test.many")

    assert answer.status_code == 403


def test_a_taken_port_is_one_clear_line(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        lines = _refusal("--state-dir", str(tmp_path), "--port", port)

    assert len(lines) == 1
    assert port in lines[0]
    assert "--port" in lines[0]


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()

    lines = _refusal("--state-dir", str(tmp_path / "file" / "state"))

    assert len(lines) == 1
    assert str(tmp_path / "file" / "state") in lines[0]


def test_a_file_in_place_of_a_folder_is_one_clear_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()

    with (
        pytest.raises(server.ServerError, match=r"which is a file; name a directory$"),
        server.prepared(tmp_path / "file"),
    ):
        pass


def test_a_folder_that_another_server_uses_is_one_clear_line(tmp_path: pathlib.Path) -> None:
    with _running(tmp_path):
        lines = _refusal("--state-dir", str(tmp_path), "--port", "0")

    assert len(lines) == 1
    assert "in use" in lines[0]


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_a_port_that_is_none_is_refused(
    tmp_path: pathlib.Path, port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        server.main(["--state-dir", str(tmp_path), "--port", port])

    assert ended.value.code == 2
    assert f"--port: {port!r} is not a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a$b{c}", "a%b", "a#b?c=d"])
def test_a_folder_that_configuration_cannot_name_is_one_clear_line(
    tmp_path: pathlib.Path, name: str
) -> None:
    with pytest.raises(server.ServerError) as refused, server.prepared(tmp_path / name):
        pass

    (line,) = str(refused.value).splitlines()
    assert name in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_spaces_is_used(tmp_path: pathlib.Path) -> None:
    with _running(tmp_path / "state of affairs") as (_, printed):
        assert Client(printed.split()[3], "a:b:member").names() == []


def test_two_signals_in_a_row_stop_it_cleanly(tmp_path: pathlib.Path) -> None:
    with _running(tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=30)

    assert process.returncode == 0
    assert "Traceback" not in complaints
