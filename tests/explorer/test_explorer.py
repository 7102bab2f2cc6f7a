"""The explorer says what the library says, and does what its hands are told."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from phinets.dynamics.bifurcations import bifurcations
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.systems import PhiNet, SimSiam
from phinets.reports import palette
from phinets.reports.explorer import explorer

Keys: Any = pytest.importorskip("selenium.webdriver").Keys
ActionChains: Any = pytest.importorskip("selenium.webdriver").ActionChains
pytestmark = pytest.mark.slow
Flow = SimSiam | PhiNet


def system(name: str, version: Any, sigma2: float, rho: float) -> Flow:
    if name == "simsiam":
        return SimSiam(sigma2=sigma2, rho=rho)
    return PhiNet(sigma2=sigma2, rho=rho, version=version)


def sinks(flow: Flow) -> int:
    return sum(point.kind == "sink" for point in equilibria(flow))


def shown(count: int) -> str:
    return "1 sink" if count == 1 else f"{count} sinks"


def typed(page: Any, field: str, text: object) -> None:
    """Replace what stands in a field of numbers, as a person would."""
    page.find_element("id", field).send_keys(Keys.CONTROL + "a" + Keys.NULL + f"{text}\t")


def pressed(page: Any, selector: str) -> None:
    page.execute_script("arguments[0].click()", page.find_element("css selector", selector))


def settled(page: Any) -> dict[str, Any]:
    """The page's state after it has drawn."""
    page.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 0))")
    state: dict[str, Any] = page.execute_script("return phinets.state()")
    return state


def clicked(page: Any, psi: float, gamma: float) -> None:
    """A real click on PhiNet's plane."""
    settled(page)
    canvas = page.find_element("id", "phinet")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    at = page.execute_script("return phinets.place(arguments[0], arguments[1])", psi, gamma)
    box = page.execute_script("return arguments[0].getBoundingClientRect()", canvas)
    dx, dy = at["x"] - box["left"] - box["width"] / 2, at["y"] - box["top"] - box["height"] / 2
    ActionChains(page, duration=0).move_to_element_with_offset(canvas, round(dx), round(dy)).click().perform()


def test_the_page_holds_all_it_needs() -> None:
    page = explorer()
    assert not re.findall(r"https?:|//[a-z]|\bsrc=|@import|\burl\(|fetch\(|XMLHttp|import\s*[({*]", page)
    assert re.findall(r'href="([^"]*)"', page) == ["data:,"]
    assert "{{" not in page


def test_its_colors_are_those_of_the_pictures() -> None:
    light = explorer().split("@media")[0]
    for name in ("ink", "faint", "sink", "saddle", "source", "nullcline", "border", "alive", "collapse"):
        assert f"--{name}: {getattr(palette, name.upper())};" in light


def test_it_finds_the_roots_of_any_polynomial(page: Any) -> None:
    random = np.random.default_rng(0)
    for degree in range(1, 11):
        roots = np.sort(random.normal(size=degree))
        rising = np.polynomial.polynomial.polyfromroots(roots).tolist()
        found = page.execute_script("return phinets.roots(arguments[0])", rising)
        np.testing.assert_allclose(found, roots, atol=1e-6)
        assert page.execute_script("return phinets.roots(arguments[0])", np.convolve(rising, [1, 0, 1]).tolist()) == (
            pytest.approx(found, abs=1e-6)
        ), "a factor without real roots adds none"


def test_a_double_root_is_found_once(page: Any) -> None:
    assert page.execute_script("return phinets.roots([-2, 5, -4, 1])") == pytest.approx([1, 2], abs=1e-7)
    assert page.execute_script("return phinets.roots([0, 0, 1])") == [0]


