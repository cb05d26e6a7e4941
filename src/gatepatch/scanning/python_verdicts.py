"""Verdicts of a scan: each condition on every architecture, and what is told of none once more."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence
from typing import ClassVar

from gatepatch.arch import TABLE, Arch
from gatepatch.boolean import Bool, atoms
from gatepatch.gates.python_meaning import TOO_LONG, Meaning, bounded
from gatepatch.gates.python_scope import Package
from gatepatch.gates.python_values import Frame, Value
from gatepatch.scanning.alike import Alike
from gatepatch.scanning.python_meaning import ByName
from gatepatch.scanning.python_paths import Passed, narrowed
from gatepatch.verdict import Point, Verdict

_FIRST = {Arch(8, 0), Arch(9, 0), Arch(10, 0), Arch(12, 0)}
"""Those that code tells apart most: where none of them is told, the others are taken for alike."""

_OUTSIDE: tuple[Arch, ...] = (Arch(10, 1), Arch(10, 7))
"""Architectures that code names and the table lacks."""

_OLD = Arch(6, 0)
"""One before the table, for code that names it."""

_EVERY = (*sorted(TABLE, key=lambda arch: (arch not in _FIRST, arch)), *_OUTSIDE, _OLD)


_ONCE_MORE = 1_000
"""How many expressions are evaluated for one architecture where calls are looked into once more."""


_TALL = 160
"""How many lines a predicate may have there."""


class _Patient(ByName):
    """An evaluator that follows further: for the few conditions that are not told otherwise."""

    deepest: ClassVar[int] = 10
    longest: int = 1_500
    cases: ClassVar[int] = 6_000
    tallest: int = 80
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
        self._alike = Alike(_EVERY)
        self._evaluators = {
            arch: kind(package, self._alike, index, shared, untold)
            for index, arch in enumerate(_EVERY)
        }
        self._told: dict[Arch, Bool] = {}

    @property
    def first(self) -> ByName:
        """The evaluator that is asked first."""
        return self._evaluators[_EVERY[0]]

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
        told: dict[Arch, Bool] = {}
        self._told = told
        function: Bool = False
        for arch in _EVERY[: len(TABLE)]:
            if arch in told:
                continue
            one = self._evaluators[arch]
            one.asked = one.raised = False
            one.late = 0
            function = self._function(arch, node, frame)
            if one.raised and isinstance(function, bool):
                function = rejects
            for other in self._alike.archs():
                told.setdefault(other, function)
            if one is self.first and not one.asked:
                break
            unknown = [a.unknown for a in atoms(function) if a.unknown]
            if (
                (whole and unknown)
                or TOO_LONG in unknown
                or (unknown and told.keys() >= _FIRST and len({*told.values()}) == 1)
            ):
                break
        return Verdict({arch: told.get(arch, function) for arch in TABLE})

    def _function(self, arch: Arch, node: ast.expr, frame: Frame) -> Bool:
        self._alike.forget()
        return bounded(self._evaluators[arch], node, frame)

    def on(self, point: Point, node: ast.expr, frame: Frame) -> Bool:
        """The truth of an expression on one architecture."""
        assert isinstance(point, Arch)
        return self._function(point, node, frame)

    def is_for(self, archs: Sequence[Arch], node: ast.expr, frame: Frame) -> bool:
        """Whether an expression that is the same over the table is not on one of some others.

        Args:
            archs: Those others.
            node: The expression, of which the verdict was told last.
            frame: Where it stands.
        """
        usual = self._told[_EVERY[0]]
        return any(
            self._function(arch, node, frame) != usual
            for arch in archs
            if self._told.get(arch, None) != usual
        )

    def take_named(self) -> bool:
        """Whether something was read by its name since this was last asked."""
        found = any(one.named for one in self._evaluators.values())
        for one in self._evaluators.values():
            one.named = False
        return found

    def hand(self, handing: bool) -> None:
        """Say whether functions are given what their calls may hand them."""
        for one in self._evaluators.values():
            one.handing = one.patiently = handing
            one.longest = _ONCE_MORE if handing else type(one).longest
            one.tallest = _TALL if handing else type(one).tallest

    def read_file(self, aliases: frozenset[str]) -> None:
        """Take the names that a file binds to tests for conditions of their own."""
        for one in self._evaluators.values():
            one.aliases = aliases


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
        self._evaluators = {}  # those of a proof
        self._by_name = False

    def verdict(
        self, node: ast.expr, frame: Frame, *, rejects: bool = False, once: bool = False
    ) -> Verdict:
        """The truth of an expression; what takes too long on one architecture does on all.

        What was worked out without asking the device is the same on all of them. An architecture
        on which it raises is left out, as it is where the guard rejects it.

        Args:
            node: The expression.
            frame: Where it stands.
            rejects: Whether what it guards turns the caller away.
            once: Whether it is not followed further where it is not told.
        """
        self._last = self._quick
        verdict = self._quick.verdict(node, frame, rejects=rejects)
        self._by_name = self._quick.take_named()
        if verdict.unknown and not once:
            again = self._patient.verdict(node, frame, rejects=rejects, whole=True)
            if again.unknown:
                handed = self._patient.first.handed(node, frame, again.unknown)
                if handed is not frame:
                    again = self._once_more(node, handed, rejects=rejects)
            by_name = self._patient.take_named()
            if not again.unknown:
                self._last, self._by_name = self._patient, by_name
                return again
        return verdict

    def further(
        self, node: ast.expr, frame: Frame, *, rejects: bool, whole: bool = True
    ) -> Verdict:
        """The truth of an expression, looked into further.

        Args:
            node: The expression.
            frame: Where it stands.
            rejects: Whether what it guards turns the caller away.
            whole: Whether it is given up at the first architecture on which it is not told.
        """
        self._last = self._patient
        verdict = self._patient.verdict(node, frame, rejects=rejects, whole=whole)
        self._by_name = self._patient.take_named()
        return verdict

    def tells(self, point: Point, node: ast.expr, frame: Frame, calls: Sequence[str]) -> bool:
        """Whether looking further tells an expression on one architecture, without what some calls give.

        Args:
            point: The architecture.
            node: The expression.
            frame: Where it stands.
            calls: How those calls begin.
        """
        parts = atoms(self._patient.on(point, node, frame))
        return not any(p.unknown or any(call in p.text for call in calls) for p in parts)

    def _once_more(self, node: ast.expr, frame: Frame, *, rejects: bool) -> Verdict:
        """The truth of an expression with what its calls may give."""
        self._patient.hand(True)
        try:
            return self._patient.verdict(node, frame, rejects=rejects, whole=True)
        finally:
            self._patient.hand(False)

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
        if not self._last.first.asked or verdict.is_gate:
            return False
        outside = _OUTSIDE
        if any(isinstance(n, ast.Constant) and n.value in (6, 60) for n in ast.walk(node)):
            outside = (*outside, _OLD)
        return self._last.is_for(outside, node, frame)

    def read_file(self, aliases: frozenset[str]) -> None:
        """Take the names that a file binds to tests for conditions of their own."""
        self._quick.read_file(aliases)
        self._patient.read_file(aliases)

    @property
    def by_name(self) -> bool:
        """Whether something in the last condition was read by its name."""
        return self._by_name
