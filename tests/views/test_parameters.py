"""What is drawn has the distribution of torchvision's own `get_params`, and depends on the generator alone."""

from dataclasses import fields, replace
from itertools import permutations

import pytest
import torch
from scipy.stats import chisquare, ks_2samp
from torch import Tensor
from torchvision import transforms as torchvision

from phinets.config.views import Augmentation
from phinets.views import ViewParams, draw, random_stream

N = 10_000


def same(first: ViewParams, second: ViewParams) -> bool:
    return all(torch.equal(getattr(first, field.name), getattr(second, field.name)) for field in fields(ViewParams))


def same_distribution(ours: Tensor, theirs: Tensor) -> bool:
    """Kolmogorov–Smirnov: would a chance of one in a thousand explain the difference?"""
    return bool(ks_2samp(ours, theirs, method="asymp").pvalue > 1e-3)


def torchvision_boxes(augmentation: Augmentation, height: int, width: int) -> Tensor:
    image = torch.empty(3, height, width)
    scale, ratio = list(augmentation.crop_scale), list(augmentation.crop_ratio)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.tensor([torchvision.RandomResizedCrop.get_params(image, scale, ratio) for _ in range(N)])


@pytest.mark.parametrize(("height", "width"), [(32, 32), (24, 40), (12, 60)])
def test_boxes_are_distributed_like_random_resized_crops(height: int, width: int) -> None:
    """The last shape is so wide that most draws do not fit and the central box is taken."""
    augmentation = Augmentation(crop_scale=(0.2, 1.0))
    theirs = torchvision_boxes(augmentation, height, width)
    ours = draw(augmentation, N, height, width, random_stream(0)).box
    for column in range(4):
        assert same_distribution(ours[:, column], theirs[:, column])
    assert same_distribution(ours[:, 2] * ours[:, 3], theirs[:, 2] * theirs[:, 3])
    assert same_distribution(ours[:, 3] / ours[:, 2], theirs[:, 3] / theirs[:, 2])


@pytest.mark.parametrize(("height", "width"), [(10, 90), (90, 10), (20, 20)])
def test_a_box_that_never_fits_becomes_torchvisions_central_one(height: int, width: int) -> None:
    """Only the whole area is allowed, in a shape that the image does not have; a square keeps its whole."""
    augmentation = Augmentation(crop_scale=(1.0, 1.0), crop_ratio=(0.99, 1.01) if height != width else (1.0, 1.0))
    with torch.random.fork_rng():
        theirs = torchvision.RandomResizedCrop.get_params(torch.empty(3, height, width), [1.0, 1.0], [0.99, 1.01])
    assert draw(augmentation, 1, height, width, random_stream(0)).box[0].tolist() == list(theirs)


@pytest.mark.parametrize("strength", [(0.4, 0.4, 0.4, 0.1), (1.5, 0.2, 0.8, 0.5)])
def test_color_factors_are_distributed_like_color_jitters(strength: tuple[float, float, float, float]) -> None:
    jitter = torchvision.ColorJitter(*strength)
    ranges = jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = torch.tensor([jitter.get_params(*ranges)[1:] for _ in range(N)])
    ours = draw(Augmentation(jitter=strength), N, 32, 32, random_stream(0)).factors
    for column in range(4):
        assert same_distribution(ours[:, column], theirs[:, column])


def test_all_24_orders_of_the_color_changes_are_equally_likely() -> None:
    orders = draw(Augmentation(), 24_000, 32, 32, random_stream(0)).order.tolist()
    counts = dict.fromkeys(permutations(range(4)), 0)
    for order in orders:
        counts[tuple(order)] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize(
    ("field", "mask"),
    [("flip", "flip"), ("jitter_p", "jitter"), ("gray_p", "gray"), ("blur_p", "blur"), ("solarize_p", "solarize")],
)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_a_chance_of_p_happens_to_p_of_the_images(field: str, mask: str, p: float) -> None:
    augmentation = Augmentation(**{field: p})  # type: ignore[arg-type]
    happened = getattr(draw(augmentation, N, 32, 32, random_stream(0)), mask)
    assert abs(happened.float().mean().item() - p) <= 4 * (p * (1 - p) / N) ** 0.5


def test_no_chance_depends_on_another() -> None:
    """As when torchvision's transforms each draw for themselves: no two are correlated beyond four standard errors."""
    chances = Augmentation(flip=0.5, jitter_p=0.5, gray_p=0.5, blur_p=0.5, solarize_p=0.5)
    params = draw(chances, N, 32, 32, random_stream(0))
    masks = torch.stack([params.flip, params.jitter, params.gray, params.blur, params.solarize]).float()
    assert (torch.corrcoef(masks) - torch.eye(5)).abs().max() <= 4 / N**0.5


def test_the_blurs_sigma_is_distributed_like_gaussian_blurs() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = torch.tensor([torchvision.GaussianBlur.get_params(0.1, 2.0) for _ in range(N)])
    assert same_distribution(draw(Augmentation(blur_sigma=(0.1, 2.0)), N, 32, 32, random_stream(0)).sigma, theirs)


def test_the_generator_determines_every_parameter() -> None:
    once, again, other = (draw(Augmentation(), 50, 32, 32, random_stream(seed)) for seed in (3, 3, 4))
    assert same(once, again)
    assert not same(once, other)


def test_a_changed_chance_leaves_the_other_parameters_as_they_were() -> None:
    usual = draw(Augmentation(), 50, 32, 32, random_stream(3))
    blurred = draw(Augmentation(blur_p=1.0), 50, 32, 32, random_stream(3))
    assert same(usual, replace(blurred, blur=usual.blur))


def test_streams_differ_by_seed_by_word_and_by_the_kind_of_word() -> None:
    names: list[tuple[int, tuple[str | int, ...]]] = [(7, ("views", 1)), (8, ("views", 1)), (7, ("views", 2))]
    names += [(7, ("data", 1)), (7, ("views", "1")), (7, ("views",)), (7, ())]
    firsts = {torch.rand(1, generator=random_stream(seed, *words), dtype=torch.float64).item() for seed, words in names}
    assert len(firsts) == len(names)


def test_a_stream_is_fresh_each_time_and_leaves_the_global_one_alone() -> None:
    before = torch.random.get_rng_state()
    numbers = [torch.rand(3, generator=random_stream(7, "views", 1)) for _ in range(2)]
    assert torch.equal(numbers[0], numbers[1])
    assert torch.equal(before, torch.random.get_rng_state())
