"""`phinets bench`, as a person at a keyboard meets it."""

import json
import subprocess
import sys

import pytest

from phinets.cli.bench import ACTIONS, CostOptions
from phinets.cli.command import round_numbers
from phinets.config.methods import METHODS
from phinets.reports.cost import paper_costs
from tests.cli.test_main import said

Capture = pytest.CaptureFixture[str]
TINY = ["bench", "cost", "--backbone", "tests.helpers.TinyEncoder", "--rounds", "1", "--device", "cpu"]


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_help_with_an_example(action: str, capsys: Capture) -> None:
    code, out, _ = said(["bench", action, "--help"], capsys)
    assert code == 0
    assert f"Example: phinets bench {action}" in out
    assert "--json" in out


def test_help_comes_without_torch() -> None:
    code = (
        "import sys\nfrom phinets.cli import main\n"
        "try: main(['bench', 'cost', '--help'])\nexcept SystemExit: pass\n"
        "print('TORCH', 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "TORCH False"


def test_with_no_further_word_every_learner_is_measured() -> None:
    assert CostOptions().methods == tuple(METHODS)


def test_the_document_says_what_was_measured_how_and_what_the_paper_has(capsys: Capture) -> None:
    words = [*TINY, "--batches", "4", "128", "4", "--methods", "x-phinet", "moco-v2", "--json"]
    code, out, err = said(words, capsys)
    document = json.loads(out)
    assert code == 0
    assert "batch 128" in err
    assert (document["recipe"], document["backbone"]) == ("default", "tests.helpers.TinyEncoder")
    assert document["heads"] == {"projector": [256, 256], "h_hidden": [64], "g_hidden": [64]}
    assert (document["device"], document["precision"], document["rounds"]) == ("cpu", "fp32", 1)
    assert document["torch"]
    assert "extrapolation" in document["protocol"]
    rows = document["rows"]
    assert [(row["batch"], row["method"]) for row in rows] == [
        (batch, name) for batch in (4, 128) for name in ("simsiam", "x-phinet", "moco-v2")
    ]
    assert all(row["seconds"] > 0 and row["bytes"] > 0 and row["hours_800_epochs"] > 0 for row in rows)
    assert [row["paper"] for row in rows] == [None] * 3 + [
        round_numbers(paper_costs(128, name), 6) for name in ("simsiam", "x-phinet", "moco-v2")
    ]


def test_the_recipe_gives_the_heads_and_the_precision_is_heard(capsys: Capture) -> None:
    words = [*TINY, "--recipe", "paper", "--batches", "2", "--methods", "simsiam", "--precision", "fp64", "--json"]
    document = json.loads(said(words, capsys)[1])
    assert document["heads"] == {"projector": None, "h_hidden": [512], "g_hidden": [512]}
    assert document["precision"] == "fp64"
    assert document["rows"][0]["bytes"] > 3 * 8 * 2048 * 2048  # the projector's second layer alone, in doubles


def test_people_get_two_tables_and_are_told_what_is_extrapolated(capsys: Capture) -> None:
    code, out, _ = said([*TINY, "--batches", "128", "--methods", "phinet"], capsys)
    assert code == 0
    assert all(word in out for word in ("Memory of a step", "Time of a step", "Extrapolated", "Paper:", "phinet"))


def test_people_are_told_where_memory_is_not_measured(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from phinets.runs import cost

    monkeypatch.setattr(cost, "peak_memory", lambda turn, device: None)
    code, out, _ = said([*TINY, "--batches", "4", "--methods", "phinet"], capsys)
    assert code == 0
    assert "Memory is not measured on cpu" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["cots"], "Did you mean 'cost'"),
        (["cost", "--methods", "xphinet"], "Did you mean 'x-phinet'"),
        (["cost", "--methods"], "--methods names nothing"),
        (["cost", "--batches"], "--batches names nothing"),
        (["cost", "--batches", "64", "1"], "the smallest batch is 1"),
        (["cost", "--rounds", "0"], "rounds is 0"),
        (["cost", "--recipe", "papr"], "Did you mean 'paper'"),
        (["cost", "--backbone", "resnet-tini"], "Did you mean 'resnet-tiny'"),
        (["cost", "--device", "nonsense"], "--device auto"),
        (["cost", "--precision", "fp8"], "fp8"),
    ],
)
def test_a_mistake_gets_one_paragraph_and_exit_code_2(words: list[str], says: str, capsys: Capture) -> None:
    code, out, err = said(["bench", *words], capsys)
    assert code == 2
    assert says in err
    assert "Traceback" not in err
    assert out == ""


def test_an_unknown_learner_is_refused_before_anything_is_measured(capsys: Capture) -> None:
    _, _, err = said([*TINY, "--methods", "simsiam", "xphinet"], capsys)
    assert err.startswith("phinets: there is no method")
