"""Detection transfer: fine-tune a detector from an encoder and test it, beside one from fresh weights on request."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol, cast, get_args

import numpy as np
import torch
import yaml
from torch import nn

from phinets.backbones.weights import encoder_checksum
from phinets.config.detection import (
    AveragePrecision,
    DetectionConfig,
    DetectionRecord,
    DetectionSummary,
    DetectorResult,
    ImageOptions,
    MetricName,
)
from phinets.config.errors import UserError
from phinets.config.evaluation import EncoderOptions
from phinets.config.jobs import DETECTION_FREE
from phinets.config.plain import differences, from_plain, to_plain, without
from phinets.data.decode import open_picture
from phinets.data.locations import resolve_data_name
from phinets.detection.average_precision import Detections, average_precision, summarize_precision
from phinets.detection.c4 import Detector, fresh_detector, split_encoder
from phinets.detection.inference import DETECTORS, WEIGHTS, detect_image, save_detector
from phinets.detection.loader import DetectionLoader, load_sample, require_readable
from phinets.detection.voc import DetectionData, read_voc
from phinets.evaluation.encoders import LoadedEncoder, fresh_encoder, load_encoder, require_finished, view_plan_of
from phinets.reports.detections import MIN_SCORE, ImageDetections, detections_figure, loss_figure
from phinets.reports.figures import png
from phinets.runs.resume import describe_changes, last_state, read_json, read_summary, with_resume_hint
from phinets.runs.trainer import BaseTrainer, Silent, StepCallback, report_drawing_errors
from phinets.runtime.devices import Precision, pick_device
from phinets.runtime.environment import environment
from phinets.runtime.files import atomic_write, write_json, write_text
from phinets.runtime.process import OutputGuard, Signals, launch_info
from phinets.training.checkpoint import Keeper
from phinets.training.detector import DetectorSchedule, detector_train_state
from phinets.training.journal import Journal, read_journal
from phinets.training.loader import prefetch
from phinets.training.loop import Loop, Pace
from phinets.training.run_folder import (
    CHECKPOINTS,
    ENVIRONMENT,
    JOURNAL,
    SUMMARY,
    claim_folder,
    lock_folder,
    read_yaml,
    require_free,
    run_folder,
)

DETECTION_CONFIG = "detection.yaml"
RESULT, DETECTIONS = "result.json", "detections.json"
"""Files of each detector, beside its journal, checkpoints and weights; the result is written last."""
CURVES, FIGURE = "curves.png", "detections.png"
DETECTION_FILES = (DETECTION_CONFIG, ENVIRONMENT, *DETECTORS, CURVES, FIGURE, SUMMARY)
"""What a detection transfer writes, and all that --overwrite deletes."""
NOT_IN_WEIGHTS = ("image_checksums", "weights", "images.data", "images.extra_data", "scratch")
"""Left out of the metadata of the weights: paths, checksums, and the other detector."""
FIGURE_IMAGES = 4
"""Test images in the figure."""


class DetectionCallback(StepCallback, Protocol):
    """Receives the events of a detection transfer."""

    def on_start(self, folder: Path, config: DetectionConfig, steps: int, done: int) -> None:
        """The training of a detector starts in its folder, or resumes after `done` of its `steps`."""

    def on_test(self, done: int, total: int) -> None:
        """`done` of the test images are evaluated."""


class SilentDetection(Silent):
    """A callback that does nothing. Override what you need."""

    def on_test(self, done: int, total: int) -> None:
        """Nothing."""


class StartRecord(NamedTuple):
    """The content of detection.yaml."""

    target: Path
    config: DetectionConfig
    identity: Mapping[str, Any]
    """What decides the result: settings, and checksums of images and encoder."""


@dataclass(frozen=True, kw_only=True)
class DetectionRun:
    """A detection transfer, checked and ready."""

    target: Path
    config: DetectionConfig
    """Resolved."""
    encoder: LoadedEncoder
    data: DetectionData
    device: torch.device

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What decides the result, as plain values."""
        checksums = {"image_checksums": self.data.digest(), "weights": encoder_checksum(self.encoder.module)}
        return {**_learning_settings(self.config), **checksums}


