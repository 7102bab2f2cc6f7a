"""The entry point: choose the command; print its result, errors and warnings."""

import errno
import json
import os
import platform
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from tempfile import NamedTemporaryFile

from phinets import __version__
from phinets.config.errors import StoppedError, UserError, printable, unknown
from phinets.runtime.process import exit_on_interrupt, launch_info, share_cores

COMMANDS: Mapping[str, str] = {
    "train": "pretrain an encoder; without options, the main job",
    "continual": "learn a stream of tasks and measure what is forgotten",
    "eval": "evaluate an encoder: kNN, linear probe, finetuning, health",
    "embed": "write the features of a folder or dataset to one file, with a map and nearest neighbors",
    "export": "export an encoder to torchvision, timm, safetensors, onnx or detectron2",
    "detect": "finetune a detector from an encoder and measure its average precision",
    "reproduce": "re-run tables and figures of the paper and check its claims",
    "list": "list methods, backbones, data, views, recipes or benchmarks",
    "data": "list, check and prepare datasets",
    "report": "write one offline page: the paper's claims, tables and figures beside runs",
    "bench": "measure what learners cost on this device",
    "dynamics": "analyze the learning dynamics: equilibria, bifurcations, basins",
    "draw": "draw a picture of the documentation, or continual runs",
}

HELP = """\
phinets: brain-inspired self-supervised learning (PhiNet, X-PhiNet and their baselines)

  phinets COMMAND [options]

{commands}

Every command has --help with an example, and --json, which prints one JSON document.

Example:
  phinets train --recipe smoke      # half a minute: X-PhiNet on images that the package draws
"""


FILE_ERRORS = {errno.EACCES, errno.EDQUOT, errno.ENAMETOOLONG, errno.ENOSPC, errno.EPERM, errno.EROFS}
"""Errors of the file system that are no bugs."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command that the words name, and exit: 0 for success, 2 for a user error, 1 for a bug."""
    own_process = words is None
    words = sys.argv[1:] if words is None else list(words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a Latin-1 terminal can't show every letter
    try:
        code = _exit_code(words)
        sys.stdout.flush()
    except OSError as error:
        code = _drop_output(error)
    if own_process and os.environ.get("WORLD_SIZE", "1") != "1":
        sys.stderr.flush()
        os._exit(code)  # a thread of gloo may free a tensor while Python exits, which aborts the process
    sys.exit(code)


def _exit_code(words: list[str]) -> int:
    """Run the words, print what went wrong, and give the exit code. Only a broken standard output is raised."""
    as_json = "--json" in words
    try:
        return _run(words, as_json)
    except SystemExit as request:  # --help
        return int(request.code or 0)
    except (UserError, StoppedError) as error:
        if not (error.reported_by_rank_zero and launch_info().rank > 0):
            _print_error(str(error), as_json)
        return error.exit_code
    except KeyboardInterrupt:
        _print_error("stopped.", as_json)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        text, code = _explain(error, words)
        _print_error(text, as_json)
        return code


def _run(words: list[str], as_json: bool) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP.format(commands="\n".join(f"  {name:<11}{what}" for name, what in COMMANDS.items())))
        return 0
    if words[0] == "--version":
        print(f"phinets {__version__}")
        return 0
    share_cores()
    quiet = launch_info().rank > 0
    warnings.showwarning = _print_warning
    if words[0] not in COMMANDS:
        raise UserError(unknown("command", words[0], list(COMMANDS)))
    with exit_on_interrupt():
        module = import_module(f"phinets.cli.{words[0]}")
    outcome = module.command(words[1:])
    if quiet:
        return 0
    if as_json:
        from phinets.cli.command import round_numbers

        print(json.dumps(round_numbers(outcome.document, outcome.digits), ensure_ascii=False))
    else:
        from phinets.reports.progress import PlainConsole

        outcome.show(PlainConsole())
    return int(outcome.exit_code)


def _explain(error: Exception, words: list[str]) -> tuple[str, int]:
    """A short message for an error that no command expects, and the exit code; a bug gets a report."""
    first = (str(error).splitlines() or [""])[0]
    if isinstance(error, OSError) and error.errno in FILE_ERRORS:
        place = f"'{error.filename}'" if error.filename else "the output"
        return f"{place} can't be used: {error.strerror}. Choose another place, or change its permissions.", 2
    if isinstance(error, RuntimeError) and "home directory" in first:  # pathlib
        return "a path begins with ~NAME, but there is no such user. Write the whole path.", 2
    from phinets.runtime.devices import is_out_of_memory

    if is_out_of_memory(error):
        return f"there is not enough memory ({first}). Choose smaller sizes, e.g. --batch, --queue or --buffer.", 2
    report = "".join(traceback.format_exception(error))
    about = f"phinets {__version__}, Python {platform.python_version()}, {platform.platform()}\n{words}\n\n"
    try:
        with NamedTemporaryFile("wb", prefix="phinets-bug-", suffix=".txt", delete=False) as file:
            file.write((about + report).encode(errors="replace"))
    except OSError:
        return f"internal error: {type(error).__name__}: {first}. A bug report could not be written.", 1
    return f"internal error: {type(error).__name__}: {first}. Please report it with the file '{file.name}'.", 1


def _drop_output(error: OSError) -> int:
    """Say why standard output can't be written, unless its reader has left; nothing more is written to it."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
    if isinstance(error, BrokenPipeError):
        return 1
    print(f"phinets: standard output can't be written: {error.strerror or error}.", file=sys.stderr)
    return 2


def _print_error(text: str, as_json: bool) -> None:
    print(f"phinets: {printable(text)}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": text}, ensure_ascii=False))


def _print_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning as one sentence, without its line of code."""
    if issubclass(category, UserWarning):
        print(f"phinets: note: {printable(str(message))}", file=sys.stderr)
