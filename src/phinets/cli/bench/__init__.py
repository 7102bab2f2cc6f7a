"""`phinets bench`: what things cost on this device, one module an action."""

from collections.abc import Mapping

from phinets.cli.actions import Action, action_of, in_module
from phinets.cli.outcome import Outcome

ACTIONS: Mapping[str, Action] = {
    "cost": Action("time and memory of a step of every learner, by batch size", in_module("phinets.cli.bench.cost")),
}


def command(words: list[str]) -> Outcome:
    """One of the actions."""
    return action_of("bench", ACTIONS, "phinets bench cost --batches 128 1024", words)
