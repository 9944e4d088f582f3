# SPDX-License-Identifier: Apache-2.0

"""A catalogue of pages, opened by Chromium from its files and from a web server."""

import pathlib
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from loader.site import rendering, sources
from tests import packages, prerequisites, processes, web

HOSTILE = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The pages of the core library, the examples, and packages with hostile texts."""
    folder = tmp_path_factory.mktemp("site")
    hostile = folder / "hostile"
    hostile.mkdir()
    evil = f"  evil:\n    Contract: $.string()\n    Default: {HOSTILE!r}\n"
    code = f"Name: org.evil.Thing\nProperties:\n{evil}"
    keys = {
        "Name": HOSTILE,
        "Description": HOSTILE,
        "Tags": [HOSTILE, "\u202eevil"],
        "Supplier": {"Name": HOSTILE, "CompanyUrl": {"Link": "javascript:alert(1)", "Text": "x"}},
    }
    (hostile / "evil.zip").write_bytes(packages.package("org.evil", code=code, **keys))
    places = [processes.ROOT / "examples" / "packages", prerequisites.core_library(), hostile]
    rendering.render(sources.Local([*map(str, places)]), folder / "catalogue")
    return folder / "catalogue"


@pytest.fixture(scope="session", params=["file", "http"])
def root(request: pytest.FixtureRequest, site: pathlib.Path) -> Iterator[str]:
    """The URL of the catalogue's directory, with a slash."""
    if request.param == "file":
        yield f"{site.as_uri()}/"
        return
    with web.serving_files(site) as url:
        yield url


@pytest.fixture(scope="session")
def chromium() -> Iterator[webdriver.Chrome]:
    """A headless Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(prerequisites.program("chromium", "chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1100,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = prerequisites.program("chromedriver", "chromium-driver")
    browser = webdriver.Chrome(options=options, service=Service(str(driver)))
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """The browser as it is after its start; no page may log an error."""
    chromium.get_log("browser")
    yield chromium
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []
