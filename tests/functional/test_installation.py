# SPDX-License-Identifier: Apache-2.0

"""The installation guide, followed step by step with the real Keystone and MariaDB."""

import re
from collections.abc import Iterator

import pytest
import requests

from tests import packages
from tests.functional import installation
from tests.functional.client import ARTIFACTS, Client


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[installation.Installed]:
    with installation.installed(tmp_path_factory.mktemp("host")) as installed:
        yield installed


def test_the_page_shows_the_files_that_it_installs_and_starts() -> None:
    (names,) = re.findall(
        r"^\$ install -m 0640 -g glare /opt/glare/etc/glare-murano/{(.*)} /etc/glare$",
        installation.blocks("console"),
        re.M,
    )

    assert installation.shown() == {
        **{f"/etc/glare/{name}": installation.ETC / name for name in names.split(",")},
        installation.SERVICE.name: installation.SERVICE,
    }


@pytest.mark.services
def test_the_last_check_shows_that_a_forged_token_is_refused(
    installed: installation.Installed,
) -> None:
    forged, valid, health, metrics = installed.answers

    assert forged.splitlines()[0] == "HTTP/1.1 401 Unauthorized"
    assert '"artifacts": []' in valid
    assert health == "OK"
    assert metrics.startswith("# HELP")
    assert "glare_murano_uploads_total 0.0" in metrics


@pytest.mark.services
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Auth-Token": "nobody:nowhere:admin"},
        {"X-Identity-Status": "Confirmed", "X-Project-Id": "nowhere", "X-Roles": "admin"},
        {"X-Auth-Token": "x", "X-Identity-Status": "Confirmed", "X-Roles": "admin"},
    ],
)
@pytest.mark.parametrize("path", [ARTIFACTS, f"{ARTIFACTS}/1", "/murano/v1/subclasses", "/schemas"])
def test_nobody_is_let_in_without_a_token_of_keystone(
    installed: installation.Installed, headers: dict[str, str], path: str
) -> None:
    for method in ("GET", "POST", "PATCH", "DELETE"):
        answer = requests.request(method, installed.url + path, headers=headers, timeout=60)

        assert answer.status_code == 401, (method, answer.text)


@pytest.mark.services
def test_a_member_publishes_and_other_projects_see_what_is_public(
    installed: installation.Installed,
) -> None:
    for project in ("one", "another"):
        installed.identity.add_project(project)
    one, another, admin = (
        Client(installed.url, installed.identity.session(user).get_token())
        for user in ("one", "another", "admin")
    )
    data = packages.package("org.installed")

    private = one.publish("org.installed", "1.0.0", data)
    public = admin.publish("org.public", "1.0.0", packages.package("org.public"), public=True)

    assert one.request("GET", f"/{private['id']}/archive").content == data
    assert another.request("GET", f"/{private['id']}").status_code == 404
    assert another.request("GET", f"/{private['id']}/archive").status_code == 404
    assert another.request("GET", f"/{public['id']}/archive").status_code == 200
    assert one.set(private["id"], "visibility", "public").status_code == 403
    assert [name for name, _ in one.names(name="like:org.%")] == ["org.installed", "org.public"]
    assert [name for name, _ in another.names(name="like:org.%")] == ["org.public"]
    found = another.resolve(requirements={"org.public": "1", "org.installed": "1"}).json()
    assert "org.public" in str(found["releases"])
    assert private["id"] not in str(found)
