"""Time derivatives of C₁ = [Φ, G], C₂ = [Φ, H], C₃ = [G, H] at symmetric weights: as printed, and right.

G = W_g and H = W_h are symmetric, Φ = W_fW_fᵀ, s = 1 + σ², K = H(I + G²)H. Put Φ̇, Ġ, Ḣ of the matrix flow into
[Φ̇, G] + [Φ, Ġ] and so on, and use [AB, C] = A[B, C] + [A, C]B: every term is a sum of products L·C·R, linear in one C.

    Ċ₁ = −3ρC₁ − s(KC₁ + C₁K) + s{(C₃(I+G²)H + H(I+G²)C₃)Φ + Φ(C₃(I+G²)H + H(I+G²)C₃)} + (HC₁ + C₁H) − (C₃Φ + ΦC₃)
         + (C₁HG + GHC₁) − (C₃ΦG + GΦC₃) + ΦC₂ + { −s(HΦC₂ + C₂ΦH) published, −sG(HΦC₂ + C₂ΦH) − sC₁HΦH corrected }
    Ċ₂ = −3ρC₂ − s(KC₂ + C₂K) − s{H(GC₃ + C₃G)HΦ + ΦH(GC₃ + C₃G)H} − s(GC₁ + C₁G)HΦ − s(I+G²)C₂Φ
         + (HC₂ + C₂H) + (HGC₂ + C₂GH) + (HC₃Φ + ΦC₃H) + C₁Φ
    Ċ₃ = −2ρC₃ + s(I+G²)(HC₁ − C₃Φ) − (I+G)C₁ + C₂H + { −sHC₂H published, −s(GHC₂H + C₃HΦH) corrected }

They hold at symmetric weights only, and the flow leaves those: Ẇ_h of symmetric weights is symmetric only where they
commute. So these equations hold at a symmetric start, not along the whole trajectory.

The paper's K stacks the columns, ξ = vec C₁, η = vec C₂, ζ = vec C₃: d/dt (ξ, η, ζ) = −(3ρI + K)(ξ, η, ζ), with nine
blocks K_ij of (m², m²). Alignment follows where the symmetric part of 3ρI + K stays positive definite along the flow
(Tian et al. 2021, Lemma 2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phinets.dynamics.matrix import MatrixFlow, Weights
from phinets.dynamics.matrix_trajectories import commutator
from phinets.dynamics.systems import Floats, Version

NAMES = ("C1", "C2", "C3")


@dataclass(frozen=True, slots=True)
class Term:
    """A sum of products L·C·R in one commutator."""

    name: str
    """As a formula."""
    of: str
    """Which commutator: C1, C2 or C3."""
    pieces: tuple[tuple[Floats, Floats], ...]
    """The pairs L, R."""

    def value(self, commutators: Mapping[str, Floats]) -> Floats:
        """Σ L·C·R, (m, m)."""
        return total([left @ commutators[self.of] @ right for left, right in self.pieces])

    def operator(self) -> Floats:
        """Σ Rᵀ⊗L, (m², m²): what acts on the columns of C, stacked."""
        return total([np.kron(right.T, left).astype(np.float64) for left, right in self.pieces])


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricWeights:
    """Symmetric weights with σ² and ρ."""

    Phi: Floats
    G: Floats
    H: Floats
    sigma2: float
    rho: float

    @property
    def s(self) -> float:
        """1 + σ²."""
        return 1 + self.sigma2

    @property
    def unit(self) -> Floats:
        """I."""
        return np.eye(len(self.Phi))

    @property
    def commutators(self) -> dict[str, Floats]:
        """C₁, C₂, C₃ here."""
        pairs = ((self.Phi, self.G), (self.Phi, self.H), (self.G, self.H))
        return {name: commutator(a, b) for name, (a, b) in zip(NAMES, pairs, strict=True)}


def symmetric_weights(system: MatrixFlow, weights: Weights) -> SymmetricWeights:
    """The symmetric parts of some weights."""
    f, g, h = weights["W_f"], weights["W_g"], weights["W_h"]
    return SymmetricWeights(Phi=f @ f.T, G=(g + g.T) / 2, H=(h + h.T) / 2, sigma2=system.sigma2, rho=system.rho)


def commutator_rates(version: Version, at: SymmetricWeights) -> dict[str, Floats]:
    """Ċ₁, Ċ₂, Ċ₃ by the right equations above."""
    C = at.commutators
    return {name: sum_of(terms, C) for name, terms in right_terms(version, at).items()}


def exact_rates(system: MatrixFlow, weights: Weights) -> dict[str, Floats]:
    """Ċ₁, Ċ₂, Ċ₃ straight from the matrix flow, [Φ̇, W_g] + [Φ, Ẇ_g] and so on; any weights."""
    f, g, h = weights["W_f"], weights["W_g"], weights["W_h"]
    rates = system.flow(weights)
    gram, moved = f @ f.T, rates["W_f"] @ f.T + f @ rates["W_f"].T
    return {
        "C1": commutator(moved, g) + commutator(gram, rates["W_g"]),
        "C2": commutator(moved, h) + commutator(gram, rates["W_h"]),
        "C3": commutator(rates["W_g"], h) + commutator(g, rates["W_h"]),
    }


def sum_of(terms: Sequence[Term], commutators: Mapping[str, Floats]) -> Floats:
    """The sum of some terms, (m, m)."""
    return total([term.value(commutators) for term in terms])


def total(matrices: Sequence[Floats]) -> Floats:
    """The sum of some matrices."""
    summed: Floats = np.stack(matrices).sum(axis=0)
    return summed


def right_terms(version: Version, at: SymmetricWeights) -> dict[str, tuple[Term, ...]]:
    """The terms of the right equations, grouped as the paper groups its own."""
    return {"C1": _right_c1(version, at), "C2": _right_c2(at), "C3": _right_c3(version, at)}


def printed_terms(at: SymmetricWeights) -> dict[str, tuple[Term, ...]]:
    """The terms of Ċ₁, Ċ₂, Ċ₃ as the paper's appendix prints them."""
    return {"C1": _printed_c1(at), "C2": _printed_c2(at), "C3": _printed_c3(at)}


