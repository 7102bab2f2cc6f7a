"""The environment of a run: versions, commit, device."""

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import phinets
from phinets.runtime import distributed
from phinets.runtime.devices import Precision

PACKAGES = ("torch", "torchvision", "numpy", "scipy", "safetensors", "tyro")


def environment(seed: int, precision: Precision) -> dict[str, Any]:
    """Versions, commit, seed and device: env.json."""
    return {
        "phinets": phinets.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {package: _version(package) for package in PACKAGES},
        "seed": seed,
        "device": str(precision.device),
        "device_name": device_name(precision.device),
        "precision": precision.name,
        "threads": torch.get_num_threads(),
        "processes": distributed.world_size(),
    }


def device_name(device: torch.device) -> str:
    """The name of a device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()


@cache
def _processor() -> str:
    """The name of the processor on Linux, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


@cache
def commit() -> str | None:
    """The commit of the checkout that the package runs from, with + where files were changed; None outside of one."""
    home = Path(phinets.__file__).parent
    try:
        head = _git(home, "rev-parse", "HEAD")
        return head + ("+" if _git(home, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(home: Path, *words: str) -> str:
    process = subprocess.run(["git", *words], cwd=home, capture_output=True, text=True, check=True, timeout=10)
    return process.stdout.strip()


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
