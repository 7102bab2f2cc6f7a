"""Engines that run jobs: worker processes on this machine, or a Ray cluster."""

import os
import signal
import socket
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Self

from phinets.config.errors import StoppedError, UserError
from phinets.config.jobs import Job, Result, result_from_plain
from phinets.reproduce.execute import Resources, run_job
from phinets.reproduce.schedule import JobCallback, Unit, interruptible, raise_stopped
from phinets.reproduce.store import BusyError, Store
from phinets.runtime.process import own_cores, share_cores

READY, BUSY = "ready", "busy"
GRACE = 10.0
"""Seconds that an idle worker has to end by itself."""
RETRIES = 3
"""How often Ray restarts a unit whose worker died, before it counts as failed."""
ANSWER_SECONDS = 30.0
"""How long a cluster may take to accept a connection."""
NEW_CLUSTER: Mapping[str, Any] = {"address": "local", "include_dashboard": False, "object_store_memory": 100_000_000}
"""Arguments of `ray.init` for a cluster on this machine. Results are small; Ray would reserve a third of the memory."""


def default_workers() -> int:
    """One for each GPU, else one for each core: small encoders train faster side by side than on several cores."""
    import torch

    return torch.cuda.device_count() or own_cores()


@dataclass
class Worker:
    """One process, and the jobs that it has."""

    process: SpawnProcess
    pipe: Connection
    unit: Unit | None = None
    pending: tuple[Job, ...] = ()
    """Of the unit, in order; the first one is running."""
    ready: bool = False
    """Whether it waits for a unit."""
    served: bool = False
    """Whether it has ever been ready."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Units that no worker has."""

    fresh: deque[Unit]
    busy: deque[Unit]
    """Units that another process was running when their turn came."""

    @property
    def units(self) -> tuple[Unit, ...]:
        """All of them."""
        return (*self.fresh, *self.busy)


class LocalEngine:
    """Worker processes of this machine. A worker that dies costs only the job that it was running."""

    def __init__(self, max_workers: int, store: Store, resources: Resources) -> None:
        self.store = store
        self.max_workers = max_workers
        threads = resources.threads or max(1, own_cores() // max_workers)
        self.resources = replace(resources, threads=threads)
        self.workers: list[Worker] = []

    def run(self, units: Sequence[Unit], callback: JobCallback) -> None:
        """Run all units; those that another process runs on the same store are waited for at the end.

        An interrupt stops the workers first: each writes a checkpoint.
        """
        queue = Queue(deque(units), deque())
        with interruptible():
            try:
                while needed := len(queue.units) + sum(bool(worker.pending) for worker in self.workers):
                    while len(self.workers) < min(self.max_workers, needed):
                        self.workers.append(_start_worker(len(self.workers), self.store, self.resources))
                    self._assign(queue)
                    for worker in self._with_message():
                        self._handle(worker, queue, callback)
            except StoppedError:
                self._stop()
                raise

    def _assign(self, queue: Queue) -> None:
        for worker in self.workers:
            if not (worker.ready and queue.units):
                continue
            running = [other for other in self.workers if other.pending]
            if running and (queue.units[0].exclusive or any(other.unit and other.unit.exclusive for other in running)):
                return
            source = queue.fresh or queue.busy
            try:
                worker.pipe.send((source[0], source is queue.busy))
            except OSError:  # it died while it waited: nothing is lost, and its pipe says so
                worker.ready = False
                continue
            worker.unit = source.popleft()
            worker.pending, worker.ready = worker.unit.jobs, False

    def _with_message(self) -> list[Worker]:
        """Workers that sent something or died."""
        by_pipe = {worker.pipe: worker for worker in self.workers}
        return [by_pipe[pipe] for pipe in wait(list(by_pipe)) if isinstance(pipe, Connection)]

    def _handle(self, worker: Worker, queue: Queue, callback: JobCallback) -> None:
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            self._remove(worker, queue, callback)
            return
        if message == READY:
            worker.ready, worker.served, worker.unit, worker.pending = True, True, None, ()
        elif message == BUSY:
            queue.busy.append(Unit(worker.pending))
        else:
            worker.pending = worker.pending[1:]
            callback.on_result(message)

    def _remove(self, worker: Worker, queue: Queue, callback: JobCallback) -> None:
        """Record the job of a dead worker as failed; another worker gets the rest of its unit."""
        worker.process.join()
        self.workers.remove(worker)
        if not worker.served:
            self._reduce(worker.process.exitcode)
        if not worker.pending:
            return
        first, *rest = worker.pending
        result = self.store.result(first.key)
        if result is None:
            why = f"its process {_describe_end(worker.process.exitcode)} before it was done."
            result = Result(job=first, failed=why)
            self.store.put(result)
        callback.on_result(result)
        if rest:
            queue.fresh.appendleft(Unit(tuple(rest)))

    def _reduce(self, code: int | None) -> None:
        """A process could not start: try with fewer, which need less memory; without any, give up."""
        if self.max_workers == 1:
            raise UserError(f"a worker process could not start: it {_describe_end(code)}.")
        self.max_workers -= 1

    def _stop(self) -> None:
        """Stop all workers and wait for them; a second interrupt kills them."""
        for worker in self.workers:
            if worker.process.is_alive():
                worker.process.terminate()
        try:
            for worker in self.workers:
                worker.process.join()
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.pipe.close()
            self.workers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.pipe.close()  # tells it that nothing more will come
        for worker in self.workers:
            worker.process.join(GRACE)
        self._stop()


def _start_worker(index: int, store: Store, resources: Resources) -> Worker:
    share_cores()
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, store, resources, index), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def _serve(pipe: Connection, store: Store, resources: Resources, index: int) -> None:
    """The main function of a worker: runs units until the pipe closes."""
    signal.signal(signal.SIGTERM, raise_stopped)
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the parent, which passes it on once
    warnings.formatwarning = lambda message, *where: f"phinets: note: {message}\n"
    threading.Thread(target=_follow_parent, daemon=True).start()
    resources = _with_own_device(resources, index)
    try:
        while True:
            pipe.send(READY)
            unit, wait_for_others = pipe.recv()
            _run_unit(unit, pipe, store, resources, wait_for_others)
    except (EOFError, OSError):
        pass
    except StoppedError as stopped:
        os._exit(stopped.exit_code)


