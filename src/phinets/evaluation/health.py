"""Health of a learner: collapse, alignment, spectra, ranks, the scale of codes, and fast against slow weights."""

import math
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets.backbones import eval_mode
from phinets.config.evaluation import HealthOptions
from phinets.config.methods import EncoderName, LearnerOptions
from phinets.config.record import Verdict
from phinets.config.run import HealthMetric
from phinets.data import load
from phinets.data.locations import resolve_data_name
from phinets.evaluation.encoders import load_learner
from phinets.evaluation.features import BATCH_SIZE
from phinets.methods import Learner
from phinets.methods.siamese import Predictive
from phinets.runtime.batch_norm import localize_norms
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
    max_rank: int | None = None
    """min(n, d), the largest rank of n codes of d dimensions; None in journals of older versions."""

    @property
    def verdict(self) -> Verdict:
        """Collapsed: one direction is left, or none. Collapsing: few directions are left, or little spread is."""
        if self.spread < 0.1 or self.effective_rank < 1.5 or self.dead_share > 0.95:
            return "collapsed"
        if self.spread < 0.4 or self.effective_rank < self._least_rank or self.dead_share > 0.5:
            return "collapsing"
        return "healthy"

    @property
    def _least_rank(self) -> float:
        """Of healthy codes: four directions, or a quarter of what small batches and narrow codes allow.

        Not a share of larger batches: codes of few directions have the same few in any batch (docs/training.md).
        """
        return 4.0 if self.max_rank is None else min(4.0, self.max_rank / 4)


@torch.no_grad()
def health(z: Tensor) -> Health:
    """The three measures of a batch of codes (n, d)."""
    z = z.float().cpu()
    return Health(spread(z), effective_rank(z), dead_share(z), min(z.shape))


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
    """Views and, by a frozen learner: the features of the first (n, features) and the codes of both (n, d)."""

    views: Views
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
    return Sample(views, *(torch.cat(tensors) for tensors in zip(*chunks, strict=True)))


def fixed_views(loader: ViewLoader, images: int) -> MicroBatch:
    """The views of the first images of a loader, always the same."""
    loader = replace(loader, batch=min(images, len(loader.images)), micro_batches=1, rank=0, ranks=1)
    return loader.micro_batch(0, 0, torch.arange(loader.batch))


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """All metrics of the learner of a run."""

    metrics: HealthMetrics
    verdict: Verdict
    protocol: str
    warning: str | None = None
    """Why Sim-2 has faded, and what to do; None where it has not."""


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
        anchor=learner.anchor,
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
        f"of {len(views.first)} training images of {name} in two views, in eval mode; "
        "code RMS and gradients in training mode"
    )
    warning = fade_warning(learner, metrics)
    return HealthReport(metrics=metrics, verdict=collapse.verdict, protocol=protocol, warning=warning)


def fade_warning(learner: Learner, metrics: HealthMetrics) -> str | None:
    """Why an MSE Sim-2 has faded, and what to do; None where it has not, or is no MSE."""
    sim2 = learner.wiring.sim2 if isinstance(learner, Predictive) else None
    rms, share = metrics["code_rms"], metrics.get("sim2_gradient_share")
    if sim2 is None or sim2.distance != "mse" or not isinstance(rms, float) or not isinstance(share, float):
        return None
    if rms >= FADE_RMS or learner.options.sim2_weight == 0:
        return None
    return (
        f"Sim-2 has faded: the RMS of the codes z is {rms:.2g}, and was about 1 before training. An MSE between codes "
        f"falls with its square; Sim-2 now has {100 * share:.2g} % of f's gradient. The cause is weight decay on the "
        "scale of the projector's last batch norm, which the losses do not hold up. Use less --weight-decay, or keep "
        "the scale with --no-projector-affine and compare: a Sim-2 that does not fade may learn worse."
    )


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


CODE_SCALE_IMAGES = 256
FADE_RMS = 0.3
"""RMS of z below which an MSE between codes has less than a tenth of its first size."""


def _code_scale(learner: Learner, sample: Sample) -> HealthMetrics:
    """The RMS of z of the first view, and Sim-2's share of f's gradient, as the next training step would see them.

    Training mode: the losses compare codes that batch norm has scaled by the statistics of their own batch, so their
    RMS is that of its affine scale and shift; in eval mode the running statistics would lag behind f. A copy of the
    learner computes, by itself also where batch norm spans several processes.
    """
    views = sample.views.map(lambda view: view[:CODE_SCALE_IMAGES])
    copy = deepcopy(learner).train()
    localize_norms(copy)
    with torch.random.fork_rng([views.first.device] if views.first.is_cuda else []):
        with torch.no_grad():
            z = copy.f(views.first)
        metrics: HealthMetrics = {"code_rms": float(z.float().square().mean().sqrt())}
        if isinstance(copy, Predictive) and copy.wiring.sim2 is not None:
            metrics["sim2_gradient_share"] = _sim2_gradient_share(copy, views)
    return metrics


def _sim2_gradient_share(learner: Predictive, views: Views) -> float:
    """‖w₂·∇Sim-2‖ / (‖w₁·∇Sim-1‖ + ‖w₂·∇Sim-2‖), gradients with respect to all parameters of f; changes `options`."""
    options = learner.options
    sim1 = options.sim1_weight and _gradient_norm(learner, views, replace(options, sim2_weight=0.0))
    sim2 = options.sim2_weight and _gradient_norm(learner, views, replace(options, sim1_weight=0.0))
    return sim2 / max(sim1 + sim2, torch.finfo(torch.float32).tiny)


@torch.enable_grad()
def _gradient_norm(learner: Learner, views: Views, options: LearnerOptions) -> float:
    learner.options = options
    weights = [weight for weight in learner.f.parameters() if weight.requires_grad]
    gradients = torch.autograd.grad(learner.loss(views).total, weights, materialize_grads=True)
    return float(torch.stack([gradient.float().norm() for gradient in gradients]).norm())


METRICS: Mapping[HealthMetric, Callable[[Learner, Sample], HealthMetrics]] = {
    "alignment": lambda _, s: {"alignment": alignment(s.z1, s.z2), "uniformity": uniformity(s.z1)},
    "spectrum": lambda _, s: {
        "spectrum_codes": spectrum(s.z1).tolist(),
        "spectrum_features": spectrum(s.features).tolist(),
    },
    "stable-rank": _stable_rank,
    "slow-gap": _slow_gap,
    "code-scale": _code_scale,
}
