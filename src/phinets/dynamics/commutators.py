"""Time derivatives of C₁ = [Φ, G], C₂ = [Φ, H], C₃ = [G, H] at symmetric weights: as printed, and right.

G = W_g and H = W_h are symmetric, Φ = W_fW_fᵀ, s = 1 + σ². Put Φ̇, Ġ, Ḣ of the matrix flow into [Φ̇, G] + [Φ, Ġ] and so
on, and use [AB, C] = A[B, C] + [A, C]B: every term is a sum of products L·C·R, linear in one C. `RIGHT_EQUATIONS` are
the result. They hold at symmetric weights only, and the flow leaves those: Ẇ_h of symmetric weights is symmetric only
where they commute. So they hold at a symmetric start, not along the whole trajectory.

The paper's K stacks the columns, ξ = vec C₁, η = vec C₂, ζ = vec C₃: d/dt (ξ, η, ζ) = −(3ρI + K)(ξ, η, ζ), with nine
blocks K_ij of (m², m²). Alignment follows where the symmetric part of 3ρI + K stays positive definite along the flow
(Tian et al. 2021, Lemma 2).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phinets.dynamics.matrix import MatrixFlow, Weights
from phinets.dynamics.matrix_trajectories import commutator, symmetric_part
from phinets.dynamics.systems import Floats, Version

NAMES = ("C1", "C2", "C3")
TOKEN = re.compile(r"C[₁₂₃]|[23IsρΦGH()+−²]")
Equations = Mapping[str, tuple[str, ...]]
"""The terms of Ċ₁, Ċ₂, Ċ₃: each a formula that is linear in one commutator."""

PRINTED_EQUATIONS: Equations = {
    "C1": (
        "−3ρC₁", "s(C₃HΦ + ΦHC₃)", "s(HC₃Φ + ΦC₃H)", "s(C₃G²H + HG²C₃)Φ", "−s(HG²HC₁ + C₁HG²H)", "−s(H²C₁ + C₁H²)",
        "sΦ(C₃G²H + HG²C₃)", "HC₁ + C₁H", "−(C₃Φ + ΦC₃)", "−(C₃ΦG + GΦC₃)", "C₁HG + GHC₁", "−s(HΦC₂ + C₂ΦH)", "ΦC₂",
    ),
    "C2": (
        "−3ρC₂", "C₂H + HC₂", "−C₁Φ", "GC₂ + C₂G", "C₃Φ + ΦC₃", "−sC₂Φ", "−s(GC₁ + C₁G)", "sH(C₃G + GC₃)",
        "−s(H(I+G²)HC₂ + C₂H(I+G²)H)", "sΦH(C₃G + GC₃)H",
    ),
    "C3": ("−3ρC₃", "(I − sH)C₂H", "s(I+G²)HC₁", "−s(I+G²)C₃Φ", "(I+G)C₁"),
}  # fmt: skip
"""As the paper's appendix prints them."""
_RIGHT_C2 = (
    "−3ρC₂", "HC₂ + C₂H", "C₁Φ", "HGC₂ + C₂GH", "HC₃Φ + ΦC₃H", "−s(I+G²)C₂Φ", "−s(GC₁ + C₁G)HΦ", "−sH(C₃G + GC₃)HΦ",
    "−s(H(I+G²)HC₂ + C₂H(I+G²)H)", "−sΦH(C₃G + GC₃)H",
)  # fmt: skip
_RIGHT_C3 = ("s(I+G²)HC₁", "−s(I+G²)C₃Φ", "−(I+G)C₁")
RIGHT_EQUATIONS: Mapping[Version, Equations] = {
    "published": {"C1": PRINTED_EQUATIONS["C1"], "C2": _RIGHT_C2, "C3": ("−2ρC₃", "(I − sH)C₂H", *_RIGHT_C3)},
    "corrected": {
        "C1": (*(term for term in PRINTED_EQUATIONS["C1"] if term != "−s(HΦC₂ + C₂ΦH)"), "−sG(HΦC₂ + C₂ΦH)", "−sC₁HΦH"),
        "C2": _RIGHT_C2,
        "C3": ("−2ρC₃", "(I − sGH)C₂H", "−sC₃HΦH", *_RIGHT_C3),
    },
}
"""As they follow from each version of the flow, grouped as the paper groups its own terms."""


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

    def term(self, formula: str, C: Floats) -> Floats:
        """The value of a term for its commutator C, (…, m, m). A scalar in the formula is that multiple of I."""
        scalars = {"I": 1.0, "2": 2.0, "3": 3.0, "s": self.s, "ρ": self.rho}
        symbols = {name: scalar * self.unit for name, scalar in scalars.items()}
        symbols |= {"Φ": self.Phi, "G": self.G, "H": self.H, f"C{formula[formula.index('C') + 1]}": C}
        return _evaluate(TOKEN.findall(formula)[::-1], symbols)

    def operator(self, formula: str) -> Floats:
        """The matrix (m², m²) that a term applies to the stacked columns of its commutator."""
        size = len(self.Phi) ** 2
        units = np.eye(size).reshape(size, *self.Phi.shape)  # each is the transpose of a unit matrix, row by row
        columns: Floats = self.term(formula, units.swapaxes(1, 2)).swapaxes(1, 2).reshape(size, size).T
        return columns


