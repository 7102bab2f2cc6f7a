"""Load an encoder: from a run folder, from a checkpoint, or from a weights file."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from phinets.backbones import backbone as backbone_called
from phinets.backbones import feature_width, has_imagenet_stem, warn_if_small
from phinets.backbones.weights import load_weights, read_weights
from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError, look_up
from phinets.config.evaluation import EncoderOptions
from phinets.config.methods import EncoderName, has_slow, method, methods_with_slow_encoder
from phinets.config.run import DataOptions, TrainConfig
from phinets.config.views import PLANS, ViewPlan
from phinets.data.files import ImageInput, image_batches
from phinets.data.locations import resolve_data_name
from phinets.evaluation.features import BATCH_SIZE, features
from phinets.methods import Learner
from phinets.runtime.devices import pick_device
from phinets.training.checkpoint import NAME, load_checkpoint, newest_checkpoint
from phinets.training.run_folder import BACKBONES, CHECKPOINTS, CONFIG, SUMMARY, read_config
from phinets.training.step import bare_learner
from phinets.views import prepare, random_stream


@dataclass(frozen=True, kw_only=True)
class LoadedEncoder:
    """An encoder's weights and where they come from."""

    module: nn.Module
    backbone: str
    """The name of its architecture."""
    description: str
    """Whose weights these are, in words."""
    config: TrainConfig | None = None
    """The run that trained it."""
    encoder: EncoderName = "fast"
    """The fast encoder, which learns by gradients, or the slow one, which follows it."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The weights file's own metadata."""
    step: int | None = None
    """The step of its checkpoint; unset: from the end of a run, or from a file."""


def load_encoder(place: Path, encoder: EncoderName = "fast", backbone: str | None = None) -> LoadedEncoder:
    """The weights of an encoder and where they come from.

    Args:
        place: a run folder, one of its checkpoints, or a weights file.
        encoder: "fast" or "slow".
        backbone: the architecture of a weights file whose metadata does not name it.

    Returns:
        The encoder on the CPU.

    Raises:
        UserError: where there is no such encoder at `place`, or its weights do not fit.
    """
    folder = run_folder_of(place)
    if folder is None:
        return _load_file(place, encoder, backbone)
    if backbone is not None:
        raise UserError(f"'{place}' belongs to a run, which records its backbone. Leave out --backbone.")
    config = read_config(folder / CONFIG)
    if encoder == "slow" and not has_slow(method(config.method)):
        raise UserError(
            f"'{config.method}' has no slow encoder. Use --encoder fast, or a method that has one: "
            f"{methods_with_slow_encoder()}."
        )
    tensors, step = _weights(place, folder, encoder)
    module = backbone_called(config.backbone)
    if config.compute.precision == "fp64":
        module = module.double()
    load_weights(module, tensors, str(place))
    when = "at the end of its run" if step is None else f"after step {step}"
    return LoadedEncoder(
        module=module,
        backbone=config.backbone,
        description=f"{encoder} encoder of {config.method}, {config.backbone}, {when}",
        config=config,
        encoder=encoder,
        step=step,
    )


def fresh_encoder(backbone: str, seed: int) -> nn.Module:
    """An encoder with the initial weights that a seed gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(seed, "init").initial_seed())
        return backbone_called(backbone)


def run_folder_of(place: Path) -> Path | None:
    """The run folder at a place, or the one that a checkpoint belongs to."""
    if (place / CONFIG).is_file():
        return place
    if place.is_dir():
        raise UserError(f"'{place}' holds no run: there is no {CONFIG} in it. Give a run folder or a weights file.")
    folder = place.absolute().parent.parent
    return folder if NAME.fullmatch(place.name) and (folder / CONFIG).is_file() else None


def require_finished(place: Path, loaded: LoadedEncoder, unfinished: bool, purpose: str) -> None:
    """Refuse an unfinished run unless `unfinished` allows it; a checkpoint given by its path is always allowed."""
    if run_folder_of(place) == place and not (place / SUMMARY).exists() and not unfinished:
        raise unfinished_error(place, loaded, f"after step {loaded.step}", purpose)


def unfinished_error(place: Path, loaded: LoadedEncoder, when: str, purpose: str) -> UserError:
    """The error for an unfinished run without --unfinished."""
    assert loaded.config is not None
    return UserError(
        f"the run in '{place}' is unfinished: its newest checkpoint is {when}. Resume it with phinets "
        f"{loaded.config.command} --resume {place}, or use --unfinished to {purpose} that checkpoint."
    )


def _weights(place: Path, folder: Path, encoder: EncoderName) -> tuple[Mapping[str, Tensor], int | None]:
    """The weights of a run's backbone, and the step of the checkpoint where they come from one."""
    file = folder / BACKBONES[encoder]
    if place == folder and (folder / SUMMARY).exists() and file.exists():
        return read_weights(file).tensors, None
    state = _state(place, folder)
    prefix = "f.backbone." if encoder == "fast" else "slow.backbone."
    tensors: dict[str, Tensor] = state["learner"]
    own = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    return own, int(state["step"])


