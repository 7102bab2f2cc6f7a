"""An encoder that is only looked at."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def frozen(encoder: nn.Module) -> Iterator[None]:
    """The encoder in eval mode and without gradients; afterwards in the mode it was in, module by module."""
    modes = {module: module.training for module in encoder.modules()}
    encoder.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training
