"""Train X-PhiNet in a training loop of your own: plain PyTorch, no run folder.

python examples/own_training_loop.py [STEPS]
"""

import sys

import torch

import phinets
from phinets.config.views import PLANS
from phinets.data.shapes import finite
from phinets.evaluation.knn import knn_accuracy
from phinets.views import prepare

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
BATCH = 64
PLAN = PLANS["simsiam-cifar"]


def knn(encoder: torch.nn.Module) -> float:
    """kNN accuracy of the features, in percent."""
    encoder.eval()
    with torch.no_grad():
        (train, labels), (test, truth) = (
            (encoder(prepare(torch.from_numpy(images), PLAN)), torch.from_numpy(classes))
            for images, classes in (finite(1000, split="train"), finite(500, split="test"))
        )
    encoder.train()
    return knn_accuracy(test, truth, train, labels, k=20)


torch.manual_seed(0)
images = torch.from_numpy(finite(4000, split="train")[0])  # uint8 (n, 3, 32, 32)
learner = phinets.learner("x-phinet/cosine", backbone="resnet-tiny", projector=(256, 256), h_hidden=(64,))
optimizer = torch.optim.SGD(learner.parameters(), lr=0.12, momentum=0.9, weight_decay=5e-4)
generator = torch.Generator().manual_seed(0)
print(f"kNN before: {knn(learner.f):.1f} %")

for step in range(STEPS):
    batch = images[torch.randint(len(images), (BATCH,), generator=generator)]
    views = phinets.make_views(batch, "simsiam-cifar", generator)  # two augmented views and the image itself
    losses = learner(views)
    optimizer.zero_grad()
    losses.total.backward()
    optimizer.step()
    learner.after_step()  # the slow encoder follows
    if step % 20 == 0:
        print(f"step {step}: loss {losses.total.item():.4f}")

print(f"kNN after: {knn(learner.f):.1f} %")
