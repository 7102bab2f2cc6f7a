"""Runs that differ in their seed alone, and in a few words what sets the others apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from textwrap import wrap
from typing import Any

from phinets.config.continual import ReplayOptions
from phinets.config.errors import UserError
from phinets.config.plain import flat, without
from phinets.config.record import ContinualRecord
from phinets.config.run import learning_settings
from phinets.reports.accuracy_matrix import strategy
from phinets.reports.palette import method_color

BESIDE = (
    "seed", "evaluation.eval_every", "evaluation.eval_at_images", "evaluation.online_bank", "evaluation.online_queries",
    "evaluation.encoder", "evaluation.health_metrics", "reading.evals_per_task", "stream.task_data",
)  # fmt: skip
"""Settings that change neither what is learned nor what the matrix says; a task's own data are among the facts."""
EVALUATION_SECTIONS = ("data", "source", "stream", "appended", "evaluation", "reading")
"""Where the settings stand that decide what is asked: where they differ, two matrices are not of one kind."""
DATA_FACTS = ("names of tasks", "training images")
"""What the data came to: as the settings say, unless what lies in a folder has changed."""
WIDEST = 30
"""Letters of a line that says what sets runs apart."""
LONGEST = 40
"""Letters up to which a setting's value is said; beyond it, which run has it."""

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that differ in their seed alone."""

    name: str
    color: str
    records: tuple[ContinualRecord, ...]


def groups(records: Sequence[ContinualRecord]) -> list[Group]:
    """Records by all that decides what is learned and asked but the seed, in the order in which they come.

    A name is method and strategy; then what is asked, where it is not the same in all groups; then what else sets it
    apart from groups of the same method and strategy.
    """
    found: list[tuple[Facts, list[ContinualRecord]]] = []
    for record in records:
        ours = facts(record)
        runs = next((runs for known, runs in found if known == ours), None)
        if runs is None:
            found.append((ours, [record]))
        else:
            _require_another_seed(record, runs)
            runs.append(record)
    asked = _what_is_asked([known for known, _ in found])
    made = []
    for known, runs in found:
        alike = [other for other, theirs in found if _heading(theirs[0]) == _heading(runs[0])]
        keys = asked + [key for key in _apart(alike) if not _is_asked(key)]
        told = ", ".join(_said(key, known.get(key), runs[0]) for key in keys)
        lines = [*_heading(runs[0]), *wrap(told, WIDEST, break_long_words=False, break_on_hyphens=False)]
        made.append(Group("\n".join(lines), method_color(runs[0].summary.method), tuple(runs)))
    return made


def facts(record: ContinualRecord) -> Facts:
    """All that decides what is learned and asked but the seed: dotted key → value, and what the data came to."""
    settings = without(learning_settings(record.config.resolved), (*BESIDE, *_unused(record.config.memory)))
    found = (list(record.summary.tasks), list(record.summary.images))
    return {**flat(settings), "data": record.summary.data, **dict(zip(DATA_FACTS, found, strict=True))}


def _unused(memory: ReplayOptions) -> list[str]:
    """What is set for a strategy that is not followed."""
    none = {
        "memory.buffer": memory.replay == "none",
        "memory.mixup_alpha": memory.replay != "mixup",
        "memory.distil_weight": memory.distil == "none",
        "memory.distil_hidden": memory.distil == "none",
    }
    return [key for key, unused in none.items() if unused]


def _require_another_seed(record: ContinualRecord, runs: Sequence[ContinualRecord]) -> None:
    for other in runs:
        if other.config.seed == record.config.seed:
            raise UserError(
                f"the runs in '{other.folder}' and '{record.folder}' have the same settings and the same seed "
                f"{record.config.seed}: together they say nothing of how much seeds matter. Name each once, and of "
                "runs that are the same only one."
            )


def _heading(record: ContinualRecord) -> tuple[str, str]:
    return record.summary.method, strategy(record.config.memory)


def _is_asked(key: str) -> bool:
    return key.partition(".")[0] in (*EVALUATION_SECTIONS, *DATA_FACTS)


def _apart(every: Sequence[Facts]) -> list[str]:
    """The keys whose values are not the same in all."""
    keys = dict.fromkeys(key for one in every for key in one)
    return [key for key in keys if any(one.get(key) != every[0].get(key) for one in every)]


def _what_is_asked(every: Sequence[Facts]) -> list[str]:
    """The keys of what is not asked alike; what the data came to only where the settings don't tell it already."""
    keys = [key for key in _apart(every) if _is_asked(key) and key not in DATA_FACTS]
    agreeing = [pair for pair in combinations(every, 2) if not set(keys) & set(_apart(pair))]
    return keys + [key for key in DATA_FACTS if any(one[key] != other[key] for one, other in agreeing)]


def _said(key: str, value: Any, record: ContinualRecord) -> str:
    """A setting and its value, e.g. epochs per task 1; data go without a word before them."""
    name, words = key.rpartition(".")[2].replace("_", " "), value_words(value)
    if len(words) > LONGEST:
        return f"{name} as in {record.folder}"
    return words if name == "data" else f"{name} {words}"


def value_words(value: Any) -> str:
    """A setting's value: –, yes, 0.0001, 2048 2048."""
    match value:
        case None | []:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case list():
            return " ".join(map(value_words, value))
        case Mapping():
            return " ".join(map(value_words, value.values()))
    return str(value)
