"""`phinets eval`: evaluate an encoder by kNN, linear probe, fine-tuning and health metrics."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from phinets.cli.command import Action, Outcome, parse_words, print_lines, run_action, show_lines
from phinets.config.errors import UserError, require_at_least, require_in
from phinets.config.evaluation import CACHED_PROBE, EvalOptions, FineTuning, HealthOptions, PaperProbe, ProbeName
from phinets.runtime.process import exit_on_interrupt

if TYPE_CHECKING:
    from phinets.evaluation.health import HealthReport

Target = Annotated[Path, tyro.conf.Positional]
SPECTRUM_VALUES = 8
"""Values of a spectrum in the printed table; --json has all."""


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The options of every action but health."""

    target: Target
    """A run folder, one of its checkpoints, a weights file (.safetensors, or a state dict); for knn and linear also a
    feature file (.npz, .parquet) of `phinets embed` or `phinets eval features`: split `train` is kNN's bank, `test` the
    queries."""
    options: EvalOptions = field(default_factory=EvalOptions)
    json: bool = False
    """Print one JSON document: the result, its details, and the protocol in words."""


@dataclass(frozen=True, kw_only=True)
class Knn(TargetOptions):
    """kNN accuracy on the test images, with the training images as bank; the same vote as during training.

    Example: phinets eval knn runs/first --data cifar10 --num-neighbors 200
    """

    num_neighbors: int | None = None
    """Neighbors that vote; unset: as in the run, else 200, or all where the bank is smaller."""
    temperature: float | None = None
    """Votes weigh exp(cosine / temperature); unset: as in the run, else 0.1."""

    def __post_init__(self) -> None:
        require_at_least(self, num_neighbors=1)
        require_in(self, temperature="(0, inf)")


def knn(words: list[str]) -> Outcome:
    args = parse_words(Knn, "eval knn", words)
    with exit_on_interrupt():
        from phinets.evaluation.knn import knn_accuracy, knn_protocol
        from phinets.evaluation.setup import open_target
        from phinets.runtime.devices import pick_device

    source = open_target(args.target, args.options)
    train, test = source.feature_sets()
    k = args.num_neighbors or min(source.evaluation.num_neighbors, len(train.labels))
    temperature = args.temperature or source.evaluation.knn_temperature
    device = pick_device(args.options.device)
    accuracy = knn_accuracy(*test, *train, k=k, temperature=temperature, device=device)
    protocol = f"{source.describe()}; kNN: {knn_protocol(k, temperature)}"
    return _score("knn", accuracy, source.document | {"k": k, "temperature": temperature}, protocol)


@dataclass(frozen=True, kw_only=True)
class Linear(TargetOptions):
    """Accuracy on the test images of a linear classifier on the frozen features.

    Example: phinets eval linear runs/first --probe paper --rates 3 10 30
    """

    probe: ProbeName = "cached"
    """`cached`: features once, then logistic regression to convergence. `paper`: epochs of steps on augmented views."""
    paper: PaperProbe = field(default_factory=PaperProbe)

    def __post_init__(self) -> None:
        if self.probe == "cached" and self.paper != PaperProbe():
            raise UserError(
                "rates, epochs, batch, momentum and optimizer are options of the paper's probe. Add --probe paper."
            )


def linear(words: list[str]) -> Outcome:
    args = parse_words(Linear, "eval linear", words)
    return _cached_probe(args) if args.probe == "cached" else _paper_probe(args)


def _cached_probe(args: Linear) -> Outcome:
    with exit_on_interrupt():
        from phinets.evaluation.linear import fit_probe, probe_accuracy
        from phinets.evaluation.setup import open_target

    source = open_target(args.target, args.options)
    train, test = source.feature_sets()
    probe = fit_probe(*train.tensors())
    accuracy = probe_accuracy(probe, *test.tensors())
    details = source.document | {"probe": "cached", "l2": probe.l2, "held_out": probe.held_out}
    choice = f"L2 {probe.l2:g}, held-out accuracy: {_listing(probe.held_out)}"
    return _score("linear", accuracy, details, f"{source.describe()}; linear probe `cached`: {CACHED_PROBE}", choice)


def _paper_probe(args: Linear) -> Outcome:
    with exit_on_interrupt():
        from phinets.evaluation.finetune import paper_probe
        from phinets.evaluation.setup import eval_setup

    setup = eval_setup(args.target, args.options)
    with _progress_bar("linear probe") as on_step:
        result = paper_probe(setup, args.paper, on_step)
    details = setup.document | {"probe": "paper", "rate": result.rate, "held_out": result.held_out}
    protocol = f"{setup.describe()}; linear probe `paper`: {args.paper.describe(result.batch)}"
    choice = [f"lr {result.rate:g}, held-out accuracy: {_listing(result.held_out)}"] if result.held_out else []
    return _score("linear", result.accuracy, details, protocol, *choice)


def _listing(accuracies: Mapping[float, float]) -> str:
    return ", ".join(f"{value:g}: {percent:.1f} %" for value, percent in accuracies.items())


