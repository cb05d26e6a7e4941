"""Work out from the gates that were changed what a set is to bring about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gatepatch.arch import TABLE, Arch
from gatepatch.authoring.units import Judged
from gatepatch.errors import Problem, RefusedError
from gatepatch.spec import Goal
from gatepatch.verdict import Verdict, arch_of, differences, wanted

_NEWEST = TABLE[-1]  # does not exist yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the author said of the goal.

    Args:
        admit: The architectures to admit; empty to work them out.
        exclude: The architectures to shut out; empty unless gates are to be closed.
        like: The architecture that the admitted ones are to be like.
    """

    admit: frozenset[Arch] = frozenset()
    exclude: frozenset[Arch] = frozenset()
    like: Arch | None = None


def infer_goal(gates: Sequence[Judged], given: Given) -> Goal:
    """The goal of a set.

    Args:
        gates: Every gate that was changed.
        given: What the author said; the rest follows from the gates.

    Raises:
        RefusedError: It cannot be worked out.
    """
    if given.exclude:
        return Goal(action="close", archs=given.exclude)
    if given.admit and given.like:
        return Goal(action="open", archs=given.admit, like=given.like)
    opened = [gate for gate in gates if not _closes(gate) and _likes(gate, _changed(gate))]
    closed = [gate for gate in gates if _changed(gate) and _closes(gate)]
    if closed and not opened and not given.admit:
        return Goal(action="close", archs=_union(map(_changed, closed)))
    archs = given.admit or _union(map(_changed, opened))
    likes = [found for gate in gates if (found := _likes(gate, archs))]
    shared = frozenset.intersection(*likes) if likes else frozenset()
    like = given.like or _nearest(shared, archs)
    if not archs or like is None:
        raise RefusedError(
            Problem(
                message="the gates that were changed do not tell "
                + ("which architecture the admitted ones are like" if archs else "for whom"),
                hint="say it: --admit sm_120 --like sm_100, or --exclude sm_120",
            )
        )
    return Goal(action="open", archs=archs, like=like)


def _union(sets: Iterable[frozenset[Arch]]) -> frozenset[Arch]:
    return frozenset().union(*sets)


def _changed(gate: Judged) -> frozenset[Arch]:
    """The architectures whose verdict changed, but for one that does not exist yet."""
    if gate.before.unknown or gate.after.unknown:
        return frozenset()
    return _differing(gate.before, gate.after) - {_NEWEST}


def _differing(before: Verdict, after: Verdict) -> frozenset[Arch]:
    points = [point for point in before.table if before.table[point] != after.table[point]]
    archs = frozenset(arch for point in points if (arch := arch_of(point)) is not None)
    # A change of the host's pass is none of an architecture.
    return archs if all(arch_of(point) is not None for point in points) else frozenset()


def _closes(gate: Judged) -> bool:
    """Whether the change leaves architectures out, and admits none."""
    changed = [p for p in gate.before.table if gate.before.table[p] != gate.after.table[p]]
    return bool(changed) and all(gate.after.table[point] is gate.shut for point in changed)


def _likes(gate: Judged, archs: frozenset[Arch]) -> frozenset[Arch]:
    """The architectures whose former verdicts the changed ones have now; none if none changed."""
    if not _changed(gate):
        return frozenset()
    others = [arch for arch in TABLE if arch not in archs and arch != _NEWEST]
    return frozenset(
        like
        for like in others
        if not differences(
            wanted(gate.before, Goal(action="open", archs=archs, like=like)), gate.after
        )
    )


def _nearest(likes: frozenset[Arch], archs: frozenset[Arch]) -> Arch | None:
    """The first member of the nearest family, the older ones first."""
    if not likes or not archs:
        return None
    first = min(archs)
    older = [arch for arch in likes if arch < first]
    if older:
        family = max(arch.major for arch in older)
        return min(arch for arch in older if arch.major == family)
    return min(likes)
