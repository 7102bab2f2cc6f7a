"""The model card: the run's own numbers, about these weights and no others."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from phinets.backbones import backbone
from phinets.config.errors import UserError
from phinets.config.record import RunRecord
from phinets.training.checkpoint import checkpoints
from tests.export.helpers import exported

Card = tuple[str, dict[str, str]]


def card_of(place: Path, folder: Path, **options: Any) -> Card:
    """The card of a safetensors export, and its rows by their first cell."""
    exported(place, "safetensors", folder / "w.safetensors", **options)
    text = (folder / "w.safetensors.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", text, re.MULTILINE))
    return text, rows


def percent(score: float | None) -> str:
    assert score is not None
    return f"{score:.2f}"


def test_a_card_tells_the_summary_s_numbers_with_their_baselines(
    miniature: RunRecord, run_folder: Path, tmp_path: Path
) -> None:
    summary = miniature.summary
    text, rows = card_of(run_folder, tmp_path)
    assert rows["raw pixels"] == f"{percent(summary.knn_pixels)} | {percent(summary.linear_pixels)}"
    untrained = f"{percent(summary.knn_untrained)} | {percent(summary.linear_untrained)}"
    assert rows["the same encoder, untrained"] == untrained
    assert rows["**this file, the fast encoder**"] == f"{percent(summary.knn)} | {percent(summary.linear)}"
    other = f"{percent(summary.knn_slow)} | {percent(summary.linear_slow)}"
    assert rows["the slow encoder of the same run"] == other
    assert f"The codes are {summary.verdict}." in text
    assert f"Protocol: {summary.protocol}." in text
    assert f"effective rank {summary.effective_rank:.4g}" in text


def test_the_slow_encoder_s_card_has_the_slow_encoder_s_numbers(
    miniature: RunRecord, run_folder: Path, tmp_path: Path
) -> None:
    summary = miniature.summary
    text, rows = card_of(run_folder, tmp_path, encoder="slow")
    own = f"{percent(summary.knn_slow)} | {percent(summary.linear_slow)}"
    assert rows["**this file, the slow encoder**"] == own
    assert rows["the fast encoder of the same run"] == f"{percent(summary.knn)} | {percent(summary.linear)}"
    assert text.splitlines()[2].startswith("The slow encoder trained by x-phinet, backbone `resnet-tiny`")


@pytest.mark.parametrize(("judged", "asked"), [("slow", "fast"), ("fast", "slow")])
def test_numbers_of_the_other_encoder_are_not_taken_for_its_own(
    judged: str, asked: str, miniature: RunRecord, run_folder: Path, tmp_path: Path
) -> None:
    """A run that judged one encoder alone keeps its numbers under the plain names."""
    run = changed(run_folder, tmp_path / "run", evaluation={"encoder": judged, "health_metrics": []})
    _, rows = card_of(run, tmp_path, encoder=asked)
    numbers = f"{percent(miniature.summary.knn)} | {percent(miniature.summary.linear)}"
    assert rows[f"**this file, the {asked} encoder**"] == "– | –"
    assert rows[f"the {judged} encoder of the same run"] == numbers


def changed(finished: Path, folder: Path, **sections: Any) -> Path:
    """A copy of a run with other settings written into its config."""
    shutil.copytree(finished, folder)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    for name, value in sections.items():
        config[name] = {**config[name], **value} if isinstance(value, dict) else value
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


def test_a_card_says_where_the_weights_come_from_and_how_to_feed_them(run_folder: Path, tmp_path: Path) -> None:
    text, rows = card_of(run_folder, tmp_path)
    made_with = json.loads((run_folder / "env.json").read_text())
    assert rows["method"] == "x-phinet"
    assert rows["wiring"].startswith(
        "Sim-1: h(f(x1)) → f(x2) by cosine; Sim-2: g(h(f)) → f_slow(x0) by mse (f: encoder"
    )
    assert rows["weights"] == "the end of its run, after 12 steps"
    assert rows["data"] == "shapes, the first 96 training images"
    assert (rows["batch"], rows["seed"], rows["feature"]) == ("16", "0", "128 numbers per image")
    assert rows["views"].startswith("simsiam-cifar: both views: crop 0.2–1")
    assert rows["image size"] == "16 × 16"
    assert "the short side to 16 pixels" in rows["preprocessing"]
    assert "minus mean 0.485, 0.456, 0.406, divided by std 0.229, 0.224, 0.225" in rows["preprocessing"]
    assert f"torch {made_with['packages']['torch']}" in rows["made with"]
    assert f"phinets {made_with['phinets']}" in rows["made with"]
    assert rows["SHA-256"] == f"`{sha256((tmp_path / 'w.safetensors').read_bytes()).hexdigest()}`"
    assert "PhiNets: Brain-inspired Non-contrastive Learning Based on Temporal Prediction Hypothesis" in text


def test_a_card_does_not_tell_where_on_a_disk_the_data_lay(run_folder: Path, tmp_path: Path) -> None:
    run = changed(run_folder, tmp_path / "run", data="folder:/home/somebody/secret/photos")
    text, rows = card_of(run, tmp_path)
    assert rows["data"].startswith("folder:photos")
    assert "somebody" not in text
    assert str(tmp_path) not in text


def test_text_from_data_is_neither_html_nor_markdown_nor_a_control_character(run_folder: Path, tmp_path: Path) -> None:
    classes = ["<script>alert(1)<!--", "[a](b)", "*c*", "\x07d|e"]
    run = changed(run_folder, tmp_path / "run", data="folder:/photos/<script>", source={"classes": classes})
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps({**summary, "protocol": "<b>", "note": "<i>"}))
    text, rows = card_of(run, tmp_path)
    shown = r"&lt;script&gt;alert(1)&lt;!--, \[a\](b), \*c\*, \\x07d\|e"
    assert rows["data"].startswith("folder:&lt;script&gt;")
    assert rows["data"].endswith(f"classes {shown}")
    assert "Protocol: &lt;b&gt;." in text
    assert not {"<", "\x07"} & set(text)


def test_an_earlier_checkpoint_does_not_borrow_the_end_s_numbers(
    miniature: RunRecord, run_folder: Path, tmp_path: Path
) -> None:
    (_, first), (_, last) = checkpoints(run_folder / "checkpoints")
    text, rows = card_of(first, tmp_path)
    assert rows["weights"] == "after step 6 of 12, before the end of its run"
    assert "Not evaluated" in text
    assert "kNN %" not in text
    _, rows = card_of(last, tmp_path)
    assert rows["**this file, the fast encoder**"].startswith(percent(miniature.summary.knn))


def test_a_run_that_was_cut_is_exported_when_asked_and_says_so(run_folder: Path, tmp_path: Path) -> None:
    run = changed(run_folder, tmp_path / "run")
    (run / "summary.json").unlink()
    checkpoints(run / "checkpoints")[-1][1].unlink()
    with pytest.raises(UserError, match=r"after step 6 of 12, not finished\. .*phinets train --resume"):
        card_of(run, tmp_path)
    assert not list(tmp_path.glob("w.*"))
    text, rows = card_of(run, tmp_path, unfinished=True)
    assert rows["weights"] == "after step 6 of 12, not finished"
    assert "Not evaluated" in text
    (run / "metrics.jsonl").write_text('{"kind": "st')
    assert card_of(run, tmp_path, unfinished=True)[1]["weights"] == "after step 6, not finished"


def test_a_summary_of_another_kind_is_told_as_it_is(run_folder: Path, tmp_path: Path) -> None:
    run = changed(run_folder, tmp_path / "run")
    other = {"average_accuracy": 71.25, "forgetting": 3.5, "readout": "task-wise kNN", "matrix": [[1, 2], [3, 4]]}
    (run / "summary.json").write_text(json.dumps(other))
    (run / "env.json").unlink()
    text, rows = card_of(run, tmp_path)
    assert "average accuracy 71.25, forgetting 3.5, readout task-wise kNN." in text
    assert "matrix" not in text
    assert rows["**this file, the fast encoder**"] == "– | –"
    assert rows["weights"].startswith("the end of its run")
    assert "made with" not in rows


def test_a_file_without_a_run_says_what_is_known_and_no_more(run_folder: Path, tmp_path: Path) -> None:
    torch.save(backbone("resnet-tiny").state_dict(), tmp_path / "mine.pth")
    text, rows = card_of(tmp_path / "mine.pth", tmp_path, backbone="resnet-tiny")
    assert "An encoder, backbone `resnet-tiny`, for phinets' resnet-tiny." in text
    assert not {"method", "wiring", "data", "seed", "views", "encoder", "made with"} & set(rows)
    assert rows["image size"] == "32 × 32 (default: the file has no metadata)"
    assert "(default: the file has no metadata; ImageNet's)" in rows["preprocessing"]
    assert "Not known: the weights came from a file" in text
    _, rows = card_of(tmp_path / "mine.pth", tmp_path, backbone="resnet-tiny", image_size=64, views="ucl")
    assert rows["image size"] == "64 × 64"
    assert "mean 0.4914" in rows["preprocessing"]
    _, rows = card_of(run_folder / "backbone-slow.safetensors", tmp_path)
    assert (rows["method"], rows["image size"]) == ("x-phinet", "16 × 16")
    assert rows["encoder"].startswith("slow")
