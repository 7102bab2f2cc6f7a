"""Detection transfer: an encoder's weights in a detector, trained and judged, beside fresh weights if asked for."""

import json
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from signal import SIGTERM
from time import perf_counter
from typing import Any, Protocol, get_args

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, device, nn

from phinets.backbones import backbone as backbone_called
from phinets.config.detection import Detection, MetricName, Pictures
from phinets.config.detection_record import Arm, DetectionRecord, DetectionSummary, Precision
from phinets.config.errors import StoppedError, UserError
from phinets.config.exam import EncoderOptions
from phinets.config.plain import differences, to_plain, without
from phinets.config.work import OF_DETECTORS
from phinets.data.home import resolve_data_name
from phinets.data.pictures import open_picture
from phinets.detection.average_precision import Precisions, average_precision
from phinets.detection.boxes import Found
from phinets.detection.c4 import Detector, cut, fresh_detector
from phinets.detection.lessons import Lessons, require_whole, show
from phinets.detection.voc import Scenes, read_voc
from phinets.evaluation.encoders import Subject, plan_of, require_finished, subject
from phinets.reports.detections import SURE, Seen, detections_figure, loss_figure, png
from phinets.runs.detect_folder import (
    ABOUT,
    CURVES,
    FOUND,
    PICTURE,
    RESULT,
    WEIGHTS,
    Begun,
    claim,
    read_arm,
    read_begun,
    read_summary,
    require_free,
    require_same,
    to_json,
    write_begun,
)
from phinets.runtime.devices import is_out_of_memory, pick_device
from phinets.runtime.environment import environment
from phinets.runtime.files import atomic_write
from phinets.runtime.process import launched
from phinets.runtime.signals import Signals
from phinets.training.checkpoint import Keeper, newest_checkpoint, set_aside
from phinets.training.detector import DetectorLoop, DetectorTrainState, detector_train_state
from phinets.training.journal import Journal, read_journal
from phinets.training.loader import ahead
from phinets.training.run_folder import CHECKPOINTS, ENVIRONMENT, JOURNAL, SUMMARY, locked, run_folder, write_json
from phinets.views import random_stream


class DetectionCallback(Protocol):
    """Who looks on."""

    def on_start(self, folder: Path, arm: str, steps: int, done: int) -> None:
        """A detector begins to learn, or goes on after `done` of its `steps`."""

    def on_step(self, row: Mapping[str, Any]) -> None:
        """The newest line of the journal."""

    def asked(self, pictures: int, of: int) -> None:
        """So many of the test pictures are looked at."""

    def on_message(self, text: str) -> None:
        """A sentence for a person."""


