"""Options that the actions of `phinets dynamics` share: which flow, how strong the views, how much weight decay."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from phinets.cli.command import print_lines
from phinets.config.errors import UserError, look_up, require_at_least

if TYPE_CHECKING:
    from phinets.dynamics.equilibria import AnySystem
    from phinets.dynamics.matrix import MatrixSystem, Weights
    from phinets.dynamics.systems import Floats

VERSIONS = {"published": None, "corrected": None}
BOX = ("psi_min", "psi_max", "gamma_min", "gamma_max")
RANDOM_START = {"dim": 4, "input_dim": 6, "scale": 1.0, "symmetric": False}
"""Options of random weights with their defaults; a file of weights excludes them."""


@dataclass(frozen=True)
class ParameterOptions:
    """The parameters that eigenvalue flows and matrix flows share."""

    system: str = "phinet"
    """Which flow."""
    version: str = "corrected"
    """The equation of g as the paper prints it (published) or as its loss gives it (corrected); for systems with g."""
    sigma2: float = 1.5
    """σ² ≥ 0: variance of the augmentation."""
    tau: float | None = None
    """For simsiam: size of the target's weights relative to the encoder's; unset: 1."""
    kappa: float | None = None
    """For systems with a slow encoder: its rate, (1 − momentum) / learning rate; unset: 0.33."""

    def build(self, systems: Mapping[str, type], name: str, rho: float) -> Any:
        """A system of a table under this weight decay; a UserError says which option is wrong."""
        from phinets.dynamics.systems import LEAST, MOST

        kind = look_up("system", name, {**systems, "matrix": object})
        look_up("version", self.version, VERSIONS)
        if 0 < rho < LEAST or rho > MOST:
            limit = f"below {LEAST:g}" if rho < LEAST else f"above {MOST:g}"
            raise UserError(f"rho is {rho}, but {limit} floats can't resolve all rates. Give e.g. 0.03.")
        parameters: dict[str, Any] = {"sigma2": self.sigma2, "rho": rho}
        for option in ("version", "tau", "kappa"):
            value = getattr(self, option)
            owners = [each for each in systems if option in {field.name for field in fields(systems[each])}]
            if value is not None and name in owners:
                parameters[option] = value
            elif value is not None and option != "version":
                raise UserError(f"--{option} {value} is for {' and '.join(owners)}, not for {name}. Leave it out.")
        return kind(**parameters)


@dataclass(frozen=True)
class SystemOptions(ParameterOptions):
    """An eigenvalue flow without its weight decay."""

    system: str = "phinet"
    """Which flow: simsiam, phinet, phinet-phi (with φ beside ψ and γ) or x-phinet (with the slow encoder)."""

    def __post_init__(self) -> None:
        self.flow_at(1.0)

    def plain(self) -> dict[str, Any]:
        """For JSON: all parameters of the flow."""
        parameters = asdict(self.flow_at(1.0))
        del parameters["rho"]
        return {"system": self.system, **parameters}

    def flow_at(self, rho: float) -> "AnySystem":
        """The flow under this weight decay."""
        from phinets.dynamics.systems import SYSTEMS

        if self.system == "matrix":
            raise UserError(
                "the matrix flow has whole manifolds of equilibria: along each eigendirection they are those of "
                "phinet-phi. Give --system phinet-phi, or use `phinets dynamics flow` for the matrix flow itself."
            )
        system: AnySystem = self.build(SYSTEMS, self.system, rho)
        return system


@dataclass(frozen=True)
class FlowOptions(SystemOptions):
    """An eigenvalue flow with its weight decay."""

    rho: float = 0.03
    """ρ > 0: weight decay."""

    def __post_init__(self) -> None:
        self.flow()

    def plain(self) -> dict[str, Any]:
        return {"system": self.system} | asdict(self.flow())

    def flow(self) -> "AnySystem":
        return self.flow_at(self.rho)


@dataclass(frozen=True)
class MatrixFlowOptions(ParameterOptions):
    """A matrix flow and its initial weights."""

    system: str = "phinet"
    """Which flow: phinet (alias: matrix), simsiam, byol or x-phinet."""
    rho: float = 0.03
    """ρ > 0: weight decay."""
    start: Path | None = None
    """An .npz file with W_f (m, d), W_g and W_h (m, m), and W_s (m, d) where there is one; unset: random weights."""
    dim: int = 4
    """m, the width of the code, for random weights."""
    input_dim: int = 6
    """d, the width of the input, for random weights."""
    scale: float = 1.0
    """Typical singular value of random weights."""
    symmetric: bool = False
    """Whether random W_g and W_h are symmetric."""
    seed: int = 0
    """Seed of the random weights."""

    def __post_init__(self) -> None:
        self.flow()
        require_at_least(self, seed=0)
        conflicts = [name for name, default in RANDOM_START.items() if getattr(self, name) != default]
        if self.start is not None and conflicts:
            option = conflicts[0].replace("_", "-")
            raise UserError(f"--{option} is for random weights, but --start gives the weights. Leave one of them out.")

    def flow(self) -> "MatrixSystem":
        from phinets.dynamics.matrix import MATRIX_FLOWS

        if self.system == "phinet-phi":
            raise UserError(
                "phinet-phi is one direction of the matrix flow: `phinets dynamics equilibria`, `bifurcations` and "
                "`basins` have it. Give --system phinet here; the output includes the reduced equations."
            )
        name = "phinet" if self.system == "matrix" else self.system
        system: MatrixSystem = self.build(MATRIX_FLOWS, name, self.rho)
        return system

    def weights(self) -> "dict[str, Floats]":
        """The initial weights, from the file or random."""
        from phinets.dynamics.matrix_trajectories import Start, random_start, require_weights

        if self.start is not None:
            return require_weights(self.flow(), read_weights(self.start))
        start = Start(**{name: getattr(self, name) for name in RANDOM_START})
        return random_start(self.flow(), start, self.seed)

    def plain(self, weights: "Weights") -> dict[str, Any]:
        """For JSON: all parameters of the flow, the shapes, and where the weights come from."""
        m, d = weights["W_f"].shape
        origin = {"seed": self.seed} if self.start is None else {"start": str(self.start)}
        system: Any = self.flow()
        return {"system": self.system, **asdict(system), "dim": m, "input_dim": d, **origin}


def read_weights(path: Path) -> "dict[str, Floats]":
    """The arrays of an .npz file; a UserError says why it can't be read."""
    import zipfile
    import zlib

    import numpy as np

    advice = "Save weights with numpy.savez('weights.npz', W_f=…, W_g=…, W_h=…)."
    if not path.is_file():
        raise UserError(f"there is no file '{path}'. {advice}")
    try:
        arrays = np.load(path, allow_pickle=False)
        weights = {} if isinstance(arrays, np.ndarray) else dict(arrays)
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"'{path}' can't be read as .npz: {error}. {advice}") from None
    if not weights:
        raise UserError(f"'{path}' holds no array with a name. {advice}")
    return weights


def print_table(console: Console, headings: list[str], rows: list[list[str]], *, right: bool = False) -> None:
    """Rows below their headings, in aligned columns; a number is never shortened, however narrow the terminal."""
    table = [headings, *rows]
    widths = [max(map(len, column)) for column in zip_longest(*table, fillvalue="")]
    for row in table:
        cells = (cell.rjust(width) if right else cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        print_lines(console, "  ".join(cells).rstrip())
