"""What of a run's settings decides what is learned."""

from typing import Any

from phinets.config.plain import to_plain, without
from phinets.config.run import TrainConfig

FREE = ("compute", "saving", "keep_tasks", "source.max_bad_images", "source.root", "source.download")
"""Settings that say how a run is computed and kept, not what is learned: they may change on the way."""


def learned(config: TrainConfig) -> dict[str, Any]:
    """The settings that decide what is learned, plain."""
    return without(to_plain(config), FREE)
