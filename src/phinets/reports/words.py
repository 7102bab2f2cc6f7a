"""How pictures of the dynamics name what they show."""

from phinets.dynamics.equilibria import AnySystem, equilibria
from phinets.dynamics.systems import PhiNet, PhiNetPhi, SimSiam

LETTERS = {"phi": "φ", "psi": "ψ", "gamma": "γ", "slow": "slow encoder"}


def name(system: AnySystem) -> str:
    """A system without its numbers, save those that make it another method."""
    if isinstance(system, SimSiam):
        return "SimSiam" if system.tau == 1 else f"SimSiam with τ = {system.tau:g}"
    if isinstance(system, PhiNetPhi):
        return f"PhiNet with φ, {system.version}"
    return f"PhiNet, {system.version}" if isinstance(system, PhiNet) else f"X-PhiNet, {system.version}"


def title(system: AnySystem) -> str:
    """A system with its numbers."""
    return f"{name(system)}, ρ = {system.rho:g}, σ² = {system.sigma2:g}"


def sinks_of(system: AnySystem) -> str:
    """How many sinks it has."""
    return sinks(sum(point.kind == "sink" for point in equilibria(system)))


def sinks(n: int) -> str:
    """A number of sinks."""
    return f"{n} sink" + "s" * (n != 1)
