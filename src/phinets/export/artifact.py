"""What is exported (`Source`), what a target makes of it (`Artifact`), and the check that both are the same encoder."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn

from phinets.backbones import feature_width
from phinets.config.errors import UserError
from phinets.config.evaluation import EncoderOptions
from phinets.config.export import ExportOptions
from phinets.config.views import ViewPlan
from phinets.evaluation.encoders import (
    LoadedEncoder,
    image_size_of,
    load_encoder,
    run_folder_of,
    unfinished_error,
    view_plan_of,
)
from phinets.runs.resume import read_json
from phinets.training.journal import read_journal
from phinets.training.run_folder import ENVIRONMENT, JOURNAL, SUMMARY
from phinets.views import prepare, random_stream

BATCH_SIZES = (1, 3)
"""Batch sizes of the comparison."""
TOLERANCE = 1e-5
"""Largest difference of features between two models in torch, relative to the largest feature, or to 1."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """An encoder in eval mode, with the records of its run."""

    place: Path
    loaded_encoder: LoadedEncoder
    folder: Path | None
    """The run folder; None for a file of weights."""
    summary: Mapping[str, Any]
    """summary.json; empty where there is none."""
    environment: Mapping[str, Any]
    """env.json."""
    size: int
    """Side of the images."""
    plan: ViewPlan
    """The view plan, for its mean and std."""
    metadata: Mapping[str, str]
    """Metadata of a file of these weights, as a run writes it; facts only, no defaults."""
    steps: int | None
    """Total steps of the run, where known."""

    @property
    def is_final(self) -> bool:
        """Whether the numbers in the run's summary are about these weights."""
        step, last = self.loaded_encoder.step, self.summary.get("steps")
        return bool(self.summary) and (step in (None, last) or (last is None and self.place == self.folder))

    @cached_property
    def encoder(self) -> nn.Module:
        """The encoder in single precision, which other libraries compute in."""
        encoder = self.loaded_encoder.module
        single = all(value.dtype == torch.float32 for value in encoder.parameters())
        return encoder if single else deepcopy(encoder).float()

    @cached_property
    def width(self) -> int:
        """Number of features; an error for an encoder that gives no feature vector."""
        return feature_width(self.encoder, self.size)

    def tensors(self) -> dict[str, Tensor]:
        """The weights by name, in single precision."""
        return {name: value.contiguous() for name, value in self.encoder.state_dict().items()}

    def images(self, n: int) -> Tensor:
        """uint8 noise (n, 3, size, size), the same at each call."""
        return torch.randint(256, (n, 3, self.size, self.size), generator=random_stream(n), dtype=torch.uint8)

    def normalize(self, images: Tensor) -> Tensor:
        """uint8 images as the encoder takes them."""
        return prepare(images, self.plan, self.size)

    def describe_step(self) -> str:
        """After which step of the run the weights were saved."""
        step = self.loaded_encoder.step
        if self.folder is None:
            return "not known: the weights came from a file"
        of = f" of {self.steps}" if self.steps else ""
        if step is None or self.is_final:
            return "the end of its run" + (f", after {self.steps} steps" if self.steps else "")
        return f"after step {step}{of}, {'before the end of its run' if self.summary else 'not finished'}"


def load_source(place: Path, options: ExportOptions) -> Source:
    """The encoder at a place with its records; refuses an unfinished run without `--unfinished`."""
    loaded_encoder = load_encoder(place, options.encoder, options.backbone)
    folder = run_folder_of(place)
    if folder is not None and options.views is not None:
        raise UserError(f"'{place}' belongs to a run, which knows its views. Leave out --views.")
    encoder_options = EncoderOptions(image_size=options.image_size, views=options.views)
    summary, environment = (
        read_json(folder / name) if folder is not None and (folder / name).exists() else {}
        for name in (SUMMARY, ENVIRONMENT)
    )
    source = Source(
        place=place,
        loaded_encoder=replace(loaded_encoder, module=loaded_encoder.module.eval().requires_grad_(False)),
        folder=folder,
        summary=summary,
        environment=environment,
        size=image_size_of(encoder_options, loaded_encoder),
        plan=view_plan_of(encoder_options, loaded_encoder),
        metadata=_metadata(loaded_encoder, options),
        steps=None if folder is None else _total_steps(folder, summary.get("steps"), loaded_encoder),
    )
    if place == folder and not source.is_final and not options.unfinished:
        raise unfinished_error(place, loaded_encoder, source.describe_step(), "export")
    return source


