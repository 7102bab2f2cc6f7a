"""One detector of a detection transfer, from its first weights to its average precision."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import SIGTERM
from time import perf_counter
from typing import Any, Protocol, get_args

import numpy as np
from safetensors.torch import save
from torch import Tensor, device, nn

from phinets.config.detection import Detection, MetricName
from phinets.config.detection_record import Arm, Precision
from phinets.config.errors import StoppedError
from phinets.config.plain import without
from phinets.detection.average_precision import Precisions, average_precision
from phinets.detection.boxes import Found
from phinets.detection.c4 import Detector, fresh_detector
from phinets.detection.lessons import Lessons, show
from phinets.detection.voc import Scenes
from phinets.engine.checkpoint import Keeper, newest_checkpoint, set_aside
from phinets.engine.detecting import DetectorLoop, DetectorTrainee, detector_trainee
from phinets.engine.feed import ahead
from phinets.engine.files import write_whole
from phinets.engine.journal import Journal, read_journal
from phinets.engine.signals import Signals
from phinets.experiments.detection_folder import ABOUT, FOUND, RESULT, WEIGHTS, read_arm, require_same, to_json
from phinets.experiments.folder import CHECKPOINTS, JOURNAL, write_json

ELSEWHERE = ("pictures_read", "weights", "pictures.data", "pictures.also", "scratch")
"""What the weights' file does not say: where the pictures lie, what they and the encoder were, and other arms."""


class DetectionWatcher(Protocol):
    """Who looks on."""

    def began(self, folder: Path, arm: str, steps: int, done: int) -> None:
        """A detector begins to learn, or goes on after `done` of its `steps`."""

    def stepped(self, row: Mapping[str, Any]) -> None:
        """The newest line of the journal."""

    def asked(self, pictures: int, of: int) -> None:
        """So many of the test pictures are looked at."""

    def told(self, text: str) -> None:
        """A sentence for a person."""


class Unwatched:
    """A watcher that says nothing."""

    def began(self, folder: Path, arm: str, steps: int, done: int) -> None:
        """Nothing."""

    def stepped(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def asked(self, pictures: int, of: int) -> None:
        """Nothing."""

    def told(self, text: str) -> None:
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
    watcher: DetectionWatcher


def carried_through(trial: Trial, name: str, encoder: nn.Module, called: str) -> Arm:
    """Train one detector from where it stands, judge it and write what it leaves; a finished one is only read."""
    folder = trial.folder / name
    known = read_arm(folder)
    if known is not None:
        return known
    began = perf_counter()
    (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
    config = trial.config
    fresh = fresh_detector(encoder, len(trial.scenes.classes), config.proposals, config.seed)
    trainee = detector_trainee(fresh, config.training, trial.device)
    before = _trained(trial, name, trainee, began)
    found = found_in(trial, trainee.detector)
    _keep(trial, name, trainee.detector, found)
    losses = [row["loss"] for row in read_journal(folder / JOURNAL)]
    tenth = max(1, len(losses) // 10)
    arm = Arm(
        name=name,
        called=called,
        precision=precisions(trial.scenes, found),
        loss_first=float(np.mean(losses[:tenth])),
        loss_last=float(np.mean(losses[-tenth:])),
        seconds=before + perf_counter() - began,
    )
    write_json(folder / RESULT, to_json(arm))
    return arm


def _trained(trial: Trial, name: str, trainee: DetectorTrainee, began: float) -> float:
    """Train to the end; the seconds that earlier sessions took."""
    folder, config = trial.folder / name, trial.config
    state = _restored(trial, folder, trainee)
    before = 0.0 if state is None else float(state["seconds"])
    done = 0 if state is None else int(state["step"])
    trial.watcher.began(folder, name, config.training.iterations, done)
    keeper = Keeper(folder / CHECKPOINTS, config.compute.saving, steps_per_epoch=1)
    with Journal(folder / JOURNAL, at=0 if state is None else state["journal"]) as journal:

        def kept(step: int) -> None:
            run = {"run": trial.identity, "seconds": before + perf_counter() - began, "journal": journal.settled()}
            keeper.save(step, {**trainee.state(), **run})

        lessons = Lessons(
            scenes=trial.scenes.train, seen=config.pictures, batch=config.training.batch, seed=config.seed
        )
        loop = DetectorLoop(
            trainee=trainee,
            lesson=lessons.batch_of,
            how=config.training,
            accumulate=config.compute.accumulate,
            seed=config.seed,
            journal=journal,
            keeper=keeper,
            save=kept,
            stop=lambda: trial.signals.received is not None,
            watch=trial.watcher.stepped,
        )
        with trial.signals.deferred():
            done = loop.run(done)
    if loop.stopped:
        by = trial.signals.received or SIGTERM
        raise StoppedError(f"stopped by {by.name} after step {done} of the detector '{name}'", 128 + by)
    return before


def _restored(trial: Trial, folder: Path, trainee: DetectorTrainee) -> dict[str, Any] | None:
    """Bring the trainee to its newest checkpoint, and give that, where there is one."""
    state, refused = newest_checkpoint(folder / CHECKPOINTS)
    set_aside(refused)
    for reason in refused.values():
        trial.watcher.told(f"{reason} The one before it is used.")
    if state is not None:
        require_same(state["run"], trial.identity)
        trainee.restore(state)
    return state


def found_in(trial: Trial, detector: Detector) -> list[Found]:
    """What a detector finds on every test picture, one at a time, in the picture's own pixels."""
    seen, scenes = trial.config.pictures, trial.scenes.test
    shown = ahead(partial(show, scene, seen, seen.test_side) for scene in scenes)
    found: list[Found] = []
    for scene, picture in zip(scenes, shown, strict=True):
        found.append(in_own_pixels(detector, picture.pixels, scene.width, scene.height, trial.device))
        trial.watcher.asked(len(found), len(scenes))
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
    write_whole(folder / WEIGHTS, save(weights, {ABOUT: json.dumps(about, sort_keys=True)}))
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
