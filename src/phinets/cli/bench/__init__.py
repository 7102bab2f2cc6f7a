"""`phinets bench`: what things cost on this device, one module an action."""

from collections.abc import Mapping

from phinets.cli.command import Action, Outcome, module_action, run_action

ACTIONS: Mapping[str, Action] = {
    "cost": Action(
        "time and memory of a step of every learner, by batch size", module_action("phinets.cli.bench.cost")
    ),
}


def command(words: list[str]) -> Outcome:
    """One of the actions."""
    return run_action("bench", ACTIONS, "phinets bench cost --batches 128 1024", words)
