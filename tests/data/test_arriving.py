"""Data that arrive: in their own order, pass after pass; and shapes without end."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.config.views import PLANS
from phinets.data import DATA, Files, ImageSet, fingerprint, load
from phinets.data.cifar5m import prepare
from phinets.data.shapes import CLASSES, draw
from phinets.data.shapes.scene import WORLD, World
from phinets.training.loader import ViewLoader
from tests.data import making

pytestmark = pytest.mark.filterwarnings("ignore:.*not the published file:UserWarning")

SMALL = DataOptions(train_images=300, test_images=20, image_size=8)


def pixels(part: ImageSet) -> np.ndarray:
    return part.images.fetch(torch.arange(len(part))).images.numpy()


def printable(part: ImageSet, seed: int = 0) -> torch.Tensor:
    return torch.as_tensor(part.images.order(torch.Generator().manual_seed(seed)))


@pytest.fixture
def places(tmp_path: Path) -> dict[str, DataOptions]:
    """Small data of every kind, and how they are loaded."""
    making.cifar10(tmp_path)
    making.stl10(tmp_path)
    making.cifar5m_parts(tmp_path / "from", n=50)
    list(prepare(tmp_path / "from", tmp_path / "cifar5m"))
    np.savez(tmp_path / "x.npz", X=making.noise(60, 8, 8, 3), Y=np.arange(60) % 3)
    for i in range(30):
        making.save(tmp_path / "film" / f"{i:03}.png")
    at = DataOptions(root=str(tmp_path), image_size=8)
    return dict.fromkeys(("cifar10", "stl10", "cifar5m", f"npz:{tmp_path / 'x.npz'}", f"folder:{tmp_path}/film"), at)


def test_what_arrives_is_what_is_there_otherwise_in_an_order_that_no_seed_changes(
    places: dict[str, DataOptions],
) -> None:
    for name, options in places.items():
        whole, as_stream = load(name, options), load(f"stream:{name}", options)
        assert fingerprint(as_stream) == fingerprint(whole)
        assert as_stream.classes == whole.classes
        for part, ours in as_stream.splits.items():
            assert (pixels(ours) == pixels(whole.splits[part])).all()
            assert (ours.labels is None) == (whole.splits[part].labels is None)
        orders = [printable(as_stream.train, seed).tolist() for seed in range(3)]
        assert orders[0] == orders[1] == orders[2]
        assert sorted(orders[0]) == list(range(len(whole.train)))


@pytest.mark.parametrize("name", ["cifar10", "stl10", "cifar5m"])
def test_arrays_arrive_as_they_are_counted(name: str, places: dict[str, DataOptions]) -> None:
    part = load(f"stream:{name}", places[name]).train
    assert printable(part).tolist() == list(range(len(part)))
    assert printable(part.head(7)).tolist() == list(range(7))
    assert printable(part.subset(torch.tensor([4, 2, 9]))).tolist() == [0, 1, 2]


def test_an_npz_arrives_as_its_file_has_it(tmp_path: Path, places: dict[str, DataOptions]) -> None:
    name = f"npz:{tmp_path / 'x.npz'}"
    every = [image.tobytes() for image in np.load(tmp_path / "x.npz")["X"].transpose(0, 3, 1, 2)]
    for options in (places[name], DataOptions(train_images=20), DataOptions(classes=("2", "0"))):
        part = load(f"stream:{name}", options).train
        numbers = [every.index(image.tobytes()) for image in pixels(part)[printable(part)]]
        assert all(one < following for one, following in pairwise(numbers))


def numbers_in(path: str | Path) -> list[int]:
    """Scene and frame of `scene2/frame10.png`."""
    return [int("".join(filter(str.isdigit, part))) for part in Path(path).parts[-2:]]


@pytest.mark.parametrize("roots", [("film",), ("film/train", "film/val")])
@pytest.mark.parametrize("n", [None, 9, 1])
def test_the_frames_of_a_film_arrive_as_they_are_numbered_the_first_ones_first(
    n: int | None, roots: tuple[str, ...], tmp_path: Path
) -> None:
    for root in roots:
        for scene in (1, 2, 10):
            for frame in range(1, 13):
                making.save(tmp_path / root / f"scene{scene}" / f"frame{frame}.png")
    name = f"stream:folder:{tmp_path}/film"
    every = load(name, DataOptions()).train.images
    split = load(name, DataOptions(train_images=n))
    part = split.train
    assert isinstance(every, Files)
    assert isinstance(part.images, Files)
    seen = [part.images.paths[row] for row in printable(part)]
    assert list(map(numbers_in, seen)) == sorted(map(numbers_in, every.paths))[:n]
    assert part.labels is not None
    assert [split.classes[label] for label in part.labels] == [Path(path).parent.name for path in part.images.paths]


def test_numbers_of_one_value_and_names_without_any_have_an_order_too() -> None:
    expected = ["01.png", "1.png", "2.png", "a.png", "a/1.png", "a1.png", "a1b.png", "a1b2.png", "a1b10.png", "b.png"]
    images = Files([f"x/{name}" for name in sorted(expected, reverse=True)], 8, sequential=True)
    assert [images.paths[row] for row in printable(ImageSet(images, None))] == [f"x/{name}" for name in expected]


@pytest.mark.parametrize("n", [1, 20, 53])
def test_so_many_images_of_an_npz_are_the_first_ones_of_its_file(
    n: int, tmp_path: Path, places: dict[str, DataOptions]
) -> None:
    name = f"npz:{tmp_path / 'x.npz'}"
    file = np.load(tmp_path / "x.npz")
    every = [image.tobytes() for image in file["X"].transpose(0, 3, 1, 2)]
    whole, part = load(name, places[name]).train, load(f"stream:{name}", DataOptions(train_images=n)).train
    numbers = [every.index(image.tobytes()) for image in pixels(part)[printable(part).numpy()]]
    assert numbers == sorted(every.index(image.tobytes()) for image in pixels(whole))[:n]
    assert part.labels is not None
    assert part.labels[printable(part)].tolist() == file["Y"][numbers].tolist()


def test_how_many_arrive_changes_nothing_about_what_is_asked(places: dict[str, DataOptions]) -> None:
    for name, options in places.items():
        few = fingerprint(load(f"stream:{name}", replace(options, train_images=7)))
        assert few["test"] == fingerprint(load(name, options))["test"]


def test_the_first_few_of_those_that_arrive_are_still_of_every_class(tmp_path: Path) -> None:
    """Small banks are made of them, and pictures that arrive by path arrive class by class."""
    for name in ("ant", "bee"):
        for i in range(30):
            making.save(tmp_path / name / f"{i}.png")
    few = load(f"stream:folder:{tmp_path}", DataOptions(train_images=40)).train.head(10).labels
    assert few is not None
    assert set(few.tolist()) == {0, 1}


def test_chosen_classes_arrive_too_and_are_chosen_once(places: dict[str, DataOptions]) -> None:
    part = load("stream:cifar10", DataOptions(root=places["cifar10"].root, classes=("3", "8"))).train
    assert len(part) == 20
    assert printable(part).tolist() == list(range(20))


# ---- endless shapes


@pytest.mark.parametrize(("name", "world"), [("shapes", WORLD), ("shapes/single", replace(WORLD, across=1))])
def test_endless_shapes_are_those_of_shapes_and_go_on_where_they_end(name: str, world: World) -> None:
    shapes_stream, finite = load(f"stream:{name}", SMALL), load(name, SMALL)
    assert len(shapes_stream.train) == 300
    assert (pixels(shapes_stream.train) == pixels(finite.train)).all()
    assert (pixels(shapes_stream.test) == pixels(finite.test)).all()
    assert (pixels(finite.train) == draw(np.arange(300), size=SMALL.image_size, world=world)[0]).all()
    beyond = torch.tensor([7, 10**12, 50_001, 7])
    many = load("stream:shapes", DataOptions(train_images=2**40, test_images=20, image_size=8))
    assert (many.train.images.fetch(beyond).images.numpy() == draw(beyond.numpy(), size=8)[0]).all()
    assert len(load("stream:shapes", DataOptions(test_images=1, image_size=8)).train) == 180_000


def test_the_first_ones_are_known_with_their_labels() -> None:
    for n, known in ((300, 300), (12_000, 10_000)):
        split = load("stream:shapes", DataOptions(train_images=n, test_images=5, image_size=8))
        assert split.train.labels is None
        assert split.eval_train is split.bank
        assert split.eval_train.labels is not None
        expected, labels = draw(np.arange(known), size=8)
        assert (pixels(split.eval_train) == expected).all()
        assert (split.eval_train.labels.numpy() == labels).all()
        assert split.classes == CLASSES


def test_some_of_the_endless_are_counted_anew() -> None:
    images = load("stream:shapes", SMALL).train.images
    picked = images.subset(torch.tensor([250, 3, 9]))
    assert (picked.fetch(torch.tensor([0, 2])).images == images.fetch(torch.tensor([250, 9])).images).all()
    again = picked.subset(torch.tensor([2, 0])).head(1)
    assert (again.fetch(torch.tensor([0])).images == images.fetch(torch.tensor([9])).images).all()
    assert list(images.order(torch.Generator())) == list(range(300))


@pytest.mark.parametrize(("ranks", "parts"), [(1, 1), (2, 1), (1, 4)])
def test_in_one_pass_each_picture_is_seen_exactly_once_in_the_order_of_arrival(ranks: int, parts: int) -> None:
    images = load("stream:shapes", SMALL).train.images
    loaders = [
        ViewLoader(
            images=images, plan=PLANS["none"], anchor=None, batch=16, seed=0, size=8, device=torch.device("cpu"),
            micro_batches=parts, rank=rank, ranks=ranks,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    steps = loaders[0].steps_per_epoch
    streams = [loader.batches(0, 2 * steps) for loader in loaders]
    turns = [next(stream) for _ in range(2 * steps * parts) for stream in streams]
    rows = torch.cat([turn.rows for turn in turns]).tolist()
    assert rows == 2 * list(range(288))
    seen = {view.numpy().tobytes() for turn in turns[: len(turns) // 2] for view in turn.views.first}
    assert len(seen) == 288


WALK = """
import sys, torch
from pathlib import Path
from phinets.config.run import DataOptions
from phinets.data import load
torch.set_num_threads(1)
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
def endless(n): return load("stream:shapes", DataOptions(train_images=n, test_images=10, image_size=16)).train.images
endless(1000).fetch(torch.arange(128))
before = resident()
train = endless(10**7)
order = train.order(torch.Generator())
for first in range(0, len(train), 200_000):
    train.fetch(torch.as_tensor(order[first : first + 128]))
