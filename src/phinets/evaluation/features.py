"""Features of labeled images by a frozen encoder, and feature tables in files."""

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
        rows = self.features
        return rows if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows, np.float32)), self.labels


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

        def chunks() -> Iterator[Tensor]:
            for batch in batches(images.images, BATCH_SIZE):
                rows.append(batch.rows)
                self.bad_images.add(batch.bad)
                yield batch.images

        values = features(encoder, chunks(), lambda x: prepare(x, self.plan, self.size).to(self.dtype), self.device)
        return FeatureSet(values, images.labels[torch.cat(rows)])


def features(
    encoder: nn.Module | None, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], device: torch.device
) -> Tensor:
    """The features of images, a chunk at a time.

    Args:
        encoder: a module that returns (n, d); None: raw pixels, a baseline for encoders.
        chunks: uint8 (n, 3, s, s) each.
        prepare: turns a chunk into the encoder's input.
        device: where the encoder computes.

    Returns:
        float32 (Σn, d) on the CPU.
    """
    values = []
    for chunk in chunks:
        if encoder is None:
            values.append(prepare(chunk).flatten(1))
            continue
        with eval_mode(encoder):
            values.append(require_features(encoder(prepare(chunk.to(device))), len(chunk)).float().cpu())
    return torch.cat(values) if values else torch.empty(0, 0)


def require_finite_features(features: Tensor, name: str, first: int = 0) -> Tensor:
    """The features; NaN and infinity are refused. `name` says whose they are, `first` numbers their first row."""
    if bool(torch.isfinite(features).all()):
        return features
    bad = first + int((~torch.isfinite(features).all(1)).nonzero()[0])
    raise UserError(
        f"the features of the {name} are not all finite numbers (row {bad} is the first bad one). The encoder has "
        "diverged or its weights are damaged: use an earlier checkpoint."
    )


def split_protocol(bank: int, queries: int, total: int | None = None) -> str:
    """The numbers of train and test images, in words; `total` is the number of all test images."""
    tests = f"all {queries}" if total in (None, queries) else f"the first {queries:,} of {total:,}"
    return f"bank of {bank} training images, {tests} test images"


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


@dataclass(frozen=True, kw_only=True)
class FeatureTable:
    """Labeled features of a file that `phinets embed` or `phinets eval features` wrote."""

    path: Path
    train: FeatureSet
    test: FeatureSet
    about: Mapping[str, Any]
    """Whose features of which images; empty for a file that was not written by phinets."""

    def feature_sets(self) -> tuple[FeatureSet, FeatureSet]:
        """Train features and test features."""
        return self.train, self.test

    @property
    def evaluation(self) -> EvalConfig:
        """The protocol of the encoder's run, or the default one."""
        return from_plain(EvalConfig, self.about.get("evaluation", {}))

    @property
    def document(self) -> dict[str, Any]:
        """Whose features of which images, for --json."""
        own = {key: value for key, value in self.about.items() if key not in ("evaluation", "description")}
        return {**own, "target": str(self.path), "bank": len(self.train.labels), "queries": len(self.test.labels)}

    def describe(self) -> str:
        """Whose features of which images, in words."""
        whose = f" of the {self.about['description']}" if "description" in self.about else ""
        return f"features in {self.path.name}{whose}: {split_protocol(len(self.train.labels), len(self.test.labels))}"


def read_feature_table(path: Path) -> FeatureTable:
    """Read a feature table.

    Args:
        path: an .npz or .parquet file with features (n, d), labels (n,), splits (n,) and, optionally, classes.

    Returns:
        Train features (of split `bank` where there is one, else `train`) and test features, of all labeled images.

    Raises:
        UserError: where the file can't be read, an array is missing or misshapen, or there are fewer than two classes.
    """
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
    _require_shapes(table, path)
    labels, bank = _label_numbers(table), "bank" if (table.splits == "bank").any() else "train"
    train, test = (_select(table.features, labels, table.splits == split) for split in (bank, "test"))
    require_classes(train.labels, test.labels, str(path))
    return FeatureTable(path=path, train=train, test=test, about=table.about)


