"""The eigenvalue dynamics of linear SimSiam, PhiNet and X-PhiNet: each system has its flow and its Jacobian.

A state is an array (k, …): its first axis holds the k variables, the others any number of points. s stands for 1 + σ².
Cubes are written as ψ²·ψ, since numpy is slow at every power but its square.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError, require_finite

Version = Literal["published", "corrected"]
"""`published`: γ̇ as the paper prints it. `corrected`: γ̇ as it follows from the paper's loss; its first term keeps γ."""
Floats = NDArray[np.float64]
LEAST, MOST = 1e-12, 1e6
"""Weight decays between which floats resolve both the slow rates, of size ρ, and the fast ones."""
POSITIVE = {"rho": "0.03", "tau": "1, which is SimSiam", "kappa": "0.33"}
"""Parameters that must be above 0, where a system has them, with an example."""


class System(Protocol):
    """A flow of k variables with weight decay ρ."""

    variables: ClassVar[tuple[str, ...]]

    @property
    def rho(self) -> float: ...

    def flow(self, state: Floats) -> Floats:
        """Time derivative of each variable: (k, …) → (k, …)."""

    def jacobian(self, state: Floats) -> Floats:
        """Derivative of the flow by the state: (k, …) → (k, k, …), one row per rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of every system."""

    sigma2: float = 1.5
    """σ² ≥ 0: variance of the augmentation."""
    rho: float = 0.03
    """ρ > 0: weight decay."""

    def __post_init__(self) -> None:
        require_finite(self)
        if self.sigma2 < 0:
            raise UserError(f"sigma2 is {self.sigma2}, but a variance can't be negative: give 0 or more.")
        for name, example in POSITIVE.items():
            if (value := getattr(self, name, 1.0)) <= 0:
                raise UserError(f"{name} is {value}, but must be above 0: give e.g. {example}.")

    @property
    def s(self) -> float:
        """1 + σ², the variance of a view."""
        return 1 + self.sigma2

    def with_rho(self, rho: float) -> Self:
        """The same flow under another weight decay."""
        return replace(self, rho=rho)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimSiam(Parameters):
    """ψ̇ = {τ − sψ}ψ² − ρψ (the paper's SimSiam-dynamics at τ = 1; Tian et al. 2021, eq. 16).

    τ is the size of the target's weights relative to the encoder's: 1 without a moving average, below 1 while a slow
    target lags behind a growing encoder.
    """

    variables: ClassVar[tuple[str, ...]] = ("psi",)
    tau: float = 1.0
    """τ > 0."""

    def flow(self, state: Floats) -> Floats:
        (psi,) = state
        return np.stack([(self.tau - self.s * psi) * psi**2 - self.rho * psi])

    def jacobian(self, state: Floats) -> Floats:
        (psi,) = state
        return np.stack([np.stack([2 * self.tau * psi - 3 * self.s * psi**2 - self.rho])])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versioned(Parameters):
    """Systems with γ, which have two versions."""

    version: Version = "corrected"
    """Which γ̇."""

    def push(self, psi: Floats, gamma: Floats) -> Floats:
        """The factor that drives ψ: (1+γ) − s(1+γ²)ψ."""
        return (1 + gamma) - self.s * (1 + gamma**2) * psi

    def pull(self, psi: Floats, gamma: Floats) -> Floats:
        """The factor that drives γ: 1 − sψ as published, 1 − sγψ as corrected."""
        return 1 - self.s * psi * (gamma if self.version == "corrected" else 1)

    def derivatives(self, psi: Floats, gamma: Floats) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """`push` and `pull`, each with its derivatives by ψ and by γ."""
        push = self.push(psi, gamma), -self.s * (1 + gamma**2), 1 - 2 * self.s * gamma * psi
        if self.version == "corrected":
            return push, (self.pull(psi, gamma), -self.s * gamma, -self.s * psi)
        return push, (self.pull(psi, gamma), np.full_like(psi, -self.s), np.zeros_like(psi))

    def plane_flow(self, psi: Floats, gamma: Floats) -> list[Floats]:
        """PhiNet's ψ̇ and γ̇ on the parabola φ = ψ²."""
        square = psi**2
        push, pull = self.push(psi, gamma), self.pull(psi, gamma)
        return [push * square - self.rho * psi, pull * square * psi - self.rho * gamma]

    def plane_jacobian(self, psi: Floats, gamma: Floats) -> list[list[Floats]]:
        """Their derivatives by ψ and γ, one row per rate."""
        square = psi**2
        (push, push_psi, push_gamma), (pull, pull_psi, pull_gamma) = self.derivatives(psi, gamma)
        return [
            [2 * psi * push + square * push_psi - self.rho, square * push_gamma],
            [square * (3 * pull + psi * pull_psi), square * psi * pull_gamma - self.rho],
        ]


