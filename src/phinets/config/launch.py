"""What torchrun says about this process, before torch is loaded."""

import os
from typing import NamedTuple


class Launch(NamedTuple):
    """Which process this is, of how many, and which on its machine."""

    rank: int = 0
    size: int = 1
    place: int = 0


def launched() -> Launch:
    """As the environment has it; alone where nobody launched a team."""
    if "RANK" not in os.environ:
        return Launch()
    rank, size, place = (int(os.environ.get(name, default)) for name, default in VARIABLES.items())
    return Launch(rank, size, place) if size > 1 else Launch()


VARIABLES = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
