"""The page's parts, each by what it must do: charts, bars, curves over seeds, runs with what sets them apart."""

import math
import re
from io import StringIO
from typing import cast

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from phinets.config.jobs import ContinualJob, PretrainJob, Result
from phinets.config.plain import flat, without
from phinets.config.run import learning_settings
from phinets.paper.findings import TargetResult
from phinets.paper.statistics import Effect
from phinets.reports import palette
from phinets.reports.page.charts import MAX_POINTS, MeanCurve, curve_chart, lines, mean_over_seeds, sort_columns
from phinets.reports.page.sections import RunGroup, build_scales, collect_uses, groups
from phinets.reports.page.svg import TITLE, inline_svg, shorten_path
from phinets.reports.page.tables import EDGE, MIDDLE, bar, duration, number, short
from phinets.reports.seeds import value_words


def walk(way: str) -> list[tuple[float, float]]:
    """Where an SVG path of M, l and z goes, written out."""
    spots: list[tuple[float, float]] = []
    for letter, words in re.findall(r"([Mlz])([^Mlz]*)", way):
        numbers = [float(word) for word in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", words)]
        for x, y in zip(numbers[::2], numbers[1::2], strict=True):
            spots.append((x, y) if letter == "M" else (spots[-1][0] + x, spots[-1][1] + y))
    return spots


def heights(axes: Axes, marker: str, *, hollow: bool = False) -> list[float]:
    """The values that have a mark of one kind."""
    marks = [line for line in axes.lines if line.get_marker() == marker]
    values = [np.asarray(line.get_ydata()) for line in marks if (line.get_markerfacecolor() == "white") == hollow]
    return sorted(np.concatenate(values)[~np.isnan(np.concatenate(values))].tolist())


def test_a_chart_shows_every_value_with_its_spread_beside_the_paper_s(targets: tuple[TargetResult, ...]) -> None:
    table = targets[1].tables[0]
    (chart,) = lines(table)
    (axes,) = chart.figure.axes
    cells = [cell for cell in table.cells if cell.mean is not None and cell.cell.row not in table.table.baselines]
    assert heights(axes, "o") == sorted(cell.mean for cell in cells if not cell.lost)  # type: ignore[type-var]
    assert heights(axes, "x") == sorted(cell.mean for cell in cells if cell.lost)  # type: ignore[type-var]
    printed = [cell.printed.mean for cell in table.cells if cell.printed is not None]
    assert heights(axes, "o", hollow=True) == sorted(mean for mean in printed if mean is not None)
    bars = [bar for of in axes.collections[:-1] for bar in cast(LineCollection, of).get_segments()]
    half = sorted(float(bar[1, 1] - bar[0, 1]) / 2 for bar in bars if np.isfinite(bar).all())
    np.testing.assert_allclose(half, sorted(cell.spread for cell in cells if cell.spread is not None))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == list(sort_columns(table.table.columns))
    assert {text.get_text() for text in axes.texts} == set(table.table.rows)


def test_baselines_are_dashed_lines_without_marks_of_one_color(targets: tuple[TargetResult, ...]) -> None:
    table = targets[1].tables[0]
    assert len(table.table.baselines) == 2
    (axes,) = lines(table)[0].figure.axes
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert {line.get_marker() for line in dashed} == {"None"}
    assert {line.get_color() for line in dashed} == {palette.COLLAPSE}
    columns = sort_columns(table.table.columns)
    means = [[table.at[row, column].mean for column in columns] for row in table.table.baselines]
    assert [list(np.asarray(line.get_ydata())) for line in dashed] == means


@pytest.mark.parametrize(("low", "high"), [(58.2, 60.4), (18.0, 84.8), (0.0, 1.0)])
def test_grid_lines_stand_at_the_ticks(low: float, high: float) -> None:
    chart = curve_chart("t", "y", {"a": mean_over_seeds([((0.0, low), (1.0, high))])}, {"a": "#000000"})
    assert chart is not None
    (axes,) = chart.figure.axes
    bottom, top = axes.get_ylim()
    grid = [float(line[0, 1]) for line in cast(LineCollection, axes.collections[-1]).get_segments()]
    assert grid == [tick for tick in axes.get_yticks() if bottom <= tick <= top]


def test_a_chart_without_a_value_is_none() -> None:
    assert curve_chart("t", "y", {"a": mean_over_seeds([])}, {"a": "#000000"}) is None


def test_a_band_is_as_wide_as_the_spread_and_lines_have_tooltips() -> None:
    x = np.arange(4.0)
    chart = curve_chart("t", "y", {"a & b": MeanCurve(x, x + 5, np.ones(4))}, {"a & b": "#123456"})
    assert chart is not None
    (axes,) = chart.figure.axes
    (band,) = (patch for patch in axes.patches if isinstance(patch, Polygon))
    assert {tuple(corner) for corner in band.get_xy().tolist()} == {(n, n + 5 + side) for n in x for side in (-1, 1)}
    svg = inline_svg(chart.figure, "p-", "<what>")
    assert "<title>a &amp; b</title>" in svg
    assert 'aria-label="&lt;what&gt;"' in svg
    assert TITLE not in svg


def test_columns_stand_from_the_smallest_on() -> None:
    assert sort_columns(("0.002", "1e-05", "0", "0.0005")) == ("0", "1e-05", "0.0005", "0.002")
    assert sort_columns(("early", "10")) == ("early", "10")


def test_curves_over_seeds_are_mean_and_sample_deviation_at_each_x() -> None:
    random = np.random.default_rng(2)
    values = random.normal(size=(3, 12))
    curves = [tuple((float(10 * n), float(y)) for n, y in enumerate(row)) for row in values]
    points = mean_over_seeds(curves)
    np.testing.assert_array_equal(points.x, 10.0 * np.arange(12))
    np.testing.assert_allclose(points.mean, values.mean(0))
    np.testing.assert_allclose(points.spread, values.std(0, ddof=1))


def test_long_curves_are_thinned_with_both_ends_kept_and_what_is_not_finite_left_out() -> None:
    curve = tuple((float(n), math.nan if n in (0, 999) else float(n)) for n in range(1000))
    points = mean_over_seeds([curve])
    assert len(points.x) <= MAX_POINTS + 1
    assert (points.x[0], points.x[-1]) == (1.0, 998.0)
    np.testing.assert_array_equal(points.mean, points.x)
    assert np.isnan(points.spread).all()


def test_bars_have_zero_in_the_middle_and_keep_the_order_of_effects() -> None:
    values = (-9.0, -4.0, -1.0, 0.0, 1.0, 4.0, 9.0)
    places = [bar(Effect(size=v, low=v, high=v, seeds=3, supports=v > 0), 9.0).size for v in values]
    assert places == sorted(set(places))
    assert places[3] == MIDDLE
    assert (places[0], places[-1]) == (EDGE, 2 * MIDDLE - EDGE)
    assert [MIDDLE - p for p in places[:3]] == [p - MIDDLE for p in places[:3:-1]]
    assert (places[4] - MIDDLE) / (places[6] - MIDDLE) == pytest.approx(1 / 3, abs=0.01), "by square roots"


@pytest.fixture(scope="module")
def listed(targets: tuple[TargetResult, ...], results: dict[str, Result]) -> list[RunGroup]:
    return groups(results, collect_uses(build_scales(targets)[0].targets))


def test_shared_settings_and_what_sets_a_run_apart_are_its_whole_config(listed: list[RunGroup]) -> None:
    seen = 0
    for group in listed:
        for run in group.runs:
            if isinstance(run.result.job, PretrainJob | ContinualJob):
                whole = flat(without(learning_settings(run.result.job.run.resolved), ["seed"]))
                said = {**dict(group.shared), **dict(run.apart)}
                assert said == {name: value_words(value) for name, value in whole.items()}
                seen += 1
    assert seen > 50


def test_runs_of_a_group_differ_in_few_settings(listed: list[RunGroup]) -> None:
    for group in listed:
        assert sum(len(run.apart) for run in group.runs) / len(group.runs) < 6


def figure() -> Figure:
    made = Figure(figsize=(3, 2))
    axes = made.subplots()
    axes.plot(np.linspace(0, 1, 300), np.sin(np.linspace(0, 9, 300)), color="#1f2430")
    axes.axhline(0, gid="twice")
    axes.axhline(1, gid="twice")
    axes.set_title("a title")
    return made


def test_a_figure_inside_the_page_has_its_own_ids_text_as_text_and_the_page_s_ink() -> None:
    one, other = inline_svg(figure(), "one-"), inline_svg(figure(), "other-")
    assert one == inline_svg(figure(), "one-")
    every = [re.findall(r'id="([^"]*)"', svg) for svg in (one, other)]
    ids = [set(found) for found in every]
    assert ids[0]
    assert len(ids[0]) == len(every[0]), "none stands twice"
    assert not ids[0] & ids[1]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', one))
    assert used
    assert used <= ids[0]
    assert ">a title</text>" in one
    assert "#1f2430" not in one
    assert "var(--ink)" in one
    assert "<style" not in one
    assert len(one) < 0.6 * len(plain_svg())


def plain_svg() -> str:
    written = StringIO()
    figure().savefig(written, format="svg")
    return written.getvalue()


def test_shortened_ways_stay_on_the_line() -> None:
    x = np.linspace(0, 200, 400)
    y = 50 + 30 * np.sin(x / 20)
    way = f"M {x[0]} {y[0]} " + " ".join(f"L {a:.6f} {b:.6f}" for a, b in zip(x[1:], y[1:], strict=True))
    spots = np.array(walk(shorten_path(way)))
    assert len(spots) < 150
    np.testing.assert_allclose(spots[[0, -1]], [[x[0], y[0]], [x[-1], y[-1]]], atol=0.06)
    assert np.abs(np.interp(spots[:, 0], x, y) - spots[:, 1]).max() < 0.15


def test_closed_ways_keep_every_corner() -> None:
    spots = walk(shorten_path("M 1 2 L 1.5 2 L 1.5 2.5 L 1 2.5 z "))
    np.testing.assert_allclose(spots, [(1, 2), (1.5, 2), (1.5, 2.5), (1, 2.5)], atol=1e-9)
    assert shorten_path("M 0 0 C 0.26 0 0.51 0.1 1.04 1 z") == "M 0 0 C .3 0 .5 .1 1 1 z"


@pytest.mark.parametrize(
    ("value", "said"),
    [(87.304, "87.30"), (-0.16, "−0.16"), (0.0, "0.00"), (0.0012, "0.0012"), (123456.7, "123,457"), (None, "–")],
)
def test_numbers_are_written_as_in_the_paper(value: float | None, said: str) -> None:
    assert number(value) == said
    assert number(math.nan) == "–"


def test_times_and_sizes_are_short() -> None:
    assert [duration(s) for s in (0.42, 59.6, 200, 18_720)] == ["0.4 s", "1 min 00 s", "3 min 20 s", "5 h 12 min"]
    assert [short(v) for v in (0.5, -20, 5000, 1.5e6)] == ["0.5", "−20", "5k", "1.5M"]
