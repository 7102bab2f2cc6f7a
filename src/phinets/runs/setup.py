"""What a run is made of: everything checked and ready before anything is written."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import nn

from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError
from phinets.config.methods import EncoderName
from phinets.config.run import TrainConfig
from phinets.data import BadImages, Images
from phinets.data.home import resolve_data_name
from phinets.evaluation.evaluator import Eye
from phinets.methods import Learner
from phinets.runtime import distributed
from phinets.runtime.devices import Precision
from phinets.runtime.distributed import local_device
from phinets.training.journal import require_trackers
from phinets.training.learner import build_learner
from phinets.training.loader import ViewLoader
from phinets.training.loop import Memory
from phinets.training.optimizers import build_optimizer
from phinets.training.schedule import LearningRateSchedule, RunSchedule
from phinets.training.step import TrainState, wrap_distributed
from phinets.views import make_views, random_stream

C = TypeVar("C", bound=TrainConfig)


class KeptMemory(Memory, Protocol):
    """A memory that goes into the checkpoints."""

    def state(self) -> dict[str, Any]:
        """Everything that it remembers."""

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `state` was taken from."""


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """Everything a run is made of, checked and ready."""

    config: TrainConfig
    device: torch.device
    train_state: TrainState
    course: RunSchedule
    live: Callable[[nn.Module], float | None]
    """kNN on few images, for the eye during training; None where there are no labels."""
    bad_images: BadImages
    data: dict[str, str]
    """The fingerprint of what is learned from and asked about."""
    memory: KeptMemory | None = None

    @property
    def judged(self) -> dict[str, nn.Module]:
        """The backbones that are judged, by what their numbers' names end in."""
        learner = self.train_state.learner
        match self.config.evaluation.encoder:
            case "both":
                return {"": learner.encoder("fast"), "_slow": learner.encoder("slow")}
            case clock:
                return {"": learner.encoder(clock)}

    @property
    def kept(self) -> dict[EncoderName, nn.Module]:
        """The backbones that a run leaves behind."""
        learner = self.train_state.learner
        slow: dict[EncoderName, nn.Module] = {} if learner.slow is None else {"slow": learner.encoder("slow")}
        return {"fast": learner.encoder("fast"), **slow}


def settled(config: C) -> C:
    """The same run with nothing left open that a later day or another folder would answer otherwise."""
    root = config.source.root and str(Path(config.source.root).expanduser().absolute())
    known = replace(config.resolved, data=resolve_data_name(config.data), source=replace(config.source, root=root))
    if not isinstance(known, ContinualConfig):
        return known
    places = tuple(map(resolve_data_name, known.stream.task_data))
    appended = tuple(replace(task, data=resolve_data_name(task.data)) for task in known.appended)
    return replace(known, stream=replace(known.stream, task_data=places), appended=appended)


class Workshop(NamedTuple):
    """What a bench stands in: the device, the learner on it, and how images are shown to encoders."""

    config: TrainConfig
    precision: Precision
    learner: Learner
    eye: Eye

    def train_state(self) -> TrainState:
        """The learner and what changes its weights; called once it has all of its parts."""
        config, device = self.config, self.precision.device
        return TrainState(
            learner=self.learner,
            optimizer=build_optimizer(self.learner, config.optimization),
            precision=self.precision,
            model=wrap_distributed(self.learner, device, config.source.image_size),
        )

    def loader(self, images: Images, called: str, first_step: int = 0, first_epoch: int = 0) -> ViewLoader:
        """What shows images to the learner, from a step of the run on."""
        config = self.config
        if config.batch > len(images):
            raise UserError(
                f"the batch of {config.batch} is larger than the data: {called} gives {len(images)} training images. "
                f"Use --batch {len(images)} or less, or more --train-images."
            )
        make_views(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), config.plan, random_stream(0))  # compiles it once
        return ViewLoader(
            images=images,
            plan=config.plan,
            anchor=self.learner.anchor,
            batch=config.batch,
            seed=config.seed,
            size=config.source.image_size,
            device=self.precision.device,
            dtype=self.precision.weights,
            channels_last=config.compute.channels_last,
            parts=config.compute.accumulate,
            rank=distributed.rank(),
            ranks=distributed.world_size(),
            first_step=first_step,
            first_epoch=first_epoch,
        )

    def timetable(self, loader: ViewLoader, epochs: int) -> LearningRateSchedule:
        """When what happens in so many passes over what a feed shows."""
        return LearningRateSchedule(
            steps_per_epoch=loader.steps_per_epoch,
            epochs=epochs,
            warmup_epochs=self.config.optimization.warmup_epochs,
            peak_lr=self.config.peak_lr,
            shape=self.config.optimization.schedule,
        )


def workshop(config: TrainConfig) -> Workshop:
    """The workshop of a run, or an error that says what can't be."""
    require_trackers(config.compute.log)
    if config.compute.threads is not None:
        torch.set_num_threads(config.compute.threads)
    device = local_device(config.compute.device)
    precision = Precision(config.compute.precision, device)
    bad_images = BadImages(config.source.max_bad_images)
    eye = Eye(
        plan=config.plan, size=config.source.image_size, device=device, dtype=precision.weights, bad_images=bad_images
    )
    return Workshop(config, precision, build_learner(config, device, precision.weights), eye)
