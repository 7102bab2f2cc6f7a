"""`phinets report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from phinets.cli.command import Outcome, parse_words
from phinets.cli.output import require_free
from phinets.config.errors import UserError
from phinets.paper.scales import ScaleName

if TYPE_CHECKING:
    from phinets.reports.page.contents import Contents


@dataclass(frozen=True, kw_only=True)
class Report:
    """One page that opens offline: the paper's claims and what runs say of them, tables, figures, and the runs.

    Example: phinets report runs/reproduce --out report.html
    Example: phinets report store-a store-b runs/mine --scale pocket --targets cifar10-ablation
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Stores of `phinets reproduce`, single result files, folders of runs of `phinets train` or `phinets continual`."""
    out: Path = Path("report.html")
    """Where to; a browser opens it."""
    scale: tuple[ScaleName, ...] = ()
    """Only these scales; unset: every one that results belong to."""
    targets: tuple[str, ...] = ()
    """Only these tables and figures; unset: all that have a result. `phinets reproduce --list` shows all."""
    title: str | None = None
    """What stands at the head of the page; unset: PhiNets, re-run."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: where the page is, its size, and how many claims have which verdict."""

    def __post_init__(self) -> None:
        if self.out.suffix.lower() not in (".html", ".htm"):
            raise UserError(
                f"'{self.out}' can't be written: a browser knows a page by its ending. "
                f"Choose another --out, e.g. '{self.out.stem or 'report'}.html'."
            )
        if not self.runs:
            raise UserError("say where the results lie, e.g. phinets report runs/reproduce --out report.html.")


def command(words: list[str]) -> Outcome:
    """Read what there is, and write the page."""
    options = parse_words(Report, "report", words)
    require_free(options.out, options.overwrite)
    contents = _contents(options)
    from phinets.reports.page import page
    from phinets.runtime.files import atomic_write

    made = page(contents).encode()
    atomic_write(options.out, made)
    told = _curves_to_draw(contents)
    return Outcome(
        {"page": str(options.out), "bytes": len(made), **told},
        lambda console: console.print(_sentence(options.out, told), highlight=False, markup=False, soft_wrap=True),
    )


def _contents(options: Report) -> "Contents":
    from phinets.paper.scales import SCALES
    from phinets.paper.targets import TARGETS, target
    from phinets.reports.page.contents import TITLE, Contents, Selection, match_results
    from phinets.reproduce.gather import gather

    selection = Selection(targets=[target(name).name for name in options.targets], scales=options.scale)
    gathered = gather(options.runs)
    if not gathered.results:
        places = ", ".join(f"'{place}'" for place in options.runs)
        raise UserError(
            f"there is no finished result in {places}. Run `phinets reproduce TARGET --store {options.runs[0]}` first."
        )
    match = match_results(gathered.results, TARGETS.values(), SCALES.values(), selection)
    own = {run.key for run in gathered.own}
    return Contents(
        found=match.found,
        own=gathered.own,
        others={name: r for name, r in gathered.results.items() if name in match.unmatched and name not in own},
        unfinished=gathered.unfinished,
        dates=gathered.dates,
        title=options.title or TITLE,
    )


def _curves_to_draw(contents: "Contents") -> dict[str, Any]:
    """What the page holds, in numbers."""
    verdicts = [claim.verdict for found in contents.found for claim in found.claims]
    return {
        "scales": list(dict.fromkeys(found.scale.name for found in contents.found)),
        "targets": list(dict.fromkeys(found.target.name for found in contents.found)),
        "claims": {word: verdicts.count(word) for word in ("holds", "does not hold", "can't tell")},
        "results": len(contents.results),
        "others": len(contents.others),
        "own": len(contents.own),
        "unfinished": list(contents.unfinished),
    }


def _sentence(out: Path, told: dict[str, Any]) -> str:
    claims = ", ".join(f"{count} {word}" for word, count in told["claims"].items())
    shown = f"{told['results']} results, {len(told['targets'])} targets; claims: {claims}"
    skipped = f" Not finished yet: {', '.join(told['unfinished'])}." if told["unfinished"] else ""
    return f"{out}: open it in a browser. {shown}.{skipped}"
