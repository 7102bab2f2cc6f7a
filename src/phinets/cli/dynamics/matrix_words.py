"""What `phinets dynamics flow` and `train` have in common: which matrix flow, and from which weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phinets.cli.dynamics.setting import VERSIONS, require_rho
from phinets.config.errors import UserError, look_up

if TYPE_CHECKING:
    from phinets.dynamics.matrix import MatrixSystem, Weights
    from phinets.dynamics.systems import Floats

RANDOM = {"dim": 4, "input_dim": 6, "scale": 1.0, "symmetric": False}
"""What describes random weights, and has no place beside a file."""


@dataclass(frozen=True)
class MatrixWords:
    """A matrix flow and a start."""

    system: str = "phinet"
    """Which flow: phinet (or matrix, which is the same), simsiam, byol or x-phinet."""
    version: str = "corrected"
    """Ẇ_g as the paper prints it (published) or as its loss gives it (corrected); simsiam and byol have no W_g."""
    sigma2: float = 1.5
    """σ² ≥ 0: how far the two views lie from the image."""
    rho: float = 0.03
    """ρ > 0: weight decay."""
    tau: float | None = None
    """For simsiam: the size of the target beside the encoder; unset: 1."""
    kappa: float | None = None
    """For byol and x-phinet: the rate of the slow encoder, (1 − momentum) / learning rate; unset: 0.33."""
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
    """Which random weights."""

    def __post_init__(self) -> None:
        self.flow()
        if self.seed < 0:
            raise UserError(f"seed is {self.seed}, but must be 0 or more.")
        given = [name for name, usual in RANDOM.items() if getattr(self, name) != usual]
        if self.start is not None and given:
            word = given[0].replace("_", "-")
            raise UserError(f"--{word} is for random weights, but --start gives the weights. Leave one of them out.")

    def flow(self) -> "MatrixSystem":
        """The flow, or what is wrong with its words."""
        from phinets.dynamics.matrix import MATRIX_FLOWS, MatrixFlow

        if self.system == "phinet-phi":
            raise UserError(
                "phinet-phi is one direction of the matrix flow: `phinets dynamics equilibria`, `bifurcations` and "
                "`basins` have it. Here say --system phinet; the reduced equations are told beside it."
            )
        name = "phinet" if self.system == "matrix" else self.system
        kind = look_up("system", name, {**MATRIX_FLOWS, "matrix": MatrixFlow})
        look_up("version", self.version, VERSIONS)
        require_rho(self.rho)
        given: dict[str, Any] = {"sigma2": self.sigma2, "rho": self.rho}
        owners = {"version": ("phinet", "x-phinet"), "tau": ("simsiam",), "kappa": ("byol", "x-phinet")}
        for word, who in owners.items():
            value = getattr(self, word)
            if name in who and value is not None:
                given[word] = value
            elif word != "version" and value is not None:
                raise UserError(f"--{word} {value} is for {' and '.join(who)}, but the system is {name}. Leave it out.")
        return kind(**given)

    def weights(self) -> "dict[str, Floats]":
        """The start: read, or drawn."""
        from phinets.dynamics.matrix_trajectories import Start, random_start, require_weights

        if self.start is not None:
            return require_weights(self.flow(), read_weights(self.start))
        start = Start(dim=self.dim, input_dim=self.input_dim, scale=self.scale, symmetric=self.symmetric)
        return random_start(self.flow(), start, self.seed)

    def told(self, weights: "Weights") -> dict[str, Any]:
        """The common words as they are told in JSON."""
        m, d = weights["W_f"].shape
        system = self.flow()
        own = {name: getattr(system, name) for name in ("version", "tau", "kappa") if hasattr(system, name)}
        origin = {"seed": self.seed} if self.start is None else {"start": str(self.start)}
        return {
            "system": self.system,
            "sigma2": self.sigma2,
            "rho": self.rho,
            **own,
            "dim": m,
            "input_dim": d,
            **origin,
        }


def read_weights(path: Path) -> "dict[str, Floats]":
    """The arrays of an .npz file, or why they can't be read."""
    import zipfile
    import zlib

    import numpy as np

    how = "Save weights with numpy.savez('weights.npz', W_f=…, W_g=…, W_h=…)."
    if not path.is_file():
        raise UserError(f"there is no file '{path}'. {how}")
    try:
        arrays = np.load(path, allow_pickle=False)
        if isinstance(arrays, np.ndarray):
            raise UserError(f"'{path}' holds one array without a name. {how}")
        with arrays:
            return {name: arrays[name] for name in arrays.files}
    except UserError:
        raise
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"'{path}' can't be read as .npz: {error}. {how}") from None
