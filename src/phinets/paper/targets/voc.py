"""VOC detection with encoders that were pretrained on ImageNet by two recipes."""

from dataclasses import replace

from phinets.config.detection import DetectionConfig, ImageOptions
from phinets.config.jobs import DetectionJob
from phinets.config.run import PretrainConfig
from phinets.paper.claims import Claim
from phinets.paper.grids import Asked, Change, T, batch, crossed, learner, paced, printed_once, same, weight_decay
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Comparable
from phinets.paper.scales import Scale

FIRST, SECOND = "lr .05, wd 1e-4", "lr .5, wd 1e-5"
"""The two recipes of pretraining."""
YEARS = {"voc-07": ("VOC2007",), "voc-07+12": ("VOC2007", "VOC2012")}
COLUMNS = {"AP50": "ap50", "AP": "ap", "AP75": "ap75"}
SMALL_SHARE = 3
"""VOC2007 has 5,011 pictures to learn from, with VOC2012's there are 16,551: about three times as many."""


def _recipes(scale: Scale) -> dict[str, Change]:
    """The rows: two recipes as multiples of the scale's learning rate, which stands for .05; MoCo v2's own."""
    rows: dict[str, Change] = {"MoCo v2": _moco(scale)}
    for name in ("SimSiam", "PhiNet", "X-PhiNet"):
        rows[f"{name} ({FIRST})"] = _decayed(learner(name), 1e-4)
        rows[f"{name} ({SECOND})"] = _decayed(paced(learner(name), 10), 1e-5)
    return rows


def _decayed(change: Change, value: float) -> Change:
    return lambda run: weight_decay(value)(change(run))


def _moco(scale: Scale) -> Change:
    """MoCo v2 as on ImageNet: lr .03 and batch 256, β .999, T .2, a queue of 65,536, sixteen times CIFAR-10's."""

    def changed(run: T) -> T:
        made = batch(scale, 256)(weight_decay(1e-4)(paced(learner("MoCo v2"), 0.6)(run)))
        return replace(made, learner=replace(made.learner, beta=0.999, temperature=0.2, queue=16 * made.learner.queue))

    return changed


def _pictures(pictures: ImageOptions, years: tuple[str, ...]) -> ImageOptions:
    """VOC's folders of these years; of other pictures a third stands for the first year."""
    if pictures.data.startswith("voc:"):
        first, *others = (f"{pictures.data}/{year}" for year in years)
        return replace(pictures, data=first, extra_data=tuple(others))
    if len(years) > 1 or pictures.train_images is None:
        return pictures
    return replace(pictures, train_images=max(1, pictures.train_images // SMALL_SHARE))


def _transferred(detection: DetectionConfig, measure: str) -> Asked[PretrainConfig]:
    return (lambda run: DetectionJob(run=run, detection=replace(detection, seed=run.seed))), measure


def _table(scale: Scale, name: str) -> Table:
    base = batch(scale, 512)(scale.imagenet)
    detection = replace(scale.detection, images=_pictures(scale.detection.images, YEARS[name]))
    cells = tuple(
        cell
        for row, change in _recipes(scale).items()
        for column, measure in COLUMNS.items()
        for cell in crossed(scale, base, {row: change}, {column: same}, _transferred(detection, measure))
    )
    return Table(name=name, title=f"{name.replace('voc-', 'VOC ')} detection", cells=cells)


def _voc(scale: Scale) -> tuple[Table, ...]:
    return tuple(_table(printed_once(scale), name) for name in YEARS)


ALIKE = 2.5
"""Points of precision that still are comparable: the paper's own pairs are up to 2.1 apart on average over columns."""
PAIRS = {
    "moco": (f"X-PhiNet ({FIRST})", "MoCo v2"),
    "simsiam-first": (f"X-PhiNet ({FIRST})", f"SimSiam ({FIRST})"),
    "simsiam-second": (f"X-PhiNet ({SECOND})", f"SimSiam ({SECOND})"),
}
CLAIMS = tuple(
    Claim(
        name=f"comparable-{word}-{table.removeprefix('voc-')}",
        says=f"on {table.replace('voc-', 'VOC ')}, {one} is about as good as {other}",
        where="caption of table-voc",
        rule=Comparable(table=table, one=one, other=other, within=ALIKE),
    )
    for table in YEARS
    for word, (one, other) in PAIRS.items()
)

TARGETS = (
    Target(
        name="voc",
        place="table table-voc",
        title="detection transfer to VOC",
        tables=_voc,
        claims=CLAIMS,
        notes=(
            "The paper prints no spread, so its scale has one seed: no claim can be decided there without more. It "
            "does not say how its MoCo v2 was trained: by MoCo v2's own recipe, for as many epochs as the others. "
            "Small scales have pictures that the package draws, of which a third stands for VOC 07."
        ),
    ),
)
