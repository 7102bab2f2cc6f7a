"""Features: of every image, in eval mode, without a trace."""

import pytest
import torch
from torch import nn

from phinets.evaluation.features import features, pixels
from tests.helpers import TinyEncoder, assert_features_close

CPU = torch.device("cpu")
IMAGES = torch.randint(0, 256, (23, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_no_image_is_left_out_whatever_the_batch() -> None:
    encoder = TinyEncoder()
    whole = features(encoder, [IMAGES], lambda x: x.float(), device=CPU)
    assert whole.shape == (23, 5)
    assert_features_close(features(encoder, IMAGES.split(5), lambda x: x.float(), device=CPU), whole)


@pytest.mark.parametrize("training", [True, False])
def test_the_encoder_is_frozen_and_left_in_the_mode_it_was_in(training: bool) -> None:
    encoder = TinyEncoder().train(training)
    before = {k: v.clone() for k, v in encoder.state_dict().items()}
    out = features(encoder, [IMAGES], lambda x: x.float(), device=CPU)
    assert encoder.training is training
    assert not out.requires_grad
    assert all(torch.equal(before[k], v) for k, v in encoder.state_dict().items())


def test_a_failing_encoder_is_left_in_the_mode_it_was_in() -> None:
    encoder = nn.Linear(2, 2)
    with pytest.raises(RuntimeError):
        features(encoder, [IMAGES], lambda x: x.float(), device=CPU)
    assert encoder.training


def test_pixels_are_the_images_themselves() -> None:
    assert torch.equal(pixels(IMAGES.split(7), lambda x: x.float()), IMAGES.float().reshape(23, -1))
