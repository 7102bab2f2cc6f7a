"""The page in Chromium: it does what its hands are told, on any screen, in any light, and on paper."""

import re
from typing import Any

import pytest

from phinets.reports.page import Contents
from phinets.reports.page.tables import SIGNS

Keys: Any = pytest.importorskip("selenium.webdriver").Keys
pytestmark = pytest.mark.slow


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())", selector
    )
    return found


def values(page: Any, table: str, column: int) -> list[float | None]:
    """What a column's cells say they are, from the top down."""
    script = (
        "return [...document.querySelectorAll(`${arguments[0]} tbody:not(.baselines) tr`)]"
        ".map((row) => row.cells[arguments[1]])"
        ".map((cell) => cell.dataset.v === '' ? null : Number(cell.dataset.v))"
    )
    found: list[float | None] = page.execute_script(script, table, column)
    return found


def background(page: Any) -> int:
    """How bright the page is: red, green and blue together."""
    color = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", color)[:3]))


def until(page: Any, condition: str) -> None:
    """Wait until the page has taken in what the browser was told: it does so when it has time."""
    script = (
        f"const done = arguments[0]; const look = () => {condition} ? done() : setTimeout(look, 20);"
        "requestAnimationFrame(look)"
    )
    page.execute_async_script(script)


def sized(page: Any, wide: int, high: int = 740) -> None:
    size = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": wide < 900}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    until(page, f"document.documentElement.clientWidth <= {wide}")


def seen_as(page: Any, query: str, **emulated: Any) -> None:
    """Another medium or another taste of the reader's, for which the media query holds."""
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
    until(page, f"matchMedia('{query}').matches")


def seen_in(page: Any, light: str) -> None:
    """As on a system that is set to light or dark."""
    features = [{"name": "prefers-color-scheme", "value": light}]
    seen_as(page, f"(prefers-color-scheme: {light})", features=features)


def test_it_complains_of_nothing_and_asks_nobody_even_offline(opened: Any) -> None:
    opened.execute_cdp_cmd("Network.enable", {})
    nothing = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    opened.execute_cdp_cmd("Network.emulateNetworkConditions", nothing)
    try:
        opened.refresh()
        assert texts(opened, "h1") == ["A <title> & more"]
    finally:
        on = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        opened.execute_cdp_cmd("Network.emulateNetworkConditions", on)


def test_every_link_leads_to_an_element_that_can_be_seen_once_it_is_followed(opened: Any) -> None:
    lost = opened.execute_async_script(
        """
        const done = arguments[0], lost = [];
        const every = [...new Set([...document.querySelectorAll("a[href]")].map((a) => a.getAttribute("href")))];
        let runs = 0;
        const links = every.filter((link) => !link.startsWith("#r-") || runs++ % 20 === 0);  // all runs lie alike
        (async () => {
          for (const link of links) {
            const target = document.getElementById(decodeURIComponent(link.slice(1)));
            for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = false;
            const followed = new Promise((soon) => addEventListener("hashchange", soon, { once: true }));
            location.hash = link;
            await followed;
            if (!target || !target.checkVisibility()) lost.push(link);
          }
          done([links.length, lost]);
        })();
        """
    )
    assert lost[0] > 40
    assert lost[1] == []


def test_a_link_opens_what_its_target_lies_in_whatever_the_browser_does_by_itself(opened: Any) -> None:
    opened.execute_script(
        "const run = document.querySelector('tr[id^=r-]'); location.hash = run.id; run.closest('details').open = false"
    )
    opened.execute_script("dispatchEvent(new Event('hashchange'))")
    assert opened.execute_script("return document.querySelector('tr[id^=r-]').checkVisibility()")


@pytest.mark.parametrize("column", [0, 2, 3, 4])
def test_claims_sort_both_ways_and_back_by_a_click(opened: Any, column: int) -> None:
    table = ".claims"
    before = values(opened, table, column)
    header = opened.find_elements("css selector", f"{table} thead th")[column]
    known = sorted(value for value in before if value is not None)
    assert (len(known) < len(before)) == (column in (2, 3)), "some claims have no effect yet"
    for way, wanted in (("ascending", known), ("descending", known[::-1])):
        opened.execute_script("arguments[0].click()", header.find_element("css selector", "button"))
        assert header.get_attribute("aria-sort") == way
        after = values(opened, table, column)
        assert after[: len(known)] == wanted
        assert set(after[len(known) :]) <= {None}, "what has no value comes last"
    opened.execute_script("arguments[0].click()", header.find_element("css selector", "button"))
    assert header.get_attribute("aria-sort") == "none"
    assert values(opened, table, column) == before


def test_a_table_sorts_by_the_keyboard_by_numbers_and_by_names(opened: Any) -> None:
    table = "#pocket-cifar10-weight-decay-methods-1 table"
    last = texts(opened, f"{table} .baselines th")
    buttons = opened.find_elements("css selector", f"{table} thead button")
    buttons[1].send_keys(Keys.ENTER)
    numbers = values(opened, table, 1)
    assert len(numbers) > 3
    assert numbers == sorted(numbers, key=lambda value: (value is None, value))
    buttons[0].send_keys(Keys.SPACE)
    names = texts(opened, f"{table} tbody th")
    assert last == ["untrained", "raw pixels"]
    assert names == [*sorted(names[:-2], key=str.lower), *last], "baselines stay below"
    sorts = [th.get_attribute("aria-sort") for th in opened.find_elements("css selector", f"{table} thead th")]
    assert sorts[0] == "ascending"
    assert set(sorts[1:]) == {"none"}, "only one column is told to be sorted"


