"""Which images an encoder is shown, and how: as its run did, where nobody says otherwise."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from phinets.backbones import IMAGENET_STEM
from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError, look_up
from phinets.config.exam import Sight
from phinets.config.run import DataOptions
from phinets.config.views import PLANS, ViewPlan
from phinets.experiments.bench import settled_place
from phinets.experiments.subject import Subject

S = TypeVar("S", bound=Sight)

LARGE, SMALL = 224, 32
"""Sides of the images that an ImageNet stem and any other are made for, in pixels."""


def settled_sight(sight: S) -> S:
    """The same with the data's place in full."""
    return sight if sight.data is None else replace(sight, data=settled_place(sight.data))


def data_of(sight: Sight, who: Subject) -> tuple[str, DataOptions]:
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


def size_of(sight: Sight, who: Subject) -> int:
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


def plan_of(sight: Sight, who: Subject) -> ViewPlan:
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
