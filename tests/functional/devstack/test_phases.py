# SPDX-License-Identifier: Apache-2.0

"""stack.sh, again and after an interruption, unstack.sh and clean.sh, on each kind of host."""

import dataclasses
import pathlib

import pytest

from tests.functional.devstack.host import CLEAN, GLANCE, PLAIN, STACK, UNSTACK, Host, new_host

pytestmark = pytest.mark.devstack

# A name -> the other plug-ins, DevStack's services, and what MURANO_CATALOG is set to.
HOSTS = {
    "Glance": ((), GLANCE, ""),
    "Glare": (("glare",), PLAIN, ""),
    "Glance and Murano": (("murano",), GLANCE, "glance"),
    "Glare and Murano": (("glare", "murano"), PLAIN, ""),
}


@dataclasses.dataclass(frozen=True)
class Stacked:
    """A host after stack.sh.

    :ivar before: its files after stack.sh and clean.sh without this plug-in.
    :ivar first: its files after the first stack.sh with it.
    """

    host: Host
    before: dict[str, str]
    first: dict[str, str]


@pytest.fixture(scope="class", params=HOSTS)
def stacked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, service_port: str
) -> Stacked:
    others, services, catalog = HOSTS[request.param]
    host = new_host(
        tmp_path_factory.mktemp("host"),
        *others,
        "glare-murano",
        services=services,
        MURANO_CATALOG=catalog,
        GLANCE_SERVICE_HOST=f"127.0.0.1:{service_port}",
        GLARE_SERVICE_PORT=service_port,
    )
    plain = dataclasses.replace(host, plugins=others)
    plain.run(*STACK)
    plain.run(*UNSTACK)
    plain.run(*CLEAN)
    # Glare's plug-in stops a service of another name than it starts.
    for folder in ("running", "enabled"):
        (host.top / folder / "glare").unlink(missing_ok=True)
    before = host.files()
    host.run(*STACK)
    return Stacked(host, before, host.files())


class TestPhases:
    """The tests run in this order."""

    def test_a_second_stack_changes_nothing(self, stacked: Stacked) -> None:
        stacked.host.run(*STACK)
        assert stacked.host.files() == stacked.first

    def test_services_were_started_after_the_last_change(self, stacked: Stacked) -> None:
        for unit in (stacked.host.top / "running").iterdir():
            etc = stacked.host.top / "etc" / unit.name.replace("g-api", "glance").split("-")[0]
            changed = max(path.stat().st_mtime_ns for path in etc.rglob("*"))
            assert unit.stat().st_mtime_ns >= changed, unit

    def test_unstack_stops_every_service(self, stacked: Stacked) -> None:
        assert stacked.host.running
        stacked.host.run(*UNSTACK)
        assert stacked.host.running == {}
        assert list((stacked.host.top / "enabled").iterdir()) == []

    def test_a_stack_after_unstack_is_like_the_first(self, stacked: Stacked) -> None:
        stacked.host.run(*STACK)
        assert stacked.host.files() == stacked.first

    def test_clean_leaves_nothing(self, stacked: Stacked) -> None:
        # Also where there is nothing left to clean.
        for _ in range(2):
            stacked.host.run(*CLEAN)
            assert stacked.host.files() == stacked.before

    @pytest.mark.parametrize("stacked", ["Glare and Murano"], indirect=True)
    @pytest.mark.parametrize("phases", range(1, len(STACK)))
    def test_stack_completes_an_interrupted_run(self, stacked: Stacked, phases: int) -> None:
        stacked.host.run(*STACK[:phases])
        stacked.host.run(*STACK)
        assert stacked.host.files() == stacked.first
        stacked.host.run(*CLEAN)
        assert stacked.host.files() == stacked.before


def test_clean_without_stack_changes_nothing(tmp_path: pathlib.Path) -> None:
    host = new_host(tmp_path)
    before = host.files()
    host.run(*CLEAN)
    assert host.files() == before


def test_the_plug_in_can_be_disabled(tmp_path: pathlib.Path, service_port: str) -> None:
    host = new_host(tmp_path, GLARE_SERVICE_PORT=service_port)
    dataclasses.replace(host, plugins=("glare", "murano")).run(*STACK)
    before = host.files()
    host.run(*STACK, DISABLED_SERVICES="glare-murano")
    assert host.files() == before


@pytest.mark.parametrize(
    ("plugins", "catalog", "message"),
    [
        ("glare-murano glare murano", "", "enable_plugin glare must come before glare-murano"),
        ("glare glare-murano murano", "", "enable_plugin murano must come before glare-murano"),
        ("glare-murano", "", "glare-murano needs g-api, glare or murano"),
        ("glare-murano", "glance", "glare-murano needs g-api, glare or murano"),
        ("glare glare-murano", "swift", "MURANO_CATALOG should be glance or glare: swift"),
    ],
)
def test_a_wrong_local_conf_is_refused_before_anything_is_done(
    tmp_path: pathlib.Path, plugins: str, catalog: str, message: str
) -> None:
    host = new_host(tmp_path, *plugins.split(), MURANO_CATALOG=catalog)
    before = host.files()
    assert message in host.run(*STACK, fails=True)
    assert host.files() == before
    assert host.calls == []