def test_the_filter_shows_claims_of_one_verdict_and_all_again(opened: Any, contents: Contents) -> None:
    verdicts = [claim.verdict for target in contents.targets for claim in target.claims]
    assert len(set(verdicts)) > 1
    shown = "return [...document.querySelectorAll('.claims tbody tr')].filter((row) => row.checkVisibility()).length"
    for button in opened.find_elements("css selector", ".filter button"):
        wanted = button.get_attribute("data-verdict")
        opened.execute_script("arguments[0].click()", button)
        assert button.get_attribute("aria-pressed") == "true"
        assert opened.execute_script(shown) == (verdicts.count(wanted) if wanted else len(verdicts))
    opened.execute_script("document.querySelector('.filter button').click()")
    assert opened.execute_script(shown) == len(verdicts)


@pytest.mark.parametrize("wide", [360, 768, 1280])
def test_the_page_never_scrolls_sideways_even_with_everything_open(opened: Any, wide: int) -> None:
    sized(opened, wide)
    try:
        for opening in ("", "for (const box of document.querySelectorAll('details')) box.open = true;"):
            opened.execute_script(opening)
            assert opened.execute_script("return document.documentElement.scrollWidth") <= wide
            outside = opened.execute_script(
                "return [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, .space, svg, pre')"
                " && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))"
            )
            assert outside == []
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_wide_tables_scroll_in_a_box_of_their_own_that_the_keyboard_reaches(opened: Any) -> None:
    sized(opened, 360)
    try:
        boxes = opened.execute_script(
            "return [...document.querySelectorAll('.target .scroll')].filter((b) => b.scrollWidth > b.clientWidth)"
            ".map((b) => [getComputedStyle(b).overflowX, b.tabIndex, b.ariaLabel])"
        )
        assert boxes
        assert all(way == "auto" and tab == 0 and label for way, tab, label in boxes)
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_it_is_light_or_dark_as_the_system_says(opened: Any, scheme: str, dark: bool) -> None:
    seen_in(opened, scheme)
    assert (background(opened) < 200) == dark


def test_the_switch_changes_the_light_and_is_remembered(opened: Any) -> None:
    seen_in(opened, "light")
    seen = {}
    for _ in range(3):
        opened.execute_script("document.getElementById('theme').click()")
        seen[texts(opened, "#theme span")[0]] = background(opened)
    assert seen["dark"] < 200 < 600 < seen["light"]
    assert seen["as the system"] == seen["light"]
    for _ in range(2):
        opened.execute_script("document.getElementById('theme').click()")
    opened.refresh()
    assert texts(opened, "#theme span") == ["dark"]
    assert background(opened) < 200


def test_on_paper_everything_is_open_light_and_without_the_contents(opened: Any) -> None:
    opened.execute_script("document.documentElement.dataset.theme = 'dark'")
    hidden = (
        "return [...document.querySelectorAll('details > :not(summary)')]"
        ".filter((e) => !e.checkVisibility({contentVisibilityAuto: true})).length"
    )
    assert opened.execute_script(hidden) > 50
    seen_as(opened, "print", media="print")
    assert opened.execute_script(f"{hidden.replace('details', 'main details')}") == 0
    assert not opened.find_element("css selector", "nav").is_displayed()
    assert background(opened) > 600
    try:
        sized(opened, 718)  # A4 less its margins
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 718
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        seen_as(opened, "screen", media="")


def test_printing_opens_what_is_closed_and_closes_it_again(opened: Any) -> None:
    count = "return document.querySelectorAll('main details[open]').length"
    before = opened.execute_script(count)
    opened.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert opened.execute_script(count) == opened.execute_script(
        "return document.querySelectorAll('main details').length"
    )
    opened.execute_script("dispatchEvent(new Event('afterprint'))")
    assert opened.execute_script(count) == before


def test_verdicts_are_told_by_word_shape_and_color(opened: Any) -> None:
    told = opened.execute_script(
        "return [...document.querySelectorAll('.glossary .badge')].map((b) => [b.textContent.trim(),"
        " b.querySelector('use').getAttribute('href'), getComputedStyle(b).color])"
    )
    assert [word for word, _, _ in told] == list(SIGNS)
    assert len({shape for _, shape, _ in told}) == len({color for _, _, color in told}) == len(SIGNS)


def test_every_control_has_a_name(opened: Any) -> None:
    unnamed = opened.execute_script(
        "return [...document.querySelectorAll('button, summary, a')].filter((e) => "
        "!(e.ariaLabel || e.textContent.trim()) || e.tabIndex < 0).map((e) => e.outerHTML)"
    )
    assert unnamed == []
