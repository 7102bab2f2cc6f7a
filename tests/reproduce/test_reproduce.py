"""The store of results, the units of work, and how each kind of work is done."""

import json
import os
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

from phinets.config.detection import Pictures
from phinets.config.errors import UserError
from phinets.config.record import Score
from phinets.config.result import Result
from phinets.config.work import Costing, Deriving, Pretraining, Probing, Streaming, Transferring, key
from phinets.detection import drawn
from phinets.detection.drawn import drawn_voc, picture
from phinets.detection.voc import read_voc
from phinets.evaluation import evaluator as recall
from phinets.evaluation.evaluator import Judge
from phinets.paper.targets import TARGETS
from phinets.reproduce import execute as doing
from phinets.reproduce.execute import Means, do
from phinets.reproduce.needs import require_data
from phinets.reproduce.reproduce import Onlooker, Part, Unit, all_works, open_works, part, reproduce, units
from phinets.reproduce.store import BusyError, Store, read_result
from phinets.runs.trainer import run
from phinets.training.loop import DivergedError
from tests.reproduce.helpers import QUICK, SMOKE, TINY, Notes, by_key, long_run, python, until

ONE_CORE = Means(device="cpu", threads=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


class Here:
    """An engine that works in this process, and counts."""

    def __init__(self, store: Store) -> None:
        self.store, self.count = store, 0

    def run(self, units: Sequence[Unit], onlooker: Onlooker) -> None:
        for work in (work for unit in units for work in unit.works):
            self.count += 1
            onlooker.done(do(work, self.store, ONE_CORE))


def test_a_result_is_read_back_as_it_was_put(store: Store) -> None:
    result = Result(
        work=QUICK[0], numbers={"a": 1.5, "b": None}, curves={"loss": ((0.0, 1.0), (8.0, 0.5))}, seconds=2.0
    )
    store.put(result)
    assert store.result(key(QUICK[0])) == result
    assert store.results([key(work) for work in QUICK]) == {key(QUICK[0]): result}


def test_stores_are_merged_by_copying_files(tmp_path: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    one.put(Result(work=QUICK[0], numbers={"a": 1.0}))
    other.put(Result(work=QUICK[1], numbers={"a": 2.0}))
    for path in (tmp_path / "other" / "results").glob("*.json"):
        (tmp_path / "one" / "results" / path.name).write_bytes(path.read_bytes())
    assert [one.results([key(work)])[key(work)].numbers["a"] for work in QUICK[:2]] == [1.0, 2.0]


def test_results_of_further_stores_count_as_done_and_outweigh_a_failure(tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    other.put(Result(work=QUICK[0], numbers={"a": 1.0}))
    other.put(Result(work=QUICK[1], failed="lightning"))
    both = Store(tmp_path / "own", (other.root,))
    both.put(Result(work=QUICK[0], failed="no memory"))
    assert do(QUICK[0], both, ONE_CORE).numbers == {"a": 1.0}
    assert do(QUICK[1], both, ONE_CORE).failed == "lightning"
    assert [path.stem for path in (tmp_path / "own" / "results").iterdir()] == [key(QUICK[0])]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text[: len(text) // 2], "can't be read as a result"),
        (lambda text: "[1, 2]", "this is no result"),
        (lambda text: text.replace("1.5", "1.75"), "result of other work than its name says"),
        (lambda text: text.replace('"deriving"', '"diving"'), "no kind of work called 'diving'"),
    ],
)
def test_a_file_that_is_no_result_of_its_key_is_refused_with_its_path(
    store: Store, spoil: Callable[[str], str], says: str
) -> None:
    store.put(Result(work=QUICK[0]))
    path = store.root / "results" / f"{key(QUICK[0])}.json"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(UserError, match=says) as refused:
        read_result(path)
    assert str(path) in str(refused.value)
    assert "Take it away" in str(refused.value)


def test_whoever_is_killed_while_writing_leaves_whole_results_or_none(store: Store) -> None:
    """One process writes the same large result over and over; another never sees it by half, neither does death."""
    code = (
        "import sys; from pathlib import Path\n"
        "from phinets.config.result import Result\nfrom phinets.config.work import Deriving\n"
        "from phinets.reproduce.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for n in range(10**6): store.put(Result(work=Deriving(statements=('strong',), sigma2=1.5),"
        " numbers={str(i): float(n) for i in range(20_000)}))"
    )
    path = store.root / "results" / f"{key(QUICK[0])}.json"
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
    "with Store(Path(sys.argv[1])).claimed(sys.argv[2], False):\n    print('held', flush=True); time.sleep(60)"
)


def test_work_that_another_process_is_at_is_left_to_it_until_it_dies(store: Store) -> None:
    process = subprocess.Popen([*python(HOLD), str(store.root), key(QUICK[0])], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BusyError):
            do(QUICK[0], store, ONE_CORE, patient=False)
        assert do(QUICK[1], store, ONE_CORE, patient=False).failed is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert do(QUICK[0], store, ONE_CORE, patient=False).failed is None
    assert not list(store.root.glob("work/*.lock"))


def test_who_waits_takes_the_result_of_whom_it_waited_for(store: Store) -> None:
    done = Result(work=QUICK[0], numbers={"by another": 1.0})
    code = (
        "import sys, time; from pathlib import Path\nfrom phinets.reproduce.store import Store\n"
        "from phinets.config.result import Result\nfrom phinets.config.work import Deriving\n"
        "store = Store(Path(sys.argv[1]))\n"
        "with store.claimed(sys.argv[2], False):\n    print('held', flush=True); time.sleep(0.3)\n"
        "    store.put(Result(work=Deriving(statements=('strong',), sigma2=1.5), numbers={'by another': 1.0}))"
    )
    process = subprocess.Popen([*python(code), str(store.root), key(QUICK[0])], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert do(QUICK[0], store, ONE_CORE) == done
    assert process.wait() == 0
    process.stdout.close()


def test_a_unit_is_a_pretraining_and_all_that_begins_with_it_in_turn() -> None:
    base = Pretraining(run=TINY)
    probing = Probing(run=TINY, probe=SMOKE.probe)
    moved = Transferring(run=TINY, detection=SMOKE.detection)
    costing = Costing(run=TINY, methods=("simsiam",), rounds=1)
    made = units(by_key(costing, base, QUICK[0], probing, moved))
    assert [unit.works for unit in made] == [(base, probing, moved), (QUICK[0],), (costing,)]
    assert [unit.alone for unit in made] == [False, False, True]


@pytest.mark.parametrize("name", TARGETS)
def test_the_units_of_a_target_are_its_work_each_piece_once(name: str) -> None:
    works = TARGETS[name].works(SMOKE)
    again = [key(work) for unit in units(works) for work in unit.works]
    assert Counter(again) == Counter(works.keys())


@pytest.mark.parametrize("of", [1, 2, 3, 50])
def test_the_parts_are_everything_and_each_piece_is_in_one(of: int) -> None:
    works = all_works([TARGETS[name] for name in ("voc", "imagenet-g", "memory", "dynamics-flow")], SMOKE)
    parts = [Part(number, of).works(works) for number in range(of)]
    assert Counter(name for some in parts for name in some) == Counter(works.keys())
    whole = {name: unit for unit in units(works) for name in map(key, unit.works)}
    for some in parts:  # who needs weights is where they are made
        assert all(key(work) in some for name in some for work in whole[name].works)


@pytest.mark.parametrize(
    ("said", "why"), [("5/3", "below N: from 0/3 to 2/3"), ("3/3", "below"), ("1-3", "I/N"), ("0/0", "0/1")]
)
def test_a_part_that_can_t_be_is_refused(said: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        part(said)
    assert part("2/3") == Part(2, 3)


def test_nothing_is_done_twice_and_failures_only_when_asked(store: Store) -> None:
    works = by_key(*QUICK[:3])
    store.put(Result(work=QUICK[1], failed="it was too hot"))
    engine, notes = Here(store), Notes()
    reproduce(open_works(works, store), engine, notes)
    assert engine.count == 2
    reproduce(open_works(works, store), engine, notes)
    assert engine.count == 2
    assert store.results(works)[key(QUICK[1])].failed == "it was too hot"
    reproduce(open_works(works, store, retry_failed=True), engine, notes)
    assert engine.count == 3
    assert not open_works(works, store, retry_failed=True)
    assert all(result.failed is None for result in store.results(works).values())


def test_a_person_s_mistake_and_a_bug_are_kept_with_their_reason(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Pretraining(run=replace(TINY, batch=4096))
    assert "batch of 4096 is larger than the data" in str(do(bad, store, ONE_CORE).failed)

    def broken(*given: object) -> Result:
        raise ZeroDivisionError("by a bug")

    monkeypatch.setitem(doing.DOING, Deriving, broken)
    assert "ZeroDivisionError: by a bug" in str(do(QUICK[0], store, ONE_CORE).failed)
    assert store.results([key(bad), key(QUICK[0])]).keys() == {key(bad), key(QUICK[0])}


def test_what_begins_with_a_failure_fails_with_its_reason_and_what_begins_with_a_divergence_has_diverged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Probing(run=replace(TINY, batch=4096), probe=SMOKE.probe)
    assert "the pretraining that it begins with has failed: the batch of 4096" in str(do(bad, store, ONE_CORE).failed)

    def diverged(*given: object) -> Result:
        raise DivergedError("the loss is NaN")

    monkeypatch.setitem(doing.DOING, Pretraining, diverged)
    lost = do(Probing(run=TINY, probe=SMOKE.probe), store, ONE_CORE)
    assert lost.lost
    assert lost.failed is None
    assert "NaN" in lost.protocol


def test_a_probe_leaves_its_pretraining_in_the_store_and_makes_weights_anew_where_they_are_gone(
    tmp_path: Path, store: Store
) -> None:
    work = Probing(run=TINY, probe=SMOKE.probe)
    result = do(work, store, ONE_CORE)
    base = store.result(key(Pretraining(run=TINY)))
    assert base is not None
    assert result.numbers["knn"] == base.numbers["knn"]
    elsewhere = Store(tmp_path / "elsewhere")
    elsewhere.put(base)
    assert do(work, elsewhere, ONE_CORE).numbers == result.numbers


def test_what_was_cut_before_it_was_a_run_is_begun_anew(store: Store) -> None:
    work = Pretraining(run=TINY)
    folder = store.folder(key(work))
    folder.mkdir(parents=True)
    (folder / "env.json").write_text("{")
    assert do(work, store, ONE_CORE).failed is None


def test_all_or_nothing_of_the_data_is_asked_for_before_any_work(tmp_path: Path) -> None:
    far = Pretraining(run=replace(TINY, data="cifar10"))
    also = Streaming(run=replace(SMOKE.split_cifar10, data="cifar100"))
    means = Means(root=str(tmp_path))
    with pytest.raises(
        UserError, match=r"all 2 pieces of work are missing. 'cifar10' was .* 'cifar100' was"
    ) as refused:
        require_data({"a": far, "b": also}, means)
    assert str(refused.value).count("'cifar10' was sought") == 1
    require_data({"a": far, "b": QUICK[0]}, means)
    require_data({"a": far}, replace(means, download=True))
    (tmp_path / "cifar-10-batches-py").mkdir()
    require_data({"a": far, "b": also}, means)
    pictures = replace(SMOKE.detection, pictures=replace(SMOKE.detection.pictures, data="voc:VOCdevkit"))
    with pytest.raises(UserError, match=r"VOC's pictures were sought in '.*VOCdevkit'"):
        require_data({"a": Transferring(run=TINY, detection=pictures)}, means)
    require_data({"a": Transferring(run=TINY, detection=SMOKE.detection)}, means)


def test_a_first_score_that_is_recalled_is_the_one_that_is_judged_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "_JUDGED", {})
    fresh = run(TINY, tmp_path / "fresh").summary
    asked: list[object] = []
    score = Judge.score

    def noted(self: Judge, encoder: nn.Module | None) -> Score:
        asked.append(encoder)
        return score(self, encoder)

    monkeypatch.setattr(Judge, "score", noted)
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
    monkeypatch.setattr(drawn, "TRAIN", 40)
    monkeypatch.setattr(drawn, "TEST", 40)
    home = drawn_voc(tmp_path)
    scenes = read_voc(Pictures(data=f"voc:{home}"))
    assert (len(scenes.train), len(scenes.test), len(scenes.classes)) == (40, 40, 10)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    assert drawn_voc(tmp_path) == home
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
    pixels, things = picture(43)
    scene = scenes.test[3]
    assert (np.asarray(Image.open(scene.path)) == pixels).all()
    assert [(left - 1, top - 1, right, bottom) for _, (left, top, right, bottom) in things] == [
        tuple(box) for box in scene.truth.boxes.tolist()
    ]


def test_a_box_is_as_small_as_it_can_be_around_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """On flat ground, the pixels that a form covers by more than half are those that have more than half its paint."""
    monkeypatch.setattr(drawn, "_ground", lambda dice, side: np.full((side, side, 3), 128, np.float32))
    monkeypatch.setattr(drawn, "NOISE", 0)
    alone = [(pixels, things[0]) for pixels, things in map(picture, range(120)) if len(things) == 1]
    assert len({thing.name for _, thing in alone}) == 10
    for pixels, thing in alone:
        paint = np.abs(pixels.astype(float) - 128).max(-1)
        rows, columns = np.nonzero(paint > paint.max() / 2)
        covered = columns.min() + 1, rows.min() + 1, columns.max() + 1, rows.max() + 1
        assert np.abs(np.subtract(covered, thing.box)).max() <= 1  # colors are whole numbers


@pytest.mark.slow
def test_a_detector_is_transferred_to_drawn_pictures_without_any_download(store: Store) -> None:
    work = Transferring(run=TINY, detection=SMOKE.detection)
    result = do(work, store, ONE_CORE)
    assert result.failed is None
    assert {"ap", "ap50", "ap75"} <= result.numbers.keys()
    store.forget(key(work))
    assert do(work, store, ONE_CORE).numbers == result.numbers


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_very_numbers_that_it_would_have_had(store: Store, tmp_path: Path) -> None:
    work = long_run(epochs=24)
    code = (
        "import sys, json, torch; from pathlib import Path\ntorch.set_num_threads(1)\n"
        "from phinets.config.work import work_from_plain\n"
        "from phinets.reproduce.execute import Means, do\n"
        "from phinets.reproduce.store import Store\n"
        "do(work_from_plain(json.loads(sys.argv[2])), Store(Path(sys.argv[1])), Means(device='cpu', threads=1))"
    )
    plain = json.dumps(Result(work=work).plain()["work"])
    process = subprocess.Popen([*python(code), str(store.root), plain])
    try:
        until(lambda: len(list(store.folder(key(work)).glob("checkpoints/*"))) > 1)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert store.result(key(work)) is None
    torch.set_num_threads(1)
    cut, whole = do(work, store, ONE_CORE), do(work, Store(tmp_path / "whole"), ONE_CORE)
    assert cut.environment.get("resumed")
    timed = "images_per_second"
    assert {**cut.numbers, timed: 0} == {**whole.numbers, timed: 0}
