"""`phinets dynamics portrait` and `explore`: phase portraits as files, and as an interactive page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from phinets.cli.command import Outcome, parse_words, show_lines
from phinets.cli.dynamics.options import BOX, SystemOptions
from phinets.cli.output import FileOptions, require_ending, require_free, save_figure
from phinets.config.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from phinets.dynamics.systems import PhiNet, SimSiam

FigureName = Literal["portrait", "regimes", "line", "comparison"]
SYSTEMS: Mapping[FigureName, tuple[str, ...]] = {
    "portrait": ("phinet", "simsiam"),
    "regimes": ("phinet",),
    "line": ("simsiam",),
    "comparison": ("phinet",),
}
"""The systems that each figure can show."""


@dataclass(frozen=True)
class PortraitOptions(FileOptions, SystemOptions):
    """Draw the phase portrait: stream lines, nullclines, equilibria, borders of basins and trajectories.

    Example: phinets dynamics portrait --rho 0.03 --start 0.08 0.5 --out portrait.svg
    """

    figure: FigureName = "portrait"
    """portrait: one weight decay. regimes: the paper's four. line: SimSiam above and below its threshold.
    comparison: PhiNet above SimSiam, from the same starts."""
    rho: float | None = None
    """ρ > 0: weight decay. Unset: 0.03; 0.08 for the comparison. The other figures have their own."""
    box: tuple[float, float, float, float] | None = None
    """The region to show: ψ from, ψ to, γ from, γ to. Unset: all equilibria."""
    start: tuple[tuple[float, float], ...] = ()
    """Where trajectories start: pairs of ψ and γ. Unset: a few; the paper's 0.08 0.5 for the comparison."""
    out: Path = Path("portrait.png")
    """The file: .png, .svg or .pdf."""

    def __post_init__(self) -> None:
        from phinets.dynamics.basins import FARTHEST

        SystemOptions.__post_init__(self)
        if self.rho is not None:
            self.flow_at(self.rho)
            if self.figure in ("regimes", "line"):
                raise UserError(f"--figure {self.figure} has its own weight decays. Leave --rho {self.rho} out.")
        for psi, gamma in self.start:
            if not (abs(psi) <= FARTHEST and abs(gamma) <= FARTHEST):  # neither holds for NaN
                raise UserError(f"--start {psi:g} {gamma:g} is too far out: give finite numbers within ±{FARTHEST:g}.")
        if self.figure == "regimes" and (self.box or self.start):
            raise UserError("--figure regimes has its own boxes and starts. Leave --box and --start out.")
        if self.system not in SYSTEMS[self.figure]:
            raise UserError(
                f"--figure {self.figure} can't show {self.system}, only "
                f"{' or '.join(SYSTEMS[self.figure])}. Give --system {SYSTEMS[self.figure][0]}."
            )


def portrait_command(words: list[str]) -> Outcome:
    options = parse_words(PortraitOptions, "dynamics portrait", words)
    require_free(options.out, options.overwrite)
    from phinets.dynamics.equilibria import equilibria

    figure, systems = _draw(options)
    save_figure(options.out, figure, colors=256)
    shown = [{"rho": each.rho, "equilibria": [point.plain() for point in equilibria(each)]} for each in systems]
    document = options.plain() | {"figure": options.figure, "picture": str(options.out), "shown": shown}
    return Outcome(document, show_lines(str(options.out)))


def _draw(options: PortraitOptions) -> "tuple[Figure, Sequence[PhiNet | SimSiam]]":
    """The figure, and the systems that it shows."""
    from phinets.dynamics.phase_plane import Window
    from phinets.reports import phase_portrait as figures

    window = options.box and Window(**dict(zip(BOX, options.box, strict=True)))
    psis = [psi for psi, _ in options.start]
    default = figures.COMPARED_RHO if options.figure == "comparison" else 0.03
    system: Any = options.flow_at(default if options.rho is None else options.rho)
    if options.figure == "regimes":
        systems = [system.with_rho(rho) for rho in figures.REGIMES.values()]
        return figures.regimes(system.version, system.sigma2), systems
    if options.figure == "comparison":
        figure = figures.comparison(system, window, options.start or (figures.STAR,))
        return figure, [system, figures.simsiam_of(system)]
    if options.figure == "line":
        systems = figures.around_threshold(system)
        return figures.line(systems, window, psis), systems
    if options.system == "simsiam":
        return figures.line([system], window, psis), [system]
    return figures.portrait(system, window, options.start), [system]


@dataclass(frozen=True)
class ExploreOptions(FileOptions):
    """Write an interactive page that works offline: PhiNet beside SimSiam, sliders for ρ and σ², trajectories by click.

    Example: phinets dynamics explore --out explorer.html
    """

    out: Path = Path("explorer.html")
    """The file, for a browser."""

    def __post_init__(self) -> None:
        require_ending(self.out, ("html", "htm"))


def explore_command(words: list[str]) -> Outcome:
    options = parse_words(ExploreOptions, "dynamics explore", words)
    require_free(options.out, options.overwrite)
    from phinets.reports.explorer import explorer
    from phinets.runtime.files import atomic_write

    page = explorer().encode()
    atomic_write(options.out, page)
    document = {"page": str(options.out), "bytes": len(page)}
    return Outcome(document, show_lines(f"{options.out}: open it in a browser"))
