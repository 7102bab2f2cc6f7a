"""`phinets eval linear`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from phinets.cli.eval.judgement import said, watched
from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError
from phinets.config.exam import EvalOptions
from phinets.config.probes import CACHED, PaperProbe, ProbeName
from phinets.runtime.process import leaving_at_once


@dataclass(frozen=True)
class Linear:
    """Percent of the test images that a linear classifier on the frozen features gets right.

    Example: phinets eval linear runs/first --probe paper --rates 3 10 30
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, a file of weights (.safetensors, or a state dict), or kept features."""
    probe: ProbeName = "cached"
    """`cached`: features once, then logistic regression to convergence. `paper`: epochs of steps on augmented views."""
    paper: PaperProbe = field(default_factory=PaperProbe)
    exam: EvalOptions = field(default_factory=EvalOptions)
    json: bool = False
    """Print one JSON document: accuracy, what was chosen on the held-out part, protocol."""

    def __post_init__(self) -> None:
        if self.probe == "cached" and self.paper != PaperProbe():
            raise UserError(
                "rates, epochs, batch, momentum and optimizer are the paper's probe's. Say --probe paper with them."
            )


def command(words: list[str]) -> Outcome:
    """The probe's accuracy."""
    options = parse_words(Linear, "eval linear", words)
    return _cached(options) if options.probe == "cached" else _paper(options)


def _cached(options: Linear) -> Outcome:
    with leaving_at_once():
        from phinets.evaluation.feature_sets import embedding, in_memory
        from phinets.evaluation.linear import fit_probe, probe_accuracy

    found = embedding(options.target, options.exam)
    known, asked = in_memory(found.known), in_memory(found.asked)
    probe = fit_probe(*known)
    accuracy = probe_accuracy(probe, *asked)
    details = found.document | {"probe": "cached", "l2": probe.l2, "held_out": probe.held_out}
    chosen = f"L2 {probe.l2:g}, right on what was held out: {_listed(probe.held_out)}"
    return said("linear", accuracy, f"{found.described}; linear probe `cached`: {CACHED}", details, (chosen,))


def _paper(options: Linear) -> Outcome:
    with leaving_at_once():
        from phinets.evaluation.feature_sets import examined, require_images
        from phinets.evaluation.finetune import paper_probe

    require_images(options.target)
    who = examined(options.target, options.exam)
    with watched("linear probe") as watch:
        probed = paper_probe(who, options.paper, watch)
    details = who.document | {"probe": "paper", "rate": probed.rate, "held_out": probed.held_out}
    protocol = f"{who.describe()}; linear probe `paper`: {options.paper.describe(probed.batch)}"
    chosen = f"lr {probed.rate:g}, right on what was held out: {_listed(probed.held_out)}"
    return said("linear", probed.accuracy, protocol, details, (chosen,) if probed.held_out else ())


def _listed(right: dict[float, float]) -> str:
    return ", ".join(f"{value:g}: {percent:.1f} %" for value, percent in right.items())
