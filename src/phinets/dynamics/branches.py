"""The bifurcation diagram's lines: how each equilibrium moves as weight decay changes."""

from dataclasses import dataclass

import numpy as np

from phinets.config.errors import UserError
from phinets.dynamics.bifurcations import Bifurcation, bifurcations
from phinets.dynamics.equilibria import AnySystem, Equilibrium, Kind, equilibria
from phinets.dynamics.systems import Floats

INSIDE = 1e-9
"""How far inside an interval, in its logarithm, its first and last weight decay are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One equilibrium over an interval of weight decays in which its kind does not change."""

    variables: tuple[str, ...]
    rho: Floats
    """(n,), falling; the ends of the interval are its first and its last."""
    states: Floats
    """(k, n): where the equilibrium is."""
    kind: Kind

    def __getitem__(self, variable: str) -> Floats:
        values: Floats = self.states[self.variables.index(variable)]
        return values

    @property
    def stable(self) -> bool:
        """Whether it is a sink: drawn solid, else dashed."""
        return self.kind == "sink"


def branches(system: AnySystem, rho_min: float = 1e-5, rho_max: float = 0.5, points: int = 100) -> tuple[Branch, ...]:
    """All branches with rho_min ≤ ρ ≤ rho_max, cut wherever there is a bifurcation; the system's own ρ plays no part.

    Within an interval the equilibria keep their order by ψ: γ is a function of ψ and ρ, so no two can share a ψ, and
    none is born. Branches that meet in a saddle-node both end in that very point; one that passes by goes on where it
    stopped. The points lie densest at the ends, where a branch is as steep as a square root.
    """
    if rho_min <= 0:
        raise UserError(f"rho-min is {rho_min}, but branches are told on a logarithmic scale: give e.g. 1e-5.")
    if points < 2:
        raise UserError(f"points is {points}, but a branch has two ends: give 2 or more.")
    whole = bifurcations(system, rho_min, rho_max)
    ends: list[Bifurcation | None] = [None, *whole.found, None]
    drawn: list[Branch] = []
    for (high, low), above, below in zip(whole.intervals, ends, ends[1:], strict=False):
        share = (1 - np.cos(np.linspace(0, np.pi, points))) / 2
        rhos = high * (low / high) ** np.clip(share, INSIDE, 1 - INSIDE)
        columns = [equilibria(system.with_rho(rho)) for rho in rhos.tolist()]
        states = np.array([[each.state for each in column] for column in columns]).transpose(1, 2, 0)
        rhos[[0, -1]] = high, low
        _close(states, 0, above, system.variables)
        _close(states, -1, below, system.variables)
        kinds = [each.kind for each in columns[points // 2]]
        drawn += [
            Branch(variables=system.variables, rho=rhos, states=each, kind=kind)
            for each, kind in zip(states, kinds, strict=True)
        ]
    return tuple(drawn)


def _close(states: Floats, end: int, there: Bifurcation | None, variables: tuple[str, ...]) -> None:
    """Let the two branches that meet in a saddle-node end in it, if they are on this side of it.

    states: (branches, k, n). The two are neighbors by ψ, one on each side of it.
    """
    if there is None or there.kind != "saddle-node":
        return
    psis = states[:, variables.index("psi"), end]
    after = int(np.searchsorted(psis, there.at.psi))
    if 0 < after < len(psis) and _meet(psis[after - 1 : after + 1], there.at):
        states[after - 1 : after + 1, :, end] = there.at.state


def _meet(pair: Floats, there: Equilibrium) -> bool:
    """Whether two ψ are so near a saddle-node as its two branches are, at √INSIDE of its size, and no others."""
    return bool(np.all(np.abs(pair - there.psi) < 100 * INSIDE**0.5 * abs(there.psi)))
