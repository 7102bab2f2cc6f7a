"""What the numbers of a result mean: accuracies, their baselines, the other readout, the score of chance."""

from collections.abc import Mapping

from phinets.config.continual import ContinualConfig
from phinets.config.run import TrainConfig

READOUTS: Mapping[str, str] = {
    "knn": "linear", "linear": "knn", "probe": "knn", "knn_slow": "linear_slow", "linear_slow": "knn_slow"
}  # fmt: skip
"""Accuracies of a pretraining, and the other readout of each."""
STREAM_READOUTS: Mapping[str, str] = {
    "task-knn": "task-linear", "task-linear": "task-knn", "class-knn": "class-linear", "class-linear": "class-knn"
}  # fmt: skip
READOUT_NAMES: Mapping[str, str] = {
    "knn": "kNN", "linear": "linear probe", "probe": "linear probe", "knn_slow": "kNN", "linear_slow": "linear probe",
    "task-knn": "task-wise kNN", "task-linear": "task-wise linear probe", "class-knn": "class-incremental kNN",
    "class-linear": "class-incremental linear probe",
}  # fmt: skip
OF_THE_RUN = ("stable_rank_", "early/", "late/", "code_rms", "sim2_gradient_share")
"""Other numbers of a pretraining, by their beginnings: whether it learned is told by kNN."""
CLASSES: Mapping[str, int] = {"cifar100": 100, "imagenet": 1000}
"""Classes of the data that do not have ten."""


def readout_of(measure: str) -> str | None:
    """The readout that a measure belongs to: knn, task-knn, …; None where it is no accuracy or forgetting."""
    first = measure.partition("/")[0]
    return first if measure in READOUTS or first in STREAM_READOUTS else None


def other_readout(measure: str) -> str | None:
    """The same measure by the other readout; None where there is none."""
    first, slash, rest = measure.partition("/")
    if first in STREAM_READOUTS:
        return f"{STREAM_READOUTS[first]}{slash}{rest}"
    return READOUTS.get(measure)


def accuracy(measure: str) -> str | None:
    """The accuracy that tells whether the run behind a measure learned; None where nothing is learned."""
    first, _, rest = measure.partition("/")
    if first in STREAM_READOUTS:
        return f"{first}/{rest.partition('/')[0]}/average"
    if measure in READOUTS:
        return measure
    return "knn" if measure.startswith(OF_THE_RUN) else None


def untrained(accuracy_measure: str) -> str:
    """The same accuracy of the untrained encoder."""
    if accuracy_measure in READOUTS:
        return f"{_readout(accuracy_measure)}_untrained"
    return accuracy_measure.removesuffix("average") + "untrained"


def pixels(accuracy_measure: str) -> str | None:
    """The same accuracy of raw pixels; None in a stream, where it is not measured."""
    if accuracy_measure not in READOUTS:
        return None
    return f"{_readout(accuracy_measure)}_pixels"


def _readout(accuracy_measure: str) -> str:
    """kNN or linear probe, whichever encoder and probe."""
    return "knn" if accuracy_measure.startswith("knn") else "linear"


def chance(run: TrainConfig, measure: str) -> float | None:
    """The accuracy of guessing, in percent; 0 of forgetting, since guesses do not change; None of other numbers."""
    if readout_of(measure) is None:
        return None
    if "forgetting" in measure:
        return 0.0
    classes = CLASSES.get(run.data, 10)
    if isinstance(run, ContinualConfig) and measure.startswith("task-"):
        classes = run.stream.shape[1] if run.stream.shape else 2
    return 100 / classes
