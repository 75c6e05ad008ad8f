"""The page in Chromium: what a reader does with the mouse, the keyboard, a screen reader, a printer or no scripts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reports import page
from store.records import Comparison, Level, Scope, Verdict
from tests.browser.window import missing, opened
from tests.sayings import AFTER, BEFORE, NEW, OLD, a_random_comparison, a_screen, a_wide_sweep
from tests.test_page import BREAKING, hostile_comparison

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing is missing")

AXE = gzip.decompress((Path(__file__).parent / "vendor" / "axe.min.js.gz").read_bytes()).decode()


def many() -> Comparison:
    """Configs enough to scroll, each with a curve, its history and an eval; and one of everything beside them."""
    wide, screen = a_wide_sweep(40), a_screen()
    values = {"tput_per_gpu": 1000.0, "median_tpot": 0.02}
    findings = [
        replace(one, baseline=value, candidate=value * (1 + (one.effect or 0)))
        if one.scope is Scope.POINT and one.series and (value := values.get(one.metric, 0) * (one.series.conc or 1))
        else one
        for one in wide.findings
    ]
    curves = {one.key for one in findings if one.scope is Scope.CURVE}
    told = [(BEFORE[0], 1.0, OLD), (BEFORE[1], 1.01, OLD), (AFTER[0], 0.9, NEW)]
    levels = tuple(Level(one.key, one.started_at, level, image) for one, level, image in told)
    return replace(
        wide,
        findings=tuple(findings),
        unmatched=(*wide.unmatched, *screen.unmatched),
        caveats=screen.caveats,
        history=dict.fromkeys(curves, levels),
    )


@pytest.fixture(scope="module")
def window() -> Iterator[WebDriver]:
    with opened() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page.build(many()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def shown(window: WebDriver, address: str) -> WebDriver:
    """The page, freshly opened at a usual size in light colours."""
    sized(window, 1200)
    coloured(window, "light")
    window.get("about:blank")
    window.get_log("browser")  # type: ignore[no-untyped-call]
    window.get_log("performance")  # type: ignore[no-untyped-call]
    window.get(address)
    return window


def sized(window: WebDriver, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def coloured(window: WebDriver, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def find(window: WebDriver, selector: str) -> WebElement:
    return window.find_element("css selector", selector)


def every(window: WebDriver, selector: str) -> list[WebElement]:
    return window.find_elements("css selector", selector)


def press(window: WebDriver, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(window).send_keys(*keys).perform()


def run(window: WebDriver, code: str, *arguments: object) -> Any:
    return window.execute_script(code, *arguments)  # type: ignore[no-untyped-call]


def chosen(window: WebDriver, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(find(window, f"[name={name}]")).select_by_value(value)


def waited(window: WebDriver, done: Callable[[], bool]) -> None:
    """Wait until something that the page does later is done; fails where it never is."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(window, 20).until(lambda _: done())


def names(window: WebDriver) -> list[str]:
    """What the rows of the table are about, from the top."""
    cells = "return [...document.querySelectorAll('#rows tbody tr[data-at] td:first-child')].map(c => c.lastChild.data)"
    found: list[str] = run(window, cells)
    return found


# ---- opening -------------------------------------------------------------------------------------------------


def test_opening_and_using_the_page_asks_no_network_and_says_no_error(shown: WebDriver) -> None:
    every(shown, "[data-to]")[1].click()
    every(shown, "#rows td button")[0].click()
    find(shown, "#more-charts").click()
    logged = shown.get_log("browser")  # type: ignore[no-untyped-call]
    assert [entry["message"] for entry in logged] == []
    events = [json.loads(entry["message"])["message"] for entry in shown.get_log("performance")]  # type: ignore[no-untyped-call]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith("file://")] == []


def test_foreign_text_runs_nothing(window: WebDriver, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page.build(hostile_comparison([*BREAKING, "<img src=x onerror=window.ran=1>"])), encoding="utf-8")
    window.get(path.as_uri())
    for place in range(3):
        every(window, "#rows td button")[place].click()
    assert run(window, "return [window.ran === undefined, document.querySelectorAll('img, iframe').length]") == [
        True,
        0,
    ]


