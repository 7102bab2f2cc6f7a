"""Siamese learners with a predictor: SimSiam, BYOL, RM-SimSiam, PhiNet, X-PhiNet and every ablation in one class."""

import torch
from torch import Tensor, nn

import phinets.losses as losses
from phinets.config.methods import LearnerOptions, Sim2, Wiring
from phinets.methods.base import Learner, Losses, anchor_of, widths_of
from phinets.methods.networks import Encoder, Slow, mlp
from phinets.views import Views

SIM2_DISTANCE = {"mse": losses.mean_squared_error, "cosine": losses.negative_cosine}


class Predictive(Learner):
    """f, h and g connected as a `Wiring` describes; read `loss` beside figure 1 of the paper."""

    task: Tensor
    """Which task of a stream it is, from 0; RM-SimSiam's rule depends on it."""

    def __init__(self, wiring: Wiring, backbone: nn.Module, features: int, options: LearnerOptions) -> None:
        super().__init__(wiring.anchor, options)
        self.wiring = wiring
        self.register_buffer("task", torch.zeros((), dtype=torch.long))
        widths = widths_of(options)
        d = widths[-1]
        self.f = Encoder(backbone, mlp((features, *widths), last_norm=True, last_affine=options.projector_affine))
        self.h = mlp((d, *options.h_hidden, d))
        self.g = self._make_g(wiring.sim2, d)
        self.slow = Slow(self.f, options.beta, options.slow_buffers) if wiring.needs_slow else None

    def _make_g(self, sim2: Sim2 | None, d: int) -> nn.Module | None:
        if sim2 is None:
            return None
        if sim2.g == "h":
            return self.h
        if sim2.g == "identity":
            return nn.Identity()
        g = mlp((d, *self.options.g_hidden, d))
        return g.append(nn.Tanh()) if self.options.g_tanh else g

    def loss(self, views: Views) -> Losses:
        """L = w₁·Sim-1 + w₂·Sim-2 (paper §3; listings 1 and 2), each view with its own batch statistics."""
        z0 = self._anchor_code(views)  # first: without a graph it keeps no activations
        x1 = anchor_of(views) if self.wiring.first == "original" else views.first
        x2 = views.second
        z1, z2 = self.encode_views(x1, x2)
        p1, p2 = self.h(z1), self.h(z2)
        terms = {"sim1": self._sim1(p1, p2, *self._sim1_targets(x1, x2, z1, z2))}
        total = self.options.sim1_weight * terms["sim1"]
        if self.wiring.history:
            terms["history"] = self._history(p1, x1, x2)
            total = total + terms["history"]
        if z0 is not None:
            terms["sim2"] = self._sim2(p1, p2, z0)
            total = total + self.options.sim2_weight * terms["sim2"]
        detached = {name: term.detach() for name, term in terms.items()}
        return Losses(total, detached, z1.detach(), traced=((x1, z1), (x2, z2)))

    def _anchor_code(self, views: Views) -> Tensor | None:
        """z₀: the code of the anchor, or None where Sim-2 is absent or weighs nothing."""
        sim2 = self.wiring.sim2
        if sim2 is None or self.options.sim2_weight == 0.0:
            return None
        x0 = anchor_of(views)
        if sim2.code_of == "slow":
            return self.slow_code(x0)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not sim2.stop_gradient):
            return self.f(x0)  # type: ignore[no-any-return]

    def _sim1_targets(self, x1: Tensor, x2: Tensor, z1: Tensor, z2: Tensor) -> tuple[Tensor, Tensor]:
        """The targets of p₁ and p₂: the other view's code, without gradient."""
        if self.wiring.sim1_target == "slow":
            return self.slow_code(x2), self.slow_code(x1)
        return z2.detach(), z1.detach()

    def _sim1(self, p1: Tensor, p2: Tensor, target1: Tensor, target2: Tensor) -> Tensor:
        if self.wiring.sim1_distance == "squared":
            return losses.squared_distance(p1, target1) + losses.squared_distance(p2, target2)
        return (losses.negative_cosine(p1, target1) + losses.negative_cosine(p2, target2)) / 2

    def _sim2(self, p1: Tensor, p2: Tensor, z0: Tensor) -> Tensor:
        assert self.wiring.sim2 is not None
        assert self.g is not None
        distance = SIM2_DISTANCE[self.wiring.sim2.distance]
        return (distance(self.g(p1), z0) + distance(self.g(p2), z0)) / 2

    def _history(self, p1: Tensor, x1: Tensor, x2: Tensor) -> Tensor:
        """½[D(p₁, hist(x₁)) + D(p₁, hist(x₂))] (RM-SimSiam)."""
        total = losses.negative_cosine(p1, self.slow_code(x1)) + losses.negative_cosine(p1, self.slow_code(x2))
        return total / 2

    def begin_task(self, task: int) -> None:
        """RM-SimSiam pulls f back towards its history from the second task on."""
        super().begin_task(task)
        self.task.fill_(task)

    def after_step(self) -> None:
        """Update the slow encoder; from the second task on, RM-SimSiam first pulls f towards it."""
        if self.wiring.history and int(self.task) > 0:
            assert self.slow is not None
            self.slow.pull(self.f)
        super().after_step()

    def predictors(self) -> dict[str, nn.Module]:
        """h, and g where it is a separate network."""
        own = isinstance(self.g, nn.Sequential) and self.g is not self.h
        return {"h": self.h, "g": self.g} if own and self.g is not None else {"h": self.h}

    def constant_rate_parameters(self) -> list[nn.Parameter]:
        """Those of h; g follows the schedule like f."""
        return list(self.h.parameters())
