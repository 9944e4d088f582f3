# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The real Glare, inside the test process."""

import itertools
import pathlib
import threading
from collections.abc import Callable
from collections.abc import Iterator

import pytest

from glare_murano import server
from tests.functional.client import Client

_counter = itertools.count()


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("glare")


@pytest.fixture(scope="session")
def glare_url(state_dir: pathlib.Path) -> Iterator[str]:
    with server.prepared(state_dir) as application:
        running = server.Server(application, 0)
        thread = threading.Thread(target=running.run, daemon=True)
        thread.start()
        yield running.url
        running.close()
        thread.join(timeout=30)


@pytest.fixture
def project() -> str:
    """A project of the test's own, so that no test sees another's packages."""
    return f"project{next(_counter)}"


@pytest.fixture
def name(project: str) -> str:
    """The name of a package that no other test uses."""
    return f"org.test.{project}"


@pytest.fixture
def as_user(glare_url: str) -> Callable[[str], Client]:
    """Clients of members of a project."""
    return lambda project: Client(glare_url, f"user:{project}:member")


@pytest.fixture
def glare(as_user: Callable[[str], Client], project: str) -> Client:
    """A client of a member of the test's project."""
    return as_user(project)


@pytest.fixture
def admin(glare_url: str) -> Client:
    """A client of an administrator, who belongs to another project."""
    return Client(glare_url, server.TOKEN)
