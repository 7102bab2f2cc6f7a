"""Every rule on simulated seeds: rarely a verdict from noise, mostly the right one from an effect of two deviations."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from phinets.paper.rules import (
    Agree,
    AnyOf,
    Collapse,
    Comparable,
    Evidence,
    Higher,
    HigherAt,
    Peaks,
    Rule,
    Steadier,
    Trend,
    Unsteady,
)
from phinets.paper.statistics import LEVEL

pytestmark = pytest.mark.slow

N, TRIALS = 5, 1_500
SLACK = 3 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)
"""Three standard errors of a share of 5 % over the trials."""
NAMES, SETTINGS = ("a", "b", "c", "d"), ("0", "1", "2", "3", "4")
Cells = NDArray[np.float64]
"""(names, settings, seeds): noise of standard deviation 1, the same seeds in every cell."""


def evidence(cells: Cells) -> Evidence:
    """Two tables, t and u: the second is the first with other noise of a tenth."""
    values = {
        ("t", name, setting): tuple(cells[i, j]) for i, name in enumerate(NAMES) for j, setting in enumerate(SETTINGS)
    }
    twin = {("u", *place[1:]): tuple(np.asarray(seeds)[::-1]) for place, seeds in values.items()}
    lost = {place: tuple(value > 0 for value in seeds) for place, seeds in values.items()}
    return Evidence(values={**values, **twin}, lost=lost)


def verdict(rule: Rule, cells: Cells) -> str:
    effect = rule.effect(evidence(cells))
    assert effect is not None
    if effect.p > LEVEL:
        return "can't tell"
    return "holds" if effect.p_holds < effect.p_fails else "does not hold"


def shares(rule: Rule, plant: Callable[[Cells], Cells]) -> Mapping[str, float]:
    """How often each verdict comes, over noise with something planted in it."""
    random = np.random.default_rng(7)
    words = [verdict(rule, plant(random.normal(size=(len(NAMES), len(SETTINGS), N)))) for _ in range(TRIALS)]
    return {word: words.count(word) / TRIALS for word in set(words)}


def shifted(size: float, names: slice = slice(0, 1), settings: slice = slice(None)) -> Callable[[Cells], Cells]:
    """Something added to some cells, in deviations of a difference of two cells."""

    def plant(cells: Cells) -> Cells:
        cells[names, settings] += size * np.sqrt(2)
        return cells

    return plant


def spread_out(size: float, *names: int) -> Callable[[Cells], Cells]:
    """Names that change by so many deviations over the settings, up and down."""

    def plant(cells: Cells) -> Cells:
        wave = size * np.array([0.0, 1.0, 0.0, 1.0, 0.0])[:, None]
        for name in names:
            cells[name] += wave
        return cells

    return plant


class Case(NamedTuple):
    rule: Rule
    null: Callable[[Cells], Cells]
    """At the border between true and false."""
    true: Callable[[Cells], Cells]
    """The claim is true by two deviations."""
    false: Callable[[Cells], Cells] | None
    """It is false by two deviations; None where the rule has no such case."""


ONE = Higher(table="t", over=("a",), under=("b",), at=("0",))
CASES = {
    "one against one in one setting": Case(ONE, shifted(0), shifted(2), shifted(-2)),
    "one against one over settings": Case(
        Higher(table="t", over=("a",), under=("b",)), shifted(0), shifted(2), shifted(-2)
    ),
    "one against three": Case(
        Higher(table="t", over=("a",), under=("b", "c", "d"), at=("0",)), shifted(0), shifted(2), shifted(-2)
    ),
    "one against three over settings": Case(
        Higher(table="t", over=("a",), under=("b", "c", "d")), shifted(0), shifted(2), shifted(-2)
    ),
    "every setting": Case(
        Higher(table="t", over=("a",), under=("b",), by="every"), shifted(0), shifted(2.5), shifted(-2)
    ),
    "beyond a margin": Case(
        Higher(table="t", over=("a",), under=("b",), at=("0",), margin=1.0),
        shifted(1 / np.sqrt(2)),
        shifted(2 + 1 / np.sqrt(2)),
        shifted(-2 + 1 / np.sqrt(2)),
    ),
    "comparable": Case(
        Comparable(table="t", one="a", other="b", at=("0",), within=2 * np.sqrt(2)), shifted(2), shifted(0), shifted(4)
    ),
    "steadier than one": Case(
        Steadier(table="t", one="a", other=("b",)), spread_out(0), spread_out(4, 1), spread_out(4, 0)
    ),
    "steadier than three": Case(
        Steadier(table="t", one="a", other=("b", "c", "d")), spread_out(0), spread_out(4, 1, 2, 3), spread_out(4, 0)
    ),
    "unsteady": Case(
        Unsteady(table="t", name="a", at=("0", "1", "2"), than=("3", "4")),
        shifted(0),
        lambda cells: cells + np.array([0.0, 4.0, 0.0, 0.0, 0.0])[:, None],
        lambda cells: cells + np.array([0.0, 0.0, 0.0, 0.0, 4.0])[:, None],
    ),
    "trend": Case(
        Trend(table="t", name="a"),
        shifted(0),
        lambda cells: cells + np.linspace(0, 4, 5)[:, None],
        lambda cells: cells - np.linspace(0, 4, 5)[:, None],
    ),
    "peak": Case(
        Peaks(table="t", name="a"),
        shifted(0),
        lambda cells: cells + np.array([0.0, 0.0, 3 * np.sqrt(2), 0.0, 0.0])[:, None],
        lambda cells: cells + np.array([2.5 * np.sqrt(2), 0.0, 0.0, 0.0, 0.0])[:, None],
    ),
    "most collapse": Case(
        Collapse(table="t", names=("a",), at=("0", "1", "2")), shifted(0), shifted(2), shifted(-2)
    ),
    "other tables": Case(
        HigherAt(pairs=((("t", "a", "0"), ("t", "b", "1")),)), shifted(0), shifted(2), shifted(-2)
    ),
    "sometimes": Case(
        AnyOf(rules=(ONE, Higher(table="t", over=("c",), under=("d",), at=("0",)))),
        shifted(0),
        shifted(2.2),
        shifted(-2, names=slice(0, 3, 2)),
    ),
    "readouts agree": Case(
        Agree(one=("t",), other=("u",), margin=0.0),
        shifted(0),
        lambda cells: cells + np.linspace(0, 6, 5)[:, None],
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_noise_gives_a_verdict_once_in_twenty_times_at_most(name: str) -> None:
    case = CASES[name]
    assert 1 - shares(case.rule, case.null).get("can't tell", 0.0) <= LEVEL + SLACK


@pytest.mark.parametrize("name", CASES)
def test_an_effect_of_some_deviations_is_found_four_times_in_five(name: str) -> None:
    case = CASES[name]
    assert shares(case.rule, case.true).get("holds", 0.0) >= 0.8
    if case.false is not None:
        assert shares(case.rule, case.false).get("does not hold", 0.0) >= 0.8
