"""Batch size × weight decay: CIFAR-10 by kNN and by linear probe, STL-10; and STL-10's early training."""

from collections.abc import Mapping
from dataclasses import replace

from phinets.config.run import RunConfig
from phinets.paper.grids import (
    Asked,
    batch,
    batches,
    crossed,
    learners,
    pretrained,
    probed,
    same,
    weight_decay,
    written,
)
from phinets.paper.plan import Table, Target
from phinets.paper.scales import Scale

DECAYS = (1e-4, 5e-4, 1e-3)
SIZES = (128, 256, 512, 1024)
ON_CIFAR10 = ("SimSiam", "PhiNet (MSE)", "X-PhiNet (MSE)", "X-PhiNet (Cos)")
ON_STL10 = ("SimSiam", "PhiNet (MSE)")


def _tables(scale: Scale, name: str, title: str, names: tuple[str, ...], asked: Asked[RunConfig]) -> tuple[Table, ...]:
    """A table for each weight decay, of the data set that the table's name begins with."""
    base = scale.stl10 if name == "stl10" else scale.cifar10
    return tuple(
        Table(
            name=f"{name}-{written(value)}",
            title=f"{title}, weight decay {written(value)}",
            cells=crossed(scale, weight_decay(value)(base), learners(*names), batches(scale, SIZES), asked),
            columns_are="batch size",
        )
        for value in scale.some(DECAYS)
    )


def _knn(scale: Scale) -> tuple[Table, ...]:
    return _tables(scale, "batch-size-knn", "CIFAR-10: kNN by batch size", ON_CIFAR10, pretrained("knn"))


def _linear(scale: Scale) -> tuple[Table, ...]:
    title = "CIFAR-10: linear probe by batch size"
    return _tables(scale, "batch-size-linear", title, ON_CIFAR10, probed(scale.probe))


def _stl10(scale: Scale) -> tuple[Table, ...]:
    return _tables(scale, "stl10", "STL-10: linear probe by batch size", ON_STL10, probed(scale.probe))


def _early(scale: Scale) -> tuple[Table, ...]:
    looks = replace(scale.stl10.judging, look_every=max(1, scale.stl10.judging.look_every // 10))
    base = batch(scale, 1024)(weight_decay(1e-4)(replace(scale.stl10, judging=looks)))
    return (
        _early_table(scale, base, "knn", {"early": "early/knn", "end": "knn"}),
        _early_table(scale, base, "sim1", {"early": "early/sim1", "late": "late/sim1"}),
    )


def _early_table(scale: Scale, base: RunConfig, of: str, moments: Mapping[str, str]) -> Table:
    cells = tuple(
        cell
        for row, change in learners(*ON_STL10).items()
        for column, measure in moments.items()
        for cell in crossed(scale, base, {row: change}, {column: same}, pretrained(measure))
    )
    return Table(
        name=f"stl10-early-{of}",
        title="STL-10, batch 1024: " + ("kNN" if of == "knn" else "cosine loss (Sim-1)"),
        cells=cells,
        unit="%" if of == "knn" else "",
        better="higher" if of == "knn" else None,
        columns_are="when in the run",
    )


TARGETS = (
    Target(
        name="stl10-early",
        place="figure fig:knn-early-train-curve",
        title="stability in the early training on STL-10",
        tables=_early,
        drawn="curves",
        notes=(
            "Early is the first fifth of the run, late its last: the mean of what the journal holds there. There are "
            "ten times as many looks as in other runs."
        ),
    ),
    Target(
        name="batch-size-knn",
        place="table tab:ablation_cifar_knn",
        title="batch size × weight decay on CIFAR-10 by kNN",
        tables=_knn,
    ),
    Target(
        name="batch-size-linear",
        place="table tab:ablation_cifar_linear",
        title="batch size × weight decay on CIFAR-10 by linear probe",
        tables=_linear,
        notes="In the paper the two rows of X-PhiNet (MSE) repeat its kNN table.",
    ),
    Target(
        name="stl10",
        place="table tab:ablation_stl_linear",
        title="batch size × weight decay on STL-10 by linear probe",
        tables=_stl10,
    ),
)
