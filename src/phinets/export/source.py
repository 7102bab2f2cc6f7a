"""What is exported: an encoder, and what its run or its file says of it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from phinets.backbones import feature_width
from phinets.config.errors import UserError
from phinets.config.exam import EncoderOptions
from phinets.config.export import ExportOptions
from phinets.config.views import ViewPlan
from phinets.evaluation.encoders import Subject, not_finished, plan_of, run_of, size_of, subject
from phinets.training.journal import read_journal
from phinets.training.run_folder import ENVIRONMENT, JOURNAL, SUMMARY
from phinets.views import prepare, random_stream


@dataclass(frozen=True, kw_only=True)
class Source:
    """An encoder in eval mode, and its papers."""

    place: Path
    subject: Subject
    folder: Path | None
    """The run that it comes from."""
    summary: Mapping[str, Any]
    """summary.json, whatever it holds; empty where there is none."""
    environment: Mapping[str, Any]
    """env.json."""
    size: int
    """Side of the images."""
    plan: ViewPlan
    """The view plan, for its mean and std."""
    said: Mapping[str, str]
    """What a file of these weights says of itself, as a run writes it; nothing that is only guessed."""
    steps: int | None
    """How many steps its run has in all, where that is known."""

    @property
    def at_end(self) -> bool:
        """Whether these are the weights that the run's numbers are about."""
        step, last = self.subject.step, self.summary.get("steps")
        return bool(self.summary) and (step in (None, last) or (last is None and self.place == self.folder))

    @cached_property
    def encoder(self) -> nn.Module:
        """The encoder in single precision, which is what other houses compute with."""
        own = self.subject.encoder
        single = all(value.dtype == torch.float32 for value in own.parameters())
        return own if single else deepcopy(own).float()

    @cached_property
    def width(self) -> int:
        """How many features it gives; says at once what is wrong with an encoder that gives none."""
        return feature_width(self.encoder, self.size)

    def tensors(self) -> dict[str, Tensor]:
        """The weights by name, in single precision."""
        return {name: value.contiguous() for name, value in self.encoder.state_dict().items()}

    def images(self, n: int) -> Tensor:
        """uint8 noise (n, 3, size, size), always the same."""
        return torch.randint(256, (n, 3, self.size, self.size), generator=random_stream(n), dtype=torch.uint8)

    def normalized(self, images: Tensor) -> Tensor:
        """The images as the encoder is used to them."""
        return prepare(images, self.plan, self.size)

    def when(self) -> str:
        """Which moment of its run these weights are from, in words."""
        step = self.subject.step
        if self.folder is None:
            return "not known: the weights came from a file"
        of = f" of {self.steps}" if self.steps else ""
        if step is None or self.at_end:
            return "the end of its run" + (f", after {self.steps} steps" if self.steps else "")
        return f"after step {step}{of}, {'before the end of its run' if self.summary else 'not finished'}"


def source_of(place: Path, options: ExportOptions) -> Source:
    """The encoder at a place with its papers; refuses a run that is not finished, unless told to take it."""
    who = subject(place, options.encoder, options.backbone)
    folder = run_of(place)
    if folder is not None and options.views is not None:
        raise UserError(f"'{place}' belongs to a run, which knows its views. Leave out --views.")
    sight = EncoderOptions(image_size=options.image_size, views=options.views)
    summary = {} if folder is None else _json(folder / SUMMARY)
    source = Source(
        place=place,
        subject=replace(who, encoder=who.encoder.eval().requires_grad_(False)),
        folder=folder,
        summary=summary,
        environment={} if folder is None else _json(folder / ENVIRONMENT),
        size=size_of(sight, who),
        plan=plan_of(sight, who),
        said=_said(who, options),
        steps=None if folder is None else _steps(folder, summary.get("steps"), who),
    )
    _require_end(source, options.unfinished)
    return source


def _require_end(source: Source, unfinished: bool) -> None:
    """A checkpoint that is named is meant; the newest one of a cut run must be asked for."""
    if source.place == source.folder and not source.at_end and not unfinished:
        raise not_finished(source.place, source.subject, source.when(), "export")


def _said(who: Subject, options: ExportOptions) -> dict[str, str]:
    """As `Session` writes it for a run; for a file what it says already, and what the person adds."""
    known = dict(who.said)
    if who.config is not None:
        size = str(who.config.source.image_size)
        known = {"method": who.config.method, "views": who.config.views, "image_size": size, "encoder": who.clock}
    told = {"views": options.views, "image_size": options.image_size and str(options.image_size)}
    return known | {key: value for key, value in told.items() if value} | {"backbone": who.backbone}


def _steps(folder: Path, said: int | None, who: Subject) -> int | None:
    """How many steps a run has in all: its summary says it or, before the end, its pace and its epochs."""
    epochs = getattr(who.config, "epochs", None)
    if said is not None or epochs is None:
        return said
    with suppress(UserError):  # a journal may be missing, or be written to at this very moment
        rows = [row for row in read_journal(folder / JOURNAL) if row["kind"] == "step" and row.get("epoch")]
        return round(rows[-1]["step"] / rows[-1]["epoch"] * epochs) if rows else None
    return None


def _json(path: Path) -> dict[str, Any]:
    """One JSON object, or nothing where there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' can't be read: {error}. Mend it, or take it away.") from error
    if not isinstance(found, dict):
        raise UserError(f"'{path}' should hold one JSON object, not {str(found)[:40]}.")
    return found
