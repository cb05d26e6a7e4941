"""One finding of lint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a set has and should not.

    Args:
        key: The key path in the set, such as ``targets[0].versions``.
        message: What is wrong.
        hint: What to do.
    """

    key: str
    message: str
    hint: str = ""


def several_functions(key: str, release: str, functions: Sequence[str]) -> Finding:
    """The finding of an edit without a function whose text stands in several."""
    named = ", ".join(name or "the top level" for name in functions)
    return Finding(
        key=key,
        message=f"takes in the same text in several functions of {release}: {named}",
        hint="name each that is meant in within:, in an edit of its own",
    )
