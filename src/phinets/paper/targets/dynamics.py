"""The three figures on learning dynamics, by the statements that each carries."""

from collections.abc import Callable

from phinets.config.jobs import DynamicsJob
from phinets.paper.claims import Claim
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import Stated
from phinets.paper.scales import Scale

FLOW = ("strong", "medium", "light", "weak", "thresholds", "cycles")
SIMSIAM = ("simsiam-threshold",)
COMPARISON = ("same-threshold", "conjugate", "c1", "c2", "c2-off-parabola", "c2-sink-off-parabola")
COLUMNS = {"as printed": "published", "corrected": "corrected"}


def _stated(name: str, title: str, statements: tuple[str, ...]) -> Callable[[Scale], tuple[Table, ...]]:
    """One piece of work for each statement, the same at every scale."""

    def tables(scale: Scale) -> tuple[Table, ...]:
        cells = tuple(
            Cell(row=row, column=column, measure=f"{row}/{version}", jobs=(DynamicsJob(statements=(row,)),))
            for row in statements
            for column, version in COLUMNS.items()
        )
        return (Table(name=name, title=title, cells=cells, unit="", better=None, columns_are="equations"),)

    return tables


def _claims(table: str, name: str, says: str, where: str, rows: tuple[str, ...]) -> tuple[Claim, ...]:
    """One for the equations as printed, one for those that follow from the loss."""
    return tuple(
        Claim(
            name=f"{name}-{version}",
            says=f"{says} ({column})",
            where=f"Section 4, {where}",
            rule=Stated(table=table, rows=rows, column=column),
        )
        for column, version in COLUMNS.items()
    )


BIFURCATION, BESIDE = "Bifurcation of PhiNet dynamics", "Comparison with SimSiam dynamics"
FLOW_CLAIMS = (
    *_claims(
        "dynamics-flow", "regimes", "PhiNet has one, two, three, four sinks at the four weight decays of the figure, "
        "each new one where it is said to be", BIFURCATION, ("strong", "medium", "light", "weak"),
    ),
    *_claims(
        "dynamics-flow", "thresholds", "falling weight decay brings PhiNet's sinks one by one from one to four",
        BIFURCATION, ("thresholds",),
    ),
)  # fmt: skip
SIMSIAM_CLAIMS = (
    Claim(
        name="threshold",
        says="SimSiam leaves STRONG for MEDIUM at ρ = 1/(4(1+σ²))",
        where=f"Section 4, {BESIDE}",
        # SimSiam has no γ, whose equation is the one that was corrected: both columns are the same.
        rule=Stated(table="dynamics-simsiam", rows=SIMSIAM, column="as printed"),
    ),
)
COMPARISON_CLAIMS = tuple(
    claim
    for name, says, where, row in (
        ("same-threshold", "PhiNet leaves STRONG where SimSiam does", BESIDE, "same-threshold"),
        ("conjugate", "SimSiam's flow is conjugate with PhiNet's on the green line", BESIDE, "conjugate"),
        ("wider-basin", "PhiNet escapes collapse from ψ(0) near zero if γ(0) is large", "C1", "c1"),
        ("negative-sink", "PhiNet has a negative sink that draws negative starts", "C2", "c2"),
        ("simsiam-stays", "SimSiam cannot escape from a negative ψ(0), whatever φ(0)", "C2", "c2-off-parabola"),
    )
    for claim in _claims("dynamics-comparison", name, says, where, (row,))
)
NOTE = (
    "1: the statement holds, 0: it does not. The printed equation of γ does not follow from the printed loss: each "
    "statement is checked for the equations as printed and as they follow from it. All scales are the same."
)
OPEN = "The rows without a claim are questions that the paper leaves open."
TARGETS = (
    Target(
        name="dynamics-flow",
        place="figure figure:vecfield_PhiNet",
        title="PhiNet's flow in four regimes of weight decay",
        tables=_stated("dynamics-flow", "PhiNet's four regimes", FLOW),
        claims=FLOW_CLAIMS,
        drawn="dynamics",
        notes=f"{NOTE} {OPEN}",
    ),
    Target(
        name="dynamics-simsiam",
        place="figure figure:simsiam",
        title="SimSiam's flow on the line",
        tables=_stated("dynamics-simsiam", "SimSiam's two regimes", SIMSIAM),
        claims=SIMSIAM_CLAIMS,
        drawn="dynamics",
        notes=NOTE,
    ),
    Target(
        name="dynamics-comparison",
        place="figure figure:comparison",
        title="SimSiam's flow beside PhiNet's",
        tables=_stated("dynamics-comparison", "SimSiam beside PhiNet", COMPARISON),
        claims=COMPARISON_CLAIMS,
        drawn="dynamics",
        notes=f"{NOTE} {OPEN}",
    ),
)