print(len(train), resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells the resident set in this way")
def test_ten_million_pictures_take_no_more_memory_than_the_bank() -> None:
    """The bank has 10,000 pictures of 768 bytes; an array of ten million numbers would be 80 MB."""
    done = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, check=True)
    n, growth = map(int, done.stdout.split())
    assert n == 10_000_000
    assert growth < 40e6


def test_the_fingerprint_tells_worlds_sizes_and_numbers_apart() -> None:
    said = [
        fingerprint(
            load("stream:shapes", DataOptions(train_images=n, test_images=5, image_size=size, shapes_seed=shapes_seed))
        )
        for n, size, shapes_seed in ((40, 8, 0), (40, 8, 1), (40, 9, 0), (41, 8, 0), (40, 8, 0))
    ]
    assert len({one["train"] for one in said}) == 4
    assert said[0] == said[4]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("stream:shapes", DataOptions(classes=("disc",)), "stream:shapes.*--classes.*--data shapes"),
        ("stream:shapes", DataOptions(train_images=2**40 + 1), "train_images is 1099511627777"),
        ("stream:", DataOptions(), "'stream:'.*stream:NAME"),
        ("stream", DataOptions(), "'stream'.*stream:NAME"),
        ("stream:stream:shapes", DataOptions(), "says stream twice"),
        ("stream:shape", DataOptions(), "Did you mean 'shapes'"),
        ("stream:folder:", DataOptions(), "'folder:'.*folder:PATH"),
        ("stream:folder:nowhere", DataOptions(), "there is no folder 'nowhere'"),
        ("strem:shapes", DataOptions(), "Did you mean 'stream'"),
    ],
)
def test_what_can_t_arrive_is_said(name: str, options: DataOptions, says: str) -> None:
    with pytest.raises(UserError, match=says):
        load(name, options)


def test_every_data_set_that_is_endless_has_a_name() -> None:
    from phinets.data import GENERATED_STREAMS

    assert set(GENERATED_STREAMS) <= set(DATA)
