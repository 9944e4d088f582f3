# SPDX-License-Identifier: Apache-2.0

"""The real murano-api with the filter of this project, over the real Glance."""

import datetime
import io
import pathlib

import pytest
from muranoclient.common import exceptions
from muranoclient.v1.client import Client as MuranoClient

from tests import packages
from tests.functional import murano_api
from tests.functional.glance import stored
from tests.functional.glance.service import Glance

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.mark.usefixtures("core_library")
def test_packages_of_glance_are_read_and_changed(
    glance: Glance, project: str, tmp_path: pathlib.Path
) -> None:
    name = f"org.{project}.db"
    supplier = {"Name": "Inc.", "CompanyUrl": {"Text": "Us", "Link": "https://example.org"}}
    tags = ["web", "shop", "a"]
    manifest = packages.manifest(name, "1.10.0", Supplier=supplier, Tags=tags)
    with_files = packages.files(manifest) | {
        "UI/ui.yaml": b"Version: 2\n",
        "logo.png": _PNG,
    }
    archives = [packages.package(name, "1.9.0"), packages.zipped(with_files)]
    stored.store(glance, [stored.package(each, project) for each in archives])
    with murano_api.running(tmp_path, "--glance", glance.url) as url:
        token = f"user:{project}:member,reader"
        murano = MuranoClient(url, token=token, timeout=60)

        (found,) = murano.packages.filter(owned=True, limit=1)
        assert (found.fully_qualified_name, found.version) == (name, "1.10.0")
        new, old = [package.id for package in murano.packages.filter(fqn=name, version="*")]
        assert new == found.id
        assert murano.packages.get(old).class_definitions == [f"{name}.Thing"]
        assert murano.packages.get_ui(new) == {"Version": 2}
        assert murano.packages.get_logo(new) == _PNG
        assert murano.packages.download(old) == archives[0]
        assert murano.packages.get_ui(old) is None
        assert murano.packages.get_logo(old) == b""
        shown = murano.packages.get(new)
        assert (shown.supplier, shown.tags) == (supplier, tags)

        uploaded = packages.package(name, "2.0.0", Description="Text")
        created = murano.packages.create({"tags": ["t"]}, {"file": io.BytesIO(uploaded)})
        assert (created.version, created.tags, created.enabled) == ("2.0.0", ["t"], True)
        assert murano.packages.download(created.id) == uploaded
        with pytest.raises(exceptions.HTTPConflict):
            murano.packages.create({}, {"file": io.BytesIO(uploaded)})
        refused = packages.content(name, "3.0.0", Description="Text")
        refused["UI/ui.yaml"] = b"Version: !unknown 9\n"
        with pytest.raises(exceptions.HTTPBadRequest, match=r"UI/ui\.yaml, line 1: .*unknown"):
            murano.packages.create({}, {"file": io.BytesIO(packages.zipped(refused))})
        with pytest.raises(exceptions.HTTPBadRequest):
            murano.packages.update(created.id, {"name": "\ud800"})
        _, changed = murano.packages.update(created.id, {"name": "New", "enabled": False})
        assert (changed["name"], changed["enabled"]) == ("New", False)
        (found,) = murano.packages.filter(owned=True)
        assert found.id == new
        murano.packages.delete(created.id)
        with pytest.raises(exceptions.HTTPNotFound):
            murano.packages.get(created.id)
    log = (tmp_path / "murano-api.log").read_text()
    assert "Search by parameter" not in log


@pytest.mark.usefixtures("core_library")
def test_packages_of_several_projects_are_listed_in_pages(
    glance: Glance, project: str, tmp_path: pathlib.Path
) -> None:
    names = [f"org.{project}.{each}" for each in "abc"]
    later = {"created_at": stored.NOW + datetime.timedelta(days=1)}
    own = [stored.package(packages.package(name), project) for name in names]
    public = stored.package(packages.package(names[1]), "another", "public", changed=later)
    newer = stored.package(packages.package(names[1], "2.0.0"), project)
    stored.store(glance, [*own, public])
    with murano_api.running(tmp_path, "--glance", glance.url) as url:
        murano = MuranoClient(url, token=f"user:{project}:member,reader", timeout=60)

        pages = (
            package.id
            for package in murano.packages.filter(limit=1)
            if package.fully_qualified_name in names
        )
        # The project's own package comes before the public one of the same version.
        assert [next(pages), next(pages)] == [own[0].id, own[1].id]
        stored.store(glance, [newer])
        assert list(pages) == [own[2].id]
