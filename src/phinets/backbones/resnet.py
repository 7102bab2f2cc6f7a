"""ResNets for small images: a 3×3 stem, no max-pool, and torchvision's blocks, names and initialization."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock


class SmallImageResNet(nn.Module):
    """image (n, 3, s, s) → feature (n, widths[-1]); every stage but the first halves the side, and so may the stem.

    With widths (64, 128, 256, 512) and two blocks a stage it is the paper's ResNet-18 for CIFAR. Kaiming fan-out for
    convolutions and no zero-initialized residual, as in the paper's recipe. Parameters are named as torchvision's.
    """

    def __init__(self, widths: tuple[int, ...], blocks: int, stem_stride: int = 1) -> None:
        super().__init__()
        self.num_features = widths[-1]
        self.conv1 = nn.Conv2d(3, widths[0], 3, stride=stem_stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.stages = [f"layer{i + 1}" for i in range(len(widths))]
        inputs = (widths[0], *widths[:-1])
        for i, (name, fan_in, width) in enumerate(zip(self.stages, inputs, widths, strict=True)):
            self.add_module(name, _stage(fan_in, width, blocks, stride=1 if i == 0 else 2))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        for name in self.stages:
            x = self.get_submodule(name)(x)
        return torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)


def _stage(fan_in: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    shortcut = None
    if stride != 1 or fan_in != width:
        shortcut = nn.Sequential(nn.Conv2d(fan_in, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width))
    first = BasicBlock(fan_in, width, stride=stride, downsample=shortcut)
    return nn.Sequential(first, *(BasicBlock(width, width) for _ in range(blocks - 1)))


def resnet18_cifar() -> nn.Module:
    """The paper's encoder: ResNet-18 with a 3×3 stem and no max-pool; 11.2 M parameters, 512 features."""
    return SmallImageResNet((64, 128, 256, 512), blocks=2)


def resnet_tiny() -> nn.Module:
    """The same family for CPUs and tests: narrow, a block a stage, stem of stride 2; 0.3 M parameters, 128 features."""
    return SmallImageResNet((16, 32, 64, 128), blocks=1, stem_stride=2)
