"""How a judgement is said: the number, and beside it how it was got."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from phinets.cli.outcome import Outcome


def said(
    judgement: str, accuracy: float, protocol: str, details: Mapping[str, Any], further: tuple[str, ...] = ()
) -> Outcome:
    """A percentage with its protocol; `further` are lines for people, `details` entries for machines."""

    def show(console: Console) -> None:
        console.print(f"{judgement} {accuracy:.2f} %", highlight=False, style="bold")
        for line in (*further, protocol):
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return Outcome({"judgement": judgement, "accuracy": accuracy, "protocol": protocol, **details}, show)


@contextmanager
def watched(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that is told the step and how many there are."""
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda step, steps: bar.update(task, completed=step, total=steps)
