"""The cost of learners on a device: seconds and bytes of a step, measured side by side.

All methods step in turn on the same views, round after round. A ratio is the median over the rounds of the ratio within
a round, so that a busy machine slows both sides alike. Memory is the peak of a step: weights, optimizer state, and what
the step allocates beyond them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

from phinets.config.jobs import EPOCHS, IMAGES, REFERENCE, Cost
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.data import InMemory
from phinets.data.shapes import draw
from phinets.runtime.devices import Precision, is_out_of_memory, synchronize
from phinets.training.loader import ViewLoader
from phinets.training.step import TrainState, build_learner, build_train_state, train_step
from phinets.views import Views

T = TypeVar("T")
Times = Mapping[str, Sequence[float]]
"""Seconds of each case in each round; cases that ran out of memory are missing."""

WARM_UP = 1
"""Rounds that do not count: the first step allocates the optimizer's state and chooses kernels."""
MAX_IMAGES = 1024
"""Maximum number of different images; a larger batch repeats them, so that one that can't fit fails at once."""
PROTOCOL = (
    "Every learner takes one full training step (forward, backward, optimizer, slow encoder) a round, in turn, on the "
    f"same ready-made views, after {WARM_UP} round that does not count. seconds: median over the rounds; "
    "time_to_simsiam: median of the ratios within rounds. bytes: weights, optimizer state, and what torch allocates "
    "beyond them at the worst moment of a step (CUDA's counter, or torch's profiler on a CPU; not measured elsewhere); "
    "the views and what the device's libraries take for themselves are not counted. hours_800_epochs is an "
    f"extrapolation: seconds × {EPOCHS} × ({IMAGES:,} // batch) / 3600, without making views and evaluating."
)


@dataclass(frozen=True)
class BenchmarkCase:
    """One of the things that are timed in turn."""

    run: Callable[[], object]
    """One step."""
    release: Callable[[], object]
    """Free the step's gradients, so that the next case does not find them in memory."""
    held_bytes: Callable[[], int]
    """Bytes that stay allocated between two steps."""
    run_in_one_thread: Callable[[], object] | None = None
    """The same step in the calling thread, the only one whose memory the profiler sees; None: as `run`."""


def costs(config: PretrainConfig, methods: Iterable[str], rounds: int, device: torch.device) -> tuple[Cost, ...]:
    """The cost of each method at the config's batch size, with all other settings of the config."""
    names = tuple(dict.fromkeys(methods))
    cases = none_if_out_of_memory(lambda: method_cases(config, names, device)) or {}
    times = time_rounds(cases, rounds, device)
    memory = {name: none_if_out_of_memory(partial(peak_memory, cases[name], device)) for name in times}
    return tuple(_cost(name, config.batch, times, memory) for name in names)


def method_cases(config: PretrainConfig, methods: Iterable[str], device: torch.device) -> dict[str, BenchmarkCase]:
    """A case for each method whose weights fit into memory, all on one batch of views."""
    views = first_batch(config, device)
    states = {
        name: none_if_out_of_memory(partial(new_train_state, replace(config, method=name), device)) for name in methods
    }
    return {name: case_of(train_state, views) for name, train_state in states.items() if train_state is not None}


