"""State dicts in files: .pth as torch saves them, or .safetensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors.torch import load, save
from torch import Tensor

from phinets.experiments.export.artefact import quoted

PTH, SAFETENSORS = ".pth", ".safetensors"


def write(tensors: Mapping[str, Tensor], ending: str, said: Mapping[str, str], file: BinaryIO) -> None:
    """Tensors by name; a .safetensors file also keeps what is said of them."""
    if ending == SAFETENSORS:
        file.write(save(dict(tensors), dict(said)))
    else:
        torch.save(dict(tensors), file)


def read_back(path: Path, ending: str) -> dict[str, Tensor]:
    """What `write` wrote, whatever the file is called for now."""
    if ending == SAFETENSORS:
        return dict(load(path.read_bytes()))
    found: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return found


def reading(out: Path) -> tuple[str, str]:
    """The import and the expression that read the file, for somebody else's script."""
    if out.suffix == SAFETENSORS:
        return "from safetensors.torch import load_file", f"load_file({quoted(out)})"
    return "import torch", f"torch.load({quoted(out)}, weights_only=True)"
