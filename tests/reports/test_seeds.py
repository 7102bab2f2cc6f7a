"""Runs are pooled over seeds where they differ in nothing else; what sets the others apart is said."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from phinets.config.continual import AppendedTask, ContinualConfig, ReadoutOptions, StreamOptions
from phinets.config.errors import UserError
from phinets.config.record import ContinualRecord
from phinets.config.run import Compute, DataOptions, EvalConfig, SaveOptions
from phinets.reports.continual import forgetting_figure
from phinets.reports.seeds import groups
from tests.reports.streams import remembering, stream_record

Change = Callable[[ContinualConfig], ContinualConfig]


def changed(record: ContinualRecord, change: Change, folder: str = "runs/b") -> ContinualRecord:
    return replace(record, config=change(record.config), folder=folder)


def within(section: str, **values: Any) -> Change:
    """Another value in a section of the settings."""

    def change(config: ContinualConfig) -> ContinualConfig:
        changes: dict[str, Any] = {section: replace(getattr(config, section), **values)}
        return replace(config, **changes)

    return change


def apart(change: Change, method: str = "simsiam") -> list[str]:
    """What is said beneath method and strategy of a run, and of another whose seed and settings differ."""
    one, other = stream_record(2, 0, "simsiam"), changed(stream_record(2, 1, method), change)
    found = groups([one, other])
    assert [len(group.records) for group in found] == [1, 1]
    return [" ".join(group.name.splitlines()[2:]) for group in found]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: replace(c, epochs_per_task=1), ["epochs per task 200", "epochs per task 1"]),
        (lambda c: replace(c, batch=128), ["batch 256", "batch 128"]),
        (within("optimization", lr=0.1), ["lr 0.03", "lr 0.1"]),
        (within("optimization", schedule="cosine"), ["schedule constant", "schedule cosine"]),
        (within("optimization", constant_h=False), ["constant h yes", "constant h no"]),
        (within("learner", beta=0.5), ["beta 0.99", "beta 0.5"]),
    ],
)
def test_runs_of_a_method_that_learn_otherwise_stand_apart(change: Change, told: list[str]) -> None:
    assert apart(change) == told
    assert apart(change, "byol") == ["", ""]  # the method says it already


@pytest.mark.parametrize(
    ("memory", "values", "told"),
    [
        ({"replay": "mixup"}, {"mixup_alpha": 0.3}, ["mixup alpha 0.4", "mixup alpha 0.3"]),
        ({"distil": "cassle"}, {"distil_weight": 2.0}, ["distil weight 1", "distil weight 2"]),
        ({"distil": "cassle"}, {"distil_hidden": (8, 8)}, ["distil hidden 2048", "distil hidden 8 8"]),
    ],
)
def test_a_strategy_s_numbers_set_runs_apart(memory: Any, values: Any, told: list[str]) -> None:
    one, other = (remembering(stream_record(2, seed), **memory) for seed in (0, 1))
    found = groups([one, changed(other, within("memory", **values))])
    assert [group.name.splitlines()[2] for group in found] == told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (within("stream", tasks="2x5"), ["tasks –", "tasks 2x5"]),
        (within("stream", order_seed=3), ["order seed –", "order seed 3"]),
        (within("stream", class_order=("7", "2")), ["class order –", "class order 7 2"]),
        (within("source", shapes_seed=1), ["shapes seed 0", "shapes seed 1"]),
        (within("source", train_images=500), ["train images –", "train images 500"]),
        (within("evaluation", num_neighbors=20), ["num neighbors 200", "num neighbors 20"]),
        (within("evaluation", knn_temperature=0.2), ["knn temperature 0.1", "knn temperature 0.2"]),
        (within("evaluation", final_bank=500), ["final bank –", "final bank 500"]),
        (within("reading", k_rule="tasks-seen"), ["k rule fixed", "k rule tasks-seen"]),
        (within("reading", readouts=("task-linear",)), ["readouts task-knn class-knn", "readouts task-linear"]),
        (
            lambda c: replace(c, appended=(AppendedTask(data="svhn", epochs=3),)),
            ["appended –", "appended svhn 3 – – –"],
        ),
    ],
)
@pytest.mark.parametrize("method", ["simsiam", "byol"])
def test_what_is_asked_otherwise_is_said_of_every_run_whatever_its_method(
    change: Change, told: list[str], method: str
) -> None:
    assert apart(change, method) == told


def test_of_a_long_value_it_is_said_which_run_has_it() -> None:
    order = tuple(f"class-{i}" for i in range(100))
    assert apart(within("stream", class_order=order)) == ["class order –", "class order as in runs/b"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"tasks": ("cat", "dog")}, ["airplane+automobile bird+cat", "cat dog"]),
        ({"images": (900, 900)}, ["training images 1000 1000", "training images 900 900"]),
    ],
)
def test_data_that_have_changed_behind_the_same_settings_are_told_of(values: Any, told: list[str]) -> None:
    one, other = stream_record(2, 0), stream_record(2, 1, "byol")
    other = replace(other, summary=replace(other.summary, **values))
    found = [" ".join(group.name.splitlines()[2:]) for group in groups([one, other])]
    assert [text.removeprefix("names of tasks ") for text in found] == told


def test_tasks_that_follow_from_the_settings_are_not_told_of_twice() -> None:
    one, other = (
        stream_record(2, 0),
        changed(stream_record(3, 1), lambda c: replace(c, stream=StreamOptions(tasks="3x2"))),
    )
    assert [group.name.splitlines()[2:] for group in groups([one, other])] == [["tasks –"], ["tasks 3x2"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c,
        lambda c: c.resolved,
        lambda c: replace(c, compute=Compute(device="cpu", threads=1), saving=SaveOptions(checkpoint_every="9steps")),
        lambda c: replace(c, source=DataOptions(root="elsewhere", download=True, max_bad_images=3), keep_tasks=True),
        lambda c: replace(
            c, evaluation=EvalConfig(eval_every=7, eval_at_images=(9,), online_bank=300, health_metrics=("spectrum",))
        ),
        lambda c: replace(c, reading=ReadoutOptions(readouts=c.reading.readouts, evals_per_task=5)),
        within("memory", buffer=512, mixup_alpha=0.1, distil_weight=3.0, distil_hidden=(4,)),
    ],
)
def test_what_changes_neither_what_is_learned_nor_what_is_asked_does_not_part_seeds(change: Change) -> None:
    (group,) = groups([stream_record(2, 0), changed(stream_record(2, 1), change)])
    assert [record.config.seed for record in group.records] == [0, 1]
    assert group.name == "x-phinet/cosine\nfinetune"


def test_a_run_that_is_named_twice_is_no_second_seed() -> None:
    with pytest.raises(UserError, match=r"'runs/b' and 'runs/b' .* same seed 0"):
        forgetting_figure([changed(stream_record(2), lambda c: c)] * 2)


def test_a_run_that_was_made_twice_is_no_second_seed() -> None:
    records = [changed(stream_record(2, seed), lambda c: c, f"runs/{i}") for i, seed in enumerate((3, 5, 3))]
    with pytest.raises(UserError, match=r"'runs/0' and 'runs/2' .* same seed 3"):
        forgetting_figure(records)


def test_a_run_of_the_same_seed_but_other_settings_stands_beside_it() -> None:
    records = [stream_record(2), changed(stream_record(2), lambda c: replace(c, epochs_per_task=1))]
    labels = [label.get_text() for label in forgetting_figure(records).axes[0].get_yticklabels()]
    assert labels == ["x-phinet/cosine\nfinetune\nepochs per task 200", "x-phinet/cosine\nfinetune\nepochs per task 1"]
