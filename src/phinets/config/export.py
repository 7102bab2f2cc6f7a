"""How an encoder leaves the house: the options of every export."""

from dataclasses import dataclass
from pathlib import Path

from phinets.config.errors import UserError, look_up
from phinets.config.methods import EncoderName
from phinets.config.views import PLANS

OWN = ("headless", "with_preprocessing", "opset", "configs")
"""Options that have a meaning for one target alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Which encoder, and what is said about it; what is unset is as in the run that it comes from."""

    encoder: EncoderName = "fast"
    """The encoder that learns by gradients, or the slow one that follows it, where the learner has one."""
    backbone: str | None = None
    """For a file of weights: which encoder it fits; `phinets list backbones` shows all."""
    unfinished: bool = False
    """Take the newest checkpoint of a run that has not come to its end; the card says so."""
    image_size: int | None = None
    """Side of the images that the encoder sees, in pixels; unset: as in the run or the file, else what suits it."""
    views: str | None = None
    """For a file of weights: the view plan whose mean and std it knows; unset: the file's, else timm's, ImageNet's."""
    headless: bool = False
    """torchvision: for a model whose fc is nn.Identity(). Otherwise fc, which a fresh model has, is in it as zeros."""
    with_preprocessing: bool = False
    """onnx: take uint8 RGB images, 0 to 255, and normalize inside. Otherwise floats go in, already normalized."""
    opset: int = 18
    """onnx: the version of ONNX's operators; 18 is the exporter's own."""
    configs: Path | None = None
    """detectron2: the folder for the configuration files; unset: beside the weights, named after them."""

    def __post_init__(self) -> None:
        if self.views is not None:
            look_up("view plan", self.views, PLANS)
        if self.image_size is not None and self.image_size < 8:
            raise UserError(f"image_size is {self.image_size}, but must be at least 8.")
        if self.opset < 18:
            raise UserError(
                f"opset is {self.opset}, but torch's exporter writes 18 and above. Leave it out, or raise it."
            )

    def require_meant(self, target: str, read: tuple[str, ...]) -> None:
        """Refuse an option of another target than this one, which reads `read` alone."""
        untouched = ExportOptions()
        for name in OWN:
            if name not in read and getattr(self, name) != getattr(untouched, name):
                raise UserError(f"--{name.replace('_', '-')} has no meaning for --to {target}. Leave it out.")
