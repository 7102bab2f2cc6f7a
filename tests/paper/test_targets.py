"""Every table and figure as a grid of work: what the paper ran, at every scale the same way."""

from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError
from phinets.config.jobs import ContinualJob, CostJob, DetectionJob, Job, RunJob
from phinets.config.methods import METHODS
from phinets.config.run import TrainConfig
from phinets.paper.grids import LEARNERS
from phinets.paper.numbers import paper_numbers
from phinets.paper.plan import Table, with_seeds
from phinets.paper.scales import SCALES, Scale, decay_times, scale
from phinets.paper.targets import TARGETS, target
from phinets.reproduce.store import read_result
from phinets.training.schedule import LearningRateSchedule

NAMES = {
    "cifar10-weight-decay-variants", "cifar10-weight-decay-methods", "imagenet-weight-decay", "stl10-early", "cifar5m",
    "split-cifar5m-weight-decay", "cifar5m-weight-decay", "cifar5m-one-epoch", "split-cifar5m-two-epochs",
    "split-cifar5m-mixup", "split-cifar", "ema-beta", "cifar10-ablation", "fast-slow", "imagenet-g", "batch-size-knn",
    "batch-size-linear", "stl10", "voc", "moco-weight-decay", "augmented-anchor", "augmented-anchor-figure", "memory",
    "time", "stable-rank", "dynamics-flow", "dynamics-simsiam", "dynamics-comparison", "code-scale",
}  # fmt: skip


@cache
def tables(name: str, at: str) -> dict[str, Table]:
    return {table.name: table for table in TARGETS[name].tables(scale(at))}


@cache
def all_tables(at: str) -> dict[str, Table]:
    return {name: table for each in TARGETS for name, table in tables(each, at).items()}


@cache
def all_jobs(at: str) -> tuple[Job, ...]:
    return tuple(job for table in all_tables(at).values() for cell in table.cells for job in cell.jobs)


def with_seed(job: Job, value: int) -> Job:
    if not isinstance(job, RunJob):
        return job
    job = replace(job, run=replace(job.run, seed=value))
    if isinstance(job, DetectionJob):
        return replace(job, detection=replace(job.detection, seed=value))
    return job


def test_every_table_and_figure_of_the_paper_has_a_target() -> None:
    assert set(TARGETS) == NAMES


def test_a_name_that_is_none_is_met_with_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'ema-beta'"):
        target("ema")


def test_tables_of_one_name_are_the_same_table() -> None:
    """Two targets may show one table; a claim then compares it with the target's own."""
    for at in SCALES:
        for name in TARGETS:
            for table in tables(name, at).values():
                assert table.cells == all_tables(at)[table.name].cells


def test_a_cell_is_the_same_work_by_each_seed() -> None:
    for name in TARGETS:
        for at in SCALES:
            for table in tables(name, at).values():
                assert len(table.at) == len(table.cells) == len(table.rows) * len(table.columns), table.name
                for cell in table.cells:
                    assert [with_seed(cell.jobs[0], n) for n in range(len(cell.jobs))] == list(cell.jobs)


def test_two_pieces_of_work_have_one_key_only_if_they_are_the_same() -> None:
    for at in SCALES:
        by_key: dict[str, Job] = {}
        for job in all_jobs(at):
            assert by_key.setdefault(job.key, job) == job
        different = {str(job) for job in all_jobs(at)}
        assert len(by_key) == len(different)


@pytest.mark.parametrize("of_paper", yaml.safe_load(files("phinets.paper").joinpath("numbers.yaml").read_text("utf-8")))
def test_the_cells_at_the_paper_s_scale_are_those_that_it_prints_in_its_order(of_paper: str) -> None:
    assert list(all_tables("paper")[of_paper].at) == list(paper_numbers(of_paper))


def test_the_pocket_scale_has_the_paper_s_grid_but_for_weight_decays_between_its_own() -> None:
    decays = {f"{value:g}" for value in SCALES["pocket"].decays}
    for name in TARGETS:
        for table_name, full in tables(name, "paper").items():
            if full.columns_are == "weight decay":
                expected = [place for place in full.at if place[1] in decays]
            else:
                expected = list(full.at)
            by_decay = table_name.rpartition("-")[2]  # tables by batch size have their weight decay in their name
            if full.columns_are == "batch size" and by_decay not in decays:
                assert table_name not in tables(name, "pocket")
            else:
                assert list(tables(name, "pocket")[table_name].at) == expected


def test_the_smoke_scale_has_fewer_settings_and_no_others() -> None:
    for name in TARGETS:
        full = tables(name, "paper")
        for table_name, table in tables(name, "smoke").items():
            assert set(table.at) <= set(full[table_name].at)
            assert table.columns[0] == full[table_name].columns[0]
            assert table.columns[-1] == full[table_name].columns[-1]
            assert table.rows == full[table_name].rows, "every method is run"


def test_who_learns_is_whom_row_or_column_name() -> None:
    for at in SCALES:
        checked = 0
        for table in all_tables(at).values():
            for cell in table.cells:
                name = next((name for name in (cell.row, cell.column) if name in LEARNERS), None)
                if name is None:
                    continue
                for job in cell.jobs:
                    assert isinstance(job, RunJob)
                    checked += 1
                    if isinstance(job, CostJob):
                        assert LEARNERS[name] in job.methods
                        assert cell.measure.startswith(f"{LEARNERS[name]}/")
                    else:
                        assert job.run.method == LEARNERS[name]
        assert checked > 100


def test_every_learner_is_known() -> None:
    assert set(LEARNERS.values()) <= set(METHODS)


