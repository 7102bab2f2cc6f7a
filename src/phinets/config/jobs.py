"""Jobs as values, each with a key, and their results: what the tables and figures of the paper consist of.

A job holds everything that decides a result. Its key is the hash of that. Two jobs with the same key are the same job
on any machine, so nothing is computed twice and results can be shared as files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any, ClassVar, Literal

from phinets.config.continual import ContinualConfig
from phinets.config.detection import DetectionConfig
from phinets.config.errors import UserError, look_up
from phinets.config.evaluation import PaperProbe
from phinets.config.plain import from_plain, to_plain, without
from phinets.config.run import PretrainConfig, TrainConfig, learning_settings

DETECTION_FREE = ("compute.device", "compute.checkpoint_every", "compute.figures", "metric", "unfinished")
"""Settings of a detection transfer that change nothing of what is learned."""


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to compute. Its fields decide the result."""

    kind: ClassVar[str]
    """The name of the class in JSON."""
    exclusive: ClassVar[bool] = False
    """Whether nothing else may run beside it, because it measures time or memory."""

    @property
    def seed(self) -> int:
        """0 for a job without chance."""
        return 0

    @property
    def method(self) -> str | None:
        """The one learner that it trains."""
        return None

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets that it reads; a VOC folder as voc:FOLDER."""
        return ()

    @property
    def epochs(self) -> int:
        """Passes over the data in which it trains a learner; 0 if it trains none."""
        return 0

    @property
    def requires(self) -> "PretrainJob | None":
        """The pretraining whose weights it starts from."""
        return None

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits: the hash of everything that decides the result, and of nothing else."""
        return sha256(json.dumps(self._identity(), sort_keys=True).encode()).hexdigest()[:16]

    def to_plain(self) -> dict[str, Any]:
        """For JSON, with its kind; `job_from_plain` is the inverse."""
        return {"kind": self.kind, **to_plain(self)}

    def _identity(self) -> dict[str, Any]:
        """What the key is the hash of."""
        return self.to_plain()

    def describe(self) -> str:
        """One line for people."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob(Job):
    """A job about one training run."""

    run: TrainConfig

    @property
    def seed(self) -> int:
        return self.run.seed

    @property
    def method(self) -> str | None:
        return self.run.method

    @property
    def data(self) -> tuple[str, ...]:
        return (self.run.data,)

    def _identity(self) -> dict[str, Any]:
        return {**self.to_plain(), "run": learning_settings(self.run.resolved)}

    def describe(self) -> str:
        run, decay = self.run, self.run.optimization.weight_decay
        return f"{self.kind} {run.method} on {run.data}, batch {run.batch}, wd {decay:g}, seed {run.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainJob(RunJob):
    """A run on one data set, evaluated at its end."""

    kind: ClassVar[str] = "pretrain"
    run: PretrainConfig

    @property
    def epochs(self) -> int:
        return self.run.epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinualJob(RunJob):
    """A run over a stream of tasks, evaluated after each."""

    kind: ClassVar[str] = "continual"
    run: ContinualConfig

    @property
    def epochs(self) -> int:
        """Of each task, whose images are a share of all."""
        return self.run.epochs_per_task


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderJob(RunJob):
    """A job that starts from a pretrained encoder."""

    run: PretrainConfig

    @property
    def requires(self) -> PretrainJob:
        return PretrainJob(run=self.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob(EncoderJob):
    """The paper's linear probe of a pretrained encoder."""

    kind: ClassVar[str] = "probe"
    probe: PaperProbe


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionJob(EncoderJob):
    """Detection transfer of a pretrained encoder."""

    kind: ClassVar[str] = "detection"
    detection: DetectionConfig

    @property
    def data(self) -> tuple[str, ...]:
        """The run's, and the annotated pictures unless the package draws them."""
        return tuple(filter(None, (self.run.data, self.detection.images.data)))

    def _identity(self) -> dict[str, Any]:
        detection = without(to_plain(self.detection), DETECTION_FREE)
        return {**self.to_plain(), "run": learning_settings(self.run.resolved), "detection": detection}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostJob(RunJob):
    """Time and memory of a step of some learners, side by side."""

    kind: ClassVar[str] = "cost"
    exclusive: ClassVar[bool] = True
    run: PretrainConfig
    """What they have in common; its method does not matter."""
    methods: tuple[str, ...]
    rounds: int

    @property
    def method(self) -> str | None:
        """None: it compares several."""
        return None

    @property
    def data(self) -> tuple[str, ...]:
        """None: steps are timed on random images."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicsJob(Job):
    """A check of the paper's statements on learning dynamics."""

    kind: ClassVar[str] = "dynamics"
    statements: tuple[str, ...]
    """By their names in `phinets dynamics check-paper`."""
    sigma2: float = 1.5

    def describe(self) -> str:
        return f"{self.kind} {', '.join(self.statements)}"


