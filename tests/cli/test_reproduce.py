"""`phinets reproduce`, as a person at a keyboard meets it."""

import csv
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phinets.cli.reproduce.output import Progress, document, duration, write_files
from phinets.config.jobs import Result
from phinets.paper.findings import target_result
from phinets.paper.scales import SCALES, scale
from phinets.paper.targets import TARGETS
from phinets.reproduce.estimate import Estimator, time_group
from phinets.reproduce.execute import Resources, run_job
from phinets.reproduce.schedule import all_jobs
from phinets.reproduce.store import Store
from tests.cli.test_main import said
from tests.page import faking
from tests.reproduce.helpers import QUICK, SMOKE

Capture = pytest.CaptureFixture[str]
TARGET = "dynamics-flow"


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has all of a small target."""
    store = Store(tmp_path_factory.mktemp("reproduce") / "store")
    for job in TARGETS[TARGET].jobs(SMOKE).values():
        run_job(job, store, Resources(device="cpu", threads=1))
    return store.root


def command(*words: object) -> list[str]:
    return ["reproduce", *map(str, words)]


def test_help_comes_without_torch() -> None:
    code = (
        "import sys\nfrom phinets.cli.reproduce import command\n"
        "try: command(['--help'])\nexcept SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'scipy', 'matplotlib', 'ray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
    assert "Example: phinets reproduce" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "dynamics-flow"),
        ("cifar10-ablatoin", "cifar10-ablation"),
        ("all --scale paket", "pocket"),
        ("all --jobs 0", "jobs"),
        ("all --seeds 0", "seeds"),
        ("all --shard 5/3", "--shard"),
        ("all --store taken", "--store"),
        ("all --extra-store nowhere", "--extra-store"),
        ("all --out taken", "--out"),
        ("all --address auto", "--engine ray"),
        ("all --sbatch --time=1", "--engine slurm-script"),
        ("all --engine slurm-script --shard 0/2", "--shard"),
        ("all --engine slurm-script --sbatch --array=7", "--array"),
        ("all --engine slurm-script --script nowhere/x", "nowhere"),
        ("cifar10-ablation --scale paper --root empty", "cifar10"),
        ("all --engine kubernetes", "kubernetes"),
    ],
)
def test_bad_words_are_answered_in_one_paragraph(words: str, says: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    code, out, err = said(command(*shlex.split(words)), capsys)
    assert code == 2
    assert says in err
    assert "Traceback" not in err
    assert not out
    assert sorted(tmp_path.rglob("*")) == before


def test_the_list_has_every_target_with_runs_and_time_at_each_scale(capsys: Capture) -> None:
    code, out, _ = said(command("--list", "--json"), capsys)
    rows = json.loads(out)
    assert code == 0
    assert [row["name"] for row in rows] == list(TARGETS)
    for row in rows:
        assert row["scales"].keys() == SCALES.keys()
        for name, size in row["scales"].items():
            assert size["runs"] == len(TARGETS[row["name"]].jobs(scale(name)))
            assert size["done"] == 0
            assert size["without_estimate"] == size["runs"], "an empty store has no times"
            assert size["seconds_left"] == size["seconds"] == 0


def test_the_list_for_people_names_runs_and_times(finished: Path, capsys: Capture) -> None:
    code, out, _ = said(command("--list", TARGET, "stable-rank", "--store", finished), capsys)
    assert code == 0
    assert "stable-rank" in out
    assert "6 in" in out
    code, out, _ = said(command("--list", TARGET, "--store", finished, "--json"), capsys)
    assert json.loads(out)[0]["scales"]["smoke"]["done"] == 6
    assert json.loads(out)[0]["scales"]["smoke"]["seconds_left"] == 0


def test_a_dry_run_says_what_would_be_done_and_does_nothing(tmp_path: Path, finished: Path, capsys: Capture) -> None:
    words = command(TARGET, "stable-rank", "--scale", "smoke", "--dry-run", "--store", finished)
    before = sorted(finished.rglob("*"))
    code, out, _ = said([*words, "--json"], capsys)
    plan = json.loads(out)
    assert code == 0
    assert plan["jobs"].keys() == TARGETS["stable-rank"].jobs(SMOKE).keys()
    assert plan["done"] == 6
    assert plan["without_estimate"] == 2
    assert sorted(finished.rglob("*")) == before
    assert not list(tmp_path.iterdir())


def test_a_dry_run_times_nothing_and_does_not_create_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def no_timing(*args: object) -> None:
        raise AssertionError("a step was timed")

    monkeypatch.setattr("phinets.runs.cost.step_seconds", no_timing)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert said(command("stable-rank", "--scale", "smoke", "--dry-run", "--store", "fresh"), capsys)[0] == 0
    assert not list(tmp_path.iterdir())


def test_what_is_known_is_shown_at_once_with_its_claims(finished: Path, capsys: Capture) -> None:
    code, out, _ = said(command(TARGET, "--scale", "smoke", "--store", finished), capsys)
    assert code == 0
    assert "6 jobs are done, 0 failed" in out
    assert "claims" in out
    code, out, _ = said(command(TARGET, "--scale", "smoke", "--store", finished, "--json"), capsys)
    document = json.loads(out)
    (target,) = document["targets"]
    cells = [cell for table in target["tables"] for cell in table["cells"]]
    assert all(len(cell["values"]) == 1 and cell["n"] == 1 for cell in cells)
    assert {claim["verdict"] for claim in target["claims"]} <= {"holds", "does not hold"}, "statements need no seeds"
    assert document["failures"] == []


def test_both_readouts_baselines_and_the_paper_s_numbers_are_in_json_and_in_the_files(tmp_path: Path) -> None:
    target = TARGETS["ema-beta"]
    outcome = target_result(target, SCALES["pocket"], faking.results([target], SCALES["pocket"]))
    (plain,) = json.loads(json.dumps(document([outcome])))
    assert [table["baselines"] for table in plain["tables"]] == [["Acc, untrained"]] * 2
    (claim,) = plain["claims"]
    (known,) = outcome.claims
    assert (claim["quote"], claim["tests"]) == (known.claim.quote, known.claim.tests)
    assert known.effect is not None
    assert claim["effect"]["size"] == known.effect.size
    assert claim["effect"]["p"] == known.effect.p
    assert [claim["readout"], claim["second"]["readout"]] == ["task-wise kNN", "task-wise linear probe"]
    assert known.printed_effect is not None
    assert claim["printed"] in ("agree", "disagree")
    assert claim["printed_effect"]["size"] == known.printed_effect.size
    write_files(tmp_path, [outcome])
    assert {path.name for path in tmp_path.iterdir()} == {
        f"ema-beta{ending}" for ending in (".md", ".tex", ".csv", "-claims.csv")
    }
    with (tmp_path / "ema-beta.csv").open(newline="") as file:
        measures = {line["measure"].partition("/")[0] for line in csv.DictReader(file)}
    assert measures == {"task-knn", "task-linear"}


def test_tables_are_written_whole_and_never_over_others_unasked(
    finished: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = command(TARGET, "--scale", "smoke", "--store", finished, "--out", tmp_path / "deep" / "out")
    assert said(words, capsys)[0] == 0
    tables = [table.name for table in TARGETS[TARGET].tables(SMOKE)]
    names = {f"{TARGET}.md", f"{TARGET}.tex", f"{TARGET}-claims.csv", *(f"{name}.csv" for name in tables)}
    folder = tmp_path / "deep" / "out"
    assert {path.name for path in folder.iterdir()} == names
    with (folder / f"{tables[0]}.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(TARGETS[TARGET].tables(SMOKE)[0].cells)
    (folder / f"{TARGET}.tex").write_text("mine")
    code, _, err = said(words, capsys)
    assert code == 2
    assert "already there" in err
    assert (folder / f"{TARGET}.tex").read_text() == "mine"
    assert said([*words, "--overwrite"], capsys)[0] == 0
    assert "booktabs" in (folder / f"{TARGET}.tex").read_text()


def test_failures_are_told_with_their_reasons_and_by_the_exit_code(tmp_path: Path, capsys: Capture) -> None:
    store = Store(tmp_path / "store")
    first, *others = TARGETS[TARGET].jobs(SMOKE).values()
    store.put(Result(job=first, failed="the cat sat on it"))
    for job in others:
        store.put(Result(job=job, numbers={}))
    words = command(TARGET, "--scale", "smoke", "--store", "store")
    code, out, _ = said(words, capsys)
    assert code == 3
    assert first.key in out
    assert "the cat sat on it" in out
    assert "--retry-failed" in out
    code, out, _ = said([*words, "--json"], capsys)
    assert code == 3
    assert [failure["reason"] for failure in json.loads(out)["failures"]] == ["the cat sat on it"]


def test_a_job_array_is_a_file_for_sbatch_that_says_everything_and_replaces_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    words = command(
        TARGET, "stable-rank", "--scale", "smoke", "--engine", "slurm-script", "--jobs", 3, "--root", "data",
        "--sbatch", "--time=8:00:00 --partition gpu --gpus-per-task=1 --comment='two words'",
    )  # fmt: skip
    code, out, _ = said(words, capsys)
    assert code == 0
    assert "sbatch reproduce.sbatch" in out
    script = (tmp_path / "reproduce.sbatch").read_text()
    asked = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert asked[1] == "#SBATCH --array=0-2"
    assert asked[2] == f"#SBATCH --output={tmp_path}/runs/reproduce/slurm/%A_%a.txt"
    assert asked[3:] == [
        "#SBATCH --time=8:00:00", "#SBATCH --partition gpu", "#SBATCH --gpus-per-task=1",
        "#SBATCH '--comment=two words'",
    ]  # fmt: skip
    assert (tmp_path / "runs" / "reproduce" / "slurm").is_dir()
    line = shlex.split(script.splitlines()[-1])
    assert line[-2:] == ["--shard", "$SLURM_ARRAY_TASK_ID/3"]
    assert line[:6] == [sys.executable, "-m", "phinets", "reproduce", TARGET, "stable-rank"]
    assert ["--root", str(tmp_path / "data")] == line[line.index("--root") :][:2]
    subprocess.run(["bash", "-n", "reproduce.sbatch"], check=True)
    code, _, err = said(words, capsys)
    assert code == 2
    assert "already there" in err
    assert said([*words, "--overwrite"], capsys)[0] == 0


def test_an_array_has_no_more_tasks_than_there_are_units(tmp_path: Path, capsys: Capture) -> None:
    words = command(TARGET, "--scale", "smoke", "--engine", "slurm-script", "--jobs", 500, "--json")
    assert json.loads(said(words, capsys)[1])["tasks"] == 6
    words = command("all", "--scale", "paper", "--seeds", 5, "--engine", "slurm-script", "--json", "--overwrite")
    assert json.loads(said(words, capsys)[1])["tasks"] == 1000


@pytest.mark.slow
def test_the_tasks_of_an_array_do_everything_between_them_each_piece_once(tmp_path: Path, capsys: Capture) -> None:
    words = command(TARGET, "--scale", "smoke", "--engine", "slurm-script", "--jobs", 2, "--device", "cpu")
    assert said(words, capsys)[0] == 0
    done: list[set[str]] = []
    for task in range(2):
        environment = {"SLURM_ARRAY_TASK_ID": str(task), **_environment(tmp_path)}
        subprocess.run(["bash", "reproduce.sbatch"], check=True, env=environment, capture_output=True)
        done.append({path.stem for path in (tmp_path / "runs/reproduce/results").glob("*.json")})
    assert len(done[0]) == 3
    assert done[1] == set(all_jobs([TARGETS[TARGET]], SMOKE))
    code, out, _ = said(command(TARGET, "--scale", "smoke"), capsys)
    assert code == 0
    assert "6 jobs are done, 0 failed" in out


@pytest.mark.slow
def test_a_command_does_what_is_missing_tells_of_it_and_tries_failures_again_when_asked(
    tmp_path: Path, capsys: Capture
) -> None:
    first = next(iter(TARGETS["dynamics-simsiam"].jobs(SMOKE).values()))
    Store(tmp_path / "store").put(Result(job=first, failed="the cat sat on it"))
    words = command("dynamics-simsiam", "--scale", "smoke", "--store", "store", "--retry-failed", "--json")
    code, out, err = said(words, capsys)
    assert code == 0
    assert "1/1 dynamics simsiam-threshold" in err
    assert json.loads(out)["failures"] == []


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


def test_durations_use_the_largest_unit_of_which_there_are_two() -> None:
    words = {0.4: "0 s", 119: "119 s", 120: "2 min", 7_300: "2.0 h", 90_000: "25 h", 200_000: "2.3 days",
             4e7: "463 days", 1e9: "32 years"}  # fmt: skip
    assert {seconds: duration(seconds) for seconds in words} == words


def test_the_time_left_follows_the_estimates_and_how_they_held(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("phinets.cli.reproduce.output.monotonic", lambda: now[0])
    lines: list[str] = []

    class FakeConsole:
        def print(self, text: str, **how: Any) -> None:
            lines.append(text)

    jobs = list(TARGETS["batch-size-knn"].jobs(SMOKE).values())
    jobs = [*list({time_group(job): job for job in jobs}.values())[:2], QUICK[0]]
    medians = {time_group(job): 10.0 * (n + 1) for n, job in enumerate(jobs)}
    assert len(medians) == 3
    progress = Progress(FakeConsole(), Estimator(medians=medians), workers=2)  # type: ignore[arg-type]
    progress.on_start(jobs)
    now[0] = 20.0  # twice as long as estimated
    progress.on_result(Result(job=jobs[0], seconds=20.0))
    progress.on_result(Result(job=jobs[1], failed="Traceback (most recent call last):\n  …\nKeyError: 'x'"))
    assert "3 jobs to run; about 30 s" in lines[0]
    assert lines[1].endswith("20.0 s; 100 s left")
    assert "failed: KeyError: 'x'; 20 s left" in lines[2]