def test_weight_decays_and_batch_sizes_are_what_the_tables_say() -> None:
    for at in SCALES:
        said = scale(at)
        for table in all_tables(at).values():
            for cell in table.cells:
                for job in cell.jobs:
                    if table.columns_are == "weight decay":
                        assert isinstance(job, RunJob)
                        assert job.run.optimization.weight_decay == said.weight_decay(job.run, float(cell.column))
                    if table.columns_are == "batch size":
                        assert isinstance(job, RunJob)
                        assert job.run.batch == said.batch(int(cell.column))


def test_weight_decays_are_the_paper_s_own_but_at_the_pocket_scale() -> None:
    for at in ("paper", "smoke"):
        assert scale(at).weight_decay(scale(at).cifar10, 3e-4) == 3e-4


def summed_rates(run: TrainConfig) -> float:
    """Σ lr of a run, step by step, each task from its start."""
    images, streams = run.source.train_images or 0, isinstance(run, ContinualConfig)
    epochs = run.epochs_per_task if isinstance(run, ContinualConfig) else getattr(run, "epochs", 0)
    tasks = 5 if streams else 1
    lr = LearningRateSchedule(
        steps_per_epoch=images // tasks // run.batch,
        epochs=epochs,
        warmup_epochs=run.optimization.warmup_epochs,
        peak_lr=run.peak_lr,
        shape=run.optimization.schedule,
    )
    return tasks * sum(lr.rate(step) for step in range(lr.total))


@pytest.mark.parametrize("value", [1e-5, 1e-4, 5e-4, 1e-3, 2e-3])
def test_pocket_decays_pass_the_decay_times_that_stand_for_them_and_never_turn_weights_too_fast(value: float) -> None:
    at = scale("pocket")
    for run in (at.cifar10, at.cifar5m, at.cifar5m_once, at.split_cifar10, at.split_cifar5m):
        momentum, decay = run.optimization.momentum, at.weight_decay(run, value)
        assert decay * summed_rates(run) / (1 - momentum) == pytest.approx(decay_times(value), rel=0.02)
        rotation = (2 * run.peak_lr * decay / (1 - momentum)) ** 0.5
        assert rotation < (0.031 if value <= 1e-3 else 0.05)


def test_more_decay_of_the_paper_is_more_decay_times() -> None:
    values = [0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3]
    times = [decay_times(value) for value in values]
    assert times == sorted(set(times))
    assert times[0] == 0


def test_only_the_scale_says_how_large_a_run_is() -> None:
    """Whatever a target changes, data, encoder (but for its initialization) and number of images are the scale's."""

    def body(run: TrainConfig) -> tuple[object, ...]:
        return run.data, run.backbone.partition("/")[0], run.source

    for at in SCALES:
        said = scale(at)
        bodies = {body(run) for run in (said.cifar10, said.stl10, said.imagenet, said.cifar5m, said.cifar5m_once)}
        streams = {body(run) for run in (said.split_cifar10, said.split_cifar100, said.split_cifar5m)}
        for job in all_jobs(at):
            if isinstance(job, RunJob):
                assert body(job.run) in (streams if isinstance(job, ContinualJob) else bodies)


def test_one_seed_of_everything_is_done_before_the_second_of_anything() -> None:
    for name in TARGETS:
        jobs = TARGETS[name].jobs(scale("pocket"))
        seeds = [job.seed for job in jobs.values()]
        assert seeds == sorted(seeds)
        place = {each: n for n, each in enumerate(jobs)}
        for each, job in jobs.items():
            first = job.requires
            assert first is None or place[first.key] < place[each], "what is needed comes before what needs it"


def test_more_seeds_only_add_work() -> None:
    for name in TARGETS:
        few, many = (set(TARGETS[name].jobs(with_seeds(scale("pocket"), n))) for n in (1, 3))
        assert few <= many
        assert len(many) == (len(few) if name.startswith("dynamics") else 3 * len(few))


def test_a_key_says_nothing_of_where_and_by_what_work_is_done() -> None:
    kinds = {type(job): job for job in all_jobs("smoke") if isinstance(job, RunJob)}
    assert len(kinds) == 5
    for job in kinds.values():
        run = job.run
        elsewhere = replace(
            run,
            source=replace(run.source, root="/elsewhere", download=True),
            compute=replace(run.compute, device="cuda:1", threads=7),
            saving=replace(run.saving, pictures=False),
        )
        assert replace(job, run=elsewhere).key == job.key
        assert (replace(job, run=replace(run, seed=9))).key != job.key


@pytest.mark.parametrize("name", ["voc", "moco-weight-decay", "imagenet-g"])
def test_what_the_paper_prints_without_a_spread_has_one_seed_there_unless_asked_for_more(name: str) -> None:
    def seeds(at: Scale) -> set[int]:
        return {len(cell.jobs) for table in TARGETS[name].tables(at) for cell in table.cells}

    assert seeds(scale("paper")) == {1}
    assert seeds(with_seeds(scale("paper"), 5)) == {5}
    assert seeds(scale("pocket")) == {scale("pocket").seeds}


def test_where_low_numbers_are_best_the_table_says_so() -> None:
    for table in all_tables("paper").values():
        for cell in table.cells:
            low = "forgetting" in cell.measure or cell.measure.endswith(("gigabytes", "hours_800_epochs"))
            assert table.better is None or (table.better_in(cell.row) == "lower") == low, (table.name, cell.row)


def test_the_committed_records_are_of_the_pocket_scale_as_it_is_now() -> None:
    records = sorted((Path(__file__).parents[2] / "docs" / "results" / "results").glob("*.json"))
    pocket = {name for target in TARGETS.values() for name in target.jobs(SCALES["pocket"])}
    assert records
    assert {read_result(path).key for path in records} <= pocket, "the key is the hash of the settings in the record"
