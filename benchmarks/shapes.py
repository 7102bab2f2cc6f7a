"""How fast `shapes` draws: images per second on one thread, in batches.

python benchmarks/shapes.py
"""

import json
import statistics
from dataclasses import dataclass
from time import process_time

import numpy as np
import tyro

from phinets.data.shapes import draw


@dataclass(frozen=True)
class Options:
    """Images per second of processor time (numpy draws on one thread), by batch size."""

    size: int = 32
    """Side of the images."""
    images: int = 8192
    """Images per measurement."""
    rounds: int = 5
    """Measurements, of which the median counts."""
    json: bool = False
    """Print one JSON document."""


def images_per_second(batch: int, options: Options) -> float:
    """The median speed at one batch size."""
    speeds = []
    for i in range(options.rounds + 1):
        began = process_time()
        for first in range(0, options.images, batch):
            draw(np.arange(first, first + batch) + i * options.images, size=options.size)
        speeds.append(-(-options.images // batch) * batch / (process_time() - began))
    return statistics.median(speeds[1:])


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    speeds = {batch: images_per_second(batch, options) for batch in (64, 256, 1024, 8192)}
    if options.json:
        print(json.dumps({"size": options.size, "images_per_second": speeds}))
        return
    for batch, speed in speeds.items():
        print(f"batches of {batch:5}: {speed:8.0f} images/s")


if __name__ == "__main__":
    main()
