"""What ``verify`` finds wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that does not hold.

    Args:
        kind: A word for a program, such as ``not-applied``.
        where: The file, and the line inside it where there is one.
        expected: What should be there.
        found: What is there.
        command: What to do next.
    """

    kind: str
    where: str
    expected: str
    found: str
    command: str