JOBS: Mapping[str, type[Job]] = {
    job.kind: job for job in (PretrainJob, ContinualJob, ProbeJob, DetectionJob, CostJob, DynamicsJob)
}


def job_from_plain(plain: Mapping[str, Any]) -> Job:
    """The job that `Job.to_plain` wrote."""
    cls = look_up("kind of job", str(plain.get("kind")), JOBS)
    return from_plain(cls, {name: value for name, value in plain.items() if name != "kind"})


Curve = tuple[tuple[float, float], ...]
"""Points (images seen, value)."""
Health = Literal["healthy", "collapsing", "collapsed", "diverged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a job. `failed` says why a job has no numbers."""

    job: Job
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    """Percent, points, seconds, bytes by name: knn, linear, task-knn/fast/average, …"""
    health: Health | None = None
    """The verdict of the collapse meter at the end, where something was learned."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    """Numbers over the course of training: knn, loss, sim1, …"""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Text and nested values: the statements on dynamics."""
    protocol: str = ""
    """How the numbers were measured, in words."""
    seconds: float = 0.0
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Versions, commit, device: env.json."""
    failed: str | None = None
    """Why there are no numbers."""

    @property
    def key(self) -> str:
        return self.job.key

    @property
    def lost(self) -> bool:
        """Whether the run collapsed or diverged."""
        return self.health in ("collapsed", "diverged")

    def plain(self) -> dict[str, Any]:
        """For JSON; `result_from_plain` is the inverse."""
        rest = {name: to_plain(getattr(self, name)) for name in RESULT_FIELDS}
        return {"key": self.key, "job": self.job.to_plain(), **rest}


RESULT_FIELDS = tuple(field.name for field in fields(Result) if field.name != "job")


def result_from_plain(plain: Mapping[str, Any]) -> Result:
    """The result that `Result.plain` wrote.

    Raises:
        UserError: if `plain` is no result, or one of phinets 0.1.
    """
    try:
        if "work" in plain:
            raise UserError("this is a result of phinets 0.1, whose settings have other names.")
        curves = {name: tuple((float(x), float(y)) for x, y in curve) for name, curve in plain["curves"].items()}
        rest = {name: plain[name] for name in RESULT_FIELDS} | {"curves": curves}
        return Result(job=job_from_plain(plain["job"]), **rest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"this is no result of `phinets reproduce`: {error}.") from error


REFERENCE = "simsiam"
"""The learner that all others are compared with, as in the paper."""
EPOCHS, IMAGES = 800, 50_000
"""The paper's run on CIFAR-10, to which the time of a step is extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of one step of one learner at one batch size; None where it could not be measured."""

    method: str
    batch: int
    seconds: float | None
    """Of a step: the median over the rounds."""
    time_to_simsiam: float | None
    """The median over the rounds of the ratio within a round."""
    bytes: int | None
    """Peak of a step."""
    memory_to_simsiam: float | None
    out_of_memory: bool = False
    """Whether there was not enough memory for a step."""

    @property
    def hours_800_epochs(self) -> float | None:
        """Extrapolated from a step: seconds · 800 · (50,000 // batch) / 3600, the steps of the paper's run."""
        if self.seconds is None or self.batch > IMAGES:
            return None
        return self.seconds * EPOCHS * (IMAGES // self.batch) / 3600
