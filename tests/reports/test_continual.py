"""The pictures and tables of streams say what the records say."""

import io
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.patches import Rectangle
from rich.console import Console

from phinets.config.errors import UserError
from phinets.config.methods import METHODS
from phinets.config.record import ContinualRecord
from phinets.reports.continual import (
    FIGURES,
    ends,
    eval_curves,
    fast_and_slow_figure,
    forgetting_figure,
    matrix_figure,
    matrix_table,
    run_pictures,
    tasks_figure,
)
from phinets.reports.figures import spread
from phinets.reports.palette import COLLAPSE, INK, SYSTEM, method_color
from tests.reports.streams import STEPS, remembering, stream_record, without


def words(axes: Axes) -> set[str]:
    return {text.get_text() for text in axes.texts}


def cells(axes: Axes) -> dict[tuple[int, float], str]:
    """What stands in each cell, by column and height."""
    return {(int(text.get_position()[0]), float(text.get_position()[1])): text.get_text() for text in axes.texts}


def test_a_heat_map_holds_every_number_of_its_matrix_and_the_untrained_row_above() -> None:
    record = stream_record(5)
    figure = matrix_figure(record)
    assert len(figure.axes) == len(record.summary.readings) == 4
    for axes, reading in zip(figure.axes, record.summary.readings, strict=True):
        found = cells(axes)
        for t, row in enumerate(reading.matrix):
            assert [found[i, float(t)] for i in range(5)] == [f"{value:.1f}" for value in row]
        assert [found[i, -1.5] for i in range(5)] == [f"{value:.1f}" for value in reading.untrained]
        assert axes.get_title() == f"{reading.readout}, {reading.encoder} encoder"
        assert f"average {reading.average:.1f}" in axes.get_xlabel()
        assert f"forgetting {reading.forgetting_max:+.1f} (max)" in axes.get_xlabel()


def test_the_diagonal_is_framed_and_what_has_not_come_is_slanted_and_paler() -> None:
    record = stream_record(4)
    same = replace(record.summary.readings[0], matrix=((80.0,) * 4,) * 4, untrained=(10.0,) * 4)
    axes = matrix_figure(replace(record, summary=replace(record.summary, readings=(same,)))).axes[0]
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    frames = {(box.get_x() + 0.5, box.get_y() + 0.5) for box in boxes if not box.get_fill()}
    assert frames == {(t, t) for t in range(4)}
    shades: dict[bool, set[Any]] = {True: set(), False: set()}
    for box in boxes:
        i, t = box.get_x() + 0.5, box.get_y() + 0.5
        if box.get_fill() and t >= 0:
            shades[i <= t].add(box.get_facecolor())
    (seen,), (unseen,) = shades[True], shades[False]
    assert sum(unseen[:3]) > sum(seen[:3]) + 0.3
    for text in axes.texts:
        column, height = text.get_position()
        assert (text.get_fontstyle() == "italic") == (height < 0 or column > height)


def test_what_could_not_be_asked_is_a_dash() -> None:
    axes = matrix_figure(without(stream_record(5), 2)).axes[0]
    dashes = {place for place, text in cells(axes).items() if text == "–"}
    assert dashes == {(2, height) for height in (-1.5, 0.0, 1.0, 2.0, 3.0, 4.0)}


@pytest.mark.parametrize("tasks", [1, 2, pytest.param(20, marks=pytest.mark.slow)])
def test_every_figure_can_be_drawn_for_few_and_many_tasks(tasks: int) -> None:
    record = stream_record(tasks, per_task=1, readouts=("task-knn",))
    for figure in FIGURES.values():
        buffer = io.BytesIO()
        figure(record).savefig(buffer, format="png", dpi=30)
        assert buffer.getvalue().startswith(b"\x89PNG")


def test_of_one_task_nothing_is_said_of_forgetting() -> None:
    assert "forgetting – (max), – (diag)" in matrix_figure(stream_record(1)).axes[0].get_xlabel()


