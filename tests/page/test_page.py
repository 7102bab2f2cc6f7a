"""The page holds all that it should, and nothing that it should not; told from its text alone."""

import re
from collections import Counter
from html import unescape
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
from phinets.reports.page.sections import build_scales
from phinets.reports.page.tables import SIGNS, interval
from phinets.reports.paper_tables import SINGLE_QUOTES
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
                by_seed = () if cell.cell.row in table.table.baselines else values
                assert all(f"{value:.2f}".replace("-", "−") in html for value in by_seed)
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
        of = claim.claim
        for words in (of.quote or of.tests[1:], of.tests[1:], of.where):
            assert text.count(words.translate(SINGLE_QUOTES)) >= 2
        assert of.rule.describe() in text
        assert claim.why in text


def test_the_other_readout_and_the_paper_s_numbers_stand_beside_a_claim(
    html: str, targets: tuple[TargetResult, ...]
) -> None:
    """In its row of the overview, and at its target."""
    rows = re.findall(r'<tr data-verdict="([^"]*)">(.*?)</tr>', html, re.DOTALL)
    items = re.findall(r'<ul class="claims-of">(.*?)</ul>', html, re.DOTALL)
    claims = [claim for target in targets for claim in target.claims]
    assert {claim.printed for claim in claims} >= {"agree", "not printed"}
    assert 0 < sum(claim.second is not None for claim in claims) < len(claims)
    for claim, (verdict, row), item in zip(claims, rows, "".join(items).split("<li id=")[1:], strict=True):
        assert verdict.replace("&#39;", "'") == claim.verdict
        for part in map(plain_text, (row, item)):
            assert claim.verdict in part
            assert claim.printed in part
            for effect in (claim.effect, claim.printed_effect):
                assert effect is None or interval(effect) in part
            if claim.second is not None:
                assert f"by {claim.second.readout}: {claim.second.verdict}" in part
                assert claim.second.effect is None or interval(claim.second.effect) in part


def plain_text(part: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", "", part)).split())


def test_verdicts_are_counted_at_the_head_of_the_scale_and_on_the_filter(
    html: str, targets: tuple[TargetResult, ...]
) -> None:
    counts = Counter(claim.verdict for target in targets for claim in target.claims)
    assert len(counts) == 4, "every verdict is there"
    buttons = re.findall(r'<button type="button" data-verdict="([^"]*)".*?</svg>[^<]*?(\d+)</button>', html)
    assert {word.replace("&#39;", "'"): int(n) for word, n in buttons} == counts
    (head,) = re.findall(r'<h2>Scale pocket <span class="tally">(.*?)</h2>', html, re.DOTALL)
    assert list(map(int, re.findall(r"</svg>(\d+)", head))) == [counts[word] for word in SIGNS]


def test_verdicts_can_be_read_in_the_light_and_in_the_dark() -> None:
    """Their colors have a contrast of 4.5 with the page, and differ."""
    style = (files("phinets.reports.page") / "style.css").read_text(encoding="utf-8")
    pairs = dict(re.findall(r"--([a-z]+): light-dark\((#[0-9a-f]{6}, #[0-9a-f]{6})\)", style))
    for n in range(2):
        paper, *verdicts = (pairs[name].split(", ")[n] for name in ("paper", *SIGNS.values()))
        assert len(set(verdicts)) == len(SIGNS)
        assert all(contrast(color, paper) >= 4.5 for color in verdicts)


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""

    def luminance(color: str) -> float:
        shares = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_baselines_stand_apart_below_the_runs_and_are_never_bold(html: str, targets: tuple[TargetResult, ...]) -> None:
    names = [row for target in targets for table in target.tables for row in table.table.baselines]
    parts = re.findall(r'</tbody>\s*<tbody class="baselines">(.*?)</tbody>', html, re.DOTALL)
    assert re.findall(r'<th scope="row">([^<]*)</th>', "".join(parts)) == names
    assert "<b>" not in "".join(parts)


def test_tables_by_the_other_readout_are_folded_and_double_no_figure(
    html: str, targets: tuple[TargetResult, ...]
) -> None:
    doubled = [table.table.name for target in targets for table in target.tables if "/" in table.table.name]
    assert doubled
    assert html.count("<summary>The same by") == len(doubled)
    lines = next(target for target in targets if target.target.figure == "lines")
    (section,) = re.findall(
        rf'<section class="target" id="pocket-{lines.target.name}">(.*?)</section>', html, re.DOTALL
    )
    before, _, _ = section.partition("<summary>Learning curves")
    assert before.count('class="drawn"') == sum("/" not in table.table.name for table in lines.tables)


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
    assert cell.chance is not None
    assert f'<a href="#r-{diverged}">seed 1</a> {cell.chance:.2f} <em>diverged</em>' in made
    assert "the loss is nan" in made
    seeds = len(cell.jobs)
    assert f'<span class="dagger" title="1 of {seeds} seeds collapsed or diverged">†1</span>' in made


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


def test_learning_curves_of_the_same_runs_are_drawn_once() -> None:
    scale = SCALES["smoke"]
    both = [TARGETS["batch-size-knn"], TARGETS["batch-size-linear"]]
    results = faking.results(both, scale)
    for order in (both, both[::-1]):
        (section,) = build_scales([target_result(target, scale, results) for target in order])
        assert [bool(target.panels) for target in section.targets] == [True, False]
        assert [target.curves_above for target in section.targets] == [False, True]


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
