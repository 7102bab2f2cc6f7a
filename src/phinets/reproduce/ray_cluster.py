"""Work spread over a Ray cluster: whose worker dies is done again elsewhere."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from phinets.config.errors import StoppedError, UserError
from phinets.config.result import Result, result_from_plain
from phinets.config.work import key
from phinets.reproduce.execute import Means, do
from phinets.reproduce.reproduce import Onlooker, Unit, stoppable
from phinets.reproduce.store import Store
from phinets.runtime.process import own_cores, share_cores

RETRIES = 3
"""How often a unit is begun again whose worker died, before it counts as failed."""


class RayCluster:
    """The workers of a Ray cluster; where none is named, one of this machine's cores is made for the time being.

    Results come back as plain values, since workers may share no file system with us; where they do, they go on from
    each other's checkpoints.
    """

    def __init__(self, address: str | None, jobs: int | None, store: Store, means: Means) -> None:
        self.ray = _imported()
        self.address = address or os.environ.get("RAY_ADDRESS")
        self.jobs, self.store, self.means = jobs, store, means

    def run(self, units: Sequence[Unit], onlooker: Onlooker) -> None:
        """All of them at once, but what measures time or memory, which comes last and one by one."""
        with stoppable(), self._joined():
            self._carry_out([unit for unit in units if not unit.alone], onlooker)
            for unit in units:
                if unit.alone:
                    self._carry_out([unit], onlooker)

    @contextmanager
    def _joined(self) -> Iterator[None]:
        """Be a driver of the cluster."""
        if self.ray.is_initialized():
            yield
            return
        share_cores()
        own: dict[str, Any] = {} if self.address else {"num_cpus": self.jobs or own_cores(), "include_dashboard": False}
        try:
            self.ray.init(address=self.address, log_to_driver=False, logging_level="error", **own)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"there is no Ray cluster at '{self.address}': {str(error).splitlines()[0]} Start one with `ray start "
                "--head`, or leave out --address for one on this machine."
            ) from error
        try:
            yield
        finally:
            self.ray.shutdown()

    def _carry_out(self, units: Sequence[Unit], onlooker: Onlooker) -> None:
        gpus = 1 if self.means.device != "cpu" and self.ray.cluster_resources().get("GPU") else 0
        threads = self.means.threads or 1
        far = self.ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=RETRIES)(done_far_away)
        means, root = replace(self.means, threads=threads), str(self.store.root.absolute())
        waited = {far.remote(unit, root, means): unit for unit in units}
        while waited:
            (ready,), _ = self.ray.wait(list(waited), num_returns=1)
            for result in self._results(ready, waited.pop(ready)):
                self.store.put(result)
                onlooker.done(result)

    def _results(self, ready: Any, unit: Unit) -> list[Result]:
        """What a unit came to; what a cluster could not do has failed with the cluster's reason."""
        try:
            return [result_from_plain(plain) for plain in self.ray.get(ready)]
        except self.ray.exceptions.RayError as error:
            known = self.store.results(key(work) for work in unit.works)
            why = f"its worker on the Ray cluster was lost {RETRIES + 1} times: {error}"
            return [known.get(key(work)) or Result(work=work, failed=why) for work in unit.works]


def done_far_away(unit: Unit, root: str, means: Means) -> list[dict[str, Any]]:
    """A unit, done by a worker of the cluster in a store at the same place: ours, where the file system is shared."""
    store = Store(Path(root))
    try:
        return [do(work, store, means).plain() for work in unit.works]
    except StoppedError as stopped:  # the worker is taken away: another one goes on
        os._exit(stopped.exit_code)


def _imported() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise UserError('--engine ray needs Ray, which is not installed: pip install "phinets[ray]".') from None
