"""Judging an encoder after its run: the same numbers, from wherever the encoder is taken."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from phinets.config.errors import UserError
from phinets.config.exam import Exam
from phinets.config.probes import FineTuning, LabelShare, PaperProbe
from phinets.config.record import RunRecord
from phinets.config.run import DataOptions
from phinets.config.views import PLANS
from phinets.data import ImageSet, InMemory, Rejects
from phinets.engine.checkpoint import checkpoints
from phinets.engine.finetune import fine_tune
from phinets.evaluation.knn import knn_accuracy
from phinets.evaluation.linear import linear_accuracy
from phinets.experiments.checkup import checkup, report
from phinets.experiments.embedding import embedding, in_memory
from phinets.experiments.examining import Examined, examined
from phinets.experiments.feature_files import keep_features, read_features
from phinets.experiments.judging import Eye, require_classes
from phinets.experiments.probing import fine_tuned, labelled_feed, paper_probe
from phinets.experiments.subject import Subject, learner_of, subject
from tests.conftest import MINIATURE, TinyEncoder, tiny_learner, tiny_views

CPU = torch.device("cpu")
ON_CPU = Exam(device="cpu")


@pytest.mark.parametrize(("clock", "ending"), [("fast", ""), ("slow", "_slow")])
def test_the_command_s_numbers_are_the_run_s(miniature: RunRecord, run_folder: Path, clock: Any, ending: str) -> None:
    found = embedding(run_folder, replace(ON_CPU, encoder=clock))
    known, asked = in_memory(found.known), in_memory(found.asked)
    assert knn_accuracy(*asked, *known, k=7) == getattr(miniature.summary, f"knn{ending}")
    assert linear_accuracy(*asked, *known) == getattr(miniature.summary, f"linear{ending}")
    assert found.judging.knn_k == 7


def test_the_live_monitor_s_last_number_is_the_command_s(miniature: RunRecord, run_folder: Path) -> None:
    """Its bank and its queries hold all images here, so it must say what the judgement after the run says."""
    last = [row for row in miniature.journal if row["kind"] == "look"][-1]
    assert last["knn"] == miniature.summary.knn
    assert last["knn_slow"] == miniature.summary.knn_slow


@pytest.mark.parametrize("clock", ["fast", "slow"])
def test_a_run_s_end_its_last_checkpoint_and_its_file_hold_one_encoder(run_folder: Path, clock: Any) -> None:
    end, last = subject(run_folder, clock), subject(checkpoints(run_folder / "checkpoints")[-1][1], clock)
    name = "backbone.safetensors" if clock == "fast" else "backbone-slow.safetensors"
    file = subject(run_folder / name)
    for other in (last, file):
        for key, value in end.encoder.state_dict().items():
            assert torch.equal(value, other.encoder.state_dict()[key])
    assert (file.backbone, file.said["image_size"], file.said["encoder"]) == ("resnet-tiny", "16", clock)
    assert "after step 12" in last.called


def test_fast_and_slow_are_two_encoders_and_an_earlier_checkpoint_is_a_third(run_folder: Path) -> None:
    first = checkpoints(run_folder / "checkpoints")[0][1]
    encoders = [subject(run_folder, "fast"), subject(run_folder, "slow"), subject(first, "fast")]
    weights = [one.encoder.state_dict()["conv1.weight"] for one in encoders]
    assert not any(torch.equal(weights[i], weights[j]) for i, j in [(0, 1), (0, 2), (1, 2)])


def test_an_unfinished_run_is_judged_by_its_newest_checkpoint(run_folder: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(run_folder, cut)
    for name in ("summary.json", "backbone.safetensors", "backbone-slow.safetensors"):
        (cut / name).unlink()
    checkpoints(cut / "checkpoints")[-1][1].unlink()
    assert "after step 6" in subject(cut).called


def test_a_file_of_weights_is_judged_at_the_size_it_says(run_folder: Path) -> None:
    asked = replace(ON_CPU, data="shapes", bank=96, test_images=50)
    by_file, by_run = embedding(run_folder / "backbone.safetensors", asked), embedding(run_folder, ON_CPU)
    assert torch.equal(in_memory(by_file.known)[0], in_memory(by_run.known)[0])


def test_a_state_dict_says_nothing_and_is_told(run_folder: Path, tmp_path: Path) -> None:
    torch.save(load_file(run_folder / "backbone.safetensors"), tmp_path / "w.pth")
    with pytest.raises(UserError, match="Say it with --backbone"):
        subject(tmp_path / "w.pth")
    with pytest.raises(UserError, match="does not say what to judge it on"):
        examined(tmp_path / "w.pth", replace(ON_CPU, backbone="resnet-tiny"))
    with pytest.raises(UserError, match="missing"):
        subject(tmp_path / "w.pth", backbone="resnet18-cifar")
    told = replace(ON_CPU, backbone="resnet-tiny", data="shapes", image_size=16, bank=96, test_images=50)
    assert torch.equal(
        in_memory(embedding(tmp_path / "w.pth", told).known)[0], in_memory(embedding(run_folder, ON_CPU).known)[0]
    )


def test_what_can_t_be_asked_is_refused(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="belongs to a run"):
        subject(run_folder, backbone="resnet18")
    with pytest.raises(UserError, match="holds no run"):
        subject(tmp_path)
    with pytest.raises(UserError, match="holds one encoder"):
        subject(run_folder / "backbone.safetensors", "slow")
    simsiam = tmp_path / "simsiam"
    simsiam.mkdir()
    text = (run_folder / "config.yaml").read_text().replace("method: x-phinet", "method: simsiam")
    (simsiam / "config.yaml").write_text(
        text.replace("judged_encoder: both", "judged_encoder: fast").replace("- slow-gap", "")
    )
    with pytest.raises(UserError, match="'simsiam' has no slow encoder"):
        subject(simsiam, "slow")
    with pytest.raises(UserError, match="has no checkpoint yet"):
        subject(simsiam)


def test_features_on_the_disk_are_those_in_memory(run_folder: Path, tmp_path: Path) -> None:
    who = examined(run_folder, ON_CPU)
    keep_features(who, tmp_path / "kept")
    for kept, made in zip(read_features(tmp_path / "kept"), who.embedded(), strict=True):
        assert isinstance(kept.features, np.memmap)
        np.testing.assert_array_equal(kept.features, made.features.numpy())
        assert torch.equal(kept.labels, made.labels)
    again = embedding(tmp_path / "kept", ON_CPU)
    assert (len(again.known.labels), len(again.asked.labels)) == (96, 50)


def arrays(**changes: Any) -> dict[str, Any]:
    whole = {
        "train_features": np.random.default_rng(0).normal(size=(20, 3)),
        "train_labels": np.arange(20) % 2,
        "test_features": np.zeros((5, 3)),
        "test_labels": np.zeros(5, int),
    }
    return {name: value for name, value in (whole | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"train_labels": None}, "there is no train_labels in"),
        ({"test_features": None}, "there is no test_features in"),
        ({"train_labels": np.zeros(20, int)}, "all of one class"),
        ({"train_labels": np.arange(19) % 2}, "a class number from 0 for each of the 20"),
        ({"train_labels": np.full(20, -1)}, "a class number from 0"),
        ({"train_labels": np.full(20, 0.5)}, "a class number from 0"),
        ({"train_features": np.zeros(20)}, "must be floats"),
        ({"train_features": np.array(["a"] * 20)}, "must be floats"),
        ({"test_features": np.zeros((5, 4))}, "two widths, 3 and 4"),
    ],
)
def test_a_feature_file_that_can_t_be_judged_is_refused(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays(**changes))
    with pytest.raises(UserError, match=says):
        read_features(tmp_path / "f.npz")


def test_an_npz_of_features_is_read_and_options_that_make_features_are_refused_with_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays())
    assert len(embedding(tmp_path / "f.npz", ON_CPU).known.labels) == 20
    with pytest.raises(UserError, match="already there"):
        embedding(tmp_path / "f.npz", replace(ON_CPU, labels="10%"))
    (tmp_path / "torn.npz").write_bytes(b"PK not an archive")
    with pytest.raises(UserError, match="can't be read"):
        read_features(tmp_path / "torn.npz")


def test_a_failed_writing_of_features_leaves_nothing(run_folder: Path, tmp_path: Path) -> None:
    who = examined(run_folder, ON_CPU)
    broken = replace(who, subject=replace(who.subject, encoder=nn.Flatten(0)))
    with pytest.raises(UserError, match="one feature vector per image"):
        keep_features(broken, tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def test_labels_that_are_missing_or_all_alike_are_refused() -> None:
    with pytest.raises(UserError, match="training images of 'folder:x' have no labels"):
        require_classes(None, torch.tensor([1]), "folder:x")
    with pytest.raises(UserError, match="test images of 'folder:x' have no labels"):
        require_classes(torch.tensor([0, 1]), torch.tensor([], dtype=torch.long), "folder:x")
    with pytest.raises(UserError, match="all of one class"):
        require_classes(torch.tensor([3, 3]), torch.tensor([3]), "folder:x")


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_share_of_the_labels_is_the_same_share_of_every_class(share: float) -> None:
    labels = torch.cat([torch.zeros(400), torch.ones(200), torch.full((30,), 2)]).long()
    whole = ImageSet(InMemory(torch.zeros(630, 3, 1, 1, dtype=torch.uint8)), labels)
    some = whole.share(share, torch.Generator().manual_seed(0)).labels
    assert some is not None
    assert some.bincount().tolist() == [max(1, round(share * n)) for n in (400, 200, 30)]


def test_a_share_is_drawn_by_the_seed_alone() -> None:
    labels = torch.arange(300) % 3
    pixels = torch.arange(300).reshape(-1, 1, 1, 1).expand(-1, 3, 1, 1).to(torch.uint8)
    whole = ImageSet(InMemory(pixels), labels)

    def drawn(seed: int) -> torch.Tensor:
        images = whole.share(0.1, torch.Generator().manual_seed(seed)).images
        return images.take(torch.arange(len(images))).images

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


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


def test_every_measure_is_in_the_journal_when_asked_for(miniature: RunRecord) -> None:
    looks = [row for row in miniature.journal if row["kind"] == "look"]
    wanted = {"alignment", "uniformity", "slow_cosine", "slow_distance", "knn_slow"}
    wanted |= {f"stable_rank_{layer}" for layer in ("h1", "h2", "g1", "g2")}
    for row in looks:
        assert wanted <= set(row)
        assert len(row["spectrum_codes"]) == 12
        assert len(row["spectrum_features"]) == 96
    assert looks[0]["alignment"] != looks[1]["alignment"]


def test_a_checkup_leaves_the_learner_as_it_was() -> None:
    learner, views = tiny_learner("x-phinet"), tiny_views()
    before = {k: v.clone() for k, v in learner.state_dict().items()}
    readings = checkup(learner, views, ("alignment", "spectrum", "stable-rank", "slow-gap"))
    assert learner.training
    assert all(torch.equal(before[k], v) for k, v in learner.state_dict().items())
    assert readings["slow_cosine"] == pytest.approx(1)
    assert readings["slow_distance"] == 0


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("phinet", {"h1", "h2", "g1", "g2"}),
        ("phinet/identity-g", {"h1", "h2"}),
        ("phinet/shared-g", {"h1", "h2"}),
        ("barlow-twins", set()),
    ],
)
def test_the_layers_of_h_and_g_are_ranked_where_there_are_any(name: str, layers: set[str]) -> None:
    readings = checkup(tiny_learner(name), tiny_views(), ("stable-rank", "slow-gap"))
    assert set(readings) == {f"stable_rank_{layer}" for layer in layers}


def test_the_report_of_a_run_repeats_its_last_look(miniature: RunRecord, run_folder: Path) -> None:
    last = [row for row in miniature.journal if row["kind"] == "look"][-1]
    found = report(run_folder, 512, None, CPU)
    for name in ("alignment", "uniformity", "stable_rank_g1", "slow_distance"):
        assert found.readings[name] == pytest.approx(last[name], rel=1e-4)
    assert "after step 12" in found.protocol
    with pytest.raises(UserError, match="the heads are in a run folder"):
        learner_of(run_folder / "backbone.safetensors")


def test_a_run_without_a_slow_encoder_can_t_be_asked_for_it() -> None:
    with pytest.raises(UserError, match="'simsiam' has no slow encoder"):
        replace(MINIATURE, method="simsiam")


def test_images_of_unknown_class_are_not_asked_about() -> None:
    labels = torch.tensor([0, -1, 1, -1, 2])
    part = ImageSet(InMemory(torch.arange(5).reshape(-1, 1, 1, 1).expand(-1, 3, 1, 1).to(torch.uint8)), labels).labelled
    assert part.labels is not None
    assert part.labels.tolist() == [0, 1, 2]
    assert part.images.take(torch.arange(3)).images[:, 0, 0, 0].tolist() == [0, 2, 4]


def test_data_options_default_to_the_run_s(run_folder: Path) -> None:
    who = examined(run_folder, ON_CPU)
    assert (len(who.known), len(who.asked), who.eye.size) == (96, 50, 16)
    other = examined(run_folder, replace(ON_CPU, test_images=20, bank=30, labels="50%"))
    assert len(other.asked) == 20
    assert 10 <= len(other.known) <= 20
    assert DataOptions().image_size == 32
