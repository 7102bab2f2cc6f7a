"""One run over several processes, as torchrun starts them."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import timedelta
from inspect import signature
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from phinets import team
from phinets.config.errors import UserError
from phinets.config.launch import launched
from phinets.engine.device import pick_device
from phinets.methods import Learner
from phinets.views import Views, random_stream

PATIENCE = timedelta(hours=6)
"""How long processes wait for the first one, which judges alone. One that dies is noticed at once all the same."""

_BUFFERS = next(
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in signature(DistributedDataParallel).parameters
)
"""What torch calls the exchange of buffers before each forward; the name has changed between its versions."""


@contextmanager
def joined() -> Iterator[None]:
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


def own_device(name: str) -> torch.device:
    """The device of this process: where each has a GPU of its own, the one with its number on this machine."""
    if team.size() == 1:
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


def distributed(learner: Learner, device: torch.device, image_size: int) -> nn.Module:
    """The learner as its share of a team, whose gradients are the mean over all; alone, the learner itself."""
    if team.size() == 1:
        return learner
    unsynchronised: dict[str, Any] = {_BUFFERS: False}
    return DistributedDataParallel(
        learner,
        device_ids=[device] if device.type == "cuda" else None,
        **unsynchronised,  # norms and queues are the same everywhere by themselves
        find_unused_parameters=has_idle_parameters(learner, device, image_size),
    )


def has_idle_parameters(learner: Learner, device: torch.device, image_size: int) -> bool:
    """Whether some parameter takes no part in the loss, such as g where Sim-2 weighs nothing; found by trying."""
    twin = deepcopy(learner)
    dtype = next(learner.parameters()).dtype
    images = torch.rand(4, 3, image_size, image_size, generator=random_stream(0, "trial")).to(device, dtype)
    twin(Views(images, images.flip(0), images)).total.backward()
    return any(p.requires_grad and p.grad is None for p in twin.parameters())


class Agreement:
    """What any process asks for is done by all, after the same step.

    The processes hear of it one step later, so that no step waits for the exchange.
    """

    def __init__(self) -> None:
        self._flags: torch.Tensor | None = None
        self._work: dist.Work | None = None

    def __call__(self, *asked: bool) -> list[bool]:
        """What is to be done now, given what this process asks for."""
        if team.size() == 1:
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
