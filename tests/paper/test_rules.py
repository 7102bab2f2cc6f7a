"""Rules on tables made by hand: their limits, what they do not depend on, plain restatements."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phinets.paper.rules import (
    AllHold,
    Collapse,
    Comparable,
    Drop,
    Effect,
    Evidence,
    Higher,
    Peaks,
    Steadier,
    TableRule,
    Trend,
)
from tests.paper.evidence import Cells, evidence, turned

WAVE = (0.0, 0.1, -0.1)
"""Three seeds' noise."""


def noisy(mean: float) -> tuple[float, ...]:
    return tuple(mean + noise for noise in WAVE)


TABLE = {
    "a": {"0": noisy(70), "1": noisy(72), "2": noisy(71)},
    "b": {"0": noisy(50), "1": noisy(60), "2": noisy(66)},
    "c": {"0": noisy(55), "1": noisy(58), "2": noisy(50)},
}
HIGHER = Higher(table="t", over=("a",), under=("b", "c"))
RULES: list[TableRule] = [
    HIGHER,
    replace(HIGHER, by="worst"),
    Comparable(table="t", one="b", other="c", within=20),
    Drop(table="t", name="b", other="a", by=4),
    Steadier(table="t", one="a", other=("b", "c")),
    Trend(table="t", name="b"),
    Peaks(table="t", name="a"),
]


def effect(rule: Any, cells: Cells) -> Effect:
    found: Effect | None = rule.effect(evidence(cells))
    assert found is not None
    return found


def verdict(rule: Any, cells: Cells) -> str:
    word: str = rule.verdict(effect(rule, cells))
    return word


def changed(cells: Cells, change: Any) -> Cells:
    return {
        row: {
            column: tuple(None if value is None else change(value) for value in seeds) for column, seeds in of.items()
        }
        for row, of in cells.items()
    }


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_far_above_the_noise_every_claim_holds(rule: TableRule) -> None:
    assert verdict(rule, TABLE) == "holds"


@pytest.mark.parametrize("rule", [r for r in RULES if not isinstance(r, Comparable | Steadier)], ids=repr)
def test_turned_around_it_does_not(rule: TableRule) -> None:
    assert verdict(rule, changed(TABLE, lambda value: -value)) == "does not hold"


def test_the_unsteadier_of_two_is_not_the_steadier() -> None:
    assert verdict(Steadier(table="t", one="b", other=("a", "c")), TABLE) == "does not hold"


@pytest.mark.parametrize("rule", [r for r in RULES if not isinstance(r, Comparable | Drop)], ids=repr)
def test_where_all_are_equal_nothing_can_be_told(rule: TableRule) -> None:
    flat = {row: {column: noisy(50) for column in of} for row, of in TABLE.items()}
    assert effect(rule, flat).size == pytest.approx(0, abs=1e-12)
    assert verdict(rule, changed(flat, round)) == "can't tell"


def test_equals_are_comparable_and_neither_drops() -> None:
    flat = {row: {"0": noisy(50)} for row in "ab"}
    assert verdict(Comparable(table="t", one="a", other="b", within=0.1), flat) == "holds"
    assert verdict(Drop(table="t", name="b", other="a", by=0.1), flat) == "does not hold"


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_one_seed_says_nothing_of_chance(rule: TableRule) -> None:
    single = {row: {column: seeds[:1] for column, seeds in of.items()} for row, of in TABLE.items()}
    assert effect(rule, single).size == pytest.approx(effect(rule, TABLE).size)
    assert verdict(rule, single) == "can't tell"


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_cell_with_one_seed_is_enough_for_that(rule: TableRule) -> None:
    name = rule.compared[-1]
    cells: Cells = {**TABLE, name: {**TABLE[name], "1": (TABLE[name]["1"][0], None, None)}}
    assert effect(rule, cells).seeds == 1
    assert verdict(rule, cells) == "can't tell"


