"""Rules on tables made by hand: their limits, what they do not depend on, plain restatements."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from phinets.paper.rules import (
    Agree,
    AllHold,
    AnyOf,
    Collapse,
    Comparable,
    Evidence,
    Higher,
    HigherAt,
    Peaks,
    Rule,
    Steadier,
    TableRule,
    Trend,
    Unsteady,
)
from phinets.paper.statistics import LEVEL, Effect, holm, t_effect
from tests.paper.evidence import Cells, evidence, turned

WAVE = (0.0, 0.1, -0.1, 0.05, -0.05)
"""Five seeds' noise."""


def noisy(mean: float) -> tuple[float, ...]:
    return tuple(mean + noise for noise in WAVE)


TABLE = {
    "a": {"0": noisy(70), "1": noisy(72)[::-1], "2": noisy(71)},
    "b": {"0": noisy(50)[::-1], "1": noisy(60), "2": noisy(66)[::-1]},
    "c": {"0": noisy(55), "1": noisy(58), "2": noisy(50)[::-1]},
}
HIGHER = Higher(table="t", over=("a",), under=("b", "c"))
RULES: list[TableRule] = [
    HIGHER,
    replace(HIGHER, by="every"),
    Comparable(table="t", one="b", other="c", within=20),
    Steadier(table="t", one="a", other=("b", "c")),
    Trend(table="t", name="b"),
    Peaks(table="t", name="a"),
]


def effect(rule: Rule, cells: Cells) -> Effect:
    measured = rule.effect(evidence(cells))
    assert measured is not None
    return measured


def verdict(rule: Rule, cells: Cells) -> str:
    measured = effect(rule, cells)
    if measured.p > LEVEL:
        return "can't tell"
    return "holds" if measured.p_holds < measured.p_fails else "does not hold"


def changed(cells: Cells, change: Any) -> Cells:
    return {
        row: {column: tuple(change(value) for value in seeds) for column, seeds in of.items()}
        for row, of in cells.items()
    }


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_far_above_the_noise_every_claim_holds(rule: TableRule) -> None:
    assert verdict(rule, TABLE) == "holds"
    assert effect(rule, TABLE).supports


@pytest.mark.parametrize("rule", [r for r in RULES if not isinstance(r, Comparable | Steadier)], ids=repr)
def test_turned_around_it_does_not(rule: TableRule) -> None:
    negative = changed(TABLE, lambda value: -value)
    assert verdict(rule, negative) == "does not hold"
    assert not effect(rule, negative).supports


def test_the_unsteadier_of_two_is_not_the_steadier() -> None:
    assert verdict(Steadier(table="t", one="b", other=("a", "c")), TABLE) == "does not hold"


@pytest.mark.parametrize("rule", [r for r in RULES if not isinstance(r, Comparable)], ids=repr)
def test_where_all_are_equal_nothing_can_be_told(rule: TableRule) -> None:
    flat = {row: {column: noisy(50) for column in of} for row, of in TABLE.items()}
    assert effect(rule, flat).size == pytest.approx(0, abs=1e-12)
    assert verdict(rule, changed(flat, round)) == "can't tell"


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_one_seed_has_an_effect_and_no_p_value(rule: TableRule) -> None:
    single = {row: {column: seeds[:1] for column, seeds in of.items()} for row, of in TABLE.items()}
    measured = effect(rule, single)
    assert measured.supports
    assert (measured.p, measured.low, measured.high) == (1.0, measured.size, measured.size)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_only_seeds_that_every_cell_has_count(rule: TableRule) -> None:
    name = rule.compared[-1]
    cells: Cells = {**TABLE, name: {**TABLE[name], "1": (*TABLE[name]["1"][:3], None, TABLE[name]["1"][4])}}
    fewer = {row: {column: (*seeds[:3], seeds[4]) for column, seeds in of.items()} for row, of in TABLE.items()}
    assert effect(rule, cells) == effect(rule, fewer)
    assert effect(rule, cells).seeds == 4


