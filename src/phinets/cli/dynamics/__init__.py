"""`phinets dynamics`: equilibria, bifurcations, basins, phase portraits and matrix flows of the linear theory."""

from collections.abc import Mapping

from phinets.cli.command import Action, Outcome, run_action
from phinets.cli.dynamics.check_paper import check_paper_command
from phinets.cli.dynamics.eigenvalues import basins_command, bifurcations_command, equilibria_command
from phinets.cli.dynamics.matrix import flow_command, train_command
from phinets.cli.dynamics.portrait import explore_command, portrait_command

ACTIONS: Mapping[str, Action] = {
    "equilibria": Action("all equilibria, their kinds and eigenvalues", equilibria_command),
    "bifurcations": Action(
        "every weight decay at which equilibria appear, and the number of sinks between", bifurcations_command
    ),
    "basins": Action("which sink each start of a box ends in", basins_command),
    "portrait": Action("draw the phase portrait, including the paper's figures", portrait_command),
    "flow": Action("integrate the matrix flow: commutators, norms, eigenvalues", flow_command),
    "train": Action("train the same networks by SGD, beside the flow", train_command),
    "check-paper": Action("check the paper's statements, one by one", check_paper_command),
    "explore": Action("write an interactive page that works offline", explore_command),
}


def command(words: list[str]) -> Outcome:
    """Run one of the actions."""
    return run_action("dynamics", ACTIONS, "phinets dynamics equilibria --rho 0.03", words)