@pytest.mark.parametrize(("name", "version"), [("phinet", "published"), ("phinet", "corrected"), ("simsiam", None)])
def test_its_equilibria_are_the_library_s(page: Any, name: str, version: str | None) -> None:
    grid = list(product((0.0, 0.35, 1.5, 2.2, 5.0), (1e-5, 1e-4, 0.0007, 0.003, 0.01, 0.03, 0.08, 0.12, 0.4)))
    theirs = page.execute_script(
        "return arguments[2].map(([sigma2, rho]) => phinets.equilibria(arguments[0], arguments[1], sigma2, rho))",
        name, version, grid,
    )  # fmt: skip
    for (sigma2, rho), found in zip(grid, theirs, strict=True):
        ours = equilibria(system(name, version, sigma2, rho))
        assert [point["kind"] for point in found] == [point.kind for point in ours], (sigma2, rho)
        for point, right in zip(found, ours, strict=True):
            assert point["psi"] == pytest.approx(right.psi, rel=1e-9, abs=1e-12)
            assert point["gamma"] == pytest.approx(right.gamma or 0.0, rel=1e-9, abs=1e-12)
            values = [complex(value["re"], value["im"]) for value in point["eigenvalues"]]
            np.testing.assert_allclose(values, right.eigenvalues, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "version"), [("phinet", "published"), ("phinet", "corrected"), ("simsiam", None)])
def test_its_strip_folds_where_the_library_has_a_saddle_node(page: Any, name: str, version: str | None) -> None:
    for sigma2 in (0.0, 0.8, 1.5, 4.0):
        folds = page.execute_script("return phinets.folds(...arguments)", name, version, sigma2)
        ours = bifurcations(system(name, version, sigma2, 0.1), 1e-5, 0.5).points
        assert [fold["rho"] for fold in folds] == pytest.approx([each.rho for each in ours][::-1], rel=1e-8)
        assert [fold["psi"] for fold in folds] == pytest.approx([each.at.psi for each in ours][::-1], rel=1e-3)


@pytest.mark.parametrize("version", ["published", "corrected"])
def test_moving_rho_across_a_threshold_changes_the_number_of_sinks_shown(page: Any, version: Any) -> None:
    pressed(page, f"input[value={version}]")
    slider = page.find_element("id", "rho")
    for name, flow in (("phinet", PhiNet(version=version)), ("simsiam", SimSiam())):
        for threshold in bifurcations(flow, 1e-5, 0.5).points:
            typed(page, "rho-number", threshold.rho * 1.02)
            before = page.find_element("id", f"{name}-sinks").text
            assert before == shown(sinks(flow.with_rho(threshold.rho * 1.02)))
            slider.send_keys(Keys.ARROW_LEFT * 6)  # half a hundredth of a decade each
            after = settled(page)["rho"]
            assert threshold.rho * 0.9 < after < threshold.rho
            assert page.find_element("id", f"{name}-sinks").text == shown(sinks(flow.with_rho(after))) != before


@pytest.mark.parametrize("version", ["published", "corrected"])
def test_its_box_shows_every_equilibrium_and_fit_comes_back_to_it(page: Any, version: Any) -> None:
    pressed(page, f"input[value={version}]")
    typed(page, "rho-number", 0.0001)
    box = settled(page)["box"]
    for point in equilibria(PhiNet(rho=0.0001, version=version)):
        assert box["psi"][0] < point.psi < box["psi"][1]
        assert box["gamma"][0] < (point.gamma or 0.0) < box["gamma"][1]
    pressed(page, "#closer")
    closer = settled(page)["box"]
    assert np.ptp(closer["psi"]) == pytest.approx(np.ptp(box["psi"]) / 1.5)
    pressed(page, "#fit")
    assert settled(page)["box"] == box


def test_its_folds_are_told_anew_when_the_setting_changes(page: Any) -> None:
    settings: list[tuple[float, Any]] = [(1.5, "corrected"), (0.4, "corrected"), (0.4, "published")]
    for sigma2, version in settings:
        pressed(page, f"input[value={version}]")
        typed(page, "sigma2-number", sigma2)
        settled(page)
        told = page.find_element("id", "folds").text
        for fold in bifurcations(PhiNet(sigma2=sigma2, version=version), 1e-5, 0.5).points:
            assert any(float(word) == float(f"{fold.rho:.5g}") for word in re.findall(r"[\d.]+(?:e-\d+)?", told))


