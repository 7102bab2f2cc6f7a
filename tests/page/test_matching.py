"""Results find the tables that they belong to, by their keys, whatever the scale and the number of seeds."""

from dataclasses import replace

from phinets.config.jobs import ContinualJob, Result
from phinets.paper.plan import with_seeds
from phinets.paper.scales import SCALES
from phinets.paper.targets import TARGETS
from phinets.reports.page.contents import Match, match_results
from tests.page import faking

STREAM, DYNAMICS = TARGETS["ema-beta"], TARGETS["dynamics-simsiam"]
SOME = (STREAM, DYNAMICS, TARGETS["fast-slow"])


def match(results: dict[str, Result], **names: tuple[str, ...]) -> Match:
    return match_results(results, SOME, SCALES.values(), **names)


def places(found: Match) -> list[tuple[str, str]]:
    return [(each.scale.name, each.target.name) for each in found.targets]


def test_as_many_seeds_are_shown_as_there_are() -> None:
    for seeds in (1, 2, 4):
        results = faking.results([STREAM], with_seeds(SCALES["pocket"], seeds))
        found = match(results)
        assert places(found) == [("pocket", "ema-beta")]
        assert found.targets[0].scale.seeds == seeds
        assert all(len(cell.values) == seeds for table in found.targets[0].tables for cell in table.cells)
        assert not found.unmatched


def test_a_seed_that_is_missing_between_others_is_told_as_missing() -> None:
    whole = faking.results([STREAM], with_seeds(SCALES["pocket"], 3))
    (found,) = match({name: r for name, r in whole.items() if r.job.seed != 1}).targets
    assert all(cell.missing == 1 for table in found.tables for cell in table.cells)


def test_work_that_is_the_same_at_every_scale_opens_no_scale_of_its_own() -> None:
    dynamics = faking.results([DYNAMICS], SCALES["pocket"])
    stream = faking.results([STREAM], SCALES["smoke"])
    assert places(match(dynamics)) == [("paper", "dynamics-simsiam")]
    assert places(match(dynamics | stream)) == [("smoke", "ema-beta"), ("smoke", "dynamics-simsiam")]
    assert places(match(dynamics, scale_names=("pocket",))) == [("pocket", "dynamics-simsiam")]


def test_scales_that_have_results_come_one_after_the_other() -> None:
    results = faking.results([STREAM], SCALES["smoke"]) | faking.results([STREAM], SCALES["pocket"])
    assert places(match(results)) == [("pocket", "ema-beta"), ("smoke", "ema-beta")]
    assert places(match(results, scale_names=("smoke",))) == [("smoke", "ema-beta")]


def test_chosen_targets_are_shown_whether_they_have_results_or_not() -> None:
    results = faking.results([STREAM], SCALES["pocket"])
    found = match(results, target_names=("ema-beta", "fast-slow"))
    assert places(found) == [("pocket", "ema-beta"), ("pocket", "fast-slow")]
    assert not match(results, target_names=("fast-slow",)).unmatched, (
        "a result of a target that is not shown is no stranger"
    )


def test_results_of_no_target_are_strangers_also_those_of_a_seed_beyond_all() -> None:
    results = faking.results([STREAM], SCALES["pocket"])
    one = next(iter(results.values()))
    assert isinstance(one.job, ContinualJob)
    other = replace(one, job=ContinualJob(run=replace(one.job.run, batch=34)))
    beyond = replace(one, job=ContinualJob(run=replace(one.job.run, seed=10**12)))
    found = match({**results, other.key: other, beyond.key: beyond})
    assert found.unmatched == {other.job.key, beyond.job.key}
    assert places(match({other.key: other})) == []
