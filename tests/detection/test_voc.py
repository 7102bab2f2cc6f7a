"""The reader of VOC's layout: the convention of its boxes, its lists and classes, and every mistake by name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phinets.config.detection import ImageOptions
from phinets.config.errors import UserError
from phinets.detection.voc import VOC20, AnnotatedImage, DetectionData, read_voc
from tests.detection.helpers import annotation, voc, write

CELLS = Path(__file__).parents[2] / ".." / "shared" / "data" / "cells"


def read(home: Path, **options: object) -> DetectionData:
    return read_voc(ImageOptions(data=f"voc:{home}", **options))  # type: ignore[arg-type]


def test_boxes_count_from_0_and_end_behind_their_last_pixel(tmp_path: Path) -> None:
    scenes = read(voc(tmp_path))
    a, b = scenes.train
    assert a.truth.boxes.tolist() == [[0, 0, 10, 20], [4, 4, 40, 30]]
    assert b.truth.boxes.tolist() == [[2, 3, 12, 9]]
    assert (a.width, a.height) == (40, 30)
    assert a.truth.difficult.tolist() == [False, True]


def test_a_size_may_be_written_with_a_point(tmp_path: Path) -> None:
    voc(tmp_path)
    write(tmp_path, "b", annotation([("dog", (3, 4, 12, 9))], size=(40.0, 30.0)))
    assert (read(tmp_path).train[1].width, read(tmp_path).train[1].height) == (40, 30)


def test_a_box_of_one_pixel_is_a_box(tmp_path: Path) -> None:
    voc(tmp_path)
    write(tmp_path, "b", annotation([("dog", (7, 8, 7, 8))]))
    assert read(tmp_path).train[1].truth.boxes.tolist() == [[6, 7, 7, 8]]


def test_a_box_that_reaches_a_pixel_over_the_edge_is_cut(tmp_path: Path) -> None:
    voc(tmp_path)
    write(tmp_path, "b", annotation([("dog", (0, 0, 41, 31))]))
    assert read(tmp_path).train[1].truth.boxes.tolist() == [[0, 0, 40, 30]]


def test_classes_are_the_names_in_the_order_of_the_alphabet(tmp_path: Path) -> None:
    scenes = read(voc(tmp_path))
    assert scenes.classes == ("cat", "dog")
    assert scenes.train[0].truth.labels.tolist() == [0, 1]
    assert tuple(sorted(VOC20)) == VOC20


def test_only_the_wanted_classes_are_there_and_a_picture_without_them_is_not_learned_from(tmp_path: Path) -> None:
    scenes = read(voc(tmp_path), classes=("cat",))
    assert scenes.classes == ("cat",)
    assert [len(scene.truth.labels) for scene in scenes.train] == [1]
    assert scenes.empty_images == 1


def test_lists_are_chosen_by_what_there_is(tmp_path: Path) -> None:
    ids = {"train": ["a"], "val": ["b"], "trainval": ["a", "b"], "test": ["c"]}
    with_test = read(voc(tmp_path / "one", ids))
    assert (len(with_test.train), len(with_test.test)) == (2, 1)
    del ids["test"]
    without = read(voc(tmp_path / "two", {**ids, "train": ["a", "c"]}))
    assert [scene.path.stem for scene in without.train] == ["a", "c"]
    assert [scene.path.stem for scene in without.test] == ["b"]
    chosen = read(tmp_path / "one", train_set="train", test_set="val")
    assert [scene.path.stem for scene in (*chosen.train, *chosen.test)] == ["a", "b"]


def test_both_years_are_learned_from_and_the_first_is_asked_about(tmp_path: Path) -> None:
    voc(tmp_path / "VOCdevkit" / "VOC2007")
    voc(tmp_path / "VOCdevkit" / "VOC2012", {"trainval": ["a", "b"]})
    scenes = read(tmp_path)
    assert [scene.path.parts[-3] for scene in scenes.train] == ["VOC2007"] * 2 + ["VOC2012"] * 2
    assert [scene.path.parts[-3] for scene in scenes.test] == ["VOC2007"]
    assert scenes.lists == "VOC2007/trainval + VOC2012/trainval, tested on VOC2007/test"
    home = tmp_path / "VOCdevkit"
    apart = read_voc(ImageOptions(data=f"voc:{home / 'VOC2007'}", extra_data=(f"voc:{home / 'VOC2012'}",)))
    assert [s.path for s in apart.train] == [s.path for s in scenes.train]


def test_only_the_whole_of_voc_is_what_the_paper_s_table_is_about(tmp_path: Path) -> None:
    old, new = tmp_path / "VOC2007", tmp_path / "VOC2012"
    voc(old)
    voc(new, {"trainval": ["d", "e"]})
    assert read(old).benchmark is None  # two classes
    things = annotation([(name, (1, 1, 9, 9)) for name in VOC20])
    for home, names in ((old, "abc"), (new, "de")):
        for name in names:
            write(home, name, things)
    assert read(old).benchmark == "VOC 07"
    assert read(tmp_path).benchmark == "VOC 07+12"
    fewer = ImageOptions(data=f"voc:{tmp_path}", train_images=3)
    assert read_voc(fewer).sample(fewer, 0).benchmark is None
    assert read(old, classes=("cat", "dog")).benchmark is None
    (old / "ImageSets" / "Main" / "val.txt").write_text("b")
    (old / "ImageSets" / "Main" / "train.txt").write_text("a")
    assert read(old, train_set="train").benchmark is None
    assert read(old, train_set="train", test_set="val").benchmark is None
    assert (
        read_voc(
            ImageOptions(data=f"voc:{old}", extra_data=(f"voc:{voc(tmp_path / 'own')}",), test_set="test")
        ).benchmark
        is None
    )


def test_a_folder_is_learned_from_once_however_it_is_spelled(tmp_path: Path) -> None:
    home = voc(tmp_path / "VOC2007")
    (tmp_path / "link").symlink_to(home)
    scenes = read(home, extra_data=(f"voc:{tmp_path / 'link'}", f"voc:{home / '..' / 'VOC2007'}", f"voc:{tmp_path}"))
    assert [scene.path.stem for scene in scenes.train] == ["a", "b"]
    assert scenes.lists == "VOC2007/trainval, tested on VOC2007/test"


def test_no_other_folder_brings_test_pictures_among_those_that_are_learned_from(tmp_path: Path) -> None:
    home, other = voc(tmp_path / "one"), voc(tmp_path / "two", {"trainval": ["a", "c"]})
    with pytest.raises(
        UserError, match=r"1 images are in both .*'c': '.*two/JPEGImages/c\.jpg' and '.*one/JPEGImages/c"
    ):
        read(home, extra_data=(f"voc:{other}",))
    for kind, ending in (("Annotations", "xml"), ("JPEGImages", "jpg")):
        (other / kind / f"c.{ending}").unlink()
        (other / kind / f"other.{ending}").symlink_to(home / kind / f"c.{ending}")
    (other / "ImageSets" / "Main" / "trainval.txt").write_text("a\nother")
    with pytest.raises(UserError, match=r"two/JPEGImages/other\.jpg' and '.*one/JPEGImages/c"):
        read(home, extra_data=(f"voc:{other}",))


def test_fewer_pictures_are_drawn_by_the_seed(tmp_path: Path) -> None:
    for i in range(9):
        write(tmp_path, f"t{i}", annotation([("cat", (1, 1, 9, 9))]))
    voc(tmp_path, {"trainval": [f"t{i}" for i in range(9)] + ["b"], "test": ["c"]})
    options = ImageOptions(data=f"voc:{tmp_path}", train_images=4)
    scenes = read_voc(options)
    drawn = [[scene.path.stem for scene in scenes.sample(options, seed).train] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(len(set(names)) == 4 for names in drawn)
    assert scenes.sample(options, 0).digest() != scenes.sample(options, 1).digest()


def test_a_moved_box_changes_the_digest(tmp_path: Path) -> None:
    before = read(voc(tmp_path)).digest()
    write(tmp_path, "b", annotation([("dog", (3, 4, 12, 10))]))
    after = read(tmp_path).digest()
    assert before["train"] != after["train"]
    assert before["test"] == after["test"]


def edit(name: str, xml: str) -> Callable[[Path], None]:
    return lambda home: write(home, name, xml)


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE annotation [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    "<annotation><object><name>&b;</name></object></annotation>"
)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda home: (home / "JPEGImages/b.jpg").unlink(), r"have no image .* 'b' \(its annotation is there\)"),
        (lambda home: (home / "Annotations/b.xml").unlink(), r"have no annotation .* 'b' \(its image is there\)"),
        (lambda home: (home / "ImageSets/Main/test.txt").write_text("zz"), r"'zz' \(its annotation is missing too\)"),
        (lambda home: (home / "ImageSets/Main/test.txt").unlink(), "no list .*test.txt'. Lists there: trainval"),
        (lambda home: (home / "ImageSets/Main/test.txt").write_text("\n"), "is empty"),
        (lambda home: (home / "ImageSets/Main/test.txt").write_text("a\nc"), "1 images are in both .* 'a'"),
        (lambda home: shutil.rmtree(home / "Annotations"), "not in VOC's layout"),
        (lambda home: (home / "JPEGImages/b.jpg").write_bytes(b"torn"), "image .*b.jpg' can't be read"),
        (lambda home: (home / "Annotations/b.xml").write_text("<annotation><obj"), "b.xml' .* not valid XML"),
        (lambda home: (home / "Annotations/b.xml").write_text("<boxes/>"), "begins with <boxes>"),
        (lambda home: (home / "Annotations/b.xml").write_text(BOMB), "has a DOCTYPE"),
        (lambda home: (home / "Annotations/b.xml").write_bytes(BOMB.encode("utf-16")), "has a DOCTYPE"),
        (edit("b", annotation([("dog", (3, 4, 42, 9))])), "xmax 42.* lies outside the image, .* 40 × 30"),
        (edit("b", annotation([("dog", (-1, 4, 12, 9))])), "xmin -1.* lies outside"),
        (edit("b", annotation([("dog", (41, 4, 41, 9))])), "lies outside"),
        (edit("b", annotation([("dog", (12, 4, 3, 9))])), "xmin 12.* empty or inverted"),
        (edit("b", annotation([("dog", (float("nan"), 4, 3, 9))])), "empty or inverted"),
        (edit("b", annotation([("dog", (3, 4, 12, "?"))])), "must have four numbers"),  # type: ignore[list-item]
        (edit("b", annotation([("", (3, 4, 12, 9))])), "has no <name>"),
        (edit("b", "<annotation><object><name>dog</name></object></annotation>"), "no <bndbox>"),
        (
            edit("b", annotation([("dog", (3, 4, 12, 9))], size=(80, 60))),
            "80 × 60 pixels, but the image file has 40 × 30",
        ),
        (edit("b", annotation([], size=("wide", 30))), "wide × 30 pixels, but"),
        (edit("c", annotation([])), "test images have no box"),
        (edit("c", annotation([("hen", (3, 4, 12, 9))])), "no training box for hen"),
    ],
)
def test_a_mistake_is_named_with_its_cure(spoil: Callable[[Path], None], says: str, tmp_path: Path) -> None:
    spoil(voc(tmp_path))
    with pytest.raises(UserError, match=says):
        read(tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"classes": ("cats",)}, "no class called 'cats'. Did you mean 'cat'"),
        ({"classes": ("dog", "emu")}, "no class called 'emu'"),
        ({"train_set": "some"}, "no list .*some.txt'. Lists there: test, trainval. Choose with --train-set"),
        ({"test_set": "some"}, "Choose with --test-set"),
        ({"extra_data": ("folder:x",)}, "'folder:x' is no place of annotated images"),
    ],
)
def test_a_choice_that_is_not_there_is_named(options: dict[str, object], says: str, tmp_path: Path) -> None:
    voc(tmp_path)
    with pytest.raises(UserError, match=says):
        read(tmp_path, **options)


def test_a_turned_picture_is_read_upright(tmp_path: Path) -> None:
    voc(tmp_path)
    path = tmp_path / "JPEGImages" / "b.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (30, 40)).save(path, exif=exif)
    scene = read(tmp_path).train[1]
    assert (scene.width, scene.height) == (40, 30)


@pytest.mark.skipif(not CELLS.is_dir(), reason="the shared data are not here")
def test_real_cells_are_read_whole() -> None:
    scenes = read(CELLS)
    assert (len(scenes.train), len(scenes.test)) == (292, 72)
    assert scenes.classes == ("Platelets", "RBC", "WBC")
    counts = np.bincount(np.concatenate([s.truth.labels for s in (*scenes.train, *scenes.test)]))
    assert counts.tolist() == [361, 4155, 372]


def own_folder(home: Path) -> Path:
    """Thirty annotated images of one's own: other folder names, no lists."""
    for number in range(30):
        write(home, f"p{number}", annotation([("cat", (1, 1, 10, 20)), ("dog", (5, 5, 40, 30))]))
    shutil.rmtree(home / "ImageSets")
    (home / "JPEGImages").rename(home / "photos")
    (home / "Annotations").rename(home / "boxes")
    return home


