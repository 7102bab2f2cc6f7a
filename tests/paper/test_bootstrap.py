"""Intervals against plain restatements: every draw written out, scipy's bootstrap."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from phinets.paper.rules import Array, bootstrap, difference


def noisy(*shape: int) -> Array:
    return np.random.default_rng(7).normal(size=shape)


def every_draw(cells: Array) -> Array:
    """First name − second for every draw of seeds and settings there is, each as likely as any other."""
    _, settings, seeds = cells.shape
    return np.array(
        [
            np.mean([cells[0, s, k] - cells[1, s, k] for s in of_settings for k in of_seeds])
            for of_settings in product(range(settings), repeat=settings)
            for of_seeds in product(range(seeds), repeat=seeds)
        ]
    )


@pytest.mark.parametrize(("settings", "seeds"), [(1, 2), (1, 3), (2, 2)])
def test_where_few_draws_exist_the_interval_is_that_of_all_of_them(settings: int, seeds: int) -> None:
    cells = noisy(2, settings, seeds)
    found, all_of_them = bootstrap(cells, difference, "points", resample_settings=True), every_draw(cells)
    assert found.low == pytest.approx(all_of_them.min())
    assert found.high == pytest.approx(all_of_them.max())
    assert found.size == pytest.approx((cells[0] - cells[1]).mean())


@pytest.mark.parametrize(("settings", "seeds"), [(3, 3), (2, 4), (1, 5)])
def test_where_more_exist_a_fortieth_of_them_lies_beyond_each_end(settings: int, seeds: int) -> None:
    cells = noisy(2, settings, seeds)
    found, all_of_them = bootstrap(cells, difference, "points", resample_settings=True), every_draw(cells)
    below, above = (all_of_them < found.low).mean(), (all_of_them > found.high).mean()
    assert 0.015 < below < 0.035  # 2,000 draws: ± 3 standard errors of a share of 1/40
    assert 0.015 < above < 0.035


def test_with_one_setting_the_interval_is_scipy_s_percentile_bootstrap_of_the_differences() -> None:
    cells = noisy(2, 1, 12)
    found = bootstrap(cells, difference, "points", resample_settings=True)
    theirs = stats.bootstrap(
        ((cells[0] - cells[1])[0],), np.mean, method="percentile", n_resamples=50_000, rng=np.random.default_rng(1)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert abs(found.low - theirs.low) < 0.05 * width
    assert abs(found.high - theirs.high) < 0.05 * width


def test_what_seeds_have_in_common_cancels() -> None:
    common = 100 * noisy(1, 2, 6)
    found = bootstrap(np.concatenate([common + 1, common]), difference, "points", resample_settings=True)
    assert (found.size, found.low, found.high) == pytest.approx((1, 1, 1))


def test_settings_that_disagree_widen_the_interval_only_when_they_are_drawn() -> None:
    cells = np.zeros((2, 2, 3))
    cells[0, 1] = 10.0
    drawn, kept = (bootstrap(cells, difference, "points", resample_settings=too) for too in (True, False))
    assert (drawn.low, drawn.high) == (0, 10)
    assert (kept.low, kept.high) == (5, 5)
    assert drawn.size == kept.size == 5


def test_a_seed_without_a_number_is_left_out_and_the_fewest_seeds_are_told() -> None:
    cells = np.array([[[1.0, 3.0, np.nan]], [[0.0, 0.0, 0.0]]])
    found = bootstrap(cells, difference, "points", resample_settings=True)
    assert (found.size, found.low, found.high, found.seeds) == (2, 1, 3, 2)


def test_the_same_cells_give_the_same_interval() -> None:
    one, other = (bootstrap(noisy(2, 3, 4), difference, "points", resample_settings=True) for _ in range(2))
    assert one == other


def one_sided(seeds: int, times: int = 400) -> float:
    """How often the interval of a difference that is chance alone lies on one side of 0."""
    random = np.random.default_rng(0)
    found = [bootstrap(random.normal(size=(2, 1, seeds)), difference, "", resample_settings=True) for _ in range(times)]
    return float(np.mean([effect.low > 0 or effect.high < 0 for effect in found]))


def test_chance_alone_puts_the_interval_of_three_seeds_on_one_side_once_in_four_times() -> None:
    share = 2 / 2**3  # all three differences have one sign
    assert abs(one_sided(3) - share) < 3 * np.sqrt(share * (1 - share) / 400)


def test_of_ten_seeds_as_often_as_student_has_it_for_a_spread_that_is_taken_too_small() -> None:
    share = 2 * stats.t(9).sf(stats.norm.isf(0.025) * np.sqrt(9 / 10))  # the bootstrap divides by n, not by n − 1
    assert abs(one_sided(10) - share) < 3 * np.sqrt(share * (1 - share) / 400)
