"""Every head, from a list of widths."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def mlp(
    widths: Sequence[int], *, hidden_norm: bool = True, last_norm: bool = False, last_affine: bool = True
) -> nn.Sequential:
    """Linear layers of the given widths with (batch norm and) ReLU between them.

    `widths` has the input first: (512, 2048, 2048) is two layers. With `last_norm` the output is normalized too, as in
    a projector. A linear layer in front of a batch norm has no bias, which the norm would take away again.
    """
    layers: list[nn.Module] = []
    last = len(widths) - 2
    for i, (fan_in, fan_out) in enumerate(pairwise(widths)):
        norm = last_norm if i == last else hidden_norm
        layers.append(nn.Linear(fan_in, fan_out, bias=not norm))
        if norm:
            layers.append(nn.BatchNorm1d(fan_out, affine=last_affine or i != last))
        if i != last:
            layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)
