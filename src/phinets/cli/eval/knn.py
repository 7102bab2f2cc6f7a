"""`phinets eval knn`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from phinets.cli.eval.judgement import said
from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError
from phinets.config.exam import EvalOptions
from phinets.runtime.process import leaving_at_once


@dataclass(frozen=True)
class Knn:
    """Percent of the test images that the nearest training images get right: the live monitor's own vote.

    Example: phinets eval knn runs/first --data cifar10 --k 200
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, a file of weights (.safetensors, or a state dict), or kept features."""
    k: int | None = None
    """Neighbors that vote; unset: as in the run, else 200, or all where they are fewer."""
    temperature: float | None = None
    """Votes weigh exp(cosine / temperature); unset: as in the run, else 0.1."""
    exam: EvalOptions = field(default_factory=EvalOptions)
    json: bool = False
    """Print one JSON document: accuracy, k, temperature, protocol."""

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise UserError(f"k is {self.k}, but at least one neighbor must vote. The paper uses 200.")
        if self.temperature is not None and not 0 < self.temperature < float("inf"):
            raise UserError(f"temperature is {self.temperature}, but must be above 0. The paper uses 0.1.")


def command(words: list[str]) -> Outcome:
    """The vote's accuracy."""
    options = parse_words(Knn, "eval knn", words)
    with leaving_at_once():
        from phinets.evaluation.evaluator import knn_protocol
        from phinets.evaluation.feature_sets import embedding
        from phinets.evaluation.knn import knn_accuracy
        from phinets.runtime.devices import pick_device

    found = embedding(options.target, options.exam)
    k = options.k or min(found.evaluation.num_neighbors, len(found.known.labels))
    temperature = options.temperature or found.evaluation.knn_temperature
    device = pick_device(options.exam.device)
    accuracy = knn_accuracy(*found.asked, *found.known, k=k, temperature=temperature, device=device)
    protocol = f"{found.described}; kNN: {knn_protocol(k, temperature)}"
    return said("knn", accuracy, protocol, found.document | {"k": k, "temperature": temperature})
