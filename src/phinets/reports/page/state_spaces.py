"""The paper's three figures of learning dynamics, as the page shows them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from phinets.config.jobs import DynamicsJob
from phinets.dynamics.systems import PhiNet, SimSiam, Version
from phinets.paper.findings import TargetFound
from phinets.reports.page.svg import inline
from phinets.reports.page.verdicts import anchor
from phinets.reports.phase_portrait import COMPARED_RHO, around_threshold, comparison, line, regimes


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """One of the figures."""

    title: str
    svg: str


def _line(version: Version, sigma2: float) -> Figure:
    return line(around_threshold(SimSiam(sigma2=sigma2, rho=1.0)))


def _comparison(version: Version, sigma2: float) -> Figure:
    return comparison(PhiNet(sigma2=sigma2, rho=COMPARED_RHO, version=version))


FIGURES: Mapping[str, tuple[str, tuple[Version, ...], Callable[[Version, float], Figure]]] = {
    "figure:vecfield_PhiNet": ("PhiNet under four weight decays", ("published", "corrected"), regimes),
    "figure:simsiam": ("SimSiam above and below its threshold", ("published",), _line),
    "figure:comparison": ("PhiNet beside SimSiam from the same start", ("published", "corrected"), _comparison),
}
"""By the figure's label in the paper: title, for which equations it is drawn (SimSiam's are the same), how."""


def state_spaces(found: TargetFound) -> list[StateSpace]:
    """The figures that a target's place names; all three where it names none of them."""
    jobs = [job for table in found.tables for each in table.cells for job in each.cell.jobs]
    sigma2 = next((job.sigma2 for job in jobs if isinstance(job, DynamicsJob)), 1.5)
    named = [label for label in FIGURES if label in found.target.place] or list(FIGURES)
    made: list[StateSpace] = []
    for label in named:
        title, versions, draw = FIGURES[label]
        for version in versions:
            said = f"{title}, equations as {version}" if len(versions) > 1 else title
            made.append(StateSpace(title=said, svg=inline(draw(version, sigma2), f"{anchor(found)}-{len(made)}-")))
    return made
