"""How much there is to compute, and how long it may take."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from time import process_time

import pytest
import torch
from torch import Tensor, nn

from phinets.backbones import backbone
from phinets.config.methods import METHODS
from phinets.config.result import Result
from phinets.config.work import Costing, Deriving, Pretraining, Probing, Streaming, Transferring, Work
from phinets.paper.scales import scale
from phinets.paper.targets import TARGETS
from phinets.reproduce import estimate as estimating
from phinets.reproduce import estimate as speed
from phinets.reproduce.estimate import (
    SIZES,
    EncoderName,
    Speed,
    amount,
    clock,
    known_speed,
    measured,
    multiply_adds,
    passes_of,
    raw_seconds,
    region_multiply_adds,
    size_of,
    tasks_of,
)
from phinets.reproduce.execute import Means, do
from phinets.reproduce.store import Store
from phinets.runtime.environment import device_name
from tests.conftest import TinyEncoder, tiny_learner, tiny_views
from tests.reproduce.helpers import SMOKE, TINY

CPU = torch.device("cpu")
FAST = Speed(step=1e-2, small=1e-10, large=5e-11, view=1e-8, evaluation=1e-4)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, so that nothing is kept for good."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", METHODS)
def test_the_passes_of_a_step_are_those_that_the_learner_makes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forward, passes = TinyEncoder.forward, list[int]()

    def counted(self: TinyEncoder, x: Tensor) -> Tensor:
        made = forward(self, x)
        passes.append(len(x) * (3 if made.requires_grad else 1))
        return made

    monkeypatch.setattr(TinyEncoder, "forward", counted)
    learner = tiny_learner(name).train()
    passes.clear()
    learner.loss(tiny_views(n=12))
    assert sum(passes) == 12 * passes_of(name)


def layers(encoder: nn.Module, side: int) -> Iterator[float]:
    """Multiply-adds of each layer, by its own shapes."""
    found: list[float] = []

    def note(layer: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> None:
        weight = layer.weight
        assert isinstance(weight, Tensor)
        found.append(made[0].numel() * weight[0].numel())

    for layer in encoder.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(note)
    encoder.eval()(torch.zeros(1, 3, side, side))
    return iter(found)


@pytest.mark.parametrize(("name", "side"), [("resnet-tiny", 16), ("resnet-tiny", 24), ("resnet18-cifar", 32)])
def test_multiply_adds_are_the_sum_over_the_layers(name: str, side: int) -> None:
    assert multiply_adds(name, side) == sum(layers(backbone(name), side))


def test_multiply_adds_of_known_encoders_are_the_ones_in_the_literature() -> None:
    assert multiply_adds("resnet50", 224) == pytest.approx(4.09e9, rel=0.01)  # He et al. 2016: 3.8e9 without shortcuts
    assert multiply_adds("resnet18-cifar", 32) == pytest.approx(0.556e9, rel=0.01)


def test_a_region_costs_what_the_last_stage_costs_on_seven_by_seven() -> None:
    tiny = backbone("resnet-tiny")
    stage = tiny.get_submodule("layer4")
    found: list[float] = []
    for layer in stage.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda own, given, made: found.append(made[0].numel() * own.weight[0].numel()))
    stage(torch.zeros(1, 64, 14, 14))
    assert region_multiply_adds("resnet-tiny", 64) == pytest.approx(sum(found))


def test_twice_the_epochs_are_twice_the_learning() -> None:
    once, twice = (amount(Pretraining(run=replace(TINY, epochs=epochs))) for epochs in (3, 6))
    thrice = amount(Pretraining(run=replace(TINY, epochs=9)))
    assert twice.views == 2 * once.views == 6 * 2 * TINY.source.train_images  # type: ignore[operator]
    assert twice.steps == 2 * once.steps
    assert thrice.passes - twice.passes == twice.passes - once.passes == 3 * 64 * passes_of(TINY.method)


def test_the_images_are_those_that_are_there_and_asked_for() -> None:
    paper = scale("paper")
    assert size_of(paper.cifar10) == (50_000, 10_000, 50_000)
    assert size_of(paper.stl10) == SIZES["stl10"]
    assert size_of(TINY) == (64, 32, 40)
    assert (tasks_of(paper.split_cifar10), tasks_of(paper.split_cifar100), tasks_of(SMOKE.split_cifar10)) == (5, 20, 2)


def test_a_stream_reads_every_task_after_each_by_each_encoder() -> None:
    run = replace(SMOKE.split_cifar10, method="simsiam")
    learned = run.epochs_per_task * 160 * passes_of("simsiam")
    look = 20 + 20 + 2 * 512
    one = amount(Streaming(run=run))
    assert one.passes == learned + look + 3 * (2 * 40 + 80)
    slow = amount(Streaming(run=replace(run, method="byol")))
    assert slow.probes == 2 * one.probes


@pytest.mark.parametrize("name", TARGETS)
def test_every_piece_of_work_takes_some_time_and_a_larger_scale_takes_longer(name: str) -> None:
    def longest(of: str) -> float:
        works = TARGETS[name].works(replace(scale(of), seeds=1)).values()
        times = [raw_seconds(work, FAST) for work in works]
        assert min(times) > 0
        return max(times)

    smoke, pocket, paper = map(longest, ("smoke", "pocket", "paper"))
    if not name.startswith("dynamics"):
        assert smoke < pocket < paper


def test_a_multiply_add_lies_between_those_of_the_two_encoders_that_were_measured() -> None:
    tiny, large = (multiply_adds(name, 32) for name in ("resnet-tiny", "resnet18-cifar"))
    assert FAST.multiply_add(tiny) == pytest.approx(FAST.small)
    assert FAST.multiply_add(large) == pytest.approx(FAST.large)
    assert FAST.multiply_add(100 * large) == pytest.approx(FAST.large)
    assert FAST.large < FAST.multiply_add((tiny * large) ** 0.5) < FAST.small


def done(work: Work, ratio: float, **said: object) -> Result:
    """A result that took so many times what was estimated."""
    environment = {"device_name": device_name(CPU), "threads": 1, **said}
    return Result(work=work, seconds=ratio * raw_seconds(work, FAST), environment=environment)


def test_estimates_are_mended_by_what_the_same_sort_of_work_took_on_this_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(estimating, "known_speed", lambda device: FAST)
    monkeypatch.setattr(estimating, "own_cores", lambda: 4)
    simsiam, phinet = Pretraining(run=TINY), Pretraining(run=replace(TINY, method="phinet"))
    stream = Streaming(run=SMOKE.split_cifar10)

    def seconds(work: Work, *results: Result) -> float:
        return clock(CPU, results).seconds(work) / (raw_seconds(work, FAST) / 4)

    assert seconds(simsiam) == pytest.approx(1)
    assert seconds(simsiam, done(simsiam, 3.0)) == pytest.approx(3)
    assert seconds(phinet, done(simsiam, 3.0)) == pytest.approx(3), "the same encoder and batch"
    assert seconds(phinet, done(simsiam, 3.0), done(phinet, 5.0)) == pytest.approx(5), "the method itself knows better"
    assert seconds(stream, done(simsiam, 3.0)) == pytest.approx(1), "another kind of work"
    assert seconds(simsiam, done(simsiam, 3.0, device_name="another")) == pytest.approx(1)
    assert seconds(simsiam, done(simsiam, 3.0, threads=2)) == pytest.approx(6), "two cores were at it"
    assert seconds(simsiam, replace(done(simsiam, 3.0), failed="it broke")) == pytest.approx(1)


def test_probes_transfers_costs_and_statements_are_counted() -> None:
    probe = amount(Probing(run=TINY, probe=replace(SMOKE.probe, epochs=3)))
    assert (probe.views, probe.passes) == (3 * 40, 3 * 40 + 32)
    few, many = (amount(Costing(run=TINY, methods=("simsiam",), rounds=rounds)) for rounds in (1, 4))
    assert many.passes - few.passes == 3 * 16 * 6
    how = SMOKE.detection
    transfer = amount(Transferring(run=TINY, detection=how))
    longer = replace(how, training=replace(how.training, iterations=2 * how.training.iterations))
    assert amount(Transferring(run=TINY, detection=longer)).steps == 2 * transfer.steps
    assert amount(Deriving(statements=("strong", "weak"))).statements == 2
    assert EncoderName(speed=FAST).seconds(Deriving(statements=("strong", "weak"))) == 2 * estimating.STATEMENT


def test_the_speed_is_measured_once_and_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.device] = []

    def noted(device: torch.device) -> Speed:
        asked.append(device)
        return FAST

    monkeypatch.setattr(speed, "measured", noted)
    assert known_speed(CPU) == known_speed(CPU) == FAST
    assert len(asked) == 1
    kept = home / ".cache" / "phinets" / "speed.json"
    assert list(json.loads(kept.read_text()).values()) == [asdict(FAST)]
    for spoiled in ("{", "[]", json.dumps({name: {"other": 1} for name in json.loads(kept.read_text())})):
        kept.write_text(spoiled)
        assert known_speed(CPU) == FAST
    assert len(asked) == 4
    kept.unlink()
    kept.mkdir()
    assert known_speed(CPU) == FAST, "where it can't be kept it is measured anew"


@pytest.mark.slow
def test_an_estimate_is_within_a_factor_of_two_and_a_half_of_a_real_run(tmp_path: Path) -> None:
    """In seconds of the core, which others who want it don't make longer."""
    small = replace(scale("pocket").cifar10, data="shapes", batch=64, method="x-phinet", epochs=1)
    run = replace(small, source=replace(small.source, train_images=2_000, test_images=500))
    run = replace(run, evaluation=replace(run.evaluation, final_bank=1_000))
    do(Pretraining(run=replace(run, epochs=1, seed=1)), Store(tmp_path), Means(device="cpu", threads=1))
    began = process_time()
    do(Pretraining(run=run), Store(tmp_path), Means(device="cpu", threads=1))
    ratio = (process_time() - began) / raw_seconds(Pretraining(run=run), measured(CPU))
    assert 0.4 < ratio < 2.5
