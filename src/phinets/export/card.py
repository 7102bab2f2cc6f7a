"""The model card: what the weights are, how good they are, how to load them; a page of plain words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phinets.config.methods import METHODS, EncoderName, describe
from phinets.config.run import TrainConfig
from phinets.config.views import IMAGENET_MEAN, IMAGENET_STD
from phinets.export.artifact import Artifact
from phinets.export.source import Source

CITATION = """\
@inproceedings{ishikawa2025phinets,
  title     = {PhiNets: Brain-inspired Non-contrastive Learning Based on Temporal Prediction Hypothesis},
  author    = {Satoki Ishikawa and Makoto Yamada and Han Bao and Yuki Takezawa},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}"""
TOLD = ("method", "backbone", "data", "seed", "steps", "protocol", "verdict")
"""Entries of a summary that have a place of their own on the card."""
LETTERS = "f: encoder; h, g: predictors; x1, x2, x3: views; x0: the image itself"
SCORES = ("knn", "linear")
CLOCKS: Mapping[EncoderName, str] = {
    "fast": "fast: learned by gradients",
    "slow": "slow: followed the fast one as a moving average",
}


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What is known of the file that was written."""

    name: str
    sha256: str
    size: int
    """Bytes."""
    difference: float
    """The largest of features, against the encoder it was made from."""


def card(source: Source, artifact: Artifact, proof: Proof) -> str:
    """The card as Markdown."""
    return "\n".join(
        [
            f"# {proof.name}",
            "",
            f"{_whose(source)}, for {artifact.into}.",
            "",
            *_section("Load it", [f"```{artifact.language}", artifact.usage, "```", *_paragraphs(artifact.notes)]),
            *_section("What it is", _table(_facts(source))),
            *_section("How good it is", _judgement(source)),
            *_section("The file", _table(_file(proof))),
            *_section("Cite", ["```bibtex", CITATION, "```"]),
        ]
    )


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _paragraphs(sentences: tuple[str, ...]) -> list[str]:
    return [line for sentence in sentences for line in ("", sentence)]


def _table(rows: Mapping[str, object]) -> list[str]:
    return ["| | |", "|---|---|", *(f"| {key} | {_cell(value)} |" for key, value in rows.items())]


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _whose(source: Source) -> str:
    clock, learner = source.said.get("encoder"), source.said.get("method")
    who = f"The {clock} encoder" if clock else "An encoder"
    return who + (f" that {learner} has learned" if learner else "") + f", backbone `{source.subject.backbone}`"


def _facts(source: Source) -> dict[str, object]:
    """What is known of where the weights come from; nothing that is not."""
    config, learner = source.subject.config, source.said.get("method", "")
    facts: dict[str, object] = {"method": learner} if learner else {}
    if learner in METHODS:
        facts["wiring"] = f"{describe(METHODS[learner])} ({LETTERS})"
    if "encoder" in source.said:
        facts["encoder"] = CLOCKS[source.subject.clock]
    facts |= {"feature": f"{source.width} numbers an image", "weights": source.when()}
    if config is not None:
        facts |= {"data": _data(config), "batch": config.batch, "seed": config.seed}
    if "views" in source.said:
        facts["views"] = f"{source.said['views']}: {source.plan.describe()}"
    guess = "" if "image_size" in source.said else " (not said by the file)"
    facts |= {"image size": f"{source.size} × {source.size}{guess}", "preprocessing": _preprocessing(source)}
    versions = _versions(source.environment)
    return facts | ({"made with": versions} if versions else {})


def _data(config: TrainConfig) -> str:
    """The data without the folders that they lay in, which nobody else has."""
    told = ", ".join(f"{kind}:{Path(place).name}" if place else kind for kind, _, place in _parted(config.sources))
    source = config.source
    few = f", the first {source.train_images} training images" if source.train_images is not None else ""
    return f"{told}{few}" + (f", classes {', '.join(source.classes)}" if source.classes else "")


