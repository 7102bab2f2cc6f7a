"""Records of runs over streams, made up for the tests of their pictures."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phinets.config.continual import ContinualConfig, Readout, ReadoutOptions, ReplayOptions
from phinets.config.methods import EncoderName
from phinets.config.record import Accuracies, AccuracyMatrix, ContinualRecord, ContinualSummary

STEPS = 50
"""Of each task."""
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def names(tasks: int) -> tuple[str, ...]:
    pairs = (f"{CLASSES[2 * i % 10]}+{CLASSES[(2 * i + 1) % 10]}" for i in range(tasks))
    return tuple(pair if tasks <= 5 else f"{5 * i}–{5 * i + 4}" for i, pair in enumerate(pairs))


def accuracy(tasks: int, done: float, seed: int, clock: EncoderName) -> list[float]:
    """Made-up accuracies after `done` tasks: a task is learned when it comes, and fades afterwards."""
    noise = np.random.default_rng([seed, round(100 * done), clock == "slow"]).normal(0, 0.8, tasks)
    since = done - np.arange(tasks)
    fade = 16 if clock == "fast" else 8
    known = np.where(
        since >= 1, 92 - fade * (1 - np.exp(-(since - 1) / 4)), 55 + 37 * np.clip(since, 0, 1) + 4 * np.tanh(done)
    )
    return [round(float(value), 2) for value in known + noise]


def reading(matrix: NDArray[np.float64], untrained: list[float], readout: Any, clock: EncoderName) -> AccuracyMatrix:
    T = len(matrix)
    last, diagonal = matrix[-1], np.diagonal(matrix)
    lost = [
        float(np.mean(best[:-1] - last[:-1])) if T > 1 else None
        for best in (matrix[:-1].max(0) if T > 1 else last, diagonal)
    ]
    return AccuracyMatrix(
        readout=readout,
        encoder=clock,
        matrix=tuple(map(tuple, matrix.tolist())),
        untrained=tuple(untrained),
        average=float(last.mean()),
        stages=tuple(float(row[: t + 1].mean()) for t, row in enumerate(matrix)),
        forgetting_max=lost[0],
        forgetting_diag=lost[1],
        backward_transfer=None if lost[1] is None else -lost[1],
        forward_transfer=float(np.mean(np.diagonal(matrix, 1) - untrained[1:])) if T > 1 else None,
        protocol="task-knn: k = 200, T = 0.1, the task's own training images, all its test images",
    )


def stream_record(
    tasks: int = 5,
    seed: int = 0,
    method: str = "x-phinet/cosine",
    clocks: tuple[EncoderName, ...] = ("fast", "slow"),
    per_task: int = 4,
    readouts: tuple[Readout, ...] = ("task-knn", "class-knn"),
) -> ContinualRecord:
    """A run that nobody made."""
    rows: list[dict[str, Any]] = []
    for i in range(tasks * per_task + 1):
        done = i / per_task
        task = 0 if i == 0 else -(-i // per_task)
        share = 0.0 if i == 0 else done - task + 1
        place = {"kind": "task-eval", "step": round(STEPS * done), "epoch": done, "task": task, "share": share}
        for clock in clocks:
            known = accuracy(tasks, done, seed, clock)
            for readout, less in zip(readouts, (0.0, 30.0), strict=False):
                rows.append(
                    {**place, "readout": readout, "encoder": clock, "accuracies": [value - less for value in known]}
                )
    found = tuple(_reading(rows, readout, clock) for clock in clocks for readout in readouts)
    summary = ContinualSummary(
        method=method, backbone="resnet-tiny", data="split-shapes", seed=seed, tasks=names(tasks),
        images=(1000,) * tasks, steps=STEPS * tasks, readings=found, verdict="healthy", spread=0.9,
        effective_rank=40.0, dead_share=0.0, bad_images=0, seconds=100.0, images_per_second=900.0, data_wait=0.0,
        protocol="finetune",
    )  # fmt: skip
    config = ContinualConfig(method=method, seed=seed, reading=ReadoutOptions(readouts=readouts))
    return ContinualRecord(folder="r", config=config, environment={}, summary=summary, journal=rows)


def _reading(rows: list[dict[str, Any]], readout: str, clock: EncoderName) -> AccuracyMatrix:
    ours = [row for row in rows if (row["readout"], row["encoder"]) == (readout, clock)]
    ends = [row["accuracies"] for row in ours if row["share"] == 1.0]
    return reading(np.array(ends), ours[0]["accuracies"], readout, clock)


def remembering(record: ContinualRecord, **memory: Any) -> ContinualRecord:
    """The same with another strategy."""
    return replace(record, config=replace(record.config, memory=ReplayOptions(**memory)))


def without(record: ContinualRecord, task: int) -> ContinualRecord:
    """The same where one task has no labels."""

    def blind(row: Accuracies) -> Accuracies:
        return tuple(None if i == task else value for i, value in enumerate(row))

    readings = tuple(
        replace(r, matrix=tuple(map(blind, r.matrix)), untrained=blind(r.untrained)) for r in record.summary.readings
    )
    journal = [{**row, "accuracies": list(blind(tuple(row["accuracies"])))} for row in record.journal]
    return replace(record, summary=replace(record.summary, readings=readings), journal=journal)
