"""The step that changes a detector's weights, and its schedule."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from phinets.config.detection import DetectorOptimization, ImageOptions
from phinets.config.errors import UserError
from phinets.detection.loader import DetectionLoader, Sample
from phinets.detection.voc import read_voc
from phinets.training.detector import DetectorInput, DetectorSchedule, DetectorTrainState, detector_train_state
from tests.detection.helpers import voc
from tests.detection.test_c4 import pictures, tiny

HOW = DetectorOptimization(iterations=4, batch=2, lr=0.08, milestones=(3,), warmup_steps=2)
CPU = torch.device("cpu")


def train_state() -> DetectorTrainState:
    state = detector_train_state(tiny(), HOW, CPU)
    state.train()
    return state


def weights(of: DetectorTrainState) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in of.learner.state_dict().items()}


def step(of: DetectorTrainState, batches: Sequence[Sequence[Sample]], lr: float, seed: int) -> dict[str, float]:
    losses = of.step([DetectorInput(samples, seed) for samples in batches], rate=lr, peak=HOW.peak_lr)
    return {"loss": float(losses.total), **{name: float(value) for name, value in losses.terms.items()}}


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, two[name]) for name, value in one.items())


def test_the_paper_s_rate_rises_for_100_steps_and_falls_at_18000_and_22000() -> None:
    paper = DetectorOptimization()
    assert paper.rate(0) == pytest.approx(0.02 / 1000)
    assert paper.rate(50) == pytest.approx(0.02 * (0.5 + 0.0005))
    assert [paper.rate(step) for step in (100, 17_999)] == [0.02, 0.02]
    assert [paper.rate(step) for step in (18_000, 21_999)] == pytest.approx([0.002, 0.002])
    assert paper.rate(22_000) == pytest.approx(0.0002)
    assert replace(paper, batch=4).rate(500) == pytest.approx(0.005)
    assert replace(paper, warmup_steps=0).rate(0) == 0.02


def test_a_step_is_sgd_on_the_sum_of_the_four_losses() -> None:
    one, other = train_state(), train_state()
    losses = step(one, [pictures()], lr=0.01, seed=7)
    torch.manual_seed(7)
    terms = other.learner.train()(pictures())
    total = torch.stack(list(terms.values())).sum()
    total.backward()
    assert losses["loss"] == pytest.approx(float(total.detach()), rel=1e-6)
    assert {*losses} == {"loss", "objectness", "anchors", "classes", "boxes"}
    for mine, theirs in zip(one.learner.parameters(), other.learner.parameters(), strict=True):
        assert theirs.grad is not None
        wanted = theirs.detach() - 0.01 * (theirs.grad + HOW.weight_decay * theirs.detach())
        assert torch.allclose(mine, wanted, rtol=1e-5, atol=1e-7)


def test_a_step_repeats_by_its_draws_and_leaves_torch_s_generator_alone() -> None:
    one, two, other = train_state(), train_state(), train_state()
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = step(one, [pictures()], lr=0.01, seed=3)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    assert step(two, [pictures()], lr=0.01, seed=3) == first
    assert same(weights(one), weights(two))
    assert step(other, [pictures()], lr=0.01, seed=4) != first


def test_a_batch_in_parts_has_the_mean_of_their_gradients() -> None:
    halves = [[shown] for shown in pictures()]
    one, two = train_state(), train_state()
    losses = step(one, halves, lr=0.0, seed=3)
    seen = []
    for half in halves:
        torch.manual_seed(3)
        terms = two.learner.train()(half)
        total = torch.stack(list(terms.values())).sum()
        (total / 2).backward()
        seen.append(float(total.detach()))
    assert losses["loss"] == pytest.approx(sum(seen) / 2, rel=1e-6)
    for mine, theirs in zip(one.learner.parameters(), two.learner.parameters(), strict=True):
        assert mine.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(mine.grad, theirs.grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_the_batches_of_a_step_are_the_same_wherever_a_run_starts(micro_batches: int, tmp_path: Path) -> None:
    options = ImageOptions(data=f"voc:{voc(tmp_path)}", train_sides=(32, 48), test_side=48, max_side=80)
    loader = DetectionLoader(images=read_voc(options).train, options=options, batch=HOW.batch, seed=5)
    schedule = DetectorSchedule(loader=loader, training=HOW, micro_batches=micro_batches)
    whole, rest = list(schedule.batches(0, schedule.total)), list(schedule.batches(3, schedule.total))
    assert len(whole) == 4 * micro_batches
    assert len({batch.views.seed for batch in whole}) == len(whole)
    for one, other in zip(whole[3 * micro_batches :], rest, strict=True):
        assert one.views.seed == other.views.seed
        assert len(one.views.samples) == HOW.batch // micro_batches
        for mine, theirs in zip(one.views.samples, other.views.samples, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert schedule.epochs(schedule.total) == 4 * HOW.batch / 2


def test_a_state_of_another_detector_is_refused() -> None:
    state = train_state().state()
    del state["learner"]["trunk.conv1.weight"]
    with pytest.raises(UserError, match="does not fit"):
        train_state().restore(state)
