"""Groups of runs that differ in their seed alone, each named by what distinguishes it from the others."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from textwrap import wrap
from typing import Any, NamedTuple

from phinets.config.continual import ReplayOptions
from phinets.config.errors import UserError, printable
from phinets.config.plain import flat, without
from phinets.config.record import ContinualRecord
from phinets.config.run import learning_settings
from phinets.reports.palette import method_color

IRRELEVANT = (
    "seed", "evaluation.eval_every", "evaluation.eval_at_images", "evaluation.online_bank", "evaluation.online_queries",
    "evaluation.encoder", "evaluation.health_metrics", "reading.evals_per_task", "stream.task_data",
)  # fmt: skip
"""Settings that change neither the weights nor the accuracy matrix; a task's own data are among the facts."""
EVALUATION_SECTIONS = ("data", "source", "stream", "appended", "evaluation", "reading")
"""Settings that decide what is evaluated: where they differ, two matrices are not comparable."""
DATA_FACTS = ("names of tasks", "training images")
"""They follow from the settings, unless the files of a folder have changed."""
MAX_LINE = 30
"""Letters of a line of a group's name."""
MAX_VALUE = 40
"""Letters of a setting's value; for a longer one the run's folder is named."""

Facts = Mapping[str, Any]


class Group(NamedTuple):
    """Runs that differ in their seed alone."""

    name: str
    color: str
    records: tuple[ContinualRecord, ...]


def groups(records: Sequence[ContinualRecord]) -> list[Group]:
    """Records by all settings that matter except the seed, in the order in which they come.

    A name is method and strategy; then what is evaluated, where it is not the same in all groups; then what else
    differs from groups of the same method and strategy.
    """
    alike: list[tuple[Facts, list[ContinualRecord]]] = []
    for record in records:
        ours = facts(record)
        runs = next((runs for theirs, runs in alike if theirs == ours), None)
        if runs is None:
            alike.append((ours, [record]))
        else:
            _require_another_seed(record, runs)
            runs.append(record)
    evaluation_keys = _evaluation_differences([ours for ours, _ in alike])
    return [
        Group(_name(ours, runs[0], alike, evaluation_keys), method_color(runs[0].summary.method), tuple(runs))
        for ours, runs in alike
    ]


def _name(
    ours: Facts, run: ContinualRecord, alike: Sequence[tuple[Facts, Sequence[ContinualRecord]]], keys: Sequence[str]
) -> str:
    siblings = [theirs for theirs, runs in alike if _heading(runs[0]) == _heading(run)]
    keys = [*keys, *(key for key in _differences(siblings) if not _is_of_evaluation(key))]
    words = ", ".join(_setting_words(key, ours.get(key), run) for key in keys)
    return "\n".join(
        (*_heading(run), *wrap(printable(words), MAX_LINE, break_long_words=False, break_on_hyphens=False))
    )


def facts(record: ContinualRecord) -> Facts:
    """All settings that matter except the seed, by dotted key, and the tasks and images of the data."""
    settings = without(learning_settings(record.config.resolved), (*IRRELEVANT, *_unused(record.config.memory)))
    data = (list(record.summary.tasks), list(record.summary.images))
    return {**flat(settings), "data": record.summary.data, **dict(zip(DATA_FACTS, data, strict=True))}


def strategy(memory: ReplayOptions) -> str:
    """The strategy against forgetting, in a few words."""
    buffer = {"none": "", "plain": f"replay of {memory.buffer}", "mixup": f"mixup with {memory.buffer}"}[memory.replay]
    return " + ".join(filter(None, (buffer, "CaSSLe" * (memory.distil == "cassle")))) or "finetune"


def _unused(memory: ReplayOptions) -> list[str]:
    """Settings of a strategy that is off."""
    unused = {
        "memory.buffer": memory.replay == "none",
        "memory.mixup_alpha": memory.replay != "mixup",
        "memory.distil_weight": memory.distil == "none",
        "memory.distil_hidden": memory.distil == "none",
    }
    return [key for key, is_unused in unused.items() if is_unused]


def _require_another_seed(record: ContinualRecord, runs: Sequence[ContinualRecord]) -> None:
    for other in runs:
        if other.config.seed == record.config.seed:
            raise UserError(
                f"the runs in '{other.folder}' and '{record.folder}' have the same settings and the same seed "
                f"{record.config.seed}, so they show no spread over seeds. Name only one of them."
            )


def _heading(record: ContinualRecord) -> tuple[str, str]:
    return record.summary.method, strategy(record.config.memory)


def _is_of_evaluation(key: str) -> bool:
    return key.partition(".")[0] in (*EVALUATION_SECTIONS, *DATA_FACTS)


def _differences(every: Sequence[Facts]) -> list[str]:
    """The keys whose values are not the same in all."""
    keys = dict.fromkeys(key for one in every for key in one)
    return [key for key in keys if any(one.get(key) != every[0].get(key) for one in every)]


def _evaluation_differences(every: Sequence[Facts]) -> list[str]:
    """The keys in which evaluations differ; facts of the data only where the settings do not imply them."""
    keys = [key for key in _differences(every) if _is_of_evaluation(key) and key not in DATA_FACTS]
    agreeing = [pair for pair in combinations(every, 2) if not set(keys) & set(_differences(pair))]
    return keys + [key for key in DATA_FACTS if any(one[key] != other[key] for one, other in agreeing)]


def _setting_words(key: str, value: Any, record: ContinualRecord) -> str:
    """A setting and its value, e.g. epochs per task 1; data without its name."""
    name, words = key.rpartition(".")[2].replace("_", " "), value_words(value)
    if len(words) > MAX_VALUE:
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
