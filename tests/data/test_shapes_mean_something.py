"""Shapes as a task: hard for pixels and for chance features, easy for whoever is told the classes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets.backbones import backbone
from phinets.config.views import PLANS
from phinets.data.shapes import finite
from phinets.evaluation.features import features
from phinets.evaluation.knn import knn_accuracy
from phinets.views import prepare

CPU = torch.device("cpu")


def prepared_images(images: Tensor) -> Tensor:
    return prepare(images, PLANS["simsiam-cifar"])


@pytest.fixture(scope="module")
def world() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    train, test = finite(12_000, split="train"), finite(1_500, split="test")
    images, labels, asked, truth = map(torch.from_numpy, (*train, *test))
    return images, labels, asked, truth


def test_pixels_and_an_untrained_encoder_know_little(world: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    images, labels, asked, truth = world
    known, queries = (features(None, x.split(512), prepared_images, CPU) for x in (images[:5000], asked))
    assert knn_accuracy(queries, truth, known, labels[:5000], k=50) < 30
    torch.manual_seed(0)
    encoder = backbone("resnet-tiny")
    known, queries = (features(encoder, x.split(512), prepared_images, CPU) for x in (images[:5000], asked))
    assert knn_accuracy(queries, truth, known, labels[:5000], k=50) < 45


@pytest.mark.slow
def test_a_supervised_resnet_tiny_gets_at_least_95_percent(world: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    images, labels, asked, truth = world
    torch.manual_seed(0)
    model = nn.Sequential(backbone("resnet-tiny"), nn.Linear(128, 10)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2 * (len(images) // 100))
    for _ in range(2):
        for batch in torch.randperm(len(images)).split(100):
            x = prepared_images(images[batch]).contiguous(memory_format=torch.channels_last)
            loss = F.cross_entropy(model(x), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        guessed = torch.cat([model(prepared_images(x)).argmax(1) for x in asked.split(500)])
    assert float((guessed == truth).double().mean()) >= 0.95
