"""A headless browser for the tests of pages, and what tests ask of a page."""

import os
import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

# Where a Debian package is, what it is called elsewhere; without any, the driver looks for Chrome.
NAMES = ("chromium", "chromium-browser", "google-chrome")


def start_browser():
    """Start Chromium with its own driver: nothing is downloaded."""
    # the variable is set on GitHub's machines
    places = os.pathsep.join([os.environ["PATH"], os.environ.get("CHROMEWEBDRIVER", "")])
    driver = shutil.which("chromedriver", path=places)
    if driver is None:
        pytest.fail("no chromedriver on the PATH; .ci/get_browser installs it or says how")
    options = webdriver.ChromeOptions()
    # root, which CI often is, has no sandbox; the pages are our own
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = [path for name in NAMES if (path := shutil.which(name))]
    if found:
        options.binary_location = found[0]
    return webdriver.Chrome(options=options, service=Service(driver))


class Page:
    """An estimator's page in the browser."""

    def __init__(self, driver, path: Path):
        self.driver = driver
        self.path = path
        driver.set_window_size(1280, 1000)
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        for kind in ("browser", "performance"):
            driver.get_log(kind)  # what was before is of no interest
        driver.get(path.as_uri())

    def run(self, script: str, *arguments):
        """Run JavaScript, the body of a function, and give what it returns."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def first(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements, whether they are seen or not."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return self.run(script, selector)

    def set(self, selector: str, value, event: str = "change") -> None:
        """Return a control a value as a user does who is done with it."""
        script = """
            const [selector, value, event] = arguments;
            const control = document.querySelector(selector);
            control.value = value;
            control.dispatchEvent(new Event(event, { bubbles: true }));
        """
        self.run(script, selector, str(value), event)

    def media(self, **features: str) -> None:
        """Let the browser say that its user prefers these."""
        listed = [{"name": name.replace("_", "-"), "value": own} for name, own in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": listed})
