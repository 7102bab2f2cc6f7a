"""What work needs to lie on the disk, asked before anything is done."""

from collections.abc import Iterator, Mapping

from phinets.config.errors import UserError
from phinets.config.work import Costing, Deriving, Transferring, Work
from phinets.data import DATA
from phinets.data.home import data_root
from phinets.reproduce.execute import Means


def require_data(works: Mapping[str, Work], means: Means) -> None:
    """Refuse work of which no piece has its data; where only some lack them, these say it for themselves."""
    lacking = {name: set(_lacks(work, means)) for name, work in works.items()}
    if not lacking or not all(lacking.values()):
        return
    reasons = sorted({reason for reasons in lacking.values() for reason in reasons})
    raise UserError(
        f"the data of all {len(works)} pieces of work are missing. {' '.join(reasons)} Data elsewhere: --root DIR or "
        "$PHINETS_DATA; `--scale smoke` needs none."
    )


def _lacks(work: Work, means: Means) -> Iterator[str]:
    """Why a piece of work can't find its data."""
    if isinstance(work, Deriving | Costing):
        return
    home = DATA[work.run.data].home if work.run.data in DATA else None
    if home is not None and not home.path(means.root).is_dir() and not (means.download and home.archive):
        yield f"'{home.name}' was sought in '{home.path(means.root)}'. {home.advice(means.root)}"
    if isinstance(work, Transferring) and work.detection.pictures.data:
        place = data_root(means.root) / work.detection.pictures.data.removeprefix("voc:")
        if not place.is_dir():
            yield f"VOC's pictures were sought in '{place}'. Put them there: https://host.robots.ox.ac.uk/pascal/VOC."
