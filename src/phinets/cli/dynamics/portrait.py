"""`phinets dynamics portrait`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from phinets.cli.dynamics.setting import Family
from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free, save_figure
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from phinets.dynamics.phase_plane import Window
    from phinets.dynamics.systems import PhiNet, SimSiam

Picture = Literal["portrait", "regimes", "line", "comparison"]
Box = tuple[float, float, float, float]
Drawn = tuple["Figure", "Sequence[PhiNet | SimSiam]"]
"""A picture, and the systems that it shows."""


@dataclass(frozen=True)
class Options(Family):
    """Draw the state space: stream lines, nullclines, equilibria, borders of basins and trajectories.

    Example: phinets dynamics portrait --rho 0.03 --start 0.08 0.5 --out portrait.svg
    """

    figure: Picture = "portrait"
    """portrait: one weight decay. regimes: the paper's four. line: SimSiam above and below its threshold.
    comparison: PhiNet above SimSiam, from the same starts."""
    rho: float | None = None
    """ρ > 0: weight decay. Unset: 0.03; 0.08 for the comparison. The other figures have their own."""
    box: Box | None = None
    """What is shown: ψ from, ψ to, γ from, γ to. Unset: all equilibria."""
    start: tuple[tuple[float, float], ...] = ()
    """Where trajectories start: pairs of ψ and γ. Unset: a few; the paper's 0.08 0.5 for the comparison."""
    out: Path = Path("portrait.png")
    """Where to; the ending tells the format: .png, .svg, .pdf."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: where the picture is, and the equilibria that it shows."""

    def __post_init__(self) -> None:
        Family.__post_init__(self)
        if self.rho is not None:
            self.flow_at(self.rho)
            if self.figure in ("regimes", "line"):
                raise UserError(f"--figure {self.figure} has its own weight decays. Leave --rho {self.rho} out.")
        if self.start:
            self._require_near()
        if self.figure == "regimes" and (self.box or self.start):
            raise UserError("--figure regimes has its own boxes and starts. Leave --box and --start out.")
        if self.system not in SHOWN[self.figure]:
            raise UserError(
                f"--figure {self.figure} can't show {self.system}: it has room for "
                f"{' or '.join(SHOWN[self.figure])}. Say --system {SHOWN[self.figure][0]}."
            )

    def _require_near(self) -> None:
        from phinets.dynamics.basins import FARTHEST

        for pair in self.start:
            if not all(abs(number) <= FARTHEST for number in pair):
                psi, gamma = pair
                raise UserError(
                    f"--start {psi:g} {gamma:g} can't be followed: a trajectory starts at finite numbers within "
                    f"±{FARTHEST:g}."
                )


def command(words: list[str]) -> Outcome:
    """Draw into a file."""
    options = parse_words(Options, "dynamics portrait", words)
    require_free(options.out, options.overwrite)
    from phinets.dynamics.equilibria import equilibria

    figure, systems = FIGURES[options.figure](options, _window(options))
    save_figure(options.out, figure, colors=256)
    shown = [{"rho": each.rho, "equilibria": [point.plain() for point in equilibria(each)]} for each in systems]
    document = options.plain() | {"figure": options.figure, "picture": str(options.out), "shown": shown}
    return Outcome(
        document, lambda console: console.print(str(options.out), highlight=False, markup=False, soft_wrap=True)
    )


def _window(options: Options) -> "Window | None":
    from phinets.dynamics.phase_plane import Window

    if options.box is None:
        return None
    psi_min, psi_max, gamma_min, gamma_max = options.box
    return Window(psi_min=psi_min, psi_max=psi_max, gamma_min=gamma_min, gamma_max=gamma_max)


def _portrait(options: Options, window: "Window | None") -> Drawn:
    from phinets.reports.phase_portrait import line, portrait

    system: Any = options.flow_at(0.03 if options.rho is None else options.rho)
    if options.system == "simsiam":
        return line([system], window, [psi for psi, _ in options.start]), [system]
    return portrait(system, window, options.start), [system]


def _regimes(options: Options, window: "Window | None") -> Drawn:
    from phinets.reports.phase_portrait import REGIMES, regimes

    first: Any = options.flow_at(1.0)
    return regimes(first.version, first.sigma2), [first.with_rho(rho) for rho in REGIMES.values()]


def _line(options: Options, window: "Window | None") -> Drawn:
    from phinets.reports.phase_portrait import around_threshold, line

    first: Any = options.flow_at(1.0)
    systems = around_threshold(first)
    return line(systems, window, [psi for psi, _ in options.start]), systems


def _comparison(options: Options, window: "Window | None") -> Drawn:
    from phinets.dynamics.systems import SimSiam
    from phinets.reports.phase_portrait import COMPARED_RHO, STAR, comparison

    system: Any = options.flow_at(COMPARED_RHO if options.rho is None else options.rho)
    simsiam = SimSiam(sigma2=system.sigma2, rho=system.rho)
    return comparison(system, window, options.start or (STAR,)), [system, simsiam]


FIGURES: Mapping[Picture, Callable[[Options, "Window | None"], Drawn]] = {
    "portrait": _portrait,
    "regimes": _regimes,
    "line": _line,
    "comparison": _comparison,
}
SHOWN: Mapping[Picture, tuple[str, ...]] = {
    "portrait": ("phinet", "simsiam"),
    "regimes": ("phinet",),
    "line": ("simsiam",),
    "comparison": ("phinet",),
}
"""Which systems each figure has room for."""
