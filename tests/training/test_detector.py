"""The step that changes a detector's weights, and its schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from phinets.config.detection import DetectorOptimization
from phinets.config.errors import UserError
from phinets.config.run import SaveOptions
from phinets.detection.loader import Sample
from phinets.training.checkpoint import Keeper
from phinets.training.detector import DetectorLoop, DetectorTrainState, detector_step, detector_train_state
from phinets.training.journal import Journal, read_journal
from phinets.training.loop import DivergedError
from tests.detection.test_c4 import pictures, tiny

HOW = DetectorOptimization(iterations=4, batch=2, lr=0.08, milestones=(3,), warmup_steps=2)
CPU = torch.device("cpu")


def train_state() -> DetectorTrainState:
    return detector_train_state(tiny(), HOW, CPU)


def weights(of: DetectorTrainState) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in of.detector.state_dict().items()}


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
    losses = detector_step(one, [pictures()], lr=0.01, seed=7)
    torch.manual_seed(7)
    terms = other.detector.train()(pictures())
    total = torch.stack(list(terms.values())).sum()
    total.backward()
    assert losses["loss"] == pytest.approx(float(total.detach()), rel=1e-6)
    assert {*losses} == {"loss", "objectness", "anchors", "classes", "boxes"}
    for mine, theirs in zip(one.detector.parameters(), other.detector.parameters(), strict=True):
        assert theirs.grad is not None
        wanted = theirs.detach() - 0.01 * (theirs.grad + HOW.weight_decay * theirs.detach())
        assert torch.allclose(mine, wanted, rtol=1e-5, atol=1e-7)


def test_a_step_repeats_by_its_draws_and_leaves_torch_s_generator_alone() -> None:
    one, two, other = train_state(), train_state(), train_state()
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = detector_step(one, [pictures()], lr=0.01, seed=3)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    assert detector_step(two, [pictures()], lr=0.01, seed=3) == first
    assert same(weights(one), weights(two))
    assert detector_step(other, [pictures()], lr=0.01, seed=4) != first


def test_a_batch_in_parts_has_the_mean_of_their_gradients() -> None:
    halves = [[shown] for shown in pictures()]
    one, two = train_state(), train_state()
    losses = detector_step(one, halves, lr=0.0, seed=3)
    torch.manual_seed(3)
    seen = []
    for half in halves:
        terms = two.detector.train()(half)
        total = torch.stack(list(terms.values())).sum()
        (total / 2).backward()
        seen.append(float(total.detach()))
    assert losses["loss"] == pytest.approx(sum(seen) / 2, rel=1e-6)
    for mine, theirs in zip(one.detector.parameters(), two.detector.parameters(), strict=True):
        assert mine.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(mine.grad, theirs.grad, rtol=1e-5, atol=1e-7)


class Watch:
    """Counts steps, and asks to stop after some of them."""

    def __init__(self, stop_after: int) -> None:
        self.steps, self.saved, self.stop_after = 0, list[int](), stop_after

    def on_step(self, row: Mapping[str, Any]) -> None:
        self.steps += 1

    def stop(self) -> bool:
        return self.steps >= self.stop_after


def loop(folder: Path, of: DetectorTrainState, watch: Watch, lesson: Sequence[Sample]) -> DetectorLoop:
    return DetectorLoop(
        train_state=of,
        batch_of=lambda step: lesson,
        training=HOW,
        accumulate=1,
        seed=0,
        journal=Journal(folder / "metrics.jsonl"),
        keeper=Keeper(folder, SaveOptions(checkpoint_every="2steps"), 1),
        save=watch.saved.append,
        stop_requested=watch.stop,
        on_step=watch.on_step,
    )


def test_the_loop_writes_every_step_and_saves_when_due_and_at_the_end(tmp_path: Path) -> None:
    watch = Watch(stop_after=99)
    made = loop(tmp_path, train_state(), watch, pictures())
    assert made.run(1) == 4
    rows = read_journal(tmp_path / "metrics.jsonl")
    assert [row["step"] for row in rows] == [2, 3, 4]
    assert [row["lr"] for row in rows] == [HOW.rate(step) for step in (1, 2, 3)]
    assert watch.saved == [2, 4]
    assert not made.stopped


def test_a_loop_that_is_asked_to_stop_saves_first(tmp_path: Path) -> None:
    watch = Watch(stop_after=1)
    made = loop(tmp_path, train_state(), watch, pictures())
    assert made.run() == 1
    assert made.stopped
    assert watch.saved == [1]


def test_a_loss_that_is_no_number_ends_the_training_with_a_word(tmp_path: Path) -> None:
    broken = [shown._replace(pixels=shown.pixels * float("inf")) for shown in pictures()]
    with pytest.raises(DivergedError, match="not finite after step 1"):
        loop(tmp_path, train_state(), Watch(99), broken).run()
    assert not (tmp_path / "metrics.jsonl").read_text()


def test_a_state_of_another_detector_is_refused() -> None:
    state = train_state().state()
    del state["detector"]["trunk.conv1.weight"]
    with pytest.raises(UserError, match="does not fit this detector"):
        train_state().restore(state)
