"""Frozen encoder + labeled images → features."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from struct import unpack
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from phinets.backbones import eval_mode, require_features
from phinets.config.errors import UserError
from phinets.config.plain import from_plain
from phinets.config.run import EvalConfig
from phinets.config.views import ViewPlan
from phinets.data import BadImages, ImageSet, batches
from phinets.views import prepare

BATCH_SIZE = 512
"""Images per forward pass."""

Rows = Tensor | NDArray[np.floating]
"""Features (n, d): a tensor, or an array that may be a memory map larger than the memory."""


class FeatureSet(NamedTuple):
    """Features (n, d), in memory or memory-mapped, and labels (n,)."""

    features: Rows
    labels: Tensor

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Features and labels in memory."""
        features = self.features
        if not isinstance(features, Tensor):
            features = torch.from_numpy(np.array(features, np.float32))
        return features, self.labels


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureExtractor:
    """How encoders see images: not augmented, all of them, a batch at a time."""

    plan: ViewPlan
    size: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    bad_images: BadImages

    def extract(self, images: ImageSet, encoder: nn.Module | None) -> FeatureSet:
        """Features and labels of labeled images; raw pixels where there is no encoder."""
        assert images.labels is not None
        rows: list[Tensor] = []
        chunks = self._chunks(images, rows)
        if encoder is None:
            values = pixels(chunks, self._prepare)
        else:
            values = features(encoder, chunks, self._prepare, device=self.device)
        return FeatureSet(values, images.labels[torch.cat(rows)])

    def _chunks(self, images: ImageSet, rows: list[Tensor]) -> Iterator[Tensor]:
        """The images a batch at a time; appends their row numbers to `rows` and records bad images."""
        for batch in batches(images.images, BATCH_SIZE):
            rows.append(batch.rows)
            self.bad_images.add(batch.bad)
            yield batch.images

    def _prepare(self, images: Tensor) -> Tensor:
        return prepare(images, self.plan, self.size).to(self.dtype)


def feature_chunks(
    encoder: nn.Module, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], *, device: torch.device
) -> Iterator[Tensor]:
    """The features of each chunk of images, in turn: uint8 (n, 3, s, s) → float32 (n, d) on the CPU.

    `prepare` turns a uint8 batch into the encoder's input.
    """
    for chunk in chunks:
        with eval_mode(encoder):
            output = require_features(encoder(prepare(chunk.to(device))), len(chunk))
        yield output.float().cpu()


def features(
    encoder: nn.Module, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], *, device: torch.device
) -> Tensor:
    """The features of all images: chunks of uint8 (n, 3, s, s) → float32 (Σn, d) on the CPU."""
    return torch.cat(list(feature_chunks(encoder, chunks, prepare, device=device)))


def pixels(chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor]) -> Tensor:
    """Raw pixels as features, a baseline for encoders."""
    return torch.cat([prepare(chunk).flatten(1) for chunk in chunks])


def require_finite_features(features: Tensor, name: str, first: int = 0) -> None:
    """Refuse NaN and infinity; `name` says whose features these are and `first` is the number of their first row."""
    if bool(torch.isfinite(features).all()):
        return
    bad = first + int((~torch.isfinite(features).all(1)).nonzero()[0])
    raise UserError(
        f"the features of the {name} are not all finite numbers (row {bad} is the first bad one). The encoder has "
        "diverged or its weights are damaged: use an earlier checkpoint."
    )


def split_protocol(bank: int, queries: int, every: bool = True) -> str:
    """The numbers of train and test images, in words."""
    return f"bank of {bank} training images, {'all' if every else 'the first'} {queries} test images"


def why_not_scored(train_labels: Tensor | None, test_labels: Tensor | None) -> str | None:
    """Why no score with labels is possible, in words; None where one is."""
    for labels, name in ((train_labels, "training"), (test_labels, "test")):
        if labels is None or not len(labels):
            return f"the {name} images have no labels"
    assert train_labels is not None
    return "the training images are all of one class" if len(train_labels.unique()) < 2 else None


def require_classes(train_labels: Tensor | None, test_labels: Tensor | None, data: str) -> None:
    """Refuse data without labels, or with one class only."""
    why = why_not_scored(train_labels, test_labels)
    if why is not None:
        raise UserError(
            f"{why} in '{data}', but this evaluation needs at least two classes. Put pictures into one folder per "
            "class, or evaluate on labeled data: --data NAME."
        )


COLUMNS = {"split": "splits", "label": "labels", "feature": "features"}
"""The columns of a .parquet file that are read, and the arrays of an .npz file that hold them."""