def _printed_c1(at: SymmetricWeights) -> tuple[Term, ...]:
    Phi, G, H, s, one = at.Phi, at.G, at.H, at.s, at.unit
    inner = G @ G @ H
    return (
        Term("−3ρC₁", "C1", ((-3 * at.rho * one, one),)),
        Term("s(C₃HΦ + ΦHC₃)", "C3", ((s * one, H @ Phi), (s * Phi @ H, one))),
        Term("s(HC₃Φ + ΦC₃H)", "C3", ((s * H, Phi), (s * Phi, H))),
        Term("s(C₃G²H + HG²C₃)Φ", "C3", ((s * one, inner @ Phi), (s * inner.T, Phi))),
        Term("−s(HG²HC₁ + C₁HG²H)", "C1", ((-s * H @ inner, one), (one, -s * H @ inner))),
        Term("−s(H²C₁ + C₁H²)", "C1", ((-s * H @ H, one), (one, -s * H @ H))),
        Term("sΦ(C₃G²H + HG²C₃)", "C3", ((s * Phi, inner), (s * Phi @ inner.T, one))),
        Term("HC₁ + C₁H", "C1", ((H, one), (one, H))),
        Term("−(C₃Φ + ΦC₃)", "C3", ((-one, Phi), (-Phi, one))),
        Term("−(C₃ΦG + GΦC₃)", "C3", ((-one, Phi @ G), (-G @ Phi, one))),
        Term("C₁HG + GHC₁", "C1", ((one, H @ G), (G @ H, one))),
        Term("−s(HΦC₂ + C₂ΦH)", "C2", ((-s * H @ Phi, one), (-s * one, Phi @ H))),
        Term("ΦC₂", "C2", ((Phi, one),)),
    )


