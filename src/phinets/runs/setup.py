"""Build a run: everything checked and ready before anything is written."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import nn

from phinets.config.continual import ContinualConfig
from phinets.config.methods import EncoderName
from phinets.config.record import ContinualRecord, RunRecord
from phinets.config.run import TrainConfig
from phinets.data import BadImages
from phinets.data.locations import resolve_data_name
from phinets.evaluation.features import FeatureExtractor
from phinets.evaluation.health import Health
from phinets.methods import Learner
from phinets.runtime.devices import Precision
from phinets.runtime.distributed import local_device
from phinets.training.journal import require_trackers
from phinets.training.loop import Pace, ReplayBuffer
from phinets.training.schedule import RunSchedule, TaskImages, build_schedule
from phinets.training.step import TrainState, build_learner, build_train_state
from phinets.views import make_views, random_stream

Row = dict[str, Any]
C = TypeVar("C", bound=TrainConfig)
R = TypeVar("R", bound=RunRecord | ContinualRecord)


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """What every run is built from."""

    config: TrainConfig
    device: torch.device
    train_state: TrainState
    schedule: RunSchedule
    bad_images: BadImages
    fingerprint: dict[str, str]
    """Checksums of the training and test images."""
    replay: ReplayBuffer | None = None

    @property
    def evaluated_encoders(self) -> dict[str, nn.Module]:
        """The encoders that are evaluated, by the suffix of their metrics' names."""
        learner = self.train_state.learner
        fast, *slow = self.config.encoders
        return {"": learner.encoder(fast), **{f"_{name}": learner.encoder(name) for name in slow}}

    @property
    def saved_encoders(self) -> dict[EncoderName, nn.Module]:
        """The encoders whose weights the run folder keeps."""
        learner = self.train_state.learner
        slow: dict[EncoderName, nn.Module] = {} if learner.slow is None else {"slow": learner.encoder("slow")}
        return {"fast": learner.encoder("fast"), **slow}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What the trainer knows at the end of a run."""

    record_fields: dict[str, Any]
    """`folder`, `environment` and `journal`, as the record of any kind of run has them."""
    journal: list[Row]
    pace: Pace
    seconds: float

    def last(self, kind: str) -> Row:
        """The last row of this kind in the journal."""
        return next(row for row in reversed(self.journal) if row["kind"] == kind)

    def summary(self, run_parts: RunParts, protocol: str) -> dict[str, Any]:
        """The fields that every summary has (`config.record.BaseSummary`)."""
        config, health = run_parts.config, health_from_row(self.last("eval"))
        return {
            "method": config.method,
            "backbone": config.backbone,
            "data": config.data_names,
            "seed": config.seed,
            "steps": run_parts.schedule.total,
            "verdict": health.verdict,
            **asdict(health),
            "bad_images": len(run_parts.bad_images.reasons),
            "seconds": self.seconds,
            "images_per_second": self.pace.images_per_second,
            "data_wait": self.pace.data_wait,
            "protocol": protocol,
        }


HEALTH_FIELDS = tuple(field.name for field in fields(Health))


def health_from_row(row: Mapping[str, Any]) -> Health:
    """The collapse meter's numbers in an `eval` row of the journal."""
    return Health(**{name: row[name] for name in HEALTH_FIELDS if name in row})


class RunKind(Protocol[R]):
    """One kind of run: what is evaluated before, between and after the steps, and what is recorded.

    Rows are lines of the journal. Methods that return rows run in the first process only.
    """

    @property
    def run_parts(self) -> RunParts:
        """What the run is built from."""

    @property
    def boundaries(self) -> frozenset[int]:
        """The steps before which `evaluate_between` and `begin_task` are called."""

    def online_knn(self, encoder: nn.Module, done: int) -> float | None:
        """kNN accuracy on few images after `done` steps, for evaluations during training; None without labels."""

    def evaluate_between(self, step: int) -> list[Row]:
        """Evaluate at a boundary."""

    def begin_task(self, step: int) -> None:
        """Prepare the learner for the task that begins with this step, if one does; every process calls it."""

    def final_rows(self) -> list[Row]:
        """Evaluate after the last step."""

    def record(self, result: RunResult) -> R:
        """The record of the finished run."""

    def figures(self, record: R) -> Mapping[str, bytes]:
        """Its figures, by file name."""


def resolve_config(config: C) -> C:
    """The config with defaults of the method and absolute paths filled in, so that it means the same anywhere."""
    root = config.source.root and str(Path(config.source.root).expanduser().absolute())
    config = replace(config.resolved, data=resolve_data_name(config.data), source=replace(config.source, root=root))
    if not isinstance(config, ContinualConfig):
        return config
    task_data = tuple(map(resolve_data_name, config.stream.task_data))
    appended = tuple(replace(task, data=resolve_data_name(task.data)) for task in config.appended)
    return replace(config, stream=replace(config.stream, task_data=task_data), appended=appended)


class Setup(NamedTuple):
    """Device, learner and image preparation of a run, built before its data are loaded."""

    config: TrainConfig
    precision: Precision
    learner: Learner
    extractor: FeatureExtractor

    def run_parts(self, tasks: Sequence[TaskImages], fingerprint: dict[str, str]) -> RunParts:
        """Build the rest: loaders, schedules and train state."""
        config = self.config
        make_views(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), config.plan, random_stream(0))  # compiles it once
        return RunParts(
            config=config,
            device=self.precision.device,
            train_state=build_train_state(config, self.learner, self.precision),
            schedule=build_schedule(config, tasks, self.learner.anchor, self.precision),
            bad_images=self.extractor.bad_images,
            fingerprint=fingerprint,
        )


def set_up(config: TrainConfig) -> Setup:
    """Check the machine and build the learner.

    Raises:
        UserError: the device, a tracker, the backbone or a combination of them can't be used.
    """
    if config.compute.threads is not None:
        torch.set_num_threads(config.compute.threads)
    device = local_device(config.compute.device)
    precision = Precision(config.compute.precision, device)
    bad_images = BadImages(config.source.max_bad_images)
    extractor = FeatureExtractor(
        plan=config.plan, size=config.source.image_size, device=device, dtype=precision.weights, bad_images=bad_images
    )
    require_trackers(config.compute.log)
    return Setup(config, precision, build_learner(config, device, precision.weights), extractor)
