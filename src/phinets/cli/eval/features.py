"""`phinets eval features`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError
from phinets.config.exam import EvalOptions
from phinets.runtime.process import leaving_at_once


@dataclass(frozen=True)
class Features:
    """Keep the features of both sides as arrays, which may be larger than the memory, to be judged later.

    Example: phinets eval features runs/first --out features && phinets eval knn features --k 200
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, or a file of weights (.safetensors, or a state dict)."""
    out: Path = Path("features")
    """A new folder for train_features.npy, train_labels.npy, test_features.npy and test_labels.npy."""
    exam: EvalOptions = field(default_factory=EvalOptions)
    json: bool = False
    """Print one JSON document: where they are, and what they are of."""


def command(words: list[str]) -> Outcome:
    """Where the features are."""
    options = parse_words(Features, "eval features", words)
    if options.out.exists():
        raise UserError(f"'{options.out}' is already there. Choose another --out, or take it away first.")
    with leaving_at_once():
        from phinets.evaluation.feature_sets import examined, keep_features, require_images

    require_images(options.target)
    who = examined(options.target, options.exam)
    keep_features(who, options.out)
    told = f"{options.out}: {who.describe()}"
    return Outcome(
        who.document | {"features": str(options.out), "protocol": who.describe()},
        lambda console: console.print(told, highlight=False, markup=False, soft_wrap=True),
    )