def mean_so_far(record: ContinualRecord, readout: str, encoder: str) -> dict[int, float]:
    """The bold line, row by row from the journal."""
    rows = [row for row in record.journal if (row["readout"], row["encoder"]) == (readout, encoder)]
    return {row["step"]: sum(row["accuracies"][: row["task"]]) / row["task"] for row in rows if row["task"] > 0}


def test_each_task_s_line_holds_the_journal_s_numbers_and_the_bold_one_their_mean_so_far() -> None:
    record = stream_record(3)
    axes = tasks_figure(record).axes[0]
    rows = [row for row in record.journal if (row["readout"], row["encoder"]) == ("task-knn", "fast")]
    bold = max(axes.lines, key=lambda line: line.get_linewidth())
    drawn = dict(zip(*map(np.asarray, bold.get_data()), strict=True))
    expected = mean_so_far(record, "task-knn", "fast")
    assert {s: v for s, v in drawn.items() if not np.isnan(v)} == pytest.approx(expected)
    assert bold.get_color() == INK
    thin = [line for line in axes.lines if line is not bold]
    for i in range(3):
        told = {(row["step"], row["accuracies"][i]) for row in rows}
        points = [set(zip(*map(np.ndarray.tolist, map(np.asarray, line.get_data())), strict=True)) for line in thin]
        before, after = points[2 * i], points[2 * i + 1]
        assert before | after == told
        assert {step for step, _ in after} == {row["step"] for row in rows if row["step"] >= i * STEPS}
        assert thin[2 * i].get_linestyle() == ":"
        assert thin[2 * i + 1].get_linestyle() == "-"


def test_bands_say_when_each_task_was_learned_and_lines_bear_their_names() -> None:
    record = stream_record(3)
    course = eval_curves(record)[0]
    assert ends(course) == [(0, 0, STEPS), (1, STEPS, 2 * STEPS), (2, 2 * STEPS, 3 * STEPS)]
    axes = tasks_figure(record).axes[0]
    last = course.accuracies[-1]
    named = {f"{i + 1} {name[:16]}" for i, name in enumerate(record.summary.tasks)}
    assert all(any(name[:12] in text for text in words(axes)) for name in named)
    assert f"mean so far {last.mean():.1f}" in words(axes)
    assert {"1", "2", "3"} <= words(axes)


def test_a_task_without_labels_has_no_line_and_changes_no_mean() -> None:
    record = without(stream_record(4), 1)
    course = eval_curves(record)[0]
    whole = eval_curves(stream_record(4))[0]
    assert course.mean[-1] == pytest.approx(whole.accuracies[-1][[0, 2, 3]].mean())
    assert np.isnan(course.accuracies[:, 1]).all()
    assert not any(text.startswith("2 ") for text in words(tasks_figure(record).axes[0]))


def test_before_a_task_was_appended_nothing_is_known_of_it() -> None:
    record = stream_record(3)
    shorter = [{**row, "accuracies": row["accuracies"][:2]} if row["task"] < 3 else row for row in record.journal]
    course = eval_curves(replace(record, journal=shorter))[0]
    assert np.isnan(course.accuracies[course.n_tasks < 3, 2]).all()
    assert not np.isnan(course.accuracies[course.n_tasks == 3]).any()
    tasks_figure(replace(record, journal=shorter))


def test_a_journal_without_readings_is_refused() -> None:
    with pytest.raises(UserError, match="Finish the run"):
        tasks_figure(replace(stream_record(2), journal=[{"kind": "step", "step": 1}]))


def test_the_fast_encoder_is_solid_and_the_slow_one_dashed() -> None:
    record = stream_record(3)
    figure = fast_and_slow_figure(record)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["task-knn", "class-knn"]
    for axes in figure.axes:
        fast, slow = axes.lines
        assert (fast.get_linestyle(), slow.get_linestyle()) == ("-", "--")
        for line, clock in ((fast, "fast"), (slow, "slow")):
            drawn = dict(zip(*map(np.asarray, line.get_data()), strict=True))
            expected = mean_so_far(record, axes.get_title(loc="left"), clock)
            assert {s: v for s, v in drawn.items() if not np.isnan(v)} == pytest.approx(expected)
            assert f"{clock} {expected[3 * STEPS]:.1f}" in words(axes)


