"""Pieces of work as values, each with a key: what the tables and figures of the paper are made of.

A piece of work is all that decides a result, its key the hash of that. Two that have the same key are the same work, on
whatever machine, so that nothing is done twice and results can be shared as files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from phinets.config.continual import ContinualConfig
from phinets.config.detection import Detection
from phinets.config.errors import look_up
from phinets.config.identity import learned
from phinets.config.plain import from_plain, to_plain, without
from phinets.config.probes import PaperProbe
from phinets.config.run import PretrainConfig

OF_DETECTORS = ("compute.device", "compute.checkpoint_every", "compute.drawings", "metric", "unfinished")
"""Settings of a detection transfer that change nothing of what is learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretraining:
    """A run on one body of images, judged at its end."""

    run: PretrainConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """A run over a stream of tasks, read out after each."""

    run: ContinualConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """The paper's linear probe of what a pretraining has learned."""

    run: PretrainConfig
    probe: PaperProbe


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferring:
    """Detection transfer of what a pretraining has learned."""

    run: PretrainConfig
    detection: Detection


@dataclass(frozen=True, slots=True, kw_only=True)
class Costing:
    """Time and memory of a step of some learners, side by side."""

    run: PretrainConfig
    """What they have in common; its method does not matter."""
    methods: tuple[str, ...]
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deriving:
    """The paper's statements on learning dynamics, checked."""

    statements: tuple[str, ...]
    """By their names in `phinets dynamics check-paper`."""
    sigma2: float = 1.5


Work = Pretraining | Streaming | Probing | Transferring | Costing | Deriving
KINDS: Mapping[str, type[Work]] = {
    "pretraining": Pretraining,
    "streaming": Streaming,
    "probing": Probing,
    "transferring": Transferring,
    "costing": Costing,
    "deriving": Deriving,
}


def kind(work: Work) -> str:
    """The word for what is done."""
    return next(name for name, cls in KINDS.items() if type(work) is cls)


def seed(work: Work) -> int:
    """The seed that it is done with."""
    return 0 if isinstance(work, Deriving) else work.run.seed


def begins_with(work: Work) -> Pretraining | None:
    """The pretraining whose weights it needs."""
    return Pretraining(run=work.run) if isinstance(work, Probing | Transferring) else None


def key(work: Work) -> str:
    """Sixteen hexadecimal digits of the hash of all that decides the result, and nothing else."""
    decisive = {"kind": kind(work), **to_plain(work)}
    if not isinstance(work, Deriving):
        decisive["run"] = learned(work.run.resolved)
    if isinstance(work, Transferring):
        decisive["detection"] = without(decisive["detection"], OF_DETECTORS)
    return sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]


def work_to_plain(work: Work) -> dict[str, Any]:
    """For JSON, with its kind."""
    return {"kind": kind(work), **to_plain(work)}


def work_from_plain(plain: Mapping[str, Any]) -> Work:
    """The work that was written by `work_to_plain`."""
    cls = look_up("kind of work", str(plain.get("kind")), KINDS)
    return from_plain(cls, {name: value for name, value in plain.items() if name != "kind"})