def _state(place: Path, folder: Path) -> dict[str, Any]:
    if place != folder:
        return load_checkpoint(place)
    state, _ = newest_checkpoint(folder / CHECKPOINTS)
    if state is None:
        raise UserError(f"the run in '{folder}' has no checkpoint: none is written yet, or they were removed.")
    return state


def _load_file(place: Path, encoder: EncoderName, backbone: str | None) -> LoadedEncoder:
    if encoder == "slow":
        raise UserError("a weights file holds one encoder. Leave out --encoder slow, or give the run folder.")
    weights = read_weights(place)
    name = backbone or weights.metadata.get("backbone")
    if name is None:
        raise UserError(
            f"'{place}' does not name its backbone. Name it with --backbone: a name from `phinets list backbones`, "
            "timm:NAME, or package.module.callable."
        )
    module = backbone_called(name)
    load_weights(module, weights.tensors, str(place))
    source: EncoderName = "slow" if weights.metadata.get("encoder") == "slow" else "fast"
    text = f"{name} from {place.name}"
    return LoadedEncoder(module=module, backbone=name, description=text, encoder=source, metadata=weights.metadata)


def load_learner(place: Path) -> tuple[Learner, TrainConfig, int]:
    """The learner in a checkpoint (the newest one of a run folder), the run's settings, and the checkpoint's step."""
    folder = run_folder_of(place)
    if folder is None:
        raise UserError(f"'{place}' is a weights file without heads. Give a run folder or one of its checkpoints.")
    config = read_config(folder / CONFIG)
    state = _state(place, folder)
    model = bare_learner(config)
    if config.compute.precision == "fp64":
        model = model.double()
    try:
        model.load_state_dict(state["learner"])
    except RuntimeError as error:
        raise UserError(f"the checkpoint does not fit the learner of '{folder}': {error}.") from error
    return model, config, int(state["step"])


S = TypeVar("S", bound=EncoderOptions)


def resolve_options(options: S) -> S:
    """The same options with the data's absolute path."""
    return options if options.data is None else replace(options, data=resolve_data_name(options.data))


def data_options_of(options: EncoderOptions, loaded: LoadedEncoder) -> tuple[str, DataOptions]:
    """The data's name and options; unset ones are the run's."""
    run = loaded.config
    if options.data is None and isinstance(run, ContinualConfig) and not run.stream.by_class:
        raise UserError(
            f"the tasks of this run are separate data sets ({run.data_names}). Choose one with --data, e.g. "
            "--data folder:PATH."
        )
    if options.data is None and run is None:
        raise UserError("a weights file does not name its data. Choose the images with --data, e.g. cifar10.")
    base = run.source if run is not None and options.data in (None, run.data) else DataOptions()
    source = replace(
        base,
        root=options.root or base.root,
        download=options.download or base.download,
        classes=options.classes or base.classes,
        image_size=image_size_of(options, loaded),
    )
    return options.data or (run.data if run is not None else ""), source


def image_size_of(options: EncoderOptions, loaded: LoadedEncoder) -> int:
    """The side of the encoder's input, in pixels: from the options, its run, its file, or its architecture."""
    if options.image_size is not None:
        return options.image_size
    if loaded.config is not None:
        return loaded.config.source.image_size
    size = loaded.metadata.get("image_size")
    if size is not None and not size.isdecimal():
        raise UserError(f"the file's metadata has image_size '{size}', not a number. Set it with --image-size.")
    if size is not None:
        return int(size)
    if shape := _timm_config(loaded).get("input_size"):
        return int(shape[-1])
    return 224 if has_imagenet_stem(loaded.backbone) else 32


def view_plan_of(options: EncoderOptions, loaded: LoadedEncoder) -> ViewPlan:
    """The view plan with the encoder's mean and std: from the options, its run, its file, or its architecture."""
    if loaded.config is not None and options.views is None:
        return loaded.config.plan
    name = options.views or loaded.metadata.get("views")
    plan = look_up("view plan", name or "simsiam-cifar", PLANS)
    timm = _timm_config(loaded)
    if name is None and {"mean", "std"} <= set(timm):
        return replace(plan, mean=tuple(timm["mean"]), std=tuple(timm["std"]))
    return plan


def _timm_config(loaded: LoadedEncoder) -> Mapping[str, Any]:
    """timm's own record of a model's input size, mean and std; empty for other modules."""
    config = getattr(loaded.module, "default_cfg", None)
    return config if isinstance(config, Mapping) else {}


