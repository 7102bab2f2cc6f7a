"""The store of results, the units of work, and how each kind of work is done."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from phinets.config.detection import ImageOptions
from phinets.config.errors import UserError
from phinets.config.jobs import ContinualJob, CostJob, DetectionJob, DynamicsJob, PretrainJob, ProbeJob, Result
from phinets.config.record import Score
from phinets.detection import synthetic
from phinets.detection.synthetic import synthetic_image, synthetic_voc
from phinets.detection.voc import read_voc
from phinets.evaluation import evaluator as recall
from phinets.evaluation.evaluator import Evaluator
from phinets.paper.targets import TARGETS
from phinets.reproduce import execute as doing
from phinets.reproduce.execute import Resources, require_data, run_job
from phinets.reproduce.schedule import (
    JobCallback,
    Shard,
    Unit,
    all_jobs,
    build_units,
    missing_jobs,
    parse_shard,
    reproduce,
)
from phinets.reproduce.store import BusyError, Store, read_result
from phinets.runs.trainer import run
from phinets.training.loop import DivergedError
from tests.reproduce.helpers import PROBE, QUICK, SMOKE, TINY, Recorder, by_key, long_run, python, until

ONE_CORE = Resources(device="cpu", threads=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


class Here:
    """An engine that works in this process, and counts."""

    def __init__(self, store: Store) -> None:
        self.store, self.count = store, 0

    def run(self, units: Sequence[Unit], callback: JobCallback) -> None:
        for job in (job for unit in units for job in unit.jobs):
            self.count += 1
            callback.on_result(run_job(job, self.store, ONE_CORE))


def test_a_result_is_read_back_as_it_was_put(store: Store) -> None:
    result = Result(job=QUICK[0], numbers={"a": 1.5, "b": None}, curves={"loss": ((0.0, 1.0), (8.0, 0.5))}, seconds=2.0)
    store.put(result)
    assert store.result(QUICK[0].key) == result
    assert store.results([job.key for job in QUICK]) == {QUICK[0].key: result}


def test_stores_are_merged_by_copying_files(tmp_path: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    one.put(Result(job=QUICK[0], numbers={"a": 1.0}))
    other.put(Result(job=QUICK[1], numbers={"a": 2.0}))
    for path in (tmp_path / "other" / "results").glob("*.json"):
        (tmp_path / "one" / "results" / path.name).write_bytes(path.read_bytes())
    assert [one.results([job.key])[job.key].numbers["a"] for job in QUICK[:2]] == [1.0, 2.0]


def test_results_of_further_stores_count_as_done_and_outweigh_a_failure(tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    other.put(Result(job=QUICK[0], numbers={"a": 1.0}))
    other.put(Result(job=QUICK[1], failed="lightning"))
    both = Store(tmp_path / "own", (other.root,))
    both.put(Result(job=QUICK[0], failed="no memory"))
    assert run_job(QUICK[0], both, ONE_CORE).numbers == {"a": 1.0}
    assert run_job(QUICK[1], both, ONE_CORE).failed == "lightning"
    assert [path.stem for path in (tmp_path / "own" / "results").iterdir()] == [QUICK[0].key]


def without_checksum(text: str) -> str:
    """A file as older versions wrote it."""
    return json.dumps({name: value for name, value in json.loads(text).items() if name != "sha256"})


def test_a_result_without_a_checksum_is_read(store: Store) -> None:
    store.put(Result(job=QUICK[0], seconds=2.0))
    path = store.root / "results" / f"{QUICK[0].key}.json"
    path.write_text(without_checksum(path.read_text()))
    assert read_result(path).seconds == 2.0


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text[: len(text) // 2], "can't be read as a result"),
        (lambda text: "[1, 2]", "this is no result"),
        (lambda text: without_checksum(text).replace("1.5", "1.75"), "result of another job"),
        (lambda text: without_checksum(text).replace('"dynamics"', '"dynamite"'), "'dynamite'"),
        (lambda text: text.replace('"seconds":0.0', '"seconds":8.0'), "checksum"),
    ],
)
def test_a_file_that_is_no_result_of_its_key_is_refused_with_its_path(
    store: Store, spoil: Callable[[str], str], says: str
) -> None:
    store.put(Result(job=QUICK[0]))
    path = store.root / "results" / f"{QUICK[0].key}.json"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(UserError, match=says) as refused:
        read_result(path)
    assert str(path) in str(refused.value)
    assert "Delete it" in str(refused.value)


def test_whoever_is_killed_while_writing_leaves_whole_results_or_none(store: Store) -> None:
    """One process writes the same large result over and over; another never sees it by half, neither does death."""
    code = (
        "import sys; from pathlib import Path\n"
        "from phinets.config.jobs import Result\nfrom phinets.config.jobs import DynamicsJob\n"
        "from phinets.reproduce.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for n in range(10**6): store.put(Result(job=DynamicsJob(statements=('strong',), sigma2=1.5),"
        " numbers={str(i): float(n) for i in range(20_000)}))"
    )
    path = store.root / "results" / f"{QUICK[0].key}.json"
    for seconds in (1.0, 0.1, 0.0):
        process = subprocess.Popen([*python(code), str(store.root)])
        try:
            until(path.exists)
            last = monotonic() + seconds
            while monotonic() < last:
                assert path.read_bytes().rstrip().endswith(b"}")
        finally:
            process.kill()
            process.wait()
        numbers = read_result(path).numbers
        assert len(numbers) == 20_000
        assert len(set(numbers.values())) == 1


HOLD = (
    "import sys, time; from pathlib import Path\nfrom phinets.reproduce.store import Store\n"
    "with Store(Path(sys.argv[1])).lock(sys.argv[2], False):\n    print('held', flush=True); time.sleep(600)"
)


def test_work_that_another_process_is_at_is_left_to_it_until_it_dies(store: Store) -> None:
    process = subprocess.Popen([*python(HOLD), str(store.root), QUICK[0].key], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BusyError):
            run_job(QUICK[0], store, ONE_CORE, wait=False)
        assert run_job(QUICK[1], store, ONE_CORE, wait=False).failed is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert run_job(QUICK[0], store, ONE_CORE, wait=False).failed is None
    assert not list(store.root.glob("jobs/*.lock"))


def test_who_waits_takes_the_result_of_whom_it_waited_for(store: Store) -> None:
    done = Result(job=QUICK[0], numbers={"by another": 1.0})
    code = (
        "import sys, time; from pathlib import Path\nfrom phinets.reproduce.store import Store\n"
        "from phinets.config.jobs import Result\nfrom phinets.config.jobs import DynamicsJob\n"
        "store = Store(Path(sys.argv[1]))\n"
        "with store.lock(sys.argv[2], False):\n    print('held', flush=True); time.sleep(0.3)\n"
        "    store.put(Result(job=DynamicsJob(statements=('strong',), sigma2=1.5), numbers={'by another': 1.0}))"
    )
    process = subprocess.Popen([*python(code), str(store.root), QUICK[0].key], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert run_job(QUICK[0], store, ONE_CORE) == done
    assert process.wait() == 0
    process.stdout.close()


def test_a_unit_is_a_pretraining_and_all_that_begins_with_it_in_turn() -> None:
    base = PretrainJob(run=TINY)
    probing = ProbeJob(run=TINY, probe=PROBE)
    moved = DetectionJob(run=TINY, detection=SMOKE.detection)
    costing = CostJob(run=TINY, methods=("simsiam",), rounds=1)
    made = build_units(by_key(costing, base, QUICK[0], probing, moved))
    assert [unit.jobs for unit in made] == [(base, probing, moved), (QUICK[0],), (costing,)]
    assert [unit.exclusive for unit in made] == [False, False, True]


@pytest.mark.parametrize("name", TARGETS)
def test_the_units_of_a_target_are_its_work_each_piece_once(name: str) -> None:
    jobs = TARGETS[name].jobs(SMOKE)
    again = [job.key for unit in build_units(jobs) for job in unit.jobs]
    assert Counter(again) == Counter(jobs.keys())


@pytest.mark.parametrize("of", [1, 2, 3, 50])
def test_the_shards_are_everything_and_each_piece_is_in_one(of: int) -> None:
    jobs = all_jobs([TARGETS[name] for name in ("voc", "imagenet-g", "memory", "dynamics-flow")], SMOKE)
    shards = [Shard(number, of).jobs(jobs) for number in range(of)]
    assert Counter(name for some in shards for name in some) == Counter(jobs.keys())
    whole = {name: unit for unit in build_units(jobs) for name in (job.key for job in unit.jobs)}
    for some in shards:  # who needs weights is where they are made
        assert all(job.key in some for name in some for job in whole[name].jobs)


def test_a_shard_that_can_t_be_is_refused() -> None:
    for text in ("5/3", "3/3", "1-3", "0/0"):
        with pytest.raises(UserError, match="I/N"):
            parse_shard(text)
    assert parse_shard("2/3") == Shard(2, 3)


def test_nothing_is_done_twice_and_failures_only_when_asked(store: Store) -> None:
    jobs = by_key(*QUICK[:3])
    store.put(Result(job=QUICK[1], failed="it was too hot"))
    engine, notes = Here(store), Recorder()
    reproduce(missing_jobs(jobs, store), engine, notes)
    assert engine.count == 2
    reproduce(missing_jobs(jobs, store), engine, notes)
    assert engine.count == 2
    assert store.results(jobs)[QUICK[1].key].failed == "it was too hot"
    reproduce(missing_jobs(jobs, store, retry_failed=True), engine, notes)
    assert engine.count == 3
    assert not missing_jobs(jobs, store, retry_failed=True)
    assert all(result.failed is None for result in store.results(jobs).values())


def test_a_person_s_mistake_and_a_bug_are_kept_with_their_reason(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = PretrainJob(run=replace(TINY, batch=4096))
    assert "batch of 4096 is larger than the data" in str(run_job(bad, store, ONE_CORE).failed)

    def broken(*given: object) -> Result:
        raise ZeroDivisionError("by a bug")

    monkeypatch.setitem(doing.RUNNERS, DynamicsJob.kind, broken)
    assert "ZeroDivisionError: by a bug" in str(run_job(QUICK[0], store, ONE_CORE).failed)
    assert store.results([bad.key, QUICK[0].key]).keys() == {bad.key, QUICK[0].key}


def test_what_begins_with_a_failure_fails_with_its_reason_and_what_begins_with_a_divergence_has_diverged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = ProbeJob(run=replace(TINY, batch=4096), probe=PROBE)
    assert "the pretraining that it requires failed: the batch of 4096" in str(run_job(bad, store, ONE_CORE).failed)

    def diverged(*given: object) -> Result:
        raise DivergedError("the loss is NaN")

    monkeypatch.setitem(doing.RUNNERS, PretrainJob.kind, diverged)
    lost = run_job(ProbeJob(run=TINY, probe=PROBE), store, ONE_CORE)
    assert lost.lost
    assert lost.failed is None
    assert "NaN" in lost.protocol


def test_a_probe_leaves_its_pretraining_in_the_store_and_makes_weights_anew_where_they_are_gone(
    tmp_path: Path, store: Store
) -> None:
    job = ProbeJob(run=TINY, probe=PROBE)
    result = run_job(job, store, ONE_CORE)
    base = store.result(PretrainJob(run=TINY).key)
    assert base is not None
    assert result.numbers["knn"] == base.numbers["knn"]
    elsewhere = Store(tmp_path / "elsewhere")
    elsewhere.put(base)
    assert run_job(job, elsewhere, ONE_CORE).numbers == result.numbers


def test_what_was_cut_before_it_was_a_run_is_begun_anew(store: Store) -> None:
    job = PretrainJob(run=TINY)
    folder = store.folder(job.key)
    folder.mkdir(parents=True)
    (folder / "env.json").write_text("{")
    assert run_job(job, store, ONE_CORE).failed is None


def test_all_or_nothing_of_the_data_is_asked_for_before_any_work(tmp_path: Path) -> None:
    far = PretrainJob(run=replace(TINY, data="cifar10"))
    also = ContinualJob(run=replace(SMOKE.split_cifar10, data="cifar100"))
    resources = Resources(root=str(tmp_path))
    with pytest.raises(UserError, match=r"all 2 jobs are missing. 'cifar10' is .* 'cifar100' is") as refused:
        require_data({"a": far, "b": also}, resources)
    assert str(refused.value).count("'cifar10' is not in") == 1
    require_data({"a": far, "b": QUICK[0]}, resources)
    require_data({"a": far}, replace(resources, download=True))
    (tmp_path / "cifar-10-batches-py").mkdir()
    require_data({"a": far, "b": also}, resources)
    pictures = replace(SMOKE.detection, images=replace(SMOKE.detection.images, data="voc:VOCdevkit"))
    with pytest.raises(UserError, match=r"no VOC pictures in '.*VOCdevkit'"):
        require_data({"a": DetectionJob(run=TINY, detection=pictures)}, resources)
    require_data({"a": DetectionJob(run=TINY, detection=SMOKE.detection)}, resources)


def test_a_first_score_that_is_recalled_is_the_one_that_is_judged_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "_BASELINES", {})
    fresh = run(TINY, tmp_path / "fresh").summary
    asked: list[object] = []
    score = Evaluator.score

    def noted(self: Evaluator, encoder: nn.Module | None) -> Score:
        asked.append(encoder)
        return score(self, encoder)

    monkeypatch.setattr(Evaluator, "score", noted)
    again = run(replace(TINY, method="phinet"), tmp_path / "again").summary
    assert len(asked) == 1, "only what was learned is judged"
    firsts = ("knn_untrained", "linear_untrained", "knn_pixels", "linear_pixels")
    assert [getattr(again, name) for name in firsts] == [getattr(fresh, name) for name in firsts]
    for other in (
        replace(TINY, seed=1),
        replace(TINY, evaluation=replace(TINY.evaluation, num_neighbors=3)),
        replace(TINY, source=replace(TINY.source, shapes_seed=1)),
    ):
        asked.clear()
        run(other, tmp_path / f"other{len(list(tmp_path.iterdir()))}")
        pixels_too = other.seed == 0
        assert len(asked) == (3 if pixels_too else 2), "another seed has the same pixels"


def test_drawn_pictures_are_in_voc_s_layout_and_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "TRAIN", 40)
    monkeypatch.setattr(synthetic, "TEST", 40)
    home = synthetic_voc(tmp_path)
    scenes = read_voc(ImageOptions(data=f"voc:{home}"))
    assert (len(scenes.train), len(scenes.test), len(scenes.classes)) == (40, 40, 10)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    assert synthetic_voc(tmp_path) == home
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
    pixels, things = synthetic_image(43)
    scene = scenes.test[3]
    assert (np.asarray(Image.open(scene.path)) == pixels).all()
    assert [(left - 1, top - 1, right, bottom) for _, (left, top, right, bottom) in things] == [
        tuple(box) for box in scene.truth.boxes.tolist()
    ]


def test_a_box_is_as_small_as_it_can_be_around_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """On flat ground, the pixels that a form covers by more than half are those that have more than half its paint."""
    monkeypatch.setattr(synthetic, "_background", lambda rng, side: np.full((side, side, 3), 128, np.float32))
    monkeypatch.setattr(synthetic, "NOISE", 0)
    alone = [(pixels, things[0]) for pixels, things in map(synthetic_image, range(120)) if len(things) == 1]
    assert len({thing.name for _, thing in alone}) == 10
    for pixels, thing in alone:
        paint = np.abs(pixels.astype(float) - 128).max(-1)
        rows, columns = np.nonzero(paint > paint.max() / 2)
        covered = columns.min() + 1, rows.min() + 1, columns.max() + 1, rows.max() + 1
        assert np.abs(np.subtract(covered, thing.box)).max() <= 1  # colors are whole numbers


@pytest.mark.slow
def test_a_detector_is_transferred_to_drawn_pictures_without_any_download(store: Store) -> None:
    job = DetectionJob(run=TINY, detection=SMOKE.detection)
    result = run_job(job, store, ONE_CORE)
    assert result.failed is None
    assert {"ap", "ap50", "ap75"} <= result.numbers.keys()
    store.forget(job.key)
    assert run_job(job, store, ONE_CORE).numbers == result.numbers


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_very_numbers_that_it_would_have_had(store: Store, tmp_path: Path) -> None:
    job = long_run(epochs=8)
    code = (
        "import json, os, signal, sys, torch; from pathlib import Path\ntorch.set_num_threads(1)\n"
        "from phinets.config.jobs import job_from_plain\n"
        "from phinets.reproduce.execute import Resources, run_job\n"
        "from phinets.reproduce.store import Store\n"
        "renames = []\n"
        "def die(event, args):\n"
        "    if event == 'os.rename' and Path(args[1]).parent.name == 'checkpoints':\n"
        "        renames.append(args)\n"
        "        if len(renames) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(die)\n"
        "run_job(job_from_plain(json.loads(sys.argv[2])), Store(Path(sys.argv[1])), Resources(device='cpu', threads=1))"
    )
    plain = json.dumps(Result(job=job).plain()["job"])
    dead = subprocess.run([*python(code), str(store.root), plain], check=False)
    assert dead.returncode == -signal.SIGKILL, "it killed itself at its third checkpoint"
    assert store.result(job.key) is None
    torch.set_num_threads(1)
    cut, whole = run_job(job, store, ONE_CORE), run_job(job, Store(tmp_path / "whole"), ONE_CORE)
    assert cut.environment.get("resumed")
    timed = "images_per_second"
    assert {**cut.numbers, timed: 0} == {**whole.numbers, timed: 0}
