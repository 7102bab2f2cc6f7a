"""Batch size × weight decay: CIFAR-10 by kNN and by linear probe, STL-10; and STL-10's early training."""

from collections.abc import Mapping
from dataclasses import replace

from phinets.config.run import PretrainConfig
from phinets.paper import grids
from phinets.paper.grids import COMPARABLE, decay_name, grid_cells, learners, probe_metric, run_metric, weight_decay
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Agree, Claim, Comparable, Higher
from phinets.paper.scales import Scale

DECAYS = (1e-4, 5e-4, 1e-3)
SIZES = (128, 256, 512, 1024)
ON_CIFAR10 = ("SimSiam", "PhiNet (MSE)", "X-PhiNet (MSE)", "X-PhiNet (Cos)")
ON_STL10 = ("SimSiam", "PhiNet (MSE)")


def _tables(
    scale: Scale, name: str, title: str, names: tuple[str, ...], measurement: grids.Measurement[PretrainConfig]
) -> tuple[Table, ...]:
    """A table for each weight decay, of the data set that the table's name begins with."""
    base = scale.stl10 if name == "stl10" else scale.cifar10
    columns = {str(size): grids.compared_batch(scale, size) for size in scale.some(SIZES)}
    return tuple(
        Table(
            name=f"{name}-{decay_name(value)}",
            title=f"{title} by batch size, weight decay {decay_name(value)}",
            cells=grid_cells(scale, weight_decay(scale, value)(base), learners(*names), columns, measurement),
            columns_are="batch size",
        )
        for value in scale.some_decays(DECAYS)
    )


