"""The settings of a run over a stream of tasks: tasks, replay and readout."""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from phinets.config.errors import UserError, require_at_least, require_finite, require_in
from phinets.config.run import EvalConfig, Optimization, TrainConfig, require_warmup

Readout = Literal["task-knn", "task-linear", "class-knn", "class-linear"]
"""`task-…` decides among a task's own classes, from its own training images; `class-…` among all classes so far, from
the images of all tasks so far. By kNN, or by the cached linear probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What the tasks are: classes of one data set, or one data set each."""

    tasks: str | None = None
    """Tasks × classes in each, e.g. 5x2 or 20x5; unset: two classes in each."""
    class_order: tuple[str, ...] = ()
    """The classes by name or number, in the order of the tasks; unset: the data set's order."""
    order_seed: int | None = None
    """Shuffles the classes by this seed, apart from the run's own; unset: they are not shuffled."""
    split: Literal["class", "domain"] = "class"
    """How --data is split into tasks: by class, or by domain, i.e. by first-level folder of folder:PATH."""
    task_data: tuple[str, ...] = ()
    """One data set a task, in place of --data: folder:PATH, npz:FILE, or any name; labels are optional."""

    def __post_init__(self) -> None:
        _ = self.shape
        if self.class_order and self.order_seed is not None:
            raise UserError("--class-order and --order-seed both set the order of the classes. Use one of them.")
        require_at_least(self, order_seed=0)
        by_class = self.tasks is not None or self.class_order or self.order_seed is not None
        if bool(by_class) + bool(self.task_data) + (self.split == "domain") > 1:
            raise UserError(
                "the tasks are classes of one data set (--tasks, --class-order, --order-seed), its domains (--split "
                "domain), or one data set each (--task-data). Use one of the three."
            )

    @property
    def by_class(self) -> bool:
        """Whether the tasks are classes of one data set."""
        return not self.task_data and self.split == "class"

    @property
    def shape(self) -> tuple[int, int] | None:
        """`tasks` as (how many, classes in each)."""
        if self.tasks is None:
            return None
        match = re.fullmatch(r"(\d+)\s*[x×]\s*(\d+)", self.tasks.strip())
        if match is None or int(match[1]) < 1 or int(match[2]) < 1:
            raise UserError(f"tasks is '{self.tasks}', but must be TASKSxCLASSES such as 5x2, 20x5 or 10x10.")
        return int(match[1]), int(match[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """Replay and distillation against forgetting."""

    replay: Literal["none", "plain", "mixup"] = "none"
    """Replay from the buffer: none (finetune), its images beside the new ones, or mixed with them
    (LUMP, Madaan et al. 2022)."""
    buffer: int = 256
    """Images in the buffer: a uniform sample of all earlier ones (reservoir)."""
    mixup_alpha: float = 0.4
    """λ ~ Beta(α, α), one for each batch; RM-SimSiam's authors used 0.3 on CIFAR-10 and 0.26 on CIFAR-100."""
    distil: Literal["none", "cassle"] = "none"
    """From the second task on, also predict the code that the encoder had before the task, frozen, through a predictor
    of its own (CaSSLe, Fini et al. 2022)."""
    distil_weight: float = 1.0
    """Weight of that prediction."""
    distil_hidden: tuple[int, ...] = (2048,)
    """Hidden widths of that predictor."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_at_least(self, buffer=1, distil_hidden=1)
        require_in(self, mixup_alpha="(0, inf)", distil_weight="(0, inf)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadoutOptions:
    """How the accuracy matrix is computed; k, temperature and bank are those of the evaluation."""

    readouts: tuple[Readout, ...] = ("task-knn",)
    """Readouts: task-knn, task-linear, class-knn, class-linear."""
    k_rule: Literal["fixed", "tasks-seen"] = "fixed"
    """Neighbors of kNN: always num_neighbors, or as many as there were tasks so far, as in UCL's code."""
    evals_per_task: int = 1
    """Evaluations in each task, evenly spaced; the last one, at its end, is the matrix's row."""

    def __post_init__(self) -> None:
        if not self.readouts or len(set(self.readouts)) < len(self.readouts):
            raise UserError(f"readouts is '{' '.join(self.readouts)}', but must name one or more, each once.")
        require_at_least(self, evals_per_task=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedTask:
    """A task that was appended to a finished run."""

    data: str
    """Its images: folder:PATH, npz:FILE, or any name."""
    epochs: int
    """Epochs of the task."""
    classes: tuple[str, ...] = ()
    """Only these of its classes."""
    train_images: int | None = None
    """Number of training images; unset: all."""
    test_images: int | None = None
    """Number of test images; unset: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinualConfig(TrainConfig):
    """A whole run over a stream of tasks. Defaults are those of UCL's code (Madaan et al. 2022)."""

    command: ClassVar[str] = "continual"
    SLOW_CHOICES: ClassVar[tuple[str, ...]] = ("slow",)
    """Choices of `evaluation.encoder` that need a slow encoder; "both" means every encoder that there is."""

    views: str = "ucl"
    """Which augmentations; a plan's name."""
    batch: int = 256
    """Images per step."""
    optimization: Optimization = field(default_factory=lambda: Optimization(schedule="constant", warmup_epochs=0.0))
    evaluation: EvalConfig = field(default_factory=lambda: EvalConfig(encoder="both"))
    epochs_per_task: int = 200
    """Epochs of each task. The learning rate schedule starts again with each task."""
    stream: StreamOptions = field(default_factory=StreamOptions)
    memory: ReplayOptions = field(default_factory=ReplayOptions)
    reading: ReadoutOptions = field(default_factory=ReadoutOptions)
    keep_tasks: bool = False
    """Keep the checkpoint at the end of each task, beside the last two."""
    appended: tuple[AppendedTask, ...] = ()
    """Tasks that were appended later, by --append."""

    def __post_init__(self) -> None:
        TrainConfig.__post_init__(self)
        require_warmup("task", self.optimization, self.epochs_per_task, "--epochs-per-task")
        for task in self.appended:
            require_warmup("task", self.optimization, task.epochs, "--epochs-per-task")
        if self.saving.keep_epochs:
            raise UserError("--keep-epochs is for `phinets train`. Use --keep-tasks for a stream of tasks.")
        if self.memory.replay != "none" and self.memory.buffer < self.batch:
            raise UserError(
                f"the buffer holds {self.memory.buffer} images, but a step draws a batch of {self.batch} from it. "
                f"Use --buffer {self.batch} or more, or a smaller --batch."
            )

    @property
    def sources(self) -> tuple[str, ...]:
        return (*(self.stream.task_data or (self.data,)), *(task.data for task in self.appended))

    @property
    def length(self) -> str:
        return f"{self.epochs_per_task} epochs per task"

    def permanent_checkpoints(self, ends: tuple[int, ...]) -> frozenset[int]:
        """The ends of all tasks with `keep_tasks`, else those where the run was once finished."""
        return frozenset(ends if self.keep_tasks else ends[len(ends) - len(self.appended) - 1 : -1])

    @property
    def strategy(self) -> str:
        """Replay and distillation in words."""
        memory = self.memory
        replay = {
            "none": "finetune",
            "plain": f"plain replay (buffer {memory.buffer})",
            "mixup": f"mixup replay (buffer {memory.buffer}, α {memory.mixup_alpha:g})",
        }[memory.replay]
        distilled = f"CaSSLe distillation (weight {memory.distil_weight:g})"
        if memory.distil == "none":
            return replay
        return distilled if memory.replay == "none" else f"{replay} and {distilled}"