@pytest.mark.parametrize("empty", [(), (None, None, None)])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_without_a_cell_s_numbers_there_is_no_effect(rule: TableRule, empty: tuple[None, ...]) -> None:
    name = rule.compared[-1]
    assert rule.effect(evidence({**TABLE, name: {**TABLE[name], "1": empty}})) is None


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_settings_that_the_table_lacks_are_left_out(rule: TableRule) -> None:
    assert effect(replace(rule, at=("0", "1", "2", "7")), TABLE) == effect(rule, TABLE)
    assert replace(rule, table="another").effect(evidence(TABLE)) is None


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_constant_on_all_numbers_changes_nothing(rule: TableRule) -> None:
    shifted, plain = effect(rule, changed(TABLE, lambda value: value + 1000)), effect(rule, TABLE)
    assert (shifted.size, shifted.low, shifted.high) == pytest.approx((plain.size, plain.low, plain.high), abs=1e-9)
    assert shifted.p == pytest.approx(plain.p, rel=1e-6)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not isinstance(rule, Comparable)], ids=repr)
def test_in_another_unit_the_effect_is_the_same_in_it(rule: TableRule) -> None:
    tenfold, plain = effect(rule, changed(TABLE, lambda value: 10 * value)), effect(rule, TABLE)
    assert (tenfold.size, tenfold.low, tenfold.high) == pytest.approx(
        (10 * plain.size, 10 * plain.low, 10 * plain.high)
    )
    assert tenfold.p == pytest.approx(plain.p, rel=1e-6)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_order_of_the_seeds_does_not_matter_as_long_as_they_stay_paired(rule: TableRule) -> None:
    mixed = {row: {column: tuple(reversed(seeds)) for column, seeds in of.items()} for row, of in TABLE.items()}
    one, other = effect(rule, mixed), effect(rule, TABLE)
    assert (one.size, one.low, one.p) == pytest.approx((other.size, other.low, other.p))


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_names_on_columns_are_tested_as_those_on_rows(rule: TableRule) -> None:
    assert effect(replace(rule, along="columns"), turned(TABLE)) == effect(rule, TABLE)


@pytest.mark.parametrize("rule", [*RULES, Collapse(table="t", names=("a", "c"))], ids=repr)
def test_it_depends_on_every_name_in_every_setting(rule: TableRule) -> None:
    expected = {("t", name, setting) for name in rule.compared for setting in "02"}
    places = replace(rule, at=("0", "2")).places(evidence(TABLE))
    assert set(places) == expected
    assert len(places) == len(expected)


def test_pairing_removes_what_a_seed_has_in_common() -> None:
    seeds = np.array([0.0, 10.0, -20.0, 5.0, 30.0])
    cells: Cells = {"a": {"0": tuple(seeds + np.array(WAVE) + 1)}, "b": {"0": tuple(seeds)}}
    assert verdict(Higher(table="t", over=("a",), under=("b",)), cells) == "holds"
    unpaired: Cells = {**cells, "b": {"0": tuple(np.roll(seeds, 1))}}
    assert verdict(Higher(table="t", over=("a",), under=("b",)), unpaired) == "can't tell"


def test_two_against_each_other_are_scipy_s_paired_t_test() -> None:
    random = np.random.default_rng(0)
    one, other = random.normal(1, 1, 6), random.normal(0, 1, 6)
    cells = {"a": {"0": tuple(one)}, "b": {"0": tuple(other)}}
    measured, test = effect(Higher(table="t", over=("a",), under=("b",)), cells), stats.ttest_rel(one, other)
    interval = test.confidence_interval(0.95)
    assert (measured.low, measured.high, measured.p) == pytest.approx((interval.low, interval.high, test.pvalue))


def test_the_least_favorable_pair_decides() -> None:
    assert effect(HIGHER, TABLE).size == pytest.approx(((70 - 50) + (72 - 60) + (71 - 66)) / 3)
    assert effect(replace(HIGHER, by="every"), TABLE).size == pytest.approx(71 - 66)


def test_one_pair_below_refutes_best_of_several_after_holm_s_correction() -> None:
    pairs = np.array([[[9.0, 9.1, 8.9, 9.0, 9.1], [-1.0, -1.1, -0.9, -1.0, -0.95]]])
    alone = t_effect(pairs[:, 1:])
    both = t_effect(pairs)
    assert both.p_fails == pytest.approx(2 * alone.p_fails)
    assert both.p_holds > 0.99


def test_a_claim_of_alternatives_fails_only_where_all_fail() -> None:
    high, low = np.full((1, 5), 2.0) + WAVE, np.full((1, 5), -2.0) + WAVE
    mixed = t_effect(np.stack((high, low)))
    assert mixed.p_holds == pytest.approx(2 * t_effect(high[None]).p_holds)
    assert mixed.p_fails > 0.99
    assert t_effect(np.stack((low, low))).p_fails == pytest.approx(t_effect(low[None]).p_fails)


