"""Your own evaluation: features of a finished run, then a nearest-class-mean classifier beside kNN.

python examples/custom_evaluation.py RUN
"""

import sys
from typing import Literal

import torch
from torch import Tensor

import phinets
from phinets.data.shapes import finite
from phinets.evaluation.knn import knn_accuracy

encoder = phinets.load(sys.argv[1])  # encoder="slow" for the slow encoder


def features(n: int, split: Literal["train", "test"]) -> tuple[Tensor, Tensor]:
    """Features (n, d) and labels (n,) of one split."""
    images, labels = finite(n, split=split)
    return encoder(images), torch.from_numpy(labels)


def nearest_class_mean(test: Tensor, truth: Tensor, train: Tensor, labels: Tensor) -> float:
    """Percent of test images whose class mean is the nearest one, by cosine."""
    train, test = (x / x.norm(dim=1, keepdim=True) for x in (train, test))
    means = torch.stack([train[labels == label].mean(0) for label in labels.unique()])
    return 100 * (test @ means.T).argmax(1).eq(truth).float().mean().item()


train, labels = features(1000, "train")
test, truth = features(500, "test")
print(f"nearest class mean: {nearest_class_mean(test, truth, train, labels):.1f} %")
print(f"kNN (k = 20): {knn_accuracy(test, truth, train, labels, k=20):.1f} %")
