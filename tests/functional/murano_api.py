# SPDX-License-Identifier: Apache-2.0

"""The real murano-api over SQLite, in a process of its own.

It takes a token at its word (``user:project:role,role``), as the embedded Glare
does; everything else is Murano's own pipeline. Murano's options and Glare's
cannot be in one process.
"""

import argparse
import contextlib
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import requests

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = "/v1/catalog/packages"
PREFIX = "/application-catalog"
# The file with rules that replace Murano's own, in the directory of a murano-api.
POLICY_FILE = "policy.json"
PASTE_FILE = ROOT / "loader/engine/etc/murano-paste.ini"


@contextlib.contextmanager
def running(folder: pathlib.Path, *options: str) -> Iterator[str]:
    """Run murano-api with its database in a directory; yields its URL.

    :param options: ``--glare URL`` or ``--glance URL`` for the filter of this project;
        ``--no-waits`` to skip its waits between attempts; ``--max-reading-seconds NUMBER`` for the
        option of this name.
    """
    log = folder / "murano-api.log"
    command = [sys.executable, "-W", "ignore", "-m", __name__, str(folder), *options]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        line = process.stdout.readline() if process.stdout else ""
        found = re.match(r"http://\S+\Z", line.strip())
        assert found, f"murano-api did not start: {log.read_text()}"
        yield found[0]
    finally:
        process.terminate()
        process.wait(timeout=30)
        if process.stdout:
            process.stdout.close()


def upload(url: str, owner: str, archive: bytes, public: bool = False, metadata: Any = None) -> str:
    """Upload a package of a project, and return its id.

    :param metadata: fields of the package beside those of its archive.
    """
    answer = requests.post(
        url + PACKAGES,
        headers={"X-Auth-Token": f"user:{owner}:admin"},
        files={
            "file": ("p.zip", archive),
            "__metadata__": (None, json.dumps({"is_public": public, **(metadata or {})})),
        },
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def delete(url: str, package_id: str) -> None:
    """Delete a package of any project."""
    headers = {"X-Auth-Token": "admin:admin:admin"}
    requests.delete(f"{url}{PACKAGES}/{package_id}", headers=headers, timeout=60)


class _Trusting:
    """Sets the caller's identity from the token, as Keystone's filter would."""

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        user, _, rest = environ.get("HTTP_X_AUTH_TOKEN", "").partition(":")
        project, _, roles = rest.partition(":")
        if not roles:
            start_response("401 Unauthorized", [("Content-Length", "0")])
            return [b""]
        environ.update(HTTP_X_USER_ID=user, HTTP_X_TENANT_ID=project, HTTP_X_ROLES=roles)
        return self._application(environ, start_response)


def main() -> None:
    """Make the database, and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--glare")
    parser.add_argument("--glance")
    parser.add_argument("--no-waits", action="store_true")
    parser.add_argument("--max-reading-seconds", default=20)
    given = parser.parse_args()
    folder = given.folder

    import tenacity
    import waitress
    from murano.api.middleware import context, fault
    from murano.api.v1 import request_statistics, router
    from murano.common import config, policy
    from murano.db.migration import migration

    if given.no_waits:
        tenacity.nap.time.sleep = lambda seconds: None
    conf = config.CONF
    file = folder / "murano.conf"
    settings = ""
    if given.glare:
        settings = f"[glare]\nurl = {given.glare}\n[package_loader]\n"
    if given.glance:
        settings = f"[glance]\nurl = {given.glance}\n[package_loader]\ncatalogs = glance\n"
    if settings:
        settings += f"max_reading_seconds = {given.max_reading_seconds}\n"
    if (folder / POLICY_FILE).exists():
        settings += f"[oslo_policy]\npolicy_file = {folder / POLICY_FILE}\n"
    file.write_text(
        f"[DEFAULT]\ntransport_url = fake://\nlog_file = {folder}/murano.log\n"
        f"[database]\nconnection = sqlite:///{folder}/murano.sqlite\n"
        f"{settings}"
    )
    config.parse_args(["--config-file", str(file)])
    alembic = migration.get_alembic_config()
    alembic.murano_config = conf
    migration.upgrade("head", config=alembic)
    request_statistics.init_stats()
    policy.init()
    if settings:
        application = _by_paste_file(folder)
    else:
        application = fault.FaultWrapper(context.ContextMiddleware(router.API.factory({})))
        application = _below_v1(_Trusting(application))
    application = _with_prefix(application)
    server = waitress.create_server(application, host="127.0.0.1", port=0, threads=4)
    print(f"http://127.0.0.1:{server.effective_port}", flush=True)
    server.run()


def trusting(global_conf: dict[str, str], **local_conf: str) -> Callable[[Any], _Trusting]:
    """Make the filter that takes the place of Keystone's, for ``paste.filter_factory``."""
    return _Trusting


def _by_paste_file(folder: pathlib.Path) -> Any:
    """Return the application of the paste file that operators install."""
    from paste import deploy

    keystone = "keystonemiddleware.auth_token:filter_factory"
    sample = PASTE_FILE.read_text()
    assert keystone in sample
    file = folder / "murano-paste.ini"
    file.write_text(sample.replace(keystone, f"{__spec__.name}:trusting"))
    return deploy.loadapp(f"config:{file}", name="murano")


def _below_v1(application: Any) -> Any:
    """Mount the API below ``/v1``, as Murano's paste file does."""

    def mounted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        if path.startswith("/v1/"):
            environ.update(SCRIPT_NAME="/v1", PATH_INFO=path.removeprefix("/v1"))
        return application(environ, start_response)

    return mounted


def _with_prefix(application: Any) -> Any:
    """Mount an application below ``PREFIX`` as well, as a web server may do."""

    def mounted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        if path.startswith(f"{PREFIX}/"):
            environ.update(SCRIPT_NAME=PREFIX, PATH_INFO=path.removeprefix(PREFIX))
        return application(environ, start_response)

    return mounted


if __name__ == "__main__":
    main()
