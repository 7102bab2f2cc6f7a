"""From records to results: the numbers by name, thin curves, and what the collapse meter said."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from phinets.config.cost import Cost
from phinets.config.detection_record import DetectionRecord
from phinets.config.record import ContinualRecord, RunRecord
from phinets.config.result import Curve, Result
from phinets.config.work import Costing, Deriving, Pretraining, Streaming, Transferring
from phinets.dynamics.claims.finding import Finding

POINTS = 60
"""Points of a curve that are kept."""
SCORES = (
    "knn", "linear", "knn_slow", "linear_slow", "knn_untrained", "linear_untrained", "knn_pixels", "linear_pixels",
    "spread", "effective_rank", "dead_share", "images_per_second",
)  # fmt: skip
FIFTH = 0.2
"""Of a run: what counts as early, and as late."""
BESIDE = ("kind", "step", "epoch", "images", "lr", "verdict")
"""What is no curve of its own in a journal's line."""

Rows = Sequence[Mapping[str, Any]]


def of_run(work: Pretraining, record: RunRecord) -> Result:
    """kNN and linear probe; stable ranks and whatever else the last look measured."""
    summary, batch = record.summary, record.config.batch
    steps, looks = (_of_kind(record.journal, kind) for kind in ("step", "eval"))
    scores = {name: getattr(summary, name) for name in SCORES}
    measured = {name: value for name, value in looks[-1].items() if _is_number(value) and name not in BESIDE}
    return Result(
        work=work,
        numbers={**measured, **_early_and_late(steps), **_early_and_late(looks), **scores},
        health=summary.verdict,
        curves={**curves(steps, batch), **curves(looks, batch)},
        protocol=summary.protocol,
        seconds=summary.seconds,
        environment=record.environment,
    )


def of_stream(work: Streaming, record: ContinualRecord) -> Result:
    """Average, forgetting and transfer of each readout and encoder: task-knn/fast/average, …"""
    summary = record.summary
    numbers: dict[str, float | None] = {"spread": summary.spread, "images_per_second": summary.images_per_second}
    stages: dict[str, Curve] = {}
    seen = [float(sum(summary.images[: n + 1])) for n in range(len(summary.images))]
    for reading in summary.readings:
        at = f"{reading.readout}/{reading.encoder}"
        for name in ("average", "forgetting_max", "forgetting_diag", "forward_transfer"):
            numbers[f"{at}/{name}"] = getattr(reading, name)
        known = [value for value in reading.untrained if value is not None]
        numbers[f"{at}/untrained"] = sum(known) / len(known) if known else None
        stages[at] = tuple((x, y) for x, y in zip(seen, reading.stages, strict=True) if y is not None)
    return Result(
        work=work,
        numbers=numbers,
        health=summary.verdict,
        curves={**curves(_of_kind(record.journal, "step"), record.config.batch), **stages},
        protocol="; ".join(reading.protocol for reading in summary.readings),
        seconds=summary.seconds,
        environment=record.environment,
    )


def of_transfer(work: Transferring, record: DetectionRecord, environment: Mapping[str, Any]) -> Result:
    """AP, AP50 and AP75 by the metric that is asked for."""
    summary = record.summary
    precision = summary.arms[0].precision[work.detection.metric]
    return Result(
        work=work,
        numbers={"ap": precision.ap, "ap50": precision.ap50, "ap75": precision.ap75},
        protocol=summary.describe(),
        seconds=summary.seconds,
        environment=environment,
    )


def of_costs(
    work: Costing, found: Sequence[Cost], protocol: str, seconds: float, environment: Mapping[str, Any]
) -> Result:
    """Seconds and bytes of a step, ratios to SimSiam, hours of the paper's run: METHOD/seconds, …"""
    names = ("seconds", "bytes", "time_to_simsiam", "memory_to_simsiam", "hours_800_epochs")
    numbers = {f"{cost.method}/{name}": getattr(cost, name) for cost in found for name in names}
    gigabytes = {f"{cost.method}/gigabytes": None if cost.bytes is None else cost.bytes / 1e9 for cost in found}
    return Result(
        work=work, numbers={**numbers, **gigabytes}, protocol=protocol, seconds=seconds, environment=environment
    )


def of_statements(work: Deriving, findings: Mapping[str, Finding], seconds: float) -> Result:
    """Whether each holds, for the printed equations and for the corrected ones: NAME/published, NAME/corrected."""
    held = {
        f"{name}/{version}": float(verdict.holds)
        for name, finding in findings.items()
        for version, verdict in finding.sides.items()
    }
    told = {
        name: {"statement": f.statement, "where": f.where, "published": str(f.published), "corrected": str(f.corrected)}
        for name, f in findings.items()
    }
    return Result(work=work, numbers=held, notes=told, seconds=seconds)


def curves(rows: Rows, batch: int) -> dict[str, Curve]:
    """Every number of some lines of a journal over the images seen, thinned to the same points."""
    every = [row for n, row in enumerate(rows) if n % -(-len(rows) // POINTS) == 0 or n == len(rows) - 1]
    names = dict.fromkeys(name for row in every for name, value in row.items() if _is_number(value))
    return {
        name: tuple((float(row["step"] * batch), round(row[name], 4)) for row in every if _is_number(row.get(name)))
        for name in names
        if name not in BESIDE
    }


def _early_and_late(rows: Rows) -> dict[str, float]:
    """The means of kNN and of the cosine loss over the first and the last fifth of a run: early/knn, late/sim1, …"""
    last = rows[-1]["step"]
    parts = {
        "early": [row for row in rows if row["step"] <= last * FIFTH] or rows[:1],
        "late": [row for row in rows if row["step"] >= last * (1 - FIFTH)],
    }
    found = {
        f"{when}/{name}": [row[name] for row in part if _is_number(row.get(name))]
        for when, part in parts.items()
        for name in ("knn", "sim1")
    }
    return {name: fmean(values) for name, values in found.items() if values}


def _of_kind(rows: Rows, kind: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
