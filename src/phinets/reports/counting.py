"""Images that pass, as a person watches them: a bar on a terminal, a plain line now and then elsewhere."""

from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


class CountBar:
    """How many of how many images, images/s, time left."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began = self.said = monotonic()
        self.first: int | None = None
        """How many were done when this began: they tell nothing of the speed."""
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
        """So many are done."""
        now = monotonic()
        if self.first is None:
            self.first, self.began, self.said = done, now, now
            if done:
                self.console.print(f"going on after {done} of {of} images", highlight=False)
        told = self.pace(done, of, now - self.began)
        self.progress.update(self.task, completed=done, total=of, description=told)
        if not self.console.is_terminal and (now - self.said > EVERY or done == of):
            self.said = now
            self.console.print(f"{done}/{of} images{', ' * bool(told)}{told}", highlight=False, soft_wrap=True)

    def pace(self, done: int, of: int, seconds: float) -> str:
        """Images per second since this began, and the time that the rest will take."""
        fresh = done - (self.first or 0)
        if fresh <= 0 or seconds <= 0:
            return ""
        left = round((of - done) * seconds / fresh)
        return f"{fresh / seconds:.1f} images/s, {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"
