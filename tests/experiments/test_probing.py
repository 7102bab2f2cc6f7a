"""The paper's probe and fine-tuning, on a task that anything can learn."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from phinets.config.errors import UserError
from phinets.config.exam import Exam
from phinets.config.probes import FineTuning, LabelShare, PaperProbe
from phinets.config.views import PLANS
from phinets.data import ImageSet, InMemory, Rejects
from phinets.engine.finetune import fine_tune
from phinets.experiments.examining import Examined
from phinets.experiments.judging import Eye
from phinets.experiments.probing import fine_tuned, labelled_feed, paper_probe
from phinets.experiments.subject import Subject
from tests.conftest import TinyEncoder

CPU = torch.device("cpu")
ON_CPU = Exam(device="cpu")


@pytest.mark.parametrize("labels", ["0%", "101%", "10", "some", "nan%"])
def test_a_share_that_is_none_is_refused(labels: str) -> None:
    with pytest.raises(UserError, match="such as 1% or 10%"):
        LabelShare(labels=labels)


def colours(n: int = 60) -> Examined:
    """Red and blue images before an untrained encoder: a task that any probe can do."""
    labels = torch.arange(n) % 2
    pixels = torch.randint(0, 60, (n, 3, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    pixels[labels == 0, 0] += 150
    pixels[labels == 1, 2] += 150
    part = ImageSet(InMemory(pixels), labels)
    torch.manual_seed(0)
    who = replace(_anyone(), encoder=TinyEncoder())
    eye = Eye(plan=PLANS["simsiam-cifar"], size=8, device=CPU, rejects=Rejects(0))
    return Examined(place=Path("x"), subject=who, eye=eye, known=part, asked=part.head(20), data="colours", exam=ON_CPU)


def _anyone() -> Subject:
    return Subject(encoder=nn.Identity(), backbone="resnet-tiny", called="anyone", said={})


@pytest.mark.parametrize("training", [True, False])
def test_the_paper_s_probe_learns_and_leaves_the_encoder_as_it_was(training: bool) -> None:
    who = colours()
    who.subject.encoder.train(training)
    before = {k: v.clone() for k, v in who.subject.encoder.state_dict().items()}
    probed = paper_probe(who, PaperProbe(epochs=20, batch=16))
    assert probed.accuracy == 100.0
    assert (probed.rate, probed.batch, probed.held_out) == (30.0, 16, {})
    assert who.subject.encoder.training is training
    assert all(torch.equal(before[k], v) for k, v in who.subject.encoder.state_dict().items())


def test_a_sweep_reports_the_rate_that_does_best_on_what_was_held_out() -> None:
    probed = paper_probe(colours(), PaperProbe(epochs=4, batch=16, rates=(1e-6, 30.0)))
    assert set(probed.held_out) == {1e-6, 30.0}
    assert probed.rate == max(probed.held_out, key=lambda rate: probed.held_out[rate]) == 30.0


def test_the_probe_s_batches_are_seen_augmented_each_epoch_anew() -> None:
    who = colours()
    feed = labelled_feed(who.eye, who.known, 60, seed=0)
    first, second = list(feed.stream(0, 2))
    assert sorted(first.rows.tolist()) == list(range(60))
    a, b = (part.views.first[part.rows.argsort()] for part in (first, second))
    plain = who.eye._prepared(who.known.images.take(torch.arange(60)).images)
    assert not torch.allclose(a, b)
    assert not torch.allclose(a, plain)


def test_fine_tuning_trains_a_copy_and_beats_the_untrained() -> None:
    who = colours()
    before = {k: v.clone() for k, v in who.subject.encoder.state_dict().items()}
    tuned = fine_tuned(who, FineTuning(epochs=12, batch=20, lr=0.5))
    assert tuned.accuracy == 100.0
    assert tuned.scratch is None
    assert all(torch.equal(before[k], v) for k, v in who.subject.encoder.state_dict().items())


def test_fine_tuning_moves_encoder_and_head_each_by_its_own_rate() -> None:
    who = colours()
    encoder, head = TinyEncoder(), nn.Linear(5, 2)
    weights = [p.detach() for p in (*encoder.parameters(), *head.parameters())]
    start = [p.clone() for p in weights]
    feed = labelled_feed(who.eye, who.known, 60, seed=0)
    assert who.known.labels is not None
    how = FineTuning(epochs=1, lr=1e-9, head_lr=1.0)
    losses = fine_tune(encoder, head, feed, who.known.labels, how)
    moved = [float((a - b).abs().max()) for a, b in zip(start, weights, strict=True)]
    assert len(losses) == 1
    assert max(moved[:-2]) < 1e-7 < min(moved[-2:])


def test_fine_tuning_that_diverges_says_so() -> None:
    who = colours()
    assert who.known.labels is not None
    encoder = TinyEncoder()
    nn.init.constant_(encoder.conv.weight, torch.nan)
    with pytest.raises(UserError, match="has diverged"):
        fine_tune(encoder, nn.Linear(5, 2), labelled_feed(who.eye, who.known, 60, 0), who.known.labels, FineTuning())
