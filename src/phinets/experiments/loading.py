"""An encoder to be used: frozen, with its own preprocessing."""

import os
import re
from pathlib import Path
from types import UnionType

import torch
from torch import Tensor, nn

from phinets.backbones import feature_width, require_room
from phinets.config.errors import UserError
from phinets.config.exam import Sight
from phinets.config.methods import Clock
from phinets.config.views import ViewPlan
from phinets.data.given import Given, given_chunks
from phinets.engine.device import pick_device
from phinets.evaluation.features import feature_chunks
from phinets.experiments.judging import AT_ONCE
from phinets.experiments.sight import plan_of, size_of
from phinets.experiments.subject import Subject, subject
from phinets.views import prepare

PIXELS = 2**22
"""Pixels that an encoder is shown together, at most: 83 images of 224 × 224."""
SAID = {
    r"--encoder (fast|slow)": r'part="\1"',
    r"--device (\w+)": r'device="\1"',
    r"--backbone": "backbone=…",
    r"--image-size": "image_size=…",
}
"""Options of the command line, as arguments of `load`."""


class Encoder(nn.Module):
    """A frozen encoder with the preprocessing that it is used to: pictures → float32 features (n, d) on the CPU.

    Pictures are what `phinets.data.given` takes: opened ones or files of any sizes and modes, whose central square is
    brought to `image_size`, or uint8 arrays. It never leaves eval mode and gives no gradients.
    """

    def __init__(self, who: Subject, plan: ViewPlan, size: int) -> None:
        super().__init__()
        self.num_features = feature_width(who.encoder, size)
        self.backbone = who.encoder.to(memory_format=torch.channels_last).requires_grad_(False)
        self.subject_name, self.backbone_name, self.clock = who.called, who.backbone, who.clock
        self.plan, self.image_size = plan, size
        self.at_once = images_at_once(size)
        self.eval()

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.backbone.parameters()).device

    def train(self, mode: bool = True) -> "Encoder":
        """It stays in eval mode, as part of whatever is trained."""
        super().train(False)
        return self

    def prepare(self, images: Tensor) -> Tensor:
        """What the backbone is fed: uint8 (n, 3, h, w) → normalised (n, 3, image_size, image_size), on its device."""
        weight = next(self.backbone.parameters())
        return prepare(images.to(weight.device), self.plan, self.image_size).to(weight.dtype)

    def forward(self, pictures: Given) -> Tensor:
        """The features of one picture or of many, some at a time: float32 (n, num_features), on the CPU."""
        chunks = given_chunks(pictures, self.image_size, self.at_once)
        found = list(feature_chunks(self.backbone, chunks, self.prepare, device=self.device))
        return torch.cat(found) if found else torch.empty(0, self.num_features)

    def describe(self) -> str:
        """Whose features, and of what, in words."""
        side = self.image_size
        return f"{self.subject_name}: {self.num_features} features of {side} × {side} pixels"

    def __repr__(self) -> str:
        return f"<phinets.Encoder: {self.describe()}, on {self.device}>"


def images_at_once(size: int) -> int:
    """How many images of so many pixels a side are shown together, where nobody says otherwise."""
    return max(1, min(AT_ONCE, PIXELS // size**2))


def load(
    place: str | Path,
    part: Clock = "fast",
    *,
    device: str = "auto",
    backbone: str | None = None,
    image_size: int | None = None,
) -> Encoder:
    """The frozen encoder in a run folder, in one of its checkpoints, or in a file of weights.

    part: the encoder that learned by gradients, or the slow one that followed it. A run that is still going gives its
    newest checkpoint. A file that does not say which encoder it fits (torchvision's, timm's) needs `backbone`; one that
    does not say the side of its images may be told `image_size`.
    """
    if part not in ("fast", "slow"):
        raise UserError(f"part is '{part}', but an encoder is 'fast' or 'slow'. Choose one of them.")
    _require("place", place, str | os.PathLike, 'a path, e.g. "runs/first"')
    _require("device", device, str, 'a name, e.g. "cpu"')
    _require("backbone", backbone, str | None, 'a name, e.g. "resnet18"')
    _require("image_size", image_size, int | None, "a whole number of pixels, e.g. 64")
    sight = Sight(encoder=part, backbone=backbone, device=device, image_size=image_size)
    try:
        return encoder_of(subject(Path(place).expanduser(), part, backbone), sight)
    except UserError as error:
        raise UserError(_as_arguments(str(error))) from error


def _require(name: str, value: object, kind: type | UnionType, wanted: str) -> None:
    """Refuse an argument of another kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UserError(f"{name} is {value!r} ({type(value).__name__}), but must be {wanted}.")


def _as_arguments(told: str) -> str:
    """An error's advice for the command line as advice for Python: --device cpu → device="cpu"."""
    for option, argument in SAID.items():
        told = re.sub(option, argument, told)
    return told


def encoder_of(who: Subject, sight: Sight) -> Encoder:
    """An encoder on its device, ready to be used; what `sight` leaves open is as in its run."""
    size = size_of(sight, who)
    require_room(who.backbone, size)
    return Encoder(who, plan_of(sight, who), size).to(pick_device(sight.device))
