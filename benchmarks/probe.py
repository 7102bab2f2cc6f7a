"""The two linear probes beside each other: what they cost, and what they find.

`cached` computes the features once and solves a logistic regression to convergence; `paper` trains a linear layer for
100 epochs of augmented views, each of which goes through the encoder again. Both judge the same frozen encoder on the
same images, in one process, one after the other. Without --run an encoder is pretrained first, by the recipe `smoke`.

    python benchmarks/probe.py                                       # shapes; ten minutes on two CPU cores
    python benchmarks/probe.py --run runs/first --data cifar10 --root DATA
    python benchmarks/probe.py --epochs 2                            # a quick look: the paper's time is extrapolated
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import tyro

from phinets.runtime.process import share_cores

share_cores()

from phinets.config.evaluation import (
    EvalOptions,  # noqa: E402
    PaperProbe,  # noqa: E402
)
from phinets.evaluation.finetune import paper_probe  # noqa: E402
from phinets.evaluation.linear import fit_probe, probe_accuracy  # noqa: E402
from phinets.evaluation.setup import EvalSetup, eval_setup  # noqa: E402
from phinets.runs.recipes import recipe  # noqa: E402
from phinets.runs.trainer import run  # noqa: E402

PAPER_EPOCHS = PaperProbe().epochs


@dataclass(frozen=True)
class Options:
    """Time and accuracy of the probes `cached` and `paper` on one encoder."""

    run: Path | None = None
    """A run folder or a file of weights; unset: an encoder is pretrained first."""
    data: str = "shapes"
    """What to judge on."""
    root: str | None = None
    """The folder of all data sets."""
    images: int = 50_000
    """Labelled training images."""
    test_images: int = 10_000
    """Test images."""
    epochs: int = PAPER_EPOCHS
    """Epochs of the paper's probe; with fewer than its 100 the time is extrapolated and the accuracy is not its own."""
    rates: tuple[float, ...] = (30.0,)
    """Learning rates of the paper's probe."""
    json: bool = False
    """Print one JSON document."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    with tempfile.TemporaryDirectory() as folder:
        place = options.run or pretrained(Path(folder) / "run")
        exam = EvalOptions(data=options.data, root=options.root, bank=options.images, test_images=options.test_images)
        document = compared(eval_setup(place, exam), options)
    print(json.dumps(document) if options.json else table(document))


def pretrained(folder: Path) -> Path:
    """An encoder that has learned a little, in half a minute."""
    return Path(run(recipe("smoke"), folder).folder)


def compared(who: EvalSetup, options: Options) -> dict[str, Any]:
    """Both probes on the same encoder and the same images."""
    cached_seconds, cached = _timed(lambda: _cached(who))
    paper = PaperProbe(epochs=options.epochs, rates=options.rates)
    seconds, probed = _timed(lambda: paper_probe(who, paper))
    whole = seconds * PAPER_EPOCHS / options.epochs
    return {
        "protocol": who.describe(),
        "cached": {"seconds": cached_seconds, "accuracy": cached},
        "paper": {
            "seconds": whole,
            "accuracy": probed.accuracy,
            "rate": probed.rate,
            "epochs": options.epochs,
            "measured_seconds": seconds,
        },
        "times_faster": whole / cached_seconds,
        "accuracy_gained": cached - probed.accuracy,
    }


def _cached(who: EvalSetup) -> float:
    known, asked = who.feature_sets()
    return probe_accuracy(fit_probe(*known.tensors()), *asked.tensors())


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = perf_counter()
    result = work()
    return perf_counter() - began, result


def table(document: dict[str, Any]) -> str:
    """The same for people."""
    cached, paper = document["cached"], document["paper"]
    extrapolated = "" if paper["epochs"] == PAPER_EPOCHS else f", extrapolated from {paper['epochs']} epochs"
    return (
        f"{document['protocol']}\n"
        f"cached {cached['seconds']:8.1f} s   {cached['accuracy']:.2f} %\n"
        f"paper  {paper['seconds']:8.1f} s   {paper['accuracy']:.2f} % (lr {paper['rate']:g}{extrapolated})\n"
        f"cached is {document['times_faster']:.0f} × faster, its accuracy {document['accuracy_gained']:+.2f} points"
    )


if __name__ == "__main__":
    main()
