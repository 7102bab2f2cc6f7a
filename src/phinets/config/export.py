"""The options of `phinets export`."""

from dataclasses import dataclass
from pathlib import Path

from phinets.config.errors import UserError, look_up, require_at_least
from phinets.config.methods import EncoderName
from phinets.config.views import PLANS

SINGLE_TARGET_OPTIONS = ("headless", "with_preprocessing", "opset", "configs")
"""Options of one target only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Which encoder, and its metadata; unset values are those of its run."""

    encoder: EncoderName = "fast"
    """The encoder trained by gradients, or the slow one, where the method has one."""
    backbone: str | None = None
    """For a file of weights: its backbone; `phinets list backbones` shows all."""
    unfinished: bool = False
    """Export the newest checkpoint of an unfinished run; the card says so."""
    image_size: int | None = None
    """Side of the images, in pixels; unset: as in the run or the file, else the backbone's default."""
    views: str | None = None
    """For a file of weights: the view plan, for mean and std; unset: the file's, else timm's, else ImageNet's."""
    headless: bool = False
    """torchvision: for a model whose fc is nn.Identity(). Otherwise the file has an fc of zeros, as fresh models do."""
    with_preprocessing: bool = False
    """onnx: take uint8 RGB images, 0 to 255, and normalize them. Otherwise the input is normalized floats."""
    opset: int = 18
    """onnx: the version of ONNX's operators; torch's exporter writes 18, its default, and above."""
    configs: Path | None = None
    """detectron2: the folder for the configuration files; unset: beside the weights, named after them."""

    def __post_init__(self) -> None:
        if self.views is not None:
            look_up("view plan", self.views, PLANS)
        require_at_least(self, image_size=8, opset=18)

    def require_supported(self, target: str, supported: tuple[str, ...]) -> None:
        """Refuse an option of another target."""
        defaults = ExportOptions()
        for name in SINGLE_TARGET_OPTIONS:
            if name not in supported and getattr(self, name) != getattr(defaults, name):
                raise UserError(f"--{name.replace('_', '-')} has no meaning for --to {target}. Leave it out.")
