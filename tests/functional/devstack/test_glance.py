# SPDX-License-Identifier: Apache-2.0

"""A host with Glance alone, and the real Glance that DevStack and the plug-in configure."""

import pathlib
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from glare_murano import wire
from glare_murano.glance.configuration import configure
from tests import packages, prerequisites, processes
from tests.functional.devstack.host import GLANCE, STACK, Host, new_host, write_package
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient

pytestmark = pytest.mark.devstack

_POLICY = {"upload_image": "role:member", "delete_image": "role:admin"}
_PROTECTIONS = """\
[^billing_.*]
create = admin
read = @
update = admin
delete = admin
[.*]
create = @
read = @
update = @
delete = @
"""


class TestStack:
    """On a host whose operator has rules of their own, after stack.sh and another one."""

    @pytest.fixture(scope="class")
    def host(self, tmp_path_factory: pytest.TempPathFactory, service_port: str) -> Host:
        host = new_host(
            tmp_path_factory.mktemp("host"),
            "glare-murano",
            services=GLANCE,
            GLANCE_SERVICE_HOST=f"127.0.0.1:{service_port}",
        )
        etc = host.top / "etc/glance"
        etc.mkdir()
        (etc / "policy.yaml").write_text(yaml.safe_dump(_POLICY))
        (etc / "rules.conf").write_text(_PROTECTIONS)
        (etc / "glance-api.conf").write_text("[DEFAULT]\nproperty_protection_file = rules.conf\n")
        for _ in range(2):
            host.run(*STACK)
        return host

    @pytest.fixture(scope="class")
    def url(self, host: Host) -> Iterator[str]:
        """The address of the Glance that is configured there."""
        etc = host.top / "etc/glance"
        port = processes.free_port()
        for name in ("images", "staging"):
            (host.top / "data/glance" / name).mkdir(parents=True)
        service.manage(etc, "db", "sync")
        glance = service.Process(etc, port, host.top / "glance.out")
        try:
            glance.start()
            yield glance.url
        finally:
            glance.kill()

    def test_the_files_are_merged_into_those_of_the_operator(self, host: Host) -> None:
        etc = host.top / "etc/glance"
        before = {path: path.read_bytes() for path in etc.rglob("*") if path.is_file()}
        assert configure(etc) == []
        assert {path: path.read_bytes() for path in before} == before
        assert yaml.safe_load((etc / "policy.yaml").read_text()) == _POLICY
        assert (etc / "rules.conf").read_text().endswith(_PROTECTIONS)

    def test_it_is_installed_where_glance_runs(self, host: Host) -> None:
        pip = f"pip install -c {host.top}/stack/requirements/upper-constraints.txt -e "
        installed = [call for call in host.calls if call.startswith(("venv", "pip"))]
        assert set(installed) == {f"{pip}{host.top}/stack/glare-murano[glance,cli]"}
        assert not host.data.exists()

    def test_what_runs_was_started_with_the_configuration(self, host: Host) -> None:
        (unit,) = host.running
        changed = max(path.stat().st_mtime for path in (host.top / "etc/glance").rglob("*"))
        assert unit == "g-api"
        assert (host.top / "running" / unit).stat().st_mtime >= changed

    def test_glance_takes_packages_through_an_import_alone(self, url: str) -> None:
        images = ImageClient(url, "user:project:member,reader")
        data = packages.package("org.stacked")
        image_id = images.create("org.stacked").json()["id"]
        assert images.put(image_id, data, into="file").status_code == 403

        image = images.imported(image_id, data)
        assert image["status"] == "active"
        assert image["murano_version"] == "1.0.0"
        assert images.set(image_id, "murano_version", "2.0.0").status_code == 403
        assert images.request("GET", "/murano").status_code == 200

    def test_the_core_library_is_published_for_everybody(self, host: Host, url: str) -> None:
        host.configure_cloud("image", url, "admin:admin:admin,member,reader")
        source = _write_murano(host.top / "murano")
        host.run(*STACK, GLARE_MURANO_PUBLISH=None, GLARE_MURANO_SOURCE=source)

        query = {"requirements": {"io.murano.applications": "0.16"}}
        found = ImageClient(url, "user:other:member,reader").query(wire.DEPENDENCIES_PATH, **query)
        assert [(release["name"], release["version"]) for release in found.json()["releases"]] == [
            ("io.murano", "0.16.0"),
            ("io.murano.applications", "0.16.0"),
        ]

    def test_the_rules_of_the_operator_are_obeyed(self, url: str) -> None:
        images = ImageClient(url, "user:other:member,reader")
        admin = ImageClient(url, "admin:other:admin,member,reader")
        body = {"name": "vm", "container_format": "bare", "disk_format": "raw"}
        image_id = images.request("POST", "/v2/images", json=body).json()["id"]
        assert images.put(image_id, b"data", into="file").status_code == 204
        assert images.set(image_id, "billing_class", "a", op="add").status_code == 403
        assert admin.set(image_id, "billing_class", "a", op="add").status_code == 200
        assert images.delete(image_id).status_code == 403


def _write_murano(repository: pathlib.Path) -> str:
    """Write the core library into a repository with the tag of Murano's release."""
    for name in ("io.murano", "io.murano.applications"):
        write_package(repository / "meta" / name, name, "0.0.0")
    git = (prerequisites.program("git", "git"), "-c", "user.name=me", "-c", "user.email=me@here")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "release"), ("tag", "16.0.0")):
        subprocess.run([*git, *command], cwd=repository, check=True)
    return str(repository)