def _stack_rows(*rows: Sequence[Floats]) -> Floats:
    """A matrix of entries (…) as one array (k, k, …)."""
    return np.stack([np.stack(row) for row in rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class PhiNet(_Versioned):
    """The paper's PhiNet-dynamics, on the parabola φ = ψ².

    ψ̇ = {(1+γ) − s(1+γ²)ψ}ψ² − ρψ,  γ̇ = {1 − sψ}ψ³ − ργ (published) or {1 − sγψ}ψ³ − ργ (corrected).
    """

    variables: ClassVar[tuple[str, ...]] = ("psi", "gamma")

    def flow(self, state: Floats) -> Floats:
        return np.stack(self.plane_flow(*state))

    def jacobian(self, state: Floats) -> Floats:
        return _stack_rows(*self.plane_jacobian(*state))


@dataclass(frozen=True, slots=True, kw_only=True)
class PhiNetPhi(_Versioned):
    """The paper's (Φ, W_h, W_g)-dynamics of one eigenvalue each, before φ is eliminated.

    With push = (1+γ) − s(1+γ²)ψ: φ̇ = 2ψφ·push − 2ρφ,  ψ̇ = φ·push − ρψ,  γ̇ = ψφ·pull − ργ. Hence
    d/dt (ψ² − φ) = −2ρ(ψ² − φ): the parabola φ = ψ² is invariant and attracts.
    """

    variables: ClassVar[tuple[str, ...]] = ("phi", "psi", "gamma")

    def flow(self, state: Floats) -> Floats:
        phi, psi, gamma = state
        push, pull = phi * self.push(psi, gamma), psi * phi * self.pull(psi, gamma)
        return np.stack([2 * psi * push - 2 * self.rho * phi, push - self.rho * psi, pull - self.rho * gamma])

    def jacobian(self, state: Floats) -> Floats:
        phi, psi, gamma = state
        (push, push_psi, push_gamma), (pull, pull_psi, pull_gamma) = self.derivatives(psi, gamma)
        return _stack_rows(
            [2 * psi * push - 2 * self.rho, 2 * phi * (push + psi * push_psi), 2 * psi * phi * push_gamma],
            [push, phi * push_psi - self.rho, phi * push_gamma],
            [psi * pull, phi * (pull + psi * pull_psi), psi * phi * pull_gamma - self.rho],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class XPhiNet(_Versioned):
    """X-PhiNet: the target of Sim-2 is a slow encoder W_s that follows the fast one, Ẇ_s = κ(W_f − W_s).

    `phinets.dynamics.matrix` derives the rates of the singular values a of W_f and b of W_s. By its first law a² = ψ²
    is invariant and attracts. (a, b) → (−a, −b) is a symmetry, so a = ψ may be taken, and `slow` is b in that sign:
    slow/ψ = b/a is the progress of the slow encoder. On a = ψ:

    ψ̇ = {1 − s(1+γ²)ψ}ψ² + γψ·slow − ρψ,  γ̇ = {slow − sγψ²}ψ² − ργ,  d/dt slow = κ(ψ − slow).

    `published` repeats the paper's error: W_g is missing from the first term of ∇_g, so γ̇ = {slow − sψ²}ψ² − ργ.
    At slow = ψ, and so for κ → ∞, both are PhiNet's, and all equilibria are PhiNet's; their stability need not be.
    A slow encoder with momentum m and steps of size η has κ = (1 − m)/η.
    """

    variables: ClassVar[tuple[str, ...]] = ("psi", "gamma", "slow")
    kappa: float = 0.33
    """κ > 0: the rate at which the slow encoder follows; 0.33 is a momentum of 0.99 at a learning rate of 0.03."""

    def flow(self, state: Floats) -> Floats:
        psi, gamma, slow = state
        lag = slow - psi
        psi_rate, gamma_rate = self.plane_flow(psi, gamma)
        return np.stack([psi_rate + gamma * psi * lag, gamma_rate + lag * psi**2, -self.kappa * lag])

    def jacobian(self, state: Floats) -> Floats:
        psi, gamma, slow = state
        lag, square = slow - psi, psi**2
        (psi_psi, psi_gamma), (gamma_psi, gamma_gamma) = self.plane_jacobian(psi, gamma)
        zero = np.zeros_like(psi)
        return _stack_rows(
            [psi_psi + gamma * (lag - psi), psi_gamma + psi * lag, gamma * psi],
            [gamma_psi + 2 * psi * lag - square, gamma_gamma, square],
            [zero + self.kappa, zero, zero - self.kappa],
        )


SYSTEMS: Mapping[str, type[SimSiam] | type[PhiNet] | type[PhiNetPhi] | type[XPhiNet]] = {
    "simsiam": SimSiam, "phinet": PhiNet, "phinet-phi": PhiNetPhi, "x-phinet": XPhiNet,
}  # fmt: skip
"""The eigenvalue flows, by name; the matrix flows are in `phinets.dynamics.matrix`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveParabola(PhiNetPhi):
    """PhiNet with φ ≥ ψ² in the coordinates ψ, ω, γ with φ = ψ² + ω²: ψ̇ = φ·push − ρψ, ω̇ = −ρω, γ̇ = ψφ·pull − ργ.

    ψ² − φ decays as e^(−2ρt), which is slow: an integration error in it made early, while φ is large, remains when φ is
    small, and decides where the state ends. So ω = √|ψ² − φ| is a variable here and in `BelowParabola`, with ω̇ = −ρω.
    Both coordinate systems are exact, and neither subtracts nearly equal numbers. On the parabola ω = 0.
    """

    variables: ClassVar[tuple[str, ...]] = ("x", "omega", "gamma")

    def flow(self, state: Floats) -> Floats:
        psi, omega, gamma = state
        phi = psi**2 + omega**2
        push, pull = phi * self.push(psi, gamma), psi * phi * self.pull(psi, gamma)
        return np.stack([push - self.rho * psi, -self.rho * omega, pull - self.rho * gamma])

    def jacobian(self, state: Floats) -> Floats:
        psi, omega, gamma = state
        phi = psi**2 + omega**2
        (push, push_psi, push_gamma), (pull, pull_psi, pull_gamma) = self.derivatives(psi, gamma)
        zero = np.zeros_like(psi)
        by_psi = phi * (pull + psi * pull_psi) + 2 * psi**2 * pull
        return _stack_rows(
            [2 * psi * push + phi * push_psi - self.rho, 2 * omega * push, phi * push_gamma],
            [zero, zero - self.rho, zero],
            [by_psi, 2 * psi * omega * pull, psi * phi * pull_gamma - self.rho],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BelowParabola(PhiNetPhi):
    """PhiNet with φ < ψ² in the coordinates y, ω, γ: φ = e^(2y), ψ = ±√(φ + ω²), ẏ = ψ·push − ρ, ω̇ = −ρω.

    Below the parabola ψ keeps its sign, and φ may fall by thousands of powers of e within 1/ρ and rise again, which no
    absolute tolerance on φ or √φ resolves.
    """

    variables: ClassVar[tuple[str, ...]] = ("y", "omega", "gamma")
    side: int = 1
    """The sign of ψ, which it keeps."""

    def psi(self, state: Floats) -> Floats:
        """ψ of states (3, …)."""
        y, omega, _ = state
        psi: Floats = self.side * np.hypot(np.exp(y), omega)
        return psi

    def flow(self, state: Floats) -> Floats:
        y, omega, gamma = state
        psi = self.psi(state)
        push, pull = psi * self.push(psi, gamma), psi * np.exp(2 * y) * self.pull(psi, gamma)
        return np.stack([push - self.rho, -self.rho * omega, pull - self.rho * gamma])

    def jacobian(self, state: Floats) -> Floats:
        y, omega, gamma = state
        psi, phi = self.psi(state), np.exp(2 * y)
        over = np.where(psi == 0, 1.0, psi)
        psi_y, psi_omega = phi / over, omega / over
        (push, push_psi, push_gamma), (pull, pull_psi, pull_gamma) = self.derivatives(psi, gamma)
        slope = push + psi * push_psi  # of ψ·push, by ψ
        lift = phi * (pull + psi * pull_psi)  # of ψφ·pull, by ψ
        zero = np.zeros_like(y)
        return _stack_rows(
            [psi_y * slope, psi_omega * slope, psi * push_gamma],
            [zero, zero - self.rho, zero],
            [lift * psi_y + 2 * psi * phi * pull, lift * psi_omega, psi * phi * pull_gamma - self.rho],
        )

    def collapses(self, state: Floats) -> NDArray[np.bool_]:
        """Which of the states (3, …) are near enough to ψ = 0 to collapse for certain.

        Let p = |ψ| and g = max(|γ|, 1). Where p{(1+g) + s(1+g²)p} < ρ and p³(1 + sgp) ≤ ρg, no state leaves
        |ψ| ≤ p, |γ| ≤ g: there |γ|˙ ≤ p³(1 + sgp) − ρ|γ|, and ψψ̇ = φψ·push − ρψ² ≤ ψ²(|ψ·push| − ρ) since φ ≤ ψ². So
        |ψ| falls to 0, and γ with it.
        """
        p, g = np.abs(self.psi(state)), np.maximum(np.abs(state[2]), 1.0)
        falls = p * ((1 + g) + self.s * (1 + g**2) * p) < self.rho
        sure: NDArray[np.bool_] = falls & (p**2 * p * (1 + self.s * g * p) <= self.rho * g)
        return sure
