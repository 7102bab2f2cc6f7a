"""The full matrix flows of linear networks: PhiNet, SimSiam, BYOL and X-PhiNet, for any width m and input width d.

Inputs x ~ N(0, I) and views x₁, x₂ ~ N(x, σ²I) give E[x₁x₁ᵀ] = sI with s = 1 + σ², E[x₂x₁ᵀ] = E[xx₁ᵀ] = I. With targets
T₁, T₂ that are held fixed while the loss is differentiated (stop-gradient), code Z = W_hW_f and

    L = ½E‖Zx₁ − T₁x₂‖² + ½E‖W_gZx₁ − T₂x‖²,    R₁ = sZ − T₁,    R₂ = sW_gZ − T₂,

the flow Ẇ = −∇L − ρW is

    Ẇ_f = −W_hᵀ(R₁ + W_gᵀR₂) − ρW_f,    Ẇ_h = −(R₁ + W_gᵀR₂)W_fᵀ − ρW_h,    Ẇ_g = −R₂Zᵀ − ρW_g.

PhiNet has T₁ = T₂ = W_f, SimSiam T₁ = τW_f and no second term, BYOL T₁ = W_s, X-PhiNet T₁ = W_f and T₂ = W_s. The slow
encoder follows by Ẇ_s = κ(W_f − W_s), the limit of W_s ← βW_s + (1 − β)W_f after each step of size η; κ = (1 − β)/η.

Two laws need no symmetry.
1. −W_hᵀ(R₁ + W_gᵀR₂)W_fᵀ is both Ẇ_fW_fᵀ + ρW_fW_fᵀ and W_hᵀẆ_h + ρW_hᵀW_h. So in every flow here, whatever the
   targets and whatever W_g does, d/dt (W_hᵀW_h − W_fW_fᵀ) = −2ρ(W_hᵀW_h − W_fW_fᵀ).
2. For orthogonal P and Q, PW_fQᵀ, PW_gPᵀ, PW_hPᵀ, PW_sQᵀ flow as the originals do.

Aligned weights W_f = U diag(a) Vᵀ, W_h = U diag(ψ) Uᵀ, W_g = U diag(γ) Uᵀ, W_s = U diag(b) Vᵀ stay aligned, and each
direction moves alone: ȧ = ψ·push − ρa, ψ̇ = a·push − ρψ, γ̇ = (t₂ − sγψa)aψ − ργ with push = t₁ − sψa + γ(t₂ − sγψa),
where t₁, t₂ are the targets' singular values (a or b). With a² = φ this is `systems.PhiNetPhi` for PhiNet; on a = ψ it
is `systems.PhiNet`, `systems.XPhiNet` and `systems.SimSiam`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phinets.dynamics.systems import Floats, Parameters, Version

Weights = Mapping[str, Floats]
"""Matrices by name: W_f (m, d), W_g and W_h (m, m), W_s (m, d)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFlow(Parameters):
    """PhiNet's matrix flow (the paper's Section 4): T₁ = T₂ = W_f.

    `published` has R₂ = sZ − W_f in Ẇ_g, where the loss gives sW_gZ − W_f; its other two equations are the loss's own.
    """

    names: ClassVar[tuple[str, ...]] = ("W_f", "W_g", "W_h")
    version: Version = "corrected"
    """Which Ẇ_g."""

    def flow(self, weights: Weights) -> dict[str, Floats]:
        return _two_predictions(self, self.version, weights, weights["W_f"])


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSimSiam(Parameters):
    """SimSiam's matrix flow with the target τW_f (Tian et al. 2021): no g, T₁ = τW_f.

    τ is held constant. For a slow target that is an approximation: it needs W_s = τW_f with one lasting τ in every
    direction. `MatrixByol` has the true slow encoder, where τ moves, and converges to 1 if the weights converge.
    """

    names: ClassVar[tuple[str, ...]] = ("W_f", "W_h")
    tau: float = 1.0
    """τ > 0: the size of the target beside the encoder; 1 is SimSiam."""

    def flow(self, weights: Weights) -> dict[str, Floats]:
        return _one_prediction(self, weights, self.tau * weights["W_f"])


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixByol(Parameters):
    """BYOL's matrix flow: SimSiam's with the slow encoder as the target, T₁ = W_s.

    On aligned weights the ratio τ = b/a of slow to fast moves by τ̇ = κ(1 − τ) − τȧ/a (Tian et al. 2021, eq. 13).
    """

    names: ClassVar[tuple[str, ...]] = ("W_f", "W_h", "W_s")
    kappa: float = 0.33
    """κ > 0: the rate at which the slow encoder follows; 0.33 is a momentum of 0.99 at a learning rate of 0.03."""

    def flow(self, weights: Weights) -> dict[str, Floats]:
        slow = {"W_s": self.kappa * (weights["W_f"] - weights["W_s"])}
        return _one_prediction(self, weights, weights["W_s"]) | slow


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixXPhiNet(Parameters):
    """X-PhiNet's matrix flow: PhiNet's with the slow encoder as the second target, T₁ = W_f and T₂ = W_s."""

    names: ClassVar[tuple[str, ...]] = ("W_f", "W_g", "W_h", "W_s")
    kappa: float = 0.33
    """As in `MatrixByol`."""
    version: Version = "corrected"
    """Which Ẇ_g."""

    def flow(self, weights: Weights) -> dict[str, Floats]:
        slow = {"W_s": self.kappa * (weights["W_f"] - weights["W_s"])}
        return _two_predictions(self, self.version, weights, weights["W_s"]) | slow


