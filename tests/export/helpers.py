"""What the tests of exports share: run folders with encoders of any kind, made without training them."""

import re
import shutil
from pathlib import Path

import torch
import yaml
from safetensors import safe_open
from torch import Tensor, nn

from phinets.backbones import backbone
from phinets.backbones.weights import CHECKSUM, serialize_weights
from phinets.config.export import ExportOptions
from phinets.export.card import FileRecord
from phinets.export.export import plan_export


def lived_in(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module with batch norms as if it had seen images: no statistic and no scale is where it starts."""
    generator = torch.Generator().manual_seed(seed)
    for each in module.modules():
        if isinstance(each, nn.BatchNorm2d):
            assert each.running_mean is not None
            assert each.running_var is not None
            with torch.no_grad():
                each.running_mean.uniform_(-0.3, 0.3, generator=generator)
                each.running_var.uniform_(0.7, 1.4, generator=generator)
                each.weight.uniform_(0.5, 1.0, generator=generator)
                each.bias.uniform_(-0.2, 0.2, generator=generator)
    return module.eval()


def run_with(name: str, finished: Path, folder: Path, image_size: int = 32) -> nn.Module:
    """A finished run's folder with another backbone in it; gives the encoder of both clocks."""
    shutil.copytree(finished, folder)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["backbone"], config["source"]["image_size"] = name, image_size
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    encoder = lived_in(backbone(name))
    for clock, file in (("fast", "backbone.safetensors"), ("slow", "backbone-slow.safetensors")):
        metadata = {**said_by(folder / file), "backbone": name, "image_size": str(image_size), "encoder": clock}
        (folder / file).write_bytes(serialize_weights(encoder.state_dict(), metadata))
    return encoder


def said_by(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        return {key: value for key, value in file.metadata().items() if key != CHECKSUM}


def exported(place: Path, to: str, out: Path, **options: object) -> FileRecord:
    return plan_export(place, to, ExportOptions(**options), out).write()  # type: ignore[arg-type]


def images(n: int, side: int = 32, seed: int = 5) -> Tensor:
    return torch.randn(n, 3, side, side, generator=torch.Generator().manual_seed(seed))


def same(one: nn.Module, other: nn.Module, side: int = 32) -> bool:
    """Whether two encoders give equal features to 1e-5, in eval mode."""
    x = images(3, side)
    with torch.no_grad():
        return torch.allclose(one.eval()(x), other.eval()(x), rtol=0, atol=1e-5)


def code_of(card: Path) -> str:
    """The lines of code on a model card."""
    found = re.search(r"```python\n(.*?)```", card.read_text(), re.DOTALL)
    assert found is not None
    return found[1]
