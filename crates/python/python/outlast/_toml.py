"""From Python's values to TOML, the language of scenario files. Order is kept: it numbers cells."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from numbers import Integral, Real
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def dumps(tables: Mapping[str, Any]) -> str:
    """The text of a TOML file with these tables. Keys whose value is None are left out."""
    lines: list[str] = []
    _table((), tables, lines)
    return "\n".join(lines).strip() + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any], lines: list[str]) -> None:
    inner: list[tuple[str, Any]] = []
    for key, value in table.items():
        if not isinstance(key, str):
            raise TypeError(f"keys of a scenario are text, not {key!r}")
        if value is None:
            continue
        # In `[sweep]` whoever has a dot in it is a key of the scenario, with a range or a distribution.
        if _is_tables(value) or (isinstance(value, Mapping) and "." not in key):
            inner.append((key, value))
        else:
            lines.append(f"{_key(key)} = {_value(key, value)}")
    for key, value in inner:
        name = (*path, key)
        header = ".".join(map(_key, name))
        for each in [value] if isinstance(value, Mapping) else value:
            brackets = f"[{header}]" if isinstance(value, Mapping) else f"[[{header}]]"
            lines.extend(["", brackets])
            _table(name, each, lines)


def _is_tables(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(isinstance(each, Mapping) for each in value)
    )


def _key(key: str) -> str:
    return key if _BARE.match(key) else _text(key)


def _value(key: str, value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, os.PathLike):
        return _text(os.fsdecode(value))
    if isinstance(value, timedelta):
        return _text(_duration(value))
    # Numbers of NumPy's are no subclasses of Python's own.
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return _number(key, float(value))
    if isinstance(value, Mapping):
        pairs = (f"{_key(inner)} = {_value(inner, each)}" for inner, each in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return "[" + ", ".join(_value(key, each) for each in value) + "]"
    raise TypeError(
        f"`{key}` is {value!r}, of type {type(value).__name__}; "
        "write a text such as '25 ms', a number, a timedelta, True or False, or a list of these"
    )


def _number(key: str, number: float) -> str:
    if not math.isfinite(number):
        raise ValueError(f"`{key}` is {number}, and no key takes that")
    return repr(number)


def _duration(duration: timedelta) -> str:
    microseconds = duration // timedelta(microseconds=1)
    for size, unit in ((1_000_000, "s"), (1_000, "ms")):
        if microseconds % size == 0:
            return f"{microseconds // size} {unit}"
    return f"{microseconds} us"


def _text(text: str) -> str:
    def escaped(sign: str) -> str:
        if sign in _ESCAPES:
            return _ESCAPES[sign]
        return f"\\u{ord(sign):04X}" if ord(sign) < 32 or ord(sign) == 127 else sign

    return '"' + "".join(map(escaped, text)) + '"'
