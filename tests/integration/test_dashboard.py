# SPDX-License-Identifier: Apache-2.0

"""The real murano-dashboard, in the real Horizon, over murano-api with the filter.

The packages are in Glare alone. Each test does what a user does with a browser.
"""

import itertools
import json
import re
from collections.abc import Iterator

import pytest
import requests

from tests import packages
from tests.integration import cloud, horizon, publish
from tests.integration.horizon import Dashboard, messages

# Seconds for a test with its fixtures: the first one starts all services.
pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
_FORM = """\
Version: 2
Application:
  ?:
    type: {0}.Thing
  name: $.settings.title
Forms:
  - settings:
      fields:
        - {{name: title, type: string, label: Title of the site}}
"""
_CLASS = """\
Name: {0}.Thing
Extends: io.murano.Application
Properties:
  name:
    Contract: $.string().notNull()
Methods:
  deploy:
    Body: []
"""
# Applications on a page of the catalogue.
_PAGE = 6


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cloud.Cloud]:
    with cloud.running(tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.fixture(scope="module")
def url(services: cloud.Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with horizon.running(tmp_path_factory.mktemp("horizon"), services.identity) as running:
        yield running


@pytest.fixture(scope="module")
def one(url: str) -> Dashboard:
    return Dashboard(url, "one")


def application(name: str, version: str = "1.0.0", **keys: str) -> bytes:
    """Return the archive of an application with a form and a logo."""
    manifest = packages.manifest(name, version, Type="Application", Description="Text", **keys)
    code, form = _CLASS.format(name), _FORM.format(name)
    files = {
        "Classes/Thing.yaml": code.encode(),
        "UI/ui.yaml": form.encode(),
        "logo.png": _PNG,
    }
    return packages.zipped(packages.files(manifest) | files)


def upload(dashboard: Dashboard, archive: bytes) -> requests.Response:
    """Send the first form of the wizard that imports a package."""
    return dashboard.post(
        "packages/upload",
        files={"upload-package": ("package.zip", archive)},
        **{"import_package_wizard-current_step": "upload", "upload-import_type": "upload"},
    )


def import_application(dashboard: Dashboard, archive: bytes, title: str) -> str:
    """Import a package by all forms of the wizard, and return its id."""
    uploaded = upload(dashboard, archive)
    assert any("uploaded" in each for each in messages(uploaded)), messages(uploaded)
    fields = {"name": title, "tags": "", "enabled": "on", "description": "Changed"}
    step = "import_package_wizard-current_step"
    modified = {f"modify-{name}": value for name, value in fields.items()}
    dashboard.post("packages/upload", **{step: "modify"}, **modified)
    category = {"add_category-categories": "Web"}
    done = dashboard.post("packages/upload", **{step: "add_category"}, **category)
    assert messages(done) == ["Success: Package parameters successfully updated."]
    (found,) = re.findall(f'data-display="{title}"[^>]* data-object-id="([^"]+)"', done.text)
    return str(found)


def test_an_application_is_imported_and_deployed_by_its_form(
    services: cloud.Cloud, one: Dashboard
) -> None:
    name = "org.test.site"
    old = import_application(one, application(name), "A Site")
    new = import_application(one, application(name, "1.1.0"), "A Site")

    assert new != old
    artifact = services.project.glare.get(f"{publish.ARTIFACTS}/{new}").json()
    assert (artifact["name"], artifact["version"]) == (name, "1.1.0")
    assert (artifact["categories"], artifact["tags"]) == (["Web"], [])
    assert (artifact["description"], artifact["status"]) == ("Changed", "active")
    assert listed(one.get("catalog/", search="a site")) == [new]
    assert one.get(f"catalog/images/{new}").content == _PNG

    form = one.get(f"catalog/quick-add/{new}").text
    assert "Title of the site" in form
    (action,) = re.findall(r'action="\s*/app-catalog/(catalog/add/\S+)', form)
    step = {f"wizard_{new}-current_step": "Step 1"}
    flags = {"do_redirect": "True", "drop_wm_form": "True", "wizard_id": "1"}
    added = one.post(action, **step, **flags, **{"0-title": "main"})
    assert messages(added) == [
        "Success: The 'A Site' application successfully added to environment."
    ]
    (environment_id,) = re.findall("/app-catalog/([0-9a-f]{32})/services", added.url)
    deployed = one.post(f"{environment_id}/services", action="services__deploy_env")
    assert messages(deployed) == ["Success: Deploy started"]
    environment = cloud.Environment(services.project, environment_id)
    assert environment.wait() == "ready"
    assert environment.versions() == {f"{name}.Thing/1.1.0@{name}"}
    assert environment.application("main")["name"] == "main"


def listed(page: requests.Response) -> list[str]:
    """Return the ids of the applications on a page of the catalogue."""
    # Above there are those that the user has imported.
    tiles = page.text.partition("table_header catalog")[2]
    return list(dict.fromkeys(re.findall(r'"/app-catalog/catalog/details/([^"]+)"', tiles)))


@pytest.fixture(scope="module")
def paged(services: cloud.Cloud) -> int:
    """Publish applications for more than two pages, and return their number."""
    count = 2 * _PAGE + 1
    metadata = {"__metadata__": json.dumps({"categories": ["Big Data"], "tags": ["paged"]})}
    for number in range(count):
        # Of the same title, as of different publishers.
        title = "Same" if number % 3 else f"Site {number:02}"
        archive = application(f"org.{'paged' if number % 2 else 'test'}{number:02}", Name=title)
        files = {"file": ("package.zip", archive)}
        services.project.murano.post("/v1/catalog/packages", files=files, data=metadata)
    return count


@pytest.mark.parametrize("query", [{"category": "Big Data"}, {"search": "paged"}])
def test_the_catalogue_is_read_forwards_and_backwards(
    one: Dashboard, paged: int, query: dict[str, str]
) -> None:
    pages = [listed(one.get("catalog/", **query))]
    while len(pages[-1]) == _PAGE:
        pages.append(listed(one.get("catalog/", marker=pages[-1][-1], sort_dir="asc", **query)))
    assert [len(page) for page in pages] == [_PAGE, _PAGE, 1]
    assert len(set().union(*pages)) == paged
    for before, page in itertools.pairwise(pages):
        back = one.get("catalog/", marker=page[0], sort_dir="desc", **query)
        assert listed(back) == before


def test_packages_are_shown_and_changed(services: cloud.Cloud, url: str, one: Dashboard) -> None:
    other, admin = Dashboard(url, "other"), Dashboard(url, "admin")
    name = "org.test.managed"
    archive = application(name)
    package = import_application(one, archive, "Managed")

    def is_shown(dashboard: Dashboard) -> bool:
        return package in dashboard.get("packages/", packages__filter_packages__q_field="").text

    def act(dashboard: Dashboard, action: str) -> list[str]:
        return messages(
            dashboard.post("packages/", action=f"packages__{action}", object_ids=package)
        )

    assert (is_shown(one), is_shown(other), is_shown(admin)) == (True, False, True)
    assert name in one.get(f"packages/{package}").text
    assert one.get(f"packages/download/managed/{package}").content == archive

    fields = {
        "name": "Renamed",
        "tags": "a, b",
        "enabled": "on",
        "description": "",
        "app_id": package,
    }
    changed = one.post(f"packages/modify/{package}", categories=["Web", "Databases"], **fields)
    assert messages(changed) == ["Success: Package modified."]
    artifact = services.project.glare.get(f"{publish.ARTIFACTS}/{package}").json()
    assert (artifact["display_name"], artifact["description"]) == ("Renamed", "")
    assert sorted(artifact["tags"]) == ["a", "b"]
    assert sorted(artifact["categories"]) == ["Databases", "Web"]

    assert act(one, "toggle_enabled") == ["Success: Toggled Active: Renamed"]
    assert listed(one.get("catalog/", search="renamed")) == []
    assert act(one, "toggle_enabled") == ["Success: Toggled Active: Renamed"]
    assert listed(one.get("catalog/", search="renamed")) == [package]
    assert "Error: You are not allowed to perform this operation" in act(
        one, "toggle_public_enabled"
    )
    assert act(admin, "toggle_public_enabled") == ["Success: Toggled Public: Renamed"]
    assert listed(other.get("catalog/", search="renamed")) == [package]
    assert act(admin, "delete_package") == ["Success: Deleted Package: Renamed"]
    assert not is_shown(admin)


def test_a_published_version_is_not_imported_again(one: Dashboard) -> None:
    archive = application("org.test.twice")
    import_application(one, archive, "Twice")

    (refused,) = messages(upload(one, archive))

    assert refused.startswith("Error: Package with specified name already exists")
    assert "org.test.twice 1.0.0 is published already" in refused


def test_categories_are_shown(one: Dashboard) -> None:
    page = one.get("categories/").text
    assert "Big Data" in page
    assert "Databases" in page
