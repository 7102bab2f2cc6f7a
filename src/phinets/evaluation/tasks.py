"""How well each task of a stream is known: features computed once, asked in every way that a run wants."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from phinets.config.continual import Reading, Readout
from phinets.config.probes import CACHED
from phinets.config.record import Accuracies
from phinets.config.run import EvalConfig
from phinets.continual.tasks import Stream, Task
from phinets.data import ImageSet
from phinets.evaluation.evaluator import Embedded, Eye, Sides, knn_protocol
from phinets.evaluation.knn import knn_accuracy
from phinets.evaluation.linear import fit_probe, probe_accuracy

Asked = Callable[[Embedded], float]
"""From images that are asked about to percent right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Knows the stream and the protocol of a run; is shown encoders."""

    stream: Stream
    eye: Eye
    evaluation: EvalConfig
    reading: Reading

    def read(self, encoder: nn.Module, come: int) -> dict[Readout, Accuracies]:
        """Percent right on every task, also on those that have not come; `come` is how many have."""
        bank = self.evaluation.final_bank
        tasks = [self._sides(task, bank, None, encoder) for task in self.stream.tasks]
        return {readout: tuple(self._answers(readout, tasks, come)) for readout in self.reading.readouts}

    def live(self, encoder: nn.Module) -> float | None:
        """The mean over all tasks of task-wise kNN on few images, for the eye during training."""
        n = len(self.stream.tasks)
        bank, asked = (max(1, images // n) for images in (self.evaluation.online_bank, self.evaluation.online_queries))
        tasks = [self._sides(task, bank, asked, encoder) for task in self.stream.tasks]
        answers = [answer for answer in self._answers("task-knn", tasks, n) if answer is not None]
        return sum(answers) / len(answers) if answers else None

    def describe(self, readout: Readout) -> str:
        """A readout in words, to stand beside its numbers."""
        scope, way = readout.split("-")
        whose = {
            "task": "task-wise: among a task's own classes, its own training images being known",
            "class": "class-incremental: among the classes of all tasks that have come (of a task that has not: up to "
            "and with it), all their training images being known",
        }[scope]
        parts = [labelled_parts(task, self.evaluation.final_bank) for task in self.stream.tasks]
        counts = [tuple(map(len, sides)) for sides in parts if sides is not None]
        if not counts:
            return f"{whose}; no task has labels, so none is asked"
        known, asked = zip(*counts, strict=True)
        some = "all tasks" if len(counts) == len(parts) else f"the {len(counts)} tasks that have labels"
        vote = f"kNN: {self._vote(min(known))}" if way == "knn" else f"linear: {CACHED}"
        cut = "" if self.evaluation.final_bank is None else f" (at most {self.evaluation.final_bank} of a task)"
        return f"{whose}; {vote}; {sum(known)} training{cut} and {sum(asked)} test images in {some}"

    def _vote(self, smallest: int) -> str:
        """The rule of kNN in words; `smallest` is the smallest bank."""
        if self.reading.k_rule == "tasks-seen":
            return knn_protocol("tasks so far", self.evaluation.knn_temperature)
        fewer = " (all of a smaller bank)" * (self.evaluation.num_neighbors > smallest)
        return knn_protocol(f"{self.evaluation.num_neighbors}{fewer}", self.evaluation.knn_temperature)

    def _sides(self, task: Task, bank: int | None, asked: int | None, encoder: nn.Module) -> Sides | None:
        """Features of a task's labelled images; None where it has none."""
        parts = labelled_parts(task, bank, asked)
        if parts is None:
            return None
        return self.eye.embedded(parts[0], encoder), self.eye.embedded(parts[1], encoder)

    def _answers(self, readout: Readout, tasks: Sequence[Sides | None], come: int) -> Iterable[float | None]:
        """One task after the other; who is asked about several tasks with the same bank is made once."""
        made: dict[tuple[int, int], Asked | None] = {}
        for i, task in enumerate(tasks):
            first, last = (i, i + 1) if readout.startswith("task") else (0, max(come, i + 1))
            if (first, last) not in made:
                known = [sides for sides in tasks[first:last] if sides is not None]
                made[first, last] = self._ask(readout, known, come) if _can_ask(known) else None
            asked = made[first, last]
            yield None if task is None or asked is None else asked(task[1])

    def _ask(self, readout: Readout, known: Sequence[Sides], come: int) -> Asked:
        """Who answers, knowing the training images of these tasks."""
        bank = Embedded(*(torch.cat(side) for side in zip(*(sides[0] for sides in known), strict=True)))
        if readout.endswith("linear"):
            classes, labels = bank.labels.unique(return_inverse=True)
            probe = fit_probe(bank.features, labels)
            return lambda asked: probe_accuracy(probe, asked.features, _renumbered(asked.labels, classes))
        wanted = self.evaluation.num_neighbors if self.reading.k_rule == "fixed" else max(1, come)
        vote: dict[str, Any] = {"k": min(wanted, len(bank.labels)), "temperature": self.evaluation.knn_temperature}
        return lambda asked: knn_accuracy(*asked, *bank, **vote, device=self.eye.device)


def labelled_parts(task: Task, bank: int | None, asked: int | None = None) -> tuple[ImageSet, ImageSet] | None:
    """The first labelled images that are known of a task, and that are asked about; None where there are none."""
    parts = task.known.labelled.head(bank), task.test.labelled.head(asked)
    return None if any(part.labels is None or not len(part) for part in parts) else parts


def _can_ask(known: Sequence[Sides]) -> bool:
    """Whether there are two classes to decide between."""
    return bool(known) and len(torch.cat([sides[0].labels for sides in known]).unique()) > 1


def _renumbered(labels: Tensor, classes: Tensor) -> Tensor:
    """Labels as places among `classes`, −1 for one that is not among them, which nobody can get right."""
    places = torch.searchsorted(classes, labels).clamp_max(len(classes) - 1)
    return torch.where(classes[places] == labels, places, -1)