def _run_unit(unit: Unit, pipe: Connection, store: Store, resources: Resources, wait_for_others: bool) -> None:
    for job in unit.jobs:
        try:
            pipe.send(run_job(job, store, resources, wait=wait_for_others))
        except BusyError:
            pipe.send(BUSY)
            return


def _with_own_device(resources: Resources, index: int) -> Resources:
    """One of several GPUs for each worker, unless a device is set."""
    import torch

    torch.set_num_threads(resources.threads or 1)
    if resources.device not in ("auto", "cuda") or torch.cuda.device_count() < 2:
        return resources
    return replace(resources, device=f"cuda:{index % torch.cuda.device_count()}")


def _follow_parent() -> None:
    """Stop when the parent ends."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _describe_end(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed ({name}{', perhaps out of memory' if name == 'SIGKILL' else ''})"


class RayEngine:
    """The workers of a Ray cluster; without an address, a temporary cluster on this machine.

    A unit whose worker dies is restarted elsewhere. Results come back as plain values, since workers may share no file
    system with us. Where they do, a restarted job resumes from its checkpoint.
    """

    def __init__(self, address: str | None, max_workers: int | None, store: Store, resources: Resources) -> None:
        self.ray = _import_ray()
        self.address = address or os.environ.get("RAY_ADDRESS")
        self.max_workers, self.store, self.resources = max_workers, store, resources

    def run(self, units: Sequence[Unit], callback: JobCallback) -> None:
        """Run all units at once; exclusive ones come last, one by one."""
        with interruptible(), self._connection():
            self._run_side_by_side([unit for unit in units if not unit.exclusive], callback)
            for unit in units:
                if unit.exclusive:
                    self._run_side_by_side([unit], callback)

    @contextmanager
    def _connection(self) -> Iterator[None]:
        """Be a driver of the cluster."""
        if self.ray.is_initialized():
            yield
            return
        share_cores()
        new_cluster = {"num_cpus": self.max_workers or own_cores(), **NEW_CLUSTER}  # whatever others run here
        try:
            _require_listener(self.address)
            cluster = {"address": self.address} if self.address else new_cluster
            self.ray.init(log_to_driver=False, logging_level="error", **cluster)
        except Exception as error:  # Ray raises many kinds, plain Exception for a node that is slow to start
            raise UserError(self._explain(error)) from error
        try:
            yield
        finally:
            self.ray.shutdown()

    def _explain(self, error: Exception) -> str:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".") + "."
        if not self.address:
            return f"Ray could not start on this machine: {reason} Try again, or leave out --engine ray."
        cure = "Start one with `ray start --head`, or leave out --address for one on this machine."
        return f"there is no Ray cluster at '{self.address}': {reason} {cure}"

    def _run_side_by_side(self, units: Sequence[Unit], callback: JobCallback) -> None:
        gpus = 1 if self.resources.device != "cpu" and self.ray.cluster_resources().get("GPU") else 0
        threads = self.resources.threads or 1
        remote = self.ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=RETRIES)(run_remote_unit)
        resources, root = replace(self.resources, threads=threads), str(self.store.root.absolute())
        futures = {remote.remote(unit, root, resources): unit for unit in units}
        while futures:
            (ready,), _ = self.ray.wait(list(futures), num_returns=1)
            for result in self._results(ready, futures.pop(ready)):
                self.store.put(result)
                callback.on_result(result)

    def _results(self, ready: Any, unit: Unit) -> list[Result]:
        """The results of a unit; where the cluster lost it, failures with the cluster's reason."""
        try:
            return [result_from_plain(plain) for plain in self.ray.get(ready)]
        except self.ray.exceptions.RayError as error:
            stored = self.store.results(job.key for job in unit.jobs)
            why = f"its worker on the Ray cluster was lost {RETRIES + 1} times: {error}"
            return [stored.get(job.key) or Result(job=job, failed=why) for job in unit.jobs]


def run_remote_unit(unit: Unit, root: str, resources: Resources) -> list[dict[str, Any]]:
    """Run a unit on a worker of the cluster, in a store at the same path: ours, where the file system is shared."""
    store = Store(Path(root))
    try:
        return [run_job(job, store, resources).plain() for job in unit.jobs]
    except StoppedError as stopped:  # the worker is taken away: Ray restarts the unit
        os._exit(stopped.exit_code)


def _require_listener(address: str | None) -> None:
    """Raise OSError if nothing listens at HOST:PORT: Ray would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()


def _import_ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise UserError('--engine ray needs Ray, which is not installed: pip install "phinets[ray]".') from None
