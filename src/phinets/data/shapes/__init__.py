"""Shapes: an endless world of small pictures that the package draws itself.

One object per picture, of one of ten forms. The form is the class; colour, pattern, ground, light, place, size,
rotation, clutter and noise are nuisances. Picture `i` of seed `s` is the same on every machine, in any batch.

    images, labels = finite(10_000, part="train")       # uint8 (n, 3, 32, 32), int64 (n,)
    for images, labels in stream(256): ...              # the same pictures, then ever new ones
"""

from phinets.data.shapes.drawing import draw, object_cover
from phinets.data.shapes.forms import CLASSES, FORMS
from phinets.data.shapes.parts import TEST, TRAIN, contact_sheet, finite, stream
from phinets.data.shapes.world import WORLD, World

__all__ = [
    "CLASSES",
    "FORMS",
    "TEST",
    "TRAIN",
    "WORLD",
    "World",
    "contact_sheet",
    "draw",
    "finite",
    "object_cover",
    "stream",
]
