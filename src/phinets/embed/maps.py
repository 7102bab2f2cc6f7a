"""Pictures of features: a two-dimensional map, and the nearest neighbors of some images."""

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from phinets.config.errors import UserError
from phinets.data.decode import printable
from phinets.data.files import decode_squares
from phinets.embed.store import Embedding
from phinets.evaluation.encoders import Encoder
from phinets.evaluation.features import Rows
from phinets.evaluation.knn import nearest, row_chunks
from phinets.reports.image_figures import FeatureMap, LabeledImage, Query

Method = Literal["pca", "tsne"]
PCA_MAX = 20_000
"""Most points on a map by PCA."""
TSNE_MIN, TSNE_MAX = 4, 3_000
"""Fewest and most points on a map by t-SNE."""
TSNE_COMPONENTS = 50
"""Principal components that t-SNE starts from."""
ROWS = 8_192
"""Rows in memory at a time for PCA, since all features may be larger than the memory."""
SIDE = 96
"""Side of the pictures on a sheet, in pixels."""


def evenly_spaced(n: int, most: int) -> NDArray[np.int64]:
    """At most `most` of the numbers 0 to n − 1, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def require_map(n: int, d: int, method: Method) -> None:
    """Refuse a map of n images by d features that can't be drawn."""
    if d < 2:
        raise UserError(f"a map needs at least two features, but the encoder gives {d}. Leave out --map.")
    if method == "tsne" and n < TSNE_MIN:
        raise UserError(f"t-SNE needs at least {TSNE_MIN} images, but there are {n}. Use --map-method pca.")


def require_query_images(paths: Sequence[Path]) -> None:
    """Refuse a query image that can't be read."""
    try:
        decode_squares(paths, SIDE)
    except UserError as error:
        raise UserError(f"{error} Repair it, or leave it out of --query-images.") from error


def map_of(embedding: Embedding, method: Method, title: str, thumbnails: int = 0) -> FeatureMap:
    """A two-dimensional map: the first two principal components, or t-SNE of the first fifty.

    PCA is fitted to all features; of many, an evenly spaced subset is shown.
    """
    n, images = len(embedding.rows), embedding.collection
    require_map(n, embedding.features.shape[1], method)
    chosen = evenly_spaced(n, TSNE_MAX if method == "tsne" else PCA_MAX)
    points, axes = project(embedding.features, chosen, method)
    rows = embedding.rows[chosen].tolist()
    names, _, labels = images.columns(rows)
    some = f", {len(chosen)} of {n} shown" if len(chosen) < n else ""
    places = evenly_spaced(len(rows), thumbnails).tolist() if thumbnails else []
    pictures = [(place, _hwc(images.picture(rows[place], SIDE))) for place in places]
    return FeatureMap(points=points, names=names, labels=labels, axes=axes, title=title + some, thumbnails=pictures)


def neighbors_among(embedding: Embedding, queries: int, near: int) -> list[Query]:
    """Evenly spaced images of a collection with their nearest neighbors by cosine, without themselves."""
    chosen = evenly_spaced(len(embedding.rows), queries)
    images = [_image(embedding, place) for place in chosen.tolist()]
    return _queries(embedding, images, torch.from_numpy(embedding.features[chosen]), chosen.tolist(), near)


def neighbors_of(embedding: Embedding, encoder: Encoder, paths: Sequence[Path], near: int) -> list[Query]:
    """Image files with their nearest neighbors by cosine, without themselves."""
    files = embedding.collection.files(embedding.rows.tolist())
    places = {os.path.realpath(file): place for place, file in enumerate(files) if file is not None}
    itself = [places.get(os.path.realpath(path.expanduser()), -1) for path in paths]
    images = [
        _image(embedding, place) if place >= 0 else LabeledImage(name=printable(path), label="", picture=_hwc(picture))
        for path, place, picture in zip(paths, itself, decode_squares(paths, SIDE), strict=True)
    ]
    return _queries(embedding, images, encoder(list(paths)), itself, near)


