"""What a person got wrong, and the one look-up that every table of names uses."""

import math
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T")


class UserError(ValueError):
    """A mistake that the person at the keyboard can mend: the message says what is wrong and what to do."""

    exit_code = 2
    said_by_the_first = False
    """Whether, in a team, the first process says the same: one voice is enough."""


class CommonError(UserError):
    """A mistake that every process of a team meets."""

    said_by_the_first = True


class StoppedError(BaseException):
    """Somebody asked the run to stop; it can go on later. No handler of ordinary errors may take it for one."""

    said_by_the_first = True

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def require_finite(value: Any) -> None:
    """Refuse NaN and infinity in any number of a dataclass."""
    for field in fields(value):
        number = getattr(value, field.name)
        if isinstance(number, float) and not math.isfinite(number):
            raise UserError(f"{field.name} is {number}, but must be a finite number.")


def require_at_least(value: Any, **least: float) -> None:
    """Refuse numbers of a dataclass that are smaller than they may be; what is unset is not looked at."""
    for name, smallest in least.items():
        number = getattr(value, name)
        if number is not None and number < smallest:
            raise UserError(f"{name} is {number}, but must be at least {smallest}.")


def look_up(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The entry called `name`, or an error that offers the nearest known one.

    `kind` is the word for it in the message: "method", "backbone", "recipe".
    """
    try:
        return table[name]
    except KeyError:
        raise UserError(unknown(kind, name, list(table))) from None


def unknown(kind: str, name: str, known: list[str]) -> str:
    """The sentence for a name that no table holds."""
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    few = len(known) <= 25
    listed = sorted(known) if few else get_close_matches(name.lower(), known, n=8, cutoff=0.0)
    return f"there is no {kind} called '{name}'.{hint} {'Known' if few else 'Nearest'}: {', '.join(listed)}."
