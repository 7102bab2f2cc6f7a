"""Batched views: uint8 batch + plan + generator → Views(first, second, anchor), on any device, no global seed."""

from phinets.views.augment import apply
from phinets.views.loader import data_loader
from phinets.views.make import BatchSlice, CropPlan, Views, make_views, prepare, resize_squares
from phinets.views.parameters import ViewParams, draw, random_stream

__all__ = [
    "BatchSlice", "CropPlan", "ViewParams", "Views", "apply", "data_loader", "draw", "make_views", "prepare",
    "random_stream", "resize_squares",
]  # fmt: skip
