"""`phinets dynamics explore`."""

from dataclasses import dataclass
from pathlib import Path

from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError


@dataclass(frozen=True)
class Explore:
    """Write a page to play with, offline: PhiNet beside SimSiam, sliders for ρ and σ², trajectories by a click.

    Example: phinets dynamics explore --out explorer.html
    """

    out: Path = Path("explorer.html")
    """Where to; a browser opens it."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: where the page is, and its size in bytes."""

    def __post_init__(self) -> None:
        if self.out.suffix.lower() not in (".html", ".htm"):
            raise UserError(
                f"'{self.out}' can't be written: a browser knows a page by its ending. "
                f"Choose another --out, e.g. '{self.out.stem or 'explorer'}.html'."
            )


def command(words: list[str]) -> Outcome:
    """Write the page."""
    options = parse_words(Explore, "dynamics explore", words)
    require_free(options.out, options.overwrite)
    from phinets.reports.explorer import explorer
    from phinets.runtime.files import atomic_write

    page = explorer().encode()
    atomic_write(options.out, page)
    told = f"{options.out}: open it in a browser"
    return Outcome(
        {"page": str(options.out), "bytes": len(page)},
        lambda console: console.print(told, highlight=False, markup=False, soft_wrap=True),
    )
