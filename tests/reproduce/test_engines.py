"""Who does the work: processes of this machine, and a Ray cluster. Whoever dies, everything else is done."""

import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from phinets.config.errors import StoppedError, UserError
from phinets.config.result import Result
from phinets.config.work import Costing, Probing, key
from phinets.reproduce import local, ray_cluster
from phinets.reproduce.execute import Means
from phinets.reproduce.local import Workers
from phinets.reproduce.ray_cluster import RayCluster
from phinets.reproduce.reproduce import Unit, units
from phinets.reproduce.store import Store
from tests.reproduce.helpers import QUICK, SMOKE, TINY, Notes, by_key, long_run, steps_of, until

ONE_CORE = Means(device="cpu", threads=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_own_work_and_what_needs_it_but_nothing_else(store: Store) -> None:
    long = long_run(epochs=10_000)
    probing = Probing(run=long.run, probe=SMOKE.probe)
    works = by_key(long, probing, *QUICK)
    killed: list[int] = []

    def kill(result: Result) -> None:
        (victim,) = (worker for worker in workers.team if worker.left and worker.left[0] == long)
        if not killed:
            until(lambda: steps_of(store.folder(key(long))) > 3)
            killed.append(victim.process.pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    with Workers(2, store, ONE_CORE) as workers:
        notes = Notes(then=lambda result: kill(result) if not killed else None)
        workers.run(units(works), notes)
    results = store.results(works)
    assert sorted(result.key for result in notes.results) == sorted(works)
    assert results.keys() == works.keys()
    assert "was killed (SIGKILL" in str(results[key(long)].failed)
    assert "begins with has failed: its process was killed" in str(results[key(probing)].failed)
    assert all(results[key(work)].failed is None for work in QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_stopped_keeps_checkpoints_and_leaves_no_process(store: Store, number: signal.Signals) -> None:
    long = long_run(epochs=10_000)
    works = by_key(long, QUICK[0])
    processes: list[SpawnProcess] = []

    def stop(result: Result) -> None:
        until(lambda: steps_of(store.folder(key(long))) > 3)
        processes.extend(worker.process for worker in workers.team)
        os.kill(os.getpid(), number)

    with Workers(2, store, ONE_CORE) as workers:
        with pytest.raises(StoppedError, match=f"{number.name}.*goes on") as stopped:
            workers.run(units(works), Notes(then=stop))
        assert stopped.value.exit_code == 128 + number
        assert [process.is_alive() for process in processes] == [False, False]
        workers.run([Unit((QUICK[1],))], Notes())  # others take their place
    assert store.result(key(QUICK[1])) is not None
    assert store.results(works).keys() == {key(QUICK[0])}
    assert list((store.folder(key(long)) / "checkpoints").iterdir())


@pytest.mark.slow
def test_what_is_measured_has_the_machine_for_itself_and_workers_serve_more_than_once(store: Store) -> None:
    costing = Costing(run=TINY, methods=("simsiam", "phinet"), rounds=1)
    beside: list[int] = []

    class Watched(Workers):
        def _assign(self, agenda: local.Agenda) -> None:
            super()._assign(agenda)
            if any(worker.unit is not None and worker.unit.alone for worker in self.team):
                beside.append(sum(bool(worker.left) for worker in self.team))

    with Watched(2, store, ONE_CORE) as workers:
        workers.run([Unit((long_run(epochs=80),)), Unit((costing,)), *(Unit((work,)) for work in QUICK[:3])], Notes())
        first = [worker.process.pid for worker in workers.team]
        workers.run([Unit((QUICK[5],))], Notes())
        assert [worker.process.pid for worker in workers.team] == first
        for worker in workers.team:  # who dies while there is nothing to do is replaced
            worker.process.kill()
            worker.process.join()
        workers.run([Unit((QUICK[6],))], Notes())
    assert beside
    assert set(beside) == {1}
    done = store.results(by_key(costing, QUICK[5], QUICK[6]))
    assert [result.failed for result in done.values()] == [None] * 3


@pytest.mark.slow
def test_what_another_is_at_comes_last_and_is_then_waited_for(store: Store) -> None:
    held, order = threading.Event(), list[str]()
    let_go = threading.Event()

    def hold() -> None:
        with store.claimed(key(QUICK[0]), patient=False):
            held.set()
            let_go.wait(300)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(300)

    def note(result: Result) -> None:
        order.append(result.key)
        if len(order) == 3:
            let_go.set()

    with Workers(1, store, ONE_CORE) as workers:
        workers.run([Unit((work,)) for work in QUICK[:4]], Notes(then=note))
    other.join()
    assert order == [key(work) for work in (*QUICK[1:4], QUICK[0])]


@pytest.mark.slow
def test_a_worker_that_can_t_start_is_said_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_serve", _dead_on_arrival)
    with Workers(1, store, ONE_CORE) as workers, pytest.raises(UserError, match="could not start: it ended"):
        workers.run([Unit((QUICK[0],))], Notes())
    assert not store.results([key(QUICK[0])])


def _dead_on_arrival(*given: object) -> None:
    os._exit(7)


def test_the_cores_are_shared_among_the_workers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "own_cores", lambda: 8)
    assert [Workers(jobs, store, Means()).means.threads for jobs in (1, 3, 8, 20)] == [8, 2, 1, 1]
    assert Workers(3, store, Means(threads=5)).means.threads == 5


def test_ray_is_asked_for_only_where_it_is_needed_and_how_to_get_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(ray_cluster, "import_module", none)
    with pytest.raises(UserError, match=r'pip install "phinets\[ray\]"'):
        RayCluster(None, None, store, ONE_CORE)


@pytest.fixture
def cluster() -> Iterator[object]:
    """Two workers on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, object_store_memory=100_000_000, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.mark.slow
def test_a_cluster_does_again_elsewhere_what_a_killed_worker_was_at(cluster: object, store: Store) -> None:
    """The worker that is at the run is killed once, in the middle; its work begins again and comes to its end."""
    long = long_run(epochs=12)
    probing = Probing(run=long.run, probe=SMOKE.probe)
    works = by_key(long, probing, *QUICK[:3])
    killed: list[int] = []
    killer = threading.Thread(target=lambda: killed.append(_killed_once(store.folder(key(long)))))
    killer.start()
    notes = Notes()
    RayCluster(None, 2, store, ONE_CORE).run(units(works), notes)
    killer.join()
    assert killed[0] > 0
    results = store.results(works)
    assert sorted(result.key for result in notes.results) == sorted(works)
    assert {name: result.failed for name, result in results.items()} == dict.fromkeys(works)
    assert results[key(long)].environment["resumed"], "another worker went on from its checkpoint"


def _killed_once(folder: Path) -> int:
    """The process that was at a run when it had made some steps, dead now."""
    until(lambda: len(list(folder.glob("checkpoints/*"))) > 0, seconds=110)
    (worker,) = (pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _has_open(pid, folder))
    os.kill(worker, signal.SIGKILL)
    return worker


def _has_open(pid: int, folder: Path) -> bool:
    try:
        return any(os.readlink(link) == str(folder) for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


@pytest.mark.slow
def test_what_a_cluster_loses_again_and_again_has_failed_with_its_reason(
    cluster: object, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "RETRIES", 1)
    monkeypatch.setattr(ray_cluster, "done_far_away", lambda unit, root, means: os._exit(9))
    notes = Notes()
    store.put(Result(work=QUICK[0], numbers={"a": 1.0}))
    RayCluster(None, 2, store, ONE_CORE).run([Unit((QUICK[0], QUICK[1]))], notes)
    assert [result.failed is None for result in notes.results] == [True, False], "what was put before it died counts"
    assert "was lost 2 times" in str(store.results([key(QUICK[1])])[key(QUICK[1])].failed)
