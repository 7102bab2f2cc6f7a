"""VOC detection with encoders that were pretrained on ImageNet by two recipes."""

from dataclasses import replace

from phinets.config.detection import DetectionConfig, DetectorOptimization
from phinets.config.jobs import DetectionJob, Job
from phinets.config.run import PretrainConfig
from phinets.paper import grids
from phinets.paper.grids import Change, T, chain, learner, lr_factor, weight_decay
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Comparable
from phinets.paper.scales import Scale

FIRST, SECOND = "lr .05, wd 1e-4", "lr .5, wd 1e-5"
"""The two recipes of pretraining."""
YEARS = {"voc-07": ("VOC2007",), "voc-07+12": ("VOC2007", "VOC2012")}
COLUMNS = {"AP50": "ap50", "AP": "ap", "AP75": "ap75"}
TRAINVAL = {"VOC2007": 5_011, "VOC2012": 11_540}
"""Training images of each year."""
SMALL_SHARE = 3
"""With VOC2012's there are about three times as many training images as of VOC2007."""


def _recipes(scale: Scale) -> dict[str, Change]:
    """The rows: two recipes as multiples of the scale's learning rate, which stands for .05; MoCo v2's own."""
    moco = chain(learner("MoCo v2"), lr_factor(0.6), weight_decay(scale, 1e-4), grids.batch(scale, 256), _moco_settings)
    rows: dict[str, Change] = {"MoCo v2": moco}
    for name in ("SimSiam", "PhiNet", "X-PhiNet"):
        rows[f"{name} ({FIRST})"] = chain(learner(name), weight_decay(scale, 1e-4))
        rows[f"{name} ({SECOND})"] = chain(learner(name), lr_factor(10), weight_decay(scale, 1e-5))
    return rows


def _moco_settings(run: T) -> T:
    """MoCo v2 as on ImageNet: β .999, T .2, a queue of 65,536, sixteen times CIFAR-10's; the encoder's plain start."""
    learner = replace(run.learner, beta=0.999, temperature=0.2, queue=16 * run.learner.queue)
    return replace(run, backbone=run.backbone.removesuffix("/zero-init-residual"), learner=learner)


def _detection(detection: DetectionConfig, years: tuple[str, ...]) -> DetectionConfig:
    """With VOC's folders of these years, in as many epochs; of other images a third stands for the first year."""
    images = detection.images
    if images.data.startswith("voc:"):
        first, *others = (f"{images.data}/{year}" for year in years)
        training = _share(detection.training, sum(map(TRAINVAL.__getitem__, years)) / sum(TRAINVAL.values()))
        return replace(detection, images=replace(images, data=first, extra_data=tuple(others)), training=training)
    if len(years) > 1 or images.train_images is None:
        return detection
    return replace(detection, images=replace(images, train_images=max(1, images.train_images // SMALL_SHARE)))


def _share(training: DetectorOptimization, share: float) -> DetectorOptimization:
    """A share of the steps, with the milestones at the same place among them."""
    milestones = tuple(round(share * step) for step in training.milestones)
    return replace(training, iterations=round(share * training.iterations), milestones=milestones)


def _voc(scale: Scale) -> tuple[Table, ...]:
    base, rows, columns = grids.batch(scale, 512)(scale.imagenet), _recipes(scale), dict.fromkeys(COLUMNS, grids.same)

    def table(name: str) -> Table:
        detection = _detection(scale.detection, YEARS[name])

        def job(run: PretrainConfig) -> Job:
            return DetectionJob(run=run, detection=replace(detection, seed=run.seed))

        cells = grids.grid_cells(grids.one_seed_in_paper(scale), base, rows, columns, (job, COLUMNS))
        return Table(name=name, title=f"{name.replace('voc-', 'VOC ')} detection", cells=cells)

    return tuple(map(table, YEARS))


PAIRS = {
    "moco": (f"X-PhiNet ({FIRST})", "MoCo v2"),
    "simsiam-first": (f"X-PhiNet ({FIRST})", f"SimSiam ({FIRST})"),
    "simsiam-second": (f"X-PhiNet ({SECOND})", f"SimSiam ({SECOND})"),
}
CLAIMS = tuple(
    Claim(f"comparable-{word}-{table.removeprefix('voc-')}", "caption of table-voc",
          "In transfer learning for object detection, X-PhiNet is comparable to MoCo and SimSiam.",
          f"on {table.replace('voc-', 'VOC ')}, {one} is about as good as {other} on average over AP50, AP and AP75",
          Comparable(table=table, one=one, other=other, within=grids.COMPARABLE))
    for table in YEARS
    for word, (one, other) in PAIRS.items()
)  # fmt: skip

TARGETS = (
    Target("voc", "table table-voc", "detection transfer to VOC",
           tables=_voc, claims=CLAIMS,
           notes="The paper prints no spread, so its scale has one seed: no claim can be decided there without more. "
                 "It does not say how its MoCo v2 was trained: by MoCo v2's own recipe, for as many epochs as the "
                 "others. Nor does it give the length of the fine-tuning: 24,000 steps on VOC 07+12, as in MoCo's "
                 "code, and as many epochs, 7,266 steps, on VOC 07 alone, for which that code has no configuration. "
                 "Small scales have images that the package draws, of which a third stands for VOC 07, in as many "
                 "steps."),
)  # fmt: skip
