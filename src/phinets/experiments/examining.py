"""An encoder before a judge, as the command line asks for it."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from phinets.backbones import feature_width, require_room
from phinets.config.exam import Exam
from phinets.config.run import DataOptions
from phinets.data import ImageSet, Rejects, load
from phinets.engine.device import pick_device
from phinets.experiments.judging import Embedded, Eye, require_classes, sides_protocol
from phinets.experiments.sight import data_of, plan_of, settled_sight
from phinets.experiments.subject import Subject, subject
from phinets.views import random_stream


@dataclass(frozen=True, kw_only=True)
class Examined:
    """An encoder on its device, the eye, and the labelled images on both sides."""

    place: Path
    subject: Subject
    eye: Eye
    known: ImageSet
    asked: ImageSet
    classes: tuple[str, ...]
    """The classes' names."""
    data: str
    exam: Exam

    def embedded(self) -> tuple[Embedded, Embedded]:
        """Features and labels of the known images and of those that are asked about."""
        encoder = self.subject.encoder
        sides = self.eye.embedded(self.known, encoder), self.eye.embedded(self.asked, encoder)
        self.tell_bad_images()
        return sides

    def tell_bad_images(self) -> None:
        """A note for each image that could not be used; refuses to go on where there are too many."""
        for where, why in self.eye.rejects.drain():
            warnings.warn(f"'{where}' can't be used, and its neighbour stands in for it: {why}.", stacklevel=3)
        self.eye.rejects.require_few()

    @property
    def document(self) -> dict[str, Any]:
        """Who was judged on what, for machines."""
        return {
            "target": str(self.place),
            "encoder": self.subject.clock,
            "backbone": self.subject.backbone,
            "data": self.data,
            "classes": len(self.classes),
            "image_size": self.eye.size,
            "labels": self.exam.labels,
            "bank": len(self.known),
            "queries": len(self.asked),
            "bad_images": len(self.eye.rejects.known),
            "seed": self.exam.seed,
        }

    def describe(self) -> str:
        """Whose features of which images, in words."""
        share = "" if self.exam.share == 1 else f", {self.exam.labels} of the labels (seed {self.exam.seed})"
        chosen = f" ({', '.join(self.classes)})" if self.exam.classes else ""
        sides = sides_protocol(len(self.known), len(self.asked), every=self.exam.test_images is None)
        bad = f", {len(self.eye.rejects.known)} bad ones replaced by their neighbours" * bool(self.eye.rejects.known)
        seen = f"{len(self.classes)} classes{chosen} at {self.eye.size} pixels"
        return f"{self.subject.called}; {self.data}, {seen}{share}: {sides}{bad}"


def examined(place: Path, exam: Exam) -> Examined:
    """The encoder at a place with what it is judged on: what `exam` leaves open is as in its run."""
    exam = settled_sight(exam)
    who = subject(place, exam.encoder, exam.backbone)
    name, source = _data(exam, who)
    require_room(who.backbone, source.image_size)
    feature_width(who.encoder, source.image_size)  # says at once what is wrong with an encoder that gives no features
    eye = Eye(
        plan=plan_of(exam, who),
        size=source.image_size,
        device=pick_device(exam.device),
        dtype=next(who.encoder.parameters()).dtype,
        rejects=Rejects(exam.max_bad_images),
    )
    split = load(name, source)
    known, asked = split.known.labelled.head(_bank(exam, who)), split.test.labelled
    require_classes(known.labels, asked.labels, name)
    return Examined(
        place=place,
        subject=replace(who, encoder=who.encoder.to(eye.device).to(memory_format=torch.channels_last)),
        eye=eye,
        known=known.share(exam.share, random_stream(exam.seed, "labels")),
        asked=asked,
        classes=split.classes,
        data=name,
        exam=exam,
    )


def _bank(exam: Exam, who: Subject) -> int | None:
    """How many labelled images are known: as the run's own last judgement where it is on the run's own data."""
    if exam.bank is not None or who.config is None or exam.data not in (None, who.config.data):
        return exam.bank
    return who.config.judging.final_bank


def _data(exam: Exam, who: Subject) -> tuple[str, DataOptions]:
    """The data's name and options, and as many images of each part as the exam asks for."""
    name, source = data_of(exam, who)
    return name, replace(
        source,
        train_images=_most(exam.bank, source.train_images),
        test_images=exam.test_images or source.test_images,
    )


def _most(bank: int | None, images: int | None) -> int | None:
    """How many training images are read: as many as the bank asks for, where those of the run are fewer."""
    return images if bank is None or images is None else max(bank, images)
