"""The map and the contact sheet: what is drawn is what is there."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from phinets.reports.image_figures import (
    MAX_NAMES,
    FeatureMap,
    LabeledImage,
    Query,
    feature_map,
    neighbor_rows,
    neighbor_sheet,
    same_class,
)
from phinets.reports.palette import FAINT, FAST, RIGHT, WRONG, class_color

BLACK: NDArray[np.uint8] = np.zeros((8, 8, 3), np.uint8)


def a_map(labels: list[str], **more: object) -> FeatureMap:
    points = np.random.default_rng(0).normal(size=(len(labels), 2))
    names = [f"{i}.png" for i in range(len(labels))]
    given = {"points": points, "names": names, "labels": labels, "axes": ("one", "two"), "title": "a map"}
    return FeatureMap(**given | more)  # type: ignore[arg-type]


def test_every_class_has_its_color_its_points_and_its_name_at_their_median() -> None:
    data = a_map(["pear", "apple", "", "pear", "apple", "apple"])
    (axes,) = feature_map(data).axes
    drawn = {to_hex(np.asarray(group.get_facecolor())[0]): group for group in axes.collections}
    assert {color: len(np.asarray(group.get_offsets())) for color, group in drawn.items()} == {
        FAINT: 1,
        class_color(0): 3,
        class_color(1): 2,
    }
    apples = data.points[[1, 4, 5]]
    np.testing.assert_allclose(np.asarray(drawn[class_color(0)].get_offsets()), apples)
    names = {text.get_text(): (text.get_position(), text.get_color()) for text in axes.texts}
    assert set(names) == {"apple", "pear"}
    np.testing.assert_allclose(names["apple"][0], np.median(apples, axis=0))
    assert names["apple"][1] == class_color(0)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("one", "two", "a map")


def test_without_classes_there_are_points_and_no_names() -> None:
    (axes,) = feature_map(a_map([""] * 5)).axes
    assert not axes.texts
    assert [to_hex(np.asarray(group.get_facecolor())[0]) for group in axes.collections] == [FAST]


def test_of_many_classes_the_largest_are_named() -> None:
    labels = [f"class {i}" for i in range(MAX_NAMES + 5) for _ in range(1 + (i >= 5))]
    (axes,) = feature_map(a_map(labels)).axes
    assert {text.get_text() for text in axes.texts} == {f"class {i}" for i in range(5, MAX_NAMES + 5)}


def test_thumbnails_stand_where_their_points_are() -> None:
    data = a_map([""] * 4, thumbnails=[(2, BLACK)])
    (axes,) = feature_map(data).axes
    (box,) = axes.artists
    np.testing.assert_allclose(box.xy, data.points[2])  # type: ignore[attr-defined]


def test_the_data_behind_the_map_are_its_points() -> None:
    data = a_map(["pear", ""])
    head, *lines = data.lines()
    assert head == ["path", "label", "x", "y"]
    assert [line[:2] for line in lines] == [["0.png", "pear"], ["1.png", ""]]
    np.testing.assert_allclose([[float(x) for x in line[2:]] for line in lines], data.points, rtol=1e-5)


def test_classes_side_by_side_differ_in_color() -> None:
    colors = [class_color(i) for i in range(100)]
    assert len(set(colors)) == 100
    assert all(len(color) == 7 for color in colors)


def seen(name: str, label: str = "") -> LabeledImage:
    return LabeledImage(name=name, label=label, picture=BLACK)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("dog", "dog", True), ("dog", "cat", False), ("", "cat", None), ("dog", "", None), ("", "", None)],
)
def test_images_are_of_one_class_only_where_both_classes_are_known(one: str, other: str, same: bool | None) -> None:
    assert same_class(seen("a", one), seen("b", other)) is same


def test_the_sheet_shows_cosine_class_and_whether_it_is_right() -> None:
    dog = Query(image=seen("x/a.png", "dog"), near=[(0.9, seen("b", "dog")), (0.8, seen("c", "cat"))])
    lone = Query(image=seen("x/z.png"), near=[(0.7, seen("d", "cat"))])
    figure = neighbor_sheet([dog, lone], "whose")
    cells = figure.axes
    assert len(cells) == 6
    assert [cell.get_xlabel() for cell in cells] == ["dog", "0.90 dog", "0.80 cat", "z.png", "0.70 cat", ""]
    frames = [
        to_hex(cell.spines["left"].get_edgecolor()) if cell.spines["left"].get_visible() else "" for cell in cells
    ]
    assert frames[:5] == ["", RIGHT, WRONG, "", ""]
    assert not cells[5].axison
    assert neighbor_rows([dog, lone])[1:] == [
        ["x/a.png", "dog", "1", "b", "dog", "0.900000"],
        ["x/a.png", "dog", "2", "c", "cat", "0.800000"],
        ["x/z.png", "", "1", "d", "cat", "0.700000"],
    ]
