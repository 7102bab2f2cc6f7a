"""Conversion between frozen dataclasses and the plain dicts of config files, without loss."""

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from phinets.config.errors import UserError, unknown

T = TypeVar("T")
SCALARS = (bool, int, float, str)


def to_plain(value: Any) -> Any:
    """A dataclass as nested dicts, lists and scalars, in the order of its fields."""
    if value is None or isinstance(value, SCALARS):  # the most frequent case first, for grids of thousands of runs
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return {key: to_plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def differences(one: Any, other: Any, where: str = "") -> dict[str, tuple[Any, Any]]:
    """The differences of two plain values: dotted key → (one, other); None for a missing key."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return {} if one == other else {where: (one, other)}
    result: dict[str, tuple[Any, Any]] = {}
    for key in dict.fromkeys((*one, *other)):
        result |= differences(one.get(key), other.get(key), f"{where}.{key}".lstrip("."))
    return result


def flat(plain: Any, where: str = "") -> dict[str, Any]:
    """The same without nested dicts: dotted key → value."""
    if not isinstance(plain, Mapping):
        return {where: plain}
    return {k: v for key, item in plain.items() for k, v in flat(item, f"{where}.{key}".lstrip(".")).items()}


def without(plain: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The same without some keys; a dotted key is one of a section."""
    left = dict(plain)
    for key in keys:
        section, _, name = key.partition(".")
        if not name:
            left.pop(section, None)
        elif section in left:
            left[section] = without(left[section], [name])
    return left


def from_plain(cls: type[T], data: Any, where: str = "") -> T:
    """The dataclass that `data` describes; missing keys have their defaults, unknown ones are refused."""
    place = f"in '{where}'" if where else "at the top"
    if not isinstance(data, Mapping):
        raise UserError(f"{place} of the config there should be keys and values, not {data!r}.")
    hints = get_type_hints(cls)
    every = fields(cls)  # type: ignore[arg-type]  # T is a dataclass, which the stubs can't say
    names = [f.name for f in every]
    for key in data:
        if key not in names:
            raise UserError(unknown(f"key {place} of the config", str(key), names))
    required = (f.name for f in every if f.default is MISSING and f.default_factory is MISSING)
    missing = [name for name in required if name not in data]
    if missing:
        raise UserError(f"{place} of the config these keys are missing: {', '.join(missing)}.")
    values = {key: _value(hints[key], item, f"{where}.{key}".lstrip(".")) for key, item in data.items()}
    return cls(**values)


def _value(hint: Any, item: Any, where: str) -> Any:
    origin = get_origin(hint)
    if is_dataclass(hint):
        return from_plain(hint, item, where)  # type: ignore[arg-type]
    if origin in (Union, types.UnionType):
        inner = [a for a in get_args(hint) if a is not type(None)]
        return None if item is None else _value(inner[0], item, where)
    if origin is Literal:
        if item not in get_args(hint):
            raise UserError(
                f"'{where}' is {item!r} in the config. It must be one of {', '.join(map(str, get_args(hint)))}."
            )
        return item
    if origin is tuple:
        return _tuple(get_args(hint), item, where)
    if origin is dict and isinstance(item, Mapping):
        return {key: _value(get_args(hint)[1], entry, f"{where}.{key}") for key, entry in item.items()}
    return _scalar(hint, item, where)


def _tuple(args: tuple[Any, ...], item: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(item, list | tuple):
        raise UserError(f"'{where}' is {item!r} in the config. It must be a list, e.g. [2048, 2048].")
    hints = [args[0]] * len(item) if args[-1] is Ellipsis else list(args)
    if len(hints) != len(item):
        raise UserError(f"'{where}' is {item!r} in the config. It must be a list of {len(hints)}.")
    return tuple(_value(h, i, f"{where}[{n}]") for n, (h, i) in enumerate(zip(hints, item, strict=True)))


def _scalar(hint: type, item: Any, where: str) -> Any:
    if hint is float and not isinstance(item, bool):
        try:  # YAML reads 1e-4 as text
            return float(item)
        except (TypeError, ValueError, OverflowError):
            pass
    if hint is int and isinstance(item, float) and item.is_integer():
        return int(item)
    is_huge = isinstance(item, int) and not -(2**63) <= item < 2**63
    if isinstance(item, hint) and not (hint is int and (isinstance(item, bool) or is_huge)):
        return item
    names = {int: "a whole number below 2^63", float: "a number", str: "text", bool: "true or false"}
    raise UserError(f"'{where}' is {item!r} in the config. It must be {names.get(hint, hint.__name__)}.")
