"""Errors for the user, text that is safe to show, checks of numbers, and the look-up that every table of names uses."""

import math
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T")


class UserError(ValueError):
    """A mistake that the user can correct: the message says what is wrong and what to do."""

    exit_code = 2
    reported_by_rank_zero = False
    """Whether, in a distributed run, rank zero reports the same error, so that the others need not."""


class CommonError(UserError):
    """An error that every process of a distributed run raises."""

    reported_by_rank_zero = True


class StoppedError(BaseException):
    """The run was interrupted and can be resumed; not an Exception, so that no error handler catches it."""

    reported_by_rank_zero = True

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def require_finite(value: Any) -> None:
    """Refuse NaN and infinity in the fields of a dataclass."""
    for field in fields(value):
        number = getattr(value, field.name)
        if isinstance(number, float) and not math.isfinite(number):
            raise UserError(f"{field.name} is {number}, but must be a finite number.")


def require_at_least(value: Any, **least: float) -> None:
    """Refuse fields of a dataclass that are below a minimum; None is allowed. Of a tuple every number counts."""
    for name, smallest in least.items():
        number = getattr(value, name)
        numbers = number if isinstance(number, tuple) else (number,)
        if any(each is not None and each < smallest for each in numbers):
            raise UserError(f"{name} is {number}, but must be at least {smallest}.")


def require_in(value: Any, **intervals: str) -> None:
    """Refuse fields of a dataclass that are outside an interval such as "[0, 1)"; None is allowed."""
    for name, interval in intervals.items():
        number = getattr(value, name)
        low, high = (float(end) for end in interval[1:-1].split(","))
        is_end = (number == low and interval[0] == "[") or (number == high and interval[-1] == "]")
        if number is not None and not (low < number < high or is_end):
            raise UserError(f"{name} is {number}, but must be in {interval}.")


def look_up(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The entry called `name`, or an error that suggests the nearest one; `kind` names it there, e.g. "method"."""
    try:
        return table[name]
    except KeyError:
        raise UserError(unknown(kind, name, list(table))) from None


def unknown(kind: str, name: str, names: list[str]) -> str:
    """The error message for a name that is not among `names`."""
    close = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    few = len(names) <= 25
    shortlist = sorted(names) if few else get_close_matches(name.lower(), names, n=8, cutoff=0.0)
    return f"there is no {kind} called '{name}'.{hint} {'Known' if few else 'Nearest'}: {', '.join(shortlist)}."


_CONTROLS = [code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"]
_DIRECTIONS_AND_SURROGATES = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))
_ESCAPES = {code: f"\\x{code:02x}" for code in _CONTROLS}
_ESCAPES |= {code: f"\\u{code:04x}" for code in _DIRECTIONS_AND_SURROGATES}


def printable(text: str) -> str:
    """The text with control characters, which terminals obey and SVG forbids, written as \\x1b; tabs and lines stay."""
    return text.translate(_ESCAPES)