def test_a_run_leaves_fast_beside_slow_only_where_there_are_both() -> None:
    both = run_pictures(stream_record(2, readouts=("task-knn",)))
    assert set(both) == {"matrix.png", "tasks.png", "fast-slow.png"}
    assert all(picture.startswith(b"\x89PNG") for picture in both.values())
    assert set(run_pictures(stream_record(2, clocks=("fast",), readouts=("task-knn",)))) == {"matrix.png", "tasks.png"}


SEEDS = (0, 1, 2)


def test_forgetting_shows_mean_and_deviation_over_seeds_and_every_run() -> None:
    records = [stream_record(3, seed, "simsiam", clocks=("fast",)) for seed in SEEDS]
    figure = forgetting_figure(records)
    for axes, field in zip(figure.axes, ("average", "forgetting_max", "forgetting_diag"), strict=False):
        values = np.array([getattr(record.summary.readings[0], field) for record in records])
        (bar,) = (c for c in axes.containers if isinstance(c, ErrorbarContainer))
        assert np.asarray(bar[0].get_xdata()) == pytest.approx([values.mean()])
        ((start, end),) = (segment[:, 0] for segment in bar[2][0].get_segments())
        assert (start, end) == pytest.approx((values.mean() - values.std(ddof=1), values.mean() + values.std(ddof=1)))
        dots = np.asarray(axes.collections[0].get_offsets())
        assert dots[:, 0] == pytest.approx(values)
        assert any("n = 3" in text for text in words(axes))


def test_methods_and_strategies_stand_apart_and_a_method_keeps_its_color() -> None:
    records = [stream_record(3, seed, "simsiam") for seed in SEEDS]
    records += [remembering(stream_record(3, 4, "simsiam"), replay="mixup", buffer=512)]
    records += [remembering(stream_record(3, 5, "byol"), replay="plain", distil="cassle")]
    axes = forgetting_figure(records).axes[0]
    lines = [label.get_text() for label in axes.get_yticklabels()]
    assert lines == ["simsiam\nfinetune", "simsiam\nmixup with 512", "byol\nreplay of 256 + CaSSLe"]
    bars = [c for c in axes.containers if isinstance(c, ErrorbarContainer)]
    assert [bar[0].get_color() for bar in bars] == [method_color(name) for name in ("simsiam", "simsiam", "byol")]
    assert [len(bar[2]) for bar in bars] == [1, 0, 0]  # one run alone has no deviation


def test_where_data_differ_they_are_not_thrown_together() -> None:
    one, other = stream_record(2, 0), stream_record(2, 1)
    other = replace(other, summary=replace(other.summary, data="split-cifar10"))
    labels = [label.get_text() for label in forgetting_figure([one, other]).axes[0].get_yticklabels()]
    assert [label.splitlines()[-1] for label in labels] == ["split-shapes", "split-cifar10"]


def test_a_readout_that_a_run_has_not_is_a_dash() -> None:
    figure = forgetting_figure([stream_record(2, 0), stream_record(2, 1, "simsiam", clocks=("fast",))])
    slow = next(axes for axes in figure.axes if axes.get_title(loc="left") == "task-knn, slow encoder")
    assert "–" in words(slow)


def test_no_runs_are_refused() -> None:
    with pytest.raises(UserError, match="no run"):
        forgetting_figure([])


