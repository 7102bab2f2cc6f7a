"""What learners cost on a device: seconds and bytes of a step, measured side by side.

All contenders take turns on the same views, round after round, and each ratio is the median over the rounds of the
ratio within a round, so that a machine that is busy for a while slows both sides alike. Memory is what torch holds at
the worst moment of a step: the weights and the optimizer's state, which are always there, and what the step needs
beyond them.
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
from phinets.training.optimizers import build_optimizer
from phinets.training.step import TrainState, build_learner, train_step
from phinets.views import Views

T = TypeVar("T")
Times = Mapping[str, Sequence[float]]
"""Seconds of each contender in each round; who ran out of memory is not in it."""

WARM_UP = 1
"""Rounds that do not count: the first step allocates the optimizer's state and lets libraries choose their kernels."""
DRAWN = 1024
"""Different images at most; a larger batch repeats them, so that one that can't fit fails at once."""
PROTOCOL = (
    "Every learner takes one full training step (forward, backward, optimizer, slow encoder) a round, in turn, on the "
    f"same ready-made views, after {WARM_UP} round that does not count. seconds: median over the rounds; "
    "time_to_simsiam: median of the ratios within rounds. bytes: weights, optimizer state, and what torch allocates "
    "beyond them at the worst moment of a step (CUDA's counter, or torch's profiler on a CPU; not measured elsewhere); "
    "the views and what the device's libraries take for themselves are not counted. hours_800_epochs is an "
    f"extrapolation: seconds × {EPOCHS} × ({IMAGES:,} // batch) / 3600, without making the views and judging."
)


@dataclass(frozen=True)
class Turn:
    """What a contender does when it is its turn, and what it keeps between two turns."""

    go: Callable[[], object]
    """One step."""
    rest: Callable[[], object]
    """Let go of the step's gradients, so that whoever comes next does not find them in memory."""
    held: Callable[[], int]
    """Bytes that stay between two turns."""


def costs(config: PretrainConfig, methods: Iterable[str], rounds: int, device: torch.device) -> tuple[Cost, ...]:
    """What each method costs at the config's batch size; all else but the method is the config's."""
    names = tuple(dict.fromkeys(methods))
    turns = if_it_fits(lambda: learners_turns(config, names, device)) or {}
    times = take_turns(turns, rounds, device)
    memory = {name: if_it_fits(partial(peak_memory, turns[name], device)) for name in times}
    return tuple(_cost(name, config.batch, times, memory) for name in names)


def learners_turns(config: PretrainConfig, methods: Iterable[str], device: torch.device) -> dict[str, Turn]:
    """A turn for each method whose weights fit into memory, all on one batch of views."""
    made = loader(config, device)
    views = made.micro_batch(0, 0, made.order(0)).views
    ready = {name: if_it_fits(partial(contender, replace(config, method=name), device)) for name in methods}
    return {name: turn_of(train_state, views) for name, train_state in ready.items() if train_state is not None}


def loader(config: TrainConfig, device: torch.device, steps: int = 1) -> ViewLoader:
    """Views of drawn images, enough for some steps, and with the anchor that some learners look at."""
    n = steps * config.batch
    drawn = torch.from_numpy(draw(range(min(n, DRAWN)))[0])
    return ViewLoader(
        images=InMemory(drawn.repeat(-(-n // len(drawn)), 1, 1, 1)[:n]),
        plan=config.plan,
        anchor="original",
        batch=config.batch,
        seed=config.seed,
        size=config.source.image_size,
        device=device,
        dtype=Precision(config.compute.precision, device).weights,
        channels_last=config.compute.channels_last,
    )


def contender(config: TrainConfig, device: torch.device) -> TrainState:
    """A learner with its optimizer, ready to make steps."""
    precision = Precision(config.compute.precision, device)
    learner = build_learner(config, device, precision.weights)
    optimizer = build_optimizer(learner, config.optimization)
    return TrainState(learner=learner, optimizer=optimizer, precision=precision, model=learner)


def steps_on(train_state: TrainState, views: Views, n: int = 1) -> None:
    """Steps as a run takes them; the rate changes nothing about their cost."""
    for _ in range(n):
        train_step(train_state, [views], rate=1e-3, peak=1e-3)


def step_seconds(config: TrainConfig, device: torch.device) -> float | None:
    """Seconds of one training step with its views, after one that does not count; None if out of memory."""

    def step() -> None:
        made = loader(config, device)
        steps_on(train_state, made.micro_batch(0, 0, made.order(0)).views)

    try:
        train_state = contender(config, device)
        step()
        return seconds_of(step, device)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    return None


def turn_of(train_state: TrainState, views: Views) -> Turn:
    """The turn of a learner: a full step."""

    def held() -> int:
        state = (t for slot in train_state.optimizer.state.values() for t in slot.values())
        return bytes_of(train_state.learner.state_dict().values()) + bytes_of(state)

    return Turn(lambda: steps_on(train_state, views), train_state.optimizer.zero_grad, held)


def bytes_of(tensors: Iterable[Any]) -> int:
    """How much all tensors among these take."""
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def take_turns(
    turns: Mapping[str, Turn], rounds: int, device: torch.device, clock: Callable[[], float] = perf_counter
) -> Times:
    """Seconds of each contender in each round that counts. Who runs out of memory is out; the others go on."""
    times: dict[str, list[float]] = {name: [] for name in turns}
    for i in range(WARM_UP + rounds):
        for name in list(times):
            seconds = if_it_fits(partial(seconds_of, turns[name].go, device, clock))
            turns[name].rest()
            if seconds is None:
                del times[name]
            elif i >= WARM_UP:
                times[name].append(seconds)
    return times


def seconds_of(work: Callable[[], object], device: torch.device, clock: Callable[[], float] = perf_counter) -> float:
    """How long it takes until the device has done the work."""
    on_start = clock()
    work()
    synchronize(device)
    return clock() - on_start


def if_it_fits(work: Callable[[], T]) -> T | None:
    """What the work gives, or None where there is not enough memory for it."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    return None


def peak_memory(turn: Turn, device: torch.device) -> int | None:
    """Bytes at the worst moment of a step; None on a device that does not tell."""
    turn.rest()
    if device.type == "cuda":
        return turn.held() + _extra_on_cuda(turn, device)
    return turn.held() + _extra_on_cpu(turn) if device.type == "cpu" else None


def _extra_on_cuda(turn: Turn, device: torch.device) -> int:
    """Bytes that a step takes at its worst moment beyond those that were taken before it, whoever holds them."""
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    turn.go()
    return torch.cuda.max_memory_allocated(device) - before


def _extra_on_cpu(turn: Turn) -> int:
    """The same from the profiler, which knows only what was allocated while it looked: so the rest is in its sight."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        turn.go()
        turn.rest()
    events = seen.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    held = worst = 0
    for _, change in changes:
        held += change
        worst = max(worst, held)
    return worst


def ratio_of_times(times: Times, name: str, other: str) -> float | None:
    """How much longer one takes than another: the median over the rounds of the ratio within a round."""
    if name not in times or other not in times:
        return None
    return median(a / b for a, b in zip(times[name], times[other], strict=True))


def ratio_of_memory(memory: Mapping[str, int | None], name: str, other: str) -> float | None:
    """How much more one takes than another."""
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
