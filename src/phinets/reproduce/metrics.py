"""From records to results: numbers by name, thinned curves, and the verdict of the collapse meter."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from phinets.config.detection import DetectionRecord
from phinets.config.jobs import ContinualJob, Cost, CostJob, Curve, DetectionJob, DynamicsJob, PretrainJob, Result
from phinets.config.record import ContinualRecord, RunRecord
from phinets.dynamics.claims.check import ClaimCheck

POINTS = 60
"""Points of a curve that are kept."""
SCORES = (
    "knn", "linear", "knn_slow", "linear_slow", "knn_untrained", "linear_untrained", "knn_pixels", "linear_pixels",
    "spread", "effective_rank", "dead_share", "images_per_second",
)  # fmt: skip
FIFTH = 0.2
"""Of a run: what counts as early, and as late."""
NO_CURVE = ("kind", "step", "epoch", "images", "lr", "max_rank")
"""Fields of a journal's line that are no curves."""

Rows = Sequence[Mapping[str, Any]]


def run_result(job: PretrainJob, record: RunRecord) -> Result:
    """kNN and linear probe; stable ranks and whatever else the last evaluation measured."""
    summary, batch = record.summary, record.config.batch
    steps, evals = (_of_kind(record.journal, kind) for kind in ("step", "eval"))
    scores = {name: getattr(summary, name) for name in SCORES}
    last_scores = {name: value for name, value in evals[-1].items() if _is_number(value) and name not in NO_CURVE}
    return Result(
        job=job,
        numbers={**last_scores, **_early_and_late(steps), **_early_and_late(evals), **scores},
        health=summary.verdict,
        curves={**curves(steps, batch), **curves(evals, batch)},
        protocol=summary.protocol,
        seconds=summary.seconds,
        environment=record.environment,
    )


def continual_result(job: ContinualJob, record: ContinualRecord) -> Result:
    """Average, forgetting and transfer of each readout and encoder: task-knn/fast/average, …"""
    summary = record.summary
    numbers: dict[str, float | None] = {"spread": summary.spread, "images_per_second": summary.images_per_second}
    stages: dict[str, Curve] = {}
    images_seen = [float(sum(summary.images[: n + 1])) for n in range(len(summary.images))]
    for reading in summary.readings:
        at = f"{reading.readout}/{reading.encoder}"
        for name in ("average", "forgetting_max", "forgetting_diag", "forward_transfer"):
            numbers[f"{at}/{name}"] = getattr(reading, name)
        untrained = [value for value in reading.untrained if value is not None]
        numbers[f"{at}/untrained"] = fmean(untrained) if untrained else None
        stages[at] = tuple((x, y) for x, y in zip(images_seen, reading.stages, strict=True) if y is not None)
    return Result(
        job=job,
        numbers=numbers,
        health=summary.verdict,
        curves={**curves(_of_kind(record.journal, "step"), record.config.batch), **stages},
        protocol="; ".join(reading.protocol for reading in summary.readings),
        seconds=summary.seconds,
        environment=record.environment,
    )


def detection_result(job: DetectionJob, record: DetectionRecord, environment: Mapping[str, Any]) -> Result:
    """AP, AP50 and AP75 by the job's metric."""
    summary = record.summary
    precision = summary.detectors[0].precision[job.detection.metric]
    return Result(
        job=job,
        numbers={"ap": precision.ap, "ap50": precision.ap50, "ap75": precision.ap75},
        protocol=summary.describe(),
        seconds=summary.seconds,
        environment=environment,
    )


def cost_result(
    job: CostJob, costs: Sequence[Cost], protocol: str, seconds: float, environment: Mapping[str, Any]
) -> Result:
    """Seconds and bytes of a step, ratios to SimSiam, hours of the paper's run: METHOD/seconds, …"""
    names = ("seconds", "bytes", "time_to_simsiam", "memory_to_simsiam", "hours_800_epochs")
    numbers = {f"{cost.method}/{name}": getattr(cost, name) for cost in costs for name in names}
    numbers |= {f"{cost.method}/gigabytes": None if cost.bytes is None else cost.bytes / 1e9 for cost in costs}
    return Result(job=job, numbers=numbers, protocol=protocol, seconds=seconds, environment=environment)


def dynamics_result(job: DynamicsJob, findings: Mapping[str, ClaimCheck], seconds: float) -> Result:
    """Whether each holds, for the printed equations and for the corrected ones: NAME/published, NAME/corrected."""
    numbers = {
        f"{name}/{version}": float(verdict.holds)
        for name, finding in findings.items()
        for version, verdict in finding.verdicts.items()
    }
    notes = {
        name: {"statement": f.statement, "where": f.where, "published": str(f.published), "corrected": str(f.corrected)}
        for name, f in findings.items()
    }
    return Result(job=job, numbers=numbers, notes=notes, seconds=seconds)


def curves(rows: Rows, batch: int) -> dict[str, Curve]:
    """Every number of some lines of a journal over the images seen, thinned to the same points."""
    every = [row for n, row in enumerate(rows) if n % -(-len(rows) // POINTS) == 0 or n == len(rows) - 1]
    names = dict.fromkeys(name for row in every for name, value in row.items() if _is_number(value))
    return {
        name: tuple((float(row["step"] * batch), round(row[name], 4)) for row in every if _is_number(row.get(name)))
        for name in names
        if name not in NO_CURVE
    }


def _early_and_late(rows: Rows) -> dict[str, float]:
    """The means of kNN and of the cosine loss over the first and the last fifth of a run: early/knn, late/sim1, …"""
    last = rows[-1]["step"]
    fifths = {
        "early": [row for row in rows if row["step"] <= last * FIFTH] or rows[:1],
        "late": [row for row in rows if row["step"] >= last * (1 - FIFTH)],
    }
    values_of = {
        f"{when}/{name}": [row[name] for row in rows_of_fifth if _is_number(row.get(name))]
        for when, rows_of_fifth in fifths.items()
        for name in ("knn", "sim1")
    }
    return {name: fmean(values) for name, values in values_of.items() if values}


def _of_kind(rows: Rows, kind: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
