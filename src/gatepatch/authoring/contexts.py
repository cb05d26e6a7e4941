"""The packages around edited files, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatepatch.arch import Arch
from gatepatch.authoring.edited import Edited
from gatepatch.errors import TargetError
from gatepatch.gates.result import Context
from gatepatch.spec import Goal
from gatepatch.target import Target

_NO_GOAL = Goal(action="close", archs=frozenset())


class Contexts:
    """What the engines are given of the packages.

    Args:
        edited: Every file that was edited.
        predicates: Dotted name to the architectures for which that predicate holds.
    """

    def __init__(self, edited: Iterable[Edited], predicates: Mapping[str, frozenset[Arch]]):
        self.predicates = predicates
        self.edited = {(item.target.distribution, item.path): item for item in edited}
        self.planned_paths: set[tuple[str, str]] = set()

    def all(self, item: Edited) -> Context:
        """With every edited file as it is after."""
        return self._context(item, _NO_GOAL, set(self.edited))

    def planned(self, item: Edited, goal: Goal) -> Context:
        """With those that are planned so far, as the planner has them."""
        return self._context(item, goal, self.planned_paths)

    def done(self, item: Edited) -> None:
        """Count a file as planned."""
        self.planned_paths.add((item.target.distribution, item.path))

    def _context(self, item: Edited, goal: Goal, changed: set[tuple[str, str]]) -> Context:
        target = item.target

        def read(path: str) -> bytes | None:
            known = self.edited.get((target.distribution, path))
            return known.before if known else _installed(target, path)

        def read_after(path: str) -> bytes | None:
            key = (target.distribution, path)
            return self.edited[key].after if key in changed else read(path)

        return Context(
            path=item.path,
            goal=goal,
            read=read,
            read_after=read_after,
            predicates=self.predicates,
        )


def _installed(target: Target, path: str) -> bytes | None:
    try:
        return target.locate(path).read_bytes()
    except (OSError, TargetError):
        return None
