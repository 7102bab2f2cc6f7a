"""How sure an effect is: cells drawn anew from the seeds, and from the settings, that were run."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from phinets.paper.claims import Effect

Array = NDArray[np.float64]
Statistic = Callable[[Array, Array], Array]
"""From means (draws, names, settings) and how often each setting was drawn (draws, settings) to effects (draws,)."""
DRAWS = 2_000
LEVEL = 0.95


def estimated(cells: Array, statistic: Statistic, unit: str, *, settings_too: bool) -> Effect:
    """The effect in cells (names, settings, seeds), and its percentile bootstrap interval.

    A draw takes as many seeds as there are, with replacement, the same ones in every cell (so that differences stay
    paired), and the mean of what each cell has of them; with `settings_too` as many settings likewise (Owen's
    pigeonhole bootstrap). NaN is no number. A cell none of whose seeds is drawn stays at its own mean. The generator
    is always the same: so are the intervals of the same cells.

    Few seeds say little: of two or three in one setting the interval reaches from the least difference to the largest,
    since 1/27 of all draws takes one of three seeds thrice; it is on one side of 0 by chance alone once in four times.
    """
    _, settings, seeds = cells.shape
    random = np.random.default_rng(0)
    of_seeds, of_settings = _drawn(random, seeds), np.ones((DRAWS, settings))
    if settings_too:
        of_settings = _drawn(random, settings)
    size = statistic(_means(cells, np.ones((1, seeds))), np.ones((1, settings)))
    outcomes = statistic(_means(cells, of_seeds), of_settings)
    low, high = np.nanquantile(outcomes, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    fewest = int((~np.isnan(cells)).sum(axis=-1).min())
    return Effect(size=float(size[0]), low=float(low), high=float(high), seeds=fewest, unit=unit)


def _drawn(random: np.random.Generator, n: int) -> Array:
    """How often each of n is drawn, in n draws with replacement: (draws, n)."""
    return random.multinomial(n, np.full(n, 1 / n), size=DRAWS).astype(float)


def _means(cells: Array, weights: Array) -> Array:
    """The mean of each cell (draws, names, settings) when its seeds are taken so often (draws, seeds)."""
    there = ~np.isnan(cells)
    total = np.einsum("dk,nsk->dns", weights, np.where(there, cells, 0.0))
    taken = np.einsum("dk,nsk->dns", weights, there.astype(float))
    own: Array = np.nanmean(cells, axis=-1)
    return np.where(taken > 0, total / np.where(taken > 0, taken, 1.0), own)