def _parted(names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    return (name.partition(":") for name in names)


def _preprocessing(source: Source) -> str:
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (source.plan.mean, source.plan.std))
    usual = (source.plan.mean, source.plan.std) == (IMAGENET_MEAN, IMAGENET_STD)
    whose = "ImageNet's" if usual else "what this kind of encoder is made for"
    guess = "" if "views" in source.said else f" (not said by the file: {whose})"
    return (
        f"RGB; the short side to {source.size} pixels, bicubic with antialiasing, and the center; values from 0 to 1; "
        f"minus mean {mean}, divided by std {std}{guess}"
    )


def _versions(environment: Mapping[str, Any]) -> str:
    packages = environment.get("packages") or {}
    named = {"phinets": environment.get("phinets"), "Python": environment.get("python"), **packages}
    told = [f"{name} {version}" for name, version in named.items() if version]
    further = (environment.get("commit"), environment.get("device_name"), environment.get("precision"))
    prefixed = zip(("commit ", "", ""), further, strict=True)
    return ", ".join([*told, *(f"{word}{value}" for word, value in prefixed if value)])


def _judgement(source: Source) -> list[str]:
    """The run's own numbers, where they are about these weights."""
    summary = source.summary
    if source.folder is None:
        return ["Not known: the weights came from a file, without their run."]
    if not source.at_end:
        return [f"Not judged: these weights are from {source.when()}. Judge them with `phinets eval knn`."]
    lines = _readings(source) if "readings" in summary else _scores(source)
    if "verdict" in summary:
        lines += ["", f"The codes are {summary['verdict']}."]
    if "protocol" in summary:
        lines += ["", f"Protocol: {summary['protocol']}."]
    further = _further(summary)
    return lines + (["", f"Also in summary.json: {further}."] if further else [])


def _scores(source: Source) -> list[str]:
    """kNN and linear probe of this encoder, of the other one where it was judged, untrained, and of raw pixels."""
    assert source.subject.config is not None
    clock, judged = source.subject.clock, source.subject.config.evaluation.encoder
    endings = {"fast": "", "slow": "_slow"} if judged == "both" else {judged: ""}
    rows = {"raw pixels": "_pixels", "the same encoder, untrained": "_untrained"}
    rows |= {f"the {other} encoder of the same run": end for other, end in endings.items() if other != clock}
    lines = ["| features | kNN % | linear % |", "|---|---|---|"]
    for name, end in rows.items():
        lines += _row(name, [source.summary.get(f"{score}{end}") for score in SCORES])
    own = [source.summary.get(f"{score}{endings[clock]}") for score in SCORES] if clock in endings else [None, None]
    return [*lines, *_row(f"**this file, the {clock} encoder**", own)]


def _readings(source: Source) -> list[str]:
    """What a run over a stream came to by every readout of this encoder, and how each was asked."""
    own = [one for one in source.summary["readings"] if one["encoder"] == source.subject.clock]
    if not own:
        return [f"The {source.subject.clock} encoder was not read out."]
    columns = ("average", "forgetting_max", "forgetting_diag", "forward_transfer")
    lines = [f"| {' | '.join(('readout', *(name.replace('_', ' ') for name in columns)))} |", "|---|---|---|---|---|"]
    for one in own:
        lines += _row(one["readout"], [one[name] for name in columns])
    lines += ["", f"Tasks: {'; '.join(source.summary['tasks'])}."]
    return [*lines, *(line for one in own for line in ("", f"{one['readout']}: {one['protocol']}."))]


def _row(name: str, scores: list[Any]) -> list[str]:
    said = ["–" if score is None else f"{score:.2f}" if isinstance(score, float) else str(score) for score in scores]
    return [f"| {name} | {' | '.join(said)} |"]


def _further(summary: Mapping[str, Any]) -> str:
    """Whatever else a summary holds in one word or number: learners to come may have other figures."""
    rest = {key: value for key, value in summary.items() if key not in TOLD and not key.startswith(SCORES)}
    told = (f"{key.replace('_', ' ')} {_figure(value)}" for key, value in rest.items() if _is_plain(value))
    return ", ".join(told)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _file(proof: Proof) -> dict[str, object]:
    return {
        "SHA-256": f"`{proof.sha256}`",
        "size": f"{proof.size:,} bytes",
        "checked": f"read back; features as the encoder's to {proof.difference:.1e} of the largest",
    }
