"""How the work goes, as a person watches it: a line for each piece that is done, with the time that is left."""

from collections.abc import Callable, Sequence
from time import monotonic

from rich.console import Console

from phinets.config.result import Result
from phinets.config.work import Deriving, Work, kind, seed

UNITS = {"years": 31_557_600, "days": 86_400, "h": 3600, "min": 60, "s": 1}
"""Seconds of each."""


def duration(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3.5 h, 12 days."""
    name = next((name for name, part in UNITS.items() if seconds >= 2 * part), "s")
    count = seconds / UNITS[name]
    return f"{count:.1f} {name}" if count < 10 and name in ("h", "days", "years") else f"{count:,.0f} {name}"


class Progress:
    """An onlooker that says a line for each piece of work."""

    def __init__(self, console: Console, seconds: Callable[[Work], float]) -> None:
        self.console, self.seconds = console, seconds
        self.total, self.count, self.began_at = 0, 0, 0.0
        self.ahead, self.behind = 0.0, 0.0
        """Estimated seconds of what is still to be done, and of what is done."""

    def began(self, works: Sequence[Work]) -> None:
        """Say how much there is."""
        self.total, self.began_at = len(works), monotonic()
        self.ahead = sum(map(self.seconds, works))
        self._say(f"{self.total} pieces of work to do; about {duration(self.ahead)}")

    def done(self, result: Result) -> None:
        """Say how it went, and how long the rest may take: by the estimates, and by how they held so far."""
        weight = self.seconds(result.work)
        self.count, self.behind, self.ahead = self.count + 1, self.behind + weight, max(0.0, self.ahead - weight)
        left = (monotonic() - self.began_at) * self.ahead / self.behind
        self._say(f"{self.count}/{self.total} {described(result.work)}: {_outcome(result)}; {duration(left)} left")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def described(work: Work) -> str:
    """A piece of work in few words."""
    if isinstance(work, Deriving):
        return f"checking {', '.join(work.statements)}"
    run = work.run
    decay = f"wd {run.optimization.weight_decay:g}"
    return f"{kind(work)} {run.method} on {run.data}, batch {run.batch}, {decay}, seed {seed(work)}"


def _outcome(result: Result) -> str:
    if result.failed is not None:
        return f"failed: {_first_line(result.failed)}"
    lost = f" ({result.health})" if result.lost else ""
    return f"{result.seconds:.1f} s{lost}"


def _first_line(reason: str) -> str:
    """The sentence that says it: the last line of a traceback, the first of a message."""
    lines = reason.strip().splitlines()
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]
