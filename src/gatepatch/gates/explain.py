"""Say why an edit is refused, in the terms of whoever wrote it."""

from __future__ import annotations

from collections.abc import Sequence

from gatepatch.arch import TABLE
from gatepatch.spec import Goal
from gatepatch.verdict import Point, Verdict, arch_of


def why(
    goal: Goal,
    before: Verdict,
    after: Verdict,
    wrong: Sequence[str],
    unknown: Sequence[str],
) -> str:
    """The reason for a refusal, the recognised one first.

    Args:
        goal: What the edit was to bring about.
        before: The verdict as it stands.
        after: The verdict that the edit would give.
        wrong: Where that is not what it must be.
        unknown: What is not known.
    """
    if unknown and not wrong:
        return "not known: " + "; ".join(unknown)
    changed = [point for point in before.table if before.table[point] != after.table[point]]
    others = sorted({a for p in changed if (a := arch_of(p)) is not None and a not in goal.archs})
    majors = {arch.major for arch in goal.archs}
    reason = ""
    if others and all(arch.major in majors for arch in others) and _by_family(after):
        names = ", ".join(map(str, others))
        reason = f"the gate sees majors only, so it admits {names} too: name the whole family"
    elif others:
        verb = "admit" if goal.action == "open" else "shut out"
        names = ", ".join(map(str, others))
        newest = " (an architecture that does not exist yet)" if TABLE[-1] in others else ""
        reason = f"it would {verb} or change {names} too{newest}"
    elif wrong:
        left = sorted({str(a) for p in _named(goal, before) if (a := arch_of(p)) is not None})
        reason = f"{', '.join(left)} would not get the verdict of {goal.like}" if goal.like else ""
    details = "; ".join(wrong[:3]) + (f"; and {len(wrong) - 3} more" if len(wrong) > 3 else "")
    return f"{reason} ({details})" if reason else details


def _named(goal: Goal, verdict: Verdict) -> list[Point]:
    return [point for point in verdict.table if arch_of(point) in goal.archs]


def _by_family(verdict: Verdict) -> bool:
    """Whether the members of each family always have the same verdict."""
    families: dict[int, set[object]] = {}
    for point, function in verdict.table.items():
        arch = arch_of(point)
        if arch is not None:
            families.setdefault(arch.major, set()).add(function)
    return all(len(functions) == 1 for functions in families.values())
