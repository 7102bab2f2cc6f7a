"""`phinets train`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console

from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.cli.starting import config_in, looked_ahead, require_one, require_place
from phinets.config.errors import CommonError, UserError
from phinets.config.plain import to_plain
from phinets.config.record import RunRecord
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.reports.live import LiveBar, result_table
from phinets.runs.recipes import recipe
from phinets.runtime.process import launched, leaving_at_once
from phinets.training.run_folder import CONFIG, read_config_of

if TYPE_CHECKING:
    from phinets.training.loop import Pace


@dataclass(frozen=True, kw_only=True)
class Train:
    """Pretrain an encoder and judge it. With no further word: X-PhiNet on embedded images, a few minutes on a CPU.

    Example: phinets train --method phinet --epochs 8 --weight-decay 2e-5 --out runs/first
    """

    recipe: str = "default"
    """The run to start from; `phinets list recipes` shows all. Every other option changes it."""
    config: Path | None = None
    """A config.yaml to start from instead, e.g. of an older run, to repeat it."""
    out: Path | None = None
    """The run folder; unset: a new one under runs/."""
    overwrite: bool = False
    """Replace the run that is in the folder."""
    resume: Path | None = None
    """Go on with the run in this folder from its last checkpoint; only how it is computed and kept may change."""
    or_resume: bool = False
    """Go on with the run in --out if there is one, else begin it: for jobs that are started again and again."""
    json: bool = False
    """Print the summary as one JSON document; progress goes to standard error."""
    run: PretrainConfig = field(default_factory=PretrainConfig)


def command(words: list[str]) -> Outcome:
    """Parse, run, and give the summary."""
    try:
        options = parse(words)
    except UserError as error:
        raise CommonError(str(error)) from error
    with Terminal(Console(stderr=True, quiet=launched().rank > 0)) as terminal:
        record = _trained(options, terminal)
    return Outcome({"folder": record.folder, **to_plain(record.summary)}, lambda console: _show(console, record))


def _trained(options: Train, callback: "Terminal") -> RunRecord:
    with leaving_at_once():  # torch comes in here, after --help and bad words
        from phinets.runs.trainer import resume, run

    if options.resume is not None:
        return resume(options.resume, options.run, callback=callback)
    if options.or_resume and options.out is not None and (options.out / CONFIG).exists():
        return resume(options.out, options.run, callback=callback)
    return run(options.run, options.out, overwrite=options.overwrite, callback=callback)


def parse(words: list[str]) -> Train:
    """The options that the words give, on top of the recipe, config file or run that they name."""
    options = parse_words(Train, "train", words, default=Train(run=_start(words)))
    require_place(options, {"resume": options.resume})
    return options


def _start(words: list[str]) -> PretrainConfig:
    """The run that all other options change."""
    named = looked_ahead(words, ("recipe", "config", "resume"))
    require_one(named)
    if "config" in named:
        return read_config_of(PretrainConfig, Path(named["config"]))
    if "resume" in named:
        return config_in(PretrainConfig, named["resume"])
    return recipe(named.get("recipe", "default"))


class Terminal:
    """An onlooker that shows the run on a console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar: LiveBar | None = None

    def on_start(self, folder: Path, config: TrainConfig, steps: int, done: int) -> None:
        """Say what is about to happen, and where."""
        self.console.print(
            f"{config.method} · {config.backbone} · {config.learned_from} · {config.length}, batch {config.batch} "
            f"({steps} steps{f', going on after {done}' if done else ''}) → {folder}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
        self.bar = LiveBar(self.console, steps, done)

    def judged(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """The end shows it."""

    def on_step(self, row: Mapping[str, Any], pace: "Pace") -> None:
        """Move the bar."""
        assert self.bar is not None
        self.bar.on_step(row, pace.images_per_second, pace.data_wait)

    def on_eval(self, row: Mapping[str, Any]) -> None:
        """Show the look."""
        assert self.bar is not None
        self.bar.on_eval(row)

    def on_message(self, text: str) -> None:
        """Say it above the bar."""
        self.console.print(text, style="bold red", markup=False, highlight=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()


def _show(console: Console, record: RunRecord) -> None:
    console.print(result_table(record.summary))
    summary = record.summary
    console.print(
        f"{summary.seconds:.0f} s in all, {summary.images_per_second:.0f} images/s while training, "
        f"{100 * summary.data_wait:.1f} % of it waiting for data → {record.folder}",
        highlight=False,
        markup=False,
    )
