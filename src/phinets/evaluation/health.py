"""Health of a learner: collapse, alignment, spectra, ranks, and the distance of fast and slow weights."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets.backbones import eval_mode
from phinets.config.evaluation import HealthOptions
from phinets.config.methods import EncoderName
from phinets.config.record import Verdict
from phinets.config.run import HealthMetric
from phinets.data import load
from phinets.data.locations import resolve_data_name
from phinets.evaluation.encoders import load_learner
from phinets.evaluation.features import BATCH_SIZE
from phinets.methods import Learner
from phinets.training.loader import MicroBatch, ViewLoader
from phinets.views import Views


def spread(z: Tensor) -> float:
    """Standard deviation of l2-normalized codes times √d, mean over the d dimensions (Chen & He 2021, §4.1).

    z: (n, d). About 1 for codes that point everywhere, 0 where all point the same way.
    """
    return float(_deviations(z).mean())


def _deviations(z: Tensor) -> Tensor:
    return F.normalize(z, dim=1).std(0, unbiased=False) * math.sqrt(z.shape[1])


def dead_share(z: Tensor) -> float:
    """Share of the dimensions that hardly vary: std·√d of the l2-normalized codes below 0.01.

    z: (n, d). 0 where every dimension varies, 1 for constant codes.
    """
    return float((_deviations(z) < 0.01).double().mean())


def effective_rank(z: Tensor) -> float:
    """RankMe: exp of the entropy of the normalized singular values (Garrido et al. 2023, eq. 1).

    z: (n, d). From 1 (all codes on one line, constant codes among them) to min(n, d) (orthogonal with equal lengths).
    """
    values = torch.linalg.svdvals(z.float())
    shares = values / values.sum().clamp_min(1e-12)
    return float(torch.exp(-torch.xlogy(shares, shares).sum()))


@dataclass(frozen=True, slots=True)
class Health:
    """Three measures of collapse."""

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
    """The three measures of a batch of codes (n, d)."""
    z = z.float().cpu()
    return Health(spread(z), effective_rank(z), dead_share(z))


def alignment(z1: Tensor, z2: Tensor) -> float:
    """Mean squared distance of l2-normalized codes of two views of one image (Wang & Isola 2020, α = 2).

    z1, z2: (n, d). 0 where both views get the same direction, 2 where they are orthogonal, 4 where opposite.
    """
    return float((F.normalize(z1, dim=1) - F.normalize(z2, dim=1)).square().sum(1).mean())


def uniformity(z: Tensor) -> float:
    """log of the mean over all pairs of exp(−2‖ẑᵢ − ẑⱼ‖²) of l2-normalized codes (Wang & Isola 2020, t = 2).

    z: (n, d), n ≥ 2. 0 for constant codes, −4 for orthogonal ones; the lower, the more evenly the sphere is used.
    """
    return float(torch.pdist(F.normalize(z, dim=1)).square().mul(-2).exp().mean().log())


def spectrum(z: Tensor) -> Tensor:
    """Singular values of codes or features, falling, divided by the first.

    z: (n, d) → (min(n, d),). All 1 for orthogonal codes of one length; 1, 0, 0, … for codes on one line, constant ones
    among them; all 0 where every code is 0.
    """
    values: Tensor = torch.linalg.svdvals(z)
    return values / values[0].clamp_min(torch.finfo(values.dtype).tiny)


def stable_rank(matrix: Tensor) -> float:
    """‖M‖_F² / ‖M‖₂², the paper's rank of a layer; at most the rank, and hardly moved by small singular values.

    matrix: (m, n). 1 for rank one (a constant matrix among them), min(m, n) where the rows or columns are orthogonal
    with equal lengths, 0 for the zero matrix.
    """
    squares = torch.linalg.svdvals(matrix.detach()).square()
    return float(squares.sum() / squares[0].clamp_min(torch.finfo(squares.dtype).tiny))


def weight_cosine(first: Iterable[Tensor], second: Iterable[Tensor]) -> float:
    """Cosine between two sets of weights, each taken as one long vector: 1 where one is a multiple of the other."""
    a, b = _concatenate(first), _concatenate(second)
    return float(a @ b / (a.norm() * b.norm()).clamp_min(torch.finfo(a.dtype).tiny))


def weight_distance(first: Iterable[Tensor], second: Iterable[Tensor]) -> float:
    """‖a − b‖ / ‖a‖ between two sets of weights, each taken as one long vector: 0 where they are the same."""
    a, b = _concatenate(first), _concatenate(second)
    return float((a - b).norm() / a.norm().clamp_min(torch.finfo(a.dtype).tiny))


def _concatenate(weights: Iterable[Tensor]) -> Tensor:
    return torch.cat([w.detach().cpu().double().flatten() for w in weights])


HealthMetrics = dict[str, float | list[float]]
"""Numbers, and spectra, by name."""


class Sample(NamedTuple):
    """Of two views, by a frozen learner: the features of the first (n, features) and the codes of both (n, d)."""

    features: Tensor
    z1: Tensor
    z2: Tensor


def learner_metrics(
    learner: Learner, views: Views, names: tuple[HealthMetric, ...], encoder: EncoderName = "fast"
) -> HealthMetrics:
    """The named metrics of a learner, which stays as it is; codes are those of its fast or slow encoder."""
    sample = _sample(learner, encoder, views)
    return {key: value for name in names for key, value in METRICS[name](learner, sample).items()}


def _sample(learner: Learner, encoder: EncoderName, views: Views) -> Sample:
    """Features and codes of two views, a batch at a time."""
    f = learner.f if encoder == "fast" else learner.slow_encoder()
    chunks = []
    with eval_mode(learner):
        for x1, x2 in zip(views.first.split(BATCH_SIZE), views.second.split(BATCH_SIZE), strict=True):
            features = f.backbone(x1)
            chunks.append([x.float().cpu() for x in (features, f.projector(features), f(x2))])
    return Sample(*(torch.cat(tensors) for tensors in zip(*chunks, strict=True)))


def fixed_views(loader: ViewLoader, images: int) -> MicroBatch:
    """Two views of the first images of a loader, always the same."""
    loader = replace(loader, batch=min(images, len(loader.images)), micro_batches=1, rank=0, ranks=1, anchor=None)
    return loader.micro_batch(0, 0, torch.arange(loader.batch))


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """All metrics of the learner of a run."""

    metrics: HealthMetrics
    verdict: Verdict
    protocol: str


def evaluate_health(place: Path, options: HealthOptions, device: torch.device) -> HealthReport:
    """Every health metric of a learner, on two views of training images.

    Args:
        place: a run folder or one of its checkpoints.
        options: which encoder and which images.
        device: where the learner computes.

    Returns:
        The metrics, the verdict and the protocol.

    Raises:
        UserError: where there is no learner at `place`.
    """
    learner, config, step = load_learner(place)
    learner = learner.to(device)
    name = config.data if options.data is None else resolve_data_name(options.data)
    source = config.source if options.root is None else replace(config.source, root=options.root)
    loader = ViewLoader(
        images=load(name, source).train.images,
        plan=config.plan,
        anchor=None,
        batch=1,
        seed=config.seed,
        size=source.image_size,
        device=device,
        dtype=next(learner.parameters()).dtype,
    )
    views = fixed_views(loader, options.images).views
    sample = _sample(learner, options.encoder, views)
    collapse = health(sample.z1)
    metrics: HealthMetrics = asdict(collapse)
    for metric in METRICS.values():
        metrics |= metric(learner, sample)
    protocol = (
        f"{config.method}, {config.backbone}, after step {step}; codes and features of the {options.encoder} encoder, "
        f"of {len(views.first)} training images of {name} in two views, in eval mode"
    )
    return HealthReport(metrics=metrics, verdict=collapse.verdict, protocol=protocol)


def _stable_rank(learner: Learner, sample: Sample) -> HealthMetrics:
    ranks: HealthMetrics = {}
    for name, network in learner.predictors().items():
        layers = [layer.weight for layer in network.modules() if isinstance(layer, nn.Linear)]
        ranks |= {f"stable_rank_{name}{i + 1}": stable_rank(weight.float().cpu()) for i, weight in enumerate(layers)}
    return ranks


def _slow_gap(learner: Learner, sample: Sample) -> HealthMetrics:
    if learner.slow is None:
        return {}
    fast, slow = list(learner.f.parameters()), list(learner.slow.parameters())
    return {"slow_cosine": weight_cosine(fast, slow), "slow_distance": weight_distance(fast, slow)}


METRICS: Mapping[HealthMetric, Callable[[Learner, Sample], HealthMetrics]] = {
    "alignment": lambda _, s: {"alignment": alignment(s.z1, s.z2), "uniformity": uniformity(s.z1)},
    "spectrum": lambda _, s: {
        "spectrum_codes": spectrum(s.z1).tolist(),
        "spectrum_features": spectrum(s.features).tolist(),
    },
    "stable-rank": _stable_rank,
    "slow-gap": _slow_gap,
}
