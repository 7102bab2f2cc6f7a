"""Chance without state: every random number is a hash of (seed, index, counter).

SplitMix64 (Steele, Lea & Flood 2014): the finaliser `mix` applied to a key plus a multiple of the golden ratio.
Integer arithmetic modulo 2**64 has one right answer, so the numbers agree on every machine and in every batch.
"""

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64 bits so that neighboring inputs have unrelated outputs; a bijection."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def keys(indices: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """One key per picture, (n,); for a given seed no two indices share one, since `mix` is a bijection."""
    salt = mix(np.array([seed % 2**64], np.uint64) + GOLDEN)
    return mix(indices.astype(np.uint64) * GOLDEN + salt)


def words(key: NDArray[np.uint64], first: int, count: int) -> NDArray[np.uint64]:
    """The 64-bit words number first … first + count − 1 of each key: (n,) → (n, count)."""
    counters = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return mix(key[:, None] + counters * GOLDEN)


def uniforms(key: NDArray[np.uint64], first: int, count: int) -> NDArray[np.float32]:
    """Numbers in [0, 1), multiples of 2**-24 and so exact in float32: (n,) → (n, count)."""
    return (words(key, first, count) >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)


def choices(key: NDArray[np.uint64], counter: int, options: int) -> NDArray[np.int64]:
    """Integers 0 … options − 1, equally likely: (n,) → (n,)."""
    word = words(key, counter, 1)[:, 0]
    return (((word >> np.uint64(32)) * np.uint64(options)) >> np.uint64(32)).astype(np.int64)


def noise_bytes(key: NDArray[np.uint64], first: int, count: int) -> NDArray[np.uint8]:
    """Uniform bytes, eight from each word, low byte first whatever the machine: (n,) → (n, count)."""
    return words(key, first, -(-count // 8)).astype("<u8").view(np.uint8)[:, :count]
