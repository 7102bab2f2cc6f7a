"""Time and accuracy of the two linear probes.

`cached` computes the features once and solves a logistic regression to convergence; `paper` trains a linear layer for
100 epochs of augmented views, each of which passes through the encoder again. Both evaluate the same frozen encoder on
the same images in one process. Without --run the recipe `smoke` pretrains an encoder first.

    python benchmarks/probe.py                                       # shapes; ten minutes on two CPU cores
    python benchmarks/probe.py --run runs/first --data cifar10 --root DATA
    python benchmarks/probe.py --epochs 2                            # quick: the paper's time is extrapolated
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

from phinets.config.evaluation import EvalOptions, PaperProbe  # noqa: E402
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
    """A run folder or a weights file; unset: pretrain an encoder first."""
    data: str = "shapes"
    """The data set of the evaluation."""
    root: str | None = None
    """The folder of all data sets."""
    images: int = 50_000
    """Labeled training images."""
    test_images: int = 10_000
    """Test images."""
    epochs: int = PAPER_EPOCHS
    """Epochs of the paper's probe; below its 100 the time is extrapolated and the accuracy is lower."""
    rates: tuple[float, ...] = (30.0,)
    """Learning rates of the paper's probe."""
    json: bool = False
    """Print one JSON document."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    with tempfile.TemporaryDirectory() as folder:
        place = options.run or pretrain(Path(folder) / "run")
        eval_options = EvalOptions(
            data=options.data, root=options.root, bank=options.images, test_images=options.test_images
        )
        document = compare(eval_setup(place, eval_options), options)
    print(json.dumps(document) if options.json else table(document))


def pretrain(folder: Path) -> Path:
    """Pretrain an encoder, in half a minute."""
    return Path(run(recipe("smoke"), folder).folder)


def compare(setup: EvalSetup, options: Options) -> dict[str, Any]:
    """Both probes on the same encoder and the same images."""
    cached_seconds, cached = _time(lambda: _cached(setup))
    paper = PaperProbe(epochs=options.epochs, rates=options.rates)
    seconds, result = _time(lambda: paper_probe(setup, paper))
    whole = seconds * PAPER_EPOCHS / options.epochs
    return {
        "protocol": setup.describe(),
        "cached": {"seconds": cached_seconds, "accuracy": cached},
        "paper": {
            "seconds": whole,
            "accuracy": result.accuracy,
            "rate": result.rate,
            "epochs": options.epochs,
            "measured_seconds": seconds,
        },
        "times_faster": whole / cached_seconds,
        "accuracy_gained": cached - result.accuracy,
    }


def _cached(setup: EvalSetup) -> float:
    train, test = setup.feature_sets()
    return probe_accuracy(fit_probe(*train.tensors()), *test.tensors())


def _time(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def table(document: dict[str, Any]) -> str:
    """The results as text."""
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
