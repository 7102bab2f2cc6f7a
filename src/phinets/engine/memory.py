"""Running out of memory."""

import torch

PHRASES = ("out of memory", "can't allocate memory", "not enough memory", "std::bad_alloc")
"""How devices without an exception of their own say it."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that there was not enough memory, on whichever device."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(phrase in str(error).lower() for phrase in PHRASES)
