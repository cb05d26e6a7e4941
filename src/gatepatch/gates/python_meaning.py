"""Verdicts of Python expressions: their truth on each architecture of the table."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from gatepatch.arch import TABLE, Arch
from gatepatch.boolean import BUDGET, Bool, TooManyStepsError, atom, atoms
from gatepatch.gates.python_evaluator import Evaluator
from gatepatch.gates.python_scope import (
    Package,
)
from gatepatch.gates.python_values import (
    Callee,
    Const,
    Frame,
    Properties,
    leaves,
)
from gatepatch.verdict import Point, Verdict

TOO_LONG = "it takes too long to work out"


class Meaning:
    """Verdicts of the expressions of one package.

    Args:
        package: Where definitions are read.
        predicates: Source of a predicate, without the call, or its dotted name where it is
            defined, to the architectures where it holds.
    """

    def __init__(self, package: Package, predicates: Mapping[str, frozenset[Arch]]):
        self.package = package
        self.predicates = predicates
        self._evaluators = {arch: Evaluator(package, predicates, arch) for arch in TABLE}

    def verdict(self, node: ast.expr, frame: Frame) -> Verdict:
        """The truth of an expression over the whole table of architectures."""
        return Verdict({a: bounded(e, node, frame) for a, e in self._evaluators.items()})

    def asks(self, node: ast.expr, frame: Frame) -> bool:
        """Whether the value of an expression takes asking the device, whatever it answers."""
        evaluator = self._evaluators[TABLE[0]]
        evaluator.asked = False
        function = bounded(evaluator, node, frame)
        return evaluator.asked or any(a.unknown for a in atoms(function))

    def is_truth(self, node: ast.expr, frame: Frame) -> bool:
        """Whether an expression is a condition, and not a number or a text known to be one."""
        for evaluator in self._evaluators.values():
            try:
                found = list(leaves(evaluator.value(node, frame)))
            except (TooManyStepsError, RecursionError):
                continue
            if any(isinstance(leaf, Callee | Properties) for leaf in found):
                return False
            known = [leaf.value for leaf in found if isinstance(leaf, Const)]
            if any(not isinstance(value, bool | None) for value in known):
                return False
        return True

    def shared(
        self,
        node: ast.expr,
        window: Sequence[ast.expr],
        archs: frozenset[Arch],
        like: Arch,
        frame: Frame,
    ) -> Verdict:
        """The verdict if some operands had, on some architectures, their value on another one.

        What else the expression tests stays as it is on each architecture.

        Args:
            node: The whole expression.
            window: The operands.
            archs: The architectures that get another's values.
            like: That other architecture.
            frame: Where the expression stands.
        """
        above = self._evaluators[like]
        try:
            given = {id(part): above.value(part, frame) for part in window}
        except TooManyStepsError:
            given = {}
        table: dict[Point, Bool] = {}
        for arch in TABLE:
            evaluator = self._evaluators[arch]
            if arch in archs:
                evaluator = Evaluator(self.package, self.predicates, arch, given)
            table[arch] = bounded(evaluator, node, frame)
        return Verdict(table)


def bounded(evaluator: Evaluator, node: ast.expr, frame: Frame) -> Bool:
    """The truth of an expression, or an atom that says that it takes too long to work out."""
    evaluator.steps = evaluator.depth = 0
    evaluator.limit = None
    BUDGET.left = evaluator.cases
    try:
        return evaluator.truth_of(node, frame)
    except (TooManyStepsError, RecursionError):
        text = ast.unparse(node)
        return atom(text, unknown=TOO_LONG)
    finally:
        BUDGET.left = float("inf")
