"""Results come from stores, files and run folders, each piece of work once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phinets.config.errors import UserError
from phinets.config.jobs import ContinualJob, PretrainJob, Result
from phinets.config.plain import to_plain
from phinets.config.record import ContinualSummary, Summary
from phinets.config.run import TrainConfig
from phinets.paper.scales import SCALES
from phinets.paper.targets import TARGETS
from phinets.reproduce.gather import gather
from phinets.reproduce.store import Store
from phinets.runtime.files import write_json
from phinets.training.run_folder import write_config
from tests.page import faking
from tests.reports.streams import stream_record

LOOK = {"kind": "eval", "step": 4, "epoch": 1.0, "images": 32, "knn": 41.0, "spread": 0.9, "effective_rank": 12.0}
STEP = {"kind": "step", "step": 2, "epoch": 0.5, "loss": -0.5, "sim1": -0.4, "lr": 0.1}
SUMMARY = Summary(
    method="phinet", backbone="resnet-tiny", data="shapes", seed=0, steps=4, verdict="healthy", spread=0.9,
    effective_rank=12.0, dead_share=0.0, bad_images=0, seconds=3.0, images_per_second=10.0, data_wait=0.0,
    protocol="kNN", knn=41.0, linear=43.0, knn_untrained=20.0, linear_untrained=21.0, knn_pixels=18.0,
    linear_pixels=19.0,
)  # fmt: skip


def run_folder(
    folder: Path, config: TrainConfig, summary: Summary | ContinualSummary | None, journal: list[dict[str, Any]]
) -> Path:
    """What a run leaves, written by hand."""
    folder.mkdir()
    write_config(folder, config)
    write_json(folder / "env.json", faking.ENVIRONMENT)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in journal), encoding="utf-8")
    if summary is not None:
        write_json(folder / "summary.json", to_plain(summary))
    return folder


@pytest.fixture
def results() -> dict[str, Result]:
    return faking.results([TARGETS["ema-beta"]], SCALES["smoke"])


@pytest.fixture
def store(tmp_path: Path, results: dict[str, Result]) -> Path:
    for result in results.values():
        Store(tmp_path / "store").put(result)
    return tmp_path / "store"


def test_a_store_its_folder_of_results_and_its_files_hold_the_same(store: Path, results: dict[str, Result]) -> None:
    files = sorted((store / "results").iterdir())
    for places in ([store], [store / "results"], files):
        assert gather(places).results == results


def test_what_lies_beside_results_in_a_store_is_left_alone(store: Path, results: dict[str, Result]) -> None:
    (store / "results" / "notes.json").write_text("{}", encoding="utf-8")
    (store / "results" / ".0123456789abcdef.json.part").write_text("{", encoding="utf-8")
    assert gather([store]).results == results


def test_a_result_with_numbers_counts_before_one_that_failed_and_else_the_first(
    tmp_path: Path, store: Path, results: dict[str, Result]
) -> None:
    name, good = next(iter(results.items()))
    for place, result in (("failed", replace(good, failed="no")), ("later", replace(good, seconds=9.0))):
        Store(tmp_path / place).put(result)
    for order in (["failed", "store"], ["store", "failed"]):
        assert gather([tmp_path / place for place in order]).results[name] == good
    assert gather([tmp_path / "later", store]).results[name].seconds == 9.0
    assert gather([store, tmp_path / "later"]).results[name] == good


def test_a_run_of_one_s_own_counts_for_the_work_that_it_is(tmp_path: Path) -> None:
    config = replace(SCALES["smoke"].cifar10, method="phinet")
    folder = run_folder(tmp_path / "mine", config, SUMMARY, [STEP, LOOK])
    gathered = gather([folder, tmp_path / "mine" / ".." / "mine"])
    (own,) = gathered.own
    assert own.key == PretrainJob(run=config).key
    assert gathered.results[own.key].numbers["knn"] == 41.0
    assert gathered.results[own.key].curves["sim1"] == ((2.0 * config.batch, -0.4),)
    assert gathered.dates is not None


def test_a_run_over_a_stream_counts_likewise(tmp_path: Path) -> None:
    record = stream_record(tasks=2)
    folder = run_folder(tmp_path / "stream", record.config, record.summary, record.journal)
    (own,) = gather([folder]).own
    assert own.key == ContinualJob(run=record.config).key
    assert own.result.numbers["task-knn/fast/average"] == record.summary.readings[0].average


def test_a_run_that_is_not_finished_is_named_and_no_more(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "half", SCALES["smoke"].cifar10, None, [STEP])
    gathered = gather([folder])
    assert gathered.unfinished == (str(folder),)
    assert not gathered.results
    assert gathered.dates is None


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_a_place_without_results_is_refused_with_what_would_be_right(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"Name a store of `phinets reproduce` \(a folder with results/ in it\)"):
        gather([tmp_path / name])


def test_a_file_that_is_no_result_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"key": 1}', encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.json.*this is no result"):
        gather([tmp_path / "x.json"])
