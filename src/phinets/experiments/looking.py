"""What was learned, to be looked at: a map of features, and the neighbours of some images."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.data.files import squares
from phinets.data.pictures import shown
from phinets.evaluation.knn import nearest
from phinets.evaluation.maps import AXES, FEWEST, MOST, principal, principal_map, tsne
from phinets.experiments.collection import Collection
from phinets.experiments.feature_tables import Table
from phinets.experiments.loading import Encoder
from phinets.reports.feature_map import FeatureMap
from phinets.reports.neighbours import Query, Seen

Method = Literal["pca", "tsne"]
DRAWN = 20_000
"""Points that a map by PCA shows."""
SIDE = 96
"""Side of the pictures on a sheet, in pixels."""


class Features(NamedTuple):
    """All features of a table, on the disk, and which images they are of."""

    array: NDArray[np.float32]
    """(n, d)."""
    rows: NDArray[np.int64]
    """(n,): numbers in the collection."""
    collection: Collection


def gathered(table: Table) -> Features:
    """The features of a table as one array."""
    return Features(table.shards.gathered(), np.concatenate(list(table.shards.rows())), table.collection)


def spread(n: int, most: int) -> NDArray[np.int64]:
    """At most so many of the numbers 0 to n − 1, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def require_map(n: int, d: int, method: Method) -> None:
    """Refuse a map of n images by d features that can't be drawn."""
    if d < 2:
        raise UserError(f"a map needs two features at least, but the encoder gives {d}. Leave out --map.")
    if method == "tsne" and n < FEWEST:
        raise UserError(f"t-SNE needs {FEWEST} images at least, but there are {n}. Say --map-method pca.")


def require_askable(paths: Sequence[Path]) -> None:
    """Refuse a picture that can't be used to ask with."""
    try:
        squares(paths, SIDE)
    except UserError as error:
        raise UserError(f"{error} Mend it, or leave it out of --query-images.") from error


def map_of(features: Features, method: Method, title: str, thumbnails: int = 0) -> FeatureMap:
    """Features on a plane: their first two principal components, or t-SNE of the first fifty.

    The axes are those of all features; of many, an evenly spread choice is shown.
    """
    n, d = features.array.shape
    require_map(n, d, method)
    chosen = spread(n, MOST if method == "tsne" else DRAWN)
    points, axes = _placed(features.array, chosen, method)
    rows = features.rows[chosen].tolist()
    some = f", {len(chosen)} of {n} shown" if len(chosen) < n else ""
    standing = spread(len(rows), thumbnails).tolist() if thumbnails else []
    return FeatureMap(
        points=points.numpy(),
        names=features.collection.names(rows),
        labels=features.collection.labels(rows),
        axes=axes,
        title=f"{title}{some}",
        thumbnails=[(place, _hwc(features.collection.picture(rows[place], SIDE))) for place in standing],
    )


def _placed(array: NDArray[np.float32], chosen: NDArray[np.int64], method: Method) -> tuple[Tensor, tuple[str, str]]:
    """Where the chosen features lie, (n, 2), and what the two directions are."""
    along = principal(array, k=min(array.shape[1], 2 if method == "pca" else AXES))
    points = principal_map(array[chosen], along)
    if method == "tsne":
        return tsne(points), ("t-SNE 1", "t-SNE 2")
    first, second = (
        f"PCA {i} ({100 * share:.1f} % of the variance)" for i, share in enumerate(along.shares.tolist(), 1)
    )
    return points, (first, second)


def neighbours_among(features: Features, queries: int, near: int) -> list[Query]:
    """Evenly spread images of a collection with their nearest neighbours by cosine, themselves left out."""
    chosen = spread(len(features.rows), queries)
    images = [_seen(features, place) for place in chosen.tolist()]
    return _queries(features, images, torch.from_numpy(features.array[chosen]), chosen.tolist(), near)


def neighbours_of(features: Features, encoder: Encoder, paths: Sequence[Path], near: int) -> list[Query]:
    """Images in files with their nearest neighbours by cosine; one that is in the collection is not its own."""
    files = features.collection.files(features.rows.tolist())
    places = {os.path.realpath(file): place for place, file in enumerate(files) if file is not None}
    itself = [places.get(os.path.realpath(path.expanduser()), -1) for path in paths]
    images = [
        _seen(features, place) if place >= 0 else Seen(name=shown(path), label="", picture=_hwc(picture))
        for path, place, picture in zip(paths, itself, squares(paths, SIDE), strict=True)
    ]
    return _queries(features, images, encoder(list(paths)), itself, near)


def _queries(
    features: Features, images: Sequence[Seen], asked: Tensor, itself: Sequence[int], near: int
) -> list[Query]:
    """The nearest of each query; `itself` says where in the features it is, −1 where it is not."""
    found = list(nearest(asked, features.array, min(near + 1, len(features.rows))))
    cosines, places = (torch.cat(parts).tolist() for parts in zip(*found, strict=True))
    queries = []
    for image, own, *pairs in zip(images, itself, cosines, places, strict=True):
        others = [(cosine, place) for cosine, place in zip(*pairs, strict=True) if place != own]
        queries.append(Query(image=image, near=[(cosine, _seen(features, place)) for cosine, place in others[:near]]))
    return queries


def _seen(features: Features, place: int) -> Seen:
    row = int(features.rows[place])
    (name,), (label,) = features.collection.names([row]), features.collection.labels([row])
    return Seen(name=name, label=label, picture=_hwc(features.collection.picture(row, SIDE)))


def _hwc(picture: Tensor) -> NDArray[np.uint8]:
    return np.asarray(picture.permute(1, 2, 0).numpy(), np.uint8)
