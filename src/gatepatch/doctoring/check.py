"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gatepatch.errors import Problem

CheckName = Literal[
    "environment",
    "writable",
    "interrupted",
    "trial",
    "lock",
    "state",
    "distribution",
    "set",
    "import",
    "cupy",
    "devices",
    "patch-set",
    "pins",
    "jit-cache",
    "prebuilt",
    "nvcc",
    "git",
    "nvml",
    "sccache",
]

CheckOutcome = Literal["ok", "note", "problem"]
"""A note is what a person should know, though gatepatch works with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Args:
        name: What it was.
        found: What was found, in one line.
        next: What to do, a command where there is one; None if nothing is to be done.
    """

    name: CheckName
    outcome: CheckOutcome
    found: str
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What ``doctor`` found.

    Args:
        prefix: The environment that was looked at.
        python: Its interpreter; None if none runs here.
        version: Of its Python, such as ``3.12``.
        running: Whether it is the one that gatepatch runs in.
        checks: All that was looked at, in the order in which one would look.
    """

    prefix: str
    python: str | None
    version: str
    running: bool
    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether there is no problem."""
        return not any(check.outcome == "problem" for check in self.checks)

    @property
    def pending(self) -> bool:
        """Whether an interrupted change or a killed trial is to be settled."""
        return any(c.name == "interrupted" and c.outcome == "problem" for c in self.checks)


def problems(name: CheckName, found: Iterable[Problem], about: str = "") -> Iterator[Check]:
    """The problems of an error as checks.

    Args:
        name: The check.
        found: The error's problems.
        about: What they are of, to stand before them.
    """
    for each in found:
        words = [word for word in (about, each.where, each.message) if word]
        yield Check(name=name, outcome="problem", found=": ".join(words), next=each.hint)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few of some names."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
