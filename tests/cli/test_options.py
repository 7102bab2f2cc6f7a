"""Mistyped and renamed options: exit code 2, one line, and the option that was meant."""

import shlex
from dataclasses import dataclass, field

import pytest

from phinets.cli.command import RENAMED_OPTIONS, parse_words
from phinets.cli.main import main
from phinets.config.errors import UserError
from tests.test_docs import help_options

COMMANDS_WITH_OPTIONS = (("train",), ("continual",), ("eval", "knn"), ("embed",), ("detect",), ("reproduce",))


@dataclass(frozen=True)
class Section:
    eval_every: int = 0
    shard: str = ""


@dataclass(frozen=True)
class Options:
    epochs: int = 1
    json: bool = False
    section: Section = field(default_factory=Section)


def error_of(words: str) -> str:
    with pytest.raises(UserError) as error:
        parse_words(Options, "try", shlex.split(words))
    return str(error.value)


def test_an_unknown_option_names_the_nearest_or_the_one_that_replaced_it() -> None:
    meant = {
        "--epocs 3": "--epochs",
        "--epocs=3": "--epochs",
        "--json --eval-evry 2": "--eval-every",
        "--look-every 2": "--eval-every",
        "--look_every 2": "--eval-every",
        "--part 1/2": "--shard",
        "--no-jsn": "--no-json",
    }
    assert {words: error_of(words).split()[-1] for words in meant} == {w: f"{to}?" for w, to in meant.items()}


def test_an_option_that_resembles_none_is_named_and_help_offered() -> None:
    assert "--zzz" in error_of("--zzz 3")
    assert "phinets try --help" in error_of("--zzz 3")
    assert "--encoder" not in error_of("--judged-encoder fast"), "this command has no --encoder"


def test_a_value_that_does_not_fit_is_told_with_its_option() -> None:
    for words, option in {"--epochs many": "--epochs", "--epochs": "--epochs", "stray": "stray"}.items():
        assert option in error_of(words)
        assert "\n" not in error_of(words)


def test_negated_flags_and_underscores_stay_valid() -> None:
    assert parse_words(Options, "try", ["--no-json", "--eval_every", "3"]).section.eval_every == 3


def test_options_of_version_0_1_leave_with_2_and_name_their_successor(capsys: pytest.CaptureFixture[str]) -> None:
    successors = {
        "train --look-every 1": "--eval-every",
        "train --optimiser sgd": "--optimizer",
        "train --live-bank 1": "--online-bank",
        "train --world 1": "--shapes-seed",
        "train --epoch 3": "--epochs",
        "train --learning-rate 1": "--lr",
        "continual --encoders both": "--encoder",
        "embed runs/x --part train": "--split",
        "detect runs/x --also voc:x": "--extra-data",
        "detect runs/x --drops 10": "--milestones",
        "reproduce voc --also x": "--extra-store",
        "reproduce voc --part 1/2": "--shard",
    }
    faults = []
    for line, successor in successors.items():
        with pytest.raises(SystemExit) as exit_request:
            main(shlex.split(line))
        text = capsys.readouterr().err
        if exit_request.value.code != 2 or f"Did you mean {successor}?" not in text or text.count("\n") != 1:
            faults.append(f"{line}: {exit_request.value.code}, {text}")
    assert not faults, "\n".join(faults)


def test_every_renamed_option_exists_under_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    names = {option for command in COMMANDS_WITH_OPTIONS for option in help_options(command)}
    assert {f"--{new}" for news in RENAMED_OPTIONS.values() for new in news} - names == set()
