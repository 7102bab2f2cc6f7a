"""Every table and figure of the paper, re-run in miniature by the same functions as the command."""

from collections.abc import Iterator, Sequence

import pytest

from phinets.config.work import key
from phinets.paper.findings import found
from phinets.paper.targets import TARGETS
from phinets.reproduce.execute import Means
from phinets.reproduce.local import Workers
from phinets.reproduce.reproduce import Onlooker, Unit, all_works, failures, open_works, reproduce
from phinets.reproduce.store import Store
from tests.reproduce.helpers import SMOKE, Notes


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """One process and one store for all targets, which have many runs in common."""
    store = Store(tmp_path_factory.mktemp("paper") / "store")
    with Workers(1, store, Means(device="cpu", threads=1)) as team:
        yield team


class Idle:
    """An engine that must not be needed."""

    def run(self, units: Sequence[Unit], onlooker: Onlooker) -> None:
        raise AssertionError(f"{len(units)} units were to be done again")


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_runs_and_every_cell_has_a_number_or_its_reason(name: str, workers: Workers) -> None:
    target, store = TARGETS[name], workers.store
    works = all_works([target], SMOKE)
    notes = Notes()
    reproduce(open_works(works, store), workers, notes)
    results = store.results(works)
    assert results.keys() == works.keys()
    assert not failures(results)
    filled = found(target, SMOKE, results)
    for table in filled.tables:
        for cell in table.cells:
            reasons = [results[key(work)].health for work in cell.cell.works]
            assert cell.n + reasons.count("diverged") == len(cell.values), (table.table.name, cell.cell.row)
    assert len(filled.claims) == len(target.claims)
    reproduce(open_works(works, store), Idle(), notes)