def _right_c1(version: Version, at: SymmetricWeights) -> tuple[Term, ...]:
    """The printed Ċ₁ is right for the printed flow; the corrected one has another Ẇ_g, and so other terms."""
    if version == "published":
        return _printed_c1(at)
    Phi, G, H, s, one = at.Phi, at.G, at.H, at.s, at.unit
    shared = tuple(term for term in _printed_c1(at) if term.name != "−s(HΦC₂ + C₂ΦH)")
    return (
        *shared,
        Term("−sG(HΦC₂ + C₂ΦH)", "C2", ((-s * G @ H @ Phi, one), (-s * G, Phi @ H))),
        Term("−sC₁HΦH", "C1", ((-s * one, H @ Phi @ H),)),
    )


def _printed_c2(at: SymmetricWeights) -> tuple[Term, ...]:
    Phi, G, H, s, one = at.Phi, at.G, at.H, at.s, at.unit
    K = H @ (one + G @ G) @ H
    return (
        Term("−3ρC₂", "C2", ((-3 * at.rho * one, one),)),
        Term("C₂H + HC₂", "C2", ((H, one), (one, H))),
        Term("−C₁Φ", "C1", ((-one, Phi),)),
        Term("GC₂ + C₂G", "C2", ((G, one), (one, G))),
        Term("C₃Φ + ΦC₃", "C3", ((one, Phi), (Phi, one))),
        Term("−sC₂Φ", "C2", ((-s * one, Phi),)),
        Term("−s(GC₁ + C₁G)", "C1", ((-s * G, one), (-s * one, G))),
        Term("sH(C₃G + GC₃)", "C3", ((s * H, G), (s * H @ G, one))),
        Term("−s(H(I+G²)HC₂ + C₂H(I+G²)H)", "C2", ((-s * K, one), (one, -s * K))),
        Term("sΦH(C₃G + GC₃)H", "C3", ((s * Phi @ H, G @ H), (s * Phi @ H @ G, H))),
    )


def _right_c2(at: SymmetricWeights) -> tuple[Term, ...]:
    Phi, G, H, s, one = at.Phi, at.G, at.H, at.s, at.unit
    Q = one + G @ G
    K = H @ Q @ H
    return (
        Term("−3ρC₂", "C2", ((-3 * at.rho * one, one),)),
        Term("HC₂ + C₂H", "C2", ((H, one), (one, H))),
        Term("C₁Φ", "C1", ((one, Phi),)),
        Term("HGC₂ + C₂GH", "C2", ((H @ G, one), (one, G @ H))),
        Term("HC₃Φ + ΦC₃H", "C3", ((H, Phi), (Phi, H))),
        Term("−s(I+G²)C₂Φ", "C2", ((-s * Q, Phi),)),
        Term("−s(GC₁ + C₁G)HΦ", "C1", ((-s * G, H @ Phi), (-s * one, G @ H @ Phi))),
        Term("−sH(C₃G + GC₃)HΦ", "C3", ((-s * H, G @ H @ Phi), (-s * H @ G, H @ Phi))),
        Term("−s(H(I+G²)HC₂ + C₂H(I+G²)H)", "C2", ((-s * K, one), (one, -s * K))),
        Term("−sΦH(C₃G + GC₃)H", "C3", ((-s * Phi @ H, G @ H), (-s * Phi @ H @ G, H))),
    )


def _printed_c3(at: SymmetricWeights) -> tuple[Term, ...]:
    Phi, G, H, s, one = at.Phi, at.G, at.H, at.s, at.unit
    Q = one + G @ G
    return (
        Term("−3ρC₃", "C3", ((-3 * at.rho * one, one),)),
        Term("(I − sH)C₂H", "C2", ((one - s * H, H),)),
        Term("s(I+G²)HC₁", "C1", ((s * Q @ H, one),)),
        Term("−s(I+G²)C₃Φ", "C3", ((-s * Q, Phi),)),
        Term("(I+G)C₁", "C1", ((one + G, one),)),
    )


