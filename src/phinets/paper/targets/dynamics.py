"""The three figures on learning dynamics, by the statements of each."""

from collections.abc import Callable

from phinets.config.jobs import DynamicsJob
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import AllHold, Claim
from phinets.paper.scales import Scale

REGIMES = ("strong", "medium", "light", "weak")
FLOW = (*REGIMES, "thresholds", "cycles")
SIMSIAM = ("simsiam-threshold",)
COMPARISON = ("same-threshold", "conjugate", "c1", "c2", "c2-off-parabola", "c2-sink-off-parabola")
COLUMNS = {"as printed": "published", "corrected": "corrected"}


def _tables(name: str, title: str, statements: tuple[str, ...]) -> Callable[[Scale], tuple[Table, ...]]:
    """One job for each statement, the same at every scale."""

    def tables(scale: Scale) -> tuple[Table, ...]:
        cells = tuple(
            Cell(row=row, column=column, measure=f"{row}/{version}", jobs=(DynamicsJob(statements=(row,)),))
            for row in statements
            for column, version in COLUMNS.items()
        )
        return (Table(name=name, title=title, cells=cells, unit="", better=None, columns_are="equations"),)

    return tables


def _claims(table: str, name: str, where: str, says: str, *rows: str) -> tuple[Claim, ...]:
    """One for the equations as printed, one for those that follow from the loss."""
    return tuple(
        Claim(f"{name}-{version}", f"Section 4, {where}", says, f"{says} ({column})",
              AllHold(table=table, rows=rows, column=column))
        for column, version in COLUMNS.items()
    )  # fmt: skip


BIFURCATION, BESIDE = "Bifurcation of PhiNet dynamics", "Comparison with SimSiam dynamics"
SINKS = "PhiNet has one, two, three, four sinks at the four weight decays of the figure"
FLOW_CLAIMS = (
    *_claims("dynamics-flow", "regimes", BIFURCATION, f"{SINKS}, each new one where it is said to be", *REGIMES),
    *_claims("dynamics-flow", "thresholds", BIFURCATION,
             "falling weight decay brings PhiNet's sinks one by one from one to four", "thresholds"),
)  # fmt: skip
SIMSIAM_CLAIMS = (
    # SimSiam has no γ, whose equation is the one that was corrected: both columns are the same.
    Claim("threshold", f"Section 4, {BESIDE}", "", "SimSiam leaves STRONG for MEDIUM at ρ = 1/(4(1+σ²))",
          AllHold(table="dynamics-simsiam", rows=SIMSIAM, column="as printed")),
)  # fmt: skip
COMPARISON_CLAIMS = tuple(
    claim
    for name, where, says, row in (
        ("same-threshold", BESIDE, "PhiNet leaves STRONG where SimSiam does", "same-threshold"),
        ("conjugate", BESIDE, "SimSiam's flow is conjugate with PhiNet's on the green line", "conjugate"),
        ("wider-basin", "C1", "PhiNet escapes collapse from ψ(0) near zero if γ(0) is large", "c1"),
        ("negative-sink", "C2", "PhiNet has a negative sink that draws negative starts", "c2"),
        ("simsiam-stays", "C2", "SimSiam cannot escape from a negative ψ(0), whatever φ(0)", "c2-off-parabola"),
    )
    for claim in _claims("dynamics-comparison", name, where, says, row)
)
NOTE = (
    "1: the statement holds, 0: it does not. The printed equation of γ does not follow from the printed loss: each "
    "statement is checked for the equations as printed and as they follow from it. All scales are the same."
)
OPEN = "The rows without a claim are questions that the paper leaves open."
TARGETS = (
    Target("dynamics-flow", "figure figure:vecfield_PhiNet", "PhiNet's flow in four regimes of weight decay",
           tables=_tables("dynamics-flow", "PhiNet's four regimes", FLOW), claims=FLOW_CLAIMS, figure="dynamics",
           notes=f"{NOTE} {OPEN}"),
    Target("dynamics-simsiam", "figure figure:simsiam", "SimSiam's flow on the line",
           tables=_tables("dynamics-simsiam", "SimSiam's two regimes", SIMSIAM), claims=SIMSIAM_CLAIMS,
           figure="dynamics", notes=NOTE),
    Target("dynamics-comparison", "figure figure:comparison", "SimSiam's flow beside PhiNet's",
           tables=_tables("dynamics-comparison", "SimSiam beside PhiNet", COMPARISON), claims=COMPARISON_CLAIMS,
           figure="dynamics", notes=f"{NOTE} {OPEN}"),
)  # fmt: skip
