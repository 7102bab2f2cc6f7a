"""The paper's probe and fine-tuning, on a task that anything can learn."""

import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from phinets.backbones import backbone
from phinets.config.errors import UserError
from phinets.config.evaluation import EvalOptions, FineTuning, PaperProbe
from phinets.config.views import PLANS
from phinets.data import BadImages, ImageSet, InMemory
from phinets.evaluation.encoders import LoadedEncoder, fresh_encoder
from phinets.evaluation.features import FeatureExtractor
from phinets.evaluation.finetune import LabeledLoader, evaluate_finetuning, fine_tune, paper_probe
from phinets.evaluation.linear import train_heads
from phinets.evaluation.setup import EvalSetup
from phinets.views import prepare
from tests.helpers import TinyEncoder

CPU = torch.device("cpu")
ON_CPU = EvalOptions(device="cpu")


@pytest.mark.parametrize("labels", ["0%", "101%", "10", "some", "nan%"])
def test_a_share_that_is_none_is_refused(labels: str) -> None:
    with pytest.raises(UserError, match="1% or 10%"):
        EvalOptions(labels=labels)


def colors(n: int = 60) -> EvalSetup:
    """Red and blue images before an untrained encoder: a task that any probe can do."""
    labels = (torch.arange(n) * 7 % 5 > 1).long()
    pixels = torch.randint(0, 60, (n, 3, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    pixels[labels == 0, 0] += 150
    pixels[labels == 1, 2] += 150
    part = ImageSet(InMemory(pixels), labels)
    torch.manual_seed(0)
    who = replace(_anyone(), module=TinyEncoder())
    extractor = FeatureExtractor(plan=PLANS["simsiam-cifar"], size=8, device=CPU, bad_images=BadImages(0))
    return EvalSetup(
        place=Path("x"),
        loaded=who,
        extractor=extractor,
        train=part,
        test=part.head(20),
        classes=("red", "blue"),
        data="colors",
        options=ON_CPU,
    )


def _anyone() -> LoadedEncoder:
    return LoadedEncoder(module=nn.Identity(), backbone="resnet-tiny", description="anyone", metadata={})


@pytest.mark.parametrize("training", [True, False])
def test_the_paper_s_probe_learns_and_leaves_the_encoder_as_it_was(training: bool) -> None:
    who = colors()
    who.loaded.module.train(training)
    before = {k: v.clone() for k, v in who.loaded.module.state_dict().items()}
    probed = paper_probe(who, PaperProbe(epochs=20, batch=16))
    assert probed.accuracy == 100.0
    assert (probed.rate, probed.batch, probed.held_out) == (30.0, 16, {})
    assert who.loaded.module.training is training
    assert all(torch.equal(before[k], v) for k, v in who.loaded.module.state_dict().items())


def test_a_sweep_reports_the_rate_that_does_best_on_what_was_held_out() -> None:
    probed = paper_probe(colors(), PaperProbe(epochs=4, batch=16, rates=(1e-6, 30.0)))
    assert set(probed.held_out) == {1e-6, 30.0}
    assert probed.rate == max(probed.held_out, key=lambda rate: probed.held_out[rate]) == 30.0


def test_the_paper_s_probe_is_the_paper_s() -> None:
    probe, seen = PaperProbe(), PLANS["probe"].first
    assert (probe.rates, probe.epochs, probe.batch, probe.momentum) == ((30.0,), 100, 256, 0.9)
    assert seen is not None
    assert (seen.crop_scale, seen.interpolation, seen.flip) == ((0.08, 1.0), "bicubic", 0.5)
    assert (seen.jitter_p, seen.gray_p, seen.blur_p, seen.solarize_p) == (0, 0, 0, 0)


def test_the_rate_grows_with_the_batch_and_falls_along_half_a_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def spied(batches: Any, first: Any, decline: Any, *others: Any) -> Any:
        seen.extend([first.rates, [decline(step) for step in range(6)]])
        return train_heads(batches, first, decline, *others)

    monkeypatch.setattr("phinets.evaluation.finetune.train_heads", spied)
    paper_probe(colors(), PaperProbe(epochs=2, batch=20, rates=(30.0,)))
    assert seen[0] == (30.0 * 20 / 256,)
    assert seen[1] == pytest.approx([0.5 * (1 + math.cos(math.pi * step / 6)) for step in range(6)])


def test_the_probe_learns_by_the_optimizer_that_it_says() -> None:
    by_sgd = PaperProbe(epochs=20, batch=16)
    by_lars = replace(by_sgd, optimizer="lars")
    assert by_sgd.describe(16).startswith("SGD on augmented views")
    assert by_lars.describe(16).startswith("LARS on augmented views")
    quick, slow = (paper_probe(colors(), probe) for probe in (by_sgd, by_lars))
    assert quick.accuracy == 100.0 > slow.accuracy, "a trust of a thousandth takes far smaller steps"


def lessons(who: EvalSetup, epochs: int = 1, batch: int = 60) -> LabeledLoader:
    return LabeledLoader(who.extractor, who.train, batch, epochs, seed=0)


def test_lessons_show_every_image_each_epoch_anew_with_its_label() -> None:
    who = colors()
    (a, labels_a), (b, labels_b) = lessons(who, epochs=2).stream()
    assert labels_a.bincount().tolist() == labels_b.bincount().tolist()
    assert who.train.labels is not None
    assert labels_a.bincount().tolist() == who.train.labels.bincount().tolist()
    assert not torch.equal(labels_a, labels_b)
    for views, labels in ((a, labels_a), (b, labels_b)):
        red, blue = views[:, 0].mean((1, 2)), views[:, 2].mean((1, 2))
        assert torch.equal((blue > red).long(), labels)
    plain = {tuple(image.flatten().tolist()) for image in prepare(_pixels(who), who.extractor.plan, who.extractor.size)}
    assert not plain & {tuple(image.flatten().tolist()) for image in a}


def _pixels(who: EvalSetup) -> torch.Tensor:
    return who.train.images.fetch(torch.arange(len(who.train))).images


def test_fine_tuning_trains_a_copy() -> None:
    who = colors()
    before = {k: v.clone() for k, v in who.loaded.module.state_dict().items()}
    tuned = evaluate_finetuning(who, FineTuning(epochs=12, batch=20, lr=0.5))
    assert tuned.accuracy == 100.0
    assert tuned.scratch is None
    assert all(torch.equal(before[k], v) for k, v in who.loaded.module.state_dict().items())


def test_beside_it_an_encoder_is_trained_that_has_learned_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    who = colors()
    who = replace(who, loaded=replace(who.loaded, module=backbone("resnet-tiny")))
    started: list[torch.Tensor] = []

    def spied(encoder: nn.Module, *rest: Any) -> list[float]:
        started.append(next(encoder.parameters()).detach().clone())
        return fine_tune(encoder, *rest)

    monkeypatch.setattr("phinets.evaluation.finetune.fine_tune", spied)
    tuned = evaluate_finetuning(who, FineTuning(epochs=1, batch=20), scratch=True)
    assert tuned.scratch is not None
    assert torch.equal(started[0], next(who.loaded.module.parameters()))
    assert torch.equal(started[1], next(fresh_encoder(who.loaded.backbone, who.options.seed).parameters()))
    assert not torch.equal(started[0], started[1])


def test_fine_tuning_moves_encoder_and_head_each_by_its_own_rate() -> None:
    encoder, head = TinyEncoder(), nn.Linear(5, 2)
    weights = [p.detach() for p in (*encoder.parameters(), *head.parameters())]
    start = [p.clone() for p in weights]
    work = lessons(colors())
    losses = fine_tune(encoder, head, work.stream(), work.steps, FineTuning(lr=1e-9, head_lr=1.0))
    moved = [float((a - b).abs().max()) for a, b in zip(start, weights, strict=True)]
    assert len(losses) == 1
    assert max(moved[:-2]) < 1e-7 < min(moved[-2:])


def test_a_step_of_fine_tuning_is_torch_s_own_sgd() -> None:
    work = lessons(colors())
    ((views, labels),) = work.stream()
    torch.manual_seed(1)
    encoder, head = TinyEncoder(), nn.Linear(5, 2)
    theirs = nn.Sequential(deepcopy(encoder), deepcopy(head))
    fine_tune(encoder, head, [(views, labels)], 1, FineTuning(lr=0.3, head_lr=0.7, weight_decay=0.1))
    rates = (0.3 * 60 / 256, 0.7 * 60 / 256)
    groups = [{"params": part.parameters(), "lr": rate} for part, rate in zip(theirs, rates, strict=True)]
    optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=0.1)
    F.cross_entropy(theirs(views), labels).backward()
    optimizer.step()
    for ours, other in zip((*encoder.parameters(), *head.parameters()), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours, other)


def test_fine_tuning_that_diverges_says_so() -> None:
    encoder, work = TinyEncoder(), lessons(colors())
    nn.init.constant_(encoder.conv.weight, torch.nan)
    with pytest.raises(UserError, match="has diverged"):
        fine_tune(encoder, nn.Linear(5, 2), work.stream(), work.steps, FineTuning())