@dataclass(frozen=True, kw_only=True)
class FeatureTable:
    """What `phinets embed` and `phinets eval features` write."""

    path: Path
    features: NDArray[Any]
    """(n, d); memory-mapped from an .npz file that is not compressed."""
    labels: NDArray[Any]
    """(n,): class names or numbers; "" or a negative number for an image without a label."""
    splits: NDArray[Any]
    """(n,): train, bank or test."""
    classes: tuple[str, ...]
    """Class names in their order; empty where the file has none."""
    about: Mapping[str, Any]
    """Whose features of which images; empty for a file that was not written by phinets."""

    def feature_sets(self) -> tuple[FeatureSet, FeatureSet]:
        """Train features (those of split `bank` where there is one) and test features, of all labeled images."""
        order = self.classes or tuple(np.unique(self.labels).tolist())
        numbers = {name: number for number, name in enumerate(order)}
        labels = np.array([numbers.get(label, -1) for label in self.labels.tolist()], np.int64)
        if np.issubdtype(self.labels.dtype, np.number):
            labels[self.labels < 0] = -1
        elif "" in numbers:
            labels[self.labels == ""] = -1
        bank = "bank" if (self.splits == "bank").any() else "train"
        train, test = (self._select((self.splits == split) & (labels >= 0), labels) for split in (bank, "test"))
        require_classes(train.labels, test.labels, str(self.path))
        return train, test

    def _select(self, mask: NDArray[np.bool_], labels: NDArray[np.int64]) -> FeatureSet:
        """Some rows; rows that lie side by side stay memory-mapped."""
        rows = mask.nonzero()[0]
        adjacent = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
        features = self.features[rows[0] : rows[-1] + 1] if adjacent else self.features[rows]
        return FeatureSet(features, torch.from_numpy(labels[rows]))

    @property
    def evaluation(self) -> EvalConfig:
        """The protocol of the encoder's run, or the default one."""
        return from_plain(EvalConfig, self.about.get("evaluation", {}))

    @property
    def document(self) -> dict[str, Any]:
        """Whose features of which images, for --json."""
        own = {key: value for key, value in self.about.items() if key not in ("evaluation", "description")}
        train, test = self.feature_sets()
        return {**own, "target": str(self.path), "bank": len(train.labels), "queries": len(test.labels)}

    def describe(self) -> str:
        """Whose features of which images, in words."""
        train, test = self.feature_sets()
        whose = f" of the {self.about['description']}" if "description" in self.about else ""
        return f"features in {self.path.name}{whose}: {split_protocol(len(train.labels), len(test.labels))}"


def is_feature_file(place: Path) -> bool:
    """Whether a place is a feature table, by its suffix."""
    return place.suffix in READERS


def read_feature_table(path: Path) -> FeatureTable:
    """The table in an .npz or .parquet file, checked."""
    if not path.is_file():
        raise UserError(f"there is no file '{path}'.")
    try:
        table = READERS[path.suffix](path)
    except UserError:
        raise
    except KeyError as error:
        array = error.args[0] if error.args else error
        raise UserError(
            f"'{path}' has no {array}. A feature file needs features (n, d), labels (n,) and splits (n,: train or "
            "test), as `phinets embed` and `phinets eval features` write them."
        ) from None
    except Exception as error:  # a torn archive may raise anything
        raise UserError(f"'{path}' can't be read as features: {error or type(error).__name__}.") from error
    _require_shapes(table)
    return table


def _require_shapes(table: FeatureTable) -> None:
    features, n = table.features, len(table.features) if table.features.ndim else 0
    if features.ndim != 2 or 0 in features.shape or not np.issubdtype(features.dtype, np.floating):
        raise UserError(f"the features in '{table.path}' are {features.dtype} {features.shape}, not floats (n, d).")
    for name, array, kinds in (("labels", table.labels, "Uiu"), ("splits", table.splits, "U")):
        if array.shape != (n,) or array.dtype.kind not in kinds:
            raise UserError(
                f"the {name} in '{table.path}' are {array.dtype} {array.shape}, but must be "
                f"{'text' if kinds == 'U' else 'class names or numbers'}, one for each of the {n} features."
            )


def _read_npz(path: Path) -> FeatureTable:
    with np.load(path, allow_pickle=False) as arrays:
        names = set(arrays.files)
        small = {name: arrays[name] for name in (*COLUMNS.values(), "classes", "about") if name in names - {"features"}}
    if "features" not in names:
        raise KeyError("features")
    return FeatureTable(
        path=path,
        features=_map_array(path, "features"),
        labels=small["labels"],
        splits=small["splits"],
        classes=tuple(small["classes"].tolist()) if "classes" in small else (),
        about=json.loads(str(small["about"])) if "about" in small else {},
    )


def _map_array(path: Path, name: str) -> NDArray[Any]:
    """An array of an .npz as a memory map; read into memory where it is compressed or empty."""
    with ZipFile(path) as archive, path.open("rb") as file:
        member = archive.getinfo(f"{name}.npy")
        file.seek(member.header_offset + 26)  # the lengths of the name and of the extra field, before the data
        file.seek(sum(unpack("<HH", file.read(4))), 1)
        if member.compress_type == ZIP_STORED and np.lib.format.read_magic(file) == (1, 0):
            shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
            if 0 not in shape and shape and not fortran_order and not dtype.hasobject:
                return np.memmap(path, dtype, "r", file.tell(), shape)
    with np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays[name])


def _read_parquet(path: Path) -> FeatureTable:
    _, parquet = pyarrow()
    names = parquet.read_schema(path).names
    for column in COLUMNS:
        if column not in names:
            raise KeyError(column)
    table = parquet.read_table(path, columns=list(COLUMNS))
    metadata = table.schema.metadata or {}
    labels, splits = (np.array(table.column(name).to_pylist()) for name in ("label", "split"))
    features = table.column("feature").combine_chunks()
    return FeatureTable(
        path=path,
        features=features.flatten().to_numpy().reshape(len(features), -1),
        labels=labels,
        splits=splits,
        classes=tuple(json.loads(metadata.get(b"classes", b"[]"))),
        about=json.loads(metadata.get(b"phinets", b"{}")),
    )


def pyarrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, or an error that names the package to install."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UserError(
            "a .parquet file needs pyarrow, which is not installed: pip install 'phinets[parquet]'. Or use .npz."
        ) from None


READERS: Mapping[str, Callable[[Path], FeatureTable]] = {".npz": _read_npz, ".parquet": _read_parquet}
