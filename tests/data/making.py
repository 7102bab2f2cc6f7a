"""Small data in the true formats."""

import pickle
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phinets.config.run import DataOptions

TEN = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def noise(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def python2(content: dict[str, Any]) -> bytes:
    """A pickle as Python 2 wrote it: protocol 2, and text where Python 3 has bytes."""
    return pickle.dumps(content, protocol=2)


def cifar10(root: Path, n: int = 20) -> NDArray[np.uint8]:
    """cifar-10-batches-py with n images per file; gives the training images (5 n, 3, 32, 32)."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    every = noise(6 * n, 3072)
    for i, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        labels = [(i + k) % 10 for k in range(n)]
        batch = {"batch_label": name, "labels": labels, "data": every[i * n : (i + 1) * n], "filenames": ["x"] * n}
        (folder / name).write_bytes(python2(batch))
    (folder / "batches.meta").write_bytes(python2({"label_names": TEN, "num_vis": 3072, "num_cases_per_batch": n}))
    return every[: 5 * n].reshape(-1, 3, 32, 32)


def cifar100(root: Path, n: int = 30) -> None:
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for seed, name in enumerate(("train", "test")):
        labels = [k % 100 for k in range(n)]
        batch = {"fine_labels": labels, "coarse_labels": [k // 5 for k in labels], "data": noise(n, 3072, seed=seed)}
        (folder / name).write_bytes(python2(batch))
    names = {"fine_label_names": [f"thing{i}" for i in range(100)], "coarse_label_names": [str(i) for i in range(20)]}
    (folder / "meta").write_bytes(python2(names))


def stl10(root: Path, train: int = 6, unlabelled: int = 9, test: int = 4) -> dict[str, NDArray[np.uint8]]:
    """stl10_binary; gives the images as they look, (n, 3, 96, 96)."""
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    parts = {"train": train, "unlabeled": unlabelled, "test": test}
    looks = {name: noise(n, 3, 96, 96, seed=n) for name, n in parts.items()}
    for name, images in looks.items():
        images.swapaxes(2, 3).tofile(folder / f"{name}_X.bin")  # the file goes down each column
        if name != "unlabeled":
            (np.arange(len(images), dtype=np.uint8) % 10 + 1).tofile(folder / f"{name}_y.bin")
    return looks


def cifar5m_parts(folder: Path, n: int = 50, parts: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> list[NDArray[np.uint8]]:
    """part0.npz to part5.npz as published: X (n, 32, 32, 3), Y (n,)."""
    folder.mkdir(parents=True, exist_ok=True)
    images = [noise(n, 32, 32, 3, seed=i) for i in parts]
    for i, pixels in zip(parts, images, strict=True):
        np.savez(folder / f"part{i}.npz", X=pixels, Y=np.arange(n) % 10)
    return images


def tar(path: Path, folder: Path, name: str) -> None:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, name)


def picture(wide: int = 12, tall: int = 12, seed: int = 0) -> Image.Image:
    return Image.fromarray(noise(tall, wide, 3, seed=seed))


def smooth(wide: int, tall: int) -> Image.Image:
    """A picture that JPEG hardly changes: red grows to the right, green grows downwards."""
    x, y = np.meshgrid(np.linspace(0, 255, wide), np.linspace(0, 255, tall))
    return Image.fromarray(np.stack([x, y, np.full_like(x, 80)], axis=-1).astype(np.uint8))


def save(path: Path, image: Image.Image | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (image or picture(seed=zlib.crc32(path.name.encode()))).save(path)
    return path


def at(root: Path, **more: Any) -> DataOptions:
    """Data under this root."""
    return DataOptions(root=str(root), **more)
