# SPDX-License-Identifier: Apache-2.0

"""The attacks that services refuse, imported into the real Glance by the attacker's project.

``tests/integration/test_attacks.py`` publishes them in Glare.
"""

import pathlib
from collections.abc import Iterator

import pytest
import yaml

from glare_murano import images
from tests import packages
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.test_reserved_images import with_names
from tests.integration import attacks
from tests.integration.attacks import Attack

_PLACES = {"victim": "0123456789abcdef", "trap": "1"}
REFUSED = [attack for attack in attacks.attacks() if attack.stopped == "upload"]


@pytest.fixture(scope="module")
def attacker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageClient]:
    """A client of the attacker's project, in a Glance with reserved names."""
    file: pathlib.Path = tmp_path_factory.mktemp("names") / "reserved-names.yaml"
    file.write_text(attacks.reserved_names())
    with service.running(tmp_path_factory.mktemp("glance"), change=with_names(file)) as running:
        yield ImageClient(running.url, "mallory:attackers:member,reader")


@pytest.mark.parametrize("attack", [pytest.param(each, id=each.slug) for each in REFUSED])
def test_attack(attacker: ImageClient, attack: Attack) -> None:
    files = attack.build(_PLACES)
    manifest = yaml.safe_load(files["manifest.yaml"])
    created = attacker.create(manifest["FullName"], manifest["Version"])
    if created.status_code == 403:
        assert attack.is_refusal(created.text), created.text
        return
    assert created.status_code == 201, created.text

    image = attacker.imported(created.json()["id"], packages.zipped(files))

    assert attack.is_refusal(image[images.REFUSAL]), image
    assert image["status"] != "active"
