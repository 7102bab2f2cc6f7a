"""The map is true: every symbol it names can be imported, every test it names exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from phinets.paper.targets import TARGETS

ROOT = Path(__file__).parent.parent
STATUSES = {"done", "part", "planned"}
LABELS = (
    "fig:arch", "subfig:arch-simsiam", "subfig:arch-a", "subfig:arch-b", "subfig:arch-c",
    "figure:vecfield_PhiNet", "figure:simsiam", "figure:comparison",
    "equation:ode_invariant_parabola", "equation:ode_simsiam", "equation:ode_matphi", "equation:ode_phi",
    "equation:ode_psi",
    "equation:ode_gamma", "equation:invariant_parabola",
    "assumption:symmetry", "assumption:eigenspace_alignment", "claim:wider_basin", "claim:negative_init",
    "code-phinet", "code-x-phinet",
    "fig:weight_decay_bs_128", "fig:knn-early-train-curve", "fig:sp-c5m-weight-decay", "table: robust-lr",
    "fig: robust-c10-aug", "fig:stable-rank",
    "tab:ablation_inet", "tab:online-continual", "tab:ablation_cifar5m_wd", "tab:ablation_cifar5m_wd_one",
    "tab:online-continual-two-epochs", "tab:online-continual-mixup", "tab:split-cifar10", "tab:split-cifar100-mom",
    "tab:ablation_cifar10", "tab:imagenet-ablation", "tab:ablation_cifar_knn", "tab:ablation_cifar_linear",
    "tab:ablation_stl_linear",
    "table-voc", "tab:comparison-wd-moco", "table:robust-c5m-aug", "tab:computational_costs",
    "tab:computational_costs_time",
    "tab:ablation_cifar10_setup", "tab:ablation_imagenet_setup",
)  # fmt: skip
"""Every label of a figure, table, equation, assumption, claim or listing in the paper's source."""


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


@pytest.mark.parametrize("label", LABELS)
def test_the_map_has_everything_that_the_paper_labels(label: str) -> None:
    assert any(re.search(rf"(?<![\w:-]){re.escape(label)}(?![\w:-])", paper) for paper, *_ in rows())


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