PIXELS = 2**22
"""Most pixels per batch: 83 images of 224 × 224."""


class Encoder(nn.Module):
    """A frozen encoder with its preprocessing: pictures → float32 features (n, d) on the CPU.

    It stays in eval mode and gives no gradients.

    Attributes:
        backbone: the module that computes the features.
        num_features: the length of a feature vector.
        image_size: the side of its input, in pixels.
        batch_size: images per forward pass.
        encoder_name: "fast" or "slow".
        description: whose weights these are, in words.
    """

    def __init__(self, loaded: LoadedEncoder, plan: ViewPlan, size: int) -> None:
        super().__init__()
        self.num_features = feature_width(loaded.module, size)
        self.backbone = loaded.module.to(memory_format=torch.channels_last).requires_grad_(False)
        self.description, self.backbone_name, self.encoder_name = loaded.description, loaded.backbone, loaded.encoder
        self.plan, self.image_size = plan, size
        self.batch_size = max(1, min(BATCH_SIZE, PIXELS // size**2))
        self.eval()

    @property
    def device(self) -> torch.device:
        """The device that it computes on."""
        return next(self.backbone.parameters()).device

    def train(self, mode: bool = True) -> "Encoder":
        """Stays in eval mode, also inside a module that is trained."""
        super().train(False)
        return self

    def prepare(self, images: Tensor) -> Tensor:
        """Resize and normalize: uint8 (n, 3, h, w) → (n, 3, image_size, image_size), on its device."""
        weight = next(self.backbone.parameters())
        return prepare(images.to(weight.device), self.plan, self.image_size).to(weight.dtype)

    def forward(self, pictures: ImageInput) -> Tensor:
        """The features of one picture or of many, a batch at a time.

        Args:
            pictures: PIL images or paths of picture files, of any sizes and modes, whose central square is resized to
                `image_size`; or uint8 arrays or tensors, channels first or last; one or a sequence.

        Returns:
            float32 (n, num_features), on the CPU.

        Raises:
            UserError: where a picture can't be read or an array is not one of images.
        """
        chunks = image_batches(pictures, self.image_size, self.batch_size)
        return features(self.backbone, chunks, self.prepare, self.device).reshape(-1, self.num_features)

    def describe(self) -> str:
        """Its weights, features and input size, in words."""
        return f"{self.description}: {self.num_features} features of {self.image_size} × {self.image_size} pixels"

    def __repr__(self) -> str:
        return f"<phinets.Encoder: {self.describe()}, on {self.device}>"


def load(
    place: str | Path,
    encoder: EncoderName = "fast",
    *,
    device: str = "auto",
    backbone: str | None = None,
    image_size: int | None = None,
) -> Encoder:
    """Load a frozen encoder.

    Args:
        place: a run folder, one of its checkpoints, or a weights file (.safetensors, or a state dict). An unfinished
            run gives its newest checkpoint.
        encoder: "fast", which learned by gradients, or "slow", which followed it.
        device: "auto" (cuda, else mps, else cpu), or a torch device.
        backbone: the architecture of a weights file that does not name it (torchvision's, timm's).
        image_size: the side of its input in pixels; unset: the run's, the file's, or the architecture's.

    Returns:
        The encoder, a torch module: pictures → features (n, d).

    Raises:
        UserError: where there is no encoder at `place`, or its weights do not fit.
    """
    if encoder not in ("fast", "slow"):
        raise UserError(f"encoder is {encoder!r}, but must be 'fast' or 'slow'.")
    _require("place", place, str | os.PathLike, 'a path, e.g. "runs/first"')
    _require("device", device, str, 'a name, e.g. "cpu"')
    _require("backbone", backbone, str | None, 'a name, e.g. "resnet18"')
    _require("image_size", image_size, int | None, "a whole number of pixels, e.g. 64")
    options = EncoderOptions(encoder=encoder, backbone=backbone, device=device, image_size=image_size)
    try:
        return build_encoder(load_encoder(Path(place).expanduser(), encoder, backbone), options)
    except UserError as error:
        message = re.sub(r"--(encoder|device) (\w+)", r'\1="\2"', str(error))  # options, as arguments
        message = message.replace("--backbone", "backbone=…").replace("--image-size", "image_size=…")
        raise UserError(message) from error


def _require(name: str, value: object, kind: type | UnionType, wanted: str) -> None:
    """Refuse an argument of another type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UserError(f"{name} is {value!r} ({type(value).__name__}), but must be {wanted}.")


def build_encoder(loaded: LoadedEncoder, options: EncoderOptions) -> Encoder:
    """The encoder with its preprocessing, on its device; unset options are the run's."""
    size = image_size_of(options, loaded)
    warn_if_small(loaded.backbone, size)
    return Encoder(loaded, view_plan_of(options, loaded), size).to(pick_device(options.device))
