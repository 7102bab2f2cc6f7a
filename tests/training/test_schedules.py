"""The learning rate as a function of the step."""

import math
from itertools import pairwise

import pytest

from phinets.training.schedule import LearningRateSchedule, half_cosine

TABLE = LearningRateSchedule(steps_per_epoch=10, epochs=20, warmup_epochs=2, peak_lr=0.8)


def test_the_warm_up_rises_in_equal_steps_to_the_peak() -> None:
    rates = [TABLE.rate(step) for step in range(20)]
    assert rates == pytest.approx([0.8 * (i + 1) / 20 for i in range(20)])


def test_the_cosine_starts_at_the_peak_is_half_at_half_and_ends_at_zero() -> None:
    assert TABLE.rate(20) == pytest.approx(0.8)
    assert TABLE.rate(110) == pytest.approx(0.4)
    assert TABLE.rate(TABLE.total) == pytest.approx(0, abs=1e-12)


def test_the_rate_falls_at_every_step_after_the_warm_up() -> None:
    rates = [TABLE.rate(step) for step in range(20, 200)]
    assert all(a > b > 0 for a, b in pairwise(rates))


def test_it_agrees_with_the_formula_in_the_middle() -> None:
    assert TABLE.rate(57) == pytest.approx(0.8 * (1 + math.cos(math.pi * 37 / 180)) / 2)


def test_a_constant_schedule_only_warms_up() -> None:
    table = LearningRateSchedule(steps_per_epoch=10, epochs=20, warmup_epochs=1, peak_lr=0.8, shape="constant")
    assert {table.rate(step) for step in range(10, 200)} == {0.8}


def test_without_warm_up_it_starts_at_the_peak() -> None:
    assert LearningRateSchedule(steps_per_epoch=5, epochs=1, warmup_epochs=0, peak_lr=0.3).rate(0) == pytest.approx(0.3)


def test_half_cosine_is_symmetric() -> None:
    assert all(half_cosine(s) + half_cosine(1 - s) == pytest.approx(1) for s in (0.0, 0.1, 0.37, 0.5))
