"""Phase portraits show what the library computes, and their words can be read."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

from phinets.dynamics.basins import Basins, Box, basins, simsiam_basins
from phinets.dynamics.bifurcations import bifurcations
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.phase_plane import Window, trajectory
from phinets.dynamics.systems import PhiNet, SimSiam, Version
from phinets.reports.palette import ALIVE, COLLAPSE, COLLAPSE_BASIN, SINK
from phinets.reports.phase_portrait import REGIMES, STAR, basin_figure, comparison, line, portrait, regimes

VERSIONS: tuple[Version, ...] = ("published", "corrected")


def marks(axes: Axes, shape: str, filled: bool = True) -> set[tuple[float, float]]:
    """Where signs of a shape stand."""
    found = set()
    for each in axes.lines:
        face = to_hex(each.get_markerfacecolor())
        if each.get_marker() == shape and (face != "#ffffff") == filled:
            found.add((float(np.asarray(each.get_xdata())[0]), float(np.asarray(each.get_ydata())[0])))
    return found


def curve(axes: Axes, name: str) -> Any:
    return next(each.get_xydata() for each in axes.lines if each.get_gid() == name)


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of words that lie on one another."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        words = [text for text in axes.texts if text.get_text()]
        boxes = [(text.get_text(), text.get_window_extent()) for text in words]
        found += [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if first.overlaps(second)]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_the_four_regimes_mark_every_equilibrium_with_its_kind(version: Version) -> None:
    figure = regimes(version, 1.5)
    for axes, (name, rho) in zip(figure.axes, REGIMES.items(), strict=True):
        points = equilibria(PhiNet(rho=rho, version=version))
        sinks = {(p.psi, p.gamma) for p in points if p.kind == "sink"}
        assert marks(axes, "o") == sinks
        assert marks(axes, "D", filled=False) == {(p.psi, p.gamma) for p in points if p.kind == "saddle"}
        assert axes.get_title().startswith(f"{name.upper()}, ρ = {rho:g}: {len(sinks)} sink")
        assert all(axes.get_xlim()[0] < p.psi < axes.get_xlim()[1] for p in points)
        assert all(axes.get_ylim()[0] < (p.gamma or 0.0) < axes.get_ylim()[1] for p in points)
    assert overlaps(figure) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("sigma2", "rho"), [(1.5, 0.08), (0.0, 0.3), (3.0, 0.0005)])
def test_the_nullclines_of_a_portrait_are_exact(version: Version, sigma2: float, rho: float) -> None:
    system = PhiNet(sigma2=sigma2, rho=rho, version=version)
    figure = portrait(system)
    (axes,) = figure.axes
    for row, name in enumerate(("psi-nullcline", "gamma-nullcline")):
        points = curve(axes, name)
        seen = points[np.isfinite(points).all(axis=1) & (np.abs(points) < 10).all(axis=1)]
        assert len(seen) > 100
        np.testing.assert_allclose(system.flow(seen.T)[row], 0, atol=1e-11)
    assert [0, 0] in [np.asarray(each.get_xdata()).tolist() for each in axes.lines], "the line ψ = 0"
    assert overlaps(figure) == []


def test_the_arrows_of_the_field_point_along_the_flow() -> None:
    system = PhiNet(rho=0.03)
    (axes,) = portrait(system).axes
    (field,) = (each for each in axes.collections if isinstance(each, Quiver))
    points, arrows = np.asarray(field.XY, float), np.stack([np.asarray(field.U), np.asarray(field.V)])
    assert len(points) > 100
    box = axes.get_window_extent()
    pixels = np.array([box.width, box.height]) / np.ptp(axes.viewLim.get_points(), axis=0)
    rates = system.flow(points.T) * pixels[:, None]
    cosines = (arrows * rates).sum(axis=0) / np.linalg.norm(arrows, axis=0) / np.linalg.norm(rates, axis=0)
    assert cosines.min() > 0.95, "up to the aspect of the axes, which is approximate"


def test_a_trajectory_is_blue_where_it_learns_and_grey_where_it_collapses() -> None:
    system = PhiNet(rho=0.08)
    (axes,) = portrait(system, starts=[(0.3, 0.5), (0.02, 0.1)]).axes
    stars = [each for each in axes.lines if each.get_marker() == "*"]
    assert [each.get_color() for each in stars] == [ALIVE, COLLAPSE]
    ends = [trajectory(system, start)[0] for start in ((0.3, 0.5), (0.02, 0.1))]
    drawn = [
        each.get_xydata() for each in axes.lines if each.get_color() in (ALIVE, COLLAPSE) and each.get_marker() != "*"
    ]
    for states, shown in zip(ends, drawn, strict=True):
        np.testing.assert_array_equal(states.T, shown)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_comparison_follows_the_star_in_both_systems_on_one_axis(version: Version) -> None:
    figure = comparison(PhiNet(rho=0.08, version=version))
    above, below = figure.axes
    assert above.get_xlim() == below.get_xlim()
    assert marks(above, "*") == {STAR}
    assert [each.get_color() for each in above.lines if each.get_marker() == "*"] == [ALIVE], "PhiNet learns"
    assert [each.get_color() for each in below.lines if each.get_marker() == "*"] == [COLLAPSE], "SimSiam collapses"
    assert {psi for psi, _ in marks(below, "o")} == {p.psi for p in equilibria(SimSiam(rho=0.08)) if p.kind == "sink"}
    assert overlaps(figure) == []


def test_the_line_of_simsiam_has_arrows_the_way_it_goes_and_the_basin_s_border_at_the_source() -> None:
    (threshold,) = bifurcations(SimSiam()).points
    systems = [SimSiam(rho=share * threshold.rho) for share in (1.08, 0.8)]
    figure = line(systems)
    for axes, system in zip(figure.axes, systems, strict=True):
        arrows = [text for text in axes.texts if text.get_text() == ""]
        assert len(arrows) == 1 + len(equilibria(system))
        for arrow in arrows:
            start, end = arrow.xyann[0], arrow.xy[0]  # type: ignore[attr-defined]
            assert np.sign(end - start) == np.sign(system.flow(np.array([(start + end) / 2]))[0])
        psi, rate = (np.asarray(values) for values in axes.lines[0].get_data())
        np.testing.assert_allclose(rate, system.flow(psi[None])[0])
    words = [{text.get_text() for text in axes.texts} - {""} for axes in figure.axes]
    assert words == [{"collapses", "sink"}, {"collapses", "learns", "sink", "source"}]
    (source,) = (p.psi for p in equilibria(systems[1]) if p.kind == "source")
    assert marks(figure.axes[1], "o", filled=False) == {(source, 0.0)}
    assert overlaps(figure) == []


def test_words_stay_apart_where_sinks_lie_close_together() -> None:
    far = Window(psi_min=-3, psi_max=3, gamma_min=-60, gamma_max=60)
    figure = portrait(PhiNet(rho=0.0001, version="published"), far, starts=[(0.3, 0.5)])
    assert len([text for text in figure.axes[0].texts if text.get_text().startswith("(")]) == 4
    assert overlaps(figure) == []


def test_sinks_are_red() -> None:
    (axes,) = portrait(PhiNet(rho=0.03)).axes
    colors = {each.get_color() for each in axes.lines if each.get_marker() == "o"}
    assert colors == {SINK}


SYSTEM = PhiNet(rho=0.0005, version="published")
BOX = Box(psi_min=-0.3, psi_max=0.5, gamma_min=-1, gamma_max=5)


@pytest.fixture(scope="module")
def pair() -> tuple[Basins, Basins]:
    return basins(SYSTEM, BOX, 41), simsiam_basins(SYSTEM, BOX, 41)


def test_every_start_has_the_color_of_its_end_and_grey_means_collapse(pair: tuple[Basins, Basins]) -> None:
    for axes, shown in zip(basin_figure(pair).axes, pair, strict=True):
        mesh = axes.collections[0]
        colors = [to_hex(color) for color in mesh.to_rgba(np.arange(len(shown.sinks)))]
        assert [color == COLLAPSE_BASIN for color in colors] == [sink.collapsed for sink in shown.sinks]
        assert len(set(colors)) == len(colors)
        np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(41, 41), shown.labels)


def test_the_panels_share_a_box_and_tell_the_share_that_does_not_collapse(pair: tuple[Basins, Basins]) -> None:
    figure = basin_figure(pair)
    for axes, shown, name in zip(figure.axes, pair, ("PhiNet, published", "SimSiam"), strict=True):
        assert (*axes.get_xlim(), *axes.get_ylim()) == (-0.3, 0.5, -1, 5)
        first, second = axes.get_title().split("\n")
        assert first == f"{name}, ρ = 0.0005, σ² = 1.5"
        assert second == f"{100 * shown.non_collapsed:.1f} % of the starts do not collapse"
        marked = {float(np.asarray(each.get_xdata())[0]) for each in axes.lines if each.get_color() == SINK}
        assert marked == {sink.psi for sink in shown.sinks if (sink.gamma or 0.0) < 5}


def test_a_start_without_an_end_stays_white(pair: tuple[Basins, Basins]) -> None:
    shown = pair[0]
    labels = shown.labels.copy()
    labels[3, 4] = -1
    undecided = Basins(system=SYSTEM, psi=shown.psi, gamma=shown.gamma, sinks=shown.sinks, labels=labels)
    drawn: Any = basin_figure([undecided]).axes[0].collections[0].get_array()
    assert np.argwhere(np.ma.getmaskarray(drawn).reshape(41, 41)).tolist() == [[3, 4]]
