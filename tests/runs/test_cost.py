"""What learners cost: laws of the accounting, not seconds."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from phinets.config.jobs import Cost
from phinets.config.methods import METHODS
from phinets.config.run import DataOptions, Optimization, PretrainConfig
from phinets.methods import Learner
from phinets.runs import cost
from phinets.runs.cost import (
    WARM_UP,
    BenchmarkCase,
    bytes_of,
    case_of,
    costs,
    first_batch,
    new_train_state,
    peak_memory,
    ratio_of_times,
    run_steps,
    time_rounds,
)
from tests.helpers import SMALL

CPU = torch.device("cpu")
TINY = PretrainConfig(
    backbone="tests.helpers.TinyEncoder",
    batch=16,
    source=DataOptions(image_size=8),
    learner=SMALL,
)


def taken(method: str, config: PretrainConfig = TINY) -> int:
    """Bytes of a method alone."""
    (found,) = costs(config, [method], 1, CPU)
    assert found.bytes is not None
    return found.bytes


def load_learner(method: str, config: PretrainConfig = TINY) -> Learner:
    return new_train_state(replace(config, method=method), CPU).learner


def nothing() -> None:
    """A rest after which nothing has changed."""


# what is measured


def test_every_learner_has_its_row_in_the_order_asked_for_and_simsiam_is_the_measure() -> None:
    names = sorted(METHODS, reverse=True)
    found = costs(TINY, [*names, "phinet"], 1, CPU)
    assert [row.method for row in found] == names
    assert all(row.seconds and row.bytes and row.time_to_simsiam and not row.out_of_memory for row in found)
    simsiam = next(row for row in found if row.method == "simsiam")
    assert (simsiam.time_to_simsiam, simsiam.memory_to_simsiam) == (1.0, 1.0)
    assert all(row.bytes and row.memory_to_simsiam == row.bytes / (simsiam.bytes or 0) for row in found)


def test_memory_grows_with_the_batch_for_every_learner() -> None:
    small, large = (costs(replace(TINY, batch=n), METHODS, 1, CPU) for n in (32, 64))
    assert all((a.bytes or 0) < (b.bytes or 0) for a, b in zip(small, large, strict=True))


def test_memory_does_not_depend_on_who_else_takes_part() -> None:
    names = ("moco-v2", "x-phinet", "phinet", "simsiam", "byol")
    together = {row.method: row.bytes for row in costs(TINY, names, 2, CPU)}
    assert together == {name: taken(name) for name in names}
    assert {row.method: row.bytes for row in costs(TINY, reversed(names), 1, CPU)} == together


def test_weights_momentum_and_gradients_are_all_counted() -> None:
    config = replace(TINY, learner=replace(TINY.learner, projector=(512, 512)), batch=2)
    weights = bytes_of(load_learner("simsiam", config).parameters())
    assert taken("simsiam", config) >= 3 * weights
    adamw = taken("simsiam", replace(config, optimization=Optimization(optimizer="adamw")))
    assert adamw - taken("simsiam", config) >= weights


def test_x_phinet_holds_one_more_encoder_than_phinet_and_simsiam() -> None:
    encoder = bytes_of(load_learner("x-phinet").f.state_dict().values())
    assert taken("x-phinet") - taken("simsiam") >= encoder
    assert taken("x-phinet") - taken("phinet") >= encoder


def test_phinet_s_third_forward_keeps_no_graph_unless_the_gradient_flows_through_it() -> None:
    large = replace(TINY, batch=256)
    third = 256 * 3 * 8 * 8 * 4
    assert taken("phinet/identity-g", large) - taken("simsiam", large) < third / 10
    assert taken("phinet/no-stop-gradient", large) - taken("phinet", large) > third


def test_the_peak_is_the_worst_moment_of_a_step_and_not_all_that_it_ever_took() -> None:
    kept = [torch.zeros(10_000)]  # the gradients of the step before

    def go() -> None:
        torch.zeros(1000)
        both = [torch.zeros(300), torch.zeros(400)]
        both.clear()
        kept.append(torch.zeros(250))

    turn = BenchmarkCase(go, kept.clear, lambda: 7)
    assert [peak_memory(turn, CPU) for _ in range(3)] == [7 + 4 * 1000] * 3
    assert kept == []


def test_the_memory_of_a_view_in_another_thread_is_counted() -> None:
    config = replace(TINY, backbone="resnet-tiny", source=DataOptions(image_size=16))
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        train_state, views = new_train_state(config, CPU), first_batch(config, CPU)
        assert train_state.parallel_views is not None
        run_steps(train_state, views)  # the optimizer's state is there from now on
        states = (train_state, replace(train_state, parallel_views=None))
        in_two_threads, in_one = (peak_memory(case_of(state, views), CPU) for state in states)
    finally:
        torch.set_num_threads(threads)
    assert in_two_threads == pytest.approx(in_one, rel=0.02)


# whose turn it is


class Game:
    """Contenders that move a clock by as much as they are told, and a diary of what they did."""

    def __init__(self) -> None:
        self.now = 0.0
        self.diary: list[str] = []

    def turn(self, name: str, *seconds: float | Exception) -> BenchmarkCase:
        left = list(seconds)

        def go() -> None:
            self.diary.append(name)
            step = left.pop(0)
            if isinstance(step, Exception):
                raise step
            self.now += step

        return BenchmarkCase(go, lambda: self.diary.append(f"{name} rests"), lambda: 0)

    def played(self, rounds: int, **turns: BenchmarkCase) -> cost.Times:
        return time_rounds(turns, rounds, CPU, clock=lambda: self.now)


def test_each_takes_its_turn_once_a_round_and_the_warm_up_does_not_count() -> None:
    game = Game()
    warm = [100.0] * WARM_UP
    times = game.played(2, a=game.turn("a", *warm, 1, 2), b=game.turn("b", *warm, 3, 4))
    assert times == {"a": [1, 2], "b": [3, 4]}
    assert game.diary == ["a", "a rests", "b", "b rests"] * (WARM_UP + 2)


OUT = (MemoryError(), torch.cuda.OutOfMemoryError("CUDA"), RuntimeError("[enforce fail] can't allocate memory"))


@pytest.mark.parametrize("error", OUT, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("when", [0, WARM_UP, WARM_UP + 1])
def test_who_runs_out_of_memory_is_out_and_the_others_go_on(error: Exception, when: int) -> None:
    game = Game()
    times = game.played(2, a=game.turn("a", *[1.0] * when, error), b=game.turn("b", *[1.0] * (WARM_UP + 2)))
    assert times == {"b": [1, 1]}
    assert game.diary.count("a") == game.diary.count("a rests") == when + 1


def test_another_error_is_not_taken_for_a_lack_of_memory() -> None:
    game = Game()
    with pytest.raises(RuntimeError, match="shapes"):
        game.played(1, a=game.turn("a", RuntimeError("shapes do not fit")))


def test_a_ratio_is_the_median_of_ratios_within_rounds_not_the_ratio_of_medians() -> None:
    times = {"a": [1.0, 10.0, 3.0], "b": [1.0, 5.0, 1.0]}
    assert ratio_of_times(times, "a", "b") == 2
    assert ratio_of_times(times, "a", "nobody") is None


# too large


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, when: Callable[..., bool]) -> None:
    """A lack of memory in a function of the module, for some of its arguments."""
    real = getattr(cost, name)

    def short(*args: object) -> object:
        if when(*args):
            raise MemoryError
        return real(*args)

    monkeypatch.setattr(cost, name, short)


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("build_learner", lambda config, *_: config.method == "byol"),
        ("run_steps", lambda train_state, _: train_state.learner.slow is not None),
    ],
)
def test_a_learner_that_does_not_fit_is_told_and_the_others_are_measured(
    name: str, when: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, name, when)
    simsiam, byol, phinet = costs(TINY, ["simsiam", "byol", "phinet"], 1, CPU)
    assert byol == Cost(
        method="byol",
        batch=16,
        seconds=None,
        time_to_simsiam=None,
        bytes=None,
        memory_to_simsiam=None,
        out_of_memory=True,
    )
    assert byol.hours_800_epochs is None
    assert simsiam.time_to_simsiam == 1
    assert phinet.bytes == taken("phinet")


def test_without_simsiam_there_are_numbers_but_no_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "build_learner", lambda config, *_: config.method == "simsiam")
    simsiam, phinet = costs(TINY, ["simsiam", "phinet"], 1, CPU)
    assert simsiam.out_of_memory
    assert phinet.seconds
    assert phinet.bytes
    assert (phinet.time_to_simsiam, phinet.memory_to_simsiam) == (None, None)


def test_views_that_do_not_fit_leave_every_learner_out(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "loader", lambda *_: True)
    assert [row.out_of_memory for row in costs(TINY, ["simsiam", "phinet"], 1, CPU)] == [True, True]


def test_a_batch_that_no_machine_holds_is_told_at_once() -> None:
    (found,) = costs(replace(TINY, batch=10**12), ["simsiam"], 1, CPU)
    assert found.out_of_memory


@pytest.mark.parametrize("n", [16, cost.MAX_IMAGES + 3])
def test_a_batch_has_as_many_images_as_asked_for(n: int) -> None:
    assert len(cost.loader(replace(TINY, batch=n), CPU, steps=2).images) == 2 * n


# devices


def test_on_cuda_the_peak_is_what_is_held_and_what_a_step_adds_whoever_else_holds_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = {"now": 1000, "peak": 9000}  # others hold most of it, and had their own peak
    gradients = [30]  # of the step before

    def allocate(n: int) -> None:
        state["now"] += n
        state["peak"] = max(state["peak"], state["now"])

    def rest() -> None:
        allocate(-sum(gradients))
        gradients.clear()

    def go() -> None:
        rest()
        allocate(70)
        allocate(-40)
        gradients.append(30)

    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: state.update(peak=state["now"]))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: state["now"])
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: state["peak"])
    assert peak_memory(BenchmarkCase(go, rest, lambda: 5), torch.device("cuda")) == 5 + 70


def test_a_device_that_does_not_tell_its_memory_is_not_asked() -> None:
    assert peak_memory(BenchmarkCase(nothing, nothing, lambda: 5), torch.device("mps")) is None


# extrapolation


def test_hours_are_those_of_the_paper_s_run_were_every_step_alike() -> None:
    one = Cost(method="phinet", batch=128, seconds=2.0, time_to_simsiam=1.0, bytes=None, memory_to_simsiam=None)
    assert one.hours_800_epochs == pytest.approx(2.0 * 800 * 390 / 3600)
    assert replace(one, batch=1024).hours_800_epochs == pytest.approx(2.0 * 800 * 48 / 3600)
    assert replace(one, batch=50_001).hours_800_epochs is None