def names(images: tuple[AnnotatedImage, ...]) -> set[str]:
    return {image.path.stem for image in images}


def test_a_folder_of_other_names_without_lists_is_split_by_itself_and_always_the_same(tmp_path: Path) -> None:
    home = own_folder(tmp_path)
    with pytest.raises(UserError, match="--annotations and --images"):
        read(home)
    data, again = (read(home, images="photos", annotations="boxes") for _ in range(2))
    assert (len(data.train), len(data.test), data.benchmark) == (24, 6, None)
    assert not names(data.train) & names(data.test)
    assert names(data.test) == names(again.test)
    more = read(home, images="photos", annotations="boxes", test_share=0.5)
    assert len(more.test) == 15
    assert names(data.test) < names(more.test)  # a larger share keeps the test images


def test_a_test_share_comes_before_lists_and_not_beside_named_ones(tmp_path: Path) -> None:
    home = voc(tmp_path)
    assert len(read(home, test_share=0.6).test) == 2
    with pytest.raises(UserError, match="--train-set"):
        ImageOptions(test_share=0.5, train_set="train")
    for share in (0.0, 1.0, -1.0):
        with pytest.raises(UserError, match="test_share"):
            ImageOptions(test_share=share)


def test_lists_that_are_named_must_be_there(tmp_path: Path) -> None:
    shutil.rmtree(voc(tmp_path) / "ImageSets")
    with pytest.raises(UserError, match="no list"):
        read(tmp_path, train_set="train")