def detect(
    target: Path,
    config: DetectionConfig,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    callback: DetectionCallback | None = None,
) -> DetectionRecord:
    """Fine-tune a detector from an encoder and test it.

    Args:
        target: a run folder, one of its checkpoints, or a file of weights.
        config: images, proposals, training.
        out: the folder of the results; None: a new one under runs/.
        overwrite: whether an older detection transfer in the folder may be replaced.
        callback: receives training events.

    Returns:
        The record of the finished transfer.

    Raises:
        UserError: the encoder, the images or the folder can't be used; checked before the folder is created.
    """
    with Signals().handled() as signals:
        require_free(out, overwrite, DETECTION_FILES)
        run = build_detection(target, config)
        folder = run_folder(out, "detect")
        with claim_folder(folder, overwrite, DETECTION_FILES):
            start = {"target": str(run.target), "detection": to_plain(run.config), "identity": run.identity}
            write_text(folder / DETECTION_CONFIG, yaml.safe_dump(start, sort_keys=False, allow_unicode=True))
            write_json(folder / ENVIRONMENT, environment(config.seed, Precision("fp32", run.device)))
            return _fit(run, folder, signals, callback or SilentDetection())


def resume_detection(
    folder: Path, wanted: DetectionConfig | None = None, *, callback: DetectionCallback | None = None
) -> DetectionRecord:
    """Resume from the last checkpoint; the result is that of an uninterrupted run. A finished one is only read."""
    start = read_start(folder)
    config = wanted or start.config
    changed = differences(_learning_settings(start.config), _learning_settings(config))
    if changed:
        raise UserError(
            f"the run in '{folder}' has other settings ({describe_changes(changed)}). Leave these options out, or "
            "start another run with another --out."
        )
    with Signals().handled() as signals, lock_folder(folder):
        if (folder / SUMMARY).exists():
            return _record(folder, replace(read_summary(DetectionSummary, folder / SUMMARY), metric=config.metric))
        run = build_detection(start.target, config)
        _require_same(start.identity, run.identity)  # before the result of a finished detector is used
        return _fit(run, folder, signals, callback or SilentDetection())


def read_start(folder: Path) -> StartRecord:
    """The encoder's place, the settings and the identity of a started transfer."""
    path = folder / DETECTION_CONFIG
    if not path.is_file():
        raise UserError(f"'{folder}' holds no detection transfer to resume: it has no {DETECTION_CONFIG}.")
    try:
        plain = read_yaml(path)
        config = from_plain(DetectionConfig, plain["detection"])
        return StartRecord(Path(plain["target"]), config, plain.get("identity") or {})
    except (KeyError, TypeError, UserError) as error:
        raise UserError(f"'{path}' can't be read: {error}") from error


def build_detection(target: Path, config: DetectionConfig) -> DetectionRun:
    """Load and check the encoder and the images."""
    if launch_info().size > 1:
        raise UserError(
            "a detector is trained by one process: its batch norm then sees the whole batch, as a synchronized one of "
            "several processes would. Leave out torchrun; --accumulate saves memory."
        )
    encoder = load_encoder(target, config.encoder, config.backbone)
    require_finished(target, encoder, config.unfinished, "transfer")
    split_encoder(encoder.module)
    data = read_voc(config.images).sample(config.images, config.seed)
    _warn_of_missing_classes(data)
    require_readable((*data.train, *data.test))
    return DetectionRun(
        target=target.expanduser().absolute(),
        config=replace(config, images=_resolve(config.images, encoder)),
        encoder=encoder,
        data=data,
        device=pick_device(config.compute.device),
    )


def _resolve(options: ImageOptions, encoder: LoadedEncoder) -> ImageOptions:
    """Absolute paths, and the mean and std of the encoder's view plan."""
    plan = view_plan_of(EncoderOptions(), encoder)
    return replace(
        options,
        data=resolve_data_name(options.data),
        extra_data=tuple(map(resolve_data_name, options.extra_data)),
        pixel_mean=options.pixel_mean or plan.mean,
        pixel_std=options.pixel_std or plan.std,
    )


