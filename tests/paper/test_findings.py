"""What was found: cells filled, best marked by overlap, claims judged, nothing lost from sight."""

from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from phinets.config.jobs import Result
from phinets.paper.findings import TableResult, target_result
from phinets.paper.numbers import paper_numbers
from phinets.paper.plan import Table
from phinets.paper.rules import AllHold, Collapse, Evidence, Higher, Peaks, Rule
from phinets.paper.scales import SCALES
from phinets.paper.targets import TARGETS
from tests.paper.targets import POCKET, SMOKE, Numbers, results, table, target
from tests.paper.test_numbers import CHECKSUMS

NUMBERS: Numbers = {
    ("a", "x"): (70.0, 71.0, 72.0),
    ("b", "x"): (69.0, 70.5, 70.5),
    ("c", "x"): (60.0, 61.0, 62.0),
    ("a", "y"): (50.0, 50.0, 50.0),
    ("b", "y"): (50.2, 50.2, 50.2),
    ("c", "y"): (10.0, 10.0, None),
}
HIGHER = Higher(table="t", over=("a",), under=("c",))


def judged(numbers: Numbers = NUMBERS, **more: Any) -> TableResult:
    made = table(numbers, **more)
    return target_result(target(made), POCKET, results(made, numbers)).tables[0]


def best(filled: TableResult) -> set[tuple[str, str]]:
    return {place for place, cell in filled.at.items() if cell.best}


def test_a_cell_has_mean_sample_spread_and_n_of_the_seeds_that_have_a_number() -> None:
    cells = judged().at
    for place, seeds in NUMBERS.items():
        there = [value for value in seeds if value is not None]
        assert cells[place].mean == pytest.approx(fmean(there))
        assert cells[place].spread == pytest.approx(stdev(there))
        assert cells[place].n == len(there)


def test_one_number_has_no_spread_and_none_no_mean() -> None:
    cells = judged({("a", "x"): (1.0, None), ("b", "x"): (None, None)}).at
    assert (cells["a", "x"].mean, cells["a", "x"].spread, cells["a", "x"].n) == (1.0, None, 1)
    assert (cells["b", "x"].mean, cells["b", "x"].spread, cells["b", "x"].n) == (None, None, 0)


def test_best_is_whoever_overlaps_with_the_best_of_the_column() -> None:
    assert best(judged()) == {("a", "x"), ("b", "x"), ("b", "y")}


@pytest.mark.parametrize(("mean", "overlaps"), [(69.0, True), (68.99, False)])
def test_intervals_that_touch_overlap(mean: float, overlaps: bool) -> None:
    numbers: Numbers = {("a", "x"): (70.0, 71.0, 72.0), ("b", "x"): (mean - 1, mean, mean + 1)}
    assert (("b", "x") in best(judged(numbers))) == overlaps


def test_in_a_table_of_rows_the_best_of_each_row_is_marked() -> None:
    assert best(judged(best_in="row")) == {("a", "x"), ("b", "x"), ("c", "x")}


def test_where_lower_is_better_the_lowest_is_best() -> None:
    assert best(judged(better="lower")) == {("c", "x"), ("c", "y")}


def test_rows_in_which_lower_is_better_stand_beside_others() -> None:
    assert best(judged(best_in="row", lower_rows=("b",))) == {("a", "x"), ("b", "y"), ("c", "x")}


def test_where_nothing_is_better_nothing_is_best() -> None:
    assert best(judged(better=None)) == set()


def test_a_cell_without_a_number_is_never_best_and_hides_no_other() -> None:
    numbers: Numbers = {("a", "x"): (None, None), ("b", "x"): (1.0, 1.0), ("a", "y"): (None,), ("b", "y"): (None,)}
    for better in ("higher", "lower"):
        assert best(judged(numbers, better=better)) == {("b", "x")}


def test_a_single_number_is_best_only_where_it_lies_within_the_other_s_spread() -> None:
    assert best(judged({("a", "x"): (70.0, 72.0), ("b", "x"): (69.5,)})) == {("a", "x")}
    assert best(judged({("a", "x"): (70.0, 72.0), ("b", "x"): (69.6,)})) == {("a", "x"), ("b", "x")}
    assert best(judged({("a", "x"): (70.0,), ("b", "x"): (69.9,)})) == {("a", "x")}


def lossy() -> tuple[Table, dict[str, Result]]:
    """Of five seeds of `a` one is healthy, one collapsed, one diverged, one failed, one is not there."""
    numbers: Numbers = {("a", "x"): (70.0, 12.0, None, None, None), ("c", "x"): (5.0, 5.0, 5.0, 5.0, 5.0)}
    made = table(numbers, chance=10.0)
    done = results(made, numbers, {("a", "x"): ("healthy", "collapsed", "diverged", None, None)})
    broken = made.at["a", "x"].jobs[3]
    return made, {**done, broken.key: Result(job=broken, failed="no such data")}


