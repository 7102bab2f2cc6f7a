"""Learning curves of one run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from phinets.config.record import RunRecord
from phinets.reports.figures import new_figure, smooth_line
from phinets.reports.palette import FAINT, FAST, INK, SLOW, TERMS


def curves(record: RunRecord) -> Figure:
    """The terms of the loss, kNN beside its baselines, and the collapse meter, over the steps of a run.

    kNN is over the images seen where evaluations are planned by images.
    """
    figure, ((losses, accuracy, health),) = new_figure(12, 3.6, columns=3, subplot_kw={"xlabel": "step"})
    steps = [row for row in record.journal if row["kind"] == "step"]
    evals = [row for row in record.journal if row["kind"] == "eval"]
    _losses(losses, steps)
    _accuracy(accuracy, evals, record)
    _health(health, evals)
    summary = record.summary
    figure.suptitle(f"{summary.method} · {summary.backbone} · {summary.data} · seed {summary.seed}", color=INK)
    return figure


def _losses(axes: Axes, steps: list[dict[str, Any]]) -> None:
    axes.set_title("loss terms")
    x = [row["step"] for row in steps]
    for name in (n for n in TERMS if steps and n in steps[0]):
        smooth_line(axes, x, np.array([row[name] for row in steps]), name, TERMS[name])


def _accuracy(axes: Axes, evals: list[dict[str, Any]], record: RunRecord) -> None:
    axes.set_title("kNN accuracy while learning (%)")
    rows = [row for row in evals if "knn" in row]
    if not rows:
        axes.text(0.5, 0.5, "no labels", transform=axes.transAxes, ha="center", color=FAINT)
        return
    planned = record.config.evaluation.eval_at_images
    count = "images" if planned else "step"
    if planned:
        axes.set_xlabel("images seen")
        axes.set_xscale("log" if _is_geometric(planned) else "linear")
    axes.plot([row[count] for row in rows], [row["knn"] for row in rows], color=FAST, marker="o", markersize=3)
    for name, level in (("untrained", record.summary.knn_untrained), ("raw pixels", record.summary.knn_pixels)):
        if level is not None:
            axes.axhline(level, color=FAINT, linestyle="--", linewidth=1)
            axes.text(rows[0][count], level, f" {name} {level:.1f}", color=INK, fontsize=8, va="bottom")
    axes.set_ylim(bottom=0)


def _is_geometric(counts: Sequence[int]) -> bool:
    """Whether counts rise more evenly by factors than by differences: 1, 2, 5, 10, … do."""
    factors, differences = np.diff(np.log(counts)), np.diff(counts)
    return len(counts) > 2 and bool(factors.std() / factors.mean() < differences.std() / differences.mean())


def _health(axes: Axes, evals: list[dict[str, Any]]) -> None:
    axes.set(title="collapse meter", ylim=(0, 1.15))
    x = [row["step"] for row in evals]
    axes.plot(x, [row["spread"] for row in evals], color=FAST)
    axes.set_ylabel("std·√d of codes", color=FAST)
    rank = axes.twinx()
    rank.plot(x, [row["effective_rank"] for row in evals], color=SLOW)
    rank.set_ylabel("effective rank", color=SLOW)
    rank.set_ylim(bottom=0)
    rank.spines["top"].set_visible(False)
