"""Batch norm over the batch of all processes, on any device."""

from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from phinets.config.errors import UserError
from phinets.runtime import distributed

CONVERTIBLE = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def synchronize_norms(module: nn.Module, device: torch.device) -> None:
    """Convert every batch norm of a module to one over all processes; names, weights and buffers stay.

    On CUDA it is torch's SyncBatchNorm; elsewhere `SharedBatchNorm`.
    """
    kind = nn.SyncBatchNorm if device.type == "cuda" else SharedBatchNorm
    for path, owner in list(module.named_modules()):
        for name, child in list(owner.named_children()):
            if type(child) in CONVERTIBLE:
                setattr(owner, name, _convert(cast(_BatchNorm, child), kind))
            elif isinstance(child, _BatchNorm) and not isinstance(child, kind):
                raise UserError(
                    f"'{path}.{name}' is a {type(child).__name__}, a custom batch norm, which can't be "
                    "computed over several processes. Use an encoder with torch's nn.BatchNorm, or one process."
                )


def localize_norms(module: nn.Module) -> None:
    """The inverse of `synchronize_norms`, for a copy that one process evaluates alone in training mode."""
    for owner in list(module.modules()):
        for name, child in list(owner.named_children()):
            if isinstance(child, nn.SyncBatchNorm | SharedBatchNorm):
                setattr(owner, name, _convert(child, LocalBatchNorm))


def _convert(norm: _BatchNorm, kind: type[_BatchNorm]) -> _BatchNorm:
    new = kind(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    new.weight, new.bias = norm.weight, norm.bias
    new.running_mean, new.running_var = norm.running_mean, norm.running_var
    new.num_batches_tracked = norm.num_batches_tracked
    return new.train(norm.training)


class LocalBatchNorm(_BatchNorm):
    """The ordinary batch norm, for inputs of any number of dimensions."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"batch norm needs (n, c, …), not {tuple(input.shape)}")


class SharedBatchNorm(LocalBatchNorm):
    """Batch norm by the mean and variance of all processes' images; in eval mode the ordinary one."""

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, …) → the same shape."""
        if not self.training or distributed.world_size() == 1:
            return super().forward(input)
        x = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        out, mean, var, count = _Normalize.apply(x, self.eps)
        self._update_statistics(mean, var, count)
        if self.affine:
            shape = _per_channel(x)
            out = torch.addcmul(self.bias.view(shape), out, self.weight.view(shape))
        return cast(Tensor, out)

    @torch.no_grad()
    def _update_statistics(self, mean: Tensor, var: Tensor, count: int) -> None:
        """Update the running statistics, the variance without bias, as torch does."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((var * (count / max(1, count - 1))).to(self.running_var.dtype), share)


class _Normalize(torch.autograd.Function):
    """x̂ = (x − μ)/√(σ² + ε) with μ, σ² over all processes; also returns μ, σ² and the number of values.

    ∂L/∂x = (∂L/∂x̂ − mean(∂L/∂x̂) − x̂·mean(∂L/∂x̂·x̂))/√(σ² + ε), the means again over all processes. Variances are
    combined from those of the processes (Chan et al. 1979), which avoids cancellation.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor, int]:
        others = [d for d in range(x.ndim) if d != 1]
        here = torch.stack(torch.var_mean(x, others, correction=0))
        everywhere = [torch.empty_like(here) for _ in range(distributed.world_size())]
        dist.all_gather(everywhere, here)
        variances, means = torch.stack(everywhere).unbind(1)  # equally many images in each
        mean = means.mean(0)
        var = (variances + (means - mean).square()).mean(0)
        shape = _per_channel(x)
        scale = (var + eps).rsqrt()
        out = (x - mean.view(shape)).mul_(scale.view(shape))
        ctx.save_for_backward(out, scale)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(mean, var)
        return out, mean, var, x.numel() // x.shape[1] * distributed.world_size()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        slope: Tensor = gradients[0]
        out, scale = ctx.saved_tensors
        others = [d for d in range(out.ndim) if d != 1]
        means = torch.stack([slope.mean(others), (slope * out).mean(others)])
        dist.all_reduce(means)
        level, along = (row.view(_per_channel(out)) for row in means / distributed.world_size())
        return (slope - level).sub_(out * along).mul_(scale.view(_per_channel(out))), None


def _per_channel(x: Tensor) -> tuple[int, ...]:
    return 1, -1, *(1,) * (x.ndim - 2)
