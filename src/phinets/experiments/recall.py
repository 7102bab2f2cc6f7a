"""What was judged before in this process: the same encoder, on the same images, by the same rules.

Many runs begin with the same untrained encoder on the same data, and raw pixels are the same for all of them.
"""

from collections.abc import Callable, Hashable, Iterable
from hashlib import blake2b
from typing import Any, TypeVar, cast

import torch
from torch import nn

from phinets.data import ImageSet, InMemory
from phinets.data.fingerprint import set_fingerprint
from phinets.experiments.judging import Eye

T = TypeVar("T")
_JUDGED: dict[tuple[Hashable, ...], Any] = {}


def recalled(
    judged: Callable[[], T], eye: Eye, parts: Iterable[ImageSet], encoder: nn.Module | None, rules: Hashable
) -> T:
    """What `judged` gives; not asked again where it was asked before with the same `rules` of the same images.

    Images that are not in memory are not compared, and so always judged anew.
    """
    parts = tuple(parts)
    if not all(isinstance(part.images, InMemory) for part in parts):
        return judged()
    seen = (eye.plan, eye.size, str(eye.device), str(eye.dtype))
    key = (*map(set_fingerprint, parts), *seen, _of_weights(encoder), rules)
    if key not in _JUDGED:
        _JUDGED[key] = judged()
    return cast(T, _JUDGED[key])


def _of_weights(encoder: nn.Module | None) -> str | None:
    """A check sum of what an encoder is: its layers, and every number in them."""
    if encoder is None:
        return None
    found = blake2b(repr(encoder).encode(), digest_size=16)
    for name, value in encoder.state_dict().items():
        found.update(name.encode())
        found.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
