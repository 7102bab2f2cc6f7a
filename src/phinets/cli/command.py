"""What all commands share: options parsed into dataclasses, actions, and a result."""

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_type_hints

import tyro
from rich.console import Console
from rich.table import Table

from phinets.config.errors import UserError, look_up
from phinets.config.plain import flat, to_plain

T = TypeVar("T")

RENAMED_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "also": ("extra-store", "extra-data"),
    "anchors-learned": ("anchors-per-image",),
    "batch-size": ("batch",),
    "drawings": ("figures",),
    "drops": ("milestones",),
    "encoders": ("encoder",),
    "judged-encoder": ("encoder",),
    "k": ("num-neighbors",),
    "knn-k": ("num-neighbors",),
    "learning-rate": ("lr",),
    "live-bank": ("online-bank",),
    "live-queries": ("online-queries",),
    "look-at": ("eval-at-images",),
    "look-every": ("eval-every",),
    "measures": ("health-metrics",),
    "neighbours": ("neighbors",),
    "optimiser": ("optimizer",),
    "part": ("shard", "split"),
    "readings-per-task": ("evals-per-task",),
    "warmup": ("warmup-steps", "warmup-epochs"),
    "wd": ("weight-decay",),
    "world": ("shapes-seed",),
}
"""Options of version 0.1, and names that other tools use, with their names here; a command has at most one of them."""


def parse_words(options: type[T], command: str, words: list[str], default: T | None = None) -> T:
    """The options that the words after a command's name give; those of nested sections have no prefix."""
    output, page = io.StringIO(), io.StringIO()
    defaults = {} if default is None else {"default": default}
    try:
        with redirect_stderr(output), redirect_stdout(page) if os.environ.get("NO_COLOR") else nullcontext():
            parse: Any = tyro.cli  # its overloads do not accept a type variable
            flags = (tyro.conf.OmitArgPrefixes,)
            result = parse(options, prog=f"phinets {command}", args=words, config=flags, **defaults)
        _require_64_bits(result)
        return cast(T, result)
    except OverflowError:
        raise UserError(f"a number is too large. `phinets {command} --help` lists the options.") from None
    except SystemExit as exit_request:
        print(page.getvalue(), end="")
        own_error = _user_error_behind(exit_request)
        if own_error is not None:
            raise own_error from None
        if exit_request.code:
            raise UserError(_explain(output.getvalue(), options, command, words)) from None
        raise


def _require_64_bits(options: object) -> None:
    for name, value in flat(to_plain(options)).items():
        numbers = value if isinstance(value, list) else [value]
        if any(isinstance(number, int) and abs(number) >= 2**63 for number in numbers):
            raise UserError(f"{name.rpartition('.')[2]} is too large: a whole number must be below 2^63.")


def _explain(boxed: str, options: type, command: str, words: list[str]) -> str:
    """One sentence for the parser's box: an unknown option with its likely name, else the box's first section."""
    names = set(_option_names(options))
    for word in words:
        name = word[2:].partition("=")[0].replace("_", "-")
        if word.startswith("--") and name not in {*names, "help"}:
            successors = [new for new in RENAMED_OPTIONS.get(name, ()) if new in names]
            close = successors or get_close_matches(name, sorted(names), n=1, cutoff=0.6)
            hint = f"Did you mean --{close[0]}?" if close else f"`phinets {command} --help` lists the options."
            return f"there is no option --{name}. {hint}"
    lines = [line.strip("│ ") for line in boxed.splitlines()]
    section = " ".join(lines[1 : next((n for n, line in enumerate(lines) if n and line[:1] in "─╰"), None)])
    fault = re.sub(r"^Unrecognized options:", "unexpected words:", section).rstrip(".")
    return f"{fault[:1].lower()}{fault[1:]}. `phinets {command} --help` lists the options."


def _option_names(options: type) -> Iterator[str]:
    """The names of all options of a dataclass, those of nested dataclasses among them."""
    hints = get_type_hints(options)
    for field in fields(options):
        sections = [kind for kind in (hints[field.name], *get_args(hints[field.name])) if is_dataclass(kind)]
        for section in sections:
            yield from _option_names(cast(type, section))
        if not sections:
            yield field.name.replace("_", "-")
        if hints[field.name] is bool:
            yield f"no-{field.name.replace('_', '-')}"


def _user_error_behind(error: BaseException | None) -> UserError | None:
    """The UserError that caused another error, if there is one."""
    while error is not None and not isinstance(error, UserError):
        error = error.__cause__ or error.__context__
    return error


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a command."""

    document: Any
    """What --json prints."""
    show: Callable[[Console], None]
    """Prints the result on a terminal."""
    exit_code: int = 0
    digits: int | None = 6
    """Significant digits of the numbers in JSON; None: all."""


def round_numbers(value: Any, digits: int | None) -> Any:
    """A document with its numbers rounded to significant digits."""
    if isinstance(value, float) and digits is not None:
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: round_numbers(item, digits) for key, item in value.items()}
    return [round_numbers(item, digits) for item in value] if isinstance(value, list | tuple) else value


def print_lines(console: Console, *lines: str) -> None:
    """Print lines of plain text as they are."""
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def show_lines(*lines: str) -> Callable[[Console], None]:
    """The `show` of an outcome that is some lines of plain text."""
    return lambda console: print_lines(console, *lines)


def show_rows(rows: Mapping[str, str]) -> Callable[[Console], None]:
    """The `show` of an outcome that is some names, with a text beside each."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in rows.items():
        table.add_row(name, text)
    return lambda console: console.print(table, highlight=False, markup=False)


class Action(NamedTuple):
    """An action of a command: its line in the help, and what it does with the words after its name."""

    what: str
    run: Callable[[list[str]], Outcome]


def run_action(command: str, actions: Mapping[str, Action], example: str, words: list[str]) -> Outcome:
    """Run the action that the first word names; without one, or for --help, list the actions."""
    if words and words[0] not in ("-h", "--help"):
        return look_up(f"action of `phinets {command}`", words[0], actions).run(words[1:])
    width = max(len(name) for name in actions) + 3
    lines = "\n".join(f"  {name:<{width}}{action.what}" for name, action in actions.items())
    note = "Every action has --help with an example, and --json, which prints one JSON document."
    print(f"phinets {command} ACTION [options]\n\n{lines}\n\n{note}\n\nExample: {example}\n")
    raise SystemExit(0)