def _warn_of_missing_classes(data: DetectionData) -> None:
    for images, split, effect in (
        (data.train, "training", "can't be learned"),
        (data.test, "test", "is left out of the mean"),
    ):
        present = {int(label) for image in images for label in image.truth.labels}
        missing = [name for label, name in enumerate(data.classes) if label not in present]
        if missing:
            names = ", ".join(missing)
            warnings.warn(f"the {len(images)} {split} images show no {names}, which {effect}.", stacklevel=3)


def _learning_settings(config: DetectionConfig) -> dict[str, Any]:
    return without(to_plain(config), DETECTION_FREE)


def _require_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = differences(before, now)
    if changed:
        raise UserError(
            "the settings, the images or the encoder have changed since the run started "
            f"({describe_changes(changed)}). Restore them, or start another run with another --out."
        )


def _fit(run: DetectionRun, folder: Path, signals: Signals, callback: DetectionCallback) -> DetectionRecord:
    """Train and test each detector from its last checkpoint; the summary is written last."""
    callback = cast(DetectionCallback, OutputGuard(callback))
    config, encoder, results = run.config, run.encoder, []
    encoders = {"encoder": (encoder.module, encoder.description)}
    if config.scratch:
        fresh = fresh_encoder(encoder.backbone, config.seed)
        encoders["scratch"] = fresh, f"{encoder.backbone}, fresh weights"
    for name, (module, description) in encoders.items():
        with _resume_hint(folder, config, name):
            results.append(DetectorTrainer(run, name, folder, signals, callback).fit(module, description))
    with _resume_hint(folder, config, name):
        record = _record(folder, _summary(run, tuple(results)))
        if config.compute.figures:
            with report_drawing_errors(callback.on_message):
                _draw(run, record)
        write_json(folder / SUMMARY, to_plain(record.summary))
    return record


