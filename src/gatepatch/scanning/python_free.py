"""What is free beside an answer of the device: ``tokens <= LIMITS[arch]`` depends on the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gatepatch.arch import Arch
from gatepatch.gates.python_scope import hides
from gatepatch.gates.python_values import Const, Opaque, Value, of_device, reason, text_of
from gatepatch.scanning.python_givens import Givens
from gatepatch.scanning.python_words import is_other_word


def is_own(arch: Arch, value: Any) -> bool:
    """Whether a constant may be the architecture itself, or one of its parts or names.

    What stands beside it may then be another's: a record's, or a list of those that are served.
    """
    match value:
        case bool() | None:
            return False
        case int() | float():
            return value in (arch.major, arch.sm, arch.cuda_arch)
        case str():
            return not is_other_word(value)
        case (int(major), int(minor)):
            return (major, minor) == (arch.major, arch.minor)
        case tuple() | list() | frozenset() | set():
            return any(_names(arch, part) for part in value)
        case dict():
            return any(_names(arch, part) for part in value.values())
    return True


def _names(arch: Arch, part: Any) -> bool:
    return isinstance(part, str | tuple) and is_own(arch, part)


class Free(Givens):
    """An evaluator that tells a value that depends on something else from one that is not told."""

    def opaque(self, text: str, *, parts: Sequence[Value], name: str = "") -> Opaque:
        """A value that is not known, and why it may hide a test of the architecture."""
        value = super().opaque(text, parts=parts, name=name)
        if not value.unknown or any(map(reason, parts)):
            return value
        asked = [part for part in parts if of_device(part)]
        if not asked or not all(isinstance(part, Const) for part in asked):
            return value
        called = parts[0]
        beside = parts[1:] if text.startswith(f"{text_of(called)}(") else parts
        if not any(isinstance(part, Opaque) for part in beside):
            return value
        if any(isinstance(part, Const) and is_own(self.arch, part.value) for part in asked):
            return value
        self.asked = True
        return Opaque(text, hides(name, of=text) if name else "")
