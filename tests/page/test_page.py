"""The page holds all that it should, and nothing that it should not; told from its text alone."""

import re
from collections import Counter
from html.parser import HTMLParser
from importlib.resources import files
from statistics import fmean, stdev

import pytest

from phinets.config.jobs import PretrainJob, Result
from phinets.paper.findings import TargetResult, target_result
from phinets.paper.scales import SCALES
from phinets.paper.targets import TARGETS
from phinets.reports import palette
from phinets.reports.page import Contents, page
from tests.page import faking

VOID = {"meta", "link", "br", "hr", "img", "input"}


class TaskEvaluator(HTMLParser):
    """The tags that are open, the ids, the links, and the text of each place that asks for nothing to be run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._noted(dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._noted(dict(attrs))

    def _noted(self, said: dict[str, str | None]) -> None:
        self.ids += [said["id"] or ""] if "id" in said else []
        self.links += [said["href"] or ""] if "href" in said else []
        self.fetched += [said[name] or "" for name in ("src", "srcset", "data", "action") if name in said]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


@pytest.fixture(scope="module")
def read(html: str) -> TaskEvaluator:
    reader = TaskEvaluator()
    reader.feed(html)
    reader.close()
    return reader


def test_every_tag_that_is_opened_is_closed_in_its_turn(read: TaskEvaluator) -> None:
    assert read.open == []


def test_no_two_elements_share_an_id(read: TaskEvaluator) -> None:
    assert [name for name, n in Counter(read.ids).items() if n > 1] == []


def test_every_link_leads_to_an_element_of_the_page(read: TaskEvaluator) -> None:
    assert {link for link in read.links if not link.startswith("#")} == {"data:,"}
    assert {link.removeprefix("#") for link in read.links if link != "data:,"} <= set(read.ids)


def test_nothing_is_fetched_from_anywhere(html: str, read: TaskEvaluator) -> None:
    assert read.fetched == []
    assert not re.findall(r"https?:|@import|\burl\((?!#)|fetch\(|XMLHttp|import\s*[({*]", html)


def test_the_same_contents_give_the_same_bytes(html: str, contents: Contents) -> None:
    assert page(contents) == html


def test_every_number_of_every_table_stands_in_it_beside_the_paper_s(
    html: str, targets: tuple[TargetResult, ...]
) -> None:
    checked = 0
    for table in (table for target in targets for table in target.tables):
        digits = 2 if max(abs(cell.mean or 0) for cell in table.cells) >= 1 else 3
        for cell in table.cells:
            values = [value for value in cell.values if value is not None]
            if values and not of_statements(cell.cell.measure):
                spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
                assert f"{fmean(values):.{digits}f}{spread}".replace("-", "−") in html
                assert all(f"{value:.2f}".replace("-", "−") in html for value in values)
                checked += 1
            if cell.printed is not None and cell.printed.mean is not None:
                spread = "" if cell.printed.spread is None else f" ± {cell.printed.spread:.2f}"
                assert f"{cell.printed.mean:.2f}{spread}".replace("-", "−") in html
    assert checked > 60


def of_statements(measure: str) -> bool:
    return measure.endswith(("/published", "/corrected"))


def test_every_claim_stands_in_the_overview_and_at_its_target_with_its_rule(
    read: TaskEvaluator, targets: tuple[TargetResult, ...]
) -> None:
    text = " ".join(" ".join(read.text).split())
    claims = [claim for target in targets for claim in target.claims]
    assert claims
    for claim in claims:
        says = claim.claim.says[:1].upper() + claim.claim.says[1:]
        assert text.count(says) >= 2
        assert claim.claim.rule.describe() in text
        assert claim.why in text


def test_only_effects_of_several_seeds_have_an_interval_drawn(html: str, targets: tuple[TargetResult, ...]) -> None:
    effects = [claim.effect for target in targets for claim in target.claims if claim.effect is not None]
    several = sum(effect.seeds > 1 for effect in effects)
    assert 0 < several < len(effects)
    assert html.count('<path class="zero"') == 2 * len(effects), "in the overview, and at the target"
    assert html.count('<path class="interval"') == 2 * several


def test_every_result_is_listed_once_and_every_cell_leads_to_its_runs(
    html: str, contents: Contents, read: TaskEvaluator
) -> None:
    listed = [name for name in read.ids if name.startswith("r-")]
    assert sorted(listed) == sorted(f"r-{key}" for key in contents.results)
    cells = {key for target in contents.targets for key in target.results}
    assert {f"#r-{key}" for key in cells} <= set(read.links) | {"#r-" + key for key in begun_with(contents)}


def begun_with(contents: Contents) -> set[str]:
    """Pretrainings that no cell shows, because something else began with them."""
    firsts = (result.job.requires for target in contents.targets for result in target.results.values())
    return {first.key for first in firsts if isinstance(first, PretrainJob)}


def test_words_of_others_are_told_as_words(html: str) -> None:
    assert "A &lt;title&gt; &amp; more" in html
    assert "runs/&lt;mine&gt;" in html
    assert "<title> &" not in html


def test_what_failed_is_told_with_its_reason_and_what_diverged_counts_as_lost() -> None:
    target, scale = TARGETS["fast-slow"], SCALES["pocket"]
    results = faking.results([target], scale)
    cell = next(cell for table in target.tables(scale) for cell in table.cells)
    failed, diverged = (job.key for job in cell.jobs[:2])
    results[failed] = Result(job=cell.jobs[0], failed="no <room> left")
    results[diverged] = Result(job=cell.jobs[1], health="diverged", protocol="the loss is nan")
    made = page(Contents(targets=(target_result(target, scale, results),)))
    assert "no &lt;room&gt; left" in made
    assert re.search(rf'id="r-{failed}".*?<em>failed</em>', made, re.DOTALL)
    assert f'<a href="#r-{failed}">seed 0</a> – <em>failed</em>' in made
    assert f'<a href="#r-{diverged}">seed 1</a> – <em>diverged</em>' in made
    assert "the loss is nan" in made
    assert '<span class="dagger" title="1 of 3 seeds collapsed or diverged">†1</span>' in made


def test_what_nobody_has_run_is_counted_and_its_cells_say_so() -> None:
    target, scale = TARGETS["split-cifar"], SCALES["pocket"]
    made = page(Contents(targets=(target_result(target, scale, {}),)))
    jobs = len(target.jobs(scale))
    assert f"<b>{jobs}</b> not run yet" in made
    cells = sum(len(table.cells) for table in target.tables(scale))
    assert made.count('title="not run yet"') == cells


def test_the_head_counts_runs_that_collapsed_and_failed(html: str, contents: Contents) -> None:
    results = contents.results.values()
    for word, n in (
        ("runs", len(results)),
        ("collapsed", sum(result.lost for result in results)),
        ("failed", sum(result.failed is not None for result in results)),
    ):
        assert f"<b>{n}</b> {word}" in html
    assert "2025-03-01 to 2025-03-04" in html
    assert faking.ENVIRONMENT["commit"][:9] in html


def test_results_of_no_target_and_unfinished_runs_have_a_note(html: str) -> None:
    assert "1 result belongs to no table or figure" in html
    assert "Not finished yet, so not shown: <code>runs/half</code>" in html


def test_a_run_of_one_s_own_says_what_it_counts_for(html: str) -> None:
    own = html[html.index('id="own"') : html.index('id="others"')]
    assert 'counts for <a href="#pocket-split-cifar">split-cifar</a>' in own
    assert own.count('class="drawn"') == 2


def test_scales_have_a_section_each_and_state_spaces_are_drawn_once() -> None:
    names = ("fast-slow", "dynamics-simsiam")
    scales = [SCALES[name] for name in ("pocket", "smoke")]
    every = [TARGETS[name] for name in names]
    shown = [target_result(target, scale, faking.results(every, scale)) for scale in scales for target in every]
    made = page(Contents(targets=tuple(shown)))
    for scale in ("pocket", "smoke"):
        assert f'<section class="scale" id="{scale}">' in made
        assert all(f'<section class="target" id="{scale}-{name}">' in made for name in names)
    assert made.count('class="space"') == 1
    at = [made.index(text) for text in ('class="space"', 'id="smoke"', '<a href="#pocket-dynamics-simsiam">see')]
    assert at == sorted(at)


def test_an_empty_page_can_be_read() -> None:
    reader = TaskEvaluator()
    reader.feed(page(Contents()))
    assert reader.open == []
    assert {link.removeprefix("#") for link in reader.links if link != "data:,"} <= set(reader.ids)


def test_its_colors_are_those_of_the_pictures() -> None:
    style = (files("phinets.reports.page") / "style.css").read_text(encoding="utf-8")
    for name, color in (
        ("ink", palette.INK),
        ("accent", palette.FAST),
        ("no", palette.WRONG),
        ("open", palette.COLLAPSE),
    ):
        assert f"--{name}: light-dark({color}," in style


@pytest.mark.slow
def test_every_target_has_its_place_and_all_of_them_at_the_pocket_scale_are_below_three_megabytes() -> None:
    scale = SCALES["pocket"]
    results = faking.results(TARGETS.values(), scale)
    assert len(results) >= 500
    made = page(Contents(targets=tuple(target_result(target, scale, results) for target in TARGETS.values())))
    assert len(made.encode()) < 3_000_000
    reader = TaskEvaluator()
    reader.feed(made)
    assert reader.open == []
    assert [name for name, n in Counter(reader.ids).items() if n > 1] == []
    assert {f"pocket-{name}" for name in TARGETS} <= set(reader.ids)
    assert {link.removeprefix("#") for link in reader.links if link != "data:,"} <= set(reader.ids)