class DetectorTrainer(BaseTrainer):
    """Trains and tests one detector of a run, in a folder of its own; a finished one is only read."""

    def __init__(
        self, run: DetectionRun, name: str, folder: Path, signals: Signals, callback: DetectionCallback
    ) -> None:
        super().__init__(folder / name, signals, callback, perf_counter())
        self.run = run
        self.name = name
        self.identity = run.identity
        self.callback = callback

    def fit(self, encoder: nn.Module, description: str) -> DetectorResult:
        """Train from the last checkpoint, or from this encoder; test, and write weights, detections and result."""
        if (self.folder / RESULT).exists():
            return read_summary(DetectorResult, self.folder / RESULT)
        self.folder.mkdir(parents=True, exist_ok=True)
        config, data = self.run.config, self.run.data
        detector = fresh_detector(encoder, len(data.classes), config.proposals, config.seed)
        losses = self._train(detector)
        detections = self.test(detector)
        self._save(detector, detections)
        tenth = max(1, len(losses) // 10)
        result = DetectorResult(
            name=self.name,
            description=description,
            precision=all_precisions(data, detections),
            loss_first=float(np.mean(losses[:tenth])),
            loss_last=float(np.mean(losses[-tenth:])),
            seconds=self.seconds,
        )
        write_json(self.folder / RESULT, to_plain(result))
        return result

    def _train(self, detector: Detector) -> list[float]:
        """Train to the end; returns the loss of every step."""
        config = self.run.config
        train_state = detector_train_state(detector, config.training, self.run.device)
        state, refused = last_state(self.folder)
        for reason in refused:
            self.callback.on_message(f"{reason} The previous checkpoint is used.")
        state = state or {"step": 0, "journal": 0, "pace": (), "seconds": 0.0}
        if state["step"]:
            _require_same(state["run"], self.identity)
            train_state.restore(state)
        loader = DetectionLoader(
            images=self.run.data.train, options=config.images, batch=config.training.batch, seed=config.seed
        )
        self.loop = Loop(
            train_state=train_state,
            schedule=DetectorSchedule(loader=loader, training=config.training, micro_batches=config.compute.accumulate),
            driver=self,
            keeper=Keeper(self.folder / CHECKPOINTS, config.compute.saving, steps_per_epoch=1),
            eval_every=0,
            pace=Pace(*state["pace"]),
        )
        self._seconds_before = float(state["seconds"])
        self.callback.on_start(self.folder, config, config.training.iterations, state["step"])
        with Journal(self.folder / JOURNAL, at=state["journal"]) as self.journal:
            self.train(state["step"])
            return [row["loss"] for row in self.journal.read()]

    def test(self, detector: Detector) -> list[Detections]:
        """The detections on every test image, in its own pixels."""
        options, images = self.run.config.images, self.run.data.test
        samples = prefetch(partial(load_sample, image, options, options.test_side) for image in images)
        detections: list[Detections] = []
        for image, sample in zip(images, samples, strict=True):
            detections.append(detect_image(detector, sample.pixels, image.width, image.height, self.run.device))
            self.callback.on_test(len(detections), len(images))
        return detections

    def _save(self, detector: Detector, detections: Sequence[Detections]) -> None:
        """Write weights and detections."""
        data = self.run.data
        settings = without(self.run.identity, NOT_IN_WEIGHTS)
        backbone = self.run.encoder.backbone
        about = {"name": self.name, "backbone": backbone, "classes": data.classes, "detection": settings}
        save_detector(self.folder / WEIGHTS, detector, about)
        images = [
            {"image": image.path.name, **{key: value.tolist() for key, value in one._asdict().items()}}
            for image, one in zip(data.test, detections, strict=True)
        ]
        write_json(self.folder / DETECTIONS, {"classes": list(data.classes), "images": images})


def _summary(run: DetectionRun, results: tuple[DetectorResult, ...]) -> DetectionSummary:
    data, config = run.data, run.config
    empty = f" ({data.empty_images} without a box left out)" * bool(data.empty_images)
    return DetectionSummary(
        target=str(run.target),
        backbone=run.encoder.backbone,
        data=config.images.data,
        classes=data.classes,
        train_images=len(data.train),
        test_images=len(data.test),
        metric=config.metric,
        protocol=(
            f"{data.lists}: {len(data.train)} training images{empty}, {len(data.test)} test images, "
            f"{len(data.classes)} classes; {config.describe()}"
        ),
        detectors=results,
        paper=data.benchmark,
        seconds=sum(result.seconds for result in results),
    )


def _draw(run: DetectionRun, record: DetectionRecord) -> None:
    """Write curves.png, and detections.png of a few test images."""
    folder = Path(record.folder)
    detections = {name: read_detections(folder / name / DETECTIONS) for name in record.journals}
    images = [
        ImageDetections(
            np.asarray(open_picture(image.path)), image.truth, {name: d[i] for name, d in detections.items()}
        )
        for i, image in enumerate(run.data.test[:FIGURE_IMAGES])
    ]
    title = f"true boxes, and detections with a score of at least {MIN_SCORE}"
    atomic_write(folder / CURVES, png(loss_figure(record)))
    atomic_write(folder / FIGURE, png(detections_figure(images, record.summary.classes, title)))


def all_precisions(data: DetectionData, detections: Sequence[Detections]) -> dict[str, AveragePrecision]:
    """Average precision in percent by every metric."""
    truths = [image.truth for image in data.test]
    return {
        metric: summarize_precision(average_precision(truths, detections, len(data.classes), metric), data.classes)
        for metric in get_args(MetricName)
    }


def read_detections(path: Path) -> list[Detections]:
    """The content of detections.json: boxes in the images' own pixels, from 0 and half-open."""
    return [
        Detections(
            np.array(one["boxes"], np.float64).reshape(-1, 4),
            np.array(one["labels"], np.int64),
            np.array(one["scores"], np.float64),
        )
        for one in read_json(path)["images"]
    ]


def _record(folder: Path, summary: DetectionSummary) -> DetectionRecord:
    journals = {result.name: read_journal(folder / result.name / JOURNAL) for result in summary.detectors}
    return DetectionRecord(folder=str(folder), summary=summary, journals=journals)


def _resume_hint(folder: Path, config: DetectionConfig, name: str) -> AbstractContextManager[None]:
    count = config.compute.accumulate
    return with_resume_hint(
        folder,
        "detect",
        diverged=f"Start again with a lower learning rate (--lr {config.training.lr / 4:g}) or a longer warm-up "
        "(--warmup-steps).",
        out_of_memory=f"a batch of {config.training.batch} in {count} micro-batch{'es' * (count > 1)} does not fit "
        f"into memory. Start again with --accumulate {2 * count}, smaller --train-sides or fewer --regions.",
        config=DETECTION_CONFIG,
        learner=name,
    )
