"""Weights for Detectron2, and the files that fine-tune a detector from them; Detectron2 itself is not needed."""

import os
import pickle
import shlex
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torchvision.models.resnet import Bottleneck

from phinets.backbones.translation import CLASSIFIER, detectron2_name, fresh_resnet, torchvision_name
from phinets.config.errors import UserError
from phinets.config.export import ExportOptions
from phinets.experiments.export.artefact import Artefact, Target, load_strictly, same_features
from phinets.experiments.export.detectron2_files import BASE, TRAIN, texts
from phinets.experiments.export.resnets import resnet_name
from phinets.experiments.export.source import Source

Arrays = dict[str, NDArray[Any]]


class PlainPickler(pickle.Pickler):
    """Pickles arrays by shape, type and bytes alone, so that every version of numpy reads them."""

    def reducer_override(self, value: Any) -> Any:
        """numpy's own way names a module that numpy 2 moved, which older ones, as detectors have them, don't find."""
        if not isinstance(value, np.ndarray):
            return NotImplemented
        return np.ndarray, (value.shape, value.dtype.str, bytearray(value.tobytes()))


def make(source: Source, options: ExportOptions, out: Path) -> Artefact:
    """A pickle as Detectron2's model zoo has them; configurations beside it, where its C4 head fits the encoder."""
    name = resnet_name(source, "detectron2")
    arrays = {
        detectron2_name(key): value.numpy() for key, value in source.tensors().items() if not key.startswith(CLASSIFIER)
    }
    fresh = fresh_resnet(name)
    fresh.fc = nn.Identity()
    beside = _configurations(source, options, out, fresh, name)
    return Artefact(
        into=f"Detectron2's ResNet ({name})",
        fill=partial(_write, arrays),
        check=lambda path: _check(source, fresh, path),
        usage=_usage(out, beside),
        language="sh" if beside else "python",
        notes=_notes(beside, name),
        beside=beside,
    )


def _write(arrays: Arrays, file: BinaryIO) -> None:
    PlainPickler(file, protocol=4).dump({"model": arrays, "__author__": "phinets", "matching_heuristics": True})


def _check(source: Source, fresh: nn.Module, path: Path) -> float:
    """The way back: from the file's names to torchvision's, into a fresh model."""
    found: Arrays = pickle.loads(path.read_bytes())["model"]
    tensors: dict[str, Tensor] = {torchvision_name(key): torch.from_numpy(value) for key, value in found.items()}
    load_strictly(source, fresh, tensors)
    return same_features(source, fresh)


def _configurations(source: Source, options: ExportOptions, out: Path, fresh: nn.Module, name: str) -> dict[Path, str]:
    """The configuration files by place; none where Detectron2's C4 head, made of bottlenecks, has no room for res5."""
    if not any(isinstance(module, Bottleneck) for module in fresh.modules()):
        if options.configs is not None:
            raise UserError(
                f"{name} has no configuration to write: Detectron2's C4 head is made of bottleneck blocks, as from "
                "ResNet-50 on. Leave out --configs; the weights alone can be exported."
            )
        return {}
    folder = options.configs or out.with_name(f"{out.stem}-configs")
    depth = 2 + sum(3 * isinstance(module, Bottleneck) for module in fresh.modules())
    values = {
        "weights": Path(os.path.relpath(out.absolute(), folder.absolute())).as_posix(),
        "mean": [round(255 * value, 3) for value in source.plan.mean],
        "std": [round(255 * value, 3) for value in source.plan.std],
        "depth": depth,
        "groups": fresh.groups,
        "width": fresh.base_width,
    }
    return {folder / file: text for file, text in texts(depth, values).items()}


def _notes(beside: dict[Path, str], name: str) -> tuple[str, ...]:
    if not beside:
        return (
            f"No configuration comes with {name}: Detectron2's C4 head is made of bottleneck blocks. FPN takes it.",
        )
    listed = ", ".join(f"`{path.parent.name}/{path.name}`" for path in beside)
    return (
        f"Beside it: {listed}. Faster R-CNN R-C4 with one more batch norm behind res5, VOC07+12, 24,000 steps.",
        "The names and tensors were checked; the script and the configurations were not run, since Detectron2 is not "
        "part of phinets.",
    )


def _usage(out: Path, beside: dict[Path, str]) -> str:
    if not beside:
        return f'cfg.MODEL.WEIGHTS = {out.name!r}\ncfg.MODEL.RESNETS.STRIDE_IN_1X1 = False\ncfg.INPUT.FORMAT = "RGB"'
    folder = os.path.relpath(next(iter(beside)).parent.absolute(), out.absolute().parent)
    voc = next(path.name for path in beside if path.name not in (BASE, TRAIN))
    return f"cd {shlex.quote(folder)}\npython {TRAIN} --config-file {voc} --num-gpus 8"


TARGET = Target(endings=(".pkl",), options=("configs",), make=make)