def test_collapsed_and_diverged_seeds_score_as_chance_and_are_counted() -> None:
    made, done = lossy()
    cell = target_result(target(made), POCKET, done).tables[0].at["a", "x"]
    assert cell.values == (70.0, 10.0, 10.0, None, None)
    assert (cell.mean, cell.n, cell.lost, cell.failed, cell.missing) == (30.0, 3, 2, 1, 1)


def test_a_claim_counts_the_lost_seeds_of_the_cells_that_it_depends_on() -> None:
    made, done = lossy()
    other = Higher(table="t", over=("c",), under=("c",))
    claims = target_result(target(made, rules=(HIGHER, other)), POCKET, done).claims
    assert [claim.lost for claim in claims] == [2, 0]
    assert claims[0].effect is not None
    assert claims[0].effect.seeds == 3


def test_a_number_that_is_not_finite_is_none() -> None:
    numbers: Numbers = {("a", "x"): (float("nan"), float("inf"), 3.0)}
    assert judged(numbers).at["a", "x"].values == (None, None, 3.0)


FIVE: Numbers = {
    ("a", "x"): (70.0, 71.0, 72.0, 71.5, 70.5),
    ("b", "x"): (69.0, 72.0, 71.0, 71.5, 70.0),
    ("c", "x"): (60.0, 61.0, 62.0, 61.0, 60.5),
}


def verdicts(numbers: Numbers, *rules: Rule, gain: float | None = 30.0, seeds: int = 5) -> list[str]:
    """With encoders that were `gain` points worse before they learned."""
    numbers = {place: values[:seeds] for place, values in numbers.items()}
    made = table(numbers)
    done = {
        key: replace(result, numbers={**result.numbers, "knn_untrained": (result.numbers["knn"] or 0.0) - gain})
        if gain is not None
        else result
        for key, result in results(made, numbers).items()
    }
    return [claim.verdict for claim in target_result(target(made, rules=rules), POCKET, done).claims]


UP, DOWN = HIGHER, Higher(table="t", over=("c",), under=("a",))
EVEN = Higher(table="t", over=("a",), under=("b",))


def test_verdicts_follow_the_tests() -> None:
    assert verdicts(FIVE, UP, DOWN, EVEN) == ["holds", "does not hold", "can't tell"]


def test_with_fewer_than_four_seeds_nothing_can_be_told() -> None:
    assert verdicts(FIVE, UP, seeds=4) == ["holds"]
    assert verdicts(FIVE, UP, seeds=3) == ["can't tell"]


@pytest.mark.parametrize(("gain", "word"), [(5.1, "holds"), (4.9, "uninformative"), (-3.0, "uninformative")])
def test_runs_that_learned_little_are_uninformative(gain: float, word: str) -> None:
    assert verdicts(FIVE, UP, gain=gain) == [word]


def test_without_an_untrained_encoder_there_is_no_gate() -> None:
    assert verdicts(FIVE, UP, gain=None) == ["holds"]


def test_collapse_is_informative_whatever_was_learned() -> None:
    assert verdicts(FIVE, Collapse(table="t", names=("a", "b", "c"), lost=False), gain=0.0) == ["holds"]


def test_many_claims_of_one_target_need_smaller_p_values() -> None:
    weak: Numbers = {("a", "x"): (1.0, 3.0, 2.0, 4.0, 2.5), ("c", "x"): (0.0, 1.0, 2.0, 1.0, 0.5)}
    assert verdicts(weak, UP) == ["holds"]
    assert verdicts(weak, UP, *[EVEN_NOISE] * 30)[0] == "can't tell"


EVEN_NOISE = Higher(table="t", over=("c",), under=("a",), margin=-1.6)
"""Undecided in the same cells."""


def why(numbers: Numbers, rule: Higher | Peaks = HIGHER) -> tuple[str, str, bool]:
    made = table(numbers)
    (claim,) = target_result(target(made, rules=(rule,)), POCKET, results(made, numbers)).claims
    return claim.verdict, claim.why, claim.effect is None


def test_what_can_t_be_told_has_its_reason() -> None:
    holes: Numbers = {("a", "x"): (1.0, 2.0), ("c", "x"): (None, None)}
    assert why(holes) == ("can't tell", "1 of 2 cells have no number.", True)
    single: Numbers = {("a", "x"): (1.0, 2.0), ("c", "x"): (0.0, None)}
    word, reason, no_effect = why(single)
    assert (word, no_effect) == ("can't tell", False)
    assert "Only 1 " in reason


def test_nothing_is_decided_by_smoke_but_what_needs_no_learning() -> None:
    numbers: Numbers = {**FIVE, ("s", "z"): (1.0,)}
    made = table(numbers)
    rules = (HIGHER, AllHold(table="t", rows=("s",), column="z"))
    claims = target_result(target(made, rules=rules), SMOKE, results(made, numbers)).claims
    assert [claim.verdict for claim in claims] == ["can't tell", "holds"]
    assert "too short" in claims[0].why
    assert claims[1].why == "1 of 1 statements hold."


