"""What was learned, to be looked at: a map of features, and the neighbors of some images."""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.data.files import squares
from phinets.data.pictures import shown
from phinets.embed.collection import Collection
from phinets.embed.table import Table
from phinets.evaluation.encoders import Encoder
from phinets.evaluation.features import require_numbers
from phinets.evaluation.knn import Rows, nearest, parts
from phinets.evaluation.linear import alone_if_small
from phinets.reports.feature_map import FeatureMap
from phinets.reports.neighbors import Query, Seen

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


def neighbors_among(features: Features, queries: int, near: int) -> list[Query]:
    """Evenly spread images of a collection with their nearest neighbors by cosine, themselves left out."""
    chosen = spread(len(features.rows), queries)
    images = [_seen(features, place) for place in chosen.tolist()]
    return _queries(features, images, torch.from_numpy(features.array[chosen]), chosen.tolist(), near)


def neighbors_of(features: Features, encoder: Encoder, paths: Sequence[Path], near: int) -> list[Query]:
    """Images in files with their nearest neighbors by cosine; one that is in the collection is not its own."""
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


AT_ONCE = 8_192
LONG, EXAGGERATED = 500, 150
"""Steps of t-SNE, and how many of them pull neighbors together more strongly than they are."""
EXAGGERATION = 12.0
FEWEST, MOST = 4, 3_000
"""Points that t-SNE can be asked for: each is compared with every other at every step."""
AXES = 50
"""Principal components that t-SNE sees."""
PER_PAIR = 100
"""About what a step costs for each pair of points, in products of the linear probe."""


class Principal(NamedTuple):
    """The principal axes of some vectors."""

    mean: Tensor
    """(d,)."""
    axes: Tensor
    """(d, k), the widest first; the largest entry of each is positive, so that they are the same everywhere."""
    shares: Tensor
    """(k,): which share of the variance lies along each."""

    def __call__(self, vectors: Tensor) -> Tensor:
        """Coordinates along the axes: (n, d) → (n, k)."""
        return (vectors - self.mean) @ self.axes


def principal(features: Rows, k: int = 2) -> Principal:
    """The k principal axes of features (n, d) at unit length, since neighbors are found by cosine.

    Exact, in double precision; the features are read some rows at a time, so they may be larger than the memory.
    """
    n, d = features.shape
    mean = torch.stack([part.sum(0) for part in _unit(features)]).sum(0) / n
    spread = torch.zeros(d, d, dtype=torch.float64)
    for part in _unit(features):
        spread += (part - mean).T @ (part - mean)
    squares, axes = torch.linalg.eigh(spread)
    axes = axes.flip(1)[:, :k]
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    shares = squares.flip(0).clamp_min(0) / squares.clamp_min(0).sum().clamp_min(1e-300)
    return Principal(mean, axes * torch.where(largest < 0, -1.0, 1.0), shares[:k])


def principal_map(features: Rows, along: Principal) -> Tensor:
    """Where features (n, d) at unit length lie along the axes: (n, k)."""
    return torch.cat([along(part) for part in _unit(features)])


def _unit(features: Rows) -> Iterator[Tensor]:
    for part in parts(features, AT_ONCE, "images"):
        yield F.normalize(part.double(), dim=1)


def tsne(points: Tensor, perplexity: float = 30.0, steps: int = LONG) -> Tensor:
    """t-SNE (van der Maaten & Hinton 2008), exact: points (n, d) on a plane (n, 2) so that neighbors stay neighbors.

    Minimizes KL(P‖Q), Q ∝ 1/(1 + ‖yᵢ − yⱼ‖²), by gradient steps with momentum and gains. It begins with the first two
    coordinates instead of a random drawing, so the same points give the same map. n ≤ 3,000.
    """
    if not FEWEST <= len(points) <= MOST:
        raise UserError(
            f"t-SNE was asked for {len(points)} points, but takes {FEWEST} to {MOST:,}. Use PCA, or fewer images."
        )
    require_numbers(points, "map")
    n = len(points)
    with alone_if_small(PER_PAIR * n * n):
        p = affinities(points.double(), min(perplexity, (n - 1) / 3)).float()
        y = points[:, :2].float()
        y = 1e-4 * (y - y.mean(0)) / y[:, 0].std().clamp_min(1e-12)
        return _descended(p, y, steps)


def _descended(p: Tensor, y: Tensor, steps: int) -> Tensor:
    """Where y ends on its way down KL(P‖Q)."""
    speed, gains, rate = torch.zeros_like(y), torch.ones_like(y), max(len(y) / EXAGGERATION / 4, 50.0)
    for step in range(steps):
        early = step < EXAGGERATED
        slope = tsne_slope(p * EXAGGERATION if early else p, y)
        gains = torch.where(slope * speed < 0, gains + 0.2, gains * 0.8).clamp_min(0.01)
        speed = (0.5 if early else 0.8) * speed - rate * gains * slope
        y = y + speed
    return y - y.mean(0)


def affinities(points: Tensor, perplexity: float) -> Tensor:
    """P of t-SNE, (n, n): symmetric, zero on the diagonal, sum 1.

    p(j|i) ∝ exp(−βᵢ ‖xᵢ − xⱼ‖²), βᵢ such that the entropy of row i is log(perplexity), found by bisection.
    """
    n = len(points)
    squares = torch.cdist(points, points).square()
    squares = squares / squares.mean().clamp_min(1e-300)
    squares.fill_diagonal_(math.inf)
    low, high = (torch.full((n, 1), end, dtype=points.dtype) for end in (-10.0, 30.0))
    for _ in range(40):
        middle = (low + high) / 2
        row = torch.softmax(-squares * middle.exp(), dim=1)
        too_wide = torch.special.entr(row).sum(1, keepdim=True) > math.log(perplexity)
        low, high = torch.where(too_wide, middle, low), torch.where(too_wide, high, middle)
    row = torch.softmax(-squares * ((low + high) / 2).exp(), dim=1)
    return (row + row.T) / (2 * n)


def tsne_slope(p: Tensor, y: Tensor) -> Tensor:
    """The gradient of KL(P‖Q) by the places y (n, 2): 4 Σⱼ (pᵢⱼ − qᵢⱼ)(yᵢ − yⱼ)/(1 + ‖yᵢ − yⱼ‖²)."""
    apart = [column[:, None] - column for column in y.T]
    near = apart[0].square_().add_(apart[1].square_()).add_(1).reciprocal_().fill_diagonal_(0)
    pull: Tensor = (near / -near.sum()).add_(p).mul_(near)
    return 4 * (pull.sum(1, keepdim=True) * y - pull @ y)
