"""Detection transfer: an encoder's weights in a detector, trained and judged, beside fresh weights if asked for."""

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from phinets.backbones import backbone as backbone_called
from phinets.config.detection import Detection, Pictures
from phinets.config.detection_record import Arm, DetectionRecord, DetectionSummary
from phinets.config.errors import StoppedError, UserError
from phinets.config.exam import Sight
from phinets.config.launch import launched
from phinets.config.plain import differences, to_plain
from phinets.config.work import OF_DETECTORS
from phinets.data.pictures import open_picture
from phinets.detection.c4 import cut
from phinets.detection.lessons import require_whole
from phinets.detection.voc import Scenes, read_voc
from phinets.engine.device import pick_device
from phinets.engine.files import write_whole
from phinets.engine.journal import read_journal
from phinets.engine.memory import is_out_of_memory
from phinets.engine.signals import Signals
from phinets.experiments.bench import settled_place
from phinets.experiments.detection_arm import DetectionWatcher, Trial, Unwatched, carried_through, read_found
from phinets.experiments.detection_folder import (
    CURVES,
    FOUND,
    PICTURE,
    Begun,
    claim,
    read_begun,
    read_summary,
    require_free,
    require_same,
    to_json,
    write_begun,
)
from phinets.experiments.environment import environment
from phinets.experiments.folder import ENVIRONMENT, JOURNAL, SUMMARY, locked, run_folder, write_json
from phinets.experiments.sight import plan_of
from phinets.experiments.subject import Subject, require_finished, subject
from phinets.reports.detections import SURE, Seen, detections_figure, loss_figure, png
from phinets.views import random_stream

SHOWN = 4
"""Test pictures that are drawn."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A transfer before its first step, everything about it found to be possible."""

    target: Path
    config: Detection
    """With nothing left open."""
    subject: Subject
    scenes: Scenes
    device: torch.device

    @property
    def identity(self) -> dict[str, Any]:
        """What decides what is learned, plain."""
        return {**_learned(self.config), "pictures_read": self.scenes.digest(), "weights": digest(self.subject.encoder)}


def detect(
    target: Path,
    config: Detection,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    watcher: DetectionWatcher | None = None,
) -> DetectionRecord:
    """Fine-tune a detector from the encoder at a place, judge it, and leave everything in a folder.

    Whatever can be found wrong is found before the folder is made.
    """
    with Signals().heeded() as signals:
        folder = run_folder(out, "detect")
        require_free(folder, overwrite)
        made = prepared(target, config)
        with locked(folder):
            claim(folder, overwrite)
            write_begun(folder, Begun(made.target, made.config, made.identity))
            write_json(folder / ENVIRONMENT, environment(config.seed, made.device, "fp32"))
            return _finished(made, folder, signals, watcher or Unwatched())


def resume_detection(
    folder: Path, wanted: Detection | None = None, *, watcher: DetectionWatcher | None = None
) -> DetectionRecord:
    """Go on with a transfer from its last checkpoint, to the end that it would have had; a finished one is read."""
    begun = read_begun(folder)
    changed = differences(_learned(begun.config), _learned(wanted or begun.config))
    if changed:
        listed = ", ".join(f"{key} was {here}, not {there}" for key, (here, there) in changed.items())
        raise UserError(
            f"the transfer in '{folder}' was begun with other settings ({listed}). Leave them out, or begin another "
            "one with another --out."
        )
    with Signals().heeded() as signals, locked(folder):
        summary = read_summary(folder)
        if summary is not None:
            return _record(folder, replace(summary, metric=(wanted or begun.config).metric))
        made = prepared(begun.target, wanted or begun.config)
        require_same(begun.identity, made.identity)  # before a finished arm is taken over
        return _finished(made, folder, signals, watcher or Unwatched())


def prepared(target: Path, config: Detection) -> Prepared:
    """The encoder and the pictures of a transfer, or an error that says what can't be."""
    if launched().size > 1:
        raise UserError(
            "a detector is trained by one process: its batch norm then sees the whole batch, as a synchronised one of "
            "many processes would. Leave torchrun out; --accumulate saves memory."
        )
    who = subject(target, config.encoder, config.backbone)
    require_finished(target, who, config.unfinished, "transfer")
    cut(who.encoder)
    scenes = read_voc(config.pictures).drawn(config.pictures, config.seed)
    _say_what_is_missing(scenes)
    require_whole((*scenes.train, *scenes.test))
    return Prepared(
        target=target.expanduser().absolute(),
        config=replace(config, pictures=_settled(config.pictures, who)),
        subject=who,
        scenes=scenes,
        device=pick_device(config.compute.device),
    )


def _settled(pictures: Pictures, who: Subject) -> Pictures:
    """The pictures' options with their places in full, and the mean and deviation that the encoder is used to."""
    plan = plan_of(Sight(), who)
    return replace(
        pictures,
        data=settled_place(pictures.data),
        also=tuple(map(settled_place, pictures.also)),
        pixel_mean=pictures.pixel_mean or plan.mean,
        pixel_std=pictures.pixel_std or plan.std,
    )


