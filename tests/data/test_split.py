"""Some of the labels, and none that nobody gave."""

import pytest
import torch

from phinets.data import ImageSet, InMemory


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_share_of_the_labels_is_the_same_share_of_every_class(share: float) -> None:
    labels = torch.cat([torch.zeros(400), torch.ones(200), torch.full((30,), 2)]).long()
    whole = ImageSet(InMemory(torch.zeros(630, 3, 1, 1, dtype=torch.uint8)), labels)
    some = whole.share(share, torch.Generator().manual_seed(0)).labels
    assert some is not None
    assert some.bincount().tolist() == [max(1, round(share * n)) for n in (400, 200, 30)]


def test_a_share_is_drawn_by_the_seed_alone() -> None:
    labels = torch.arange(300) % 3
    pixels = torch.arange(300).reshape(-1, 1, 1, 1).expand(-1, 3, 1, 1).to(torch.uint8)
    whole = ImageSet(InMemory(pixels), labels)

    def drawn(seed: int) -> torch.Tensor:
        images = whole.share(0.1, torch.Generator().manual_seed(seed)).images
        return images.fetch(torch.arange(len(images))).images

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_images_of_unknown_class_are_not_asked_about() -> None:
    labels = torch.tensor([0, -1, 1, -1, 2])
    part = ImageSet(InMemory(torch.arange(5).reshape(-1, 1, 1, 1).expand(-1, 3, 1, 1).to(torch.uint8)), labels).labeled
    assert part.labels is not None
    assert part.labels.tolist() == [0, 1, 2]
    assert part.images.fetch(torch.arange(3)).images[:, 0, 0, 0].tolist() == [0, 2, 4]
