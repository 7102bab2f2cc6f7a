"""`phinets dynamics`: the laboratory of learning dynamics, one module an action."""

from collections.abc import Mapping

from phinets.cli.actions import Action, action_of, in_module
from phinets.cli.outcome import Outcome

ACTIONS: Mapping[str, Action] = {
    "equilibria": Action("all equilibria, their kinds and eigenvalues", in_module("phinets.cli.dynamics.equilibria")),
    "bifurcations": Action(
        "every weight decay at which equilibria are born, and the sinks between",
        in_module("phinets.cli.dynamics.bifurcations"),
    ),
    "basins": Action("which sink each start of a box ends in", in_module("phinets.cli.dynamics.basins")),
    "portrait": Action(
        "draw the state space, the paper's figures among them", in_module("phinets.cli.dynamics.portrait")
    ),
    "flow": Action("the matrix flow over time: what decays, what is kept", in_module("phinets.cli.dynamics.flow")),
    "train": Action("the same networks, trained by SGD beside the flow", in_module("phinets.cli.dynamics.train")),
    "check-paper": Action("the paper's statements, one by one", in_module("phinets.cli.dynamics.check_paper")),
    "explore": Action("write a page to play with, offline", in_module("phinets.cli.dynamics.explore")),
}


def command(words: list[str]) -> Outcome:
    """One of the actions."""
    return action_of("dynamics", ACTIONS, "phinets dynamics equilibria --rho 0.03", words)
