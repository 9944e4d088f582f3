# SPDX-License-Identifier: Apache-2.0

"""The real murano-api over SQLite, in a process of its own.

It takes a token at its word (``user:project:role,role``), as the embedded Glare
does; everything else is Murano's own pipeline. Murano's options and Glare's
cannot be in one process.
"""

import argparse
import contextlib
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = "/v1/catalog/packages"


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[str]:
    """Run murano-api with its database in a directory; yields its URL."""
    log = folder / "murano-api.log"
    command = [sys.executable, "-W", "ignore", "-m", __name__, str(folder)]
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
    folder = parser.parse_args().folder

    import waitress
    from murano.api.middleware import context, fault
    from murano.api.v1 import request_statistics, router
    from murano.common import config, policy
    from murano.db.migration import migration

    conf = config.CONF
    file = folder / "murano.conf"
    file.write_text(
        f"[DEFAULT]\ntransport_url = fake://\nlog_file = {folder}/murano.log\n"
        f"[database]\nconnection = sqlite:///{folder}/murano.sqlite\n"
    )
    config.parse_args(["--config-file", str(file)])
    alembic = migration.get_alembic_config()
    alembic.murano_config = conf
    migration.upgrade("head", config=alembic)
    request_statistics.init_stats()
    policy.init()
    application = fault.FaultWrapper(context.ContextMiddleware(router.API.factory({})))
    server = waitress.create_server(
        _below_v1(_Trusting(application)), host="127.0.0.1", port=0, threads=4
    )
    print(f"http://127.0.0.1:{server.effective_port}", flush=True)
    server.run()


def _below_v1(application: Any) -> Any:
    """Mount the API below ``/v1``, as Murano's paste file does."""

    def mounted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        if path.startswith("/v1/"):
            environ.update(SCRIPT_NAME="/v1", PATH_INFO=path.removeprefix("/v1"))
        return application(environ, start_response)

    return mounted


if __name__ == "__main__":
    main()
