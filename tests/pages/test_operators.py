# SPDX-License-Identifier: Apache-2.0

"""The guides for operators are followed, from the first command to the last one."""

import pathlib

import pytest

from examples import demo
from tests import packages
from tests.functional.client import Client
from tests.pages import clone, host, page

_GUIDES = clone.SOURCE / "guides" / "operators"
# In this order, since one changes what the next one finds.
_IN_A_CLOUD = (
    "migration",
    "murano-api",
    "engine",
    "glance",
    "serving-glance",
    "kolla",
    "auditing",
    "tenants",
    "operating-engine",
    "monitoring",
    "pages",
    "upgrade-checks",
    "sweep",
    "backup",
    "upgrade",
    "broker",
    "backing-out",
)


FOLLOWED = tuple(f"guides/operators/{name}" for name in ("glare", "reserved-names", *_IN_A_CLOUD))

_ADMINISTRATOR = "admin:admin:admin"
_PROJECT = "8adc66da1350484a8f5ab45acfe8c5b5"


@pytest.mark.timeout(900)
def test_the_guides_for_operators_hold_one_after_the_other(tmp_path: pathlib.Path) -> None:
    with host.running(tmp_path) as running:
        (tmp_path / "new-reader").mkdir()
        glare = _GUIDES / "glare.rst"
        with clone.reading(tmp_path / "new-reader", running.variables, running.new_names) as reader:
            reader.follow(glare, clone.guide(glare))
        with clone.reading(tmp_path, running.variables, running.names) as reader:
            for name in _IN_A_CLOUD:
                path = _GUIDES / f"{name}.rst"
                reader.follow(path, clone.guide(path))


def test_the_guide_to_reserved_names_holds(tmp_path: pathlib.Path) -> None:
    path = _GUIDES / "reserved-names.rst"
    (file,) = [block for block in page.blocks(path) if block.caption]
    (tmp_path / "murano").mkdir()
    names = {"/etc/murano": str(tmp_path / "murano")}
    reserved = tmp_path / "murano" / "reserved-names.yaml"
    reserved.write_text(file.text)
    with demo.DevelopmentServer(tmp_path) as url:
        core = packages.package("io.murano", "0.16.0")
        Client(url, _ADMINISTRATOR).publish("io.murano", "0.16.0", core, public=True)
        library = packages.package("org.example.db", "1.2.0")
        owner = Client(url, f"user:{_PROJECT}:admin")
        owner.publish("org.example.db", "1.2.0", library, public=True)
    option = f"[artifact_type:murano]\nreserved_names_file = {reserved}\n"
    (tmp_path / "glare" / "local.conf").write_text(option)
    clouds = {
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "glare" / "clouds.yaml"),
        "OS_CLOUD": "glare-murano",
    }
    with (
        demo.DevelopmentServer(tmp_path),
        clone.reading(tmp_path, {**clone.INSTALLED, **clouds}, names) as reader,
    ):
        reader.follow(path, clone.guide(path))
