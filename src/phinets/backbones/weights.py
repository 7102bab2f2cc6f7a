"""Weights from files, whoever wrote them, into an encoder: all of them or none."""

import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch
import torchvision
from safetensors import safe_open
from torch import Tensor, nn

from phinets.backbones import IMAGENET_STEM
from phinets.config.errors import UserError

WRAPPERS = ("state_dict", "model", "model_state_dict")
"""Under which of these names a training script may have put the weights."""
SHOWN = 4
"""Keys of each kind that an error names."""
TRIED = 8
"""Names that are looked for under other prefixes."""


class Weights(NamedTuple):
    """Tensors by name, and what the file says of them."""

    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, str]


def read_weights(path: Path) -> Weights:
    """The weights in a .safetensors file, or in a state dict that torch saved; nothing in it is executed."""
    if not path.is_file():
        raise UserError(f"there is no file '{path}' to read weights from.")
    try:
        return _safetensors(path) if path.suffix == ".safetensors" else Weights(_state_dict(path), {})
    except UserError:
        raise
    except UnpicklingError:
        raise UserError(
            f"'{path}' can't be read as weights: it is no state dict, or holds more than tensors, which might run "
            "something. Save model.state_dict() alone, best as .safetensors."
        ) from None
    except Exception as error:  # a torn pickle may raise anything
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(
            f"'{path}' can't be read as weights: {first}. It must be a .safetensors file, or a state dict that torch "
            "saved."
        ) from error


def _safetensors(path: Path) -> Weights:
    with safe_open(path, framework="pt") as file:
        return Weights({name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {})  # noqa: SIM118


def _state_dict(path: Path) -> dict[str, Tensor]:
    found: Any = torch.load(path, map_location="cpu", weights_only=True)
    for name in WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
    if not isinstance(found, Mapping) or not any(isinstance(value, Tensor) for value in found.values()):
        raise UserError(f"'{path}' holds no state dict: no tensors by name. Save model.state_dict() into it.")
    return {str(name): value for name, value in found.items() if isinstance(value, Tensor)}


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], called: str) -> None:
    """Put weights into an encoder; where they don't fit, say which keys are missing, unexpected or of another shape.

    Names may all carry one prefix, as wrappers put it (`module.`, `encoder.`). A classifier, which an encoder has lost,
    may be there; nothing else may be there or fail. `called` names the file for the error.
    """
    wanted = module.state_dict()
    prefix = _prefix(tensors, wanted)
    named = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    dropped = classifier_names(module)
    missing = [name for name in wanted if name not in named and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in named if name not in wanted and not name.startswith(dropped)]
    other = [
        f"{name}: {tuple(named[name].shape)} in the file, {tuple(value.shape)} in the encoder"
        for name, value in wanted.items()
        if name in named and named[name].shape != value.shape
    ]
    if missing or other or unexpected:
        kinds = {"missing": missing, "unexpected": unexpected, "of another shape": other}
        told = "; ".join(f"{len(names)} {kind} ({_listed(names)})" for kind, names in kinds.items() if names)
        raise UserError(
            f"the weights in '{called}' don't fit the encoder: {told}. Name the encoder that they were made for with "
            "--backbone; `phinets list backbones` shows all."
        )
    module.load_state_dict({name: named.get(name, value) for name, value in wanted.items()})


def encoder_checksum(encoder: nn.Module) -> str:
    """A checksum of an encoder's layers, weights and buffers: 16 hexadecimal digits."""
    checksum = sha256(repr(encoder).encode())
    for name, value in sorted(encoder.state_dict().items()):
        checksum.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        checksum.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return checksum.hexdigest()[:16]


def classifier_names(module: nn.Module) -> tuple[str, ...]:
    """How the names of a classifier begin that an encoder of this family had: timm says it, torchvision's is fc."""
    said = getattr(module, "default_cfg", None)
    known = said.get("classifier") if isinstance(said, Mapping) else None
    names = ("fc",) if known is None else (known,) if isinstance(known, str) else tuple(known)
    return tuple(f"{name}." for name in names)


def _prefix(tensors: Mapping[str, Tensor], wanted: Mapping[str, Any]) -> str:
    """What stands before the wanted names in the file: before all of them or, where some are missing, before most."""
    needed = [name for name in wanted if not name.endswith("num_batches_tracked")]
    before = {name.removesuffix(last) for last in needed[:TRIED] for name in tensors if name.endswith(last)}
    found = {prefix: sum(prefix + name in tensors for name in needed) for prefix in {"", *before}}
    whole = sorted(prefix for prefix, count in found.items() if count == len(needed))
    if len(whole) > 1 and "" not in whole:
        raise UserError(f"the file holds several encoders ({', '.join(whole)}). Save the one to be judged by itself.")
    return "" if "" in whole else max(found, key=lambda prefix: (found[prefix], -len(prefix)))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


CLASSIFIER = "fc."
"""How the names of torchvision's classifier begin."""


def detectron2_name(name: str) -> str:
    """The name in Detectron2 of a weight of torchvision's ResNet.

    What lies in no layer is the stem's; layerN is res(N+1), bnK is convK.norm, downsample.0 is the shortcut and
    downsample.1 its norm: layer1.0.bn2.weight → res2.0.conv2.norm.weight.
    """
    found = re.fullmatch(r"layer(\d+)\.(\d+)\.(.+)", name)
    place, rest = ("stem", name) if found is None else (f"res{int(found[1]) + 1}.{found[2]}", found[3])
    rest = re.sub(r"^downsample\.0\.", "shortcut.", rest)
    rest = re.sub(r"^downsample\.1\.", "shortcut.norm.", rest)
    rest = re.sub(r"^bn(\d+)\.", r"conv\1.norm.", rest)
    return f"{place}.{rest}"


def torchvision_name(name: str) -> str:
    """The name in torchvision of a weight of Detectron2's ResNet: the way back of `detectron2_name`."""
    found = re.fullmatch(r"res(\d+)\.(\d+)\.(.+)", name)
    place, rest = (
        ("", name.removeprefix("stem.")) if found is None else (f"layer{int(found[1]) - 1}.{found[2]}.", found[3])
    )
    rest = re.sub(r"^shortcut\.norm\.", "downsample.1.", rest)
    rest = re.sub(r"^shortcut\.", "downsample.0.", rest)
    return place + re.sub(r"^conv(\d+)\.norm\.", r"bn\1.", rest)


def torchvision_twin(tensors: Mapping[str, Tensor]) -> str | None:
    """Which of torchvision's ResNets has weights of exactly these names and shapes, its classifier left out."""
    wanted = {name: value.shape for name, value in tensors.items() if not name.startswith(CLASSIFIER)}
    return next((name for name in IMAGENET_STEM if _shapes(name) == wanted), None)


@cache
def _shapes(name: str) -> dict[str, torch.Size]:
    tensors = fresh_resnet(name, torch.device("meta")).state_dict()
    return {key: value.shape for key, value in tensors.items() if not key.startswith(CLASSIFIER)}


def fresh_resnet(name: str, device: torch.device | None = None) -> nn.Module:
    """torchvision's ResNet of that name as anybody gets it, with its classifier; on `meta` it has shapes only."""
    with device or torch.device("cpu"):
        model: nn.Module = torchvision.models.get_model(name, weights=None)
    return model
