"""Load weight files of any origin into an encoder, all weights or none; names of weights in other libraries."""

import json
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
from safetensors.torch import save
from torch import Tensor, nn

from phinets.backbones import IMAGENET_STEM
from phinets.config.errors import UserError

WRAPPERS = ("state_dict", "model", "model_state_dict")
"""Keys under which training scripts store the weights."""
PREFIX_TRIALS = 8
"""Weights that are looked for under other prefixes."""
CLASSIFIER = "fc."
"""How the names of torchvision's classifier begin."""
CHECKSUM = "sha256"
"""The entry of a file's metadata with the checksum of its tensors and its other metadata."""


class Weights(NamedTuple):
    """Tensors by name, and the file's metadata."""

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
            f"'{path}' can't be read as weights: it is no state dict, or holds more than tensors, which might "
            "execute code. Save model.state_dict() alone, best as .safetensors."
        ) from None
    except Exception as error:  # an incomplete pickle may raise anything
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(
            f"'{path}' can't be read as weights: {first}. It must be a .safetensors file, or a state dict that torch "
            "saved."
        ) from error


def _safetensors(path: Path) -> Weights:
    """The content of a .safetensors file, checked where it has a checksum."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = dict(file.metadata() or {})
    if metadata.pop(CHECKSUM, None) not in (None, _checksum(tensors, json.dumps(metadata, sort_keys=True))):
        raise UserError(
            f"'{path}' is damaged: its weights do not have the SHA-256 that it was written with. Replace it with a "
            "copy, or delete it: a run folder then gives the weights of its newest checkpoint."
        )
    return Weights(tensors, metadata)


def serialize_weights(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """The content of a .safetensors file, with a checksum that `read_weights` compares; the same for the same weights.

    The header is written again, since `save` gives the metadata in any order.
    """
    checksum = _checksum(tensors, json.dumps(dict(metadata), sort_keys=True))
    content = save(dict(tensors), {**metadata, CHECKSUM: checksum})
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]


def _checksum(tensors: Mapping[str, Tensor], about: str) -> str:
    """SHA-256 of a text, and of tensors with their names, types and shapes."""
    checksum = sha256(about.encode())
    for name, value in sorted(tensors.items()):
        checksum.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        checksum.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return checksum.hexdigest()


def encoder_checksum(encoder: nn.Module) -> str:
    """A checksum of an encoder's layers, weights and buffers: 16 hexadecimal digits."""
    return _checksum(encoder.state_dict(), repr(encoder))[:16]


def _state_dict(path: Path) -> dict[str, Tensor]:
    content: Any = torch.load(path, map_location="cpu", weights_only=True)
    for name in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping) or not any(isinstance(value, Tensor) for value in content.values()):
        raise UserError(f"'{path}' holds no state dict: no tensors by name. Save model.state_dict() into it.")
    return {str(name): value for name, value in content.items() if isinstance(value, Tensor)}


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], file: str) -> None:
    """Load weights into an encoder.

    All names may have one prefix, as wrappers add it (`module.`, `encoder.`). A classifier, which an encoder does not
    have, is left out. `file` names the file in errors.

    Raises:
        UserError: keys are missing, unexpected or of another shape; the encoder is unchanged.
    """
    own = module.state_dict()
    prefix = _prefix(tensors, own)
    named = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    problems = {
        "missing": [name for name in own if name not in named and not name.endswith("num_batches_tracked")],
        "unexpected": [name for name in named if name not in own and not name.startswith(classifier_names(module))],
        "of another shape": [
            f"{name}: {tuple(named[name].shape)} in the file, {tuple(value.shape)} in the encoder"
            for name, value in own.items()
            if name in named and named[name].shape != value.shape
        ],
    }
    if any(problems.values()):
        listed = "; ".join(
            f"{len(names)} {kind} ({', '.join(names[:4])}{', …' * (len(names) > 4)})"
            for kind, names in problems.items()
            if names
        )
        raise UserError(
            f"the weights in '{file}' don't fit the encoder: {listed}. Name the encoder that they were made for with "
            "--backbone; `phinets list backbones` lists all."
        )
    module.load_state_dict({name: named.get(name, value) for name, value in own.items()})


def classifier_names(module: nn.Module) -> tuple[str, ...]:
    """How the names of a classifier of this family begin: timm's models name theirs, torchvision's is fc."""
    config = getattr(module, "default_cfg", None)
    names = config.get("classifier") if isinstance(config, Mapping) else None
    return (CLASSIFIER,) if names is None else tuple(f"{n}." for n in ((names,) if isinstance(names, str) else names))


def _prefix(tensors: Mapping[str, Tensor], own: Mapping[str, Any]) -> str:
    """The prefix of the encoder's names in the file: of all of them or, where some are missing, of most."""
    needed = [name for name in own if not name.endswith("num_batches_tracked")]
    prefixes = {name.removesuffix(end) for end in needed[:PREFIX_TRIALS] for name in tensors if name.endswith(end)}
    counts = {prefix: sum(prefix + name in tensors for name in needed) for prefix in {"", *prefixes}}
    whole = sorted(prefix for prefix, count in counts.items() if count == len(needed))
    if len(whole) > 1 and "" not in whole:
        raise UserError(f"the file holds several encoders ({', '.join(whole)}). Save one of them by itself.")
    return "" if "" in whole else max(counts, key=lambda prefix: (counts[prefix], -len(prefix)))


def detectron2_name(name: str) -> str:
    """The name in Detectron2 of a weight of torchvision's ResNet.

    Weights outside the layers are the stem's; layerN is res(N+1), bnK is convK.norm, downsample.0 is the shortcut and
    downsample.1 its norm: layer1.0.bn2.weight → res2.0.conv2.norm.weight.
    """
    match = re.fullmatch(r"layer(\d+)\.(\d+)\.(.+)", name)
    place, rest = ("stem", name) if match is None else (f"res{int(match[1]) + 1}.{match[2]}", match[3])
    rest = rest.replace("downsample.0.", "shortcut.").replace("downsample.1.", "shortcut.norm.")
    return f"{place}." + re.sub(r"^bn(\d+)", r"conv\1.norm", rest)


def matching_resnet(tensors: Mapping[str, Tensor]) -> str | None:
    """The torchvision ResNet that has weights of exactly these names and shapes, its classifier left out."""
    shapes = _shapes(tensors)
    return next((name for name in IMAGENET_STEM if _resnet_shapes(name) == shapes), None)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in tensors.items() if not name.startswith(CLASSIFIER)}


@cache
def _resnet_shapes(name: str) -> dict[str, torch.Size]:
    return _shapes(fresh_resnet(name, torch.device("meta")).state_dict())


def fresh_resnet(name: str, device: torch.device | None = None) -> nn.Module:
    """torchvision's ResNet of that name, with its classifier; on `meta` it has shapes only."""
    with device or torch.device("cpu"):
        model: nn.Module = torchvision.models.get_model(name, weights=None)
    return model
