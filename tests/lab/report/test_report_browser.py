"""The page in a real browser, from the file system: no request, no error, no sideways scrolling."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic_results
import synthetic_study
from typed import typed

from loam_lab.presenting import report

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
    makers = (synthetic_results.tour, synthetic_results.troubled, synthetic_results.hostile, synthetic_study.study)
    return {
        make.__name__: report.build(typed(make()), folder / make.__name__, formats=("html",))["html"] for make in makers
    }


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


@pytest.mark.parametrize("name", ["tour", "troubled", "hostile", "study"])
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


@pytest.mark.parametrize("name", ["tour", "troubled", "hostile", "study"])
@pytest.mark.parametrize("width", [320, 400, 768, 1400])
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


# Every drawing: whether it has a size, and whether something visible inside it lies outside of it.
DRAWN = """
return [...document.querySelectorAll('figure svg, .legend svg')].map(e => {
  const box = e.getBoundingClientRect();
  const marks = [...e.querySelectorAll('path, line, rect, circle')].filter(m => {
    const b = m.getBoundingClientRect();
    return b.width + b.height > 0;
  });
  const beyond = [...e.querySelectorAll('text')].filter(t => {
    const b = t.getBoundingClientRect();
    return b.width > 0 && !t.closest('.scroll') && (b.left < -1 || b.right > innerWidth + 1);
  });
  return [box.width, box.height, marks.length, beyond.map(t => t.textContent)];
})
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", ["tour", "study"])
def test_every_plot_is_drawn_inside_the_page(
    driver: Any, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    show(driver, pages[name], width=width, dark=dark)
    drawings = driver.execute_script(DRAWN)
    assert len(drawings) > (100 if name == "study" else 20)
    for wide, high, drawn, beyond in drawings:
        assert wide > 0 and high > 0 and drawn > 0 and beyond == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.get_log("browser") == []


def test_every_kind_of_figure_of_a_study_is_there(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["study"], width=1400)
    anchors = ("course", "throughput", "aborts", "retries", "placement", "trade", "memory", "flame", "paper", "order")
    for anchor in anchors:
        sizes = driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().height)",
            f"#{anchor} figure svg",
        )
        assert sizes and min(sizes) > 60, anchor
    # Every figure has its values as text, too: in a table of its section, in the numbers, or in its description.
    lengths = driver.execute_script(
        "return [...document.querySelectorAll('figure svg desc')].map(e => e.textContent.length)"
    )
    assert min(lengths) > 20


BARS = """
return [...document.querySelector('.flame svg').querySelectorAll('g.bar')].filter(e => e.style.display !== 'none')
  .map(e => [e.dataset.name, e.querySelector('rect').getBoundingClientRect().width])
"""


def test_a_click_on_a_bar_widens_it_and_escape_goes_back(driver: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(driver, pages["study"], width=1400)
    before = dict(driver.execute_script(BARS))
    assert before["malloc (allocator)"] == pytest.approx(0.4 * before["all"], rel=0.01)
    driver.execute_script("document.querySelector('.flame g.bar[data-name^=malloc]').dispatchEvent(new Event('click'))")
    widened = dict(driver.execute_script(BARS))
    assert set(widened) == {"all", "main", "work", "malloc (allocator)", "mmap (kernel)"}
    assert widened["malloc (allocator)"] == pytest.approx(before["all"], rel=0.01)
    assert widened["mmap (kernel)"] == pytest.approx(before["all"] / 2, rel=0.01)
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert dict(driver.execute_script(BARS)) == pytest.approx(before, rel=0.01)


# Colour of every piece of text against what lies behind it, both composited over the page.
CONTRAST = """
const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = c => { const [r, g, b] = c.slice(0, 3).map(v => linear(v / 255));
  return .2126 * r + .7152 * g + .0722 * b; };
const behind = e => { const layers = []; for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((ground, layer) => over(layer, ground), [255, 255, 255, 1]); };
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const e = node.parentElement, style = getComputedStyle(e);
  if (!node.data.trim() || ['TITLE', 'title', 'desc', 'SCRIPT', 'STYLE'].includes(e.tagName)) continue;
  if (style.visibility === 'hidden' || e.getClientRects().length === 0) continue;
  const bar = e.closest('g.bar');
  const ground = bar ? parse(getComputedStyle(bar.querySelector('rect')).fill) : behind(e);
  const inked = e.tagName === 'text' ? parse(style.fill) : parse(style.color);
  if (e.tagName === 'text') inked[3] *= Number(style.fillOpacity);
  const [low, high] = [light(over(inked, ground)), light(ground)].sort((a, b) => a - b);
  found.push([(high + .05) / (low + .05), node.data.trim().slice(0, 40)]);
}
found.sort((a, b) => a[0] - b[0]);
return [found.length, found.slice(0, 5)];
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["study", "troubled"])
def test_contrast_of_all_text_is_sufficient(driver: Any, pages: dict[str, Path], name: str, dark: bool) -> None:
    show(driver, pages[name], width=1400, dark=dark)
    count, worst = driver.execute_script(CONTRAST)
    assert count > 500
    assert worst[0][0] >= 4.5, worst


def test_the_theme_switch_overrides_the_system(driver: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By

    show(driver, pages["tour"], width=400)
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = driver.execute_script(ground)
    switch = driver.find_element(By.CSS_SELECTOR, "button.theme")
    seen = []
    for _ in range(3):
        switch.click()
        seen.append((switch.text, driver.execute_script(ground)))
    assert [text for text, _ in seen] == ["Theme: light", "Theme: dark", "Theme: auto"]
    assert seen[0][1] == seen[2][1] == light != seen[1][1]
    _, worst = driver.execute_script(CONTRAST)
    assert worst[0][0] >= 4.5, worst


def test_a_cell_of_the_heat_map_shows_its_blocks(driver: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(driver, pages["tour"], width=400)
    panel = driver.find_element(By.ID, "single-blocks")
    assert not panel.is_displayed()
    link = driver.find_elements(By.CSS_SELECTOR, ".heat tbody tr:first-child a")[2]
    link.send_keys(Keys.ENTER)
    assert panel.is_displayed() and "jemalloc, intset, sorted list, record table: 1.1" in panel.text
    dots = panel.find_elements(By.CSS_SELECTOR, "svg circle")
    assert len(dots) == 20, "ten blocks of the allocator, ten of the baseline"
    first = synthetic_results.tour()["cells"][2]["metrics"]["ops_per_s"]["values"][0]
    assert f"{first / 1000:.2f}" in panel.text
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 400


def test_single_blocks_of_courses_are_shown_on_demand(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["study"], width=1400)
    state = "return getComputedStyle(document.querySelector('#course .raw')).visibility"
    assert driver.execute_script(state) == "hidden"
    driver.execute_script("document.getElementById('show-raw').click()")
    assert driver.execute_script(state) == "visible"


def test_without_scripts_nothing_is_lost(driver: Any, pages: dict[str, Path]) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(driver, pages["tour"], width=1400, unfold=False)
        links = driver.execute_cdp_cmd("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
        ratings = driver.execute_cdp_cmd(
            "DOM.querySelectorAll", {"nodeId": links, "selector": ".heat a[href='#throughput']"}
        )
        assert len(ratings["nodeIds"]) == 66
        switch = driver.execute_cdp_cmd("DOM.querySelectorAll", {"nodeId": links, "selector": "button"})
        assert switch["nodeIds"] == [], "no control that would do nothing"
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
