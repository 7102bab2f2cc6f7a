"""The collapse meter: three numbers that tell whether codes still say anything, and the verdict they give."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from phinets.config.record import Verdict


def spread(z: Tensor) -> float:
    """Standard deviation of l2-normalised codes times √d, mean over the d dimensions (Chen & He 2021, §4.1).

    z: (n, d). About 1 for codes that point everywhere, 0 where all point the same way.
    """
    return float(_deviations(z).mean())


def dead_share(z: Tensor) -> float:
    """Share of the dimensions that hardly vary: std·√d of the l2-normalised codes below 0.01.

    z: (n, d). 0 where every dimension speaks, 1 for constant codes.
    """
    return float((_deviations(z) < 0.01).double().mean())


def _deviations(z: Tensor) -> Tensor:
    return F.normalize(z, dim=1).std(0, unbiased=False) * math.sqrt(z.shape[1])


def effective_rank(z: Tensor) -> float:
    """RankMe: exp of the entropy of the normalised singular values (Garrido et al. 2023, eq. 1).

    z: (n, d). From 1 (all codes on one line, constant codes among them) to min(n, d) (orthogonal with equal lengths).
    """
    values = torch.linalg.svdvals(z.float())
    shares = values / values.sum().clamp_min(1e-12)
    return float(torch.exp(-torch.xlogy(shares, shares).sum()))


@dataclass(frozen=True, slots=True)
class Health:
    """What the meter read."""

    spread: float
    effective_rank: float
    dead_share: float

    @property
    def verdict(self) -> Verdict:
        """Collapsed: one direction is left, or none. Collapsing: fewer than three are, or little spread is left."""
        if self.spread < 0.1 or self.effective_rank < 1.5 or self.dead_share > 0.95:
            return "collapsed"
        if self.spread < 0.4 or self.effective_rank < 3.0 or self.dead_share > 0.5:
            return "collapsing"
        return "healthy"


@torch.no_grad()
def health(z: Tensor) -> Health:
    """The meter's three readings of a batch of codes (n, d)."""
    z = z.float().cpu()
    return Health(spread(z), effective_rank(z), dead_share(z))
