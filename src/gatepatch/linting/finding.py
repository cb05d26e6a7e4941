"""One finding of lint."""

from __future__ import annotations

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
