"""`phinets train`, and what it shares with `phinets continual`."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rich.console import Console

from phinets.cli.command import Outcome, parse_words, print_lines
from phinets.config.errors import CommonError, UserError
from phinets.config.plain import to_plain
from phinets.config.record import RunRecord
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.reports.progress import LiveBar, PlainConsole, result_table
from phinets.runs.recipes import recipe
from phinets.runtime.process import exit_on_interrupt, launch_info
from phinets.training.run_folder import CONFIG, read_config_of

if TYPE_CHECKING:
    from phinets.training.loop import Pace

C = TypeVar("C", bound=TrainConfig)


@dataclass(frozen=True, kw_only=True)
class RunFolderOptions:
    """Where a run starts from and where it is written."""

    config: Path | None = None
    """A config.yaml to start from instead, e.g. of an older run, to repeat it."""
    out: Path | None = None
    """The run folder; unset: a new one under runs/."""
    overwrite: bool = False
    """Replace the run that is in the folder."""
    resume: Path | None = None
    """Resume the run in this folder from its last checkpoint; only compute and saving options may change."""
    or_resume: bool = False
    """Resume the run in --out if there is one, else start it: for jobs that are restarted automatically."""
    json: bool = False
    """Print the summary as one JSON document; progress goes to standard error."""

    @property
    def resumed_folder(self) -> Path | None:
        """The folder of the run to resume; None for a new run."""
        if self.or_resume and self.out is not None and (self.out / CONFIG).exists():
            return self.out
        return self.resume


@dataclass(frozen=True, kw_only=True)
class Train(RunFolderOptions):
    """Pretrain and evaluate an encoder. Without options: X-PhiNet on embedded images, a few minutes on a CPU.

    Example: phinets train --method phinet --epochs 8 --weight-decay 2e-5 --out runs/first
    """

    recipe: str = "default"
    """The run to start from; `phinets list recipes` shows all. Every other option changes it."""
    run: PretrainConfig = field(default_factory=PretrainConfig)


def command(words: list[str]) -> Outcome:
    try:
        options = parse(words)
    except UserError as error:
        raise CommonError(str(error)) from error
    with exit_on_interrupt():  # imports torch, after --help and errors in the options
        from phinets.runs.trainer import resume, run

    with Terminal(PlainConsole(stderr=True, quiet=launch_info().rank > 0)) as terminal:
        if options.resumed_folder is not None:
            record = resume(options.resumed_folder, options.run, callback=terminal)
        else:
            record = run(options.run, options.out, overwrite=options.overwrite, callback=terminal)
    return Outcome({"folder": record.folder, **to_plain(record.summary)}, lambda console: _show(console, record))


def parse(words: list[str]) -> Train:
    """The options, on top of the recipe, config file or run that they name."""
    options = parse_words(Train, "train", words, default=Train(run=_start(words)))
    require_place(options, {"resume": options.resume})
    return options


def _start(words: list[str]) -> PretrainConfig:
    """The run that all other options change."""
    start = peek_start(words, ("recipe", "config", "resume"))
    return start_config(PretrainConfig, start) or recipe(start.get("recipe", "default"))


def start_config(kind: type[C], start: Mapping[str, str]) -> C | None:
    """The settings in the config file, or in the run to resume, that the options name."""
    if "config" in start:
        return read_config_of(kind, Path(start["config"]))
    return config_in(kind, start["resume"]) if "resume" in start else None


def peek_options(words: list[str], names: tuple[str, ...]) -> dict[str, str]:
    """The values of these options among the words, before the words are parsed."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for name in names:
        parser.add_argument(f"--{name}", dest=name, nargs="?")
    return {name: value for name, value in vars(parser.parse_known_args(words)[0]).items() if value is not None}


def peek_start(words: list[str], names: tuple[str, ...]) -> dict[str, str]:
    """The option among these that names the starting point of a run; refuses two."""
    start = peek_options(words, names)
    if len(start) > 1:
        raise UserError(f"{' and '.join(f'--{name}' for name in start)} exclude each other. Use one of them.")
    return start


def config_in(kind: type[C], folder: str) -> C:
    if not (Path(folder) / CONFIG).exists():
        raise UserError(f"'{folder}' holds no run to resume: it has no {CONFIG}.")
    return read_config_of(kind, Path(folder) / CONFIG)


def require_place(options: RunFolderOptions, resumed: Mapping[str, Path | None]) -> None:
    """Refuse contradicting options about the folder; `resumed` are those that name an existing run."""
    if options.or_resume and (options.out is None or options.overwrite):
        raise UserError("--or-resume needs the run folder, --out RUN, and can't --overwrite it.")
    for name, place in resumed.items():
        if place is not None and (options.out is not None or options.overwrite or options.or_resume):
            raise UserError(f"--{name} uses the run's own folder: leave out --out, --overwrite and --or-resume.")


class Terminal:
    """A callback that shows the run on a console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar: LiveBar | None = None

    def on_start(self, folder: Path, config: TrainConfig, steps: int, done: int) -> None:
        """Print the run and its folder, and start the bar."""
        print_lines(
            self.console,
            f"{config.method} · {config.backbone} · {config.data_names} · {config.length}, batch {config.batch} "
            f"({steps} steps{f', resuming after {done}' if done else ''}) → {folder}",
        )
        self.bar = LiveBar(self.console, steps, done)

    def on_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Shown at the end."""

    def on_step(self, row: Mapping[str, Any], pace: "Pace") -> None:
        assert self.bar is not None
        self.bar.on_step(row, pace.images_per_second, pace.data_wait)

    def on_eval(self, row: Mapping[str, Any]) -> None:
        assert self.bar is not None
        self.bar.on_eval(row)

    def on_message(self, text: str) -> None:
        self.console.print(text, style="bold red", markup=False, highlight=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()


def _show(console: Console, record: RunRecord) -> None:
    console.print(result_table(record.summary))
    summary = record.summary
    print_lines(
        console,
        f"{summary.seconds:.0f} s in all, {summary.images_per_second:.0f} images/s while training, "
        f"{100 * summary.data_wait:.1f} % of it waiting for data → {record.folder}",
    )
