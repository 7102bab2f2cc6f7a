"""What a step of a learner costs, as values that reports can read without torch."""

from dataclasses import dataclass

REFERENCE = "simsiam"
"""Whom all others are measured against, as the paper does."""
EPOCHS, IMAGES = 800, 50_000
"""The paper's run on CIFAR-10, to which a step is extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one step of one learner costs at one batch size; what could not be measured is None."""

    method: str
    batch: int
    seconds: float | None
    """Of a step: the median over the rounds."""
    time_to_simsiam: float | None
    """The median over the rounds of the ratio within a round."""
    bytes: int | None
    """At the worst moment of a step."""
    memory_to_simsiam: float | None
    out_of_memory: bool = False
    """Whether there was not enough memory for a step."""

    @property
    def hours_800_epochs(self) -> float | None:
        """Extrapolated from a step: seconds · 800 · (50,000 // batch) / 3600, the steps of the paper's run."""
        if self.seconds is None or self.batch > IMAGES:
            return None
        return self.seconds * EPOCHS * (IMAGES // self.batch) / 3600
