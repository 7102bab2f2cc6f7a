"""Memory and training time of the run on CIFAR-10."""

from typing import Any

from phinets.config.jobs import CostJob, Job
from phinets.config.run import PretrainConfig
from phinets.paper.grids import LEARNERS, Change, compared_batch, grid_cells, same
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Comparable, Higher
from phinets.paper.scales import Scale

IN_MEMORY = ("BYOL", "SimSiam", "Barlow Twins", "PhiNet (MSE)", "RM-SimSiam", "X-PhiNet (MSE)", "X-PhiNet (Cos)")
IN_TIME = ("SimSiam", "BYOL", "Barlow Twins", "RM-SimSiam", "PhiNet (MSE)", "X-PhiNet (MSE)")
METHODS = tuple(LEARNERS[name] for name in IN_MEMORY)
"""All take turns in one measurement, which both tables read."""


def _table(scale: Scale, names: tuple[str, ...], number: str, **table: Any) -> Table:
    def cost_job(run: PretrainConfig) -> Job:
        return CostJob(run=run, methods=METHODS, rounds=scale.rounds)

    rows: dict[str, Change] = {f"batch {size}": compared_batch(scale, size) for size in (128, 1024)}
    measures = {name: f"{LEARNERS[name]}/{number}" for name in names}
    columns = dict.fromkeys(names, same)
    return Table(cells=grid_cells(scale, scale.cifar10, rows, columns, (cost_job, measures)), **table)


def _tables(scale: Scale, kind: str, names: tuple[str, ...], number: str, unit: str, title: str) -> tuple[Table, ...]:
    """What a step costs, and the same as a multiple of SimSiam's."""
    ratio = f"CIFAR-10: {kind} of a step as a multiple of SimSiam's"
    return (
        _table(scale, names, number, name=kind, title=f"CIFAR-10: {title}", unit=unit, better="lower", best_in="row"),
        _table(scale, names, f"{kind}_to_simsiam", name=f"{kind}-ratio", title=ratio, unit="×", better=None),
    )


LITTLE = 0.1
"""A share of SimSiam's cost that is little overhead."""
WHERE = "Appendix, computational costs"
DOMINANT = 4.0
"""At eight times the batch, memory that is mostly activations grows at least by this factor."""


def _little(kind: str, quote: str, *names: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(f"{LEARNERS[name].replace('/', '-')}-costs-little", WHERE, quote,
              f"the {kind} of {name} is within {LITTLE:.0%} of SimSiam's",
              Comparable(table=f"{kind}-ratio", one=name, other="SimSiam", within=LITTLE, along="columns"))
        for name in names
    )  # fmt: skip


MEMORY_CLAIMS = (
    *_little("memory", "There is little overhead for PhiNet and X-PhiNet over SimSiam",
             "PhiNet (MSE)", "X-PhiNet (MSE)", "X-PhiNet (Cos)"),
    Claim("batch-decides", WHERE,
          "the GPU consumption is highly dependent on batch size, indicating that the gradient and activation state, "
          "which are dependent on batch size, are dominant in this setting",
          f"at eight times the batch every method takes more than {DOMINANT:g} times the memory",
          Higher(table="memory", over=("batch 1024",), under=("batch 128",), by="every", factor=DOMINANT)),
)  # fmt: skip
HOW = (
    "The paper's hours are of whole runs on its own machines, its memory what the GPU reports; here steps are measured "
    "in turn on this machine, so ratios to SimSiam stand beside them."
)
TARGETS = (
    Target("memory", "table tab:computational_costs", "memory of training on CIFAR-10",
           tables=lambda scale: _tables(scale, "memory", IN_MEMORY, "gigabytes", "GB", "memory of a step"),
           claims=MEMORY_CLAIMS, notes=HOW),
    Target("time", "table tab:computational_costs_time", "time of training on CIFAR-10",
           tables=lambda scale: _tables(scale, "time", IN_TIME, "hours_800_epochs", "h",
                                        "hours of 800 epochs, extrapolated from a step"),
           claims=_little("time", "PhiNet can be trained in time comparable to SimSiam", "PhiNet (MSE)"), notes=HOW),
)  # fmt: skip
