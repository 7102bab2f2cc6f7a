"""`phinets eval`: judgements of an encoder, one module an action."""

from collections.abc import Mapping

from phinets.cli.actions import Action, action_of, in_module
from phinets.cli.outcome import Outcome

ACTIONS: Mapping[str, Action] = {
    "knn": Action("the vote of the nearest neighbors", in_module("phinets.cli.eval.knn")),
    "linear": Action("a linear probe: on cached features, or as in the paper", in_module("phinets.cli.eval.linear")),
    "finetune": Action("all weights trained on some or all of the labels", in_module("phinets.cli.eval.finetune")),
    "health": Action("collapse, ranks, spectra, fast and slow weights", in_module("phinets.cli.eval.health")),
    "features": Action("keep the features in files, to be judged later", in_module("phinets.cli.eval.features")),
}


def command(words: list[str]) -> Outcome:
    """One of the actions."""
    return action_of("eval", ACTIONS, "phinets eval knn runs/first --k 200", words)
