"""Batched views: uint8 batch + plan + generator → Views(first, second, anchor), on any device, no global seed."""

from phinets.views.augment import apply
from phinets.views.make import Frames, Share, Views, make_views, prepare
from phinets.views.parameters import Drawn, draw, random_stream

__all__ = ["Drawn", "Frames", "Share", "Views", "apply", "draw", "make_views", "prepare", "random_stream"]
