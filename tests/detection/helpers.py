"""Tiny annotated pictures in VOC's layout."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

Objects = Sequence[tuple[str, tuple[float, float, float, float]]]
"""Names, and boxes as VOC writes them: from 1, with their last pixel."""
LISTS: Mapping[str, Sequence[str]] = {"trainval": ("a", "b"), "test": ("c",)}
FORM = (
    "<object><name>{name}</name><difficult>{difficult}</difficult><bndbox><xmin>{0}</xmin><ymin>{1}</ymin>"
    "<xmax>{2}</xmax><ymax>{3}</ymax></bndbox></object>"
)


def annotation(objects: Objects, difficult: Sequence[int] = (), size: tuple[object, object] | None = (40, 30)) -> str:
    """The XML of a picture."""
    said = "" if size is None else f"<size><width>{size[0]}</width><height>{size[1]}</height><depth>3</depth></size>"
    things = "".join(
        FORM.format(*box, name=name, difficult=int(i in difficult)) for i, (name, box) in enumerate(objects)
    )
    return f"<annotation>{said}{things}</annotation>"


def write(home: Path, name: str, xml: str, size: tuple[int, int] = (40, 30)) -> None:
    """One annotated picture."""
    for folder in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "Annotations" / f"{name}.xml").write_text(xml)
    pixels = np.random.default_rng(len(name)).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(home / "JPEGImages" / f"{name}.jpg")


def voc(home: Path, lists: Mapping[str, Sequence[str]] = LISTS) -> Path:
    """Three pictures: a with a cat and a difficult dog, b with a dog, c with both."""
    write(home, "a", annotation([("cat", (1, 1, 10, 20)), ("dog", (5, 5, 40, 30))], difficult=[1]))
    write(home, "b", annotation([("dog", (3, 4, 12, 9))]))
    write(home, "c", annotation([("cat", (2, 2, 20, 20)), ("dog", (21, 1, 40, 30))]))
    for name, ids in lists.items():
        (home / "ImageSets" / "Main" / f"{name}.txt").write_text("".join(f"{i}\n" for i in ids))
    return home


def squares(home: Path, train: int = 16, test: int = 6, side: int = 64) -> Path:
    """Bright red squares and green bars on gray noise: something that a small detector can learn."""
    rng = np.random.default_rng(0)
    ids = [f"{i:03d}" for i in range(train + test)]
    for name in ids:
        write(home, name, "", (side, side))
        pixels = rng.integers(60, 120, (side, side, 3), dtype=np.uint8)
        objects = []
        for kind, size, color in (("square", (18, 18), (255, 30, 30)), ("bar", (30, 10), (30, 255, 30))):
            room = (0, side // 2) if kind == "square" else (side // 2, side)  # one above, one below
            left, top = int(rng.integers(0, side - size[0])), int(rng.integers(room[0], room[1] - size[1]))
            pixels[top : top + size[1], left : left + size[0]] = color
            objects.append((kind, (left + 1.0, top + 1.0, float(left + size[0]), float(top + size[1]))))
        Image.fromarray(pixels).save(home / "JPEGImages" / f"{name}.jpg", quality=95)
        (home / "Annotations" / f"{name}.xml").write_text(annotation(objects, size=(side, side)))
    for list_name, part in (("trainval", ids[:train]), ("test", ids[train:])):
        (home / "ImageSets" / "Main" / f"{list_name}.txt").write_text("\n".join(part))
    return home
