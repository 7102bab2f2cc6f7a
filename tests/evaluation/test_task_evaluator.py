"""The readouts of a stream, against what kNN and the probe say when they are asked task by task."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from phinets.config.continual import Readout, ReadoutOptions
from phinets.config.run import EvalConfig
from phinets.config.views import PLANS
from phinets.continual.tasks import Stream, Task
from phinets.data import BadImages, ImageSet, InMemory
from phinets.evaluation.evaluator import TaskEvaluator
from phinets.evaluation.features import FeatureExtractor
from phinets.evaluation.knn import knn_accuracy
from phinets.evaluation.linear import fit_probe, probe_accuracy

READOUTS: tuple[Readout, ...] = ("task-knn", "task-linear", "class-knn", "class-linear")
PROTOCOL = EvalConfig(num_neighbors=7, online_bank=40, online_queries=20)
SIZE = 4


class Flat(nn.Module):
    """An encoder whose features are a few pixels; counts the images that it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(()))
        self.shown = 0

    def forward(self, x: Tensor) -> Tensor:
        self.shown += len(x)
        return x.flatten(1)[:, ::3]


def images(n: int, classes: tuple[int, ...], seed: int, spread: float = 110.0) -> ImageSet:
    """Noise around one color for each class: neither hopeless nor trivial."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.tensor(classes)[torch.randint(len(classes), (n,), generator=generator)]
    centres = torch.randint(60, 196, (10, 3, SIZE, SIZE), generator=torch.Generator().manual_seed(0))
    noise = spread * torch.randn(n, 3, SIZE, SIZE, generator=generator)
    return ImageSet(InMemory((centres[labels] + noise).clamp(0, 255).to(torch.uint8)), labels)


def task(number: int, classes: tuple[int, ...]) -> Task:
    train = images(40, classes, seed=number)
    return Task(name=f"{number}", train=train, eval_train=train, test=images(30, classes, seed=100 + number))


STREAM = Stream(tasks=(task(1, (0, 1)), task(2, (2, 3)), task(3, (4, 5))), classes=tuple("abcdef"))


def reader(stream: Stream = STREAM, **reading: Any) -> TaskEvaluator:
    extractor = FeatureExtractor(plan=PLANS["ucl"], size=SIZE, device=torch.device("cpu"), bad_images=BadImages(0))
    return TaskEvaluator(
        stream=stream,
        extractor=extractor,
        evaluation=PROTOCOL,
        reading=ReadoutOptions(**{"readouts": READOUTS, **reading}),
    )


def by_hand(eval_train: list[Task], asked: Task, linear: bool, k: int) -> float:
    eye, encoder = reader().extractor, Flat()
    a = eye.extract(asked.test, encoder)
    sides = [eye.extract(one.train, encoder) for one in eval_train]
    features, labels = torch.cat([s.tensors()[0] for s in sides]), torch.cat([s.labels for s in sides])
    if linear:
        least = int(labels.min())  # the tasks' classes follow each other
        return probe_accuracy(fit_probe(features, labels - least), a.tensors()[0], a.labels - least)
    return knn_accuracy(*a, features, labels, k=k, temperature=PROTOCOL.knn_temperature)


@pytest.mark.parametrize("come", [0, 1, 2, 3])
def test_task_wise_readouts_know_and_decide_among_one_task_alone(come: int) -> None:
    found = reader().evaluate(Flat(), come)
    for readout in ("task-knn", "task-linear"):
        expected = [by_hand([one], one, readout == "task-linear", 7) for one in STREAM.tasks]
        assert found[readout] == pytest.approx(expected)


@pytest.mark.parametrize("come", [0, 1, 2, 3])
def test_class_incremental_readouts_know_all_that_has_come_or_would_have_with_the_task(come: int) -> None:
    found = reader().evaluate(Flat(), come)
    for readout in ("class-knn", "class-linear"):
        for i, one in enumerate(STREAM.tasks):
            eval_train = list(STREAM.tasks[: max(come, i + 1)])
            assert found[readout][i] == pytest.approx(by_hand(eval_train, one, readout == "class-linear", 7))


def test_more_classes_make_the_class_incremental_question_harder_and_leave_the_task_wise_one_alone() -> None:
    early, late = reader().evaluate(Flat(), 1), reader().evaluate(Flat(), 3)
    assert early["task-knn"] == late["task-knn"]
    assert (late["class-knn"][0] or 0) < (early["class-knn"][0] or 0)


def test_as_many_neighbors_vote_as_tasks_have_come() -> None:
    for come, k in ((0, 1), (1, 1), (3, 3)):
        found = reader(k_rule="tasks-seen", readouts=("task-knn",)).evaluate(Flat(), come)
        assert found["task-knn"] == pytest.approx([by_hand([one], one, False, k) for one in STREAM.tasks])


def test_every_image_is_embedded_once_for_all_readouts_and_tasks() -> None:
    encoder = Flat()
    reader().evaluate(encoder, 2)
    assert encoder.shown == 3 * (40 + 30)


def test_a_task_without_labels_is_not_asked_and_does_not_disturb_the_others() -> None:
    bare = ImageSet(STREAM.tasks[1].train.images, None)
    silent = Task(name="silent", train=bare, eval_train=bare, test=bare)
    found = reader(replace(STREAM, tasks=(STREAM.tasks[0], silent, STREAM.tasks[2]))).evaluate(Flat(), 3)
    alone = reader(replace(STREAM, tasks=(STREAM.tasks[0], STREAM.tasks[2]))).evaluate(Flat(), 2)
    for readout in READOUTS:
        assert found[readout] == (alone[readout][0], None, alone[readout][1])


def test_of_a_task_with_one_class_nothing_can_be_asked_but_among_all_classes() -> None:
    single = reader(Stream(tasks=(task(1, (0,)), task(2, (1,))), classes=("a", "b"))).evaluate(Flat(), 2)
    assert single["task-knn"] == (None, None)
    assert all(value is not None for value in single["class-knn"])


def test_the_live_number_is_the_mean_of_the_tasks_own() -> None:
    few = replace(PROTOCOL, online_bank=300, online_queries=300, num_neighbors=7)
    live = replace(reader(), evaluation=few).online_knn(Flat())
    assert live == pytest.approx(sum(reader().evaluate(Flat(), 3)["task-knn"]) / 3)  # type: ignore[arg-type]


def test_the_final_bank_is_that_of_each_task() -> None:
    cut = Stream(
        tasks=tuple(replace(one, eval_train=one.train.head(20)) for one in STREAM.tasks), classes=STREAM.classes
    )
    capped = replace(reader(), evaluation=replace(PROTOCOL, final_bank=20))
    assert capped.evaluate(Flat(), 3) == reader(cut).evaluate(Flat(), 3)


@pytest.mark.parametrize("readout", READOUTS)
def test_every_readout_names_its_protocol(readout: Readout) -> None:
    said = reader().describe(readout)
    assert ("task-wise" if readout.startswith("task") else "class-incremental") in said
    assert ("k=7, T=0.1" in said) == readout.endswith("knn")
    assert ("logistic regression" in said) == readout.endswith("linear")
    assert "120 training and 90 test images" in said
    large = replace(reader(), evaluation=replace(PROTOCOL, num_neighbors=50, online_bank=50, final_bank=100)).describe(
        readout
    )
    assert ("k=50 (all of a smaller bank)" in large) == readout.endswith("knn")
    assert "at most 100 of a task" in large
    bare = ImageSet(STREAM.tasks[1].train.images, None)
    silent = Task(name="silent", train=bare, eval_train=bare, test=bare)
    assert "40 training and 30 test images in the 1 tasks that have labels" in reader(
        Stream(tasks=(STREAM.tasks[0], silent))
    ).describe(readout)
    assert "no task has labels" in reader(Stream(tasks=(silent,))).describe(readout)
    if readout.endswith("knn"):
        assert "k=tasks so far" in reader(k_rule="tasks-seen").describe(readout)