def test_where_lower_is_better_all_signs_turn() -> None:
    low = Higher(table="t", over=("b",), under=("a", "c"), better="lower")
    negative = changed(TABLE, lambda value: -value)
    assert effect(low, TABLE) == effect(replace(low, better="higher"), negative)


def test_a_factor_multiplies_what_is_under() -> None:
    cells = {"a": {"0": noisy(50)}, "b": {"0": noisy(10)}}
    rule = Higher(table="t", over=("a",), under=("b",), factor=4.0)
    assert effect(rule, cells).size == pytest.approx(50 - 40)
    assert verdict(replace(rule, factor=6.0), cells) == "does not hold"


@pytest.mark.parametrize(("margin", "word"), [(4.0, "holds"), (5.0, "can't tell"), (6.0, "does not hold")])
def test_a_margin_moves_the_border(margin: float, word: str) -> None:
    cells: Cells = {"a": {"0": noisy(65)}, "b": {"0": (60.0,) * 5}}
    assert verdict(Higher(table="t", over=("a",), under=("b",), margin=margin), cells) == word


@pytest.mark.parametrize(
    ("gap", "word"), [(0, "holds"), (0.5, "holds"), (-0.5, "holds"), (1, "can't tell"), (2, "does not hold")]
)
def test_two_are_comparable_where_both_borders_are_out_of_reach(gap: float, word: str) -> None:
    cells: Cells = {"a": {"0": noisy(50 + gap)}, "b": {"0": (50.0,) * 5}}
    for one, other, sign in (("a", "b", 1), ("b", "a", -1)):
        rule = Comparable(table="t", one=one, other=other, within=1.0)
        assert verdict(rule, cells) == word
        assert effect(rule, cells).size == pytest.approx(sign * gap, abs=1e-9)


def test_the_steadier_has_the_smaller_range_in_every_seed() -> None:
    measured = effect(Steadier(table="t", one="a", other=("c",)), TABLE)
    cells = {name: np.array([TABLE[name][column] for column in "012"]) for name in "ac"}
    assert measured.size == pytest.approx((np.ptp(cells["c"], axis=0) - np.ptp(cells["a"], axis=0)).mean())


def test_unsteady_compares_the_mean_steps_between_neighbors() -> None:
    cells = {"a": {"0": noisy(10), "1": noisy(30), "2": noisy(20), "3": noisy(50), "4": noisy(51)}}
    rule = Unsteady(table="t", name="a", at=("0", "1", "2"), than=("3", "4"))
    assert effect(rule, cells).size == pytest.approx((20 + 10) / 2 - 1)
    assert verdict(replace(rule, at=("3", "4"), than=("0", "1", "2")), cells) == "does not hold"


def test_a_trend_is_the_slope_of_the_straight_line_through_each_seed() -> None:
    measured = effect(Trend(table="t", name="c"), TABLE)
    assert measured.size == pytest.approx(np.polyfit([0, 1, 2], [55, 58, 50], 1)[0])
    assert measured.unit == "points a setting"
    assert effect(Trend(table="t", name="c", rises=False), TABLE).size == pytest.approx(-measured.size)
    assert effect(Trend(table="t", name="c", at=("2", "1", "0")), TABLE).size == pytest.approx(-measured.size)


def test_a_peak_is_inside_and_above_both_ends() -> None:
    assert effect(Peaks(table="t", name="a"), TABLE).size == pytest.approx(72 - 71)
    assert verdict(Peaks(table="t", name="b"), TABLE) == "does not hold"
    four = {"a": {"0": noisy(1), "1": noisy(5), "2": noisy(9), "3": noisy(3)}}
    assert effect(Peaks(table="t", name="a"), four).size == pytest.approx(9 - 3)


def test_trends_need_two_settings_and_peaks_three() -> None:
    made = evidence(TABLE)
    assert Trend(table="t", name="a", at=("0",)).effect(made) is None
    assert Trend(table="t", name="a", at=("0", "1")).effect(made) is not None
    assert Peaks(table="t", name="a", at=("0", "1")).effect(made) is None


def test_places_of_two_tables_are_compared_pair_by_pair() -> None:
    values = {("t", "a", "0"): noisy(70), ("u", "a", "0"): noisy(60), ("u", "b", "0"): noisy(80)}
    up = HigherAt(pairs=((("t", "a", "0"), ("u", "a", "0")),))
    measured = up.effect(Evidence(values=values))
    assert measured is not None
    assert measured.size == pytest.approx(10)
    both = HigherAt(pairs=(*up.pairs, (("t", "a", "0"), ("u", "b", "0"))))
    mixed = both.effect(Evidence(values=values))
    assert mixed is not None
    assert mixed.size == pytest.approx(-10)
    assert not mixed.supports