def _evaluate(tokens: list[str], symbols: Mapping[str, Floats]) -> Floats:
    """The value of a sum of products up to its closing parenthesis; `tokens` is a stack, first token last."""

    def factor() -> Floats:
        token = tokens.pop()
        value = _evaluate(tokens, symbols) if token == "(" else symbols[token]
        if tokens and tokens[-1] == "²":
            tokens.pop()
            return value @ value
        return value

    total = np.zeros_like(symbols["I"])
    while tokens and tokens[-1] != ")":
        sign = tokens.pop() if tokens[-1] in "+−" else "+"
        product = symbols["I"] * (-1 if sign == "−" else 1)
        while tokens and tokens[-1] not in "+−)":
            product = product @ factor()
        total = total + product
    if tokens:
        tokens.pop()
    return total


def _commutator_of(formula: str) -> str:
    """Which commutator a term holds: C1, C2 or C3."""
    return NAMES["₁₂₃".index(formula[formula.index("C") + 1])]


def symmetric_weights(system: MatrixFlow, weights: Weights) -> SymmetricWeights:
    """The symmetric parts of some weights."""
    f, g, h = weights["W_f"], weights["W_g"], weights["W_h"]
    G, H = symmetric_part(g), symmetric_part(h)
    return SymmetricWeights(Phi=f @ f.T, G=G, H=H, sigma2=system.sigma2, rho=system.rho)


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


def sum_terms(formulas: Sequence[str], at: SymmetricWeights) -> Floats:
    """The sum of some terms, (m, m)."""
    C = at.commutators
    total: Floats = np.sum([at.term(formula, C[_commutator_of(formula)]) for formula in formulas], axis=0)
    return total


def classify_terms(printed: Sequence[str], right: Sequence[str], at: SymmetricWeights) -> dict[str, str]:
    """What each printed term is: `right` (it is in the right equation), `sign` (its negative does), or `wrong`."""
    operators = [(_commutator_of(formula), at.operator(formula)) for formula in right]

    def classify(formula: str) -> str:
        of, own = _commutator_of(formula), at.operator(formula)
        for word, sign in (("right", 1), ("sign", -1)):
            if any(of == name and np.allclose(own, sign * other, rtol=1e-9, atol=1e-12) for name, other in operators):
                return word
        return "wrong"

    return {formula: classify(formula) for formula in printed}


def absent_terms(printed: Sequence[str], right: Sequence[str], at: SymmetricWeights) -> list[str]:
    """The terms of the right equation that the printed one does not have."""
    return [formula for formula, word in classify_terms(right, printed, at).items() if word != "right"]


def right_blocks(version: Version, at: SymmetricWeights) -> dict[str, Floats]:
    """K₁₁ … K₃₃ that follow from the right equations; 3ρ is taken off the diagonal, so K₃₃ holds a −ρ."""
    size = len(at.Phi) ** 2
    blocks = {}
    for i, terms in enumerate(RIGHT_EQUATIONS[version].values(), 1):
        for j, name in enumerate(NAMES, 1):
            operators = (at.operator(term) for term in terms if _commutator_of(term) == name)
            whole = sum(operators, np.zeros((size, size)))
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
        difference, size = (np.linalg.norm(each @ columns[int(name[2]) - 1]) for each in (printed[name] - block, block))
        errors[name] = float(difference) / max(float(size), 1e-300)
    return errors


def smallest_eigenvalue(version: Version, at: SymmetricWeights) -> float:
    """λ_min of the symmetric part of the right 3ρI + K; where it is above 0, the commutators shrink at this rate."""
    blocks = right_blocks(version, at)
    whole = np.block([[blocks[f"K{i}{j}"] for j in (1, 2, 3)] for i in (1, 2, 3)])
    return float(np.linalg.eigvalsh((whole + whole.T) / 2)[0]) + 3 * at.rho