def test_its_table_shows_the_equilibria_of_the_settings(page: Any) -> None:
    pressed(page, "input[value=published]")
    typed(page, "sigma2-number", 0.7)
    typed(page, "rho-number", 0.004)
    ours = equilibria(PhiNet(sigma2=0.7, rho=0.004, version="published"))
    rows = [row.text.split() for row in page.find_elements("css selector", "#phinet-table tr")]
    assert [row[2] for row in rows] == [point.kind for point in ours]
    for row, point in zip(rows, ours, strict=True):
        psi, gamma = (float(text.replace("−", "-")) for text in row[:2])
        assert [psi, gamma] == pytest.approx([point.psi, point.gamma], abs=5.1e-5)


@pytest.mark.parametrize("rho", [0.08, 0.0001])
@pytest.mark.parametrize("version", ["published", "corrected"])
def test_a_click_starts_a_trajectory_that_ends_where_the_library_s_integration_ends(
    page: Any, version: Any, rho: float
) -> None:
    pressed(page, f"input[value={version}]")
    typed(page, "rho-number", rho)
    box = settled(page)["box"]
    flows: dict[str, Flow] = {"phinet": PhiNet(rho=rho, version=version), "simsiam": SimSiam(rho=rho)}
    for across, up in ((0.33, 0.6), (0.9, 0.25), (0.12, 0.15), (0.45, 0.85)):
        psi = box["psi"][0] + across * (box["psi"][1] - box["psi"][0])
        gamma = box["gamma"][0] + up * (box["gamma"][1] - box["gamma"][0])
        clicked(page, psi, gamma)
        runs = settled(page)["runs"]
        start = runs["phinet"][-1]
        pixels = (1.5 / 800 * np.ptp(box["psi"]), 1.5 / 300 * np.ptp(box["gamma"]))
        assert (start["psi"], start["gamma"]) == (
            pytest.approx(psi, abs=pixels[0]),
            pytest.approx(gamma, abs=pixels[1]),
        )
        for name, flow in flows.items():
            run = runs[name][-1]
            first = [run[variable] for variable in flow.variables]
            end = solve_ivp(lambda t, y, f=flow: f.flow(y), (0, 200 / rho), first, "LSODA", rtol=1e-9, atol=1e-12).y[
                :, -1
            ]
            assert [run["sink"][variable] for variable in flow.variables] == pytest.approx(end, abs=1e-5)


@pytest.mark.parametrize(("rho", "start"), [(0.08, [0.2, 1.0]), (0.003, [0.3, 1.2]), (0.0001, [0.5, -1.0])])
def test_the_line_of_a_trajectory_is_the_library_s_orbit(page: Any, rho: float, start: list[float]) -> None:
    flow = PhiNet(rho=rho, version="published")
    script = "return phinets.trajectory('phinet', 'published', 1.5, arguments[0], arguments[1]).states"
    states = np.array(page.execute_script(script, rho, start))
    times = np.concatenate([[0], np.geomspace(1e-3, 20 / rho, 20_000)])
    orbit = solve_ivp(lambda t, y: flow.flow(y), (0, times[-1]), start, "LSODA", times, rtol=1e-10, atol=1e-12).y
    lengths = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(orbit), axis=0))])
    even = np.stack([np.interp(np.linspace(0, lengths[-1], 20_000), lengths, values) for values in orbit], axis=1)
    away = [np.linalg.norm(even - state, axis=1).min() for state in states]
    assert max(away) < 2e-4


