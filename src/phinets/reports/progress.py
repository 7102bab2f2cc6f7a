"""Progress on a terminal: bars of training and of counted images, plain lines elsewhere, the final table."""

from collections.abc import Mapping
from time import monotonic
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from phinets.config.errors import printable
from phinets.config.record import Summary

NOT_TERMS = ("kind", "step", "epoch", "loss", "lr")
SECONDS_BETWEEN_LINES = 10.0
"""Where there is no terminal."""


class PlainConsole(Console):
    """A console that prints strings as they are: names in them are neither markup nor emoji, nor obeyed as escapes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as the console shows it."""
        return super().render_str(printable(text), **options)


class LiveBar:
    """Loss terms, learning rate, collapse meter, last kNN, images/s, share of time waiting for data, time left."""

    def __init__(self, console: Console, steps: int, done: int = 0) -> None:
        self.console = console
        self.steps = steps
        self.step: Mapping[str, Any] = {}
        self.evaluation: Mapping[str, Any] = {}
        self.speed = ""
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self.progress = Progress(TextColumn("step {task.completed}/{task.total}"), BarColumn(), *times)
        self.task = self.progress.add_task("", total=steps, completed=done)
        self.live = Live(console=console, get_renderable=self._picture, refresh_per_second=4)
        if console.is_terminal:
            self.live.start()

    def close(self) -> None:
        """Leave the terminal as it was."""
        self.live.stop()

    def _picture(self) -> Group:
        return Group(self.progress, Text(self.line()))

    def on_step(self, row: Mapping[str, Any], images_per_second: float, data_wait: float) -> None:
        """Show the last step."""
        self.step = row
        self.speed = f"{images_per_second:.0f} img/s wait {100 * data_wait:.0f}%"
        self.progress.update(self.task, completed=row["step"])

    def on_eval(self, row: Mapping[str, Any]) -> None:
        """Show the last evaluation; print it as a line where there is no terminal."""
        self.evaluation = row
        if not self.console.is_terminal:
            self.console.print(f"step {row['step']}/{self.steps} {self.line()}", highlight=False, soft_wrap=True)

    def line(self) -> str:
        """The last step and evaluation in one line."""
        terms = " ".join(f"{name} {value:+.3f}" for name, value in self.step.items() if name not in NOT_TERMS)
        return f"{terms} lr {self.step.get('lr', 0.0):.4f} {self._health()} {self.speed}"

    def _health(self) -> str:
        row = self.evaluation
        if not row:
            return "kNN …"
        knn = f"kNN {row['knn']:.1f}% " if "knn" in row else ""
        return f"{knn}std√d {row['spread']:.2f} rank {row['effective_rank']:.0f}"


def result_table(summary: Summary) -> Table:
    """kNN and linear probe of the trained encoder beside the untrained one and raw pixels."""
    table = Table(title=f"{summary.method} on {summary.data}: {summary.headline}", caption=summary.protocol)
    for name in ("features", "kNN %", "linear %"):
        table.add_column(name, justify="left" if name == "features" else "right")
    rows = (
        ("raw pixels", summary.knn_pixels, summary.linear_pixels),
        (f"{summary.backbone}, untrained", summary.knn_untrained, summary.linear_untrained),
        (f"{summary.backbone}, {summary.method}", summary.knn, summary.linear),
        *([] if summary.knn_slow is None else [("its slow encoder", summary.knn_slow, summary.linear_slow)]),
    )
    for name, *values in rows:
        table.add_row(name, *("–" if value is None else f"{value:.1f}" for value in values))
    return table


class CountBar:
    """Images done of all, images/s, time left."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.start = self.last_line = monotonic()
        self.first: int | None = None
        """How many were done at the start: they do not count for the speed."""
        columns = (TextColumn("{task.completed}/{task.total} images"), BarColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TextColumn("{task.description}"), console=console, refresh_per_second=4)
        self.task = self.progress.add_task("", total=None)

    def __enter__(self) -> "CountBar":
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def __call__(self, done: int, of: int) -> None:
        """Show how many images are done."""
        now = monotonic()
        if self.first is None:
            self.first, self.start, self.last_line = done, now, now
            if done:
                self.console.print(f"resuming after {done} of {of} images", highlight=False)
        pace = self.pace(done, of, now - self.start)
        self.progress.update(self.task, completed=done, total=of, description=pace)
        if not self.console.is_terminal and (now - self.last_line > SECONDS_BETWEEN_LINES or done == of):
            self.last_line = now
            self.console.print(f"{done}/{of} images{', ' * bool(pace)}{pace}", highlight=False, soft_wrap=True)

    def pace(self, done: int, of: int, seconds: float) -> str:
        """Images per second since the start, and the time left."""
        fresh = done - (self.first or 0)
        if fresh <= 0 or seconds <= 0:
            return ""
        left = round((of - done) * seconds / fresh)
        return f"{fresh / seconds:.1f} images/s, {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"
