"""What a scanner of one language hands over, and its verdict by architecture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gatepatch.arch import CUDA_PASSES, TABLE, Arch
from gatepatch.boolean import (
    BUDGET,
    Bool,
    TooManyStepsError,
    atoms,
    if_then_else,
    not_,
    or_,
    to_text,
)
from gatepatch.scanning.records import Answer, Guards, Kind, Language
from gatepatch.verdict import Point, Verdict, arch_of

ANSWERS: tuple[Answer, ...] = ("admits", "shuts", "depends", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A gate in a file; the fields are those of ``Finding``.

    Args:
        verdict: The condition's value; None where it is not known at all.
    """

    line: int
    end_line: int
    within: str
    language: Language
    kind: Kind
    text: str
    rejects: bool
    verdict: Verdict
    guards: Guards
    compiled: str = ""
    by_name: bool = False
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """When a gate admits each architecture of the table.

    Args:
        answers: In the table's order.
        words: When it admits, to the architectures for which that is so.
        classes: A letter for each architecture; the same one where the condition is the same.
        narrower: Pairs of letters: the first admits in fewer cases than the second.
    """

    answers: tuple[Answer, ...]
    words: dict[str, str]
    classes: str
    narrower: tuple[str, ...]

    def leaves_out(self, sm: Arch, like: Sequence[Arch]) -> bool:
        """Whether one architecture is admitted in fewer cases than one of some others."""
        return leaves_out(self.classes, self.narrower, sm, like)


_LONG = 300
_PARTS = 10
_STEPS = 20_000

_EVERY: tuple[tuple[Point, ...], ...] = (TABLE, CUDA_PASSES)
"""Where conditions are evaluated: a language's points, by their number, which is soon hashed."""

_INDEX = {arch: index for index, arch in enumerate(TABLE)}


def leaves_out(classes: str, narrower: Sequence[str], sm: Arch, like: Sequence[Arch]) -> bool:
    """Whether one architecture is admitted in fewer cases than one of some others."""
    if not narrower:
        return False
    mine = classes[_INDEX[sm]]
    return any(mine + classes[_INDEX[other]] in narrower for other in like)


def admission(verdict: Verdict, *, rejects: bool) -> Admission:
    """Say when a condition admits each architecture; CUDA's where any device pass does."""
    every = _EVERY.index(tuple(verdict.table))
    return _admission(every, tuple(verdict.table.values()), rejects)


@lru_cache(maxsize=1024)
def _admission(every: int, values: tuple[Bool, ...], rejects: bool) -> Admission:
    functions: dict[Arch, Bool] = {}
    for point, function in zip(_EVERY[every], values, strict=True):
        arch = arch_of(point)
        if arch is not None:
            value = not_(function) if rejects else function
            functions[arch] = or_(functions.get(arch, False), value)
    letters: dict[Bool, str] = {}
    for function in functions.values():
        # In Python 1 == True, and a function is no number: keys are told apart as they are.
        letters.setdefault(function, chr(ord("a") + len(letters)))
    by_word: dict[str, list[str]] = {}
    for arch, function in functions.items():
        by_word.setdefault(_words(function), []).append(str(arch))
    return Admission(
        answers=tuple(map(_answer, functions.values())),
        words={word: " ".join(names) for word, names in by_word.items()},
        classes="".join(letters[function] for function in functions.values()),
        narrower=tuple(
            letters[one] + letters[other]
            for one in letters
            for other in letters
            if one is not other and _implies(one, other)
        ),
    )


def _answer(function: Bool) -> Answer:
    if isinstance(function, bool):
        return "admits" if function else "shuts"
    return "unknown" if any(a.unknown for a in atoms(function)) else "depends"


def _words(function: Bool) -> str:
    """When a condition holds; what it hangs on where that would be long."""
    parts = sorted(a.text for a in atoms(function))
    if len(parts) > _PARTS:
        return f"by {len(parts)} parts: {', '.join(parts)}"[:_LONG]
    return to_text(function)[:_LONG]


def _implies(one: Bool, other: Bool) -> bool:
    BUDGET.left = _STEPS
    try:
        return if_then_else(one, other, True) is True
    except TooManyStepsError:
        return False
    finally:
        BUDGET.left = float("inf")