def said(record: ContinualRecord, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(matrix_table(record.summary.readings[0], record.summary.tasks))
    return cast(io.StringIO, console.file).getvalue()


@pytest.mark.parametrize("tasks", [1, 5, 10, 20])
def test_the_table_holds_every_number_and_fits_a_terminal(tasks: int) -> None:
    record = stream_record(tasks)
    reading, text = record.summary.readings[0], said(record)
    assert "…" not in text
    digits = 1 if tasks <= 8 else 0
    lines = [line.replace("│", " ").split() for line in text.splitlines()]
    rows = [line[-tasks:] for line in lines if line and line[0] in ("untrained", *map(str, range(1, tasks + 1)))]
    assert rows == [[f"{v:.{digits}f}" for v in row] for row in (reading.untrained, *reading.matrix)]
    assert f"average {reading.average:.1f}" in text
    assert "k = 200" in text


def test_short_names_head_the_columns_and_what_is_lost_has_its_sign() -> None:
    record = stream_record(2)
    record = replace(record, summary=replace(record.summary, tasks=("cats", "dogs")))
    assert ["after", "task", "cats", "dogs"] in [line.replace("┃", " ").split() for line in said(record).splitlines()]
    gained = replace(record.summary.readings[0], forgetting_max=-1.5, forgetting_diag=1.5)
    console = Console(file=io.StringIO(), width=100)
    console.print(matrix_table(gained, record.summary.tasks))
    assert "forgetting −1.5 (max), +1.5 (diag)" in cast(io.StringIO, console.file).getvalue()


@pytest.mark.parametrize("lost", [0.0, -0.0, 0.04, -0.04])
def test_what_is_nothing_has_no_sign(lost: float) -> None:
    record = stream_record(2, readouts=("task-knn",), clocks=("fast",))
    reading = replace(record.summary.readings[0], forgetting_max=lost, forgetting_diag=lost)
    record = replace(record, summary=replace(record.summary, readings=(reading,)))
    assert "forgetting 0.0 (max), 0.0 (diag)" in matrix_figure(record).axes[0].get_xlabel()
    assert "0.0  n = 1" in words(forgetting_figure([record]).axes[1])


def test_every_method_has_a_color_of_its_own() -> None:
    colors = {name: method_color(name) for name in METHODS}
    assert len(set(colors.values())) == len(METHODS)
    rgb = np.array([to_rgb(color) for color in colors.values()])
    apart = np.linalg.norm(rgb[:, None] - rgb, axis=2) + 2 * np.eye(len(rgb))
    assert apart.min() > 0.05
    assert (colors["phinet"], colors["simsiam"]) == (SYSTEM["phinet"], SYSTEM["simsiam"])
    assert method_color("somebody's own") == COLLAPSE


def test_labels_move_apart_no_further_than_they_must() -> None:
    assert spread([1.0, 5.0, 9.0], 1.0, (0, 10)) == [1.0, 5.0, 9.0]
    assert spread([5.0, 5.0], 1.0, (0, 10)) == pytest.approx([4.5, 5.5])
    assert spread([9.9, 10.0], 1.0, (0, 10)) == pytest.approx([9.0, 10.0])
    assert spread([0.0, 0.1], 1.0, (0, 10)) == pytest.approx([0.0, 1.0], abs=0.06)
    assert spread([], 1.0, (0, 10)) == []


@pytest.mark.parametrize("seed", range(5))
def test_labels_never_cover_each_other_and_stay_in_order(seed: int) -> None:
    wanted = np.sort(np.random.default_rng(seed).uniform(0, 10, 12)).tolist()
    found = spread(wanted, 0.7, (0.0, 10.0))
    assert np.diff(found).min() >= 0.7 - 1e-9
    assert found[0] >= -1e-9
    assert found[-1] <= 10 + 1e-9
    tried = np.random.default_rng(1).normal(0, 0.3, (500, 12))
    distance = np.square(np.subtract(found, wanted)).sum()
    for other in np.sort(found + tried, axis=1):
        allowed = np.diff(other).min() >= 0.7 and other[0] >= 0 and other[-1] <= 10
        assert not allowed or np.square(other - wanted).sum() >= distance - 1e-9