def _right_c3(version: Version, at: SymmetricWeights) -> tuple[Term, ...]:
    Phi, G, H, s, one = at.Phi, at.G, at.H, at.s, at.unit
    Q = one + G @ G
    own = (
        (Term("(I − sH)C₂H", "C2", ((one - s * H, H),)),)
        if version == "published"
        else (
            Term("(I − sGH)C₂H", "C2", ((one - s * G @ H, H),)),
            Term("−sC₃HΦH", "C3", ((-s * one, H @ Phi @ H),)),
        )
    )
    return (
        Term("−2ρC₃", "C3", ((-2 * at.rho * one, one),)),
        *own,
        Term("s(I+G²)HC₁", "C1", ((s * Q @ H, one),)),
        Term("−s(I+G²)C₃Φ", "C3", ((-s * Q, Phi),)),
        Term("−(I+G)C₁", "C1", ((-one - G, one),)),
    )


def verdicts(printed: Sequence[Term], right: Sequence[Term]) -> dict[str, str]:
    """What each printed term is: `right` (it stands in the right equation), `sign` (its negative does), or `wrong`."""
    operators = [(term.of, term.operator()) for term in right]

    def verdict(term: Term) -> str:
        own = term.operator()
        for word, sign in (("right", 1), ("sign", -1)):
            if any(of == term.of and np.allclose(own, sign * other, rtol=1e-9, atol=1e-12) for of, other in operators):
                return word
        return "wrong"

    return {term.name: verdict(term) for term in printed}


def missing(printed: Sequence[Term], right: Sequence[Term]) -> list[str]:
    """The terms of the right equation that the printed one does not have."""
    return [name for name, word in verdicts(right, printed).items() if word != "right"]


def right_blocks(version: Version, at: SymmetricWeights) -> dict[str, Floats]:
    """K₁₁ … K₃₃ that follow from the right equations; 3ρ is taken off the diagonal, so K₃₃ holds a −ρ."""
    size = len(at.Phi) ** 2
    blocks = {}
    for i, terms in enumerate(right_terms(version, at).values(), 1):
        for j, name in enumerate(NAMES, 1):
            whole = sum((term.operator() for term in terms if term.of == name), np.zeros((size, size)))
            blocks[f"K{i}{j}"] = -whole - (3 * at.rho * np.eye(size) if i == j else 0)
    return blocks


def printed_blocks(at: SymmetricWeights) -> dict[str, Floats]:
    """K₁₁ … K₃₃ as the appendix prints them.

    K₁₁ adds the (m, m) matrix W_h(I + W_g) to an (m², m²) one; it is read as I ⊕ W_h(I + W_g).
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


def stack_columns(at: SymmetricWeights) -> Floats:
    """ξ, η, ζ one below the other, columns stacked: (3, m²)."""
    return np.stack([at.commutators[name].ravel(order="F") for name in NAMES])


def block_errors(version: Version, at: SymmetricWeights) -> dict[str, float]:
    """Relative error of each printed K_ij: ‖(K − K′)C_j‖ / ‖K′C_j‖ with the right K′."""
    right, printed, columns = right_blocks(version, at), printed_blocks(at), stack_columns(at)
    errors = {}
    for name, block in right.items():
        column = columns[int(name[2]) - 1]
        size = float(np.linalg.norm(block @ column))
        errors[name] = float(np.linalg.norm((printed[name] - block) @ column)) / max(size, 1e-300)
    return errors


def smallest_eigenvalue(version: Version, at: SymmetricWeights) -> float:
    """λ_min of the symmetric part of the right 3ρI + K; where it is above 0, the commutators shrink at this rate."""
    blocks = right_blocks(version, at)
    whole = np.block([[blocks[f"K{i}{j}"] for j in (1, 2, 3)] for i in (1, 2, 3)])
    return float(np.linalg.eigvalsh((whole + whole.T) / 2)[0]) + 3 * at.rho
