# SPDX-License-Identifier: Apache-2.0

"""The real Glance, in a process of its own, and clients of it."""

import pathlib
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

from loader.catalogs.glance import GlanceCatalog
from tests import packages
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient

Catalogs = Callable[..., GlanceCatalog]
# A connection to Glance's database, and the statements that it has executed.
Statements = tuple[sqlalchemy.engine.Connection, list[str]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in this directory, since Glance is a program of its own."""
    directory = pathlib.Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(directory):
            item.add_marker(pytest.mark.programs)


@pytest.fixture(scope="session")
def glance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    """One process on SQLite, without Keystone, shared by the tests that fit it."""
    with service.running(tmp_path_factory.mktemp("glance")) as running:
        yield running


@pytest.fixture
def images_of(glance: service.Glance) -> Callable[..., ImageClient]:
    """Clients by project, and by roles, with those that Keystone implies."""
    return lambda project, roles="member,reader": ImageClient(glance.url, f"user:{project}:{roles}")


@pytest.fixture
def images(images_of: Callable[..., ImageClient], project: str) -> ImageClient:
    """A client of a member of the test's project."""
    return images_of(project)


@pytest.fixture
def image_manager(images_of: Callable[..., ImageClient], project: str) -> ImageClient:
    """A client of a manager of the test's project, who may change its public packages."""
    return images_of(project, "manager,member,reader")


@pytest.fixture
def image_admin(images_of: Callable[..., ImageClient]) -> ImageClient:
    """A client of an administrator of another project."""
    return images_of("admin", "admin,member,reader")


@pytest.fixture
def catalog_of(glance: service.Glance) -> Catalogs:
    """Catalogues of a project, by the rights of a user's token, which may be of another."""

    def make(
        project: str,
        roles: str = "member,reader",
        token_of: str = "",
        url: str = glance.url,
        **others: object,
    ) -> GlanceCatalog:
        session = ksa_session.Session(
            auth=token_endpoint.Token(url, f"user:{token_of or project}:{roles}")
        )
        return GlanceCatalog(session, project_id=project, endpoint=url, **others)

    return make


@pytest.fixture(scope="session")
def core_library(glance: service.Glance) -> str:
    """The id of a public io.murano, which every package requires."""
    admin = ImageClient(glance.url, "user:core:admin,member,reader")
    data = packages.package("io.murano", "0.0.0")
    return str(admin.publish("io.murano", "0.0.0", data, visibility="public")["id"])


@pytest.fixture
def package_name(project: str) -> str:
    """The name of a package that no other test uses."""
    return f"org.test.{project}"


@pytest.fixture
def statements(glance: service.Glance) -> Iterator[Statements]:
    """A connection to Glance's database, and the statements that it has executed."""
    engine = sqlalchemy.create_engine(glance.database)
    executed: list[str] = []
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *call: executed.append(call[2]))
    with engine.connect() as connection:
        yield connection, executed
    engine.dispose()
