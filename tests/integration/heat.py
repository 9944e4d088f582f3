# SPDX-License-Identifier: Apache-2.0

"""OpenStack Heat on this host, with a Keystone that runs.

The real service over SQLite, API and engine in one process, in the environment that ``make heat``
builds for it. SQLite lets it change one stack at a time.
"""

import contextlib
import pathlib
from collections.abc import Iterator

from tests import prerequisites, processes
from tests.functional import keystone

_CONF = """\
[DEFAULT]
convergence_engine = false
log_file = {folder}/heat.log
# The API and the engine are in one process.
transport_url = fake://

[database]
connection = sqlite:///{folder}/heat.sqlite

[keystone_authtoken]
{middleware}
# A token that was revoked is refused at once.
token_cache_time = -1
www_authenticate_uri = {identity}

[paste_deploy]
api_paste_config = {paste}

[trustee]
{middleware}
"""

# Both read the configuration from the command line.
_SERVER = """\
import sys
from oslo_service import backend
backend.init_backend(backend.BackendType.THREADING)
import waitress
port = sys.argv.pop()
from heat.wsgi.api import application
from heat.engine.service import EngineService
from heat.rpc.api import ENGINE_TOPIC
EngineService("localhost", ENGINE_TOPIC).start()
waitress.serve(application, host="127.0.0.1", port=port)
"""


@contextlib.contextmanager
def running(folder: pathlib.Path, identity: keystone.Keystone) -> Iterator[None]:
    """Run it, with all that it keeps in a folder, and put it into Keystone's catalogue."""
    programs = prerequisites.heat()
    conf = folder / "heat.conf"
    conf.write_text(
        _CONF.format(
            folder=folder,
            identity=identity.url,
            middleware=identity.middleware,
            paste=programs.parent / "etc" / "heat" / "api-paste.ini",
        )
    )
    option = f"--config-file={conf}"
    keystone.run(programs / "heat-manage", option, "db_sync")
    port = processes.free_port()
    url = f"http://127.0.0.1:{port}/v1/%(project_id)s"
    identity.add_service("heat", "orchestration", url)
    command = (programs / "python", "-W", "ignore", "-c", _SERVER, option, port)
    with processes.listening(command, port, folder / "heat.out"):
        yield