class Columns(NamedTuple):
    """The contents of a feature file."""

    features: NDArray[Any]
    """(n, d); memory-mapped from an .npz file that is not compressed."""
    labels: NDArray[Any]
    """(n,): class names or numbers; "" or a negative number for an image without a label."""
    splits: NDArray[Any]
    """(n,): train, bank or test."""
    classes: tuple[str, ...]
    """Class names in their order; empty where the file has none."""
    about: Mapping[str, Any]


def _require_shapes(table: Columns, path: Path) -> None:
    features, n = table.features, len(table.features) if table.features.ndim else 0
    if features.ndim != 2 or 0 in features.shape or not np.issubdtype(features.dtype, np.floating):
        raise UserError(f"the features in '{path}' are {features.dtype} {features.shape}, not floats (n, d).")
    for name, array, kinds in (("labels", table.labels, "Uiu"), ("splits", table.splits, "U")):
        if array.shape != (n,) or array.dtype.kind not in kinds:
            raise UserError(
                f"the {name} in '{path}' are {array.dtype} {array.shape}, but must be "
                f"{'text' if kinds == 'U' else 'class names or numbers'}, one for each of the {n} features."
            )


def _label_numbers(table: Columns) -> NDArray[np.int64]:
    """Labels as indices of the classes (n,); −1 for an image without a label."""
    classes = table.classes or tuple(np.unique(table.labels).tolist())
    numbers = {name: number for number, name in enumerate(classes)}
    unlabeled = table.labels < 0 if np.issubdtype(table.labels.dtype, np.number) else table.labels == ""
    labels = np.array([numbers.get(label, -1) for label in table.labels.tolist()], np.int64)
    return np.where(unlabeled, -1, labels)


def _select(features: NDArray[Any], labels: NDArray[np.int64], mask: NDArray[np.bool_]) -> FeatureSet:
    """The labeled rows of a split; rows that lie side by side stay memory-mapped."""
    rows = (mask & (labels >= 0)).nonzero()[0]
    adjacent = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
    own = features[rows[0] : rows[-1] + 1] if adjacent else features[rows]
    return FeatureSet(own, torch.from_numpy(labels[rows]))


def _read_npz(path: Path) -> Columns:
    with np.load(path, allow_pickle=False) as arrays:
        if "features" not in arrays:
            raise KeyError("features")
        classes = tuple(arrays["classes"].tolist()) if "classes" in arrays else ()
        about = json.loads(str(arrays["about"])) if "about" in arrays else {}
        return Columns(_map_array(path, "features"), arrays["labels"], arrays["splits"], classes, about)


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


def _read_parquet(path: Path) -> Columns:
    _, parquet = pyarrow()
    columns = ["feature", "label", "split"]
    missing = set(columns) - set(parquet.read_schema(path).names)
    if missing:
        raise KeyError(", ".join(sorted(missing)))
    table = parquet.read_table(path, columns=columns)
    metadata = table.schema.metadata or {}
    lists = table.column("feature").combine_chunks()
    features = lists.flatten().to_numpy().reshape(len(lists), -1)
    labels, splits = (np.array(table.column(name).to_pylist()) for name in ("label", "split"))
    classes, about = (json.loads(metadata.get(*entry)) for entry in ((b"classes", b"[]"), (b"phinets", b"{}")))
    return Columns(features, labels, splits, tuple(classes), about)


def pyarrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, or an error that names the package to install."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UserError(
            "a .parquet file needs pyarrow, which is not installed: pip install 'phinets[parquet]'. Or use .npz."
        ) from None


READERS: Mapping[str, Callable[[Path], Columns]] = {".npz": _read_npz, ".parquet": _read_parquet}
