"""What all commands share: options parsed into dataclasses, actions, and a result."""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar, cast, get_args, get_type_hints

import tyro
from rich.console import Console

from phinets.config.errors import UserError, look_up

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
    """Parse the words of a command; options of nested sections have no prefix.

    Args:
        options: The dataclass whose fields are the options.
        command: The command's name, e.g. "eval knn".
        words: What follows the name on the command line.
        default: The values of options that the words leave out.

    Returns:
        The options.

    Raises:
        UserError: A word is no option, a value does not fit, or the dataclass refuses it.
    """
    output = io.StringIO()
    defaults = {} if default is None else {"default": default}
    flat = (tyro.conf.OmitArgPrefixes,)
    try:
        with redirect_stderr(output):
            parse: Any = tyro.cli  # its overloads do not accept a type variable
            return cast(T, parse(options, prog=f"phinets {command}", args=words, config=flat, **defaults))
    except SystemExit as exit_request:
        own_error = _user_error_behind(exit_request)
        if own_error is not None:
            raise own_error from None
        if exit_request.code:
            raise UserError(_explain(output.getvalue(), options, command, words)) from None
        raise


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


def print_lines(console: Console, *lines: str) -> None:
    """Print lines of plain text as they are."""
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def show_lines(*lines: str) -> Callable[[Console], None]:
    """The `show` of an outcome that is some lines of plain text."""
    return lambda console: print_lines(console, *lines)


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a command."""

    what: str
    """Its line in the help."""
    run: Callable[[list[str]], Outcome]
    """Maps the words after the action's name to its result."""


def run_action(command: str, actions: Mapping[str, Action], example: str, words: list[str]) -> Outcome:
    """Run the action that the first word names; without one, or for --help, list the actions."""
    if words and words[0] not in ("-h", "--help"):
        return look_up(f"action of `phinets {command}`", words[0], actions).run(words[1:])
    width = max(len(name) for name in actions) + 3
    lines = "\n".join(f"  {name:<{width}}{action.what}" for name, action in actions.items())
    note = "Every action has --help with an example, and --json, which prints one JSON document."
    print(f"phinets {command} ACTION [options]\n\n{lines}\n\n{note}\n\nExample: {example}\n")
    raise SystemExit(0)
