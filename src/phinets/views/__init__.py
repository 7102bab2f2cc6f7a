"""Batched views: uint8 batch + plan + generator → Views(first, second, anchor), on any device, no global seed."""

from phinets.views.augment import apply
from phinets.views.frames import Frames
from phinets.views.make import Share, Views, make_views, prepare
from phinets.views.parameters import Drawn, draw
from phinets.views.randomness import random_stream

__all__ = ["Drawn", "Frames", "Share", "Views", "apply", "draw", "make_views", "prepare", "random_stream"]
