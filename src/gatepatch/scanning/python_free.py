"""What is free beside an answer of the device: ``tokens <= LIMITS[arch]`` depends on the tokens."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from gatepatch.arch import Arch
from gatepatch.boolean import atoms
from gatepatch.gates.python_scope import Assigned, Binding, Other, hides, name_of, names_in
from gatepatch.gates.python_values import (
    Callee,
    Const,
    Frame,
    Opaque,
    Raises,
    Value,
    of_device,
    reason,
    text_of,
)
from gatepatch.scanning.python_givens import Givens
from gatepatch.scanning.python_memos import memos
from gatepatch.scanning.python_words import is_other_word


def _is_spelt(node: ast.expr) -> bool:
    """Whether architectures' names are put together one by one: ``[f"sm_{m}{n}" for m, n in pairs]``."""
    match node:
        case ast.Call(args=[inner]):
            return _is_spelt(inner)
        case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
            return isinstance(part, ast.JoinedStr) and ast.unparse(part)[2:].startswith("sm_{")
    return False


def is_own(arch: Arch, value: Any) -> bool:
    """Whether a constant may be the architecture itself, or one of its parts or names.

    What stands beside it may then be another's: a record's, or a list of those that are served.
    """
    match value:
        case bool() | None:
            return False
        case int() | float():
            return value in (arch.major, arch.sm, arch.cuda_arch)
        case str():
            return not is_other_word(value)
        case (int(major), int(minor)):
            return (major, minor) == (arch.major, arch.minor)
        case tuple() | list() | frozenset() | set():
            return any(_names(arch, part) for part in value)
        case dict():
            return any(_names(arch, part) for part in value.values())
    return True


def _names(arch: Arch, part: Any) -> bool:
    return isinstance(part, str | tuple) and is_own(arch, part)


def _imports(node: ast.AST) -> Mapping[str, str]:
    """The names that a function takes from modules, and from which, named in full."""
    found: dict[str, str] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and part.module and not part.level:
            found.update((alias.asname or alias.name, part.module) for alias in part.names)
    return found


class Free(Givens):
    """An evaluator that tells a value that depends on something else from one that is not told."""

    def _bound(self, name: str, bindings: tuple[Binding, ...], frame: Frame) -> Value:
        match bindings:
            case (Assigned(value=ast.Constant(value=None)), Other()) if not (
                frame.locals or frame.values
            ):
                kept = self.package.once(memos, frame.module.tree).get(name)
                if kept is not None and kept not in self._active and self.depth < self.deepest:
                    return self.again(kept, frame) or super()._bound(name, bindings, frame)
        return super()._bound(name, bindings, frame)

    def over_free(self, node: ast.Call, frame: Frame) -> Value | None:
        """``any`` or ``all`` over what is not known, where each of it is free; None elsewhere."""
        match node.args:
            case [
                ast.GeneratorExp(
                    elt=part, generators=[ast.comprehension(target=target, iter=source)]
                )
            ]:
                if isinstance(over := self.value(source, frame), Raises):
                    return over
                bound = frame
                for name in self.package.once(names_in, target):
                    bound = bound.bound(name, Opaque(name, hides(name)))
                before, self.asked = self.asked, False
                function = self.truth_of(part, bound)
                told, self.asked = self.asked, self.asked or before
                own = any(map(hides, self.package.once(names_in, target)))
                if told and not own and function is (name_of(node.func) == "all"):
                    return self.device(function)  # so for each of them
                if own and isinstance(function, bool) and self._spells(source, frame):
                    return self.device(function)  # each is an architecture that it is made for
                told = told or own
                if isinstance(function, bool) or any(one.unknown for one in atoms(function)):
                    return None
                if not told:
                    return None
                return Opaque(self.package.once(ast.unparse, node))
        return None

    def _spells(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a value is a list of architectures' names that is put together in place."""
        match node:
            case ast.Name(id=name):
                match frame.locals.get(name):
                    case (Assigned(value=made),):
                        return self.package.once(_is_spelt, made)
                return False
        return self.package.once(_is_spelt, node)

    def asks_outside(self, callee: Callee, statement: ast.stmt) -> bool:
        """Whether a statement that is not followed depends on what is installed beside the package.

        It speaks of a name that its function takes from there: ``for name in names: Arch[name]``.
        """
        imports = self.package.once(_imports, callee.node)
        outside = {name for name, origin in imports.items() if self.package.by_name(origin) is None}
        self.asked = True
        return not outside.isdisjoint(self.package.once(names_in, statement))

    def goes_through(self, statement: ast.stmt | None, frame: Frame) -> bool:
        """Whether a statement that is not followed looks for something that is asked for beside the architecture.

        It is a loop that names what the function is given, and there is something to go through.
        """
        if not self.beyond_too or not isinstance(statement, ast.For):
            return False
        names = self.package.once(names_in, statement)
        asked = [frame.values[name] for name in names if name in frame.values]
        if not any(isinstance(one, Opaque) and not one.unknown for one in asked):
            return False
        self.asked = True
        match self.value(statement.iter, frame):
            case Const(value=through) if not through:
                return False
        return True

    def opaque(self, text: str, *, parts: Sequence[Value], name: str = "") -> Opaque:
        """A value that is not known, and why it may hide a test of the architecture."""
        value = super().opaque(text, parts=parts, name=name)
        if not value.unknown or any(map(reason, parts)):
            return value
        asked = [part for part in parts if of_device(part)]
        if not asked or not all(isinstance(part, Const) for part in asked):
            return value
        called = parts[0]
        beside = parts[1:] if text.startswith(f"{text_of(called)}(") else parts
        if not any(isinstance(part, Opaque) for part in beside):
            return value
        if any(isinstance(part, Const) and is_own(self.arch, part.value) for part in asked):
            return value
        self.asked = True
        return Opaque(text, hides(name, of=text) if name else "")
