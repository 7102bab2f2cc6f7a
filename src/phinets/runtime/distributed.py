"""Distributed training. With one process, every function here is the identity."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from phinets.config.errors import CommonError, StoppedError, UserError
from phinets.runtime.devices import pick_device
from phinets.runtime.process import launch_info

T = TypeVar("T")


class RaisedOnRankZeroError(CommonError):
    """An error of the first process, which reports it; the others only exit."""


def world_size() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def is_rank_zero() -> bool:
    """Whether this is the first process, which evaluates, writes and prints."""
    return rank() == 0


def gather_rows(values: Tensor) -> Tensor:
    """The rows of all processes in order of rank: (n, …) in each → (size · n, …).

    The gradient of a row is summed over the processes and returned to the one it came from.
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
    """The result of `action` in the first process, broadcast to all; a user error ends all and is reported once."""
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
    """All-gather of equally many rows; backward sums all gradients and returns this process's rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        gathered = [torch.empty_like(values) for _ in range(world_size())]
        dist.all_gather(gathered, values.contiguous())
        return torch.cat(gathered)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        dist.all_reduce(total)
        return total.chunk(world_size())[rank()]


TIMEOUT = timedelta(hours=6)
"""How long processes wait for the first one, which evaluates alone. A process that dies is noticed at once."""


@contextmanager
def process_group() -> Iterator[None]:
    """Join the process group of torchrun; without torchrun, nothing happens."""
    if launch_info().size == 1 or dist.is_initialized():
        yield
        return
    cuda = torch.cuda.is_available()
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"the processes of this run can't connect: {str(error).splitlines()[0]}. Start them with "
            "`torchrun --nproc-per-node N -m phinets train …`, on many machines with --nnodes and --rdzv-endpoint."
        ) from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def local_device(name: str) -> torch.device:
    """The device of this process: with several processes, the GPU with its local rank."""
    if world_size() == 1:
        return pick_device(name)
    if name == "mps":
        raise UserError("an Apple GPU supports one process only. Run without torchrun, or use --device cpu.")
    if name == "cpu" or not torch.cuda.is_available():
        return pick_device("cpu" if name == "auto" else name)
    local_rank = launch_info().local_rank
    if local_rank >= torch.cuda.device_count():
        raise UserError(
            f"there are more processes than GPUs on this machine ({torch.cuda.device_count()}). "
            f"Use --nproc-per-node {torch.cuda.device_count()}, or --device cpu."
        )
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


class Agreement:
    """A request of any process is executed by all after the same step.

    The exchange is asynchronous: the processes learn of a request one step later, and no step waits for it.
    """

    def __init__(self) -> None:
        self._flags: torch.Tensor | None = None
        self._work: dist.Work | None = None

    def __call__(self, *requests: bool) -> list[bool]:
        """Exchange this process's requests; returns those to execute now."""
        if world_size() == 1:
            return list(requests)
        pending = self._wait(len(requests))
        self._flags = torch.tensor(requests, dtype=torch.int32)
        self._work = dist.all_reduce(self._flags, op=dist.ReduceOp.MAX, async_op=True)
        return pending

    def at_last(self, request: bool) -> bool:
        """Whether any process makes the first request; waits for the exchange, after the last step."""
        first = self(request, False)[0]
        return self._wait(2)[0] or first

    def _wait(self, n: int) -> list[bool]:
        """The requests of all processes at the last step."""
        if self._work is None or self._flags is None:
            return [False] * n
        self._work.wait()
        self._work = None
        return [bool(flag) for flag in self._flags]
