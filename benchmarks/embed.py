"""Speed of `phinets embed` on a folder of pictures, beside the encoder's own speed.

Each round measures, in one process: the encoder alone on images in memory, in the same batches; all of `phinets embed`,
from the files to the written file; and the decoding alone. The ratio of the first two is the share of its speed that
the encoder keeps. Where decoders have no cores of their own, decoding takes time from the encoder; the shares of
processor time say how much.

    python benchmarks/embed.py --photos PHOTOS                 # a folder of photographs
    python benchmarks/embed.py                                 # JPEGs drawn for it
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
from phinets.data import ImageBatch  # noqa: E402
from phinets.embed.embed import EmbedJob, embed_job, write_features  # noqa: E402


@dataclass(frozen=True)
class Options:
    """Images per second of embedding a folder, beside the encoder's own."""

    photos: Path | None = None
    """A folder of pictures; unset: JPEGs of 500 × 375 pixels are drawn."""
    images: int = 250
    """Number of pictures."""
    backbone: str = "resnet18"
    """The encoder, with fresh weights."""
    image_size: int = 224
    """Side of its input in pixels."""
    batch: int | None = None
    """Images per forward pass; unset: the default of `phinets embed`."""
    rounds: int = 5
    """Number of rounds; results are medians."""
    json: bool = False
    """Print one JSON document."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Wall and processor seconds for all images."""

    wall: float
    busy: float


@dataclass(frozen=True, kw_only=True)
class Result:
    """Images per second, medians over the rounds."""

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


def measure_time(task: Callable[[], object]) -> Times:
    """How long a task takes."""
    wall, busy = perf_counter(), process_time()
    task()
    return Times(wall=perf_counter() - wall, busy=process_time() - busy)


def measure(options: Options, place: Path) -> Result:
    """All rounds."""
    photos = options.photos or _draw_photos(place / "photos", options.images)
    weights = place / "weights.pth"
    torch.save(backbone_called(options.backbone).state_dict(), weights)
    encoder_options = EncoderOptions(
        backbone=options.backbone, data=f"folder:{photos}", image_size=options.image_size, device="cpu"
    )
    job = _head(embed_job(weights, encoder_options, batch=options.batch), options.images)
    memory = torch.cat([batch.images for batch in _decode(job)])
    tasks: dict[str, Callable[[], object]] = {
        "bare": lambda: job.encoder(memory),
        "embed": lambda: write_features(job, place / "features.npz", False, lambda count, total: None),
        "decode": lambda: _decode(job),
    }
    job.encoder(memory[: job.encoder.batch_size])  # the first time, torch chooses its kernels
    rounds = [{name: measure_time(task) for name, task in tasks.items()} for _ in range(options.rounds)]
    ratios = [one["bare"].wall / one["embed"].wall for one in rounds]
    speeds = {name: len(memory) / statistics.median(one[name].wall for one in rounds) for name in tasks}
    return Result(
        cores=os.cpu_count() or 1,
        images=len(memory),
        batch=job.encoder.batch_size,
        bare_per_second=speeds["bare"],
        embed_per_second=speeds["embed"],
        decode_per_second=speeds["decode"],
        ratio=statistics.median(ratios),
        ratios=ratios,
        work=statistics.median(one["bare"].busy / one["embed"].busy for one in rounds),
        decode_share=statistics.median(one["decode"].busy / one["bare"].busy for one in rounds),
    )


def _head(job: EmbedJob, images: int) -> EmbedJob:
    """The same with fewer images."""
    image_sets = {name: image_set.head(images) for name, image_set in job.collection.image_sets.items()}
    return replace(job, collection=replace(job.collection, image_sets=image_sets))


def _decode(job: EmbedJob) -> list[ImageBatch]:
    return [job.collection.fetch(batch) for batch in job.collection.batches(job.encoder.batch_size)]


def _draw_photos(folder: Path, images: int) -> Path:
    """JPEGs that cost about what photographs do: coarse noise, enlarged, and a little fine noise."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    for i in range(images):
        coarse = Image.fromarray(generator.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375))
        fine = generator.normal(0, 8, (375, 500, 1))
        Image.fromarray((np.asarray(coarse) + fine).clip(0, 255).astype(np.uint8)).save(folder / f"{i:05d}.jpg")
    return folder


def main() -> None:
    """Print what was measured."""
    options = tyro.cli(Options, description=__doc__)
    with tempfile.TemporaryDirectory() as place:
        result = measure(options, Path(place))
    if options.json:
        print(json.dumps(asdict(result)))
        return
    print(f"{options.backbone} at {options.image_size}, {result.images} images in batches of {result.batch}, CPU")
    print(f"encoder alone, images in memory   {result.bare_per_second:8.1f} images/s")
    print(f"phinets embed, files to file      {result.embed_per_second:8.1f} images/s")
    print(f"decoding alone                    {result.decode_per_second:8.1f} images/s")
    print(f"embedding keeps {100 * result.ratio:.1f} % of the encoder's own speed", end=" ")
    print(f"(rounds: {', '.join(f'{100 * one:.1f}' for one in result.ratios)})")
    print(f"and does {100 * result.work:.1f} % of its work in the encoder, by processor time")
    print(f"decoding takes {100 * result.decode_share:.1f} % of the encoder's processor time, on {result.cores} cores")


if __name__ == "__main__":
    main()