def _metadata(loaded_encoder: LoadedEncoder, options: ExportOptions) -> dict[str, str]:
    """What a run writes; for a file its own metadata and the options."""
    metadata, config = dict(loaded_encoder.metadata), loaded_encoder.config
    if config is not None:
        metadata = {"method": config.method, "views": config.views, "image_size": str(config.source.image_size)}
        metadata["encoder"] = loaded_encoder.encoder
    overrides = {"views": options.views, "image_size": options.image_size and str(options.image_size)}
    metadata |= {key: value for key, value in overrides.items() if value}
    return metadata | {"backbone": loaded_encoder.backbone}


def _total_steps(folder: Path, steps: int | None, loaded_encoder: LoadedEncoder) -> int | None:
    """Steps of the whole run: from its summary or, before the end, from its journal and its epochs."""
    epochs = getattr(loaded_encoder.config, "epochs", None)
    if steps is not None or epochs is None:
        return steps
    with suppress(UserError):  # a journal may be missing, or be written to at this moment
        rows = [row for row in read_journal(folder / JOURNAL) if row["kind"] == "step" and row.get("epoch")]
        return round(rows[-1]["step"] / rows[-1]["epoch"] * epochs) if rows else None
    return None


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file that is ready to be written."""

    description: str
    """Which model takes the file."""
    write: Callable[[BinaryIO], object]
    check: Callable[[Path], float]
    """Reads the file back as its user will. Gives the largest difference of features; refuses another encoder."""
    usage: str
    """The lines of code that load it."""
    language: str = "python"
    """Language of `usage`."""
    notes: tuple[str, ...] = ()
    """Sentences for the model card."""
    extra_files: Mapping[Path, str] = field(default_factory=dict)
    """Further text files."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A format that encoders are exported to."""

    suffixes: tuple[str, ...]
    """Accepted file suffixes; the first is the default."""
    options: tuple[str, ...] = ()
    """Which of the options of single targets it reads."""
    prepare: Callable[[Source, ExportOptions, Path], Artifact]


def quote(path: Path) -> str:
    """A file's name as a string of Python, for the lines that load it."""
    return json.dumps(path.name, ensure_ascii=False)


def load_strict(source: Source, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """`load_state_dict(strict=True)`, with a `UserError`."""
    try:
        model.load_state_dict(dict(tensors), strict=True)
    except RuntimeError as error:
        raise _mismatch(source, " ".join(str(error).split())) from error


def feature_difference(source: Source, model: nn.Module) -> float:
    """The largest difference between the encoder's features and those of another model in torch."""
    model.eval()
    return require_same(source, lambda images: model(source.normalize(images)))


def require_same(source: Source, extract: Callable[[Tensor], Tensor], tolerance: float = TOLERANCE) -> float:
    """The largest relative difference between the encoder's features and `extract`'s, of uint8 images.

    Raises:
        UserError: the difference is above `tolerance`, the shapes differ, or the encoder's features are not finite.
    """
    worst = 0.0
    for n in BATCH_SIZES:
        images = source.images(n)
        with torch.no_grad():
            expected, actual = source.encoder(source.normalize(images)), extract(images)
        if not expected.isfinite().all():
            raise UserError(f"the encoder in '{source.place}' gives features that are not finite: it has diverged.")
        if actual.shape != expected.shape:
            raise _mismatch(source, f"it gives {tuple(actual.shape)} instead of {tuple(expected.shape)}")
        difference = float((actual - expected).abs().max() / expected.abs().max().clamp(min=1))
        if not difference <= tolerance:
            raise _mismatch(source, f"features differ by {difference:.2g}, more than {tolerance:g}")
        worst = max(worst, difference)
    return worst


def _mismatch(source: Source, why: str) -> UserError:
    return UserError(
        f"the export of '{source.place}' is not the same encoder ({why}), so nothing was written. Use --to "
        "safetensors, which keeps the encoder as it is."
    )
