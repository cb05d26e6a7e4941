"""Verdicts of a scan: each condition on every architecture, and what is told of none once more."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

from gatepatch.arch import TABLE, Arch
from gatepatch.boolean import Bool, atoms
from gatepatch.gates.python_meaning import TOO_LONG, Meaning, bounded
from gatepatch.gates.python_scope import Package
from gatepatch.gates.python_values import Frame, Value
from gatepatch.scanning.python_meaning import ByName
from gatepatch.scanning.python_paths import Passed, narrowed
from gatepatch.verdict import Point, Verdict

_FIRST = (Arch(8, 0), Arch(9, 0), Arch(10, 0), Arch(12, 0))
"""Those that code tells apart most."""

_OUTSIDE = (Arch(10, 1), Arch(10, 7))
"""Architectures that code names and the table lacks."""

_OLD = Arch(6, 0)
"""One before the table, for code that names it."""

_ALIKE = 3
"""After so many architectures with one and the same unknown part the others are taken for alike."""


class _Patient(ByName):
    """An evaluator that follows further: for the few conditions that are not told otherwise."""

    deepest: ClassVar[int] = 10
    longest: int = 1_500
    cases: ClassVar[int] = 6_000
    tallest: ClassVar[int] = 80
    beyond_too: ClassVar[bool] = True
    part: ClassVar[int] = 300
    most: ClassVar[int] = 3


class _Look:
    """Evaluators for every architecture.

    Args:
        package: Where definitions are read.
        kind: What they are.
    """

    def __init__(self, package: Package, kind: type[ByName]):
        shared: dict[Hashable, Value] = {}
        untold: dict[ast.expr, int] = {}
        archs = sorted(TABLE, key=lambda arch: (arch not in _FIRST, arch))
        made = {
            arch: kind(package, {}, arch, shared=shared, untold=untold)
            for arch in (*archs, *_OUTSIDE, _OLD)
        }
        self.named = {arch: made[arch] for arch in archs}
        self.outside = [made[arch] for arch in _OUTSIDE]
        self.old = made[_OLD]

    def __iter__(self) -> Iterator[ByName]:
        return iter((*self.named.values(), *self.outside, self.old))

    def verdict(
        self, node: ast.expr, frame: Frame, *, rejects: bool, whole: bool = False
    ) -> Verdict:
        """The truth of an expression over the table.

        Args:
            node: The expression.
            frame: Where it stands.
            rejects: Whether what it guards turns the caller away.
            whole: Whether it is given up at the first architecture on which it is not told.
        """
        table: dict[Point, Bool] = {}
        for number, (arch, one) in enumerate(self.named.items()):
            one.asked = one.raised = False
            one.late = 0
            function = bounded(one, node, frame)
            table[arch] = rejects if one.raised and isinstance(function, bool) else function
            if number == 0 and not one.asked:
                break
            unknown = [a.unknown for a in atoms(function) if a.unknown]
            if (
                (whole and unknown)
                or TOO_LONG in unknown
                or (number == _ALIKE and unknown and len({*table.values()}) == 1)
            ):
                break
        return Verdict({other: table.get(other, function) for other in TABLE})

    def take_named(self) -> bool:
        """Whether something was read by its name since this was last asked."""
        found = any(one.named for one in self.named.values())
        for one in self.named.values():
            one.named = False
        return found


class ScanMeaning(Meaning):
    """Verdicts for a scan.

    Args:
        package: Where definitions are read.
    """

    def __init__(self, package: Package):
        super().__init__(package, {})
        self._quick = _Look(package, ByName)
        self._patient = _Look(package, _Patient)
        self._last = self._quick
        self._evaluators = dict(self._quick.named)
        self._by_name = False

    def verdict(self, node: ast.expr, frame: Frame, *, rejects: bool = False) -> Verdict:
        """The truth of an expression; what takes too long on one architecture does on all.

        What was worked out without asking the device is the same on all of them. An architecture
        on which it raises is left out, as it is where the guard rejects it.

        Args:
            node: The expression.
            frame: Where it stands.
            rejects: Whether what it guards turns the caller away.
        """
        self._last = self._quick
        verdict = self._quick.verdict(node, frame, rejects=rejects)
        self._by_name = self._quick.take_named()
        if verdict.unknown:
            again = self._patient.verdict(node, frame, rejects=rejects, whole=True)
            if again.unknown:
                handed = next(iter(self._patient)).handed(node, frame, again.unknown)
                if handed is not frame:
                    again = self._once_more(node, handed, rejects=rejects)
            by_name = self._patient.take_named()
            if not again.unknown:
                self._last, self._by_name = self._patient, by_name
                return again
        return verdict

    def _once_more(self, node: ast.expr, frame: Frame, *, rejects: bool) -> Verdict:
        """The truth of an expression with what its calls may give."""
        for one in self._patient:
            one.handing = True
        try:
            return self._patient.verdict(node, frame, rejects=rejects, whole=True)
        finally:
            for one in self._patient:
                one.handing = False

    def narrowed(
        self, verdict: Verdict, known: Sequence[Passed], frame: Frame, *, rejects: bool
    ) -> Verdict:
        """A verdict with what is known where its condition stands.

        Args:
            verdict: The condition's truth, as it was last told.
            known: The tests that are known there.
            frame: Where it stands.
            rejects: Whether what it guards turns the caller away.
        """
        if not known or all(isinstance(function, bool) for function in verdict.table.values()):
            return verdict
        told = [(one, self._last.verdict(one.test, frame, rejects=False)) for one in known]
        self._last.take_named()
        found = narrowed(verdict, told, rejects=rejects)
        return found if found.is_gate else verdict

    def is_for_another(self, verdict: Verdict, node: ast.expr, frame: Frame) -> bool:
        """Whether a condition that is the same over the table is not on an architecture beside it.

        Args:
            verdict: Its truth over the table, as it was last told.
            node: The condition.
            frame: Where it stands.
        """
        look = self._last
        if not next(iter(look)).asked or verdict.is_gate:
            return False
        function = verdict.table[TABLE[0]]
        outside: Sequence[ByName] = look.outside
        if any(isinstance(n, ast.Constant) and n.value in (6, 60) for n in ast.walk(node)):
            outside = [*outside, look.old]
        return any(bounded(one, node, frame) != function for one in outside)

    def read_file(self, aliases: frozenset[str]) -> None:
        """Take the names that a file binds to tests for conditions of their own."""
        for evaluator in (*self._quick, *self._patient):
            evaluator.aliases = aliases

    @property
    def by_name(self) -> bool:
        """Whether something in the last condition was read by its name."""
        return self._by_name
