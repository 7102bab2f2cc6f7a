"""`phinets report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from phinets.cli.command import Outcome, parse_words, show_lines
from phinets.cli.output import FileOptions, require_ending, require_free
from phinets.config.errors import UserError
from phinets.paper.scales import ScaleName

if TYPE_CHECKING:
    from phinets.reports.page.contents import Contents


@dataclass(frozen=True, kw_only=True)
class Report(FileOptions):
    """Write one offline page: the paper's claims and what runs say about them, tables, figures, and the runs.

    Example: phinets report runs/reproduce --out report.html
    Example: phinets report store-a store-b runs/mine --scale pocket --targets cifar10-ablation
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Stores of `phinets reproduce`, single result files, run folders of `phinets train` or `phinets continual`."""
    out: Path = Path("report.html")
    """The page; with the suffix .md only the tables and claims, as Markdown."""
    scale: tuple[ScaleName, ...] = ()
    """Only these scales; unset: every scale with results."""
    targets: tuple[str, ...] = ()
    """Only these tables and figures; unset: all with results. `phinets reproduce --list` shows all."""
    title: str | None = None
    """The page's title; unset: PhiNets, re-run."""

    def __post_init__(self) -> None:
        require_ending(self.out, ("html", "htm", "md"))
        if not self.runs:
            raise UserError("name the folder of the results: phinets report runs/reproduce --out report.html.")


def command(words: list[str]) -> Outcome:
    options = parse_words(Report, "report", words)
    require_free(options.out, options.overwrite)
    contents = _contents(options)
    from phinets.reports.page import page
    from phinets.reports.paper_tables import report_markdown
    from phinets.runtime.files import atomic_write

    is_markdown = options.out.suffix.lower() == ".md"
    content = (report_markdown(contents.targets) if is_markdown else page(contents)).encode()
    atomic_write(options.out, content)
    document: dict[str, Any] = {"page": str(options.out), "bytes": len(content), **_counts(contents)}
    claims = ", ".join(f"{count} {word}" for word, count in document["claims"].items())
    skipped = f" Unfinished: {', '.join(document['unfinished'])}." if document["unfinished"] else ""
    counts = f"{document['results']} results, {len(document['targets'])} targets; claims: {claims}"
    return Outcome(document, show_lines(f"{options.out}: {counts}.{skipped}"))


def _contents(options: Report) -> "Contents":
    from phinets.paper.scales import SCALES
    from phinets.paper.targets import TARGETS, target
    from phinets.reports.page.contents import TITLE, Contents, match_results
    from phinets.reproduce.gather import gather

    names = [target(name).name for name in options.targets]
    gathered = gather(options.runs)
    if not gathered.results:
        places = ", ".join(f"'{place}'" for place in options.runs)
        raise UserError(
            f"there is no finished result in {places}. Run `phinets reproduce TARGET --store {options.runs[0]}` first."
        )
    match = match_results(gathered.results, TARGETS.values(), SCALES.values(), names, options.scale)
    own = {run.key for run in gathered.own}
    return Contents(
        targets=match.targets,
        own=gathered.own,
        others={name: r for name, r in gathered.results.items() if name in match.unmatched and name not in own},
        unfinished=gathered.unfinished,
        dates=gathered.dates,
        title=options.title or TITLE,
    )


def _counts(contents: "Contents") -> dict[str, Any]:
    """The numbers of scales, targets, claims and results on the page."""
    from phinets.reports.paper_tables import VERDICTS

    verdicts = [claim.verdict for target in contents.targets for claim in target.claims]
    return {
        "scales": list(dict.fromkeys(target.scale.name for target in contents.targets)),
        "targets": list(dict.fromkeys(target.target.name for target in contents.targets)),
        "claims": {word: verdicts.count(word) for word in VERDICTS},
        "results": len(contents.results),
        "others": len(contents.others),
        "own": len(contents.own),
        "unfinished": list(contents.unfinished),
    }
