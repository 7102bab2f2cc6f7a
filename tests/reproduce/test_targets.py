"""Every table and figure of the paper, re-run in miniature by the same functions as the command."""

from collections.abc import Iterator, Sequence

import pytest

from phinets.paper.findings import target_result
from phinets.paper.targets import TARGETS
from phinets.reproduce.engines import LocalEngine
from phinets.reproduce.execute import Resources
from phinets.reproduce.schedule import JobCallback, Unit, all_jobs, failures, missing_jobs, reproduce
from phinets.reproduce.store import Store
from tests.reproduce.helpers import SMOKE, Recorder


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    """One process and one store for all targets, which have many runs in common."""
    store = Store(tmp_path_factory.mktemp("paper") / "store")
    with LocalEngine(1, store, Resources(device="cpu", threads=1)) as team:
        yield team


class Idle:
    """An engine that must not be needed."""

    def run(self, units: Sequence[Unit], callback: JobCallback) -> None:
        raise AssertionError(f"{len(units)} units were to be done again")


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_runs_and_every_cell_has_a_number_or_its_reason(name: str, workers: LocalEngine) -> None:
    target, store = TARGETS[name], workers.store
    jobs = all_jobs([target], SMOKE)
    notes = Recorder()
    reproduce(missing_jobs(jobs, store), workers, notes)
    results = store.results(jobs)
    assert results.keys() == jobs.keys()
    assert not failures(results)
    filled = target_result(target, SMOKE, results)
    for table in filled.tables:
        for cell in table.cells:
            reasons = [results[job.key].health for job in cell.cell.jobs]
            assert cell.n + reasons.count("diverged") == len(cell.values), (table.table.name, cell.cell.row)
    assert len(filled.claims) == len(target.claims)
    reproduce(missing_jobs(jobs, store), Idle(), notes)
