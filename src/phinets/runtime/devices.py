"""Devices and precision."""

from contextlib import AbstractContextManager, nullcontext

import torch

from phinets.config.errors import UserError


def pick_device(name: str) -> torch.device:
    """The device called `name`; "auto" is CUDA, else MPS, else the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # fails on a device without memory, such as meta
    except (RuntimeError, AssertionError, ImportError, AttributeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"the device '{name}' can't be used here ({first}). Use --device auto, or cpu.") from error
    return device


class Precision:
    """Autocast and, for fp16, loss scaling."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.device = device
        self.name = _auto(device) if name == "auto" else name
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.name)
        self.weights = torch.float64 if self.name == "fp64" else torch.float32
        if self.name == "fp64" and device.type == "mps":
            raise UserError("an Apple GPU has no double precision. Use --precision fp32, or --device cpu.")
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.name == "fp16")

    def autocast(self) -> AbstractContextManager[object]:
        """The context in which a loss is computed."""
        if self.dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def backward(self, loss: torch.Tensor) -> None:
        """Accumulate the gradients of a loss."""
        self.scaler.scale(loss).backward()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """One optimizer step."""
        self.scaler.step(optimizer)
        self.scaler.update()


def _auto(device: torch.device) -> str:
    """bf16 where a GPU has it, else fp16 on a GPU; fp32 elsewhere, where autocast is slower."""
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished; for timing."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


PHRASES = ("out of memory", "can't allocate memory", "not enough memory", "std::bad_alloc")
"""Messages of devices without an exception of their own."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means out of memory, on any device."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(phrase in str(error).lower() for phrase in PHRASES)
