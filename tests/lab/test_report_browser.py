"""The page in a real browser, from the file system: no request, no error, no sideways scrolling."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic_results

from loam_lab import report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")),
        reason="chromium and chromium-driver are not installed (./loam setup --tests)",
    ),
]

# Without the background flags Chromium itself looks for its vendor's hosts at every start.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    makers = (synthetic_results.tour, synthetic_results.troubled, synthetic_results.hostile)
    return {make.__name__: report.build(make(), folder / make.__name__, formats=("html",))["html"] for make in makers}


def show(driver: Any, page: Path, *, width: int, dark: bool = False, unfold: bool = True) -> None:
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.as_uri())
    if unfold:
        driver.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")


@pytest.mark.parametrize("name", ["tour", "troubled", "hostile"])
def test_no_request_and_no_console_message(driver: Any, pages: dict[str, Path], name: str) -> None:
    show(driver, pages[name], width=1280)
    asked, failed = [], []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
        if message["method"] == "Network.loadingFailed":
            failed.append(message["params"])
    # chrome: is the browser's own first tab, which may still be loading.
    assert [url for url in asked if not url.startswith(("data:", "chrome:"))] == [pages[name].as_uri()]
    assert failed == []
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.scripts.length") == 1


@pytest.mark.parametrize("name", ["tour", "troubled", "hostile"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_sideways_scrolling(driver: Any, pages: dict[str, Path], name: str, width: int) -> None:
    show(driver, pages[name], width=width)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_figures_follow_the_theme(driver: Any, pages: dict[str, Path], dark: bool) -> None:
    show(driver, pages["tour"], width=1280, dark=dark)
    ground, ink = driver.execute_script(
        "return [getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('figure svg text')).fill]"
    )
    levels = [sum(map(int, colour.removeprefix("rgb(").rstrip(")").split(", "))) / 3 for colour in (ground, ink)]
    assert (levels[0] < 60 and levels[1] > 200) if dark else (levels[0] > 240 and levels[1] < 60)


def test_every_figure_is_drawn_and_named(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["tour"], width=1280)
    figures = driver.execute_script(
        "return [...document.querySelectorAll('figure svg')].map(e => [e.getBoundingClientRect().width,"
        " e.getBoundingClientRect().height, e.querySelector('title').textContent, e.querySelector('desc').textContent])"
    )
    assert len(figures) == 20
    for width, height, title, description in figures:
        assert width > 300 and height > 100 and title and "jemalloc" in description


def test_keyboard_reaches_the_answer_and_unfolds_numbers(driver: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(driver, pages["tour"], width=1280, unfold=False)
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the answer"
    summary = driver.find_element(By.CSS_SELECTOR, "#numbers summary")
    summary.send_keys(Keys.ENTER)
    assert driver.find_element(By.CSS_SELECTOR, "#numbers details table").is_displayed()
