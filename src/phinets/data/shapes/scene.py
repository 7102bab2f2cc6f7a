"""Chance without state: every random number is a hash of (seed, index, counter).

SplitMix64 (Steele, Lea & Flood 2014): the finaliser `mix` applied to a key plus a multiple of the golden ratio.
Integer arithmetic modulo 2**64 has one right answer, so the numbers agree on every machine and in every batch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError

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


Numbers = NDArray[np.float32]
LUMA = (0.299, 0.587, 0.114)
"""How much each channel counts for brightness (Rec. 601)."""
STROKES = 3
LATTICE = 9
"""The ground is interpolated from LATTICE × LATTICE random colors."""
_NOISE = 1 << 20
"""Hash counters from here on belong to pixel noise, well clear of the scene's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The strengths of all nuisances; lengths in half-widths of the frame, brightness from 0 to 1."""

    across: int = 2
    """The frame has across × across cells, and each holds one object of the picture's form."""
    radius: tuple[float, float] = (0.65, 1.0)
    """Smallest and largest radius of the disc that holds an object, in half-widths of its cell."""
    contrast: tuple[float, float] = (0.25, 0.4)
    """Least and greatest difference in brightness between an object and the ground under it, before the light."""
    tint: float = 0.15
    """How far the paint of an object strays from gray."""
    texture: float = 0.25
    """Largest share of an object's paint that its stripes take away."""
    marble: float = 0.2
    """How far each color channel of the ground strays from mid-gray, blotch by blotch."""
    clutter: float = 0.08
    """Largest change of brightness by a stray stroke."""
    gain: tuple[float, float] = (0.85, 1.1)
    """Weakest and strongest light."""
    shading: float = 0.15
    """How much the light falls off from the middle to one side."""
    noise: float = 0.04
    """Half-width of the uniform noise of each pixel and channel."""

    def __post_init__(self) -> None:
        if self.across < 1:
            raise UserError(f"a world {self.across} objects across shows nothing. Set across to 1 or more.")
        if not 0 < self.radius[0] <= self.radius[1] <= 1:
            raise UserError(f"objects of radius {self.radius} do not fit their cells. Keep 0 < smallest ≤ largest ≤ 1.")


WORLD = World()


