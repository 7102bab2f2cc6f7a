"""The model card: what the weights are, their scores, how to load them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from phinets.config.errors import printable
from phinets.config.methods import METHODS, EncoderName, describe
from phinets.config.run import TrainConfig
from phinets.config.views import IMAGENET_MEAN, IMAGENET_STD
from phinets.export.artifact import Artifact, Source

CITATION = """\
@inproceedings{ishikawa2025phinets,
  title     = {PhiNets: Brain-inspired Non-contrastive Learning Based on Temporal Prediction Hypothesis},
  author    = {Satoki Ishikawa and Makoto Yamada and Han Bao and Yuki Takezawa},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}"""
KNOWN_ENTRIES = ("method", "backbone", "data", "seed", "steps", "protocol", "verdict")
"""Entries of a summary that have a place of their own on the card."""
LETTERS = "f: encoder; h, g: predictors; x1, x2, x3: views; x0: the image itself"
SCORES = ("knn", "linear")
ENCODERS: Mapping[EncoderName, str] = {
    "fast": "fast: trained by gradients",
    "slow": "slow: moving average of the fast encoder",
}


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """The file that was written."""

    name: str
    sha256: str
    size: int
    """Bytes."""
    difference: float
    """Largest difference of features from the source encoder."""


def model_card(source: Source, artifact: Artifact, record: FileRecord) -> str:
    """The card as Markdown; text from data stands in it as text, never as HTML or Markdown."""
    file = {
        "SHA-256": f"`{record.sha256}`",
        "size": f"{record.size:,} bytes",
        "checked": f"read back; features equal the encoder's to {record.difference:.1e} of the largest",
    }
    notes = [line for note in artifact.notes for line in ("", note)]
    sections = {
        "Load it": [f"```{artifact.language}", artifact.usage, "```", *notes],
        "What it is": [escape(line, quote=False) for line in _table(_facts(source))],
        "Scores": [escape(line, quote=False) for line in _evaluation(source)],
        "The file": _table(file),
        "Cite": ["```bibtex", CITATION, "```"],
    }
    title = escape(_title(source), quote=False)
    lines = [f"# {escape(_text(record.name), quote=False)}", "", f"{title}, for {artifact.description}.", ""]
    for heading, content in sections.items():
        lines += [f"## {heading}", "", *content, ""]
    return "\n".join(lines)


def _text(name: object) -> str:
    """A name from data, with letters that Markdown reads escaped."""
    return re.sub(r"[\\`*\[\]]", r"\\\g<0>", printable(str(name)).replace("\n", " "))


def _table(rows: Mapping[str, object]) -> list[str]:
    cells = {key: str(value).replace("|", "\\|").replace("\n", " ") for key, value in rows.items()}
    return ["| | |", "|---|---|", *(f"| {key} | {cell} |" for key, cell in cells.items())]


def _title(source: Source) -> str:
    encoder, method = (_text(source.metadata.get(key, "")) for key in ("encoder", "method"))
    name = f"The {encoder} encoder" if encoder else "An encoder"
    return name + (f" trained by {method}" if method else "") + f", backbone `{source.loaded_encoder.backbone}`"


def _facts(source: Source) -> dict[str, object]:
    """Where the weights come from; unknown entries are left out."""
    config, method = source.loaded_encoder.config, source.metadata.get("method", "")
    facts: dict[str, object] = {"method": _text(method)} if method else {}
    if method in METHODS:
        facts["wiring"] = f"{describe(METHODS[method])} ({LETTERS})"
    if "encoder" in source.metadata:
        facts["encoder"] = ENCODERS[source.loaded_encoder.encoder]
    facts |= {"feature": f"{source.width} numbers per image", "weights": source.describe_step()}
    if config is not None:
        facts |= {"data": _data(config), "batch": config.batch, "seed": config.seed}
    if "views" in source.metadata:
        facts["views"] = f"{_text(source.metadata['views'])}: {source.plan.describe()}"
    default = "" if "image_size" in source.metadata else " (default: the file has no metadata)"
    facts |= {"image size": f"{source.size} × {source.size}{default}", "preprocessing": _preprocessing(source)}
    versions = _versions(source.environment)
    return facts | ({"made with": versions} if versions else {})


def _data(config: TrainConfig) -> str:
    """The data without their folders, which are private."""
    names = ", ".join(
        _text(f"{kind}:{Path(place).name}" if place else kind)
        for kind, _, place in (name.partition(":") for name in config.sources)
    )
    source = config.source
    limit = f", the first {source.train_images} training images" if source.train_images is not None else ""
    return f"{names}{limit}" + (f", classes {', '.join(map(_text, source.classes))}" if source.classes else "")


def _preprocessing(source: Source) -> str:
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (source.plan.mean, source.plan.std))
    usual = (source.plan.mean, source.plan.std) == (IMAGENET_MEAN, IMAGENET_STD)
    whose = "ImageNet's" if usual else "the backbone's own"
    default = "" if "views" in source.metadata else f" (default: the file has no metadata; {whose})"
    return (
        f"RGB; the short side to {source.size} pixels, bicubic with antialiasing, and the center; values from 0 to 1; "
        f"minus mean {mean}, divided by std {std}{default}"
    )


def _versions(environment: Mapping[str, Any]) -> str:
    packages = environment.get("packages") or {}
    versions = {"phinets": environment.get("phinets"), "Python": environment.get("python"), **packages}
    versions |= {"commit": environment.get("commit")}
    further = (environment.get("device_name"), environment.get("precision"))
    return _text(", ".join([*(f"{name} {value}" for name, value in versions.items() if value), *filter(None, further)]))


def _evaluation(source: Source) -> list[str]:
    """The scores of the run, where they are about these weights."""
    summary = source.summary
    if source.folder is None:
        return ["Not known: the weights came from a file, without their run."]
    if not source.is_final:
        return [
            f"Not evaluated: these weights are from {source.describe_step()}. Evaluate them with `phinets eval knn`."
        ]
    lines = _readings(source) if "readings" in summary else _scores(source)
    if "verdict" in summary:
        lines += ["", f"The codes are {_text(summary['verdict'])}."]
    if "protocol" in summary:
        lines += ["", f"Protocol: {_text(summary['protocol'])}."]
    further = _other_entries(summary)
    return lines + (["", f"Also in summary.json: {further}."] if further else [])


def _scores(source: Source) -> list[str]:
    """kNN and linear probe of this encoder, the run's other one if evaluated, the untrained one, and raw pixels."""
    assert source.loaded_encoder.config is not None
    encoder, evaluated = source.loaded_encoder.encoder, source.loaded_encoder.config.evaluation.encoder
    suffixes = {"fast": "", "slow": "_slow"} if evaluated == "both" else {evaluated: ""}
    rows = {"raw pixels": "_pixels", "the same encoder, untrained": "_untrained"}
    rows |= {f"the {other} encoder of the same run": suffix for other, suffix in suffixes.items() if other != encoder}
    lines = ["| features | kNN % | linear % |", "|---|---|---|"]
    for name, suffix in rows.items():
        lines += _row(name, [source.summary.get(f"{score}{suffix}") for score in SCORES])
    own = [source.summary.get(f"{score}{suffixes[encoder]}") if encoder in suffixes else None for score in SCORES]
    return [*lines, *_row(f"**this file, the {encoder} encoder**", own)]


