"""The words that the actions of `phinets dynamics` have in common."""

import pytest

from tests.cli.test_main import said

ACTIONS = (
    ["equilibria"],
    ["basins", "--grid", "3"],
    ["portrait", "--out", "nowhere.png"],
    ["flow"],
)


@pytest.mark.parametrize("words", ACTIONS, ids=lambda words: words[0])
@pytest.mark.parametrize(("rho", "says"), [("1e-13", "below 1e-12"), ("1e-300", "below 1e-12"), ("1e7", "above 1e+06")])
def test_weight_decays_that_floats_can_t_hold_are_refused(
    words: list[str], rho: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(["dynamics", *words, "--rho", rho], capsys)
    assert code == 2
    assert says in " ".join(err.split())


def test_so_are_ranges_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(["dynamics", "bifurcations", "--rho-min", "1e-300"], capsys)
    assert code == 2
    assert "Give 0 or at least 1e-12 for rho-min" in " ".join(err.split())
