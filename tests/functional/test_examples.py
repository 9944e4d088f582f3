# SPDX-License-Identifier: Apache-2.0

"""The documentation's Python examples run as they are written, over the real Glare."""

import pathlib

import pytest
import yaml

from tests import packages
from tests.functional.client import Client
from tests.pages import page

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "doc" / "source"
PAGES = ("reference/loader", "explanation/resolution")
SERVER = "http://127.0.0.1:9494"


def _blocks(document: pathlib.Path, language: str) -> list[str]:
    """Return the code blocks of a document in one language."""
    return [block.text for block in page.blocks(document) if block.language == language]


def test_the_python_examples_run(
    admin: Client,
    name: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    db, wiki = f"{name}.db", f"{name}.wiki"
    admin.publish(db, "1.2.0", packages.package(db, "1.2.0"), public=True)
    archive = packages.package(wiki, "1.1.0", Require={db: ">=1,<2"})
    admin.publish(wiki, "1.1.0", archive, public=True)
    # The loader's default cache is in the user's directory for caches.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.chdir(tmp_path)
    cloud = {
        "auth_type": "admin_token",
        "auth": {"endpoint": admin.url, "token": admin.token},
        "artifact_endpoint_override": admin.url,
        "artifact_project_id": "admin",
    }
    clouds = {"clouds": {"glare-murano": cloud}}
    pathlib.Path("clouds.yaml").write_text(yaml.safe_dump(clouds))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "clouds.yaml")
    pathlib.Path("my-packages").mkdir()

    def adapted(text: str) -> str:
        return text.replace(SERVER, admin.url).replace("org.example", name)

    documents = [SOURCE / f"{each}.rst" for each in PAGES]
    for document in documents:
        for configuration in _blocks(document, "ini"):
            # Another block is for a cloud with Keystone and Glance.
            if SERVER in configuration:
                pathlib.Path("loader.conf").write_text(adapted(configuration))
    names: dict[str, object] = {}
    for document in documents:
        for block in _blocks(document, "python"):
            exec(compile(adapted(block), str(document), "exec"), names)

    printed = capsys.readouterr().out
    assert f"{db} 1.2.0" in printed
    assert f"{wiki} 1.1.0" in printed
    assert f"<MuranoPLPackage {db} 1.2.0>\nClasses/Thing.yaml " in printed