MatrixSystem = MatrixFlow | MatrixSimSiam | MatrixByol | MatrixXPhiNet
"""A flow of the matrices `names`: `flow` gives the time derivative of each, under the same names."""
MATRIX_FLOWS: Mapping[str, type[MatrixSystem]] = {
    "phinet": MatrixFlow, "simsiam": MatrixSimSiam, "byol": MatrixByol, "x-phinet": MatrixXPhiNet,
}  # fmt: skip
"""By the learner's name."""


def _one_prediction(parameters: Parameters, weights: Weights, target: Floats) -> dict[str, Floats]:
    f, h = weights["W_f"], weights["W_h"]
    residual = parameters.s * h @ f - target
    return {"W_f": -h.T @ residual - parameters.rho * f, "W_h": -residual @ f.T - parameters.rho * h}


def _two_predictions(parameters: Parameters, version: Version, weights: Weights, target: Floats) -> dict[str, Floats]:
    f, g, h = weights["W_f"], weights["W_g"], weights["W_h"]
    code = h @ f
    residual2 = parameters.s * g @ code - target
    residual = parameters.s * code - f + g.T @ residual2
    residual_g = residual2 if version == "corrected" else parameters.s * code - target
    return {
        "W_f": -h.T @ residual - parameters.rho * f,
        "W_g": -residual_g @ code.T - parameters.rho * g,
        "W_h": -residual @ f.T - parameters.rho * h,
    }


def jacobian(system: MatrixSystem, weights: Weights) -> Floats:
    """Derivative of the flow by all weights, (n, n) in the order of `pack`; exact, since the flow is a polynomial.

    Each column is the imaginary part of the flow at a point moved by 1e-30 along the imaginary axis.
    """
    point = pack(system, weights)
    shifted = point + 1e-30j * np.eye(len(point))
    columns = [pack(system, system.flow(unpack(system, each, weights))).imag / 1e-30 for each in shifted]
    return np.stack(columns, axis=1)


def pack(system: MatrixSystem, weights: Weights) -> Floats:
    """All matrices of a system as one vector."""
    return np.concatenate([weights[name].ravel() for name in system.names])


def unpack(system: MatrixSystem, vector: Floats, like: Weights) -> dict[str, Floats]:
    """The inverse of `pack`; `like` has the shapes. Leading rows of a (…, n) array become leading axes."""
    ends = np.cumsum([like[name].size for name in system.names])[:-1]
    pieces = np.split(vector, ends, axis=-1)
    return {
        name: piece.reshape(*vector.shape[:-1], *like[name].shape)
        for name, piece in zip(system.names, pieces, strict=True)
    }
