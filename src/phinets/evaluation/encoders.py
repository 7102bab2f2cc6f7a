"""Who is judged: an encoder from a run folder, from a checkpoint, or from a file of weights."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from phinets.backbones import IMAGENET_STEM, feature_width, require_room
from phinets.backbones import backbone as backbone_called
from phinets.backbones.weights import load_weights, read_weights
from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError, look_up
from phinets.config.exam import EncoderOptions
from phinets.config.methods import EncoderName, has_slow, method
from phinets.config.run import DataOptions, TrainConfig
from phinets.config.views import PLANS, ViewPlan
from phinets.data.given import Given, given_chunks
from phinets.data.home import resolve_data_name
from phinets.evaluation.evaluator import AT_ONCE
from phinets.evaluation.features import feature_chunks
from phinets.methods import Learner
from phinets.runtime.devices import pick_device
from phinets.training.checkpoint import NAME, load_checkpoint, newest_checkpoint
from phinets.training.learner import bare_learner
from phinets.training.run_folder import BACKBONES, CHECKPOINTS, CONFIG, SUMMARY, read_config
from phinets.views import prepare


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An encoder, and what is known of where it comes from."""

    encoder: nn.Module
    backbone: str
    called: str
    """Whose weights they are, in words."""
    config: TrainConfig | None = None
    """The run that they come from."""
    clock: EncoderName = "fast"
    """Whether it is the encoder that learns by gradients, or the slow one that follows it."""
    said: Mapping[str, str]
    """What the file says of itself."""
    step: int | None = None
    """After which step of its run the checkpoint was made that they come from; unset: from the end, or from a file."""


def subject(place: Path, clock: EncoderName = "fast", backbone: str | None = None) -> Subject:
    """The encoder in a run folder, in one of its checkpoints, or in a file of weights.

    A run brings its settings; a file that does not say which encoder it fits needs `backbone`.
    """
    folder = run_of(place)
    if folder is None:
        return _of_file(place, clock, backbone)
    if backbone is not None:
        raise UserError(f"'{place}' belongs to a run, which knows its encoder. Leave out --backbone.")
    config = read_config(folder / CONFIG)
    if clock == "slow" and not has_slow(method(config.method)):
        raise UserError(
            f"'{config.method}' has no slow encoder: ask for --encoder fast, or train x-phinet, byol, moco-v2 or "
            "rm-simsiam."
        )
    tensors, step = _weights(place, folder, clock)
    encoder = backbone_called(config.backbone)
    if config.compute.precision == "fp64":
        encoder = encoder.double()
    load_weights(encoder, tensors, str(place))
    when = "at the end of its run" if step is None else f"after step {step}"
    return Subject(
        encoder=encoder,
        backbone=config.backbone,
        called=f"{clock} encoder of {config.method}, {config.backbone}, {when}",
        config=config,
        clock=clock,
        said={},
        step=step,
    )


def run_of(place: Path) -> Path | None:
    """The run folder that a place is or, as a checkpoint, belongs to."""
    if (place / CONFIG).is_file():
        return place
    if place.is_dir():
        raise UserError(f"'{place}' holds no run: there is no {CONFIG} in it. Give a run folder or a file of weights.")
    folder = place.absolute().parent.parent
    return folder if NAME.fullmatch(place.name) and (folder / CONFIG).is_file() else None


def require_finished(place: Path, who: Subject, unfinished: bool, purpose: str) -> None:
    """A checkpoint that is named is meant; the newest one of a run that was cut must be asked for."""
    if run_of(place) == place and not (place / SUMMARY).exists() and not unfinished:
        raise not_finished(place, who, f"after step {who.step}", purpose)


def not_finished(place: Path, who: Subject, when: str, purpose: str) -> UserError:
    """What is said of a run that was cut, and whose newest checkpoint nobody has asked for."""
    assert who.config is not None
    return UserError(
        f"the run in '{place}' has not come to its end: its newest checkpoint is {when}. Go on with it, phinets "
        f"{who.config.command} --resume {place}, or say --unfinished to {purpose} what it has learned so far."
    )


def _weights(place: Path, folder: Path, clock: EncoderName) -> tuple[Mapping[str, Tensor], int | None]:
    """The weights of a run's backbone; and after which step, where they are of its newest or a given checkpoint."""
    file = folder / BACKBONES[clock]
    if place == folder and (folder / SUMMARY).exists() and file.exists():
        return read_weights(file).tensors, None
    state = _state(place, folder)
    prefix = "f.backbone." if clock == "fast" else "slow.backbone."
    tensors: dict[str, Tensor] = state["learner"]
    kept = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    return kept, int(state["step"])


