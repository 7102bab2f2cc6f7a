"""CaSSLe: what the encoder knew before a task stays predictable from what it knows now (Fini et al. 2022)."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from phinets.methods.networks import Encoder, mlp


class Distiller(nn.Module):
    """A frozen copy of f as it was when the task began, and a predictor from f's codes to the frozen ones.

    The copy takes no gradient, and is in eval mode whatever the learner's: it normalizes by the statistics that it was
    frozen with. In the first task there is nothing to predict yet.
    """

    active: Tensor
    """Whether something is frozen; a buffer, so that a checkpoint brings it back."""

    def __init__(self, f: Encoder, width: int, hidden: Sequence[int], weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.frozen = Encoder(copy.deepcopy(f.backbone), copy.deepcopy(f.projector)).requires_grad_(False).eval()
        self.predictor = mlp((width, *hidden, width))
        self.register_buffer("active", torch.zeros((), dtype=torch.bool))

    def train(self, mode: bool = True) -> "Distiller":
        """Train mode is for the predictor alone."""
        super().train(mode)
        self.frozen.eval()
        return self

    def freeze(self, f: Encoder) -> None:
        """Become what f is now, weights and statistics; from here on its codes are to be predicted."""
        self.frozen.load_state_dict(f.state_dict())
        self.active.fill_(True)

    def forward(self, view: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """What is predicted from the code z = f(view), and what should be: the frozen code of the same view; (n, d)."""
        with torch.no_grad():
            known: Tensor = self.frozen(view)
        return self.predictor(z), known
