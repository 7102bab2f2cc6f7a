"""The processes that learn together. Where there is only one, everything here is the identity."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from phinets.config.errors import CommonError, StoppedError, UserError

T = TypeVar("T")


class ToldElsewhereError(CommonError):
    """An error that the first process has met and says; the others only leave."""


def size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is, from 0."""
    return dist.get_rank() if size() > 1 else 0


def is_first() -> bool:
    """Whether this is the one that judges, writes and speaks."""
    return rank() == 0


def gathered(values: Tensor) -> Tensor:
    """The rows of all processes in order of rank: (n, …) here and everywhere → (size · n, …).

    The gradient of each row goes back to the process that it came from, summed over all that used it.
    """
    return values if size() == 1 else cast(Tensor, _Gather.apply(values))


def mean(values: Tensor) -> Tensor:
    """The mean over the processes, without gradient."""
    if size() == 1:
        return values
    total = values.detach().clone()
    dist.all_reduce(total)
    return total / size()


def everyone_s(items: Iterable[T]) -> list[T]:
    """The items of all processes, in order of rank."""
    if size() == 1:
        return list(items)
    lists: list[Any] = [None] * size()
    dist.all_gather_object(lists, list(items))
    return [item for theirs in lists for item in theirs]


def once(action: Callable[[], T]) -> T:
    """What `action` gives in the first process, for all; a mistake of the person's ends all, and is said once."""
    if size() == 1:
        return action()
    result: list[Any] = [None, None]
    failure: UserError | StoppedError | None = None
    if is_first():
        try:
            result[0] = action()
        except (UserError, StoppedError) as error:
            failure, result[1] = error, str(error)
    dist.broadcast_object_list(result)
    if failure is not None:
        raise failure
    if result[1] is not None:
        raise ToldElsewhereError(result[1])
    return cast(T, result[0])


class _Gather(torch.autograd.Function):
    """All-gather of equally many rows; backward sums the gradients of all and takes this process's own rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        everyone = [torch.empty_like(values) for _ in range(size())]
        dist.all_gather(everyone, values.contiguous())
        return torch.cat(everyone)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        dist.all_reduce(total)
        return total.chunk(size())[rank()]
