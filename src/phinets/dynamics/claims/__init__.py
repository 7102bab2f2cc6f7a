"""The paper's statements on dynamics, each checked for the printed equations and for the corrected ones."""

from collections.abc import Mapping, Sequence

from phinets.config.errors import look_up
from phinets.dynamics.claims.check import Claim, ClaimCheck, Verdict
from phinets.dynamics.claims.eigenvalue_flow import (
    REGIMES,
    conjugate,
    cycles,
    negative_sink,
    negative_sink_off_the_parabola,
    off_the_parabola,
    regime,
    same_threshold,
    simsiam_threshold,
    thresholds,
    wider_basin,
)
from phinets.dynamics.claims.matrix_flow import (
    alignment,
    commutator_equation,
    decoupled,
    fast_parabola,
    gradient,
    matrix_sinks,
    parabola,
    positive_definite,
    simplified_h,
    stacked_blocks,
    symmetry,
)

__all__ = ["CLAIMS", "ClaimCheck", "Verdict", "check_paper"]

CLAIMS: Mapping[str, Claim] = {
    "gradient": gradient,
    **{expected.name.lower(): regime(expected) for expected in REGIMES},
    "thresholds": thresholds,
    "simsiam-threshold": simsiam_threshold,
    "same-threshold": same_threshold,
    "conjugate": conjugate,
    "c1": wider_basin,
    "c2": negative_sink,
    "c2-off-parabola": off_the_parabola,
    "c2-sink-off-parabola": negative_sink_off_the_parabola,
    "parabola": parabola,
    "fast-parabola": fast_parabola,
    "alignment": alignment,
    "symmetry": symmetry,
    "matrix-sinks": matrix_sinks,
    "cycles": cycles,
    "simplified-h": simplified_h,
    "decoupled": decoupled,
    **{f"commutator-{k}": commutator_equation(f"C{k}") for k in (1, 2, 3)},
    "stacked-blocks": stacked_blocks,
    "positive-definite": positive_definite,
}
"""In the order of the paper: first its section, then its appendix."""


def check_paper(sigma2: float = 1.5, only: Sequence[str] = ()) -> dict[str, ClaimCheck]:
    """Check the paper's statements on dynamics.

    Args:
        sigma2: σ² ≥ 0, the variance of the augmentation.
        only: names of statements; empty: all.

    Returns:
        The result of each statement, by name.

    Raises:
        UserError: a name is unknown.
    """
    names = list(only) or list(CLAIMS)
    return {name: look_up("statement", name, CLAIMS)(sigma2) for name in names}
