"""The three figures on learning dynamics, by the statements that each carries."""

from collections.abc import Callable

from phinets.config.work import Deriving
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.scales import Scale

FLOW = ("strong", "medium", "light", "weak", "thresholds", "cycles")
SIMSIAM = ("simsiam-threshold",)
COMPARISON = ("same-threshold", "conjugate", "c1", "c2", "c2-off-parabola", "c2-sink-off-parabola")
COLUMNS = {"as printed": "published", "corrected": "corrected"}


def _stated(name: str, title: str, statements: tuple[str, ...]) -> Callable[[Scale], tuple[Table, ...]]:
    """One piece of work for each statement, the same at every scale."""

    def tables(scale: Scale) -> tuple[Table, ...]:
        cells = tuple(
            Cell(row=row, column=column, measure=f"{row}/{version}", works=(Deriving(statements=(row,)),))
            for row in statements
            for column, version in COLUMNS.items()
        )
        return (Table(name=name, title=title, cells=cells, unit="", better=None, columns_are="equations"),)

    return tables


NOTE = (
    "1: the statement holds, 0: it does not. The printed equation of γ does not follow from the printed loss: each "
    "statement is checked for the equations as printed and as they follow from it. All scales are the same."
)
TARGETS = (
    Target(
        name="dynamics-flow",
        place="figure figure:vecfield_PhiNet",
        title="PhiNet's flow in four regimes of weight decay",
        tables=_stated("dynamics-flow", "PhiNet's four regimes", FLOW),
        drawn="dynamics",
        notes=NOTE,
    ),
    Target(
        name="dynamics-simsiam",
        place="figure figure:simsiam",
        title="SimSiam's flow on the line",
        tables=_stated("dynamics-simsiam", "SimSiam's two regimes", SIMSIAM),
        drawn="dynamics",
        notes=NOTE,
    ),
    Target(
        name="dynamics-comparison",
        place="figure figure:comparison",
        title="SimSiam's flow beside PhiNet's",
        tables=_stated("dynamics-comparison", "SimSiam beside PhiNet", COMPARISON),
        drawn="dynamics",
        notes=NOTE,
    ),
)
