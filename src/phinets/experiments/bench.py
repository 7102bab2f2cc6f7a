"""What a run is made of: everything checked and ready before anything is written."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from phinets import team
from phinets.config.errors import UserError
from phinets.config.methods import Clock
from phinets.config.run import RunConfig, Training
from phinets.data import Rejects, Split, fingerprint, load
from phinets.engine.course import Course, Leg
from phinets.engine.device import Precision
from phinets.engine.distributed import distributed, own_device
from phinets.engine.feed import Feed
from phinets.engine.norms import synchronise_norms
from phinets.engine.optimisers import build_optimiser
from phinets.engine.schedules import Timetable
from phinets.engine.trackers import require_trackers
from phinets.engine.trainee import Trainee
from phinets.experiments.judging import Eye, Judge
from phinets.methods import Learner, learner
from phinets.views import make_views, random_stream


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything a run is made of, checked and ready."""

    config: RunConfig
    device: torch.device
    trainee: Trainee
    course: Course
    judge: Judge
    rejects: Rejects
    data: dict[str, str]
    """The fingerprint of what is learned from and asked about."""

    @property
    def judged(self) -> dict[str, nn.Module]:
        """The backbones that are judged, by what their numbers' names end in."""
        learner = self.trainee.learner
        match self.config.judging.judged_encoder:
            case "both":
                return {"": learner.encoder("fast"), "_slow": learner.encoder("slow")}
            case clock:
                return {"": learner.encoder(clock)}

    @property
    def kept(self) -> dict[Clock, nn.Module]:
        """The backbones that a run leaves behind."""
        learner = self.trainee.learner
        slow: dict[Clock, nn.Module] = {} if learner.slow is None else {"slow": learner.encoder("slow")}
        return {"fast": learner.encoder("fast"), **slow}


def settled(config: RunConfig) -> RunConfig:
    """The same run with nothing left open that a later day or another folder would answer otherwise."""
    root = config.source.root and str(Path(config.source.root).expanduser().absolute())
    return replace(config.resolved, data=settled_place(config.data), source=replace(config.source, root=root))


def settled_place(data: str) -> str:
    """The name of data, and where they lie in full where they have a place."""
    kind, colon, place = data.partition(":")
    if colon and kind == "stream":
        return f"stream:{settled_place(place)}"
    return f"{kind}:{Path(place).expanduser().absolute()}" if colon else data


def set_up(config: RunConfig) -> Bench:
    """The bench of a run, or an error that says what can't be."""
    require_trackers(config.compute.log)
    if config.compute.threads is not None:
        torch.set_num_threads(config.compute.threads)
    device = own_device(config.compute.device)
    precision = Precision(config.compute.precision, device)
    model = build_learner(config, device, precision.weights)
    split = load(config.data, config.source)
    feed = _feed(config, split, model, precision)
    rejects = Rejects(config.source.max_bad_images)
    eye = Eye(plan=config.plan, size=config.source.image_size, device=device, dtype=precision.weights, rejects=rejects)
    trainee = Trainee(
        learner=model,
        optimiser=build_optimiser(model, config.optimisation),
        precision=precision,
        model=distributed(model, device, config.source.image_size),
    )
    return Bench(
        config=config,
        device=device,
        trainee=trainee,
        course=Course((Leg(feed, timetable(config, feed, config.epochs)),)),
        judge=Judge(split=split, eye=eye, protocol=config.judging),
        rejects=rejects,
        data=fingerprint(split),
    )


def build_learner(config: RunConfig, device: torch.device, dtype: torch.dtype) -> Learner:
    """The learner with the weights that the seed gives, on its device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(config.seed, "init").initial_seed())
        size = config.source.image_size
        model = learner(config.method, backbone=config.backbone, image_size=size, options=config.learner)
    model = model.to(device, dtype)
    if team.size() > 1:
        synchronise_norms(model, device)
    if config.compute.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if config.compute.compile:
        _compile(model, config.source.image_size, device, dtype)
    return model


def _compile(model: Learner, size: int, device: torch.device, dtype: torch.dtype) -> None:
    """Compile the encoders, and try f once, so that a machine that can't is found out before anything is written."""
    for encoder in filter(None, (model.f, model.slow)):
        encoder.compile()
    try:
        with torch.no_grad():
            model.f.eval()(torch.zeros(2, 3, size, size, device=device, dtype=dtype))
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(f"torch.compile does not work here: {first}. Leave out --compile.") from error
    finally:
        model.train()


def timetable(config: Training, feed: Feed, epochs: int) -> Timetable:
    """When what happens in so many passes over what a feed shows."""
    return Timetable(
        steps_per_epoch=feed.steps_per_epoch,
        epochs=epochs,
        warmup_epochs=config.optimisation.warmup_epochs,
        peak_lr=config.peak_lr,
        shape=config.optimisation.schedule,
    )


def _feed(config: RunConfig, split: Split, model: Learner, precision: Precision) -> Feed:
    if config.batch > len(split.train):
        raise UserError(
            f"the batch of {config.batch} is larger than the data: '{config.data}' gives {len(split.train)} training "
            f"images. Use --batch {len(split.train)} or less, or more --train-images."
        )
    make_views(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), config.plan, random_stream(0))  # compiles what is not yet
    return Feed(
        images=split.train.images,
        plan=config.plan,
        anchor=model.anchor,
        batch=config.batch,
        seed=config.seed,
        size=config.source.image_size,
        device=precision.device,
        dtype=precision.weights,
        channels_last=config.compute.channels_last,
        parts=config.compute.accumulate,
        rank=team.rank(),
        ranks=team.size(),
    )
