"""PhiNet with φ in coordinates that keep its distance from the parabola, and φ itself, to the last digit.

ψ² − φ decays as e^(−2ρt), which is slow: what an integrator of (φ, ψ, γ) gets wrong in it early, while φ is large, is
still there when φ is small, and decides where the state ends. So ω = √|ψ² − φ| becomes a variable, with ω̇ = −ρω, beside
x = ψ where φ ≥ ψ² (`Above`) and y = ½ ln φ where φ < ψ² (`Below`; ψ keeps its sign there). Both are exact, and neither
takes the difference of two numbers. Below the parabola φ may fall by thousands of powers of e while γ and ω take their
time, 1/ρ, and rise again from there: no absolute tolerance on φ or √φ would do. Above it φ ≥ ω² can't. On the parabola
ω = 0, x = ψ, and x and γ move as PhiNet's ψ and γ.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from phinets.dynamics.systems import Floats, PhiNetPhi


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(PhiNetPhi):
    """φ = ψ² + ω²: ψ̇ = φ·push − ρψ, ω̇ = −ρω, γ̇ = ψφ·pull − ργ."""

    variables: ClassVar[tuple[str, ...]] = ("x", "omega", "gamma")

    def flow(self, state: Floats) -> Floats:
        psi, omega, gamma = state
        phi = psi**2 + omega**2
        push = (1 + gamma) - self.s * (1 + gamma**2) * psi
        rates = [phi * push - self.rho * psi, -self.rho * omega, psi * phi * self.pull(psi, gamma) - self.rho * gamma]
        return np.stack(rates)

    def jacobian(self, state: Floats) -> Floats:
        psi, omega, gamma = state
        phi = psi**2 + omega**2
        push = (1 + gamma) - self.s * (1 + gamma**2) * psi
        push_psi, push_gamma = -self.s * (1 + gamma**2), 1 - 2 * self.s * gamma * psi
        pull, (pull_psi, pull_gamma) = self.pull(psi, gamma), self.pull_slopes(psi, gamma)
        zero = np.zeros_like(psi)
        rows: list[list[Any]] = [
            [2 * psi * push + phi * push_psi - self.rho, 2 * omega * push, phi * push_gamma],
            [zero, zero - self.rho, zero],
            [
                phi * (pull + psi * pull_psi) + 2 * psi**2 * pull,
                2 * psi * omega * pull,
                psi * phi * pull_gamma - self.rho,
            ],
        ]
        return np.stack([np.stack(row) for row in rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Below(PhiNetPhi):
    """φ = e^(2y), ψ = ±√(φ + ω²): ẏ = ψ·push − ρ, ω̇ = −ρω, γ̇ = ψφ·pull − ργ."""

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
        push = (1 + gamma) - self.s * (1 + gamma**2) * psi
        rates = [
            psi * push - self.rho,
            -self.rho * omega,
            psi * np.exp(2 * y) * self.pull(psi, gamma) - self.rho * gamma,
        ]
        return np.stack(rates)

    def jacobian(self, state: Floats) -> Floats:
        y, omega, gamma = state
        psi, phi = self.psi(state), np.exp(2 * y)
        over = np.where(psi == 0, 1.0, psi)
        psi_y, psi_omega = phi / over, omega / over
        push = (1 + gamma) - self.s * (1 + gamma**2) * psi
        slope = push - psi * self.s * (1 + gamma**2)  # of ψ·push, by ψ
        pull, (pull_psi, pull_gamma) = self.pull(psi, gamma), self.pull_slopes(psi, gamma)
        lift = phi * (pull + psi * pull_psi)  # the slope of ψφ·pull, by ψ
        zero = np.zeros_like(y)
        rows: list[list[Any]] = [
            [psi_y * slope, psi_omega * slope, psi * (1 - 2 * self.s * gamma * psi)],
            [zero, zero - self.rho, zero],
            [lift * psi_y + 2 * psi * phi * pull, lift * psi_omega, psi * phi * pull_gamma - self.rho],
        ]
        return np.stack([np.stack(row) for row in rows])

    def collapses(self, state: Floats) -> NDArray[np.bool_]:
        """Which of the states (3, …) are so near to ψ = 0 that they surely collapse.

        Let p = |ψ| and g = max(|γ|, 1). Where p{(1+g) + s(1+g²)p} < ρ and p³(1 + sgp) ≤ ρg, no state leaves
        |ψ| ≤ p, |γ| ≤ g: there |γ|˙ ≤ p³(1 + sgp) − ρ|γ|, and ψψ̇ = φψ·push − ρψ² ≤ ψ²(|ψ·push| − ρ) since φ ≤ ψ². So
        |ψ| falls for ever, and γ with it.
        """
        p, g = np.abs(self.psi(state)), np.maximum(np.abs(state[2]), 1.0)
        falls = p * ((1 + g) + self.s * (1 + g**2) * p) < self.rho
        sure: NDArray[np.bool_] = falls & (p**2 * p * (1 + self.s * g * p) <= self.rho * g)
        return sure