def test_the_paper_s_start_learns_as_phinet_and_collapses_as_simsiam(page: Any) -> None:
    typed(page, "rho-number", 0.08)
    pressed(page, "#start button[type=submit]")
    runs = settled(page)["runs"]
    assert (runs["phinet"][0]["psi"], runs["phinet"][0]["gamma"]) == (0.08, 0.5)
    assert runs["phinet"][0]["sink"]["psi"] > 0.4
    assert runs["simsiam"][0]["sink"]["psi"] == 0
    assert "collapses" in page.find_element("id", "news").text


def test_trajectories_follow_the_sliders_and_go_when_they_are_told(page: Any) -> None:
    typed(page, "rho-number", 0.05)
    clicked(page, 0.2, 0.4)
    assert settled(page)["runs"]["phinet"][0]["sink"]["psi"] > 0
    typed(page, "rho-number", 0.4)
    assert settled(page)["runs"]["phinet"][0]["sink"]["psi"] == 0
    pressed(page, "#clear")
    assert settled(page)["runs"] == {"phinet": [], "simsiam": []}
    clicked(page, 0.2, 0.4)
    ActionChains(page, duration=0).double_click(page.find_element("id", "phinet")).perform()
    assert settled(page)["runs"] == {"phinet": [], "simsiam": []}


def test_numbers_beyond_the_sliders_are_taken_to_their_ends(page: Any) -> None:
    typed(page, "rho-number", -3)
    typed(page, "sigma2-number", 99)
    state = settled(page)
    assert (state["rho"], state["sigma2"]) == (1e-5, 5)


def test_the_address_can_say_what_is_shown(page: Any, address: str) -> None:
    page.get(f"{address}#show=phinet&version=published&rho=0.003&sigma2=0.5&start=0.3,1.2&start=0.1,x")
    state = settled(page)
    assert [state[name] for name in ("show", "version", "rho", "sigma2")] == ["phinet", "published", 0.003, 0.5]
    assert [(run["psi"], run["gamma"]) for run in state["runs"]["phinet"]] == [(0.3, 1.2)]
    page.get(f"{address}#show=everything&rho=much")
    assert [settled(page)[name] for name in ("show", "rho")] == ["phinet", 0.003], "what makes no sense changes nothing"


@pytest.mark.parametrize("show", ["both", "phinet", "simsiam"])
def test_each_choice_shows_its_pictures_and_numbers(page: Any, show: str) -> None:
    pressed(page, f"input[value={show}]")
    settled(page)
    for name in ("phinet", "simsiam"):
        visible = show in ("both", name)
        assert page.find_element("id", name).is_displayed() == visible
        assert page.find_element("id", f"{name}-numbers").is_displayed() == visible


def test_every_picture_has_ink(page: Any) -> None:
    settled(page)
    for name in ("phinet", "simsiam", "strip"):
        colors = page.execute_script(
            "const c = document.getElementById(arguments[0]);"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "return new Set(new Uint32Array(d.buffer)).size",
            name,
        )
        assert colors > 20


@pytest.mark.parametrize("wide", [360, 820, 1366])
def test_it_fits_a_phone_a_tablet_and_a_laptop(page: Any, wide: int) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": wide, "height": 700, "deviceScaleFactor": 1, "mobile": wide < 900},
    )
    try:
        settled(page)
        assert page.execute_script("return document.documentElement.scrollWidth") <= wide
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_control_has_a_name_and_can_be_reached_by_the_keyboard(page: Any) -> None:
    unnamed = page.execute_script(
        "return [...document.querySelectorAll('input, button')].filter((e) => "
        "!(e.labels?.length || e.ariaLabel || e.textContent.trim()) || e.tabIndex < 0).map((e) => e.outerHTML)"
    )
    assert unnamed == []
    assert page.find_element("id", "rho").get_attribute("aria-valuetext") == "ρ = 0.03"


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_it_is_light_or_dark_as_the_reader_likes(page: Any, scheme: str, dark: bool) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    color = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", color)[:3])) < 200) == dark
