"""Random numbers by purpose: every draw comes from a generator that its seed and its name determine."""

from hashlib import blake2b

import torch


def random_stream(seed: int, *words: str | int) -> torch.Generator:
    """A fresh CPU generator for one purpose: the same seed and words always give the same numbers.

    `random_stream(7, "views", step)` needs no state between steps, so a resumed run draws what the unbroken one would
    have. Torch's CPU generator keeps 32 bits of a seed, hence four bytes of the digest.
    """
    digest = blake2b(repr((seed, *words)).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))
