"""The claims of the targets: each names cells that there are, and looks at the right ones."""

import re

import pytest

from phinets.paper.numbers import paper_numbers
from phinets.paper.plan import Target
from phinets.paper.rules import AllHold, Collapse, Comparable, Drop, Evidence, Higher
from phinets.paper.scales import Scale, scale
from phinets.paper.targets import TARGETS
from phinets.paper.targets.dynamics import COMPARISON, FLOW, OBSERVATIONS, SIMSIAM


def places(target: Target, at: Scale) -> list[tuple[str, str, str]]:
    return [(table.name, cell.row, cell.column) for table in target.tables(at) for cell in table.cells]


def blank(target: Target, at: Scale) -> Evidence:
    """Every cell there, with three seeds that are all alike."""
    there = places(target, at)
    return Evidence(values=dict.fromkeys(there, (1.0,) * 3), lost=dict.fromkeys(there, (False,) * 3))


def as_printed(target: Target) -> Evidence:
    """The paper's own means, as if there were two seeds of each."""
    known = {
        (table.name, *at): (number.mean,) * 2
        for table in target.tables(scale("paper"))
        for at, number in paper_numbers(table.name).items()
    }
    return Evidence(values=known, lost={})


def test_every_claim_rests_on_cells_that_there_are() -> None:
    for name in TARGETS:
        for at in ("paper", "pocket"):
            evidence = blank(TARGETS[name], scale(at))
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
            assert claim.says
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
            elif isinstance(rule, Drop):
                assert rule.name != rule.other


def test_a_claim_of_margins_does_not_hold_where_all_numbers_are_the_same() -> None:
    """No claim holds of itself but those that say that things are the same, and that nothing is lost."""
    for name in TARGETS:
        evidence = blank(TARGETS[name], scale("pocket"))
        for claim in TARGETS[name].claims:
            effect = claim.rule.effect(evidence)
            assert effect is not None
            trivial = isinstance(claim.rule, Comparable | AllHold)
            trivial = trivial or (isinstance(claim.rule, Collapse) and not claim.rule.lost)
            trivial = trivial or (isinstance(claim.rule, Higher) and claim.rule.margin < 0)
            assert (claim.rule.verdict(effect) == "holds") == trivial, claim.name


@pytest.mark.parametrize(
    ("name", "claim", "size"),
    [
        ("cifar5m", "x-phinet-highest", (87.30 + 87.46) / 2 - 85.32),
        ("cifar5m", "x-phinet-above-simsiam-in-a-stream", (91.02 + 92.83) / 2 - 90.84),
        ("cifar5m", "minimal-forgetting", ((2.45 - (3.44 + 1.95) / 2) + (0.36 - (-1.03 + 0.43) / 2)) / 2),
        ("split-cifar5m-two-epochs", "x-phinet-highest", (92.33 + 92.83) / 2 - 92.25),
        ("split-cifar5m-mixup", "x-phinet-considerably-higher", (91.78 + 92.43) / 2 - 91.92),
        ("split-cifar5m-mixup", "comparable-barlow-twins", 92.26 - 92.36),
        ("split-cifar", "x-phinet-above-simsiam-cifar10", (90.90 + 90.97) / 2 - 91.05),
        ("split-cifar", "x-phinet-highest-with-mixup-cifar100", (83.32 + 83.88) / 2 - 82.47),
        ("ema-beta", "best-in-the-middle", 83.88 - 83.19),
        ("cifar10-ablation", "original-input-hurts", (1.30 + 13.72 + 21.95) / 3 - 5),
        ("cifar10-ablation", "cosine-as-good-without-decay", 80.06 - 77.77),
        ("cifar10-ablation", "mse-better-with-stop-gradient", (14.97 - 0.63 + 2.37) / 3),
        ("imagenet-weight-decay", "comparable", (0.08 + 0.71) / 2),
        ("imagenet-weight-decay", "simsiam-suffers-at-small-decays", (68.17 + 67.12) / 2 - 60.82),
        ("imagenet-g", "shared-g-below-own-g", 66.64 - 55.12 - 5),
        ("cifar5m-one-epoch", "x-phinet-highest", (71.20 + 72.10) / 2 - 69.41),
        ("cifar5m-weight-decay", "with-aug-worse-mse", (3.06 + 1.03 + 0.85 - 0.06) / 4),
        ("augmented-anchor", "steady-cosine", (77.71 - 75.02) - (86.96 - 84.31)),
        ("moco-weight-decay", "steadier-than-moco", (88.11 - 80.44) - (91.19 - 10.00)),
        (
            "batch-size-knn",
            "cosine-poor-0.0005",
            (90.05 + 90.13 + 90.39 + 90.70 - 86.35 - 86.36 - 86.42 - 86.65) / 4 - 2,
        ),
        ("stl10", "comparable-0.001", (-0.02 + 0.10 - 0.09) / 3),
        ("voc", "comparable-simsiam-first-07+12", (82.3 + 56.9 + 63.9 - 80.6 - 55.1 - 61.0) / 3),
        ("memory", "batch-decides", 12.23 - 2.79),
    ],
)
def test_on_the_paper_s_own_numbers_a_claim_finds_the_effect_that_is_there(name: str, claim: str, size: float) -> None:
    rule = next(each.rule for each in TARGETS[name].claims if each.name == claim)
    effect = rule.effect(as_printed(TARGETS[name]))
    assert effect is not None
    assert effect.size == pytest.approx(size, abs=1e-9)


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
