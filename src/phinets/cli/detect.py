"""`phinets detect`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import tyro
from rich.console import Console
from rich.progress import Progress

from phinets.cli.command import Outcome, parse_words, print_lines
from phinets.cli.train import peek_start
from phinets.config.detection import DetectionConfig, DetectionRecord, detection_recipe
from phinets.config.errors import UserError
from phinets.config.plain import to_plain
from phinets.runtime.process import exit_on_interrupt

if TYPE_CHECKING:
    from phinets.training.loop import Pace


@dataclass(frozen=True, kw_only=True)
class Detect:
    """Fine-tune a detector (Faster R-CNN, C4) from an encoder on annotated images, and report its average precision.

    Example: phinets detect runs/first --data voc:VOCdevkit/VOC2007 --recipe paper --scratch --out runs/voc
    """

    target: Annotated[Path | None, tyro.conf.Positional] = None
    """A run folder, one of its checkpoints, or a file of weights (.safetensors, or a state dict)."""
    recipe: str = "pocket"
    """The transfer to start from: paper (24,000 steps of batch 16), pocket (minutes on two cores), smoke (seconds).
    Every other option changes it."""
    out: Path | None = None
    """The folder for everything; unset: a new one under runs/."""
    overwrite: bool = False
    """Replace the transfer that is in the folder."""
    resume: Path | None = None
    """Resume the run in this folder from its last checkpoint; only compute options may change."""
    how: DetectionConfig = field(default_factory=DetectionConfig)
    json: bool = False
    """Print the summary as one JSON document; progress goes to standard error."""


def command(words: list[str]) -> Outcome:
    options = parse(words)
    with exit_on_interrupt():
        from phinets.reports.progress import PlainConsole
        from phinets.runs.detect import detect, resume_detection

    with Terminal(PlainConsole(stderr=True)) as terminal:
        if options.resume is not None:
            record = resume_detection(options.resume, options.how, callback=terminal)
        else:
            assert options.target is not None
            record = detect(options.target, options.how, options.out, overwrite=options.overwrite, callback=terminal)
    document = {"folder": record.folder, **to_plain(record.summary), "protocol": record.summary.describe()}
    return Outcome(document, lambda console: _show(console, record))


def parse(words: list[str]) -> Detect:
    """The options that the words give, on top of the recipe or the transfer that they name."""
    options = parse_words(Detect, "detect", words, default=_start(words))
    if options.resume is not None:
        if options.target is not None or options.out is not None or options.overwrite:
            raise UserError("--resume knows encoder and folder: leave out the encoder, --out and --overwrite.")
        return options
    if options.target is None:
        raise UserError("name the encoder: phinets detect RUN --data voc:PATH, or resume with --resume FOLDER.")
    if not options.how.images.data:
        raise UserError("name the annotated images: --data voc:PATH, in VOC's layout.")
    return options


def _start(words: list[str]) -> Detect:
    start = peek_start(words, ("recipe", "resume"))
    if "resume" not in start:
        return Detect(how=detection_recipe(start.get("recipe", "pocket")))
    with exit_on_interrupt():
        from phinets.runs.detect import read_start

    return Detect(how=read_start(Path(start["resume"])).config)


class Terminal:
    """A callback that shows the training and the test of each detector on a console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self.steps, self.last_step = 0, 0

    def on_start(self, folder: Path, config: DetectionConfig, steps: int, done: int) -> None:
        """Print the detector and its folder, and start a bar."""
        self.on_message(f"{folder.name}: {steps} steps{f', resuming after {done}' if done else ''} → {folder}")
        self.steps, self.last_step = steps, done
        self.task = self.bar.add_task(folder.name, total=steps, completed=done)

    def on_step(self, row: Mapping[str, Any], pace: "Pace") -> None:
        """Move the bar; without a terminal, print a line for every tenth of the steps."""
        loss = f"loss {row['loss']:.3f}"
        self.bar.update(self.task, completed=row["step"], description=loss)
        if not self.console.is_terminal and row["step"] >= self.last_step + self.steps / 10:
            self.last_step = row["step"]
            self.on_message(f"step {row['step']}/{self.steps} {loss}")

    def on_test(self, done: int, total: int) -> None:
        self.bar.update(self.task, completed=done, total=total, description="test images")

    def on_message(self, text: str) -> None:
        print_lines(self.console, text)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()


def _show(console: Console, record: DetectionRecord) -> None:
    from phinets.reports.detections import class_table, precision_table

    console.print(precision_table(record.summary))
    console.print(class_table(record.summary))
    if record.summary.paper is None:
        why = "The paper's table is of all of VOC 2007 (or 2007 + 2012); other images don't compare with it."
    else:
        why = "The paper's figures are Detectron2's on VOC 2007, R50-C4: compare with --metric voc07 --recipe paper."
    print_lines(console, why, f"{record.summary.seconds:.0f} s in all → {record.folder}")
