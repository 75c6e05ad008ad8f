"""A window of Chromium for the tests: headless, offline, of a given size."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

PROGRAMS = ("chromium", "chromedriver")
_FLAGS = ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")


def missing() -> str:
    """What this machine lacks to open a window, and how to get it; nothing when it lacks nothing."""
    if importlib.util.find_spec("selenium") is None:
        return "no selenium: install the extra dev"
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"no {' and no '.join(lacking)}: apt-get install chromium chromium-driver" if lacking else ""


@contextmanager
def opened(width: int = 1200, height: int = 900) -> Iterator[WebDriver]:
    """A window whose console and network are recorded."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_FLAGS, f"--window-size={width},{height}", *(["--no-sandbox"] if os.geteuid() == 0 else [])):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        yield window
    finally:
        window.quit()