class Unwatched:
    """A watcher that says nothing."""

    def on_start(self, folder: Path, arm: str, steps: int, done: int) -> None:
        """Nothing."""

    def on_step(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def asked(self, pictures: int, of: int) -> None:
        """Nothing."""

    def on_message(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What all detectors of a transfer share."""

    config: Detection
    backbone: str
    """The encoder's kind, by name."""
    scenes: Scenes
    device: device
    identity: dict[str, Any]
    """What decides what is learned, plain: settings, pictures and the encoder's weights."""
    folder: Path
    signals: Signals
    callback: DetectionCallback


def carried_through(trial: Trial, name: str, encoder: nn.Module, called: str) -> Arm:
    """Train one detector from where it stands, judge it and write what it leaves; a finished one is only read."""
    folder = trial.folder / name
    known = read_arm(folder)
    if known is not None:
        return known
    on_start = perf_counter()
    (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
    config = trial.config
    fresh = fresh_detector(encoder, len(trial.scenes.classes), config.proposals, config.seed)
    train_state = detector_train_state(fresh, config.training, trial.device)
    before = _trained(trial, name, train_state, on_start)
    found = found_in(trial, train_state.detector)
    _keep(trial, name, train_state.detector, found)
    losses = [row["loss"] for row in read_journal(folder / JOURNAL)]
    tenth = max(1, len(losses) // 10)
    arm = Arm(
        name=name,
        called=called,
        precision=precisions(trial.scenes, found),
        loss_first=float(np.mean(losses[:tenth])),
        loss_last=float(np.mean(losses[-tenth:])),
        seconds=before + perf_counter() - on_start,
    )
    write_json(folder / RESULT, to_json(arm))
    return arm


def _trained(trial: Trial, name: str, train_state: DetectorTrainState, on_start: float) -> float:
    """Train to the end; the seconds that earlier sessions took."""
    folder, config = trial.folder / name, trial.config
    state = _restored(trial, folder, train_state)
    before = 0.0 if state is None else float(state["seconds"])
    done = 0 if state is None else int(state["step"])
    trial.callback.on_start(folder, name, config.training.iterations, done)
    keeper = Keeper(folder / CHECKPOINTS, config.compute.saving, steps_per_epoch=1)
    with Journal(folder / JOURNAL, at=0 if state is None else state["journal"]) as journal:

        def kept(step: int) -> None:
            run = {"run": trial.identity, "seconds": before + perf_counter() - on_start, "journal": journal.settled()}
            keeper.save(step, {**train_state.state(), **run})

        lessons = Lessons(
            scenes=trial.scenes.train, seen=config.pictures, batch=config.training.batch, seed=config.seed
        )
        loop = DetectorLoop(
            train_state=train_state,
            lesson=lessons.batch_of,
            how=config.training,
            accumulate=config.compute.accumulate,
            seed=config.seed,
            journal=journal,
            keeper=keeper,
            save=kept,
            stop=lambda: trial.signals.received is not None,
            watch=trial.callback.on_step,
        )
        with trial.signals.deferred():
            done = loop.run(done)
    if loop.stopped:
        by = trial.signals.received or SIGTERM
        raise StoppedError(f"stopped by {by.name} after step {done} of the detector '{name}'", 128 + by)
    return before


def _restored(trial: Trial, folder: Path, train_state: DetectorTrainState) -> dict[str, Any] | None:
    """Bring the trainee to its newest checkpoint, and give that, where there is one."""
    state, refused = newest_checkpoint(folder / CHECKPOINTS)
    set_aside(refused)
    for reason in refused.values():
        trial.callback.on_message(f"{reason} The one before it is used.")
    if state is not None:
        require_same(state["run"], trial.identity)
        train_state.restore(state)
    return state


def found_in(trial: Trial, detector: Detector) -> list[Found]:
    """What a detector finds on every test picture, one at a time, in the picture's own pixels."""
    seen, scenes = trial.config.pictures, trial.scenes.test
    shown = ahead(partial(show, scene, seen, seen.test_side) for scene in scenes)
    found: list[Found] = []
    for scene, picture in zip(scenes, shown, strict=True):
        found.append(in_own_pixels(detector, picture.pixels, scene.width, scene.height, trial.device))
        trial.callback.asked(len(found), len(scenes))
    return found


def in_own_pixels(detector: Detector, pixels: Tensor, width: int, height: int, where: device) -> Found:
    """What a detector finds on one picture as it sees it (3, h, w), told in pixels of width × height."""
    (found,) = detector.find([pixels.to(where)])
    scale = np.array([width / pixels.shape[2], height / pixels.shape[1]])
    return found._replace(boxes=found.boxes * np.tile(scale, 2))


def precisions(scenes: Scenes, found: Sequence[Found]) -> dict[str, Precision]:
    """Average precision in percent by every metric."""
    truths = [scene.truth for scene in scenes.test]
    return {
        metric: _percent(average_precision(truths, found, len(scenes.classes), metric), scenes.classes)
        for metric in get_args(MetricName)
    }


def _percent(of: Precisions, classes: tuple[str, ...]) -> Precision:
    return Precision(
        ap=_number(of.ap),
        ap50=_number(of.ap50),
        ap75=_number(of.ap75),
        per_class=dict(zip(classes, map(_number, of.per_class), strict=True)),
        per_class50=dict(zip(classes, map(_number, of.table[0]), strict=True)),
    )


def _number(share: float) -> float | None:
    return None if np.isnan(share) else 100.0 * float(share)


def _keep(trial: Trial, name: str, detector: Detector, found: Sequence[Found]) -> None:
    """Weights and detections, each in a file that says what it is."""
    folder, classes = trial.folder / name, trial.scenes.classes
    weights = {key: value.contiguous().cpu() for key, value in detector.state_dict().items()}
    settings = without(trial.identity, ELSEWHERE)
    about = {"arm": name, "backbone": trial.backbone, "classes": classes, "detection": settings}
    atomic_write(folder / WEIGHTS, save(weights, {ABOUT: json.dumps(about, sort_keys=True)}))
    pictures = [
        {"picture": scene.path.name, **{key: value.tolist() for key, value in one._asdict().items()}}
        for scene, one in zip(trial.scenes.test, found, strict=True)
    ]
    write_json(folder / FOUND, {"classes": list(classes), "pictures": pictures})


def read_found(path: Path) -> list[Found]:
    """What `found.json` holds: boxes in the pictures' own pixels, from 0 and half-open."""
    pictures = json.loads(path.read_text(encoding="utf-8"))["pictures"]
    return [
        Found(
            np.array(one["boxes"], np.float64).reshape(-1, 4),
            np.array(one["labels"], np.int64),
            np.array(one["scores"], np.float64),
        )
        for one in pictures
    ]


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
    callback: DetectionCallback | None = None,
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
            return _finished(made, folder, signals, callback or Unwatched())


def resume_detection(
    folder: Path, wanted: Detection | None = None, *, callback: DetectionCallback | None = None
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
        return _finished(made, folder, signals, callback or Unwatched())


def prepared(target: Path, config: Detection) -> Prepared:
    """The encoder and the pictures of a transfer, or an error that says what can't be."""
    if launched().size > 1:
        raise UserError(
            "a detector is trained by one process: its batch norm then sees the whole batch, as a synchronized one of "
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
    plan = plan_of(EncoderOptions(), who)
    return replace(
        pictures,
        data=resolve_data_name(pictures.data),
        also=tuple(map(resolve_data_name, pictures.also)),
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


def _finished(made: Prepared, folder: Path, signals: Signals, callback: DetectionCallback) -> DetectionRecord:
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
        callback=callback,
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
    atomic_write(folder / CURVES, png(loss_figure(record)))
    atomic_write(folder / PICTURE, png(detections_figure(pictures, record.summary.classes, title)))


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


ELSEWHERE = ("pictures_read", "weights", "pictures.data", "pictures.also", "scratch")
"""What the weights' file does not say: where the pictures lie, what they and the encoder were, and other arms."""
