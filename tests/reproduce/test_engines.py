"""Who does the work: processes of this machine, and a Ray cluster. Whoever dies, everything else is done."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from phinets.config.errors import StoppedError, UserError
from phinets.config.jobs import CostJob, ProbeJob, Result
from phinets.reproduce import engines
from phinets.reproduce.engines import LocalEngine, RayEngine, run_remote_unit
from phinets.reproduce.execute import Resources
from phinets.reproduce.schedule import Unit, build_units
from phinets.reproduce.store import Store
from tests.reproduce.helpers import PROBE, QUICK, TINY, Recorder, by_key, long_run, steps_of, until

ONE_CORE = Resources(device="cpu", threads=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_own_work_and_what_needs_it_but_nothing_else(store: Store) -> None:
    long = long_run(epochs=10_000)
    probing = ProbeJob(run=long.run, probe=PROBE)
    jobs = by_key(long, probing, *QUICK)
    killed: list[int] = []

    def kill(result: Result) -> None:
        (victim,) = (worker for worker in workers.workers if worker.pending and worker.pending[0] == long)
        if not killed:
            until(lambda: steps_of(store.folder(long.key)) > 3)
            killed.append(victim.process.pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    with LocalEngine(2, store, ONE_CORE) as workers:
        notes = Recorder(then=lambda result: kill(result) if not killed else None)
        workers.run(build_units(jobs), notes)
    results = store.results(jobs)
    assert sorted(result.key for result in notes.results) == sorted(jobs)
    assert results.keys() == jobs.keys()
    assert "SIGKILL" in str(results[long.key].failed)
    assert "requires failed: its process was killed" in str(results[probing.key].failed)
    assert all(results[job.key].failed is None for job in QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_stopped_keeps_checkpoints_and_leaves_no_process(store: Store, number: signal.Signals) -> None:
    long = long_run(epochs=10_000)
    jobs = by_key(long, QUICK[0])
    processes: list[SpawnProcess] = []

    def stop(result: Result) -> None:
        until(lambda: steps_of(store.folder(long.key)) > 3)
        processes.extend(worker.process for worker in workers.workers)
        os.kill(os.getpid(), number)

    with LocalEngine(2, store, ONE_CORE) as workers:
        with pytest.raises(StoppedError, match=number.name) as stopped:
            workers.run(build_units(jobs), Recorder(then=stop))
        assert stopped.value.exit_code == 128 + number
        assert [process.is_alive() for process in processes] == [False, False]
        workers.run([Unit((QUICK[1],))], Recorder())  # others take their place
    assert store.result(QUICK[1].key) is not None
    assert store.results(jobs).keys() == {QUICK[0].key}
    assert list((store.folder(long.key) / "checkpoints").iterdir())


@pytest.mark.slow
def test_what_is_measured_has_the_machine_for_itself_and_workers_serve_more_than_once(store: Store) -> None:
    costing = CostJob(run=TINY, methods=("simsiam", "phinet"), rounds=1)
    beside: list[int] = []

    class Watched(LocalEngine):
        def _assign(self, queue: engines.Queue) -> None:
            super()._assign(queue)
            if any(worker.unit is not None and worker.unit.exclusive for worker in self.workers):
                beside.append(sum(bool(worker.pending) for worker in self.workers))

    with Watched(2, store, ONE_CORE) as workers:
        workers.run([Unit((long_run(epochs=80),)), Unit((costing,)), *(Unit((job,)) for job in QUICK[:3])], Recorder())
        first = [worker.process.pid for worker in workers.workers]
        workers.run([Unit((QUICK[5],))], Recorder())
        assert [worker.process.pid for worker in workers.workers] == first
        for worker in workers.workers:  # who dies while there is nothing to do is replaced
            worker.process.kill()
            worker.process.join()
        workers.run([Unit((QUICK[6],))], Recorder())
    assert beside
    assert set(beside) == {1}
    done = store.results(by_key(costing, QUICK[5], QUICK[6]))
    assert [result.failed for result in done.values()] == [None] * 3


@pytest.mark.slow
def test_what_another_is_at_comes_last_and_is_then_waited_for(store: Store) -> None:
    held, order = threading.Event(), list[str]()
    let_go = threading.Event()

    def hold() -> None:
        with store.lock(QUICK[0].key, wait=False):
            held.set()
            let_go.wait(300)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(300)

    def note(result: Result) -> None:
        order.append(result.key)
        if len(order) == 3:
            let_go.set()

    with LocalEngine(1, store, ONE_CORE) as workers:
        workers.run([Unit((job,)) for job in QUICK[:4]], Recorder(then=note))
    other.join()
    assert order == [job.key for job in (*QUICK[1:4], QUICK[0])]


@pytest.mark.slow
def test_a_worker_that_can_t_start_is_said_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_serve", _exit_at_once)
    with LocalEngine(1, store, ONE_CORE) as workers, pytest.raises(UserError, match="could not start: it ended"):
        workers.run([Unit((QUICK[0],))], Recorder())
    assert not store.results([QUICK[0].key])


def _exit_at_once(*given: object) -> None:
    os._exit(7)


def test_the_cores_are_shared_among_the_workers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "own_cores", lambda: 8)
    assert [LocalEngine(count, store, Resources()).resources.threads for count in (1, 3, 8, 20)] == [8, 2, 1, 1]
    assert LocalEngine(3, store, Resources(threads=5)).resources.threads == 5


def test_ray_is_asked_for_only_where_it_is_needed_and_how_to_get_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(engines, "import_module", none)
    with pytest.raises(UserError, match=r'pip install "phinets\[ray\]"'):
        RayEngine(None, None, store, ONE_CORE)


class FakeRay:
    """A Ray that only notes how it is started; `error` is raised then."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.events = error, list[object]()

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: object) -> None:
        self.events.append(options)
        if self.error is not None:
            raise self.error

    def shutdown(self) -> None:
        self.events.append("shutdown")