def _state(place: Path, folder: Path) -> dict[str, Any]:
    if place != folder:
        return load_checkpoint(place)
    state, _ = newest_checkpoint(folder / CHECKPOINTS)
    if state is None:
        raise UserError(f"the run in '{folder}' has no checkpoint: it is not made yet, or was taken away.")
    return state


def _of_file(place: Path, clock: EncoderName, backbone: str | None) -> Subject:
    if clock == "slow":
        raise UserError("a file of weights holds one encoder. Leave out --encoder slow, or give the run folder.")
    weights = read_weights(place)
    name = backbone or weights.said.get("backbone")
    if name is None:
        raise UserError(
            f"'{place}' does not say which encoder it fits. Say it with --backbone: a name (`phinets list backbones`), "
            "timm:NAME, or package.module.callable."
        )
    encoder = backbone_called(name)
    load_weights(encoder, weights.tensors, str(place))
    of: EncoderName = "slow" if weights.said.get("encoder") == "slow" else "fast"
    return Subject(encoder=encoder, backbone=name, called=f"{name} from {place.name}", clock=of, said=weights.said)


def learner_of(place: Path) -> tuple[Learner, TrainConfig, int]:
    """The learner of a run, as its newest or a given checkpoint has it; the run's settings; and the steps it made."""
    folder = run_of(place)
    if folder is None:
        raise UserError(f"'{place}' is a file of weights; the heads are in a run folder or in one of its checkpoints.")
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

LARGE, SMALL = 224, 32
"""Sides of the images that an ImageNet stem and any other are made for, in pixels."""


def settled_sight(sight: S) -> S:
    """The same with the data's place in full."""
    return sight if sight.data is None else replace(sight, data=resolve_data_name(sight.data))


def data_of(sight: EncoderOptions, who: Subject) -> tuple[str, DataOptions]:
    """The data's name and options: those of the run where nobody says otherwise."""
    run = who.config
    if sight.data is None and isinstance(run, ContinualConfig) and not run.stream.by_class:
        raise UserError(
            f"this encoder learned tasks that are data sets of their own ({run.learned_from}). Say which to look at "
            "with --data, e.g. --data folder:PATH."
        )
    if sight.data is None and run is None:
        raise UserError("a file of weights does not say which images to look at. Say it with --data, e.g. cifar10.")
    same = run is not None and sight.data in (None, run.data)
    base = run.source if run is not None and same else DataOptions()
    source = replace(
        base,
        root=sight.root or base.root,
        download=sight.download or base.download,
        classes=sight.classes or base.classes,
        image_size=size_of(sight, who),
    )
    return sight.data or (run.data if run is not None else ""), source


def size_of(sight: EncoderOptions, who: Subject) -> int:
    """The side of the images that an encoder sees, in pixels: said here, by its run or file, or by its kind."""
    if sight.image_size is not None:
        return sight.image_size
    if who.config is not None:
        return who.config.source.image_size
    said = who.said.get("image_size")
    if said is not None and not said.isdecimal():
        raise UserError(f"the file says that its images have a side of '{said}'. Say it with --image-size.")
    return int(said) if said is not None else _made_for(who)


def _made_for(who: Subject) -> int:
    """What the kind of encoder is made for."""
    card = _card(who)
    if card.get("input_size"):
        return int(card["input_size"][-1])
    return LARGE if who.backbone in IMAGENET_STEM else SMALL


def plan_of(sight: EncoderOptions, who: Subject) -> ViewPlan:
    """The view plan whose mean and std the encoder is used to: said here, by its run or file, or by its kind."""
    if who.config is not None and sight.views is None:
        return who.config.plan
    named = sight.views or who.said.get("views")
    plan = look_up("view plan", named or "simsiam-cifar", PLANS)
    card = _card(who)
    if named is None and {"mean", "std"} <= set(card):
        return replace(plan, mean=tuple(card["mean"]), std=tuple(card["std"]))
    return plan


def _card(who: Subject) -> Mapping[str, Any]:
    """What a kind of encoder says of itself: timm's name the size, the mean and the std that they are made for."""
    said = getattr(who.encoder, "default_cfg", None)
    return said if isinstance(said, Mapping) else {}


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
        """What the backbone is fed: uint8 (n, 3, h, w) → normalized (n, 3, image_size, image_size), on its device."""
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
    part: EncoderName = "fast",
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
    sight = EncoderOptions(encoder=part, backbone=backbone, device=device, image_size=image_size)
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


def encoder_of(who: Subject, sight: EncoderOptions) -> Encoder:
    """An encoder on its device, ready to be used; what `sight` leaves open is as in its run."""
    size = size_of(sight, who)
    require_room(who.backbone, size)
    return Encoder(who, plan_of(sight, who), size).to(pick_device(sight.device))