def test_the_other_readout_is_judged_by_itself() -> None:
    made = table(FIVE)
    done = {
        key: replace(result, numbers={**result.numbers, "linear": 200 - (result.numbers["knn"] or 0.0)})
        for key, result in results(made, FIVE).items()
    }
    outcome = target_result(target(made, rules=(UP,)), POCKET, done)
    (claim,) = outcome.claims
    assert claim.second is not None
    assert (claim.first.readout, claim.verdict) == ("kNN", "holds")
    assert (claim.second.readout, claim.second.verdict) == ("linear probe", "does not hold")
    first, second = (one for one in outcome.tables)
    assert second.at["a", "x"].mean == pytest.approx(200 - (first.at["a", "x"].mean or 0.0))


def test_untrained_encoder_and_pixels_stand_below_and_do_not_compete() -> None:
    made = table(FIVE)
    done = {
        key: replace(result, numbers={**result.numbers, "knn_untrained": 99.0, "knn_pixels": 33.0})
        for key, result in results(made, FIVE).items()
    }
    filled = target_result(target(made), POCKET, done).tables[0]
    assert filled.table.baselines == ("untrained", "raw pixels")
    assert (filled.at["untrained", "x"].mean, filled.at["raw pixels", "x"].mean) == (99.0, 33.0)
    assert best(filled) == {("a", "x"), ("b", "x")}


def test_the_paper_s_own_numbers_are_tested_by_the_same_rule() -> None:
    claims = {claim.claim.name: claim for claim in target_result(TARGETS["cifar5m"], SCALES["paper"], {}).claims}
    above = claims["x-phinet-above-simsiam-and-phinet"]
    assert above.printed == "agree"
    assert above.printed_effect is not None
    assert above.printed_effect.size == pytest.approx(87.30 - 77.71)
    flow = target_result(TARGETS["cifar10-weight-decay-methods"], SCALES["paper"], {}).claims
    assert {claim.printed for claim in flow} == {"not printed"}


def test_an_effect_is_told_in_the_table_s_unit() -> None:
    hours = table(FIVE, unit="h")
    percent = table(FIVE)
    units = []
    for made in (hours, percent):
        (claim,) = target_result(target(made, rules=(HIGHER,)), POCKET, results(made, FIVE)).claims
        assert claim.effect is not None
        units.append(claim.effect.unit)
    assert units == ["h", "points"]


def test_the_paper_s_number_stands_beside_ours() -> None:
    numbers: Numbers = {("CIFAR-5m", "BYOL"): (70.0, 71.0), ("CIFAR-5m", "Another"): (1.0,)}
    cells = judged(numbers, name="cifar5m").at
    assert cells["CIFAR-5m", "BYOL"].printed == paper_numbers("cifar5m")["CIFAR-5m", "BYOL"]
    assert cells["CIFAR-5m", "Another"].printed is None


def test_results_of_other_targets_are_left_aside() -> None:
    made, other = table(NUMBERS), table({("elsewhere", "x"): (1.0,)})
    mine = results(made, NUMBERS)
    everything = {**mine, **results(other, {("elsewhere", "x"): (1.0,)})}
    assert target_result(target(made), POCKET, everything).results == mine


@pytest.mark.parametrize("name", TARGETS)
def test_before_anything_is_run_every_target_is_empty_and_open(name: str) -> None:
    nothing = target_result(TARGETS[name], SMOKE, {})
    cells = [cell for filled in nothing.tables for cell in filled.cells]
    assert all(cell.n == 0 and cell.missing == len(cell.cell.jobs) and not cell.best for cell in cells)
    assert {claim.verdict for claim in nothing.claims} <= {"can't tell"}
    assert nothing.results == {}


@pytest.mark.parametrize("scale", ["paper", "pocket"])
def test_every_claim_rests_on_cells_that_its_target_has(scale: str) -> None:
    for one in TARGETS.values():
        cells = {(made.name, *place): (None,) for made in one.tables(SCALES[scale]) for place in made.at}
        for claim in one.claims:
            places = claim.rule.places(Evidence(values=cells, lost={}))
            assert places or scale == "pocket", claim.name  # which does not run every weight decay
            assert set(places) <= set(cells), claim.name


@pytest.mark.parametrize("name", TARGETS)
def test_the_paper_s_numbers_find_their_cells(name: str) -> None:
    for made in TARGETS[name].tables(SCALES["paper"]):
        assert set(paper_numbers(made.name)) <= set(made.at), made.name


def test_every_table_of_the_paper_s_numbers_belongs_to_a_target() -> None:
    known = {made.name for one in TARGETS.values() for made in one.tables(SCALES["paper"])}
    assert set(CHECKSUMS) <= known


def test_what_a_cell_s_work_begins_with_is_among_the_results() -> None:
    which = next(one for one in TARGETS.values() if any(job.requires for job in one.jobs(SMOKE).values()))
    done = {name: Result(job=job, numbers={}) for name, job in which.jobs(SMOKE).items()}
    assert target_result(which, SMOKE, done).results == done
