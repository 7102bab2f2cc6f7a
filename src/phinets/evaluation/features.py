"""Frozen encoder + images → features."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


@torch.no_grad()
def features(
    encoder: nn.Module, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], *, device: torch.device
) -> Tensor:
    """The features of all images, none left out: chunks of uint8 (n, 3, s, s) → float32 (Σn, d) on the CPU.

    `prepare` turns a uint8 batch into what the encoder takes. The encoder runs in eval mode and goes back to the mode
    it was in.
    """
    was_training = encoder.training
    encoder.eval()
    try:
        parts = [encoder(prepare(chunk.to(device))).float().cpu() for chunk in chunks]
    finally:
        encoder.train(was_training)
    return torch.cat(parts)


def pixels(chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor]) -> Tensor:
    """The images themselves as features: what an encoder must beat."""
    return torch.cat([prepare(chunk).flatten(1) for chunk in chunks])
