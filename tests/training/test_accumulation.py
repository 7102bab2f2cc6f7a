"""A batch computed in parts: the same update where the loss is a mean over images, and a word where it is not."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import phinets
from phinets.config.errors import UserError
from phinets.config.methods import METHODS
from phinets.config.run import Compute, PretrainConfig
from phinets.methods import Learner
from phinets.runs.trainer import run
from phinets.training.step import train_step
from tests.helpers import SMALL, tiny_learner, tiny_train_state, tiny_views
from tests.runs.test_pretrain import TINY, Listener


class NormFree(nn.Module):
    """An encoder that looks at each image by itself."""

    num_features = 5

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.conv(x)).mean((2, 3))


def norm_free(name: str) -> Learner:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return phinets.learner(name, backbone=NormFree(), options=SMALL).double()


def parts_of(views: phinets.Views, count: int) -> list[phinets.Views]:
    assert views.anchor is not None
    pieces = (view.chunk(count) for view in (views.first, views.second, views.anchor))
    return [phinets.Views(*piece) for piece in zip(*pieces, strict=True)]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_without_batch_statistics_parts_give_the_whole_batch_s_update(count: int) -> None:
    """MoCo over an encoder without norms: the same weights, slow weights, queue and losses."""
    whole, parted = tiny_train_state(norm_free("moco-v2")), tiny_train_state(norm_free("moco-v2"))
    for step in range(3):
        views = tiny_views(12, seed=step)
        one = train_step(whole, [views], rate=0.1, peak=0.1)
        two = train_step(parted, parts_of(views, count), rate=0.1, peak=0.1)
        assert torch.allclose(one.total, two.total, atol=1e-12)
        assert one.codes is not None
        assert two.codes is not None
        assert torch.allclose(one.codes, two.codes, atol=1e-12)
    ours, theirs = whole.learner.state_dict(), parted.learner.state_dict()
    for key in ours:
        assert torch.allclose(ours[key], theirs[key], atol=1e-10), key
    assert whole.learner.batch_statistics() == []


@pytest.mark.parametrize("name", METHODS)
def test_the_update_is_that_of_the_mean_of_the_parts_losses(name: str) -> None:
    train_state = tiny_train_state(tiny_learner(name), momentum=0.0, weight_decay=0.0, constant_h=False)
    twin = tiny_learner(name)
    parts = parts_of(tiny_views(12), 2)
    train_step(train_state, parts, rate=0.1, peak=0.1)
    (sum(twin.loss(part).total for part in parts) / 2).backward()  # type: ignore[union-attr]
    for (key, p), q in zip(train_state.learner.named_parameters(), twin.parameters(), strict=True):
        if q.grad is not None:
            assert torch.allclose(p, q - 0.1 * q.grad, atol=1e-10), key


def test_what_batch_statistics_change_is_known() -> None:
    assert tiny_learner("x-phinet").batch_statistics() == ["batch norm"]
    assert tiny_learner("barlow-twins").batch_statistics() == ["batch norm", "the cross-correlation"]
    assert norm_free("barlow-twins").batch_statistics()[-1] == "the cross-correlation"


def on_message(config: PretrainConfig, folder: Path) -> list[str]:
    listener = Listener()
    run(config, folder, callback=listener)
    return listener.heard


def test_a_run_in_parts_says_that_it_is_another_run(tmp_path: Path) -> None:
    short = replace(TINY, epochs=1)
    assert on_message(short, tmp_path / "whole") == []
    (text,) = on_message(replace(short, compute=Compute(accumulate=4)), tmp_path / "parts")
    assert "batch norm sees 4 images at a time, not 16" in text


@pytest.mark.parametrize("accumulate", [3, 16, 0])
def test_parts_that_can_t_be_are_refused(accumulate: int) -> None:
    with pytest.raises(UserError, match="accumulate"):
        replace(TINY, compute=Compute(accumulate=accumulate))
