"""From contrasts by seed to an effect with its interval and p-values.

A claim is tested on contrasts: numbers, one per seed, that are above 0 where the claim is true. Contrasts come in
groups, and the claim is true if in one group all of them are. Each contrast has a one-sample t-test over the seeds,
which are paired because every contrast compares runs of the same seed. scipy is
imported where it is used: `--help` reads claims.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEVEL = 0.05
"""Share of false verdicts that is allowed, for both directions together."""
MIN_SEEDS = 4
"""With fewer seeds there is no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The size of what a claim is about, with its uncertainty."""

    size: float
    """Of the contrast that decides, in the unit of the table."""
    low: float
    high: float
    """95 % t-interval of that contrast; both are `size` with a single seed."""
    seeds: int
    """Seeds that have a number in every cell of the claim."""
    supports: bool
    """Whether the means alone agree with the claim."""
    p_holds: float = 1.0
    """One-sided p-value of the claim's denial: small where the claim holds."""
    p_fails: float = 1.0
    """One-sided p-value of the claim: small where it does not hold."""
    unit: str = "points"

    @property
    def p(self) -> float:
        """Two-sided: small where a verdict is possible."""
        return min(1.0, 2 * min(self.p_holds, self.p_fails))


def t_effect(contrasts: Array, unit: str = "points", margin: float = 0.0) -> Effect:
    """The effect in contrasts (groups, contrasts, seeds), each tested against `margin`.

    The claim holds if every contrast of one group is above the margin (an intersection–union test: the largest p-value
    of the group), with a Bonferroni factor for the choice of the group. It fails if every group has a contrast below
    the margin, whose p-value carries Holm's factor for the number of contrasts.
    """
    groups, count, seeds = contrasts.shape
    means = contrasts.mean(axis=2)
    above = _p_above(contrasts - margin)
    below = _p_above(margin - contrasts)
    group = int(means.min(axis=1).argmax())
    deciding = contrasts[group, int(means[group].argmin())]
    low, high = t_interval(deciding)
    return Effect(
        size=float(deciding.mean()),
        low=low,
        high=high,
        seeds=seeds,
        supports=bool((means > margin).all(axis=1).any()),
        p_holds=min(1.0, groups * float(above.max(axis=1).min())),
        p_fails=min(1.0, float((count * below.min(axis=1)).max())),
        unit=unit,
    )


def t_interval(values: Array) -> tuple[float, float]:
    """The 95 % t-interval of the mean of some seeds; the mean itself where there is one seed."""
    from scipy import stats

    mean, n = float(values.mean()), len(values)
    if n < 2:
        return mean, mean
    reach = float(stats.t.isf(LEVEL / 2, n - 1)) * float(values.std(ddof=1)) / np.sqrt(n)
    return mean - reach, mean + reach


def _p_above(contrasts: Array) -> Array:
    """One-sided p-values of `mean ≤ 0` by a t-test over the last axis; 1 with a single seed or where all are 0."""
    from scipy import stats

    n = contrasts.shape[-1]
    if n < 2:
        return np.ones(contrasts.shape[:-1])
    means, errors = contrasts.mean(axis=-1), contrasts.std(axis=-1, ddof=1) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(errors > 0, means / errors, np.sign(means) * np.inf)
    return np.where(np.isnan(t), 1.0, stats.t.sf(t, n - 1))


def binomial_effect(hits: int, runs: int, seeds: int, unit: str) -> Effect:
    """Whether more than half of some runs are hits: an exact binomial test, with its Clopper–Pearson interval."""
    from scipy import stats

    test = stats.binomtest(hits, runs)
    interval = test.proportion_ci(1 - LEVEL)
    return Effect(
        size=hits / runs - 0.5,
        low=float(interval.low) - 0.5,
        high=float(interval.high) - 0.5,
        seeds=seeds,
        supports=2 * hits > runs,
        p_holds=float(stats.binomtest(hits, runs, alternative="greater").pvalue),
        p_fails=float(stats.binomtest(hits, runs, alternative="less").pvalue),
        unit=unit,
    )


def holm(p_values: Mapping[str, float]) -> set[str]:
    """The names whose hypothesis Holm's procedure rejects at `LEVEL`."""
    rejected: set[str] = set()
    for name in sorted(p_values, key=lambda name: p_values[name]):
        if p_values[name] > LEVEL / (len(p_values) - len(rejected)):
            break
        rejected.add(name)
    return rejected


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The rank correlation of two sequences; 0 where one of them is constant."""
    from scipy import stats

    if len(set(one)) < 2 or len(set(other)) < 2:
        return 0.0
    return float(stats.spearmanr(one, other).statistic)