def _early(scale: Scale) -> tuple[Table, ...]:
    often = replace(scale.stl10.evaluation, eval_every=max(1, scale.stl10.evaluation.eval_every // 10))
    base = grids.batch(scale, 1024)(weight_decay(scale, 1e-4)(replace(scale.stl10, evaluation=often)))

    def table(metric: str, title: str, moments: Mapping[str, str]) -> Table:
        cells = grid_cells(scale, base, learners(*ON_STL10), dict.fromkeys(moments, grids.same), run_metric(moments))
        title = f"STL-10, batch 1024: {title}"
        return Table(name=f"stl10-early-{metric}", title=title, cells=cells, columns_are="when in the run")

    loss = table("sim1", "cosine loss (Sim-1)", {"early": "early/sim1", "late": "late/sim1"})
    return table("knn", "kNN", {"early": "early/knn", "end": "knn"}), replace(loss, unit="", better=None)


EQUAL = 0.5
"""Points below that still count as equal: half of what counts as comparable."""
SIZES_APPENDIX = "Appendix, different batch sizes"


def _claims(name: str) -> tuple[Claim, ...]:
    """The same of both readouts."""
    tables = {value: f"{name}-{value}" for value in map(decay_name, DECAYS)}
    equal = (
        Claim(f"equal-or-better-{value}", SIZES_APPENDIX,
              "PhiNet shows equal or better performance than SimSiam across different batch sizes.",
              f"at weight decay {value} PhiNet is at most {EQUAL:g} points below SimSiam on average over batch sizes",
              Higher(table=table, over=("PhiNet (MSE)",), under=("SimSiam",), margin=-EQUAL))
        for value, table in tables.items()
    )  # fmt: skip
    poor = (
        Claim(f"cosine-poor-{value}", SIZES_APPENDIX,
              "training on CIFAR10 performs poorly when cosine loss is used as the cortex loss function",
              f"at weight decay {value} X-PhiNet (Cos) is below X-PhiNet (MSE) on average over batch sizes",
              Higher(table=table, over=("X-PhiNet (MSE)",), under=("X-PhiNet (Cos)",)))
        for value, table in tables.items()
    )  # fmt: skip
    return (*equal, *poor)


AGREE_CLAIM = Claim(
    "readouts-agree", SIZES_APPENDIX,
    "The evaluation trends from KNN classification and linear probing are also consistent.",
    "kNN and linear probe rank the cells alike: their rank correlation over methods, batch sizes and weight decays is "
    "above 0.5",
    Agree(one=tuple(f"batch-size-linear-{decay_name(value)}" for value in DECAYS),
          other=tuple(f"batch-size-knn-{decay_name(value)}" for value in DECAYS)),
)  # fmt: skip
EARLY, SIM1 = "caption of fig:knn-early-train-curve", "stl10-early-sim1"
AGREE = 0.05
"""Of cosine loss: a twentieth of the way from orthogonal to equal."""
EARLY_CLAIMS = (
    Claim("stable-early", EARLY, "SimSiam is unstable in the early stages of learning.",
          "in the first fifth of the run PhiNet's kNN is above SimSiam's",
          Higher(table="stl10-early-knn", over=("PhiNet (MSE)",), under=("SimSiam",), at=("early",))),
    Claim("cosine-loss-too-small", EARLY, "This may be due to the cosine loss being too small in SimSiam.",
          "in the first fifth of the run SimSiam's cosine loss is below PhiNet's",
          Higher(table=SIM1, over=("PhiNet (MSE)",), under=("SimSiam",), at=("early",))),
    Claim("cosine-loss-rises-again", SIZES_APPENDIX, "as the training continues, the cosine loss increases again",
          "SimSiam's cosine loss is higher in the last fifth of the run than in the first",
          Higher(table=SIM1, over=("late",), under=("early",), along="columns", at=("SimSiam",))),
    Claim("cosine-losses-agree-late", SIZES_APPENDIX, "the cosine loss increases again, in agreement with the PhiNet",
          f"in the last fifth of the run the two cosine losses differ by less than {AGREE:g}",
          Comparable(table=SIM1, one="SimSiam", other="PhiNet (MSE)", within=AGREE, at=("late",))),
)  # fmt: skip
STL10_CLAIMS = tuple(
    Claim(f"comparable-{decay_name(value)}", SIZES_APPENDIX,
          "the results for STL10, where PhiNet performs comparably to SimSiam",
          f"at weight decay {decay_name(value)} PhiNet is about as good as SimSiam on average over batch sizes",
          Comparable(table=f"stl10-{decay_name(value)}", one="PhiNet (MSE)", other="SimSiam", within=COMPARABLE))
    for value in DECAYS
)  # fmt: skip

STL10_NOTE = (
    "The paper has 50,000 training and 10,000 test images of STL-10, which has other numbers; the authors' code trains "
    "on all 105,000 (100,000 of them without a label), probes on the 5,000 labeled ones and tests on 8,000, and so do "
    "these runs. The paper does not say how large the images are. It has one setting for CIFAR-10 and STL-10, and 32 "
    "pixels are the code's default, so crops of the 96-pixel images are resized to 32. At 96 pixels: `phinets train "
    "--recipe paper --data stl10 --image-size 96`."
)

TARGETS = (
    Target("stl10-early", "figure fig:knn-early-train-curve", "stability in the early training on STL-10",
           tables=_early, claims=EARLY_CLAIMS, figure="curves",
           notes="Early is the first fifth of the run, late its last: the mean of what the journal holds there. "
                 f"There are ten times as many evaluations as in other runs. {STL10_NOTE}"),
    Target("batch-size-knn", "table tab:ablation_cifar_knn", "batch size × weight decay on CIFAR-10 by kNN",
           tables=lambda scale: _tables(scale, "batch-size-knn", "CIFAR-10: kNN", ON_CIFAR10, run_metric("knn")),
           claims=_claims("batch-size-knn")),
    Target("batch-size-linear", "table tab:ablation_cifar_linear",
           "batch size × weight decay on CIFAR-10 by linear probe",
           tables=lambda scale: (
               *_tables(scale, "batch-size-linear", "CIFAR-10: linear probe", ON_CIFAR10, probe_metric(scale.probe)),
               *_tables(scale, "batch-size-knn", "CIFAR-10: kNN", ON_CIFAR10, run_metric("knn")),
           ),
           claims=(*_claims("batch-size-linear"), AGREE_CLAIM),
           notes="In the paper the two rows of X-PhiNet (MSE) repeat its kNN table."),
    Target("stl10", "table tab:ablation_stl_linear", "batch size × weight decay on STL-10 by linear probe",
           tables=lambda scale: _tables(scale, "stl10", "STL-10: linear probe", ON_STL10, probe_metric(scale.probe)),
           claims=STL10_CLAIMS, notes=STL10_NOTE),
)  # fmt: skip
