"""The door: which command, and how its result, its errors and its warnings are said."""

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TextIO

from phinets import __version__
from phinets.config.errors import StoppedError, UserError, unknown
from phinets.runtime.process import exit_on_interrupt, launched, share_cores

COMMANDS: Mapping[str, str] = {
    "train": "pretrain an encoder; with no further word, the main job",
    "continual": "learn a stream of tasks one after the other, and see what is remembered",
    "eval": "judge an encoder: kNN, linear probe, fine-tuning, health",
    "embed": "features of a folder or a data set in one file, a map of them, and nearest neighbors",
    "export": "take an encoder elsewhere: torchvision, timm, safetensors, onnx, detectron2",
    "detect": "fine-tune a detector from an encoder, and tell its average precision",
    "reproduce": "re-run tables and figures of the paper, and see which claims hold",
    "list": "what there is: methods, backbones, data, views, recipes, benchmarks",
    "data": "what data there is, what is in it, and making it ready",
    "report": "one page that opens offline: the paper's claims beside runs, tables, figures",
    "bench": "what learners cost on this device",
    "dynamics": "the learning-dynamics laboratory: equilibria, bifurcations, basins",
    "draw": "redraw a picture of the documentation, or draw runs over a stream",
}

HELP = """\
phinets: brain-inspired self-supervised learning (PhiNet, X-PhiNet and their baselines)

  phinets COMMAND [options]

{commands}

Every command has --help with an example, and --json, which prints one JSON document.

Example:
  phinets train --recipe smoke      # half a minute: X-PhiNet on embedded images
"""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command that the words name; leave with 0, or with 2 for a mistake that the person can mend."""
    words = sys.argv[1:] if words is None else list(words)
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP.format(commands="\n".join(f"  {name:<11}{what}" for name, what in COMMANDS.items())))
    elif words[0] == "--version":
        print(f"phinets {__version__}")
    else:
        sys.exit(_command(words[0], list(words[1:])))


def _command(name: str, words: list[str]) -> int:
    """One command, from its words to its exit code."""
    share_cores()
    as_json, quiet = "--json" in words, launched().rank > 0
    warnings.showwarning = _say_warning
    try:
        if name not in COMMANDS:
            raise UserError(unknown("command", name, list(COMMANDS)))
        with exit_on_interrupt():
            module = import_module(f"phinets.cli.{name}")
        outcome = module.command(words)
    except (UserError, StoppedError) as error:
        if not (quiet and error.said_by_the_first):
            _say_error(str(error), as_json)
        return error.exit_code
    except KeyboardInterrupt:
        _say_error("stopped.", as_json)
        return 130
    if quiet:
        return 0
    if as_json:
        print(json.dumps(outcome.document, ensure_ascii=False))
    else:
        from rich.console import Console

        outcome.show(Console())
    return int(outcome.exit_code)


def _say_error(text: str, as_json: bool) -> None:
    print(f"phinets: {text}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": text}, ensure_ascii=False))


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as one sentence, without the line of code that it came from."""
    if issubclass(category, UserWarning):
        print(f"phinets: note: {message}", file=sys.stderr)
