"""`phinets eval finetune`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from phinets.cli.eval.judgement import said, watched
from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.exam import EvalOptions
from phinets.config.probes import FineTuning
from phinets.runtime.process import leaving_at_once


@dataclass(frozen=True)
class FineTune:
    """Percent of the test images that are right once all weights were trained on the labels, or on some of them.

    Example: phinets eval finetune runs/first --labels 1% --scratch
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, or a file of weights (.safetensors, or a state dict)."""
    scratch: bool = False
    """Train fresh weights in the same way as well: what pretraining must beat."""
    how: FineTuning = field(default_factory=FineTuning)
    exam: EvalOptions = field(default_factory=EvalOptions)
    json: bool = False
    """Print one JSON document: accuracy, that of fresh weights, protocol."""


def command(words: list[str]) -> Outcome:
    """The accuracy after fine-tuning."""
    options = parse_words(FineTune, "eval finetune", words)
    with leaving_at_once():
        from phinets.evaluation.feature_sets import examined, require_images
        from phinets.evaluation.finetune import fine_tuned

    require_images(options.target)
    who = examined(options.target, options.exam)
    with watched("fine-tuning") as watch:
        tuned = fine_tuned(who, options.how, scratch=options.scratch, watch=watch)
    details = who.document | {"scratch": tuned.scratch}
    beside = () if tuned.scratch is None else (f"from fresh weights {tuned.scratch:.2f} %",)
    return said("finetune", tuned.accuracy, f"{who.describe()}; {options.how.describe(tuned.batch)}", details, beside)