@pytest.fixture
def listener() -> Iterator[str]:
    """The address of a socket that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("own", [True, False])
def test_a_cluster_is_started_here_or_joined_by_its_address_and_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, listener: str, own: bool
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray = FakeRay()
    monkeypatch.setattr(engines, "import_module", lambda name: ray)
    with RayEngine(None if own else listener, 3, store, ONE_CORE)._connection():
        pass
    options, end = ray.events
    assert isinstance(options, dict)
    assert options["address"] == ("local" if own else listener), "never another one that happens to run on this machine"
    assert options.get("num_cpus") == (3 if own else None)
    assert end == "shutdown"


def test_a_cluster_that_does_not_start_or_answer_is_a_user_error(
    store: Store, monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray = FakeRay(Exception("The current node timed out during startup."))
    monkeypatch.setattr(engines, "import_module", lambda name: ray)
    for address, calls in ((None, 1), (listener, 2), ("127.0.0.1:1", 2)):
        with pytest.raises(UserError, match=address or "this machine"):
            RayEngine(address, 1, store, ONE_CORE).run([], Recorder())
        assert len(ray.events) == calls, "Ray is not called where nothing listens"


PATIENT_RAY = {
    "RAY_memory_monitor_refresh_ms": "0",  # it kills workers when other programs use the machine's memory
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_worker_register_timeout_seconds": "300",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One worker on this machine; skips where Ray itself can't start."""
    patch = pytest.MonkeyPatch()
    patch.delenv("RAY_ADDRESS", raising=False)
    for name, value in PATIENT_RAY.items():
        patch.setenv(name, value)
    ray = pytest.importorskip("ray")
    try:
        ray.init(num_cpus=1, log_to_driver=False, **engines.NEW_CLUSTER)
    except Exception as error:
        pytest.skip(f"Ray can't start a cluster here: {error}")
    yield
    ray.shutdown()
    patch.undo()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_cluster_restarts_the_unit_of_a_killed_worker(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of the long run kills itself at its second checkpoint; another one resumes from the first."""
    long = long_run(epochs=6)
    probing = ProbeJob(run=long.run, probe=PROBE)
    jobs = by_key(long, probing, QUICK[0])
    checkpoints, mark = str(store.folder(long.key).absolute() / "checkpoints"), str(store.root.absolute() / "killed")

    def run_and_die_once(unit: Unit, root: str, resources: Resources) -> list[dict[str, Any]]:
        renames: list[str] = []

        def die_once(event: str, args: tuple[Any, ...]) -> None:
            if event == "os.rename" and os.path.dirname(args[1]) == checkpoints:
                renames.append(args[1])
                if len(renames) == 2 and not os.path.exists(mark):
                    open(mark, "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die_once)
        return run_remote_unit(unit, root, resources)

    monkeypatch.setattr(engines, "run_remote_unit", run_and_die_once)
    notes = Recorder()
    RayEngine(None, None, store, ONE_CORE).run(build_units(jobs), notes)
    assert Path(mark).exists(), "a worker was killed"
    results = store.results(jobs)
    assert sorted(result.key for result in notes.results) == sorted(jobs)
    assert {name: result.failed for name, result in results.items()} == dict.fromkeys(jobs)
    assert results[long.key].environment["resumed"], "another worker resumed from its checkpoint"


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_what_a_cluster_loses_again_and_again_has_failed_with_its_reason(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "RETRIES", 1)
    monkeypatch.setattr(engines, "run_remote_unit", lambda unit, root, resources: os._exit(9))
    notes = Recorder()
    store.put(Result(job=QUICK[0], numbers={"a": 1.0}))
    RayEngine(None, None, store, ONE_CORE).run([Unit((QUICK[0], QUICK[1]))], notes)
    assert [result.failed is None for result in notes.results] == [True, False], "what was put before it died counts"
    assert "was lost 2 times" in str(store.results([QUICK[1].key])[QUICK[1].key].failed)