def _queries(
    embedding: Embedding, images: Sequence[LabeledImage], queries: Tensor, itself: Sequence[int], near: int
) -> list[Query]:
    """The nearest of each query; `itself` is its own row of the features, or −1."""
    results = list(nearest(queries, embedding.features, min(near + 1, len(embedding.rows))))
    cosines, places = (torch.cat(tensors).tolist() for tensors in zip(*results, strict=True))
    rows = []
    for image, own, *pairs in zip(images, itself, cosines, places, strict=True):
        others = [(cosine, place) for cosine, place in zip(*pairs, strict=True) if place != own]
        rows.append(Query(image=image, near=[(cosine, _image(embedding, place)) for cosine, place in others[:near]]))
    return rows


def _image(embedding: Embedding, place: int) -> LabeledImage:
    row = int(embedding.rows[place])
    (name,), _, (label,) = embedding.collection.columns([row])
    return LabeledImage(name=name, label=label, picture=_hwc(embedding.collection.picture(row, SIDE)))


def _hwc(picture: Tensor) -> NDArray[np.uint8]:
    return np.asarray(picture.permute(1, 2, 0).numpy(), np.uint8)


def unit_vectors(features: Rows) -> NDArray[np.float64]:
    """Features (n, d) at unit length, since neighbors are found by cosine; NaN and infinity are refused."""
    return np.concatenate(list(_unit_chunks(features)))


def _unit_chunks(features: Rows) -> Iterator[NDArray[np.float64]]:
    """Unit vectors in order, `ROWS` at a time."""
    for chunk in row_chunks(features, ROWS, "images"):
        yield F.normalize(chunk.double(), dim=1).numpy()


def fit_pca(features: Rows, components: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The exact PCA of unit vectors, by their covariance, which is summed `ROWS` rows at a time.

    Returns:
        The mean (d,); the axes (components, d), the strongest first, each with a positive largest entry, so that maps
        are reproducible; and their shares of the variance (components,), zeros where there is no variance.
    """
    n, d = features.shape
    mean = sum((chunk.sum(0) for chunk in _unit_chunks(features)), np.zeros(d)) / n
    covariance = np.zeros((d, d))
    for chunk in _unit_chunks(features):
        covariance += (chunk - mean).T @ (chunk - mean) / n
    variances, vectors = np.linalg.eigh(covariance)
    axes = vectors.T[::-1][:components]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(1, keepdims=True), 1)
    shares = variances[::-1][:components].clip(0) / (np.trace(covariance) or 1.0)
    return mean, axes * np.where(largest < 0, -1.0, 1.0), shares


def tsne(points: NDArray[np.float64], perplexity: float = 30.0, seed: int = 0) -> NDArray[np.float32]:
    """scikit-learn's t-SNE, initialized by PCA: points (n, d) → (n, 2); the same for the same points and seed.

    One thread: its short parallel sections wait for each other where other processes are busy.
    """
    perplexity = min(perplexity, (len(points) - 1) / 3)
    scale = points.std() or 1.0
    model = TSNE(2, perplexity=perplexity, init="pca", random_state=seed, learning_rate="auto", n_jobs=1)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", RuntimeWarning)  # the initial PCA of equal points divides by zero
        return np.asarray(model.fit_transform(points / scale), np.float32)


def project(features: Rows, chosen: NDArray[np.int64], method: Method) -> tuple[NDArray[np.floating], tuple[str, str]]:
    """The chosen features in two dimensions, (n, 2), and the names of the axes."""
    d = features.shape[1]
    mean, axes, shares = fit_pca(features, min(d, 2 if method == "pca" else TSNE_COMPONENTS))
    points = (unit_vectors(features[chosen]) - mean) @ axes.T
    if method == "tsne":
        return tsne(points), ("t-SNE 1", "t-SNE 2")
    first, second = (f"PCA {i + 1} ({100 * share:.1f} % of the variance)" for i, share in enumerate(shares))
    return points, (first, second)
