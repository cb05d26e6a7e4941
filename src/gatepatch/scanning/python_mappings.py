"""Dictionaries of which the keys are known and the values are not, and caches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gatepatch.gates.python_values import Const, Held, Opaque, Value, text_of
from gatepatch.scanning import names
from gatepatch.scanning.python_tuples import rows

if TYPE_CHECKING:
    from gatepatch.scanning.python_meaning import ByName

_MADE = re.compile(r"(?:dict|tuple|list|set|frozenset|sorted|int|len|str)\(")
_CACHE = re.compile(r"(?i)\w*_caches?|\w*_compiled|\w*_memo|_?(?:cache|memo)")


def items_of(value: Value) -> Mapping[Any, Value] | None:
    """What is under the keys of a dictionary that is not known as a whole; None for another value."""
    match value:
        case Opaque(held=Held(items=items, is_mapping=True)):
            return items
    return None


def keys_of(value: Value) -> Value:
    """The keys of such a dictionary, for ``in``; any other value as it is."""
    items = items_of(value)
    return Const(tuple(items)) if items else value


def picked(
    evaluator: ByName, items: Mapping[Any, Value], key: Value, default: Value
) -> Value | None:
    """What such a dictionary gives for an architecture; None where the key is not known.

    A tuple of which the architecture is a part may be one of several keys.
    """
    if not isinstance(key, Const):
        known = rows(evaluator, key, Const(tuple(items)))
        if known is None:
            return None
        evaluator.asked = True
        if known.keys and known.free:
            return Opaque(f"{{{', '.join(map(repr, known.keys))}}}.get({text_of(key)})")
        key = Const(known.keys[0] if known.keys else None, device=True)
    elif not key.device:
        return None
    evaluator.asked = True
    if key.value in items:
        return items[key.value]
    return Const(default.value, device=True) if isinstance(default, Const) else default


def is_something(value: Value) -> bool:
    """Whether a value is a collection or a number that is made in place, and so is not None."""
    if not isinstance(value, Opaque):
        return False
    if value.held is not None and value.held.items is not None:
        return True
    made = _MADE.match(value.text)
    return made is not None and _closes(value.text, made.end())


def _closes(text: str, start: int) -> bool:
    """Whether a bracket that was opened before a place closes at the end of the text."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place == len(text) - 1
    return False


def is_cache(value: Value) -> bool:
    """Whether a value is what was made so far: that something is in it says nothing of the device."""
    return isinstance(value, Opaque) and bool(_CACHE.fullmatch(names.last_name(value.text)))
