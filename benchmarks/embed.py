"""Whether the encoder waits while a folder of pictures is embedded.

In one process, in turn, round after round: the encoder alone on images that are in memory already, in the same batches;
the whole of `phinets embed`, from the files on the disk to the written file; and the decoding alone. The ratio of the
first two is what the encoder keeps of its bare speed. Where the decoders have no cores of their own, they take what
decoding costs from the encoder: the share of processor time says how much that must be.

    python benchmarks/embed.py --photos PHOTOS                 # a folder of photographs
    python benchmarks/embed.py                                 # JPEGs that are drawn for it
"""

import json
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter, process_time

import tyro

from phinets.runtime.process import share_cores

share_cores()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

from phinets.backbones import backbone as backbone_called  # noqa: E402
from phinets.config.evaluation import EncoderOptions  # noqa: E402
from phinets.embed.embed import Work, embedded, work  # noqa: E402
from phinets.embed.shards import write_table  # noqa: E402


@dataclass(frozen=True)
class Options:
    """Images per second of embedding a folder, beside the encoder's own."""

    photos: Path | None = None
    """A folder of pictures; unset: JPEGs of 500 × 375 pixels are drawn."""
    images: int = 250
    """How many of them."""
    backbone: str = "resnet18"
    """Which encoder, with fresh weights."""
    image_size: int = 224
    """Side of what it sees."""
    batch: int | None = None
    """Images at once; unset: as `phinets embed` does."""
    rounds: int = 5
    """How often all is measured, in turn; the median counts."""
    json: bool = False
    """Print one JSON document."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds by the clock, and of processors, for all images."""

    wall: float
    busy: float


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came out; images per second are medians over the rounds."""

    cores: int
    images: int
    batch: int
    bare_per_second: float
    embed_per_second: float
    decode_per_second: float
    ratio: float
    """Bare seconds ÷ embedding's, the median over rounds of both in the same round."""
    ratios: list[float]
    work: float
    """The same of processor time, which other programs on the machine disturb less."""
    decode_share: float
    """Processor time of decoding ÷ that of the bare encoder."""


def timed(job: Callable[[], object]) -> Times:
    """How long a job takes."""
    wall, busy = perf_counter(), process_time()
    job()
    return Times(wall=perf_counter() - wall, busy=process_time() - busy)


def measured(options: Options, place: Path) -> Result:
    """All rounds."""
    photos = options.photos or _drawn(place / "photos", options.images)
    weights = place / "weights.pth"
    torch.save(backbone_called(options.backbone).state_dict(), weights)
    sight = EncoderOptions(
        backbone=options.backbone, data=f"folder:{photos}", image_size=options.image_size, device="cpu"
    )
    todo = _first(work(weights, sight, batch=options.batch), options.images)
    taken = [todo.collection.take(batch) for batch in todo.collection.batches(todo.encoder.batch_size)]
    memory = torch.cat([one.images for one in taken])
    jobs: dict[str, Callable[[], object]] = {
        "bare": lambda: todo.encoder(memory),
        "embed": lambda: _embedded(todo, place / "features.npz"),
        "decode": lambda: [todo.collection.take(batch) for batch in todo.collection.batches(todo.encoder.batch_size)],
    }
    todo.encoder(memory[: todo.encoder.batch_size])  # the first time, torch chooses its kernels
    rounds = [{name: timed(job) for name, job in jobs.items()} for _ in range(options.rounds)]
    ratios = [one["bare"].wall / one["embed"].wall for one in rounds]
    speeds = {name: len(memory) / statistics.median(one[name].wall for one in rounds) for name in jobs}
    return Result(
        cores=os.cpu_count() or 1,
        images=len(memory),
        batch=todo.encoder.batch_size,
        bare_per_second=speeds["bare"],
        embed_per_second=speeds["embed"],
        decode_per_second=speeds["decode"],
        ratio=statistics.median(ratios),
        ratios=ratios,
        work=statistics.median(one["bare"].busy / one["embed"].busy for one in rounds),
        decode_share=statistics.median(one["decode"].busy / one["bare"].busy for one in rounds),
    )


def _first(todo: Work, images: int) -> Work:
    """The same with fewer images."""
    pieces = {name: part.head(images) for name, part in todo.collection.pieces.items()}
    return replace(todo, collection=replace(todo.collection, pieces=pieces))


def _embedded(todo: Work, out: Path) -> None:
    with embedded(todo, out, False, lambda done, of: None) as table:
        write_table(out, table)


def _drawn(folder: Path, images: int) -> Path:
    """JPEGs that cost about what photographs do: coarse noise, enlarged, and a little fine noise."""
    folder.mkdir()
    drawn = np.random.default_rng(0)
    for i in range(images):
        coarse = Image.fromarray(drawn.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375))
        fine = drawn.normal(0, 8, (375, 500, 1))
        Image.fromarray((np.asarray(coarse) + fine).clip(0, 255).astype(np.uint8)).save(folder / f"{i:05d}.jpg")
    return folder


def main() -> None:
    """Print what was measured."""
    options = tyro.cli(Options, description=__doc__)
    with tempfile.TemporaryDirectory() as place:
        found = measured(options, Path(place))
    if options.json:
        print(json.dumps(asdict(found)))
        return
    print(f"{options.backbone} at {options.image_size}, {found.images} images in batches of {found.batch}, CPU")
    print(f"encoder alone, images in memory   {found.bare_per_second:8.1f} images/s")
    print(f"phinets embed, files to file      {found.embed_per_second:8.1f} images/s")
    print(f"decoding alone                    {found.decode_per_second:8.1f} images/s")
    print(f"embedding keeps {100 * found.ratio:.1f} % of the encoder's own speed", end=" ")
    print(f"(rounds: {', '.join(f'{100 * one:.1f}' for one in found.ratios)})")
    print(f"and does {100 * found.work:.1f} % of its work in the encoder, by processor time")
    print(f"decoding takes {100 * found.decode_share:.1f} % of the encoder's processor time, on {found.cores} cores")


if __name__ == "__main__":
    main()
