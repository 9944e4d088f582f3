# SPDX-License-Identifier: Apache-2.0

"""Make the screenshots of the documentation: ``python -m tests.browser.screenshots``.

They show pages of the example packages and of the core library, on a desk and on a phone.
"""

import pathlib
import shutil
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from loader.site import paths, rendering, sources
from tests import processes

FOLDER = processes.ROOT / "doc" / "source" / "screenshots"
_CORE_LIBRARY = processes.ROOT / ".cache" / "murano-16.0.0" / "meta"
_PLACES = (processes.ROOT / "examples" / "packages", _CORE_LIBRARY)
# A picture -> the page, the size in pixels, and the colors.
SHOTS = {
    "pages-desk.png": (paths.release("org.example.portal", "latest"), (1000, 1050), "light"),
    "pages-phone.png": (
        paths.class_page("org.example.db", "latest", "org.example.db.Database"),
        (390, 700),
        "dark",
    ),
}


def main() -> None:
    """Write all screenshots into the pictures of the documentation."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder, "catalogue")
            rendering.render(sources.Local([*map(str, _PLACES)]), target)
            for name, (page, size, colors) in SHOTS.items():
                _take(browser, (target / page).as_uri(), size, colors, FOLDER / name)
    finally:
        browser.quit()


def _take(
    browser: webdriver.Chrome, url: str, size: tuple[int, int], colors: str, file: pathlib.Path
) -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": colors}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(url)
    # The end of the page has the time of the rendering.
    browser.execute_script("document.querySelector('footer').remove()")
    browser.save_screenshot(str(file))


if __name__ == "__main__":
    main()
