# SPDX-License-Identifier: Apache-2.0

"""The real Glare, inside the test process."""

import itertools
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from glare.common import policy as glare_policy
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

import loader
from glare_murano import fields
from glare_murano.glare import server
from loader.catalogs.glare import GlareCatalog
from tests import packages
from tests.functional import murano_api
from tests.functional.client import Client, Wire
from tests.waits import waits

if TYPE_CHECKING:
    from tests.functional.openstack_command import OpenStack

__all__ = ["waits"]

_counter = itertools.count()

# The core library, which every package requires: the smallest there is.
CORE = "io.murano"
CORE_VERSION = "0.0.1"


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("glare")


@pytest.fixture(scope="session")
def application(state_dir: pathlib.Path) -> Iterator[Any]:
    """Glare's WSGI application, for requests that no client can send through the server."""
    with server.prepared(state_dir) as application:
        yield application


@pytest.fixture(scope="session")
def glare_url(application: Any) -> Iterator[str]:
    running = server.Server(application, 0)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    core = packages.package(CORE, CORE_VERSION)
    Client(running.url, server.TOKEN).publish(CORE, CORE_VERSION, core, public=True)
    yield running.url
    running.close()
    thread.join(timeout=30)


@pytest.fixture
def set_option(glare_url: str) -> Iterator[Callable[[str, object], None]]:
    """Sets an option of the artifact type, until the test ends."""
    group = f"artifact_type:{fields.TYPE_NAME}"
    changed = []

    def set_one(option: str, value: object) -> None:
        cfg.CONF.set_override(option, value, group)
        changed.append(option)

    yield set_one
    for option in changed:
        cfg.CONF.clear_override(option, group)


@pytest.fixture
def policy(glare_url: str) -> Iterator[Callable[[str, str], None]]:
    """Sets a rule of Glare's policy, until the test ends."""
    enforcer = glare_policy.init()
    before = dict(enforcer.rules)

    def set_rule(name: str, rule: str) -> None:
        check = oslo_policy.RuleDefault(name, rule).check
        enforcer.set_rules({name: check}, overwrite=False, use_conf=True)

    yield set_rule
    enforcer.set_rules(before, use_conf=True)


@pytest.fixture
def project() -> str:
    """A project of the test's own, so that no test sees another's packages."""
    return f"project{next(_counter)}"


@pytest.fixture
def name(project: str) -> str:
    """The name of a package that no other test uses, even with a number behind it."""
    return f"org.test.{project}.package"


@pytest.fixture
def as_user(glare_url: str) -> Callable[[str], Client]:
    """Clients of members of a project."""
    return lambda project: Client(glare_url, f"user:{project}:member")


@pytest.fixture
def glare(as_user: Callable[[str], Client], project: str) -> Client:
    """A client of a member of the test's project."""
    return as_user(project)


@pytest.fixture
def wire(glare: Client) -> Iterator[Wire]:
    """The same, for requests that no client would write."""
    wire = Wire(glare)
    yield wire
    wire.close()


@pytest.fixture
def admin(glare_url: str) -> Client:
    """A client of an administrator of another project."""
    return Client(glare_url, server.TOKEN)


@pytest.fixture
def catalog(glare: Client, project: str) -> GlareCatalog:
    """The test's project in Glare, as loaders see it."""
    return GlareCatalog(glare.session(), project_id=project, endpoint=glare.url, attempts=1)


@pytest.fixture
def cache(tmp_path: pathlib.Path) -> loader.Cache:
    """An empty cache."""
    return loader.Cache(tmp_path / "cache")


@pytest.fixture(scope="module")
def murano_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Murano API that keeps its packages itself."""
    with murano_api.running(tmp_path_factory.mktemp("murano")) as url:
        yield url


@pytest.fixture
def openstack(tmp_path: pathlib.Path, glare: Client) -> "OpenStack":
    """The command ``openstack`` as a member of the test's project."""
    # Its import takes long, and most tests do without it.
    from tests.functional.openstack_command import OpenStack

    return OpenStack(tmp_path, glare.url, glare.token)


@pytest.fixture
def admin_openstack(tmp_path: pathlib.Path, admin: Client) -> "OpenStack":
    """The command as an administrator of another project."""
    from tests.functional.openstack_command import OpenStack

    (tmp_path / "admin").mkdir()
    return OpenStack(tmp_path / "admin", admin.url, admin.token)
