"""The tasks of a stream: every image of a used class in exactly one of them, and labels that lead back to names."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phinets.config.continual import AppendedTask, ContinualConfig, StreamOptions
from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.continual.tasks import Stream, fingerprints, stream
from phinets.data import Files, ImageSet, InMemory, cifar5m, load
from phinets.data.cifar5m import prepare
from phinets.data.shapes import CLASSES
from tests.data import making

pytestmark = pytest.mark.filterwarnings("ignore:.*not the published file:UserWarning")

SOURCE = DataOptions(train_images=400, test_images=200, image_size=8)


def config(data: str = "shapes", source: DataOptions = SOURCE, appended: Any = (), **tasks: Any) -> ContinualConfig:
    return ContinualConfig(data=data, source=source, stream=StreamOptions(**tasks), appended=appended)


def pixels(part: ImageSet) -> list[bytes]:
    return [image.tobytes() for image in part.images.fetch(torch.arange(len(part))).images.numpy()]


def names(found: Stream, part: ImageSet) -> list[str]:
    assert part.labels is not None
    return [found.classes[label] for label in part.labels.tolist()]


def numbered(path: Path, labels: list[int] | None, side: int = 8, seed: int = 0) -> str:
    """An .npz of noise with these labels; its name as data."""
    n = 40 if labels is None else len(labels)
    arrays: dict[str, Any] = {"X": making.noise(n, side, side, 3, seed=seed)}
    if labels is not None:
        arrays["Y"] = np.array(labels)
    np.savez(path, **arrays)
    return f"npz:{path}"


def painted(root: Path, domain: str, classes: tuple[str, ...], n: int = 10) -> None:
    for name in classes:
        for i in range(n):
            making.save(root / domain / name / f"{domain}-{name}-{i}.png")


# ---- by class


@pytest.mark.parametrize("shape", [None, "5x2", "10x1", "2x5", "3x3"])
@pytest.mark.parametrize("order", [(), ("star", "9", *CLASSES[:5], "bars", "dots", "6")])
def test_every_image_of_a_used_class_is_in_exactly_one_task_under_its_own_name(
    shape: str | None, order: tuple[str, ...]
) -> None:
    found, whole = stream(config(tasks=shape, class_order=order)), load("shapes", SOURCE)
    count, each = (5, 2) if shape is None else tuple(map(int, shape.split("x")))
    assert len(found.tasks) == count
    assert len(found.classes) == count * each
    for part in ("train", "test"):
        everything = whole.splits[part]
        assert everything.labels is not None
        named = [CLASSES[label] for label in everything.labels.tolist()]
        expected = sorted((p, n) for p, n in zip(pixels(everything), named, strict=True) if n in found.classes)
        pairs: list[tuple[bytes, str]] = []
        for i, task in enumerate(found.tasks):
            here = names(found, task.splits[part])
            assert set(here) == set(found.classes[i * each : (i + 1) * each])
            pairs += zip(pixels(task.splits[part]), here, strict=True)
        assert sorted(pairs) == expected


def test_classes_come_as_the_data_set_counts_them() -> None:
    found = stream(config())
    assert found.classes == CLASSES
    assert [task.name for task in found.tasks][:2] == ["disc, ring", "square, triangle"]


def test_classes_come_in_the_order_that_was_said_by_name_or_number_and_may_be_few() -> None:
    found = stream(config(class_order=("star", "0", "bars", "2")))
    assert found.classes == ("star", "disc", "bars", "square")
    assert [task.name for task in found.tasks] == ["star, disc", "bars, square"]


def test_a_seed_shuffles_the_classes_always_in_the_same_way_whatever_the_run_s_own() -> None:
    orders = [stream(config(order_seed=seed)).classes for seed in range(4)]
    assert all(sorted(order) == sorted(CLASSES) for order in orders)
    assert len({*orders, CLASSES}) == 5
    assert stream(replace(config(order_seed=2), seed=7)).classes == orders[2]


def test_a_task_of_many_classes_is_named_by_the_first_and_the_last() -> None:
    assert [task.name for task in stream(config(tasks="2x5")).tasks] == ["disc … cross", "star … hourglass"]
    assert stream(config(tasks="3x3")).tasks[0].name == "disc, ring, square"


def test_chosen_classes_are_split_in_the_order_of_choosing() -> None:
    found = stream(config(source=replace(SOURCE, classes=("star", "disc", "bars", "ring"))))
    assert found.classes == ("star", "disc", "bars", "ring")


def test_each_class_of_shapes_has_about_a_tenth_of_the_images_that_were_asked_for() -> None:
    found = stream(config(source=replace(SOURCE, train_images=4000)))
    assert all(abs(len(task.train) - 800) < 100 for task in found.tasks)
    assert sum(len(task.train) for task in found.tasks) == 4000


def test_what_is_known_is_what_is_learned_from_where_there_is_no_bank() -> None:
    assert all(task.eval_train is task.train for task in stream(config()).tasks)


def test_of_cifar5m_each_task_knows_its_own_share_of_the_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar5m, "BANK", 30)
    monkeypatch.setattr(cifar5m, "TEST", 20)
    images = making.cifar5m_parts(tmp_path / "from", n=50)
    list(prepare(tmp_path / "from", tmp_path / "cifar5m"))
    found = stream(config("cifar5m", DataOptions(root=str(tmp_path)), order_seed=1))
    expected = {"train": np.concatenate(images[:5]), "test": images[5][:20], "bank": images[0][:30]}
    for task in found.tasks:
        own = [cifar5m.CLASSES.index(name) for name in task.name.split(", ")]
        for name, part in task.splits.items():
            everything = expected[name].transpose(0, 3, 1, 2)
            rows = [i for i in range(len(everything)) if i % 50 % 10 in own]
            assert pixels(part) == [everything[i].tobytes() for i in rows]
            assert names(found, part) == [cifar5m.CLASSES[i % 50 % 10] for i in rows]
    assert [len(task.eval_train) for task in found.tasks] == [6] * 5


def test_images_of_which_nobody_knows_the_class_are_left_out(tmp_path: Path) -> None:
    making.stl10(tmp_path, train=20, unlabelled=9, test=10)
    found = stream(config("stl10", DataOptions(root=str(tmp_path))))
    assert [len(task.train) for task in found.tasks] == [4] * 5
    for task in found.tasks:
        assert {name for part in task.splits.values() for name in names(found, part)} == set(task.name.split(", "))


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ({"tasks": "20x5"}, "20x5.*100 classes.*'shapes' has 10.*--tasks 10x1, 5x2, 2x5"),
        ({"tasks": "2x3", "class_order": ("0", "1", "2", "3")}, "--class-order names 4.*--tasks 4x1, 2x2"),
        (
            {"class_order": ("0", "1", "2")},
            "--class-order names 3 classes.*--tasks 3x1 or .*1x2",
        ),
        ({"class_order": ("0",)}, "names 1 class.*--tasks 1x1"),
        ({"class_order": ("star", "stra")}, "there is no class called 'stra'. Did you mean 'star'"),
        ({"class_order": ("star", "10")}, "no class called '10'.*from 0 to 9"),
        ({"class_order": ("star", "5")}, "names the class 'star' twice"),
        ({"split": "domain"}, "--split domain takes each first-level folder of folder:PATH.*the data are 'shapes'"),
        ({"task_data": ("shapes", "folder:nowhere")}, "task 2, 'folder:nowhere': there is no folder 'nowhere'"),
        ({"task_data": ("shapes", "shape")}, "task 2, 'shape': .*Did you mean 'shapes'"),
    ],
)
def test_what_can_t_be_a_stream_is_said(tasks: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        stream(config(**tasks))


def test_data_without_labels_can_t_be_split_by_class(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x.npz' has no labels.*--task-data"):
        stream(config(numbered(tmp_path / "x.npz", None)))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"train_images": 1}, r"task \d, '.*', has no training images.*--train-images"),
        ({"test_images": 1}, r"task \d, '.*', has no test images.*--test-images"),
    ],
)
def test_an_empty_task_is_named(more: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        stream(config(source=replace(SOURCE, **more)))


def test_a_task_of_which_the_bank_has_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar5m, "BANK", 4)
    making.cifar5m_parts(tmp_path / "from", n=50)
    list(prepare(tmp_path / "from", tmp_path / "cifar5m"))
    with pytest.raises(UserError, match=r"task 3, 'deer, dog', has no labeled images"):
        stream(config("cifar5m", DataOptions(root=str(tmp_path))))


# ---- by domain


def test_domains_are_the_first_level_folders_in_their_order_and_share_classes_by_name(tmp_path: Path) -> None:
    painted(tmp_path, "sketch", ("cat", "dog"))
    painted(tmp_path, "photo", ("dog", "eel"))
    (tmp_path / ".hidden").mkdir()
    making.save(tmp_path / "cover.png")
    found = stream(config(f"folder:{tmp_path}", DataOptions(), split="domain"))
    assert [task.name for task in found.tasks] == ["photo", "sketch"]
    assert found.classes == ("dog", "eel", "cat")
    for task in found.tasks:
        for part in task.splits.values():
            assert isinstance(part.images, Files)
            written = [Path(path).name.split("-") for path in part.images.paths]
            assert [(task.name, name) for name in names(found, part)] == [(d, name) for d, name, _ in written]
    assert [len(task.train) + len(task.test) for task in found.tasks] == [20, 20]


def test_a_domain_may_have_its_own_train_and_test_folders(tmp_path: Path) -> None:
    for part in ("train", "test"):
        painted(tmp_path / "photo", part, ("dog", "eel"), n=2 if part == "test" else 5)
    found = stream(config(f"folder:{tmp_path}", DataOptions(), split="domain"))
    assert [(task.name, len(task.train), len(task.test)) for task in found.tasks] == [("photo", 10, 4)]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ((), "no subfolders"),
        (("train/cat", "val/cat"), "train and val"),
        (None, "No such file"),
    ],
)
def test_folders_that_are_no_domains_are_refused(made: tuple[str, ...] | None, says: str, tmp_path: Path) -> None:
    for name in made or ():
        (tmp_path / name).mkdir(parents=True)
    place = tmp_path / "nowhere" if made is None else tmp_path
    with pytest.raises(UserError, match=says):
        stream(config(f"folder:{place}", split="domain"))


# ---- one data set each


def test_each_data_set_is_a_task_and_classes_of_one_name_are_one_class(tmp_path: Path) -> None:
    painted(tmp_path, "pets", ("cat", "dog"))
    painted(tmp_path, "sea", ("eel", "cat"))
    data = ("shapes", f"folder:{tmp_path / 'sea'}/", f"folder:{tmp_path / 'pets'}")
    found = stream(config(task_data=data))
    assert [task.name for task in found.tasks] == ["shapes", "sea", "pets"]
    assert found.classes == (*CLASSES, "cat", "eel", "dog")
    for task in found.tasks[1:]:
        for part in task.splits.values():
            assert isinstance(part.images, Files)
            assert names(found, part) == [Path(path).name.split("-")[1] for path in part.images.paths]


def test_classes_that_are_mere_numbers_are_a_task_s_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    data = tuple(numbered(tmp_path / name / "x.npz", [0, 1] * 20, seed=i) for i, name in enumerate(("a", "b")))
    painted(tmp_path, "pets", ("7", "cat"))
    found = stream(config(task_data=(*data, f"folder:{tmp_path / 'pets'}")))
    assert found.classes == ("x.npz 0", "x.npz 1", "x.npz (2) 0", "x.npz (2) 1", "pets 7", "cat")
    for task, eval_train in zip(found.tasks, ({0, 1}, {2, 3}, {4, 5}), strict=True):
        for part in task.splits.values():
            assert part.labels is not None
            assert set(part.labels.tolist()) == eval_train


def test_numbers_of_an_appended_task_are_as_if_it_had_been_planned(tmp_path: Path) -> None:
    one, two, three = (numbered(tmp_path / f"{i}.npz", [0, 1] * 20, seed=i) for i in range(3))
    planned = stream(config(task_data=(one, two, three)))
    later = stream(config(task_data=(one,), appended=tuple(AppendedTask(data=name, epochs=1) for name in (two, three))))
    assert later.classes == planned.classes
    assert fingerprints(later) == fingerprints(planned)
    assert len(planned.classes) == 6
    chosen = stream(config(task_data=(one,), appended=(AppendedTask(data=two, epochs=1, classes=("1",)),)))
    assert chosen.classes == ("0.npz 0", "0.npz 1", "1.npz 1")
    cut = stream(config(one, tasks="2x1", appended=(AppendedTask(data=two, epochs=1),)))
    assert cut.classes == ("0", "1", "1.npz 0", "1.npz 1")


def test_numbers_of_one_data_set_are_one_class_in_all_of_its_domains(tmp_path: Path) -> None:
    for domain in ("ink", "pen"):
        painted(tmp_path, domain, ("0", "1"))
    found = stream(config(f"folder:{tmp_path}", DataOptions(), split="domain"))
    assert found.classes == ("0", "1")


@pytest.mark.parametrize("splits", [("",), ("train", "val")])
def test_a_lone_subfolder_is_a_class_in_a_stream_and_nowhere_else(splits: tuple[str, ...], tmp_path: Path) -> None:
    painted(tmp_path, "pets", ("cat", "dog"))
    for part in splits:
        painted(tmp_path / "new", part, ("eel",))
    pets, new = f"folder:{tmp_path / 'pets'}", f"folder:{tmp_path / 'new'}/"
    planned = stream(config(task_data=(pets, new)))
    appended = [AppendedTask(data=new, epochs=1), AppendedTask(data=new, epochs=1, classes=("eel",))]
    for found in (planned, *(stream(config(task_data=(pets,), appended=(one,))) for one in appended)):
        assert found.classes == ("cat", "dog", "eel")
        assert fingerprints(found) == fingerprints(planned)
        assert {name for part in found.tasks[1].splits.values() for name in names(found, part)} == {"eel"}
    assert names(planned, stream(config(task_data=(pets, f"stream:{new}"))).tasks[1].train)[0] == "eel"
    assert load(new, SOURCE).classes == ()
    assert load(new, SOURCE).train.labels is None
    with pytest.raises(UserError, match=r"no labels.*--task-data"):
        stream(config(new))


def test_pictures_that_lie_in_no_one_subfolder_have_no_class(tmp_path: Path) -> None:
    for i in range(20):
        making.save(tmp_path / "flat" / f"{i}.png")
    painted(tmp_path, "mixed", ("eel",))
    making.save(tmp_path / "mixed" / "cover.png")
    for part in ("train", "val"):
        painted(tmp_path / "half", part, ("eel",) if part == "train" else ())
    for i in range(4):
        making.save(tmp_path / "half" / "val" / f"{i}.png")
    found = stream(config(task_data=tuple(f"folder:{tmp_path / name}" for name in ("flat", "mixed", "half"))))
    assert found.classes == ()
    assert all(part.labels is None for task in found.tasks for part in task.splits.values())


def test_labels_are_optional_and_images_without_one_are_learned_from(tmp_path: Path) -> None:
    making.stl10(tmp_path, train=20, unlabelled=9, test=10)
    data = (numbered(tmp_path / "plain.npz", None), numbered(tmp_path / "eval_train.npz", [0, 1] * 20))
    source = DataOptions(root=str(tmp_path))
    plain, eval_train = stream(config(source=source, task_data=data)).tasks
    assert plain.train.labels is plain.eval_train.labels is plain.test.labels is None
    assert set(eval_train.train.labels.tolist() if eval_train.train.labels is not None else ()) == {0, 1}
    found = stream(config(source=source, task_data=("stl10",)))
    (task,) = found.tasks
    assert (len(task.train), len(task.eval_train), len(task.test)) == (29, 20, 10)
    assert task.train.labels is not None
    assert int((task.train.labels < 0).sum()) == 9


def test_places_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        files.append(numbered(tmp_path / name / "x.npz", None))
    assert [task.name for task in stream(config(task_data=tuple(files))).tasks] == ["x.npz", "x.npz (2)", "x.npz (3)"]


# ---- appended


def test_what_is_appended_changes_nothing_about_what_came_before(tmp_path: Path) -> None:
    painted(tmp_path, "new", ("ant", "star", "bee"))
    before = stream(config(tasks="2x5", order_seed=3))
    appended = (
        AppendedTask(data=f"folder:{tmp_path / 'new'}", epochs=1, classes=("star", "bee")),
        AppendedTask(data=f"folder:{tmp_path / 'new'}", epochs=2),
    )
    after = stream(config(tasks="2x5", order_seed=3, appended=appended))
    assert after.classes == (*before.classes, "bee", "ant")
    assert [task.name for task in after.tasks] == [*(task.name for task in before.tasks), "new", "new (2)"]
    said = fingerprints(after)
    assert {key: said[key] for key in fingerprints(before)} == fingerprints(before)
    for task, expected in zip(after.tasks[2:], ({"star", "bee"}, {"ant", "star", "bee"}), strict=True):
        assert set(names(after, task.train)) == expected
        assert isinstance(task.train.images, Files)
        assert names(after, task.train) == [Path(path).name.split("-")[1] for path in task.train.images.paths]


def test_images_of_another_size_are_refused_where_arrays_fix_theirs(tmp_path: Path) -> None:
    painted(tmp_path, "new", ("ant", "bee"))
    large = AppendedTask(data=numbered(tmp_path / "large.npz", [0, 1] * 20, side=12), epochs=1)
    pictures = AppendedTask(data=f"folder:{tmp_path / 'new'}", epochs=1)
    with pytest.raises(UserError, match=r"task 7, 'large.npz'.* 12 × 12.* 8 × 8"):
        stream(config(appended=(pictures, large)))
    assert len(stream(config(appended=(pictures,))).tasks) == 6
    assert len(stream(config(task_data=(large.data,), appended=(pictures,))).tasks) == 2


def test_a_mistake_in_what_is_appended_is_said_with_its_task() -> None:
    with pytest.raises(UserError, match=r"task 6, 'npz:no.npz': there is no file"):
        stream(config(appended=(AppendedTask(data="npz:no.npz", epochs=1),)))


# ---- fingerprints


def test_fingerprints_have_a_line_for_each_part_of_each_task_and_notice_what_changes(tmp_path: Path) -> None:
    data = (numbered(tmp_path / "one.npz", None), numbered(tmp_path / "two.npz", None))
    first = fingerprints(stream(config(task_data=data)))
    assert list(first) == ["task 1 train", "task 1 test", "task 2 train", "task 2 test"]
    numbered(tmp_path / "two.npz", None, seed=1)
    second = fingerprints(stream(config(task_data=data)))
    assert [key for key in first if first[key] != second[key]] == ["task 2 train", "task 2 test"]


def test_of_cifar5m_fingerprints_notice_other_classes(tmp_path: Path) -> None:
    making.cifar5m_parts(tmp_path / "from", n=50)
    list(prepare(tmp_path / "from", tmp_path / "cifar5m"))
    one, other = (
        fingerprints(stream(config("cifar5m", DataOptions(root=str(tmp_path)), class_order=order)))
        for order in (("cat", "dog"), ("dog", "frog"))
    )
    assert list(one) == ["task 1 train", "task 1 test", "task 1 bank"]
    assert all(one[key] != other[key] for key in one)


def test_arrays_in_memory_stay_arrays_in_memory() -> None:
    assert all(isinstance(task.train.images, InMemory) for task in stream(config()).tasks)
