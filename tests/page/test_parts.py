"""The page's parts, each by what it must do: charts, bars, curves over seeds, runs with what sets them apart."""

import math
import re
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from phinets.config.jobs import ContinualJob, PretrainJob, Result
from phinets.config.plain import flat, without
from phinets.config.run import learning_settings
from phinets.paper.claims import Effect
from phinets.paper.findings import TargetFound
from phinets.reports.page.charts import (
    LINE,
    MAX_POINTS,
    Plot,
    Point,
    Series,
    chart,
    lines,
    mean_over_seeds,
    path,
    sort_columns,
    ticks,
)
from phinets.reports.page.sections import RunGroup, build_scales, collect_uses, groups
from phinets.reports.page.state_spaces import inline_svg, shorten_path
from phinets.reports.page.tables import EDGE, MIDDLE, bar, duration, number, short
from phinets.reports.seeds import value_words


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 87.1), (0.001, 0.0042), (12_000, 5_000_000), (-0.98, -0.11)])
def test_ticks_are_round_even_and_within(low: float, high: float) -> None:
    found = ticks(low, high)
    gaps = {round(b - a, 9) for a, b in pairwise(found)}
    assert len(gaps) == 1
    assert 3 <= len(found) <= 8
    assert low - 1e-9 <= found[0] <= found[-1] <= high + 1e-9
    step = gaps.pop()
    assert round(step / 10 ** math.floor(math.log10(step) + 1e-9), 6) in (1, 2, 5)


def test_names_of_lines_stand_apart_in_the_order_of_their_ends() -> None:
    ends = (5.0, 5.1, 0.0, 10.0, 5.05)
    series = tuple(Series(name=f"line {y}", color="#000000", points=(Point(x=0, y=y), Point(x=1, y=y))) for y in ends)
    made = chart(Plot(title="", series=series, x_label="", y_label="", smooth=True))
    assert made is not None
    places = [line.label_y for line in made.lines if line.label_y is not None]
    assert np.argsort(places).tolist() == np.argsort(ends).tolist()[::-1], "the highest value on top"
    assert all(b - a >= LINE - 1 for a, b in pairwise(sorted(places)))