@dataclass(frozen=True, slots=True)
class Scene:
    """The random parameters of n pictures except the noise; every field is (…, n, 1, 1), to broadcast over pixels."""

    key: NDArray[np.uint64]
    label: NDArray[np.int64]
    radius: Numbers
    """Of each object, in half-widths of its cell: (cells, n, 1, 1)."""
    center: Numbers
    """x and y of each object, from −1 to 1 over its cell: (2, cells, n, 1, 1)."""
    heading: Numbers
    """cos and sin of each object's turn: (2, cells, n, 1, 1)."""
    paint: Numbers
    """What each object adds to the color of the ground: (3, cells, n, 1, 1)."""
    stripes: Numbers
    """How many along x and y of each object, where they begin, and their depth: (4, cells, n, 1, 1)."""
    strokes: Numbers
    """x, y, cos, sin, half-length, half-width and tone of each: (STROKES, 7, n, 1, 1)."""
    marble: Numbers
    """The ground's color at the knots of a lattice: (3, LATTICE, LATTICE, n, 1, 1)."""
    light: Numbers
    """Its slopes along x and y, and its strength in the middle: (3, n, 1, 1)."""

    def of(self, rows: slice) -> Scene:
        """The same for some of the pictures."""
        return Scene(*(getattr(self, field.name)[..., rows, :, :] for field in fields(self)))

    def noise(self, count: int) -> NDArray[np.uint8]:
        """`count` uniform bytes per picture for its pixel noise, low byte of a word first: (n, count)."""
        return words(self.key[:, 0, 0], _NOISE, -(-count // 8)).astype("<u8").view(np.uint8)[:, :count]


class HashRandom:
    """Random numbers for n pictures; calls in the same order give the same numbers."""

    def __init__(self, key: NDArray[np.uint64]) -> None:
        self.key = key
        self.counter = 0

    def __call__(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Numbers:
        """Uniform numbers from `low` to `high`, multiples of 2**-24 of the range: (*shape, n, 1, 1)."""
        count = int(np.prod(shape, dtype=np.int64))
        bits = words(self.key, self.counter, count) >> np.uint64(40)
        numbers = bits.astype(np.float32) * np.float32(2**-24)
        self.counter += count
        return low + (high - low) * numbers.T.reshape(*shape, -1, 1, 1)

    def choice(self, options: int) -> NDArray[np.int64]:
        """One of 0 … options − 1, equally likely: (n, 1, 1)."""
        word = words(self.key, self.counter, 1)[:, :, None]
        self.counter += 1
        return (((word >> np.uint64(32)) * np.uint64(options)) >> np.uint64(32)).astype(np.int64)


def draw_labels(indices: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The class of each picture, uniform over the ten: (n,)."""
    return HashRandom(keys(indices, seed)).choice(10)[:, 0, 0]


def draw_scenes(indices: NDArray[np.int64], seed: int, world: World) -> Scene:
    """The random scene of each picture. The order of the draws determines the picture: add new ones last."""
    key = keys(indices, seed)
    random = HashRandom(key)
    label, cells = random.choice(10), world.across**2
    radius = random(cells, low=world.radius[0], high=world.radius[1])
    return Scene(
        key=key[:, None, None],
        label=label,
        radius=radius,
        center=random(2, cells, low=-1.0) * (1.0 - radius),
        heading=direction(random(cells)),
        paint=_paint(random, cells, world),
        strokes=np.stack([_stroke(random, world.clutter) for _ in range(STROKES)]),
        marble=random(3, LATTICE, LATTICE, low=0.5 - world.marble, high=0.5 + world.marble),
        light=_light(random, world),
        stripes=_stripes(random, cells, world.texture),
    )


def direction(turn: Numbers) -> Numbers:
    """The unit vector (cos, sin) of very nearly `turn` (0 to 1) of the full circle: (…) → (2, …).

    cos = (1 − t²)/(1 + t²), sin = 2t/(1 + t²) with |t| ≤ tan 22.5° covers a quarter; whole quarters swap the axes.
    """
    quarter = np.floor(turn * 4.0)
    t = (turn * 4.0 - quarter - 0.5) * 0.82842712
    cos, sin = (1.0 - t * t) / (1.0 + t * t), (t + t) / (1.0 + t * t)
    odd = (quarter == 1.0) | (quarter == 3.0)
    vector = np.stack([np.where(odd, -sin, cos), np.where(odd, cos, sin)])
    return np.where(quarter >= 2.0, -vector, vector)


def _paint(random: HashRandom, cells: int, world: World) -> Numbers:
    """What each object adds to the ground: (3, cells, n, 1, 1).

    Lighter or darker by at least the least contrast, so the outline shows everywhere. Chroma is free of brightness,
    so color cannot hide the object.
    """
    tone, lighter = random(cells, low=world.contrast[0], high=world.contrast[1]), random(cells) < 0.5
    rgb = random(3, cells, low=-world.tint, high=world.tint)
    gray: Numbers = rgb[0] * LUMA[0] + rgb[1] * LUMA[1] + rgb[2] * LUMA[2]
    brighter: Numbers = np.where(lighter, tone, -tone)
    return rgb + (brighter - gray)


def _stripes(random: HashRandom, cells: int, texture: float) -> Numbers:
    """One to two and a half stripes a half-width in any direction: (4, cells, n, 1, 1)."""
    along = direction(random(cells)) * random(cells, low=1.0, high=2.5)
    return np.concatenate([along, np.stack([random(cells), random(cells, high=texture)])])


def _stroke(random: HashRandom, clutter: float) -> Numbers:
    """A short stroke somewhere, a little lighter or darker: (7, n, 1, 1)."""
    center, heading = random(2, low=-1.0), direction(random())
    shape = np.stack([random(low=0.05, high=0.3), random(low=0.03, high=0.08), random(low=-clutter, high=clutter)])
    return np.concatenate([center, heading, shape])


def _light(random: HashRandom, world: World) -> Numbers:
    """A gain that falls off along a random direction: (3, n, 1, 1)."""
    gain, falls = random(low=world.gain[0], high=world.gain[1]), direction(random()) * random(high=world.shading)
    return np.stack([gain * falls[0], gain * falls[1], gain])