@pytest.mark.parametrize("empty", [(), (None, None, None)])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_without_a_cell_s_numbers_there_is_no_effect(rule: TableRule, empty: tuple[None, ...]) -> None:
    name = rule.compared[-1]
    assert rule.effect(evidence({**TABLE, name: {**TABLE[name], "1": empty}})) is None


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_setting_or_a_name_that_the_table_lacks_leaves_no_effect(rule: TableRule) -> None:
    assert replace(rule, at=("0", "1", "2", "7")).effect(evidence(TABLE)) is None
    assert replace(rule, table="another").effect(evidence(TABLE)) is None


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_constant_on_all_numbers_changes_nothing(rule: TableRule) -> None:
    shifted = effect(rule, changed(TABLE, lambda value: value + 1000))
    plain = effect(rule, TABLE)
    assert (shifted.size, shifted.low, shifted.high) == pytest.approx((plain.size, plain.low, plain.high), abs=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_in_another_unit_the_effect_is_the_same_in_it(rule: TableRule) -> None:
    if isinstance(rule, Drop):
        rule = replace(rule, by=0.0)
    tenfold, plain = effect(rule, changed(TABLE, lambda value: 10 * value)), effect(rule, TABLE)
    assert (tenfold.size, tenfold.low, tenfold.high) == pytest.approx(
        (10 * plain.size, 10 * plain.low, 10 * plain.high)
    )


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_order_of_the_seeds_does_not_change_the_effect(rule: TableRule) -> None:
    mixed = {row: {column: tuple(reversed(seeds)) for column, seeds in of.items()} for row, of in TABLE.items()}
    assert effect(rule, mixed).size == pytest.approx(effect(rule, TABLE).size)
    assert verdict(rule, mixed) == verdict(rule, TABLE)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_names_on_columns_are_judged_as_those_on_rows(rule: TableRule) -> None:
    assert effect(replace(rule, along="columns"), turned(TABLE)) == effect(rule, TABLE)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_all_settings_are_meant_where_none_is_named(rule: TableRule) -> None:
    assert effect(replace(rule, at=("0", "1", "2")), TABLE) == effect(rule, TABLE)


@pytest.mark.parametrize("rule", [*RULES, Collapse(table="t", names=("a", "c"))], ids=repr)
def test_it_rests_on_every_name_in_every_setting(rule: TableRule) -> None:
    expected = {("t", name, setting) for name in rule.compared for setting in "02"}
    places = replace(rule, at=("0", "2")).places(evidence(TABLE))
    assert set(places) == expected
    assert len(places) == len(expected)


def test_settings_in_which_a_name_has_no_cell_are_not_compared() -> None:
    lacking = {**TABLE, "b": {"0": TABLE["b"]["0"]}}
    assert effect(Higher(table="t", over=("a",), under=("b",)), lacking).size == pytest.approx(20)


def test_the_effect_is_the_mean_of_the_one_side_less_the_best_of_the_other_in_each_setting() -> None:
    assert effect(HIGHER, TABLE).size == pytest.approx(((70 - 55) + (72 - 60) + (71 - 66)) / 3)
    assert effect(replace(HIGHER, by="worst"), TABLE).size == pytest.approx(71 - 66)
    two = Higher(table="t", over=("a", "b"), under=("c",), at=("1",))
    assert effect(two, TABLE).size == pytest.approx((72 + 60) / 2 - 58)


def test_where_lower_is_better_all_signs_turn() -> None:
    low = Higher(table="t", over=("b",), under=("a", "c"), better="lower")
    negative = changed(TABLE, lambda value: -value)
    assert effect(low, TABLE) == effect(replace(low, better="higher"), negative)


def test_the_two_sides_changed_over_mirror_the_interval() -> None:
    one, other = (effect(Higher(table="t", over=(x,), under=(y,)), TABLE) for x, y in ("bc", "cb"))
    assert (other.size, other.low, other.high) == pytest.approx((-one.size, -one.high, -one.low))


@pytest.mark.parametrize(("margin", "word"), [(4.9, "holds"), (5.0, "can't tell"), (5.2, "does not hold")])
def test_a_margin_moves_the_border(margin: float, word: str) -> None:
    cells = {"a": {"0": (65.0, 65.1, 64.95)}, "b": {"0": (60.0, 60.0, 60.0)}}
    assert verdict(Higher(table="t", over=("a",), under=("b",), margin=margin), cells) == word


def test_a_drop_by_so_many_is_a_lead_beyond_a_margin() -> None:
    lead = Higher(table="t", over=("a",), under=("b",), margin=12.0)
    fall = Drop(table="t", name="b", other="a", by=12.0)
    assert effect(fall, TABLE).size == pytest.approx(effect(lead, TABLE).size - 12)
    assert verdict(fall, TABLE) == verdict(lead, TABLE)


@pytest.mark.parametrize(
    ("gap", "word"), [(0, "holds"), (0.5, "holds"), (-0.5, "holds"), (1, "can't tell"), (2, "does not hold")]
)
def test_two_are_comparable_where_the_interval_is_inside(gap: float, word: str) -> None:
    cells: Cells = {"a": {"0": noisy(50 + gap)}, "b": {"0": (50.0, 50.0, 50.0)}}
    assert verdict(Comparable(table="t", one="a", other="b", within=1.0), cells) == word
    assert verdict(Comparable(table="t", one="b", other="a", within=1.0), cells) == word


def test_the_steadier_has_the_smaller_range() -> None:
    rule = Steadier(table="t", one="a", other=("b", "c"))
    assert effect(rule, TABLE).size == pytest.approx((58 - 50) - (72 - 70))
    assert verdict(replace(rule, margin=7.0), TABLE) == "does not hold"


def test_a_trend_is_the_slope_of_the_straight_line_through_the_means() -> None:
    found = effect(Trend(table="t", name="c"), TABLE)
    assert found.size == pytest.approx(np.polyfit([0, 1, 2], [55, 58, 50], 1)[0])
    assert found.unit == "points a setting"
    falling = effect(Trend(table="t", name="c", rises=False), TABLE)
    assert falling.size == pytest.approx(-found.size)
    backwards = effect(Trend(table="t", name="c", at=("2", "1", "0")), TABLE)
    assert backwards.size == pytest.approx(-found.size)


def test_a_rise_at_every_step_is_a_rise_in_every_draw() -> None:
    found = effect(Trend(table="t", name="b"), TABLE)
    assert 5.5 < found.low < found.size < found.high < 10.5  # between the smallest and the largest step


def test_a_peak_is_inside() -> None:
    assert effect(Peaks(table="t", name="a"), TABLE).size == pytest.approx(72 - 71)
    assert verdict(Peaks(table="t", name="b"), TABLE) == "does not hold"
    four = {"a": {"0": noisy(1), "1": noisy(5), "2": noisy(9), "3": noisy(3)}}
    assert effect(Peaks(table="t", name="a"), four).size == pytest.approx(9 - 3)


def test_trends_need_two_settings_and_peaks_three() -> None:
    made = evidence(TABLE)
    assert Trend(table="t", name="a", at=("0",)).effect(made) is None
    assert Trend(table="t", name="a", at=("0", "1")).effect(made) is not None
    assert Peaks(table="t", name="a", at=("0", "1")).effect(made) is None


def lost(seeds: tuple[bool | None, ...], *, claimed: bool = True) -> tuple[float, str]:
    made = evidence({"a": {"0": WAVE, "1": WAVE}}, {"a": {"0": seeds, "1": seeds}})
    rule = Collapse(table="t", names=("a",), lost=claimed)
    found = rule.effect(made)
    assert found is not None
    return found.size, rule.verdict(found)


def test_lost_seeds_are_counted() -> None:
    assert lost((True, True, True)) == (0.5, "holds")
    assert lost((False, False, False)) == (-0.5, "does not hold")
    share, word = lost((True, False, True))
    assert share == pytest.approx(2 / 3 - 1 / 2)
    assert word == "can't tell"
    assert lost((False, False, False), claimed=False) == (0.5, "holds")
    assert lost((True, True, True), claimed=False) == (-0.5, "does not hold")


def test_a_seed_of_which_it_is_not_known_whether_it_is_lost_is_not_counted() -> None:
    assert lost((True, True, None)) == (0.5, "holds")
    assert lost((True, None, None)) == (0.5, "can't tell")
    unknown = evidence({"a": {"0": WAVE}}, {"a": {"0": (None, None)}})
    assert Collapse(table="t", names=("a",)).effect(unknown) is None


def test_a_diverged_seed_counts_as_lost_though_it_has_no_number() -> None:
    made = evidence({"a": {"0": (None, None, None)}}, {"a": {"0": (True, True, True)}})
    found = Collapse(table="t", names=("a",)).effect(made)
    assert found is not None
    assert (found.size, found.seeds) == (0.5, 3)


def stated(*held: float | None) -> tuple[AllHold, Evidence]:
    made = evidence({f"s{n}": {"as printed": (value,)} for n, value in enumerate(held)})
    return AllHold(table="t", rows=tuple(f"s{n}" for n in range(len(held))), column="as printed"), made


def test_statements_must_all_hold_and_need_no_seeds() -> None:
    for held, word in (((1.0, 1.0), "holds"), ((1.0, 0.0), "does not hold"), ((0.0, 0.0), "does not hold")):
        rule, made = stated(*held)
        found = rule.effect(made)
        assert found is not None
        assert found.size == np.mean(held)
        assert rule.verdict(found) == word


def test_a_statement_that_nobody_checked_leaves_no_effect() -> None:
    rule, made = stated(1.0, None)
    assert rule.effect(made) is None


@pytest.mark.parametrize("rule", [*RULES, Collapse(table="t", names=("a", "c"))], ids=repr)
def test_a_rule_names_what_it_compares(rule: TableRule) -> None:
    assert all(name in rule.describe().replace(",", " ").split() for name in rule.compared)


def test_a_rule_tells_its_margin() -> None:
    assert "by more than 1.5" in replace(HIGHER, margin=1.5).describe()
    assert "by more than 2" in Steadier(table="t", one="a", other=("b",), margin=2).describe()
    assert "less than 0.5" in Comparable(table="t", one="a", other="b", within=0.5).describe()
    assert "at least 3" in Drop(table="t", name="b", other="a", by=3).describe()
