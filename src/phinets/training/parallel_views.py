"""Train on two views in two threads, each with single-threaded operations.

The passes of two views through f are independent: each has its own batch statistics, and the loss connects only their
codes. So two threads take one view each, forward and backward, and meet twice a step. OpenMP's threads meet in every
operation instead, and beside a busy process each operation waits for a thread that has no core.

The sum of two gradients does not depend on their order, and the running statistics of batch norm are updated in the
order of the views, so the load of the machine does not change the result.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from phinets.methods import Learner
from phinets.runtime.devices import Precision

STATELESS = (
    nn.Conv2d, nn.Linear, nn.ReLU, nn.GELU, nn.SiLU, nn.Identity, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d,
    nn.Flatten, nn.LayerNorm, nn.GroupNorm, nn.Sequential,
)  # fmt: skip
"""Modules that may run in two threads at once: they keep no state between two calls."""


def parallel_views(learner: Learner, precision: Precision) -> "ParallelViews | None":
    """Two threads for the views of a step where they are faster: on a CPU with two threads or more.

    None also for encoders whose passes may depend on each other, e.g. by dropout, which draws random numbers.
    """
    threads = torch.get_num_threads()
    many = threads > 1 and precision.device.type == "cpu" and precision.dtype is None
    possible = many and learner.encodes_two_views and all(map(_is_stateless, learner.f.modules()))
    return ParallelViews(learner, threads // 2) if possible else None


def _is_stateless(module: nn.Module) -> bool:
    """Whether a module keeps no state beside running statistics, which are merged."""
    if isinstance(module, _BatchNorm):
        return module.momentum is not None
    if isinstance(module, STATELESS):
        return True
    ours = type(module).__module__.split(".")[0] in ("phinets", "torchvision")
    return ours and not list(module.buffers(recurse=False))


class ParallelViews:
    """Encodes two views in two threads. A learner's loss calls `encode`; `backward` follows the loss's own backward."""

    def __init__(self, learner: Learner, threads_per_view: int) -> None:
        self.learner = learner
        self.encoder = learner.f
        self.twin = _share_parameters(learner.f)
        self.parameters = [p for p in learner.f.parameters() if p.requires_grad]
        self.threads_per_view = threads_per_view
        self.worker = ThreadPoolExecutor(1, "view", initializer=torch.set_num_threads, initargs=(threads_per_view,))
        self._graphs: list[tuple[Tensor, Tensor]] = []

    @contextmanager
    def step(self) -> Iterator[None]:
        """The context of a training step; the calling thread uses `threads_per_view` threads per operation, too."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads_per_view)
        self.learner.parallel_views = self
        try:
            yield
        finally:
            self.learner.parallel_views = None
            self._graphs.clear()
            torch.set_num_threads(threads)

    def encode(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """The codes of two views, (n, d) each, as leaves: `backward` passes their gradients on to f."""
        second = self.worker.submit(self.twin, x2)
        z1 = self.encoder(x1)
        z2 = second.result()
        leaves = z1.detach().requires_grad_(), z2.detach().requires_grad_()
        self._graphs += zip((z1, z2), leaves, strict=True)
        return leaves

    def backward(self) -> None:
        """Add the gradients of all codes to those of f's parameters: call it after the loss's own backward."""
        for (z1, leaf1), (z2, leaf2) in zip(self._graphs[::2], self._graphs[1::2], strict=True):
            second = self.worker.submit(self._gradients, z2, leaf2)
            first = self._gradients(z1, leaf1)
            for parameter, g1, g2 in zip(self.parameters, first, second.result(), strict=True):
                gradient = g1.add_(g2)
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
            _merge_statistics(self.encoder, self.twin)  # now: autograd holds the buffers until its backward
        self._graphs.clear()

    def _gradients(self, code: Tensor, leaf: Tensor) -> tuple[Tensor, ...]:
        slope = torch.zeros_like(code) if leaf.grad is None else leaf.grad
        return torch.autograd.grad(code, self.parameters, slope, materialize_grads=True)


def _share_parameters(encoder: nn.Module) -> nn.Module:
    """A copy with the same parameters; the running statistics of its batch norms are those of its last batch."""
    twin = deepcopy(encoder, {id(p): p for p in encoder.parameters()})
    for norm in _norms(twin):
        norm.momentum = 1.0
    return twin


def _norms(encoder: nn.Module) -> list[_BatchNorm]:
    return [module for module in encoder.modules() if isinstance(module, _BatchNorm)]


def _merge_statistics(encoder: nn.Module, twin: nn.Module) -> None:
    """running ← (1 − m) · running + m · batch, for the last batch of the twin, as torch computes it."""
    for norm, other in zip(_norms(encoder), _norms(twin), strict=True):
        if norm.training and norm.running_mean is not None and norm.running_var is not None:
            assert norm.momentum is not None
            assert other.running_mean is not None
            assert other.running_var is not None
            assert norm.num_batches_tracked is not None
            norm.num_batches_tracked += 1
            for running, batch in ((norm.running_mean, other.running_mean), (norm.running_var, other.running_var)):
                running.mul_(1 - norm.momentum).add_(batch, alpha=norm.momentum)
