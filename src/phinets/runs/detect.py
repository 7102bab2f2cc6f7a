"""Detection transfer: fine-tune a detector from an encoder and test it, beside one from fresh weights on request."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from signal import SIGTERM
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar, get_args

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
from phinets.config.errors import StoppedError, UserError
from phinets.config.evaluation import EncoderOptions
from phinets.config.jobs import DETECTION_FREE
from phinets.config.plain import differences, from_plain, to_plain, without
from phinets.data.decode import open_picture
from phinets.data.locations import resolve_data_name
from phinets.detection.average_precision import Detections, PrecisionTable, average_precision
from phinets.detection.c4 import Detector, fresh_detector, split_encoder
from phinets.detection.inference import DETECTORS, WEIGHTS, detect_image, save_detector
from phinets.detection.loader import DetectionLoader, load_sample, require_readable
from phinets.detection.voc import DetectionData, read_voc
from phinets.evaluation.encoders import LoadedEncoder, fresh_encoder, load_encoder, require_finished, view_plan_of
from phinets.reports.detections import MIN_SCORE, ImageDetections, detections_figure, loss_figure
from phinets.reports.figures import png
from phinets.runs.resume import last_state, resume_command
from phinets.runtime.devices import is_out_of_memory, pick_device
from phinets.runtime.environment import environment
from phinets.runtime.files import atomic_write, write_json, write_text
from phinets.runtime.process import Signals, launched
from phinets.training.checkpoint import Keeper
from phinets.training.detector import DetectorLoop, DetectorTrainState, detector_train_state
from phinets.training.journal import Journal, read_journal
from phinets.training.loader import prefetch
from phinets.training.loop import DivergedError
from phinets.training.run_folder import (
    CHECKPOINTS,
    ENVIRONMENT,
    JOURNAL,
    SUMMARY,
    choose_folder,
    claim_folder,
    locked,
)

T = TypeVar("T")
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


class DetectionCallback(Protocol):
    """Receives the events of a detection transfer."""

    def on_start(self, folder: Path, name: str, steps: int, done: int) -> None:
        """A detector's training starts, or resumes after `done` of its `steps`."""

    def on_step(self, row: Mapping[str, Any]) -> None:
        """The newest row of the journal."""

    def on_test(self, done: int, total: int) -> None:
        """`done` of the test images are evaluated."""

    def on_message(self, text: str) -> None:
        """A sentence for the user."""


class SilentDetection:
    """A callback that does nothing. Override what you need."""

    def on_start(self, folder: Path, name: str, steps: int, done: int) -> None:
        """Nothing."""

    def on_step(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def on_test(self, done: int, total: int) -> None:
        """Nothing."""

    def on_message(self, text: str) -> None:
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

    @property
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
        folder = choose_folder(out, "detect", overwrite, DETECTION_FILES)
        run = build_detection(target, config)
        with locked(folder):
            claim_folder(folder, overwrite, DETECTION_FILES)
            start = {"target": str(run.target), "detection": to_plain(run.config), "identity": run.identity}
            write_text(folder / DETECTION_CONFIG, yaml.safe_dump(start, sort_keys=False, allow_unicode=True))
            write_json(folder / ENVIRONMENT, environment(config.seed, run.device, "fp32"))
            return DetectionTrainer(run, folder, signals, callback or SilentDetection()).fit()


def resume_detection(
    folder: Path, wanted: DetectionConfig | None = None, *, callback: DetectionCallback | None = None
) -> DetectionRecord:
    """Resume from the last checkpoint; the result is that of an uninterrupted run. A finished one is only read."""
    start = read_start(folder)
    config = wanted or start.config
    changed = differences(_learning_settings(start.config), _learning_settings(config))
    if changed:
        raise UserError(
            f"the run in '{folder}' has other settings ({_describe(changed)}). Leave these options out, or start "
            "another run with another --out."
        )
    with Signals().handled() as signals, locked(folder):
        if (folder / SUMMARY).exists():
            return _record(folder, replace(_read(DetectionSummary, folder / SUMMARY), metric=config.metric))
        run = build_detection(start.target, config)
        _require_same(start.identity, run.identity)  # before the result of a finished detector is used
        return DetectionTrainer(run, folder, signals, callback or SilentDetection()).fit()


def read_start(folder: Path) -> StartRecord:
    """The encoder's place, the settings and the identity of a started transfer."""
    path = folder / DETECTION_CONFIG
    if not path.is_file():
        raise UserError(f"'{folder}' holds no detection transfer to resume: it has no {DETECTION_CONFIG}.")
    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
        config = from_plain(DetectionConfig, plain["detection"])
        return StartRecord(Path(plain["target"]), config, plain.get("identity") or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, UserError) as error:
        raise UserError(f"'{path}' can't be read: {error}") from error


def build_detection(target: Path, config: DetectionConfig) -> DetectionRun:
    """Load and check the encoder and the images."""
    if launched().size > 1:
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
            f"the settings, the images or the encoder have changed since the run started ({_describe(changed)}). "
            "Restore them, or start another run with another --out."
        )


