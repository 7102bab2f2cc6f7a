"""MoCo v2 (Chen et al. 2020)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import phinets.losses as losses
from phinets.config.methods import Contrast, LearnerOptions
from phinets.methods.base import Learner, Losses, widths_of
from phinets.methods.networks import Encoder, Slow, mlp
from phinets.runtime import distributed
from phinets.views import Views


class MoCo(Learner):
    """A query must find its own key, given by a slow encoder, among a queue of other images' keys.

    The key encoder is updated after each step, which equals an update before each forward. In training, `loss` stores
    the new keys, and `after_step` enqueues those of all processes.
    """

    encodes_two_views = False
    queue: Tensor
    queue_ptr: Tensor

    def __init__(self, spec: Contrast, backbone: nn.Module, features: int, options: LearnerOptions) -> None:
        super().__init__(spec.anchor, options)
        widths = widths_of(options)
        self.f = Encoder(backbone, mlp((features, *widths), hidden_norm=False))
        self.slow = Slow(self.f, options.beta, options.slow_buffers)
        self.register_buffer("queue", F.normalize(torch.randn(options.queue, widths[-1]), dim=1))
        self.register_buffer("queue_ptr", torch.zeros((), dtype=torch.long))
        self._new_keys: list[Tensor] = []

    def loss(self, views: Views) -> Losses:
        """InfoNCE of the first view's query against the second view's key and the queue."""
        z = self.f(views.first)
        query = F.normalize(z, dim=1)
        key = F.normalize(self.slow_code(views.second), dim=1)
        if self.training and torch.is_grad_enabled():
            self._new_keys.append(key)
        total = losses.info_nce(query, key, self.queue, self.options.temperature)
        return Losses(total, {"info_nce": total.detach()}, query.detach(), traced=((views.first, z),))

    def distillation(self, predicted: Tensor, frozen: Tensor) -> Tensor:
        """InfoNCE of each prediction against the frozen codes of all processes' batches, its own among them."""
        query, keys = F.normalize(predicted, dim=1), distributed.gather_rows(F.normalize(frozen, dim=1))
        return losses.batch_nce(query, keys, distributed.rank() * len(query), self.options.temperature)

    @torch.no_grad()
    def after_step(self) -> None:
        """Update the key encoder, and replace the oldest keys by the newest."""
        super().after_step()
        if not self._new_keys:
            return
        every = torch.cat([distributed.gather_rows(keys) for keys in self._new_keys])
        keys = every[-len(self.queue) :].to(self.queue.dtype)
        places = (self.queue_ptr + torch.arange(len(keys), device=keys.device)) % len(self.queue)
        self.queue[places] = keys
        self.queue_ptr.add_(len(keys)).remainder_(len(self.queue))
        self._new_keys.clear()
