"""Your own backbone and your own dataset: any module that returns (n, d), any dataset that returns uint8 images.

python examples/own_backbone_and_dataset.py
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import phinets


class Stripes(Dataset[Tensor]):
    """512 images with stripes of random angle and color: uint8 (3, 32, 32)."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> Tensor:
        generator = torch.Generator().manual_seed(index)
        angle, *color = torch.rand(4, generator=generator).tolist()
        rows, columns = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
        wave = torch.sin(rows * torch.cos(torch.tensor(6 * angle)) + columns * torch.sin(torch.tensor(6 * angle)))
        return ((wave + 1) / 2 * torch.tensor(color)[:, None, None] * 255).to(torch.uint8)


class SmallNet(nn.Module):
    """Three convolutions and a mean. `num_features` is the number of features."""

    num_features = 64

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 16, 32, 64)
        blocks = [
            [nn.Conv2d(a, b, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
            for a, b in pairwise(widths)
        ]
        self.layers = nn.Sequential(*(layer for block in blocks for layer in block))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).mean((2, 3))  # type: ignore[no-any-return]


torch.manual_seed(0)
learner = phinets.learner("phinet", backbone=SmallNet(), projector=(64, 64), h_hidden=(16,), g_hidden=(16,))
optimizer = torch.optim.SGD(learner.parameters(), lr=0.05, momentum=0.9)
loader = phinets.data_loader(Stripes(), "simsiam-cifar", batch_size=64, seed=0)
for epoch in range(2):
    for views in loader:  # each pass is the next epoch
        losses = learner(views)
        optimizer.zero_grad()
        losses.total.backward()
        optimizer.step()
        learner.after_step()
    print(f"epoch {epoch + 1}: loss {losses.total.item():.4f}")