def _describe(changed: Mapping[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{key} was {here} and is {there}" for key, (here, there) in changed.items())


@dataclass(frozen=True)
class DetectionTrainer:
    """Trains and tests the detectors of a run, and writes the results; a finished detector is only read."""

    run: DetectionRun
    folder: Path
    signals: Signals
    callback: DetectionCallback

    def fit(self) -> DetectionRecord:
        """Train and test each detector from its last checkpoint; the summary is written last."""
        config, encoder = self.run.config, self.run.encoder
        with _resume_hint(self.folder, config):
            results = [self._fit_detector("encoder", encoder.module, encoder.description)]
            if config.scratch:
                fresh = fresh_encoder(encoder.backbone, config.seed)
                results.append(self._fit_detector("scratch", fresh, f"{encoder.backbone}, fresh weights"))
            record = _record(self.folder, self._summary(tuple(results)))
            if config.compute.figures:
                self._draw(record)
            write_json(self.folder / SUMMARY, to_plain(record.summary))
        return record

    def _fit_detector(self, name: str, encoder: nn.Module, description: str) -> DetectorResult:
        folder, config, data = self.folder / name, self.run.config, self.run.data
        if (folder / RESULT).exists():
            return _read(DetectorResult, folder / RESULT)
        start = perf_counter()
        folder.mkdir(parents=True, exist_ok=True)
        detector = fresh_detector(encoder, len(data.classes), config.proposals, config.seed)
        train_state = detector_train_state(detector, config.training, self.run.device)
        seconds_before = self._train(name, train_state, start)
        detections = self.test(train_state.detector)
        self._save(name, train_state.detector, detections)
        losses = [row["loss"] for row in read_journal(folder / JOURNAL)]
        tenth = max(1, len(losses) // 10)
        result = DetectorResult(
            name=name,
            description=description,
            precision=all_precisions(data, detections),
            loss_first=float(np.mean(losses[:tenth])),
            loss_last=float(np.mean(losses[-tenth:])),
            seconds=seconds_before + perf_counter() - start,
        )
        write_json(folder / RESULT, to_plain(result))
        return result

    def _train(self, name: str, train_state: DetectorTrainState, start: float) -> float:
        """Train to the end; returns the seconds of earlier processes."""
        folder, config, identity = self.folder / name, self.run.config, self.run.identity
        state, refused = last_state(folder)
        for reason in refused:
            self.callback.on_message(f"{reason} The one before it is used.")
        done, seconds_before, journal_end = 0, 0.0, 0
        if state is not None:
            _require_same(state["run"], identity)
            train_state.restore(state)
            done, seconds_before, journal_end = int(state["step"]), float(state["seconds"]), state["journal"]
        self.callback.on_start(folder, name, config.training.iterations, done)
        keeper = Keeper(folder / CHECKPOINTS, config.compute.saving, steps_per_epoch=1)
        with Journal(folder / JOURNAL, at=journal_end) as journal:

            def save(step: int) -> None:
                seconds = seconds_before + perf_counter() - start
                run = {"run": identity, "seconds": seconds, "journal": journal.flush()}
                keeper.save(step, {**train_state.state(), **run})

            loader = DetectionLoader(
                images=self.run.data.train, options=config.images, batch=config.training.batch, seed=config.seed
            )
            loop = DetectorLoop(
                train_state=train_state,
                batch_of=loader.batch_of,
                training=config.training,
                accumulate=config.compute.accumulate,
                seed=config.seed,
                journal=journal,
                keeper=keeper,
                save=save,
                stop_requested=lambda: self.signals.received is not None,
                on_step=self.callback.on_step,
            )
            with self.signals.deferred():
                done = loop.run(done)
        if loop.stopped:
            signal = self.signals.received or SIGTERM
            raise StoppedError(f"stopped by {signal.name} after step {done} of the detector '{name}'", 128 + signal)
        return seconds_before

    def test(self, detector: Detector) -> list[Detections]:
        """The detections on every test image, in its own pixels."""
        options, images = self.run.config.images, self.run.data.test
        samples = prefetch(partial(load_sample, image, options, options.test_side) for image in images)
        detections: list[Detections] = []
        for image, sample in zip(images, samples, strict=True):
            detections.append(detect_image(detector, sample.pixels, image.width, image.height, self.run.device))
            self.callback.on_test(len(detections), len(images))
        return detections

    def _save(self, name: str, detector: Detector, detections: Sequence[Detections]) -> None:
        """Write weights and detections."""
        folder, data = self.folder / name, self.run.data
        settings = without(self.run.identity, NOT_IN_WEIGHTS)
        about = {"name": name, "backbone": self.run.encoder.backbone, "classes": data.classes, "detection": settings}
        save_detector(folder / WEIGHTS, detector, about)
        images = [
            {"image": image.path.name, **{key: value.tolist() for key, value in one._asdict().items()}}
            for image, one in zip(data.test, detections, strict=True)
        ]
        write_json(folder / DETECTIONS, {"classes": list(data.classes), "images": images})

    def _summary(self, results: tuple[DetectorResult, ...]) -> DetectionSummary:
        data, config = self.run.data, self.run.config
        empty = f" ({data.empty_images} without a box left out)" * bool(data.empty_images)
        return DetectionSummary(
            target=str(self.run.target),
            backbone=self.run.encoder.backbone,
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

    def _draw(self, record: DetectionRecord) -> None:
        """Write curves.png, and detections.png of a few test images."""
        detections = {name: read_detections(self.folder / name / DETECTIONS) for name in record.journals}
        images = [
            ImageDetections(
                np.asarray(open_picture(image.path)), image.truth, {name: d[i] for name, d in detections.items()}
            )
            for i, image in enumerate(self.run.data.test[:FIGURE_IMAGES])
        ]
        title = f"true boxes, and detections with a score of at least {MIN_SCORE}"
        atomic_write(self.folder / CURVES, png(loss_figure(record)))
        atomic_write(self.folder / FIGURE, png(detections_figure(images, record.summary.classes, title)))


def all_precisions(data: DetectionData, detections: Sequence[Detections]) -> dict[str, AveragePrecision]:
    """Average precision in percent by every metric."""
    truths = [image.truth for image in data.test]
    return {
        metric: _percent(average_precision(truths, detections, len(data.classes), metric), data.classes)
        for metric in get_args(MetricName)
    }


def _percent(table: PrecisionTable, classes: tuple[str, ...]) -> AveragePrecision:
    def percent(share: float) -> float | None:
        return None if np.isnan(share) else 100.0 * float(share)

    return AveragePrecision(
        ap=percent(table.ap),
        ap50=percent(table.ap50),
        ap75=percent(table.ap75),
        per_class=dict(zip(classes, map(percent, table.per_class), strict=True)),
        per_class50=dict(zip(classes, map(percent, table.table[0]), strict=True)),
    )


def read_detections(path: Path) -> list[Detections]:
    """The content of detections.json: boxes in the images' own pixels, from 0 and half-open."""
    return [
        Detections(
            np.array(one["boxes"], np.float64).reshape(-1, 4),
            np.array(one["labels"], np.int64),
            np.array(one["scores"], np.float64),
        )
        for one in json.loads(path.read_text(encoding="utf-8"))["images"]
    ]


def _record(folder: Path, summary: DetectionSummary) -> DetectionRecord:
    journals = {result.name: read_journal(folder / result.name / JOURNAL) for result in summary.detectors}
    return DetectionRecord(folder=str(folder), summary=summary, journals=journals)


def _read(kind: type[T], path: Path) -> T:
    try:
        return from_plain(kind, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' can't be read by this version of phinets: {error}") from error


@contextmanager
def _resume_hint(folder: Path, config: DetectionConfig) -> Iterator[None]:
    """Add the command that resumes the run to errors from outside; bugs keep their traceback."""
    hint = f"Resume with: {resume_command(folder, 'detect')}"
    try:
        yield
    except DivergedError as error:
        raise DivergedError(
            f"The detector has diverged: {error} Start again with a lower learning rate (--lr "
            f"{config.training.lr / 4:g}) or a longer warm-up (--warmup-steps)."
        ) from error
    except StoppedError as error:
        raise StoppedError(f"{error}. {hint}", error.exit_code) from None
    except UserError as error:
        raise type(error)(f"{error} {hint}") from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            f"there is not enough memory for a batch of {config.training.batch} in {config.compute.accumulate} "
            f"micro-batches. Start again with --accumulate {2 * config.compute.accumulate}, smaller --train-sides or "
            "fewer --regions."
        ) from error