@dataclass(frozen=True, kw_only=True)
class FineTune(TargetOptions):
    """Accuracy on the test images after training all weights on the labels, or on some of them.

    Example: phinets eval finetune runs/first --labels 1% --scratch
    """

    scratch: bool = False
    """Also train from fresh weights in the same way, for comparison."""
    training: FineTuning = field(default_factory=FineTuning)


def finetune(words: list[str]) -> Outcome:
    args = parse_words(FineTune, "eval finetune", words)
    with exit_on_interrupt():
        from phinets.evaluation.finetune import evaluate_finetuning
        from phinets.evaluation.setup import eval_setup

    setup = eval_setup(args.target, args.options)
    with _progress_bar("fine-tuning") as on_step:
        result = evaluate_finetuning(setup, args.training, scratch=args.scratch, on_step=on_step)
    details = setup.document | {"scratch": result.scratch}
    fresh = [] if result.scratch is None else [f"from fresh weights {result.scratch:.2f} %"]
    protocol = f"{setup.describe()}; {args.training.describe(result.batch)}"
    return _score("finetune", result.accuracy, details, protocol, *fresh)


@dataclass(frozen=True)
class HealthOf:
    """Health metrics of a run's learner: collapse, ranks, spectra, scale of codes, distance of fast and slow weights.

    Example: phinets eval health runs/first
    """

    target: Target
    """A run folder, or one of its checkpoints."""
    options: HealthOptions = field(default_factory=HealthOptions)
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    json: bool = False
    """Print one JSON document: every metric, full spectra, verdict, protocol, warning."""


def health(words: list[str]) -> Outcome:
    args = parse_words(HealthOf, "eval health", words)
    with exit_on_interrupt():
        from phinets.evaluation.health import evaluate_health
        from phinets.runtime.devices import pick_device

    report = evaluate_health(args.target, args.options, pick_device(args.device))
    in_words = {"verdict": report.verdict, "protocol": report.protocol, "warning": report.warning}
    document = {"target": str(args.target), **in_words, **report.metrics}
    return Outcome(document, lambda console: _show_health(console, report))


def _show_health(console: Console, report: "HealthReport") -> None:
    table = Table(title=f"the codes are {report.verdict}", caption=report.protocol, show_header=False)
    for name, value in report.metrics.items():
        if isinstance(value, list):
            rest = f" … ({len(value)})" if len(value) > SPECTRUM_VALUES else ""
            cell = " ".join(f"{v:.3f}" for v in value[:SPECTRUM_VALUES]) + rest
        else:
            cell = f"{value:.4g}"
        table.add_row(name.replace("_", " "), cell)
    console.print(table, highlight=False)
    if report.warning is not None:
        print_lines(console, report.warning)


@dataclass(frozen=True, kw_only=True)
class Features(TargetOptions):
    """Write train and test features into one file, the format of `phinets embed`, to be evaluated later.

    An .npz is read as a memory map, so `eval knn` works on features larger than the memory. An interrupted command
    resumes when it is repeated.

    Example: phinets eval features runs/first --out features.npz && phinets eval knn features.npz --num-neighbors 200
    """

    out: Path = Path("features.npz")
    """.npz (paths, splits, labels, classes, features) or .parquet (path, split, label, feature)."""
    overwrite: bool = False
    """Replace the file."""


def features(words: list[str]) -> Outcome:
    args = parse_words(Features, "eval features", words)
    with exit_on_interrupt():
        from phinets.cli.output import require_free
        from phinets.embed.embed import eval_job, write_features
        from phinets.embed.store import require_format
        from phinets.reports.progress import CountBar, PlainConsole

    require_free(args.out, args.overwrite)
    require_format(args.out)
    job = eval_job(args.target, args.options)
    with CountBar(PlainConsole(stderr=True)) as bar:
        about = write_features(job, args.out, args.overwrite, bar)
    return Outcome({"out": str(args.out), **about}, show_lines(f"{args.out}: {about['description']}"))


def _score(metric: str, accuracy: float, details: Mapping[str, Any], protocol: str, *lines: str) -> Outcome:
    """An accuracy with its protocol; `details` are further JSON entries, `lines` further lines of text."""
    document = {"metric": metric, "accuracy": accuracy, "protocol": protocol, **details}
    return Outcome(document, show_lines(f"{metric} {accuracy:.2f} %", *lines, protocol))


@contextmanager
def _progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; call it with the step and the number of steps."""
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title)
        yield lambda step, steps: bar.update(task, completed=step, total=steps)


ACTIONS: Mapping[str, Action] = {
    "knn": Action("k-nearest-neighbor accuracy", knn),
    "linear": Action("a linear probe: on cached features, or as in the paper", linear),
    "finetune": Action("train all weights on some or all of the labels", finetune),
    "health": Action("collapse, ranks, spectra, fast and slow weights", health),
    "features": Action("write train and test features into a file, to be evaluated later", features),
}


def command(words: list[str]) -> Outcome:
    return run_action("eval", ACTIONS, "phinets eval knn runs/first --num-neighbors 200", words)