def _readings(source: Source) -> list[str]:
    """Scores of a continual run by each readout of this encoder, with their protocols."""
    own = [one for one in source.summary["readings"] if one["encoder"] == source.loaded_encoder.encoder]
    if not own:
        return [f"The {source.loaded_encoder.encoder} encoder was not evaluated."]
    columns = ("average", "forgetting_max", "forgetting_diag", "forward_transfer")
    lines = [f"| {' | '.join(('readout', *(name.replace('_', ' ') for name in columns)))} |", "|---|---|---|---|---|"]
    for one in own:
        lines += _row(one["readout"], [one[name] for name in columns])
    lines += ["", f"Tasks: {'; '.join(map(_text, source.summary['tasks']))}."]
    return [*lines, *(line for one in own for line in ("", f"{one['readout']}: {one['protocol']}."))]


def _row(name: str, scores: list[Any]) -> list[str]:
    cells = ["–" if score is None else f"{score:.2f}" if isinstance(score, float) else str(score) for score in scores]
    return [f"| {name} | {' | '.join(cells)} |"]


def _other_entries(summary: Mapping[str, Any]) -> str:
    """All other entries of a summary that are one word or number."""
    return ", ".join(
        f"{key.replace('_', ' ')} {f'{value:.4g}' if isinstance(value, float) else _text(value)}"
        for key, value in summary.items()
        if isinstance(value, str | int | float) and key not in KNOWN_ENTRIES and not key.startswith(SCORES)
    )
