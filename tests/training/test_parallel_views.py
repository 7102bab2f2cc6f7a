"""Two views in two threads: the same training as in turn, the same bits in every repetition."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import nn

import phinets
from phinets.methods import Learner, distil
from phinets.runtime.devices import Precision
from phinets.training.parallel_views import ParallelViews, parallel_views
from phinets.training.step import TrainState, train_step
from tests.helpers import SMALL, tiny_train_state, tiny_views

FAMILIES = ("simsiam", "byol", "rm-simsiam", "phinet", "phinet/no-stop-gradient", "x-phinet/cosine", "barlow-twins")
CPU = Precision("fp32", torch.device("cpu"))


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def small_learner(name: str, seed: int = 0) -> Learner:
    """A learner over a convolution with batch norm, in double precision."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        return phinets.learner(name, backbone=nn.Sequential(*layers), image_size=8, options=SMALL).double()


def in_parallel(train_state: TrainState) -> TrainState:
    parallel = parallel_views(train_state.learner, CPU)
    assert isinstance(parallel, ParallelViews)
    return replace(train_state, parallel_views=parallel)


def trained(train_state: TrainState, steps: range = range(3), micro_batches: int = 1) -> dict[str, torch.Tensor]:
    """All parameters and buffers after some steps."""
    for i in steps:
        batches = [tiny_views(seed=10 * i + j) for j in range(micro_batches)]
        train_step(train_state, batches, rate=0.05, peak=0.05)
    learner = train_state.learner
    return {name: value.clone() for name, value in (*learner.named_parameters(), *learner.named_buffers())}


@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize("name", FAMILIES)
def test_training_in_two_threads_is_training_in_turn(name: str, micro_batches: int) -> None:
    in_turn = trained(tiny_train_state(small_learner(name)), micro_batches=micro_batches)
    parallel = trained(in_parallel(tiny_train_state(small_learner(name))), micro_batches=micro_batches)
    torch.testing.assert_close(parallel, in_turn, rtol=1e-9, atol=1e-11)  # in double precision


def test_a_distiller_trains_in_two_threads_too() -> None:
    def learner() -> Learner:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            taught = distil(small_learner("phinet"), hidden=(4,))
        taught.begin_task(0)
        taught.begin_task(1)
        return taught

    in_turn, parallel = trained(tiny_train_state(learner())), trained(in_parallel(tiny_train_state(learner())))
    torch.testing.assert_close(parallel, in_turn, rtol=1e-9, atol=1e-11)


def test_a_repetition_and_a_resumed_run_have_the_same_bits() -> None:
    first = trained(in_parallel(tiny_train_state(small_learner("x-phinet"))), range(4))
    interrupted = in_parallel(tiny_train_state(small_learner("x-phinet")))
    trained(interrupted, range(2))
    resumed = in_parallel(tiny_train_state(small_learner("x-phinet", seed=5)))
    resumed.restore(interrupted.state())
    second = trained(resumed, range(2, 4))
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


def test_the_number_of_threads_is_restored_after_a_step() -> None:
    trained(in_parallel(tiny_train_state(small_learner("simsiam"))), range(1))
    assert torch.get_num_threads() == 2


def test_one_thread_half_precision_one_view_and_dropout_are_left_alone() -> None:
    learner = small_learner("simsiam")
    assert parallel_views(learner, Precision("bf16", torch.device("cpu"))) is None
    assert parallel_views(small_learner("moco-v2"), CPU) is None
    torch.set_num_threads(1)
    assert parallel_views(learner, CPU) is None
    torch.set_num_threads(2)
    learner.f.projector.append(nn.Dropout())  # type: ignore[operator]
    assert parallel_views(learner, CPU) is None