def test_sometimes_holds_where_one_of_the_rules_does() -> None:
    high, low = Higher(table="t", over=("a",), under=("b",)), Higher(table="t", over=("b",), under=("a",))
    assert verdict(AnyOf(rules=(high, low)), TABLE) == "holds"
    assert verdict(AnyOf(rules=(low, low)), TABLE) == "does not hold"
    assert AnyOf(rules=(high, replace(low, table="another"))).effect(evidence(TABLE)) is None


def test_tables_agree_where_they_rank_their_cells_alike() -> None:
    one = {("t", row, column): seeds for row, of in TABLE.items() for column, seeds in of.items()}
    doubled = {("u", *place[1:]): tuple(2 * value for value in seeds) for place, seeds in one.items()}
    turned_over = {place: tuple(-value for value in seeds) for place, seeds in doubled.items()}
    rule = Agree(one=("t",), other=("u",))
    same, opposite = (rule.effect(Evidence(values={**one, **twin})) for twin in (doubled, turned_over))
    assert same is not None
    assert opposite is not None
    assert (same.size, opposite.size) == pytest.approx((1, -1))
    assert same.p_holds < LEVEL
    assert opposite.p_fails < LEVEL


def lost(runs: tuple[bool | None, ...], *, claimed: bool = True) -> Effect:
    made = evidence({"a": {"0": WAVE}}, {"a": {"0": runs}})
    measured = Collapse(table="t", names=("a",), lost=claimed).effect(made)
    assert measured is not None
    return measured


def test_lost_runs_are_counted_by_an_exact_test() -> None:
    for hits in range(8):
        runs = (True,) * hits + (False,) * (7 - hits)
        measured = lost(runs)
        assert measured.size == pytest.approx(hits / 7 - 0.5)
        assert measured.p_holds == pytest.approx(stats.binomtest(hits, 7, alternative="greater").pvalue)
        mirrored = lost(runs, claimed=False)
        assert (mirrored.size, mirrored.p_fails) == pytest.approx((-measured.size, measured.p_holds))


def test_a_run_of_which_it_is_not_known_whether_it_is_lost_is_not_counted() -> None:
    assert lost((True, None, True)) == lost((True, True))
    assert Collapse(table="t", names=("a",)).effect(evidence({"a": {"0": WAVE}}, {"a": {"0": (None,)}})) is None


def stated(*held: float | None) -> tuple[AllHold, Evidence]:
    made = evidence({f"s{n}": {"as printed": (value,)} for n, value in enumerate(held)})
    return AllHold(table="t", rows=tuple(f"s{n}" for n in range(len(held))), column="as printed"), made


@pytest.mark.parametrize(("held", "share"), [((1, 1, 1), 1.0), ((1, 0, 1), 2 / 3), ((0,), 0.0)])
def test_all_statements_must_hold(held: tuple[float, ...], share: float) -> None:
    rule, made = stated(*held)
    measured = rule.effect(made)
    assert measured is not None
    assert measured.size == pytest.approx(share)
    assert measured.supports == (share == 1)


def test_a_statement_that_was_not_checked_leaves_no_effect() -> None:
    rule, made = stated(1, None)
    assert rule.effect(made) is None


def test_holm_rejects_step_by_step() -> None:
    assert holm({"a": 0.01, "b": 0.02, "c": 0.04}) == {"a", "b", "c"}
    assert holm({"a": 0.01, "b": 0.03, "c": 0.04}) == {"a"}
    assert holm({"a": 0.02, "b": 0.03, "c": 0.04}) == set()
    assert holm({}) == set()


@pytest.mark.parametrize("rule", [*RULES, Collapse(table="t", names=("a", "c"))], ids=repr)
def test_a_rule_names_what_it_compares(rule: TableRule) -> None:
    assert all(name in rule.describe().replace(",", " ").split() for name in rule.compared)


def test_a_rule_tells_its_margin() -> None:
    assert "by more than 1.5" in replace(HIGHER, margin=1.5).describe()
    assert "less than 0.5" in Comparable(table="t", one="a", other="b", within=0.5).describe()
    assert "4 times" in replace(HIGHER, factor=4.0).describe()
