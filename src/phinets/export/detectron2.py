"""Weights for Detectron2, and the files that fine-tune a detector from them, without Detectron2 itself."""

import json
import os
import pickle
import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, Bottleneck

from phinets.backbones.weights import CLASSIFIER, detectron2_name, fresh_resnet
from phinets.config.errors import UserError
from phinets.config.export import ExportOptions
from phinets.export.artifact import Artifact, Source, Target, feature_difference, load_strict, quote
from phinets.export.weights import torchvision_resnet

Arrays = dict[str, NDArray[Any]]
BASE, TRAIN = "Base-RCNN-C4-BN.yaml", "train_net.py"


class PlainPickler(pickle.Pickler):
    """Pickles arrays by shape, type and bytes alone, so that every version of numpy reads them."""

    def reducer_override(self, value: Any) -> Any:
        """numpy's own pickles name a module that numpy 2 moved, and older versions don't have."""
        if not isinstance(value, np.ndarray):
            return NotImplemented
        return np.ndarray, (value.shape, value.dtype.str, bytearray(value.tobytes()))


class ResNetShape(NamedTuple):
    """Detectron2's settings of a ResNet."""

    depth: int
    groups: int
    width: int
    """Of a group, in the first stage."""
    bottleneck: bool
    """Whether it is made of bottleneck blocks, as from ResNet-50 on."""


def detectron2_weights(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """A pickle as Detectron2's model zoo has them; configurations beside it, where its C4 head fits the encoder."""
    name = torchvision_resnet(source, "detectron2")
    arrays = {
        detectron2_name(key): value.numpy() for key, value in source.tensors().items() if not key.startswith(CLASSIFIER)
    }
    content = {"model": arrays, "__author__": "phinets", "matching_heuristics": True}
    fresh = fresh_resnet(name)
    fresh.fc = nn.Identity()
    shape = _shape(fresh)
    if options.configs is not None and not shape.bottleneck:
        raise UserError(
            f"{name} has no configuration to write: Detectron2's C4 head is made of bottleneck blocks, as from "
            "ResNet-50 on. Leave out --configs; the weights alone can be exported."
        )
    folder = options.configs or out.with_name(f"{out.stem}-configs")
    return Artifact(
        description=f"Detectron2's {name}",
        write=lambda file: PlainPickler(file, protocol=4).dump(content),
        check=lambda path: _check(source, fresh, path),
        usage=_training(shape, folder, out) if shape.bottleneck else _settings(shape, source, out),
        language="sh" if shape.bottleneck else "python",
        notes=_notes(name, shape, folder),
        extra_files=_configurations(shape, source, folder, out) if shape.bottleneck else {},
    )


def _shape(model: Any) -> ResNetShape:
    """The depth counts a stem, a classifier, and two or three convolutions per block."""
    kinds = [type(module) for module in model.modules()]
    depth = 2 + 3 * kinds.count(Bottleneck) + 2 * kinds.count(BasicBlock)
    return ResNetShape(depth, model.groups, model.base_width, Bottleneck in kinds)


def _check(source: Source, fresh: nn.Module, path: Path) -> float:
    """Convert the file's names back to torchvision's, and load a fresh model."""
    arrays: Arrays = pickle.loads(path.read_bytes())["model"]
    names = {detectron2_name(name): name for name in fresh.state_dict()}
    tensors: dict[str, Tensor] = {names.get(key, key): torch.from_numpy(value) for key, value in arrays.items()}
    load_strict(source, fresh, tensors)
    return feature_difference(source, fresh)


def _configurations(shape: ResNetShape, source: Source, folder: Path, out: Path) -> dict[Path, str]:
    mean, std = _pixels(source)
    weights = json.dumps(_relative(out, folder), ensure_ascii=False)
    values = {"weights": weights, "mean": mean, "std": std, **shape._asdict()}
    return {folder / file: text for file, text in config_files(shape.depth, values).items()}


def voc_name(depth: int) -> str:
    """File name of the configuration for VOC."""
    return f"pascal_voc_R_{depth}_C4_24k.yaml"


def config_files(depth: int, values: Mapping[str, object]) -> dict[str, str]:
    """The files by name: the detector, its training on VOC with the values filled in, and the script that runs it."""
    voc = _template("voc.yaml.txt")
    for key, value in values.items():
        voc = voc.replace("{{" + key + "}}", str(value))
    return {BASE: _template("base.yaml.txt"), voc_name(depth): voc, TRAIN: _template("train_net.py.txt")}


def _template(name: str) -> str:
    return (files("phinets.export") / "detectron2_files" / name).read_text(encoding="utf-8")


def _pixels(source: Source) -> tuple[list[float], list[float]]:
    """Mean and std of the plan for values from 0 to 255."""
    mean, std = ([round(255 * value, 3) for value in values] for values in (source.plan.mean, source.plan.std))
    return mean, std


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
    except ValueError:  # another drive, on Windows
        return path.absolute().as_posix()


def _notes(name: str, shape: ResNetShape, folder: Path) -> tuple[str, ...]:
    if not shape.bottleneck:
        return (f"No detector comes with {name}: Detectron2's C4 head is made of bottleneck blocks. Its FPN takes it.",)
    listed = ", ".join(f"`{file}`" for file in (BASE, voc_name(shape.depth), TRAIN))
    return (
        f"In `{folder.name}`: {listed}: Faster R-CNN C4 with one more batch norm behind res5, VOC07+12, 24,000 steps.",
        "Names and tensors were checked. The configurations and the script were not run, since "
        "phinets does not depend on Detectron2.",
    )


def _training(shape: ResNetShape, folder: Path, out: Path) -> str:
    place = shlex.quote(_relative(folder, out.absolute().parent))
    return f"cd {place}\npython {TRAIN} --config-file {voc_name(shape.depth)} --num-gpus 8"


def _settings(shape: ResNetShape, source: Source, out: Path) -> str:
    mean, std = _pixels(source)
    lines = {
        "MODEL.WEIGHTS": quote(out),
        "MODEL.RESNETS.DEPTH": shape.depth,
        "MODEL.RESNETS.RES2_OUT_CHANNELS": shape.width,
        "MODEL.PIXEL_MEAN": mean,
        "MODEL.PIXEL_STD": std,
        "INPUT.FORMAT": '"RGB"',
    }
    return "\n".join(f"cfg.{key} = {value}" for key, value in lines.items())


TARGETS = {"detectron2": Target(suffixes=(".pkl",), options=("configs",), prepare=detectron2_weights)}
