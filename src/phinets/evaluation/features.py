"""Frozen encoder + images → features."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from phinets.backbones import require_features
from phinets.backbones.frozen import frozen
from phinets.config.errors import UserError


def feature_chunks(
    encoder: nn.Module, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], *, device: torch.device
) -> Iterator[Tensor]:
    """The features of each chunk of images, in turn: uint8 (n, 3, s, s) → float32 (n, d) on the CPU.

    `prepare` turns a uint8 batch into what the encoder takes.
    """
    for chunk in chunks:
        with frozen(encoder):
            given = require_features(encoder(prepare(chunk.to(device))), len(chunk))
        yield given.float().cpu()


def features(
    encoder: nn.Module, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], *, device: torch.device
) -> Tensor:
    """The features of all images, none left out: chunks of uint8 (n, 3, s, s) → float32 (Σn, d) on the CPU."""
    return torch.cat(list(feature_chunks(encoder, chunks, prepare, device=device)))


def pixels(chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor]) -> Tensor:
    """The images themselves as features: what an encoder must beat."""
    return torch.cat([prepare(chunk).flatten(1) for chunk in chunks])


def require_numbers(features: Tensor, called: str, first: int = 0) -> None:
    """Refuse NaN and infinity: a vote or a probe over them would say something that means nothing.

    `called` and `first` say which part of which features these are.
    """
    if bool(torch.isfinite(features).all()):
        return
    bad = first + int((~torch.isfinite(features).all(1)).nonzero()[0])
    raise UserError(
        f"the features of the {called} are not all finite numbers (row {bad} is the first that is not). The encoder "
        "has diverged or its weights are damaged: take an earlier checkpoint."
    )
