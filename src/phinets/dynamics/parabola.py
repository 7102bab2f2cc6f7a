"""PhiNet with φ in coordinates that keep its distance from the parabola to the last digit.

ψ² − φ decays as e^(−2ρt), which is slow: what an integrator of (φ, ψ, γ) gets wrong in it early, while φ is large, is
still there when φ is small, and decides where the state ends. So ω = √|ψ² − φ| becomes a variable, with ω̇ = −ρω, beside
x = ψ where φ ≥ ψ² (`Above`) and x = ±√φ where φ < ψ² (`Below`; ψ keeps its sign there). Both are exact, and neither
takes the difference of two numbers. On the parabola ω = 0, x = ψ, and x and γ move as PhiNet's ψ and γ.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

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
    """φ = x², ψ = ±√(x² + ω²): ẋ = xψ·push − ρx, ω̇ = −ρω, γ̇ = ψφ·pull − ργ."""

    variables: ClassVar[tuple[str, ...]] = ("x", "omega", "gamma")
    side: int = 1
    """The sign of ψ, which x takes too."""

    def flow(self, state: Floats) -> Floats:
        x, omega, gamma = state
        psi = self.side * np.hypot(x, omega)
        push = (1 + gamma) - self.s * (1 + gamma**2) * psi
        rates = [
            x * psi * push - self.rho * x,
            -self.rho * omega,
            psi * x**2 * self.pull(psi, gamma) - self.rho * gamma,
        ]
        return np.stack(rates)

    def jacobian(self, state: Floats) -> Floats:
        x, omega, gamma = state
        psi = self.side * np.hypot(x, omega)
        over = np.where(psi == 0, 1.0, psi)
        psi_x, psi_omega = x / over, omega / over
        push = (1 + gamma) - self.s * (1 + gamma**2) * psi
        slope = push - psi * self.s * (1 + gamma**2)  # of ψ·push, by ψ
        pull, (pull_psi, pull_gamma) = self.pull(psi, gamma), self.pull_slopes(psi, gamma)
        lift = x**2 * (pull + psi * pull_psi)  # the slope of ψφ·pull, by ψ
        zero = np.zeros_like(x)
        rows: list[list[Any]] = [
            [
                psi * push - self.rho + x * psi_x * slope,
                x * psi_omega * slope,
                x * psi * (1 - 2 * self.s * gamma * psi),
            ],
            [zero, zero - self.rho, zero],
            [lift * psi_x + 2 * x * psi * pull, lift * psi_omega, psi * x**2 * pull_gamma - self.rho],
        ]
        return np.stack([np.stack(row) for row in rows])
