"""A stream of tasks as a value: which tasks, what is remembered of them, and how they are read out."""

import re
from dataclasses import dataclass, field
from typing import Literal

from phinets.config.errors import UserError, require_finite
from phinets.config.run import Optimization, TrainConfig, require_warmup

Readout = Literal["task-knn", "task-linear", "class-knn", "class-linear"]
"""Who is asked what: `task-…` decides among a task's own classes, knowing that task's training images; `class-…` among
all classes that have come so far, knowing the images of all of them. By kNN, or by the cached linear probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """What a stream's tasks are: classes of one data set, or one data set each."""

    tasks: str | None = None
    """Tasks × classes in each, e.g. 5x2 or 20x5; unset: two classes in each."""
    class_order: tuple[str, ...] = ()
    """The classes by name or number in the order in which they come; unset: as the data set counts them."""
    order_seed: int | None = None
    """Shuffles the classes by this seed, apart from the run's own; unset: they are not shuffled."""
    split: Literal["class", "domain"] = "class"
    """How --data is cut into tasks: by class, or by domain, which is one first-level folder of folder:PATH each."""
    task_data: tuple[str, ...] = ()
    """One data set a task, in place of --data: folder:PATH, npz:FILE, or any name; labels are optional."""

    def __post_init__(self) -> None:
        _ = self.shape
        if self.class_order and self.order_seed is not None:
            raise UserError("--class-order and --order-seed both say how the classes come. Use one of them.")
        if self.order_seed is not None and self.order_seed < 0:
            raise UserError(f"order_seed is {self.order_seed}, but must be a whole number from 0.")
        by_class = self.tasks is not None or self.class_order or self.order_seed is not None
        if by_class and (self.task_data or self.split == "domain"):
            raise UserError(
                "--tasks, --class-order and --order-seed cut one data set by class; with --task-data or --split domain "
                "the tasks are there already. Leave them out."
            )
        if self.task_data and self.split == "domain":
            raise UserError("--task-data already says what the tasks are. Leave out --split domain.")

    @property
    def by_class(self) -> bool:
        """Whether the tasks are classes of one data set."""
        return not self.task_data and self.split == "class"

    @property
    def shape(self) -> tuple[int, int] | None:
        """`tasks` as (how many, classes in each)."""
        if self.tasks is None:
            return None
        found = re.fullmatch(r"(\d+)\s*[x×]\s*(\d+)", self.tasks.strip())
        if found is None or int(found[1]) < 1 or int(found[2]) < 1:
            raise UserError(f"tasks is '{self.tasks}', but must be TASKSxCLASSES such as 5x2, 20x5 or 10x10.")
        return int(found[1]), int(found[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering:
    """What is done against forgetting."""

    replay: Literal["none", "plain", "mixup"] = "none"
    """What is learned again from the buffer: nothing (finetune), its images beside the new ones, or both mixed
    (LUMP, Madaan et al. 2022)."""
    buffer: int = 256
    """Images in the buffer: a uniform sample of all that was seen (reservoir)."""
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
        if self.buffer < 1:
            raise UserError(f"buffer is {self.buffer}, but must hold at least one batch of images. UCL uses 256.")
        if not self.mixup_alpha > 0:
            raise UserError(f"mixup_alpha is {self.mixup_alpha}, but must be above 0. LUMP uses 0.4.")
        if not self.distil_weight > 0:
            raise UserError(
                f"distil_weight is {self.distil_weight}, but must be above 0. Use --distil none to leave it out."
            )
        if any(width < 1 for width in self.distil_hidden):
            raise UserError(f"distil_hidden is {self.distil_hidden}, but widths are whole numbers above 0, e.g. 2048.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the accuracy matrix is read out. k, temperature and bank are those of the judging."""

    readouts: tuple[Readout, ...] = ("task-knn",)
    """What is asked: task-knn, task-linear, class-knn, class-linear."""
    k_rule: Literal["fixed", "tasks-seen"] = "fixed"
    """Neighbors of kNN: always num_neighbors, or as many as there were tasks so far, as in UCL's code."""
    encoders: Literal["every", "fast", "slow"] = "every"
    """Whose features: of every encoder that the method has, or of one."""
    evals_per_task: int = 1
    """How often in each task, evenly; the last at its end, which is the matrix's row."""

    def __post_init__(self) -> None:
        if not self.readouts:
            raise UserError("there is no readout. Name one at least: task-knn, task-linear, class-knn, class-linear.")
        if len(set(self.readouts)) < len(self.readouts):
            raise UserError(f"readouts names one twice: {' '.join(self.readouts)}. Name each once.")
        if self.evals_per_task < 1:
            raise UserError(f"evals_per_task is {self.evals_per_task}, but must be at least 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """A task that came after the run was finished."""

    data: str
    """Its images: folder:PATH, npz:FILE, or any name."""
    epochs: int
    """Passes over them."""
    classes: tuple[str, ...] = ()
    """Only these of its classes."""
    train_images: int | None = None
    """How many training images; unset: all there are."""
    test_images: int | None = None
    """How many test images; unset: all there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinualConfig(TrainConfig):
    """A whole run over a stream of tasks. What is not said is as in UCL's code (Madaan et al. 2022)."""

    views: str = "ucl"
    """Which augmentations; a plan's name."""
    batch: int = 256
    """Images per step."""
    optimization: Optimization = field(default_factory=lambda: Optimization(schedule="constant", warmup_epochs=0.0))
    epochs_per_task: int = 200
    """Passes over the images of each task. The learning rate's schedule begins anew with each task."""
    stream: Tasks = field(default_factory=Tasks)
    memory: Remembering = field(default_factory=Remembering)
    reading: Reading = field(default_factory=Reading)
    keep_tasks: bool = False
    """Keep the checkpoint at the end of each task for good, beside the last two."""
    appended: tuple[Appended, ...] = ()
    """Tasks that were appended afterwards; --append writes them."""

    def __post_init__(self) -> None:
        TrainConfig.__post_init__(self)
        require_warmup("task", self.optimization, self.epochs_per_task, "--epochs-per-task")
        for task in self.appended:
            require_warmup("task", self.optimization, task.epochs, "--epochs-per-task")
        if self.saving.keep_epochs:
            raise UserError("--keep-epochs counts passes over one body of images. Use --keep-tasks in a stream.")
        if self.memory.replay != "none" and self.memory.buffer < self.batch:
            raise UserError(
                f"the buffer holds {self.memory.buffer} images, but a step draws a batch of {self.batch} from it. "
                f"Use --buffer {self.batch} or more, or a smaller --batch."
            )

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all data that are learned from."""
        return (*(self.stream.task_data or (self.data,)), *(task.data for task in self.appended))

    @property
    def command(self) -> str:
        """The command that runs it."""
        return "continual"

    @property
    def length(self) -> str:
        """How long it is, in words."""
        return f"{self.epochs_per_task} epochs per task"

    def lasting(self, ends: tuple[int, ...]) -> frozenset[int]:
        """At which of the tasks' last steps the checkpoint stays: all if told so, else where it was once finished."""
        return frozenset(ends if self.keep_tasks else ends[len(ends) - len(self.appended) - 1 : -1])

    @property
    def strategy(self) -> str:
        """What is done against forgetting, in words."""
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
