"""Who is judged: an encoder from a run folder, from a checkpoint, or from a file of weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from phinets.backbones import backbone as backbone_called
from phinets.backbones.weights import load_weights, read_weights
from phinets.config.errors import UserError
from phinets.config.methods import Clock, has_slow, method
from phinets.config.run import Training
from phinets.engine.checkpoint import NAME, load_checkpoint, newest_checkpoint
from phinets.experiments.bench import bare_learner
from phinets.experiments.folder import BACKBONES, CHECKPOINTS, CONFIG, SUMMARY, read_config
from phinets.methods import Learner


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An encoder, and what is known of where it comes from."""

    encoder: nn.Module
    backbone: str
    called: str
    """Whose weights they are, in words."""
    config: Training | None = None
    """The run that they come from."""
    clock: Clock = "fast"
    """Whether it is the encoder that learns by gradients, or the slow one that follows it."""
    said: Mapping[str, str]
    """What the file says of itself."""
    step: int | None = None
    """After which step of its run the checkpoint was made that they come from; unset: from the end, or from a file."""


def subject(place: Path, clock: Clock = "fast", backbone: str | None = None) -> Subject:
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


def _weights(place: Path, folder: Path, clock: Clock) -> tuple[Mapping[str, Tensor], int | None]:
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


def _of_file(place: Path, clock: Clock, backbone: str | None) -> Subject:
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
    of: Clock = "slow" if weights.said.get("encoder") == "slow" else "fast"
    return Subject(encoder=encoder, backbone=name, called=f"{name} from {place.name}", clock=of, said=weights.said)


def learner_of(place: Path) -> tuple[Learner, Training, int]:
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