def test_without_scripts_both_languages_and_what_moved_are_there(window: WebDriver, address: str) -> None:
    window.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        window.get("about:blank")
        window.get(address)
        heads = [head.text for head in every(window, "h1")]
        assert len(heads) == 2
        assert all(heads)
        assert "What got worse" in find(window, "#verdict").text
        assert not find(window, "#explore").is_displayed()
    finally:
        window.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_is_never_wider_than_the_window(shown: WebDriver, width: int) -> None:
    sized(shown, width)
    every(shown, "#rows td button")[0].click()
    assert run(shown, "return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("seed", [*range(6), None])
def test_any_comparison_opens_without_an_error(window: WebDriver, tmp_path: Path, seed: int | None) -> None:
    given = a_random_comparison(seed) if seed is not None else Comparison((), (), "previous", (), (), (), "1")
    path = tmp_path / "any.html"
    path.write_text(page.build(given), encoding="utf-8")
    window.get_log("browser")  # type: ignore[no-untyped-call]
    window.get(path.as_uri())
    assert find(window, "#explore").is_displayed()
    assert find(window, "h1").text
    assert window.get_log("browser") == []  # type: ignore[no-untyped-call]


# ---- languages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["#rows tbody tr:nth-child(40)", "[data-lang=en] [data-at=doubt-2]"])
def test_the_switch_keeps_the_place_the_filters_and_the_open_rows(shown: WebDriver, part: str) -> None:
    chosen(shown, "h", "h200")
    every(shown, "#rows td button")[1].click()
    before = names(shown)
    place = find(shown, part).get_attribute("data-at")
    top = (
        f"[...document.querySelectorAll('[data-at=\"{place}\"]')].find(e => e.offsetParent).getBoundingClientRect().top"
    )
    run(shown, f"scrollBy(0, {top} - 5)")
    run(shown, "document.querySelector('[data-to=zh]').click()")
    assert abs(run(shown, f"return {top}") - 5) <= 2
    assert run(shown, "return [document.documentElement.lang, document.querySelector('[name=h]').value]") == [
        "zh-CN",
        "h200",
    ]
    assert names(shown) == before
    assert len(every(shown, "#rows tr.more")) == 1


def test_the_switch_changes_every_word_and_no_number(shown: WebDriver) -> None:
    numbers = "return [...document.querySelectorAll('#rows td.num a')].map(a => a.textContent)"
    before, english = run(shown, numbers), find(shown, "main").text
    every(shown, "[data-to]")[1].click()
    chinese = find(shown, "main").text
    assert run(shown, numbers) == before
    assert before
    for word in ("Verdict", "Charts", "regression", "interactivity", "Rows shown"):
        assert word in english
        assert word not in chinese
    assert find(shown, "[data-to=zh]").get_attribute("aria-pressed") == "true"


def test_language_and_filters_are_kept_in_the_address(shown: WebDriver) -> None:
    every(shown, "[data-to]")[1].click()
    chosen(shown, "v", "improvement")
    before = names(shown)
    shown.refresh()
    assert run(shown, "return document.documentElement.lang") == "zh-CN"
    assert names(shown) == before


# ---- filters and sorting -------------------------------------------------------------------------------------


def test_filters_narrow_rows_and_charts(shown: WebDriver) -> None:
    chosen(shown, "v", "improvement")
    words = {cell.text for cell in every(shown, "#rows tbody .v")}
    assert words == {"improvement"}
    assert {head.text.split()[-1] for head in every(shown, "#charts h3 .v")} == {"improvement"}
    find(shown, "[name=t]").send_keys("model1-")
    assert names(shown)
    assert all("model1-" in name for name in names(shown))
    find(shown, "[name=t]").send_keys("nothing has this name")
    assert find(shown, "#rows-count").text == "No row fits the filters."
    find(shown, "#filters button").click()
    waited(shown, lambda: len(names(shown)) > 20)


def test_advisory_rows_come_when_asked_for(shown: WebDriver) -> None:
    before = find(shown, "#rows-count").text
    find(shown, "[name=o]").click()
    assert find(shown, "#rows-count").text != before


def test_a_heading_sorts_and_says_so(shown: WebDriver) -> None:
    values = "return [...document.querySelectorAll('#rows tbody td:nth-child(4)')].map(c => c.textContent)"
    find(shown, "[data-sort=change]").click()
    rising = [float(text.rstrip("%")) for text in run(shown, values) if text.endswith("%")]
    assert rising == sorted(rising)
    assert find(shown, "#rows th:nth-child(4)").get_attribute("aria-sort") == "ascending"
    assert run(shown, "return document.activeElement.dataset.sort") == "change"
    press(shown, "\ue007")
    falling = [float(text.rstrip("%")) for text in run(shown, values) if text.endswith("%")]
    assert falling == sorted(falling, reverse=True)
    assert find(shown, "#rows th:nth-child(4)").get_attribute("aria-sort") == "descending"


def test_more_rows_and_charts_come_on_demand_and_all_rows_for_a_printer(shown: WebDriver) -> None:
    first, charts = len(names(shown)), len(every(shown, "#charts figure"))
    find(shown, "#more-charts").click()
    assert len(every(shown, "#charts figure")) > charts
    run(shown, "dispatchEvent(new Event('beforeprint'))")
    printed = len(names(shown))
    assert printed > first
    run(shown, "dispatchEvent(new Event('afterprint'))")
    assert len(names(shown)) == first


# ---- keyboard ------------------------------------------------------------------------------------------------


def test_a_chart_is_one_stop_whose_points_the_arrows_reach(shown: WebDriver) -> None:
    stops = (
        "return [...document.querySelectorAll('#charts svg[role]')]"
        ".map(chart => chart.querySelectorAll('[tabindex=\"0\"]').length)"
    )
    assert set(run(shown, stops)) == {1}
    run(shown, "document.querySelector('#charts .spot[tabindex=\"0\"]').focus()")
    tip = find(shown, "#tip")
    assert tip.is_displayed()
    first = tip.text
    assert "tok/s/user" in first
    press(shown, "\ue014")
    assert tip.is_displayed()
    assert tip.text != first
    assert set(run(shown, stops)) == {1}
    press(shown, "\ue00c")
    assert not tip.is_displayed()


def test_the_mouse_opens_the_same_text(shown: WebDriver) -> None:
    from selenium.webdriver import ActionChains

    spot = find(shown, "#charts .spot")
    run(shown, "arguments[0].scrollIntoView({block: 'center'})", spot)
    ActionChains(shown).move_to_element(spot.find_element("css selector", ".ring")).perform()
    tip = find(shown, "#tip")
    assert tip.is_displayed()
    assert tip.text == spot.get_attribute("aria-label")


def test_a_row_opens_with_the_keyboard_and_tells_its_runs_and_doubts(shown: WebDriver) -> None:
    chosen(shown, "s", "3")
    run(shown, "document.querySelector('#rows td button').focus()")
    press(shown, "\ue007")
    assert run(shown, "return document.activeElement.getAttribute('aria-expanded')") == "true"
    opened_row = find(shown, "#rows tr.more")
    links = [link.get_attribute("href") for link in opened_row.find_elements("css selector", "dd a")]
    assert any("/actions/runs/" in (link or "") for link in links)
    assert "Notes" in opened_row.text
    press(shown, "\ue007")
    assert every(shown, "#rows tr.more") == []


def test_the_first_stop_leads_to_the_table(shown: WebDriver) -> None:
    press(shown, "\ue004")
    assert run(shown, "return document.activeElement.className") == "skip"
    press(shown, "\ue007")
    assert run(shown, "return document.activeElement.id") == "rows"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 400)])
def test_nothing_serious_keeps_people_from_using_it(shown: WebDriver, lang: str, scheme: str, width: int) -> None:
    sized(shown, width)
    coloured(shown, scheme)
    run(shown, f"document.querySelector('[data-to={lang}]').click()")
    every(shown, "#rows td button")[0].click()
    run(shown, "document.querySelector('#charts .spot[tabindex=\"0\"]').focus()")
    run(shown, AXE)
    found = shown.execute_async_script("axe.run().then(arguments[0])")  # type: ignore[no-untyped-call]
    grave = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in grave] == []
    assert len(found["passes"]) > 20


def test_the_verdict_stands_above_everything_else(shown: WebDriver) -> None:
    assert run(shown, "return document.querySelector('h1').getBoundingClientRect().bottom") < 200
    assert Verdict.REGRESSION.value in find(shown, "h1").text.lower()
