"""Pictures and tables say what the record says."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from phinets.config.plain import from_plain, to_plain, without
from phinets.config.record import RunRecord, Summary
from phinets.config.run import EvalConfig, PretrainConfig
from phinets.reports.architecture import architecture, hippocampus
from phinets.reports.curves import curves
from phinets.reports.figures import png
from phinets.reports.progress import LiveBar, result_table

SUMMARY = Summary(
    method="x-phinet", backbone="resnet-tiny", data="shapes", seed=0, steps=4, knn=61.25, linear=70.5,
    knn_untrained=20.75, linear_untrained=31.0, knn_pixels=15.5, linear_pixels=14.0, verdict="healthy", spread=0.9,
    effective_rank=40.0, dead_share=0.0, bad_images=0, seconds=12.0, images_per_second=900.0, data_wait=0.01,
    protocol="kNN: k=200",
)  # fmt: skip
JOURNAL = [
    {"kind": "step", "step": 1, "epoch": 0.5, "loss": 1.0, "sim1": -0.2, "sim2": 1.2, "lr": 0.1},
    {"kind": "step", "step": 2, "epoch": 1.0, "loss": 0.5, "sim1": -0.4, "sim2": 0.9, "lr": 0.05},
    {"kind": "eval", "step": 2, "epoch": 1.0, "knn": 44.0, "spread": 0.9, "effective_rank": 12.0, "dead_share": 0.0},
]


def record(journal: list[dict[str, object]] = JOURNAL) -> RunRecord:
    return RunRecord(folder="r", config=PretrainConfig(), environment={}, summary=SUMMARY, journal=journal)


def spoken(draw: object) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(draw)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_table_shows_the_encoder_beside_its_two_baselines() -> None:
    said = spoken(result_table(SUMMARY))
    for number in ("61.2", "70.5", "20.8", "31.0", "15.5", "14.0", "k=200", "healthy"):
        assert number in said


def test_a_run_that_learned_nothing_is_not_plainly_healthy() -> None:
    summaries = {beats: replace(SUMMARY, beats_untrained=beats) for beats in (True, None, False)}
    assert summaries[True].headline == summaries[None].headline == "healthy"
    assert summaries[False].headline == "healthy, but not better than untrained"
    said = " ".join(spoken(result_table(summaries[False])).split())
    assert summaries[False].headline in said


def test_a_summary_of_an_older_version_is_read() -> None:
    assert from_plain(Summary, without(to_plain(SUMMARY), ("max_rank", "beats_untrained"))) == SUMMARY


def test_the_curves_hold_the_journal_s_numbers() -> None:
    figure = curves(record())
    losses, accuracy, health, *_ = figure.axes
    assert np.asarray(losses.lines[0].get_ydata()).tolist() == [-0.2, -0.4]
    assert np.asarray(accuracy.lines[0].get_ydata()).tolist() == [44.0]
    assert np.asarray(health.lines[0].get_ydata()).tolist() == [0.9]
    assert {text.get_text() for text in losses.texts} == {"sim1", "sim2"}
    assert png(curves(record())).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("eval_at_images", "scale"),
    [
        ((100, 200, 500, 1000, 2000), "log"),
        ((100, 200, 300, 400), "linear"),
        ((100, 900), "linear"),
        ((100,), "linear"),
    ],
)
def test_looks_planned_by_images_are_drawn_over_images(eval_at_images: tuple[int, ...], scale: str) -> None:
    looks = [{**JOURNAL[2], "step": i, "images": count} for i, count in enumerate(eval_at_images, start=1)]
    config = PretrainConfig(evaluation=EvalConfig(eval_at_images=eval_at_images))
    losses, accuracy, health, *_ = curves(replace(record([*JOURNAL[:2], *looks]), config=config)).axes
    assert np.asarray(accuracy.lines[0].get_xdata()).tolist() == list(eval_at_images)
    assert (accuracy.get_xlabel(), accuracy.get_xscale()) == ("images seen", scale)
    assert {axes.get_xlabel() for axes in (losses, health)} == {"step"}
    assert curves(record()).axes[1].get_xlabel() == "step"


def test_a_run_without_labels_has_curves_too() -> None:
    unlabelled = [{k: v for k, v in row.items() if k != "knn"} for row in JOURNAL]
    assert "no labels" in {text.get_text() for axes in curves(record(unlabelled)).axes for text in axes.texts}


def test_the_architecture_names_what_each_panel_adds() -> None:
    panels = [{text.get_text() for text in axes.texts} for axes in architecture().axes]
    assert ["Sim-1" in p for p in panels] == [True, True, True]
    assert ["Sim-2" in p for p in panels] == [False, True, True]
    assert ["EMA" in p for p in panels] == [False, False, True]


def test_the_hippocampus_has_every_region_of_the_paper_s_model_once() -> None:
    texts = [text.get_text() for text in hippocampus().axes[0].texts]
    regions = [text.splitlines()[0] for text in texts if "\n" in text]
    assert sorted(regions) == ["CA1", "CA3", "EC II", "EC III", "EC V", "NC"]
    assert [texts.count(word) for word in ("Sim-1", "Sim-2", "stop-gradient")] == [1, 1, 2]


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar_tells_all_it_promises(terminal: bool) -> None:
    out = io.StringIO()
    bar = LiveBar(Console(file=out, force_terminal=terminal, width=80), steps=2)
    bar.on_step(JOURNAL[0], 1234.0, 0.02)
    bar.on_eval(JOURNAL[2])
    bar.on_step(JOURNAL[1], 1234.0, 0.02)
    bar.close()
    news = bar.line()
    for word in (
        "sim1 -0.400",
        "sim2 +0.900",
        "lr 0.0500",
        "kNN 44.0%",
        "std√d 0.90",
        "rank 12",
        "1234 img/s",
        "wait 2%",
    ):
        assert word in news
    for word in ("kNN 44.0%", "1234 img/s", "wait 2%") + (("step 2/2", "left") if terminal else ()):
        assert word in " ".join(out.getvalue().split())
