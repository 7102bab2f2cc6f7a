"""The paper's K: the commutator equations with their columns stacked, ξ = vec C₁, η = vec C₂, ζ = vec C₃.

d/dt (ξ, η, ζ) = −(3ρI + K)(ξ, η, ζ), with nine blocks K_ij of (m², m²). Alignment follows where the symmetric part of
3ρI + K stays positive definite along the flow (Tian et al. 2021, Lemma 2).
"""

import numpy as np

from phinets.dynamics.commutators import NAMES, Place, right_terms
from phinets.dynamics.systems import Floats, Version


def right_blocks(version: Version, at: Place) -> dict[str, Floats]:
    """K₁₁ … K₃₃ that follow from the right equations; 3ρ is taken off the diagonal, so K₃₃ holds a −ρ."""
    size = len(at.Phi) ** 2
    found = {}
    for i, terms in enumerate(right_terms(version, at).values(), 1):
        for j, name in enumerate(NAMES, 1):
            whole = sum((term.operator() for term in terms if term.of == name), np.zeros((size, size)))
            found[f"K{i}{j}"] = -whole - (3 * at.rho * np.eye(size) if i == j else 0)
    return found


def printed_blocks(at: Place) -> dict[str, Floats]:
    """K₁₁ … K₃₃ as the appendix prints them.

    K₁₁ adds the (m, m) matrix W_h(I + W_g) to an (m², m²) one; it is read as I ⊕ W_h(I + W_g), the only sense it has.
    """
    Phi, G, H, s, one = at.Phi, at.G, at.H, at.s, at.unit
    Q = one + G @ G
    K = H @ Q @ H
    kron = np.kron
    return {
        "K11": plus(one, s * K) + plus(one, H @ (one + G)),
        "K12": s * kron(one, H @ Phi) - kron(one, Phi),
        "K13": plus((one + G) @ Phi, one) - s * (plus(Phi @ H, one) + plus(one, Phi) @ plus(H @ G @ G, one)),
        "K21": kron(Phi, one) + s * plus(G, one),
        "K22": s * kron(Phi, one) + plus(one, s * (K - (G + H))),
        "K23": -plus(one, Phi) - s * (kron(one, H) + kron(H, Phi @ H)) @ plus(one, G),
        "K31": -s * kron(one, Q @ H) - kron(one, one + G),
        "K32": -kron(H, one - s * H),
        "K33": s * kron(Phi, Q),
    }


def plus(a: Floats, b: Floats) -> Floats:
    """The paper's A ⊕ B = A⊗B + B⊗A."""
    return np.kron(a, b) + np.kron(b, a)


def stacked(at: Place) -> Floats:
    """ξ, η, ζ one below the other, columns stacked: (3, m²)."""
    return np.stack([at.commutators[name].ravel(order="F") for name in NAMES])


def block_errors(version: Version, at: Place) -> dict[str, float]:
    """How far each printed K_ij moves the rate from where the right one does: ‖(K − K′)C_j‖ / ‖K′C_j‖."""
    right, printed, columns = right_blocks(version, at), printed_blocks(at), stacked(at)
    found = {}
    for name, block in right.items():
        column = columns[int(name[2]) - 1]
        size = float(np.linalg.norm(block @ column))
        found[name] = float(np.linalg.norm((printed[name] - block) @ column)) / max(size, 1e-300)
    return found


def smallest_eigenvalue(version: Version, at: Place) -> float:
    """λ_min of the symmetric part of the right 3ρI + K; where it is above 0, the commutators shrink at this rate."""
    blocks = right_blocks(version, at)
    whole = np.block([[blocks[f"K{i}{j}"] for j in (1, 2, 3)] for i in (1, 2, 3)])
    return float(np.linalg.eigvalsh((whole + whole.T) / 2)[0]) + 3 * at.rho