def walked(way: str) -> list[tuple[float, float]]:
    """Where an SVG path of M, l and z goes, written out."""
    spots: list[tuple[float, float]] = []
    for letter, words in re.findall(r"([Mlz])([^Mlz]*)", way):
        numbers = [float(word) for word in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", words)]
        for x, y in zip(numbers[::2], numbers[1::2], strict=True):
            spots.append((x, y) if letter == "M" else (spots[-1][0] + x, spots[-1][1] + y))
    return spots


def test_a_path_by_differences_goes_where_it_should() -> None:
    random = np.random.default_rng(1)
    spots = [(int(x), int(y)) for x, y in random.integers(-50, 900, (40, 2))]
    assert walked(path(spots)) == spots
    assert path([]) == ""


def test_a_chart_shows_every_value_where_it_belongs() -> None:
    ours = (Point(x=0, y=10.0, spread=2.0), Point(x=1, y=None), Point(x=2, y=30.0, lost=True))
    series = Series(name="a", color="#000000", points=ours, beside=(Point(x=1, y=20.0),))
    made = chart(Plot(title="t", series=(series,), x_label="x", y_label="y", names=("p", "q", "r")))
    assert made is not None
    (line,) = made.lines
    (mark,), (cross,), (beside,) = line.marks, line.crosses, line.beside
    assert line.path == "", "single values on both sides of a gap are not joined"
    whole = 1  # what rounding to whole numbers may shift
    assert mark[1] - beside[1] == pytest.approx(beside[1] - cross[1], abs=whole), "10, 20 and 30 are equally far apart"
    assert mark[1] > beside[1] > cross[1], "30 on top"
    assert beside[0] - mark[0] == pytest.approx(cross[0] - beside[0], abs=whole)
    assert mark[0] < beside[0] < cross[0]
    x, low, high = map(int, re.fullmatch(r"M(\d+) (\d+)V(\d+)", line.bars).groups())  # type: ignore[union-attr]
    assert x == mark[0]
    assert low - mark[1] == pytest.approx(mark[1] - high, abs=1)
    assert (mark[1] - high) / (mark[1] - cross[1]) == pytest.approx(2 / 20, abs=0.01)
    assert [text for _, text in made.x_ticks] == ["p", "q", "r"]
    for spot in (mark, cross, beside):
        assert made.left <= spot[0] <= made.right
        assert made.top <= spot[1] <= made.bottom


def test_a_chart_without_a_value_is_none() -> None:
    series = Series(name="a", color="#000000", points=(Point(x=0, y=None),))
    assert chart(Plot(title="t", series=(series,), x_label="x", y_label="y")) is None


def test_a_band_is_as_wide_as_the_spread() -> None:
    points = tuple(Point(x=x, y=5.0, spread=1.0) for x in range(4))
    plot = Plot(title="", series=(Series(name="a", color="#0", points=points),), x_label="", y_label="", smooth=True)
    made = chart(plot)
    assert made is not None
    corners = walked(made.lines[0].band)
    assert len(corners) == 8
    above, below = {y for _, y in corners[:4]}, {y for _, y in corners[4:]}
    assert len(above) == len(below) == 1
    (y,) = {y for _, y in walked(made.lines[0].path)}
    assert y - above.pop() == pytest.approx(below.pop() - y, abs=1)


def test_lines_stand_over_columns_from_the_smallest_on(targets: tuple[TargetFound, ...]) -> None:
    assert sort_columns(("0.002", "1e-05", "0", "0.0005")) == ("0", "1e-05", "0.0005", "0.002")
    assert sort_columns(("early", "10")) == ("early", "10")
    (made,) = lines(targets[1].tables[0])
    table = targets[1].tables[0].table
    assert made.plot.names == sort_columns(table.columns)
    assert [line.name for line in made.lines] == list(table.rows)
    shown = sum(len(line.marks) + len(line.crosses) for line in made.lines)
    assert shown == sum(cell.mean is not None for cell in targets[1].tables[0].cells)


def test_curves_over_seeds_are_mean_and_sample_deviation_at_each_x() -> None:
    random = np.random.default_rng(2)
    values = random.normal(size=(3, 12))
    curves = [tuple((float(10 * n), float(y)) for n, y in enumerate(row)) for row in values]
    points = mean_over_seeds(curves)
    assert [p.x for p in points] == [10.0 * n for n in range(12)]
    np.testing.assert_allclose([p.y for p in points], values.mean(0))  # type: ignore[arg-type]
    np.testing.assert_allclose([p.spread for p in points], values.std(0, ddof=1))  # type: ignore[arg-type]


def test_long_curves_are_thinned_with_both_ends_kept_and_what_is_not_finite_left_out() -> None:
    curve = tuple((float(n), math.nan if n in (0, 999) else float(n)) for n in range(1000))
    points = mean_over_seeds([curve])
    assert len(points) <= MAX_POINTS + 1
    assert (points[0].x, points[-1].x) == (1.0, 998.0)
    assert all(point.y == point.x and point.spread is None for point in points)


def test_bars_have_zero_in_the_middle_and_keep_the_order_of_effects() -> None:
    values = (-9.0, -4.0, -1.0, 0.0, 1.0, 4.0, 9.0)
    places = [bar(Effect(size=v, low=v, high=v, seeds=3), 9.0).size for v in values]
    assert places == sorted(set(places))
    assert places[3] == MIDDLE
    assert (places[0], places[-1]) == (EDGE, 2 * MIDDLE - EDGE)
    assert [MIDDLE - p for p in places[:3]] == [p - MIDDLE for p in places[:3:-1]]
    assert (places[4] - MIDDLE) / (places[6] - MIDDLE) == pytest.approx(1 / 3, abs=0.01), "by square roots"


@pytest.fixture(scope="module")
def listed(targets: tuple[TargetFound, ...], results: dict[str, Result]) -> list[RunGroup]:
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
    spots = np.array(walked(shorten_path(way)))
    assert len(spots) < 150
    np.testing.assert_allclose(spots[[0, -1]], [[x[0], y[0]], [x[-1], y[-1]]], atol=0.06)
    assert np.abs(np.interp(spots[:, 0], x, y) - spots[:, 1]).max() < 0.15


def test_closed_ways_keep_every_corner() -> None:
    spots = walked(shorten_path("M 1 2 L 1.5 2 L 1.5 2.5 L 1 2.5 z "))
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