def _say_what_is_missing(scenes: Scenes) -> None:
    """A note for classes that the drawn pictures do not show."""
    for part, which, then in (
        (scenes.train, "to learn from", "can't be learned"),
        (scenes.test, "asked about", "is left out of the mean"),
    ):
        there = {int(label) for scene in part for label in scene.truth.labels}
        gone = [name for label, name in enumerate(scenes.classes) if label not in there]
        if gone:
            warnings.warn(f"the {len(part)} pictures {which} show no {', '.join(gone)}, which {then}.", stacklevel=3)


def digest(encoder: torch.nn.Module) -> str:
    """A check sum of an encoder's weights."""
    check = sha256()
    for name, value in encoder.state_dict().items():
        check.update(name.encode())
        check.update(value.detach().cpu().contiguous().numpy().tobytes())
    return check.hexdigest()[:16]


def _learned(config: Detection) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(config)
    for key in OF_DETECTORS:
        section, _, name = key.rpartition(".")
        del (plain[section] if section else plain)[name]
    return plain


def fresh_encoder(backbone: str, seed: int) -> torch.nn.Module:
    """An encoder of the same kind that has learned nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(seed, "init").initial_seed())
        return backbone_called(backbone)


def _finished(made: Prepared, folder: Path, signals: Signals, watcher: DetectionWatcher) -> DetectionRecord:
    """Every arm carried through, and what the transfer leaves behind; the summary last, which says it is finished."""
    config, who = made.config, made.subject
    trial = Trial(
        config=config,
        backbone=who.backbone,
        scenes=made.scenes,
        device=made.device,
        identity=made.identity,
        folder=folder,
        signals=signals,
        watcher=watcher,
    )
    with _rescued(folder, config):
        arms = [carried_through(trial, "encoder", who.encoder, who.called)]
        if config.scratch:
            fresh = fresh_encoder(who.backbone, config.seed)
            arms.append(carried_through(trial, "scratch", fresh, f"{who.backbone}, fresh weights"))
        record = _record(folder, _summary(made, tuple(arms)))
        if config.compute.drawings:
            _draw(record, made)
        write_json(folder / SUMMARY, to_json(record.summary))
    return record


def _summary(made: Prepared, arms: tuple[Arm, ...]) -> DetectionSummary:
    scenes, config = made.scenes, made.config
    boxless = f" ({scenes.boxless} without a box left out)" * bool(scenes.boxless)
    return DetectionSummary(
        target=str(made.target),
        backbone=made.subject.backbone,
        data=config.pictures.data,
        classes=scenes.classes,
        train_images=len(scenes.train),
        test_images=len(scenes.test),
        metric=config.metric,
        protocol=(
            f"{scenes.lists}: {len(scenes.train)} pictures learned from{boxless}, {len(scenes.test)} asked about, "
            f"{len(scenes.classes)} classes; {config.describe()}"
        ),
        arms=arms,
        paper=scenes.benchmark,
        seconds=sum(arm.seconds for arm in arms),
    )


def _record(folder: Path, summary: DetectionSummary) -> DetectionRecord:
    journals = {arm.name: read_journal(folder / arm.name / JOURNAL) for arm in summary.arms}
    return DetectionRecord(folder=str(folder), summary=summary, journals=journals)


def _draw(record: DetectionRecord, made: Prepared) -> None:
    """curves.png, and detections.png of a few test pictures."""
    folder = Path(record.folder)
    found = {name: read_found(folder / name / FOUND) for name in record.journals}
    pictures = [
        Seen(np.asarray(open_picture(scene.path)), scene.truth, {name: every[i] for name, every in found.items()})
        for i, scene in enumerate(made.scenes.test[:SHOWN])
    ]
    title = f"true boxes, and detections with a score of {SURE} and more"
    write_whole(folder / CURVES, png(loss_figure(record)))
    write_whole(folder / PICTURE, png(detections_figure(pictures, record.summary.classes, title)))


@contextmanager
def _rescued(folder: Path, config: Detection) -> Iterator[None]:
    """Say the way on, whatever ends the work from outside; bugs of ours stay tracebacks."""
    way = f"Go on with: phinets detect --resume {shlex.quote(str(folder))}"
    try:
        yield
    except StoppedError as error:
        raise StoppedError(f"{error}. {way}", error.exit_code) from None
    except UserError as error:
        raise UserError(f"{error} {way}") from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        parts = 2 * config.compute.accumulate
        raise UserError(
            f"there is not enough memory for a batch of {config.training.batch} in {parts // 2} part(s). Begin anew "
            f"with --accumulate {parts}, smaller --train-sides or fewer --regions."
        ) from error
