"""What the proofs of one Python file's edits are made with: the package before and after."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gatepatch.arch import Arch
from gatepatch.edits import ByteEdit, line_of, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.python_meaning import Meaning
from gatepatch.gates.python_scope import (
    Binding,
    FunctionNode,
    Module,
    Package,
    local_bindings,
)
from gatepatch.gates.python_source import Expression, Source, same_but
from gatepatch.gates.python_values import Frame
from gatepatch.gates.result import Change, Context
from gatepatch.spec import Edit
from gatepatch.verdict import Verdict


class State:
    """One state of the package, and the file in it."""

    def __init__(
        self,
        path: str,
        tree: ast.Module,
        read: Callable[[str], bytes | None],
        predicates: Mapping[str, frozenset[Arch]],
        meaning: Meaning | None = None,
        source: bytes | None = None,
    ):
        self.meaning = meaning or Meaning(Package(read), predicates)
        self.package = self.meaning.package
        self.module: Module = self.package.put(path, tree, source)
        self._locals: dict[FunctionNode, dict[str, tuple[Binding, ...]]] = {}

    def _local(self, function: FunctionNode) -> Mapping[str, tuple[Binding, ...]]:
        if function not in self._locals:
            found = local_bindings(self.module, function)
            self._locals[function] = {name: tuple(bound) for name, bound in found.items()}
        return self._locals[function]

    def frame(self, functions: Sequence[FunctionNode], bound: Iterable[str] = ()) -> Frame:
        """Where an expression in some functions, lambdas and comprehensions stands."""
        bindings: dict[str, tuple[Binding, ...]] = {}
        for function in functions:
            bindings.update(self._local(function))
        return Frame(self.module, {}, bindings, frozenset(bound))


def _functions(tree: ast.AST) -> dict[str, list[FunctionNode]]:
    """All functions by their names, in order."""
    found: dict[str, list[FunctionNode]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(node.name, []).append(node)
    return {name: sorted(nodes, key=lambda n: n.lineno) for name, nodes in found.items()}


class Prover:
    """Verdicts in one file, as it stands and as it will.

    Args:
        source: The file.
        context: Where it stands.
    """

    def __init__(self, source: Source, context: Context):
        self.source = source
        self.context = context
        self.before = State(context.path, source.tree, context.read, context.predicates)
        self.after = self.before
        self._edits: dict[ast.expr, set[ByteEdit]] = {}
        self._moved: dict[FunctionNode, FunctionNode] = {}

    def read_after(self, data: bytes) -> None:
        """Read the package with what the gate edits need: the file, and the others as planned."""
        context = self.context
        tree = self.source.tree
        if data == self.source.data and context.read_after is context.read:
            return
        if data != self.source.data:
            tree = self._parsed(data)
            before, after = _functions(self.source.tree), _functions(tree)
            for name, nodes in before.items():
                if len(nodes) == len(after.get(name, ())):
                    self._moved.update(zip(nodes, after[name], strict=True))
        self.after = State(context.path, tree, context.read_after, context.predicates)

    def _parsed(self, data: bytes) -> ast.Module:
        try:
            return ast.parse(data)
        except SyntaxError as error:
            raise RefusedError(
                Problem(
                    message=f"would not parse any more: {error.msg}",
                    where=f"{self.context.path}:{error.lineno}",
                )
            ) from None

    def verdict(self, top: Expression) -> Verdict:
        """The verdict of an expression as it stands."""
        return self.before.meaning.verdict(top.node, self.before.frame(top.functions, top.bound))

    def asks(self, top: Expression) -> bool:
        """Whether an expression asks the device at all."""
        return self.before.meaning.asks(top.node, self.before.frame(top.functions, top.bound))

    def is_truth(self, top: Expression) -> bool:
        """Whether an expression is a condition, and not a number or a text known to be one."""
        frame = self.before.frame(top.functions, top.bound)
        return self.before.meaning.is_truth(top.node, frame)

    def verdict_after(self, top: Expression, edits: Sequence[ByteEdit]) -> Verdict | None:
        """Its verdict after some edits; None if it would not parse."""
        node = self._edited(top.node, edits)
        if node is None:
            return None
        return self.after.meaning.verdict(node, self.frame_after(top.functions, top.bound))

    def frame_after(self, functions: Sequence[FunctionNode], bound: Iterable[str] = ()) -> Frame:
        """Where an expression in some functions of the file will stand."""
        moved = [self._moved.get(function, function) for function in functions]
        return self.after.frame(moved, bound)

    def _edited(self, node: ast.expr, edits: Iterable[ByteEdit]) -> ast.expr | None:
        start, end = self.source.span(node)
        inside = [replace(edit, offset=edit.offset - start) for edit in edits]
        text = splice(self.source.data[start:end], inside).decode()
        try:
            return ast.parse(f"({text}\n)", mode="eval").body
        except SyntaxError:
            return None

    def check_structure(self, edits: Iterable[ByteEdit]) -> None:
        """The file reads as the proofs took it: nothing outside the gates binds differently.

        Raises:
            RefusedError: It does not.
        """
        every = sorted(set(edits))
        if not every:
            return
        changed: dict[ast.AST, ast.expr] = {}
        for node, own in self._edits.items():
            result = self._edited(node, own)
            changed[node] = node if result is None else result
        after = self._parsed(splice(self.source.data, every))
        if not same_but(self.source.tree, after, changed):
            raise RefusedError(
                Problem(
                    message="the edit would bind to something else than it was proved for",
                    where=self.context.path,
                    hint="put the operand in parentheses with replace, or name a longer condition",
                )
            )

    def where(self, edit: Edit, start: int) -> str:
        """A place in the file, for messages."""
        return f"{self.context.path}:{line_of(self.source.data, start)} ({edit.where})"

    def change(
        self,
        edit: Edit,
        node: ast.expr,
        within: str,
        edits: tuple[ByteEdit, ...],
        *,
        before: Verdict | None,
        after: Verdict | None,
        unproved: str = "",
    ) -> Change:
        """The record of one place that an edit matched."""
        self._edits.setdefault(node, set()).update(edits)
        start, end = self.source.span(node)
        text = self.source.data[start:end]
        shifted = [replace(e, offset=e.offset - start) for e in edits]
        return Change(
            where=edit.where,
            line=line_of(self.source.data, start),
            end_line=line_of(self.source.data, end - 1),
            within=within,
            before=text.decode(),
            after=splice(text, shifted).decode(),
            edits=edits,
            verdict_before=before,
            verdict_after=after,
            unproved=unproved,
        )
