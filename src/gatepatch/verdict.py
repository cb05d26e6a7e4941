"""Verdicts, and the proof that an edit changes them only for the architectures named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gatepatch.arch import Arch, CudaPass
from gatepatch.boolean import Bool, atoms, to_text

if TYPE_CHECKING:
    from gatepatch.spec import Goal

Point: TypeAlias = "Arch | CudaPass"
"""Where a condition is evaluated: a device, or a pass of the CUDA compiler."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition's value as a function of the architecture and of its free atoms.

    Args:
        table: The Boolean function of the atoms at each point, over the whole table.
    """

    table: Mapping[Point, Bool]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The reasons why it cannot be known, each once; empty if it is known."""
        found = {a for function in {*self.table.values()} for a in atoms(function) if a.unknown}
        return tuple(f"{a.text}: {a.unknown}" for a in sorted(found))

    @property
    def is_gate(self) -> bool:
        """Whether the value depends on the architecture."""
        return len(set(self.table.values())) > 1

    def words(self, name: Callable[[Bool], str] = to_text) -> dict[str, str]:
        """Put the table into words: ``yes``, ``no`` or the atoms, to the points where it holds.

        The passes of one architecture stand as one where they agree: ``{"yes": "9.0 10.0"}``.

        Args:
            name: What to call a function.
        """
        by_arch: dict[str, list[Point]] = {}
        for point in self.table:
            by_arch.setdefault(str(arch_of(point) or point), []).append(point)
        words: dict[str, list[str]] = {}
        for arch, points in by_arch.items():
            agree = len({self.table[point] for point in points}) == 1
            for title, point in [(arch, points[0])] if agree else [(str(p), p) for p in points]:
                words.setdefault(name(self.table[point]), []).append(title)
        return {word: " ".join(titles) for word, titles in words.items()}


def arch_of(point: Point) -> Arch | None:
    """The architecture of a point; None in the host pass."""
    return point.arch if isinstance(point, CudaPass) else point


def _like(point: Point, like: Arch, table: Mapping[Point, Bool]) -> Point:
    if not isinstance(point, CudaPass):
        return like
    # Not every architecture has every suffix: there is no sm_90f to share a verdict with.
    same = CudaPass(like, point.suffix)
    return same if same in table else CudaPass(like)


def wanted(before: Verdict, goal: Goal, *, shut: bool = False) -> Verdict:
    """Return the verdict that the edit must produce.

    Args:
        before: The verdict of the whole condition as it stands.
        goal: What is to change.
        shut: For ``close``: the value that leaves an architecture out. True for a guard
            that rejects when it holds, as in ``if major < 9: raise``.
    """
    table: dict[Point, Bool] = {}
    for point, function in before.table.items():
        if arch_of(point) not in goal.archs:
            table[point] = function
        elif goal.action == "close":
            table[point] = shut
        else:
            assert goal.like is not None
            table[point] = before.table[_like(point, goal.like, before.table)]
    return Verdict(table)


def words_of(*verdicts: Verdict) -> tuple[dict[str, str], ...]:
    """Put verdicts on one condition into words: ``yes``, ``no`` or ``depends``.

    What depends on the rest of the condition in several ways is numbered, over all the verdicts
    alike: ``depends (2)`` before is ``depends (2)`` after. The condition itself is in the source.
    """
    functions = dict.fromkeys(function for v in verdicts for function in v.table.values())
    free = [function for function in functions if not isinstance(function, bool)]

    def name(function: Bool) -> str:
        if isinstance(function, bool):
            return to_text(function)
        return "depends" if len(free) == 1 else f"depends ({free.index(function) + 1})"

    return tuple(verdict.words(name) for verdict in verdicts)


def differences(expected: Verdict, found: Verdict) -> tuple[str, ...]:
    """Say, point by point, where a verdict is not what it must be; empty if it is proved."""
    return tuple(
        f"{point}: {_short(found.table[point])}, must be {_short(function)}"
        for point, function in expected.table.items()
        if found.table[point] != function
    )


def _short(function: Bool) -> str:
    """A function in words; a long condition by its two ends."""
    text = to_text(function)
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]} ... {text[-_LONG // 2 :]}"


_LONG = 120
