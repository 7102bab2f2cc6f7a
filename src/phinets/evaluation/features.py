"""Frozen encoder + images → features."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


@torch.no_grad()
def features(
    encoder: nn.Module, images: Tensor, prepare: Callable[[Tensor], Tensor], *, device: torch.device, batch: int = 512
) -> Tensor:
    """The features of all images, none left out: uint8 (n, 3, s, s) → float32 (n, d) on the CPU.

    `prepare` turns a uint8 batch into what the encoder takes. The encoder runs in eval mode and goes back to the mode
    it was in.
    """
    was_training = encoder.training
    encoder.eval()
    try:
        parts = [encoder(prepare(chunk.to(device))).float().cpu() for chunk in images.split(batch)]
    finally:
        encoder.train(was_training)
    return torch.cat(parts)


def pixels(images: Tensor, prepare: Callable[[Tensor], Tensor]) -> Tensor:
    """The images themselves as features: what an encoder must beat."""
    return prepare(images).flatten(1)
