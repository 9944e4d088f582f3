# SPDX-License-Identifier: Apache-2.0

"""What somebody with a browser can do on the pages of a catalogue."""

import json
import pathlib
import time
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from loader.site import paths, rendering, sources
from tests import packages, prerequisites

WIKI = paths.release("org.example.wiki", "latest")
PAGES = [
    paths.INDEX,
    paths.HELP,
    paths.package("org.example.db"),
    WIKI,
    paths.class_page("io.murano", "latest", "io.murano.resources.Instance"),
    paths.release("org.evil", "latest"),
    paths.class_page("org.evil", "latest", "org.evil.Thing"),
]
# The largest catalogue that is tried.
LARGE = 2000


def _wait_for_results(browser: webdriver.Chrome, query: str) -> None:
    """Wait until the page shows what it finds for a query, not for its first letters.

    The page began to search for it at the last key, so it ends before a search that begins now.
    """
    browser.execute_async_script("find(arguments[0]).then(() => setTimeout(arguments[1]))", query)


def _found(browser: webdriver.Chrome, query: str) -> list[str]:
    """Search for words, and return the texts that are found."""
    field = browser.find_element(By.ID, "query")
    field.clear()
    field.send_keys(query)
    _wait_for_results(browser, query)
    assert browser.find_element(By.ID, "count").text.endswith("found")
    return [link.text for link in browser.find_elements(By.CSS_SELECTOR, "#found a")]


def test_the_search_finds_packages_classes_and_properties(
    browser: webdriver.Chrome, root: str
) -> None:
    browser.get(f"{root}{paths.INDEX}")
    assert _found(browser, "wiki")[0] == "org.example.wiki"
    assert "org.example.db.Database" in _found(browser, "db data")
    assert "flavor in io.murano.resources.Instance" in _found(browser, "flavor")
    assert _found(browser, "nothing-has-this") == []
    assert _found(browser, "wiki") != []
    browser.find_element(By.LINK_TEXT, "org.example.wiki.Wiki").click()
    assert browser.find_element(By.TAG_NAME, "h1").text == "org.example.wiki.Wiki"


def test_a_keyboard_is_enough(browser: webdriver.Chrome, root: str) -> None:
    browser.get(f"{root}{paths.INDEX}")

    def press(*keys: str) -> WebElement:
        webdriver.ActionChains(browser).send_keys(*keys).perform()
        return browser.switch_to.active_element

    assert press(Keys.TAB).text == "Skip to the content"
    press(Keys.ENTER)
    assert browser.current_url.endswith("#content")
    assert press(Keys.TAB).get_attribute("id") == "query"
    press(*"wiki")
    _wait_for_results(browser, "wiki")
    link = press(Keys.TAB)
    assert link.text == "org.example.wiki"
    assert (
        browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
        == "solid"
    )
    press(Keys.ENTER)
    assert browser.find_element(By.TAG_NAME, "h1").text == "Example Wiki"


@pytest.fixture(params=["light", "dark"])
def colors(browser: webdriver.Chrome, request: pytest.FixtureRequest) -> Iterator[str]:
    """The colors that the user prefers."""
    feature = {"name": "prefers-color-scheme", "value": request.param}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    yield request.param
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(
    browser: webdriver.Chrome, root: str, colors: str, page: str
) -> None:
    browser.get(f"{root}{page}")
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 20, 22)"}[colors]
    browser.execute_script(prerequisites.axe().read_text())
    # The content security policy does not let axe load the style sheets again.
    result = browser.execute_async_script(
        "axe.run({preload: false}).then(arguments[arguments.length - 1])"
    )
    serious = [each for each in result["violations"] if each["impact"] in ("serious", "critical")]
    assert serious == [], json.dumps(serious, indent=1)
    assert result["passes"]


@pytest.mark.parametrize("page", PAGES)
def test_texts_of_packages_run_nothing(browser: webdriver.Chrome, root: str, page: str) -> None:
    browser.get(f"{root}{page}")
    assert browser.title != "hacked"
    assert browser.find_elements(By.CSS_SELECTOR, "img[src=x], a[href^=javascript]") == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_on_a_phone(browser: webdriver.Chrome, root: str, page: str) -> None:
    metrics = {"width": 375, "height": 700, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get(f"{root}{page}")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 375
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_everything_but_the_search_works_without_scripts(
    browser: webdriver.Chrome, root: str
) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"{root}{paths.INDEX}")
        assert not browser.find_element(By.ID, "query").is_enabled()
        browser.find_element(By.LINK_TEXT, "Example Wiki").click()
        browser.find_element(By.PARTIAL_LINK_TEXT, "The newest version").click()
        assert browser.find_element(By.CSS_SELECTOR, "svg.graph").is_displayed()
        browser.find_element(By.LINK_TEXT, "org.example.wiki.Wiki").click()
        assert browser.find_element(By.TAG_NAME, "h1").text == "org.example.wiki.Wiki"
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_picture_leads_to_the_packages(browser: webdriver.Chrome, root: str) -> None:
    browser.get(f"{root}{WIKI}")
    browser.find_element(By.CSS_SELECTOR, 'svg a[href*="org.example.db/1.3.0/"]').click()
    assert browser.find_element(By.TAG_NAME, "h1").text == "Example Database 1.3.0"


@pytest.mark.timeout(600)
def test_the_first_page_of_a_large_catalogue_is_usable_within_a_second(
    browser: webdriver.Chrome, tmp_path: pathlib.Path
) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    for number in range(LARGE):
        name = f"org.example.p{number}"
        (place / f"{number}.zip").write_bytes(packages.package(name, Description="A package."))
    rendering.render(sources.Local([str(place)]), tmp_path / "pages")
    start = time.monotonic()
    browser.get((tmp_path / "pages" / paths.INDEX).as_uri())
    assert len(browser.find_elements(By.CSS_SELECTOR, "#packages li")) == LARGE
    assert time.monotonic() - start < 1
    start = time.monotonic()
    assert _found(browser, "p1999") == ["org.example.p1999", "org.example.p1999.Thing"]
    assert time.monotonic() - start < 1
