"""Mistyped and renamed options: exit code 2, one line, and the option that was meant."""

import shlex
from dataclasses import dataclass, field

import pytest

from phinets.cli.command import RENAMED_OPTIONS, parse_words
from phinets.cli.main import main
from phinets.config.errors import UserError


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
    for old in ("look-every", "optimiser", "live-bank", "world"):
        with pytest.raises(SystemExit) as exit_request:
            main(["train", f"--{old}", "1"])
        assert exit_request.value.code == 2
        assert f"--{old}. Did you mean --{RENAMED_OPTIONS[old]}?" in capsys.readouterr().err
