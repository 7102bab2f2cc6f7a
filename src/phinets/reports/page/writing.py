"""How numbers, times and names are written on the page."""

import math

MINUS = "−"
SMALLEST, LARGE = 0.005, 10_000
"""Between them, numbers are written with two decimals."""


def short(value: float) -> str:
    """A number at an axis: 0.5, 20, 5k, 1.5M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return signed(f"{value / size:.4g}{letter}")
    return signed(f"{value:.4g}")


def signed(text: str) -> str:
    """With a minus sign in place of a hyphen."""
    return text.replace("-", MINUS)


def number(value: float | None) -> str:
    """A number in a table: two decimals as in the paper, none where it is large, two digits where it is tiny."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if 0 < size < SMALLEST:
        return signed(f"{value:.2g}")
    return signed(f"{value:,.{0 if size >= LARGE else 2}f}")


def duration(seconds: float) -> str:
    """A time: 0.4 s, 12 s, 3 min 20 s, 5 h 12 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def sentence(words: str) -> str:
    """With a capital at its beginning."""
    return words[:1].upper() + words[1:]


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 run, 2 runs."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
