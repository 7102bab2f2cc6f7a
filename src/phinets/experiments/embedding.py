"""Features of labelled images on both sides of a judgement: computed now, or kept in files before."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.exam import Exam
from phinets.config.run import Judging
from phinets.experiments.examining import examined
from phinets.experiments.feature_files import Side, about, is_features, read_features
from phinets.experiments.judging import sides_protocol


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """What is known and what is asked about."""

    known: Side
    asked: Side
    described: str
    """Whose features of which images, in words."""
    document: dict[str, Any]
    """The same for machines."""
    judging: Judging
    """The run's own protocol, or the paper's."""


def embedding(place: Path, exam: Exam) -> Embedding:
    """The features at a place, or those that the encoder at a place gives."""
    if is_features(place):
        return _kept(place, exam)
    who = examined(place, exam)
    known, asked = who.embedded()
    return Embedding(
        known=Side(*known),
        asked=Side(*asked),
        described=who.describe(),
        document=who.document,
        judging=Judging() if who.subject.config is None else who.subject.config.judging,
    )


def in_memory(side: Side) -> tuple[Tensor, Tensor]:
    """The same with its features as a tensor."""
    features = side.features
    return features if isinstance(features, Tensor) else torch.from_numpy(np.array(features, np.float32)), side.labels


def _kept(place: Path, exam: Exam) -> Embedding:
    if exam != Exam(device=exam.device):
        raise UserError(
            f"'{place}' holds features that are already there. Leave out everything that says how to make them; k, "
            "temperature and device are all that has a meaning."
        )
    known, asked = read_features(place)
    said = about(place)
    if said is not None:
        return Embedding(
            known=known,
            asked=asked,
            described=f"kept features of the {said.described}",
            document=said.document | {"target": str(place)},
            judging=said.judging,
        )
    counts = len(known.labels), len(asked.labels)
    return Embedding(
        known=known,
        asked=asked,
        described=f"features in {place.name}: {sides_protocol(*counts)}",
        document={"target": str(place), "bank": counts[0], "queries": counts[1]},
        judging=Judging(),
    )
