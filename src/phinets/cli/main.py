"""The entry point: choose the command; print its result, errors and warnings."""

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module

from phinets import __version__
from phinets.config.errors import StoppedError, UserError, unknown
from phinets.config.text import printable
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


def main(words: Sequence[str] | None = None) -> None:
    """Run the command that the words name, and exit: 0 for success, 2 for a user error."""
    words = sys.argv[1:] if words is None else list(words)
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP.format(commands="\n".join(f"  {name:<11}{what}" for name, what in COMMANDS.items())))
    elif words[0] == "--version":
        print(f"phinets {__version__}")
    else:
        sys.exit(_command(words[0], list(words[1:])))


def _command(name: str, words: list[str]) -> int:
    """Run one command and give its exit code."""
    share_cores()
    as_json, quiet = "--json" in words, launch_info().rank > 0
    warnings.showwarning = _print_warning
    try:
        if name not in COMMANDS:
            raise UserError(unknown("command", name, list(COMMANDS)))
        with exit_on_interrupt():
            module = import_module(f"phinets.cli.{name}")
        outcome = module.command(words)
    except (UserError, StoppedError) as error:
        if not (quiet and error.reported_by_rank_zero):
            _print_error(str(error), as_json)
        return error.exit_code
    except KeyboardInterrupt:
        _print_error("stopped.", as_json)
        return 130
    if quiet:
        return 0
    if as_json:
        print(json.dumps(outcome.document, ensure_ascii=False))
    else:
        from phinets.reports.progress import PlainConsole

        outcome.show(PlainConsole())
    return int(outcome.exit_code)


def _print_error(text: str, as_json: bool) -> None:
    print(f"phinets: {printable(text)}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": text}, ensure_ascii=False))


def _print_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning as one sentence, without its line of code."""
    if issubclass(category, UserWarning):
        print(f"phinets: note: {printable(str(message))}", file=sys.stderr)
