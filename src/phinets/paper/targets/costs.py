"""Memory and training time of the run on CIFAR-10."""

from phinets.config.jobs import CostJob, Job
from phinets.config.run import PretrainConfig
from phinets.paper.claims import Claim
from phinets.paper.grids import Change, batch, crossed, same
from phinets.paper.learners import LEARNERS
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import Comparable, Higher
from phinets.paper.scales import Scale

IN_MEMORY = ("BYOL", "SimSiam", "Barlow Twins", "PhiNet (MSE)", "RM-SimSiam", "X-PhiNet (MSE)", "X-PhiNet (Cos)")
IN_TIME = ("SimSiam", "BYOL", "Barlow Twins", "RM-SimSiam", "PhiNet (MSE)", "X-PhiNet (MSE)")
MEASURED = tuple(LEARNERS[name] for name in IN_MEMORY)
"""All take turns in one measurement, which both tables read."""


def _cells(scale: Scale, names: tuple[str, ...], number: str) -> tuple[Cell, ...]:
    def costed(run: PretrainConfig) -> Job:
        return CostJob(run=run, methods=MEASURED, rounds=scale.rounds)

    rows: dict[str, Change] = {f"batch {size}": batch(scale, size) for size in (128, 1024)}
    return tuple(
        cell
        for row, change in rows.items()
        for name in names
        for cell in crossed(scale, scale.cifar10, {row: change}, {name: same}, (costed, f"{LEARNERS[name]}/{number}"))
    )


def _memory(scale: Scale) -> tuple[Table, ...]:
    return (
        Table(
            name="memory",
            title="CIFAR-10: memory of a step",
            cells=_cells(scale, IN_MEMORY, "gigabytes"),
            unit="GB",
            better="lower",
            best_in="row",
        ),
        Table(
            name="memory-ratio",
            title="CIFAR-10: memory of a step as a multiple of SimSiam's",
            cells=_cells(scale, IN_MEMORY, "memory_to_simsiam"),
            unit="×",
            better=None,
        ),
    )


def _time(scale: Scale) -> tuple[Table, ...]:
    return (
        Table(
            name="time",
            title="CIFAR-10: hours of 800 epochs, extrapolated from a step",
            cells=_cells(scale, IN_TIME, "hours_800_epochs"),
            unit="h",
            better="lower",
            best_in="row",
        ),
        Table(
            name="time-ratio",
            title="CIFAR-10: time of a step as a multiple of SimSiam's",
            cells=_cells(scale, IN_TIME, "time_to_simsiam"),
            unit="×",
            better=None,
        ),
    )


LITTLE = 0.1
"""A share of SimSiam's cost that is little overhead: the paper's own is up to .06 in memory and below in time."""
WHERE = "Appendix, computational costs"


def _little(kind: str, *names: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            name=f"{LEARNERS[name].replace('/', '-')}-costs-little",
            says=f"{name} takes about as much {kind} as SimSiam",
            where=WHERE,
            rule=Comparable(table=f"{kind}-ratio", one=name, other="SimSiam", within=LITTLE, along="columns"),
        )
        for name in names
    )


MEMORY_CLAIMS = (
    *_little("memory", "PhiNet (MSE)", "X-PhiNet (MSE)", "X-PhiNet (Cos)"),
    Claim(
        name="batch-decides",
        says="memory depends on the batch size, whatever the method",
        where=WHERE,
        rule=Higher(table="memory", over=("batch 1024",), under=("batch 128",), by="worst"),
    ),
)
HOW = (
    "The paper's hours are of whole runs on its own machines, its memory what the GPU reports; here steps are measured "
    "in turn on this machine, so ratios to SimSiam stand beside them."
)
TARGETS = (
    Target(
        name="memory",
        place="table tab:computational_costs",
        title="memory of training on CIFAR-10",
        tables=_memory,
        claims=MEMORY_CLAIMS,
        notes=HOW,
    ),
    Target(
        name="time",
        place="table tab:computational_costs_time",
        title="time of training on CIFAR-10",
        tables=_time,
        claims=_little("time", "PhiNet (MSE)", "X-PhiNet (MSE)"),
        notes=HOW,
    ),
)
