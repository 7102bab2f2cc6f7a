"""The paper's statements on dynamics, each checked for the printed equations and for the corrected ones."""

from phinets.dynamics.claims import eigenvalue_flow, matrix_flow  # noqa: F401  (they register their statements)
from phinets.dynamics.claims.check import CLAIMS, ClaimCheck, Verdict, check_paper

__all__ = ["CLAIMS", "ClaimCheck", "Verdict", "check_paper"]