def loader(config: TrainConfig, device: torch.device, steps: int = 1) -> ViewLoader:
    """The loader of drawn images for some steps, with the anchor that some learners need."""
    n = steps * config.batch
    images = torch.from_numpy(draw(range(min(n, MAX_IMAGES)))[0])
    return ViewLoader(
        images=InMemory(images.repeat(-(-n // len(images)), 1, 1, 1)[:n]),
        plan=config.plan,
        anchor="original",
        batch=config.batch,
        seed=config.seed,
        size=config.source.image_size,
        device=device,
        dtype=Precision(config.compute.precision, device).weights,
        channels_last=config.compute.channels_last,
    )


def first_batch(config: TrainConfig, device: torch.device) -> Views:
    """The views of one step."""
    batches = loader(config, device)
    return batches.micro_batch(0, 0, batches.order(0)).views


def new_train_state(config: TrainConfig, device: torch.device) -> TrainState:
    """A new learner with its optimizer."""
    precision = Precision(config.compute.precision, device)
    return build_train_state(config, build_learner(config, device, precision.weights), precision)


def run_steps(train_state: TrainState, views: Views, n: int = 1) -> None:
    """Training steps; the learning rate does not change their cost."""
    for _ in range(n):
        train_step(train_state, [views], rate=1e-3, peak=1e-3)


def step_seconds(config: TrainConfig, device: torch.device) -> float | None:
    """Seconds of one training step with its views, after one that does not count; None if out of memory."""

    def measure() -> float:
        train_state = new_train_state(config, device)
        seconds = [seconds_of(lambda: run_steps(train_state, first_batch(config, device)), device) for _ in range(2)]
        return seconds[-1]

    return none_if_out_of_memory(measure)


def case_of(train_state: TrainState, views: Views) -> BenchmarkCase:
    """The case of a learner: one full step."""

    def held_bytes() -> int:
        state = (t for slot in train_state.optimizer.state.values() for t in slot.values())
        return bytes_of(train_state.learner.state_dict().values()) + bytes_of(state)

    alone = replace(train_state, parallel_views=None)
    release = train_state.optimizer.zero_grad
    return BenchmarkCase(
        lambda: run_steps(train_state, views), release, held_bytes, run_in_one_thread=lambda: run_steps(alone, views)
    )


def bytes_of(tensors: Iterable[Any]) -> int:
    """The memory of all tensors among these."""
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def time_rounds(
    cases: Mapping[str, BenchmarkCase], rounds: int, device: torch.device, clock: Callable[[], float] = perf_counter
) -> Times:
    """Seconds of each case in each counted round. A case that runs out of memory is dropped; the others continue."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for i in range(WARM_UP + rounds):
        for name in list(times):
            seconds = none_if_out_of_memory(partial(seconds_of, cases[name].run, device, clock))
            cases[name].release()
            if seconds is None:
                del times[name]
            elif i >= WARM_UP:
                times[name].append(seconds)
    return times


def seconds_of(work: Callable[[], object], device: torch.device, clock: Callable[[], float] = perf_counter) -> float:
    """Seconds until the device has finished the work."""
    start = clock()
    work()
    synchronize(device)
    return clock() - start


def none_if_out_of_memory(work: Callable[[], T]) -> T | None:
    """The result of the work, or None if it runs out of memory."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    return None


def peak_memory(case: BenchmarkCase, device: torch.device) -> int | None:
    """Peak bytes of a step; None on a device without a counter."""
    case.release()
    if device.type == "cuda":
        return case.held_bytes() + _extra_on_cuda(case, device)
    return case.held_bytes() + _extra_on_cpu(case) if device.type == "cpu" else None


def _extra_on_cuda(case: BenchmarkCase, device: torch.device) -> int:
    """Peak bytes of a step beyond those allocated before it."""
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    case.run()
    return torch.cuda.max_memory_allocated(device) - before


def _extra_on_cpu(case: BenchmarkCase) -> int:
    """The same from the profiler, which sees only allocations while it is active, so `release` runs inside."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        (case.run_in_one_thread or case.run)()
        case.release()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    allocated = peak = 0
    for _, change in changes:
        allocated += change
        peak = max(peak, allocated)
    return peak


def ratio_of_times(times: Times, name: str, other: str) -> float | None:
    """The time of one relative to another: the median over the rounds of the ratio within a round."""
    if name not in times or other not in times:
        return None
    return median(a / b for a, b in zip(times[name], times[other], strict=True))


def ratio_of_memory(memory: Mapping[str, int | None], name: str, other: str) -> float | None:
    """The memory of one relative to another."""
    one, two = memory.get(name), memory.get(other)
    return None if one is None or two is None else one / two


def _cost(name: str, batch: int, times: Times, memory: Mapping[str, int | None]) -> Cost:
    return Cost(
        method=name,
        batch=batch,
        seconds=median(times[name]) if name in times else None,
        time_to_simsiam=ratio_of_times(times, name, REFERENCE),
        bytes=memory.get(name),
        memory_to_simsiam=ratio_of_memory(memory, name, REFERENCE),
        out_of_memory=name not in times,
    )
