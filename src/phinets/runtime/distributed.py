"""The processes that learn together. Where there is only one, everything here is the identity."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from phinets.config.errors import CommonError, StoppedError, UserError
from phinets.runtime.devices import pick_device
from phinets.runtime.process import launched

T = TypeVar("T")


class RaisedOnRankZeroError(CommonError):
    """An error that the first process has met and says; the others only leave."""


def world_size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def is_rank_zero() -> bool:
    """Whether this is the one that judges, writes and speaks."""
    return rank() == 0


def gather_rows(values: Tensor) -> Tensor:
    """The rows of all processes in order of rank: (n, …) here and everywhere → (size · n, …).

    The gradient of each row goes back to the process that it came from, summed over all that used it.
    """
    return values if world_size() == 1 else cast(Tensor, _Gather.apply(values))


def mean_over_ranks(values: Tensor) -> Tensor:
    """The mean over the processes, without gradient."""
    if world_size() == 1:
        return values
    total = values.detach().clone()
    dist.all_reduce(total)
    return total / world_size()


def gather_objects(items: Iterable[T]) -> list[T]:
    """The items of all processes, in order of rank."""
    if world_size() == 1:
        return list(items)
    lists: list[Any] = [None] * world_size()
    dist.all_gather_object(lists, list(items))
    return [item for theirs in lists for item in theirs]


def on_rank_zero(action: Callable[[], T]) -> T:
    """What `action` gives in the first process, for all; a mistake of the person's ends all, and is said once."""
    if world_size() == 1:
        return action()
    result: list[Any] = [None, None]
    failure: UserError | StoppedError | None = None
    if is_rank_zero():
        try:
            result[0] = action()
        except (UserError, StoppedError) as error:
            failure, result[1] = error, str(error)
    dist.broadcast_object_list(result)
    if failure is not None:
        raise failure
    if result[1] is not None:
        raise RaisedOnRankZeroError(result[1])
    return cast(T, result[0])


def enter_on_rank_zero(context: AbstractContextManager[None]) -> AbstractContextManager[object]:
    """Enter a context in the first process, on behalf of all; what is returned leaves it."""
    stack = ExitStack()
    on_rank_zero(lambda: stack.enter_context(context))
    return stack


class _Gather(torch.autograd.Function):
    """All-gather of equally many rows; backward sums the gradients of all and takes this process's own rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        everyone = [torch.empty_like(values) for _ in range(world_size())]
        dist.all_gather(everyone, values.contiguous())
        return torch.cat(everyone)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        dist.all_reduce(total)
        return total.chunk(world_size())[rank()]


PATIENCE = timedelta(hours=6)
"""How long processes wait for the first one, which judges alone. One that dies is noticed at once all the same."""


@contextmanager
def process_group() -> Iterator[None]:
    """Belong to the processes that torchrun started, for a while; without torchrun, nothing happens."""
    if launched().size == 1 or dist.is_initialized():
        yield
        return
    cuda = torch.cuda.is_available()
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"the processes of this run can't find each other: {str(error).splitlines()[0]}. Start them with "
            "`torchrun --nproc-per-node N -m phinets train …`, on many machines with --nnodes and --rdzv-endpoint."
        ) from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def local_device(name: str) -> torch.device:
    """The device of this process: where each has a GPU of its own, the one with its number on this machine."""
    if world_size() == 1:
        return pick_device(name)
    if name == "mps":
        raise UserError("an Apple GPU serves one process only. Leave torchrun out, or use --device cpu.")
    if name == "cpu" or not torch.cuda.is_available():
        return pick_device("cpu" if name == "auto" else name)
    place = launched().place
    if place >= torch.cuda.device_count():
        raise UserError(
            f"there are more processes than GPUs on this machine ({torch.cuda.device_count()}). "
            f"Use --nproc-per-node {torch.cuda.device_count()}, or --device cpu."
        )
    torch.cuda.set_device(place)
    return torch.device("cuda", place)


class Agreement:
    """What any process asks for is done by all, after the same step.

    The processes hear of it one step later, so that no step waits for the exchange.
    """

    def __init__(self) -> None:
        self._flags: torch.Tensor | None = None
        self._work: dist.Work | None = None

    def __call__(self, *asked: bool) -> list[bool]:
        """What is to be done now, given what this process asks for."""
        if world_size() == 1:
            return list(asked)
        heard = self.heard(len(asked))
        self._flags = torch.tensor(asked, dtype=torch.int32)
        self._work = dist.all_reduce(self._flags, op=dist.ReduceOp.MAX, async_op=True)
        return heard

    def at_last(self, asked: bool) -> bool:
        """The first of what any process asks for, waited for: after the last step."""
        first = self(asked, False)[0]
        return self.heard(2)[0] or first

    def heard(self, n: int) -> list[bool]:
        """What was asked for at the last step by anyone."""
        if self._work is None or self._flags is None:
            return [False] * n
        self._work.wait()
        self._work = None
        return [bool(flag) for flag in self._flags]
