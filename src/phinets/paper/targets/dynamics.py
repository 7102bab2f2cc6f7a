"""The three figures on learning dynamics, by the statements of each."""

from collections.abc import Callable

from phinets.config.jobs import DynamicsJob
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import AllHold, Claim
from phinets.paper.scales import Scale

REGIMES = ("strong", "medium", "light", "weak")
FLOW = (*REGIMES, "thresholds", "cycles")
SIMSIAM = ("simsiam-threshold",)
COMPARISON = ("conjugate", "c1-basin", "c1", "c1-star", "c2-simsiam", "c2")
OBSERVATIONS = ("same-threshold", "c2-off-parabola", "c2-sink-off-parabola")
"""Ours: the paper does not state them."""
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


def _claims(
    table: str, name: str, where: str, quote: str, tests: str, *rows: str, columns: tuple[str, ...] = tuple(COLUMNS)
) -> tuple[Claim, ...]:
    """One for the equations as printed, one for those that follow from the loss."""
    return tuple(
        Claim(name=f"{name}-{COLUMNS[column]}" if len(columns) > 1 else name, where=f"Section 4, {where}", quote=quote,
              tests=f"{tests} ({column})", rule=AllHold(table=table, rows=rows, column=column))
        for column in columns
    )  # fmt: skip


BIFURCATION, BESIDE = "Bifurcation of PhiNet dynamics", "Comparison with SimSiam dynamics"
FLOW_CLAIMS = (
    *_claims("dynamics-flow", "regimes", BIFURCATION,
             "STRONG: Weight decay ρ is too strong that the collapsed point (ψ,γ)=(0,0) is a unique sink. "
             "MEDIUM: A new sink (ψ,γ) such that ψ ≫ 0 and γ ≈ 0 emerges. The number of sinks is two. "
             "LIGHT: Another non-trivial sink (ψ,γ) such that ψ, γ ≫ 0 emerges. There are three sinks. "
             "WEAK: The last sink emerges such that ψ < 0 and γ ≪ 0. The number of sinks is four.",
             "PhiNet has one, two, three, four sinks at the four weight decays of the figure, each new one where it is "
             "said to be", *REGIMES),
    *_claims("dynamics-flow", "thresholds", "caption of figure:vecfield_PhiNet",
             "The state space bifurcates at the boundary of each level.",
             "falling weight decay brings PhiNet's sinks one by one from one to four, by saddle-nodes", "thresholds"),
)  # fmt: skip
SIMSIAM_CLAIMS = (
    # SimSiam has no γ, whose equation is the one that was corrected: both columns are the same.
    *_claims("dynamics-simsiam", "threshold", BESIDE,
             "The SimSiam dynamics bifurcates into STRONG and MEDIUM at ρ = 1/4(1+σ²).",
             "SimSiam's one saddle-node is at ρ = 1/(4(1+σ²))", *SIMSIAM, columns=("as printed",)),
)  # fmt: skip
ESCAPE = (
    "By contrast, PhiNet avoids collapse even if ψ(0) is close to zero, as long as γ(0) is sufficiently large (see the "
    "initial point ★ in Figure 5)."
)
COMPARISON_CLAIMS = tuple(
    claim
    for name, where, quote, tests, row in (
        ("conjugate", f"{BESIDE}, caption of figure:comparison",
         "The SimSiam-MEDIUM flow is conjugate with the flow on the nullcline ψ̇ = 0 (green real line) in "
         "PhiNet-MEDIUM.",
         "PhiNet's flow stays on the line drawn, and ψ̇ along it has the signs of SimSiam's", "conjugate"),
        ("wider-basin", "C1, headline",
         "The retraction basin to non-collapsed solutions is wider",
         "more of PhiNet's starts learn than of SimSiam's, over a box with both signs of γ(0) at ρ = 0.08", "c1-basin"),
        ("escapes-near-zero", "C1",
         ESCAPE,
         "from every ψ(0) > 0 all γ(0) above some bound escape, at ρ = 0.08, 0.03, 0.003 and 0.0001", "c1"),
        ("star", "C1",
         ESCAPE,
         "PhiNet escapes from the ★ alone, ψ(0) = 0.08 and γ(0) = 0.5 at ρ = 0.08, and SimSiam does not", "c1-star"),
        ("simsiam-stays", "C2",
         "In SimSiam-MEDIUM, ψ cannot be attracted to the non-collapsed solution if ψ(0) is initialized to negative.",
         "in SimSiam's flow of ψ every negative start collapses", "c2-simsiam"),
        ("negative-sink", "C2",
         "By contrast, PhiNet-WEAK has a negative sink (at the bottom left in Figure 3), which attracts negative "
         "initialization ψ(0) < 0.",
         "PhiNet has a sink with ψ < 0 at ρ = 0.0001, and from six negative ψ(0) some γ(0) reaches it", "c2"),
    )
    for claim in _claims("dynamics-comparison", name, where, quote, tests, row)
)  # fmt: skip
NOTE = (
    "1: the statement holds, 0: it does not. The printed equation of γ does not follow from the printed loss: each "
    "statement is checked for the equations as printed and as they follow from it. All scales are the same."
)
OPEN = "The rows without a claim are observations of ours, which the paper does not state."
TARGETS = (
    Target("dynamics-flow", "figure figure:vecfield_PhiNet", "PhiNet's flow in four regimes of weight decay",
           tables=_tables("dynamics-flow", "PhiNet's four regimes", FLOW), claims=FLOW_CLAIMS, figure="dynamics",
           notes=f"{NOTE} {OPEN}"),
    Target("dynamics-simsiam", "figure figure:simsiam", "SimSiam's flow on the line",
           tables=_tables("dynamics-simsiam", "SimSiam's two regimes", SIMSIAM), claims=SIMSIAM_CLAIMS,
           figure="dynamics", notes=NOTE),
    Target("dynamics-comparison", "figure figure:comparison", "SimSiam's flow beside PhiNet's",
           tables=_tables("dynamics-comparison", "SimSiam beside PhiNet", COMPARISON + OBSERVATIONS),
           claims=COMPARISON_CLAIMS, figure="dynamics", notes=f"{NOTE} {OPEN}"),
)  # fmt: skip
