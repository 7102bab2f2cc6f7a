"""Work spread over processes of this machine, started once: who dies costs only what it was doing."""

import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Self

from phinets.config.errors import StoppedError, UserError
from phinets.config.result import Result
from phinets.config.work import Work, key
from phinets.reproduce.execute import Means, do
from phinets.reproduce.reproduce import Onlooker, Unit, leave, stoppable
from phinets.reproduce.store import BusyError, Store
from phinets.runtime.process import own_cores, share_cores

READY = "ready"
BUSY = "busy"
PATIENCE = 10.0
"""Seconds that a worker has to go by itself when nothing more will come."""


def default_jobs() -> int:
    """One for each GPU, else one for each core: small encoders learn sooner side by side than on several cores."""
    import torch

    return torch.cuda.device_count() or own_cores()


@dataclass
class Worker:
    """One process, and what it is at."""

    process: SpawnProcess
    pipe: Connection
    unit: Unit | None = None
    left: tuple[Work, ...] = ()
    """Of the unit, in turn; the first is under way."""
    ready: bool = False
    """Whether it waits for a unit."""
    served: bool = False
    """Whether it has ever been ready."""


class Workers:
    """Processes that do units of work, as many at a time as there are of them."""

    def __init__(self, jobs: int, store: Store, means: Means) -> None:
        self.store = store
        self.jobs = jobs
        threads = means.threads or max(1, own_cores() // jobs)
        self.means = replace(means, threads=threads)
        self.team: list[Worker] = []

    def run(self, units: Sequence[Unit], onlooker: Onlooker) -> None:
        """Do all of them; what somebody else is at on the same store is waited for at the end.

        Whoever asks to stop stops the workers first: each keeps a checkpoint of what it is at.
        """
        agenda = Agenda(deque(units), deque())
        with stoppable():
            try:
                while agenda.open or any(worker.left for worker in self.team):
                    self._hire(len(agenda.open) + sum(bool(worker.left) for worker in self.team))
                    self._assign(agenda)
                    for worker in self._heard():
                        self._attend(worker, agenda, onlooker)
            except StoppedError:
                self._stop()
                raise

    def _hire(self, wanted: int) -> None:
        while len(self.team) < min(self.jobs, wanted):
            self.team.append(_started(len(self.team), self.store, self.means))

    def _assign(self, agenda: "Agenda") -> None:
        for worker in self.team:
            if not (worker.ready and agenda.open):
                continue
            others = any(other.left for other in self.team)
            if others and (agenda.next.alone or any(other.unit and other.unit.alone for other in self.team)):
                return
            queue = agenda.fresh or agenda.busy
            try:
                worker.pipe.send((queue[0], queue is agenda.busy))
            except OSError:  # it died while it waited: nothing is lost, and its pipe says so
                worker.ready = False
                continue
            worker.unit = queue.popleft()
            worker.left, worker.ready = worker.unit.works, False

    def _heard(self) -> list[Worker]:
        """Those that have something to say, or are gone."""
        by_pipe = {worker.pipe: worker for worker in self.team}
        return [by_pipe[pipe] for pipe in wait(list(by_pipe)) if isinstance(pipe, Connection)]

    def _attend(self, worker: Worker, agenda: "Agenda", onlooker: Onlooker) -> None:
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            self._bury(worker, agenda, onlooker)
            return
        if said == READY:
            worker.ready, worker.served, worker.unit, worker.left = True, True, None, ()
        elif said == BUSY:
            agenda.busy.append(Unit(worker.left))
        else:
            worker.left = worker.left[1:]
            onlooker.done(said)

    def _bury(self, worker: Worker, agenda: "Agenda", onlooker: Onlooker) -> None:
        """Note what a dead worker was doing as failed; what it had not begun is for another."""
        worker.process.join()
        self.team.remove(worker)
        if not worker.served:
            self._do_with_fewer(worker.process.exitcode)
        if not worker.left:
            return
        first, *rest = worker.left
        result = self.store.result(key(first))
        if result is None:
            why = f"its process {_end(worker.process.exitcode)} before it was done."
            result = Result(work=first, failed=why)
            self.store.put(result)
        onlooker.done(result)
        if rest:
            agenda.fresh.appendleft(Unit(tuple(rest)))

    def _do_with_fewer(self, code: int | None) -> None:
        """Where a process could not start, there may be no room for so many; where it was the only one, give up."""
        if self.jobs == 1:
            raise UserError(f"a worker process could not start: it {_end(code)}.")
        self.jobs -= 1

    def _stop(self) -> None:
        """Tell all workers to stop, and wait until they have; whoever asks again is obeyed at once."""
        for worker in self.team:
            if worker.process.is_alive():
                worker.process.terminate()
        try:
            for worker in self.team:
                worker.process.join()
        finally:
            for worker in self.team:
                worker.process.kill()
                worker.pipe.close()
            self.team = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.team:
            worker.pipe.close()  # which says that nothing more will come
        for worker in self.team:
            worker.process.join(PATIENCE)
        self._stop()


@dataclass(frozen=True, slots=True)
class Agenda:
    """What is still to be done."""

    fresh: deque[Unit]
    busy: deque[Unit]
    """What somebody else was at when it was our turn."""

    @property
    def open(self) -> tuple[Unit, ...]:
        """All of it."""
        return (*self.fresh, *self.busy)

    @property
    def next(self) -> Unit:
        """What comes next."""
        return (self.fresh or self.busy)[0]


def _started(place: int, store: Store, means: Means) -> Worker:
    share_cores()
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, store, means, place), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def _serve(pipe: Connection, store: Store, means: Means, place: int) -> None:
    """A worker's life: units until nobody sends any more."""
    signal.signal(signal.SIGTERM, leave)
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the parent, which passes it on once
    warnings.formatwarning = lambda message, *where: f"phinets: note: {message}\n"
    threading.Thread(target=_follow_parent, daemon=True).start()
    means = _own_device(means, place)
    try:
        while True:
            pipe.send(READY)
            unit, patient = pipe.recv()
            _do_in_turn(unit, pipe, store, means, patient)
    except (EOFError, OSError):
        pass
    except StoppedError as stopped:
        os._exit(stopped.exit_code)


def _do_in_turn(unit: Unit, pipe: Connection, store: Store, means: Means, patient: bool) -> None:
    for work in unit.works:
        try:
            pipe.send(do(work, store, means, patient=patient))
        except BusyError:
            pipe.send(BUSY)
            return


def _own_device(means: Means, place: int) -> Means:
    """One of several GPUs for each worker, where nobody said which."""
    import torch

    torch.set_num_threads(means.threads or 1)
    if means.device not in ("auto", "cuda") or torch.cuda.device_count() < 2:
        return means
    return replace(means, device=f"cuda:{place % torch.cuda.device_count()}")


def _follow_parent() -> None:
    """Stop as if told to when the parent is no more."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _end(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed ({name}{', perhaps for want of memory' if name == 'SIGKILL' else ''})"
