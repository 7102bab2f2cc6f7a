"""The map is true: every symbol it names can be imported, every test it names exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from phinets.paper.targets import TARGETS

ROOT = Path(__file__).parent.parent
STATUSES = {"done", "part", "planned"}


def rows() -> list[tuple[str, str, str, str]]:
    lines = (ROOT / "docs" / "paper_map.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [tuple(row) for row in cells if row[0] != "paper" and not set(row[0]) <= {"-"}]  # type: ignore[misc]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_a_row_of_the_map_is_true(row: tuple[str, str, str, str]) -> None:
    _, symbols, tests, status = row
    assert status in STATUSES
    for symbol in named(symbols):
        module, _, name = symbol.rpartition(".")
        assert hasattr(import_module(module), name), symbol
    for test in named(tests):
        path, name = test.split("::")
        assert f"def {name}(" in (ROOT / path).read_text(), test
    assert (status == "planned") == (not named(symbols) and not named(tests))


def test_the_map_names_every_target() -> None:
    named_there = re.findall(r": ([a-z0-9-]+) \|", (ROOT / "docs" / "paper_map.md").read_text())
    on_dynamics = [name for name in TARGETS if name.startswith("dynamics-")]
    assert sorted([*named_there, *on_dynamics]) == sorted(TARGETS)


def test_every_promise_of_reliability_has_a_test_that_exists() -> None:
    lines = (ROOT / "docs" / "reliability.md").read_text().splitlines()
    promises = [line for line in lines if line.startswith("|") and not line.startswith(("| guarantee", "|--"))]
    assert len(promises) > 20
    for line in promises:
        proofs = named(line.split("|")[2])
        assert proofs, line
        for proof in proofs:
            path, name = proof.split("::")
            assert f"def {name}(" in (ROOT / path).read_text(), proof


def test_the_map_covers_every_method() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text()
    for name in ("SimSiam", "BYOL", "RM-SimSiam", "Barlow Twins", "MoCo", "PhiNet", "X-PhiNet"):
        assert name in text


def test_the_deviations_name_only_options_that_exist() -> None:
    from phinets.cli.train import parse

    text = (ROOT / "docs" / "deviations.md").read_text()
    known = {field for section in _sections(parse([]).run) for field in section}
    for option in re.findall(r"`--([a-z0-9-]+)", text):
        assert option.removeprefix("no-").replace("-", "_") in known, option


def _sections(config: object) -> list[list[str]]:
    from dataclasses import fields, is_dataclass

    own = [f.name for f in fields(config)]  # type: ignore[arg-type]
    nested = [getattr(config, name) for name in own if is_dataclass(getattr(config, name))]
    return [own, *(section for value in nested for section in _sections(value))]
