"""The claims of the targets: each names cells that there are, and looks at the right ones."""

import re

import pytest

from phinets.paper.findings import printed_evidence
from phinets.paper.plan import Target
from phinets.paper.rules import AllHold, Collapse, Comparable, Evidence, Higher
from phinets.paper.scales import Scale, scale
from phinets.paper.targets import TARGETS
from phinets.paper.targets.dynamics import COMPARISON, FLOW, OBSERVATIONS, SIMSIAM


def places(target: Target, at: Scale) -> list[tuple[str, str, str]]:
    return [(table.name, cell.row, cell.column) for table in target.tables(at) for cell in table.cells]


def blank(target: Target, at: Scale) -> Evidence:
    """Every cell there, with five seeds that are all alike."""
    there = places(target, at)
    return Evidence(values=dict.fromkeys(there, (1.0,) * 5), lost=dict.fromkeys(there, (False,) * 5))


def test_every_claim_rests_on_cells_that_there_are() -> None:
    for name in TARGETS:
        evidence = blank(TARGETS[name], scale("paper"))
        for claim in TARGETS[name].claims:
            rests_on = claim.rule.places(evidence)
            assert rests_on, claim.name
            assert set(rests_on) <= set(evidence.values), claim.name
            assert claim.rule.effect(evidence) is not None, claim.name


def test_every_target_has_claims_or_says_why_not() -> None:
    for name in TARGETS:
        target = TARGETS[name]
        assert target.claims or "no claim" in target.notes
        assert len({claim.name for claim in target.claims}) == len(target.claims)
        for claim in target.claims:
            assert claim.quote
            assert claim.tests
            assert claim.where
            assert claim.rule.describe()


def test_no_claim_compares_something_with_itself() -> None:
    for name in TARGETS:
        for claim in TARGETS[name].claims:
            rule = claim.rule
            if isinstance(rule, Higher):
                assert not set(rule.over) & set(rule.under), claim.name
            elif isinstance(rule, Comparable):
                assert rule.one != rule.other


def test_no_claim_is_supported_where_all_numbers_are_the_same_but_those_of_sameness() -> None:
    for name in TARGETS:
        evidence = blank(TARGETS[name], scale("paper"))
        for claim in TARGETS[name].claims:
            effect = claim.rule.effect(evidence)
            assert effect is not None
            trivial = isinstance(claim.rule, Comparable | AllHold)
            trivial = trivial or (isinstance(claim.rule, Collapse) and not claim.rule.lost)
            trivial = trivial or (isinstance(claim.rule, Higher) and claim.rule.margin < 0)
            assert effect.supports == trivial, claim.name


@pytest.mark.parametrize(
    ("name", "claim", "size", "agrees"),
    [
        ("cifar5m", "x-phinet-good", 87.46 - 85.32, True),
        ("cifar5m", "x-phinet-above-simsiam-in-a-stream", ((91.02 - 90.84) + (90.90 - 88.20)) / 2, True),
        ("cifar5m", "minimal-forgetting", ((2.45 - 3.44) + (0.36 + 1.03)) / 2, True),
        ("split-cifar5m-two-epochs", "x-phinet-still-high", 92.83 - 92.25, True),
        ("split-cifar5m-two-epochs", "x-phinet-mse-improves", 92.33 - 91.02, True),
        ("split-cifar5m-two-epochs", "x-phinet-cosine-improves", 0.0, False),
        ("split-cifar5m-mixup", "x-phinet-considerably-higher", 92.43 - 91.92, True),
        ("split-cifar5m-mixup", "comparable-barlow-twins", 92.26 - 92.36, True),
        ("split-cifar", "x-phinet-above-simsiam-cifar10", ((90.90 - 91.05) + (90.49 - 90.68)) / 2, False),
        ("split-cifar", "x-phinet-highest-with-mixup-cifar100", 83.88 - 82.47, True),
        ("split-cifar", "phinet-sometimes-above-x-phinet", 78.50 - 77.50, True),
        ("ema-beta", "best-in-the-middle", 83.88 - 83.19, True),
        ("cifar10-ablation", "original-input-hurts", (1.30 + 13.72 + 21.95) / 3, True),
        ("cifar10-ablation", "cosine-as-good-without-decay", 80.06 - 77.77, False),
        ("cifar10-ablation", "mse-better-with-stop-gradient", (14.97 - 0.63 + 2.37) / 3, True),
        ("cifar10-ablation", "cosine-worse-without-stop-gradient", 80.06 - 27.57, True),
        ("imagenet-weight-decay", "comparable", (0.08 + 0.71) / 2, True),
        ("imagenet-weight-decay", "simsiam-unstable-at-small-decays", (22.78 + 58.19 + 16.31) / 3 - 1.05, True),
        ("imagenet-g", "shared-g-lowest", 66.35 - 55.12, True),
        ("cifar5m-one-epoch", "x-phinet-robustly-well", 71.93 - 69.60, True),
        ("cifar5m-weight-decay", "with-aug-worse-mse", (3.06 + 1.03 + 0.85 - 0.06) / 4, True),
        ("augmented-anchor", "steady-cosine", (77.71 - 75.02) - (86.96 - 84.31), True),
        (
            "batch-size-knn",
            "cosine-poor-0.0005",
            (90.05 + 90.13 + 90.39 + 90.70 - 86.35 - 86.36 - 86.42 - 86.65) / 4,
            True,
        ),
        ("voc", "comparable-simsiam-first-07+12", (82.3 + 56.9 + 63.9 - 80.6 - 55.1 - 61.0) / 3, False),
        ("memory", "batch-decides", 12.23 - 4 * 2.79, True),
    ],
)
def test_on_the_paper_s_own_numbers_a_claim_has_the_effect_that_is_there(
    name: str, claim: str, size: float, agrees: bool
) -> None:
    rule = next(each.rule for each in TARGETS[name].claims if each.name == claim)
    effect = rule.effect(printed_evidence(TARGETS[name].tables(scale("paper"))))
    assert effect is not None
    assert effect.size == pytest.approx(size, abs=1e-9)
    assert effect.supports == agrees


def test_readouts_of_the_paper_agree() -> None:
    target = TARGETS["batch-size-linear"]
    rule = next(claim.rule for claim in target.claims if claim.name == "readouts-agree")
    effect = rule.effect(printed_evidence(target.tables(scale("paper"))))
    assert effect is not None
    assert effect.supports


def test_every_statement_of_a_figure_on_dynamics_is_one_that_is_checked() -> None:
    from phinets.dynamics.claims import CLAIMS

    assert set(FLOW + SIMSIAM + COMPARISON + OBSERVATIONS) <= set(CLAIMS)


def test_claims_on_dynamics_are_what_the_paper_says_and_all_of_it() -> None:
    """Rows of our own have no claim; every other row has one for each version of the equations, with the same words."""
    from phinets.dynamics.claims import check_paper

    checks = check_paper(only=[name for name in FLOW + COMPARISON + OBSERVATIONS if name != "c2-off-parabola"])
    said = {name for name, check in checks.items() if check.in_paper}
    assert not said & set(OBSERVATIONS)
    for column in ("as printed", "corrected"):
        claims = [
            claim
            for name in ("dynamics-flow", "dynamics-comparison")
            for claim in TARGETS[name].claims
            if isinstance(claim.rule, AllHold) and claim.rule.column == column
        ]
        assert {row for claim in claims for row in claim.rule.rows} == said  # type: ignore[attr-defined]
        for claim in claims:
            for row in claim.rule.rows:  # type: ignore[attr-defined]
                for words in re.findall("“(.*)”", checks[row].statement):
                    assert words in claim.quote, row
