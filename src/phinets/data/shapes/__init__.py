"""Shapes: an endless world of small pictures that the package draws itself.

Each picture shows four objects of one form. The form is the class; color, texture, ground, light, place, size,
rotation, clutter and noise are nuisances. Picture `i` of seed `s` is the same on every machine, in any batch.

Nearly all nuisances differ from object to object and from place to place, and hardly from picture to picture. So two
crops of a picture have little in common but the form, which a self-supervised learner can find.

    images, labels = finite(10_000, split="train")       # uint8 (n, 3, 32, 32), int64 (n,)
    for images, labels in stream(256): ...              # the same pictures, then ever new ones
"""

from phinets.data.shapes.dataset import TEST, TRAIN, contact_sheet, finite, stream
from phinets.data.shapes.rendering import CLASSES, FORMS, draw, object_cover
from phinets.data.shapes.scene import WORLD, World

__all__ = [
    "CLASSES", "FORMS", "TEST", "TRAIN", "WORLD", "World", "contact_sheet", "draw", "finite", "object_cover", "stream",
]  # fmt: skip
