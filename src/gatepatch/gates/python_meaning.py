"""What a Python expression means on one architecture.

An evaluator over an explicit environment, in which what is not known is a value: a constant, a
Boolean function of atoms, or an opaque value that carries its source. Nothing is imported or run.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gatepatch.arch import TABLE, Arch
from gatepatch.boolean import Bool, and_, atom, atoms, if_then_else, not_, or_, to_text
from gatepatch.gates.python_scope import (
    SMELL,
    Assigned,
    Binding,
    Defined,
    Element,
    Found,
    FunctionNode,
    Imported,
    Module,
    Other,
    Package,
    bind,
)
from gatepatch.verdict import Point, Verdict

DEPTH = 16
"""How many calls and aliases are followed from one to the next."""


@dataclass(frozen=True, slots=True)
class Const:
    """A value that is known."""

    value: Any


@dataclass(frozen=True, slots=True)
class Truth:
    """A value of which only the truth is known, as a function of atoms."""

    function: Bool


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not known.

    Args:
        text: Its source, with what is known put in.
        unknown: Why it may hide a test of the architecture; empty if it cannot.
    """

    text: str
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of the distribution, with the arguments that it was bound to."""

    node: FunctionNode
    module: Module
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Properties:
    """What ``torch.cuda.get_device_properties`` returns."""


Value: TypeAlias = "Const | Truth | Opaque | Callee | Properties"

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}

_COMPARE: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
}

_BUILTINS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (abs, all, any, bool, frozenset, int, len, list, max, min, set, sorted, str, tuple)
}

_DEVICE: Mapping[str, Callable[[Arch], Value]] = {
    # torch.cuda's, and the wrappers of that name in serving stacks, which ask NVML or torch.
    "get_device_capability": lambda arch: Const((arch.major, arch.minor)),
    "get_device_properties": lambda arch: Properties(),
    "get_device_sm": lambda arch: Const(arch.sm),
    "get_sm_version": lambda arch: Const(arch.sm),
}
"""Queries of the device whose answer their name says."""

_DECORATORS = frozenset({"lru_cache", "cache", "cached", "staticmethod"})


@dataclass(frozen=True, slots=True)
class Frame:
    """Where an expression stands.

    Args:
        module: Its module.
        values: Local names that are known: arguments and assignments already carried out.
        locals: Local names that are bound somewhere in the enclosing functions.
    """

    module: Module
    values: Mapping[str, Value] = field(default_factory=dict)
    locals: Mapping[str, tuple[Binding, ...]] = field(default_factory=dict)


def replaced(
    node: ast.expr,
    window: Sequence[ast.expr],
    archs: frozenset[Arch],
    like: Arch,
    frame: Frame,
    package: Package,
    predicates: Mapping[str, frozenset[Arch]],
) -> Verdict:
    """The truth of an expression whose gate has, on some architectures, another one's verdict.

    What else the expression tests stays as it is on each architecture.

    Args:
        node: The whole expression.
        window: The operands in it that are the gate.
        archs: The architectures that get another's verdict.
        like: That other architecture.
        frame: Where the expression stands.
        package: Where definitions are read.
        predicates: As for ``Evaluator``.
    """
    above = Evaluator(package, predicates, like)
    whole, rest = _with_name(node, window, _GATE)
    parts = [above.truth_of(part, frame) for part in window]
    gate = Truth(and_(*parts) if rest is ast.And else or_(*parts))
    table: dict[Point, Bool] = {}
    for arch in TABLE:
        evaluator = Evaluator(package, predicates, arch)
        if arch in archs:
            inner = Frame(frame.module, {**frame.values, _GATE: gate}, frame.locals)
            table[arch] = evaluator.truth_of(whole, inner)
        else:
            table[arch] = evaluator.truth_of(node, frame)
    return Verdict(table)


_GATE = "the gate"
"""A name that no source has."""


def _with_name(
    node: ast.expr, window: Sequence[ast.expr], name: str
) -> tuple[ast.expr, type[ast.boolop]]:
    """The expression with a name for a window of operands, and the operator that joins them."""
    first, others = window[0], {id(part) for part in window[1:]}
    found: type[ast.boolop] = ast.And
    if node is first:
        return ast.Name(id=name), found
    match node:
        case ast.BoolOp(op=op, values=values):
            kept = []
            for value in values:
                if id(value) in others:
                    continue
                new, inner = _with_name(value, window, name)
                found = inner if inner is ast.Or else found
                kept.append(new)
            if len(window) > 1 and any(value is first for value in values):
                found = type(op)
            return (ast.BoolOp(op=op, values=kept) if kept else ast.Name(id=name)), found
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            new, found = _with_name(operand, window, name)
            return ast.UnaryOp(op=ast.Not(), operand=new), found
    return node, found


def verdict(
    node: ast.expr,
    frame: Frame,
    package: Package,
    predicates: Mapping[str, frozenset[Arch]],
) -> Verdict:
    """The truth of an expression over the whole table of architectures."""
    return Verdict(
        {arch: Evaluator(package, predicates, arch).truth_of(node, frame) for arch in TABLE}
    )


class Evaluator:
    """Evaluates on one architecture.

    Args:
        package: Where definitions are read.
        predicates: Source of a predicate, without the call, to the architectures where it holds.
        arch: The architecture.
    """

    def __init__(self, package: Package, predicates: Mapping[str, frozenset[Arch]], arch: Arch):
        self.package = package
        self.predicates = predicates
        self.arch = arch
        self._depth = 0

    def truth_of(self, node: ast.expr, frame: Frame) -> Bool:
        """The truth of an expression."""
        return self.truth(self.value(node, frame))

    def truth(self, value: Value) -> Bool:
        """The truth of a value."""
        match value:
            case Const(value=constant):
                return bool(constant)
            case Truth(function=function):
                return function
            case Opaque(text=text, unknown=unknown):
                return atom(text, unknown=unknown)
            case Callee() | Properties():
                return True

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        known = self._predicate(node)
        if known is not None:
            return known
        match node:
            case ast.Constant(value=constant):
                return Const(constant)
            case ast.Name(id=name):
                return self._name(name, frame)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._collection(node, [self.value(p, frame) for p in parts], frame)
            case ast.BoolOp():
                return self._bool_op(node, frame)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _simplified(not_(self.truth_of(operand, frame)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand, frame)
                if isinstance(inner, Const) and isinstance(inner.value, int | float):
                    return Const(-inner.value)
                return self._opaque(f"-{_text(inner)}", node, frame)
            case ast.BinOp():
                return self._binary(node, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(
                    self.truth_of(test, frame),
                    self.value(body, frame),
                    self.value(orelse, frame),
                )
            case ast.Attribute():
                return self._attribute(node, frame)
            case ast.Subscript(value=base, slice=index):
                return self._subscript(node, base, index, frame)
            case ast.Call():
                return self._call(node, frame)
            case ast.NamedExpr(value=inner_node):
                return self.value(inner_node, frame)
        return self._opaque(ast.unparse(node), node, frame)

    def _predicate(self, node: ast.expr) -> Const | None:
        """A predicate whose meaning the set gives: by its source, or its last names."""
        if not self.predicates or not isinstance(node, ast.Name | ast.Attribute | ast.Call):
            return None
        text = ast.unparse(node)
        for spelling in (text, text.removesuffix("()")):
            if spelling in self.predicates:
                return Const(self.arch in self.predicates[spelling])
        return None

    def _name(self, name: str, frame: Frame) -> Value:
        if name in frame.values:
            return frame.values[name]
        if name in frame.locals:
            return self._bound(name, frame.locals[name], frame)
        found = self.package.lookup(frame.module, name)
        if found is None:
            return self._opaque(name, ast.Name(id=name), frame, outside=True)
        return self._found(name, found)

    def _found(self, name: str, found: Found) -> Value:
        return self._bound(name, found.bindings, Frame(found.module), original=found.name)

    def _bound(
        self, name: str, bindings: tuple[Binding, ...], frame: Frame, original: str = ""
    ) -> Value:
        if len(bindings) != 1:
            parts: list[ast.AST] = []
            for binding in bindings:
                match binding:
                    case Assigned(value=value) | Element(value=value):
                        parts.append(value)
                    case Defined(node=node):
                        parts += node.body
                    case Imported() | Other():
                        continue
            smells = SMELL.search(name) or any(
                self.package.smells(frame.module, part) for part in parts
            )
            return Opaque(name, f"{name} is bound more than once" if smells else "")
        match bindings[0]:
            case Assigned(value=value):
                if isinstance(value, ast.Constant):
                    return Const(value.value)
                return self._followed(name, value, frame)
            case Element(value=value, index=index):
                whole = self._followed(name, value, frame)
                if isinstance(whole, Const) and isinstance(whole.value, tuple | list):
                    return Const(whole.value[index]) if index < len(whole.value) else whole
                return Opaque(name, whole.unknown) if isinstance(whole, Opaque) else Opaque(name)
            case Defined(node=node):
                return Callee(node, frame.module)
            case Imported() | Other():
                return Opaque(name, _smell_of(name))

    def _followed(self, name: str, value: ast.expr, frame: Frame) -> Value:
        """What an alias stands for: evaluated if it may test the architecture, else its name."""
        literal = isinstance(value, ast.Tuple | ast.List | ast.Set | ast.Dict)
        plain = literal or _is_plain(value)
        if not (plain or self.package.smells(frame.module, value) or self._local(value, frame)):
            return Opaque(name)
        if self._depth >= DEPTH:
            return Opaque(name, f"{name} leads too far")
        self._depth += 1
        try:
            found = self.value(value, frame)
        finally:
            self._depth -= 1
        if literal and isinstance(found, Opaque):
            return Opaque(name, found.unknown)
        return found

    def _local(self, value: ast.expr, frame: Frame) -> bool:
        return any(
            isinstance(node, ast.Name) and (node.id in frame.values or node.id in frame.locals)
            for node in ast.walk(value)
        )

    def _collection(self, node: ast.expr, parts: list[Value], frame: Frame) -> Value:
        if all(isinstance(part, Const) for part in parts):
            values = [part.value for part in parts if isinstance(part, Const)]
            kind: Callable[[Any], Any] = (
                tuple
                if isinstance(node, ast.Tuple)
                else list
                if isinstance(node, ast.List)
                else frozenset
            )
            return Const(kind(values))
        return self._opaque(f"({', '.join(map(_text, parts))})", node, frame)

    def _bool_op(self, node: ast.BoolOp, frame: Frame) -> Value:
        is_and = isinstance(node.op, ast.And)
        parts: list[Value] = []
        for operand in node.values:
            part = self.value(operand, frame)
            if isinstance(part, Const):
                # Python stops at the first operand that decides.
                if bool(part.value) != is_and:
                    parts.append(part)
                    break
                if operand is not node.values[-1]:
                    continue
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        truths = [self.truth(part) for part in parts]
        return _simplified(and_(*truths) if is_and else or_(*truths))

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        action = _BINARY.get(type(node.op))
        if isinstance(left, Const) and isinstance(right, Const) and action is not None:
            try:
                return Const(action(left.value, right.value))
            except (TypeError, ValueError, ArithmeticError):
                pass
        sample = ast.unparse(ast.BinOp(left=ast.Name(id="x"), op=node.op, right=ast.Name(id="y")))
        text = sample.replace("x", "{}", 1).replace("y", "{}", 1)
        return self._opaque(
            text.format(_text(left), _text(right)), node, frame, parts=(left, right)
        )

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        values = [self.value(n, frame) for n in (node.left, *node.comparators)]
        result: Bool = True
        for left, op, right in zip(values, node.ops, values[1:], strict=False):
            result = and_(result, self._pair(left, op, right, node, frame))
        return _simplified(result)

    def _pair(self, left: Value, op: ast.cmpop, right: Value, node: ast.expr, frame: Frame) -> Bool:
        word, action = _COMPARE[type(op)]
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                return bool(action(left.value, right.value))
            except TypeError:
                pass
        # `x is None` of a device's capability, and the like of it, are what they are elsewhere.
        found = self._opaque(
            f"{_text(left)} {word} {_text(right)}", node, frame, parts=(left, right)
        )
        return self.truth(found)

    def _choice(self, test: Bool, then: Value, other: Value) -> Value:
        if isinstance(test, bool):
            return then if test else other
        if then == other:
            return then
        return _simplified(if_then_else(test, self.truth(then), self.truth(other)))

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        dotted = _dotted(node)
        if dotted is not None and dotted[0] not in frame.values and dotted[0] not in frame.locals:
            found = self._module_attribute(dotted, frame)
            if found is not None:
                return found
        base = self.value(node.value, frame)
        match base:
            case Properties() if node.attr in ("major", "minor"):
                return Const(getattr(self.arch, node.attr))
            case Const(value=(int(), int())) if node.attr in ("major", "minor"):
                # A named tuple, such as a platform's DeviceCapability.
                return Const(getattr(self.arch, node.attr))
        return self._opaque(f"{_text(base)}.{node.attr}", node, frame, parts=(base,))

    def _module_attribute(self, dotted: list[str], frame: Frame) -> Value | None:
        """A name of another module of the distribution: ``utils.is_sm100_supported``."""
        found = self.package.lookup(frame.module, dotted[0])
        names = dotted[1:]
        if found is None or len(found.bindings) != 1:
            return None
        match found.bindings[0]:
            case Imported(module=origin, name=None):
                name = origin
            case Imported(module=origin, name=str(original)):
                name = f"{origin}.{original}"
            case _:
                return None
        while len(names) > 1 and self.package.by_name(f"{name}.{names[0]}") is not None:
            name, names = f"{name}.{names[0]}", names[1:]
        module = self.package.by_name(name)
        target = self.package.lookup(module, names[0]) if module and len(names) == 1 else None
        return self._found(names[0], target) if target is not None else None

    def _subscript(
        self, node: ast.expr, base_node: ast.expr, index_node: ast.expr, frame: Frame
    ) -> Value:
        base = self.value(base_node, frame)
        if isinstance(index_node, ast.Slice):
            bounds = [
                self.value(n, frame) if n is not None else Const(None)
                for n in (index_node.lower, index_node.upper, index_node.step)
            ]
            known = [b.value for b in bounds if isinstance(b, Const)]
            index: Value = Const(slice(*known)) if len(known) == 3 else Opaque("slice")
            text = ast.unparse(index_node)
        else:
            index = self.value(index_node, frame)
            text = _text(index)
        if isinstance(base, Const) and isinstance(index, Const):
            try:
                return Const(base.value[index.value])
            except (TypeError, LookupError):
                pass
        return self._opaque(f"{_text(base)}[{text}]", node, frame, parts=(base,))

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        outside = self._leads_outside(node.func, frame)
        if last in _DEVICE:
            return _DEVICE[last](self.arch)
        args = [self.value(arg, frame) for arg in node.args]
        keywords = {k.arg: self.value(k.value, frame) for k in node.keywords if k.arg is not None}
        if last == "partial" and args and isinstance(args[0], Callee):
            bound = args[0]
            return Callee(
                bound.node,
                bound.module,
                (*bound.args, *args[1:]),
                (*bound.keywords, *keywords.items()),
            )
        if last in _DECORATORS and outside:
            return args[0] if args and isinstance(args[0], Callee) else Opaque(name)
        if isinstance(node.func, ast.Call):
            # lru_cache(maxsize=1)(f)
            inner = ast.unparse(node.func.func).rpartition(".")[2]
            if inner in _DECORATORS and args and isinstance(args[0], Callee):
                return args[0]
        if name in _BUILTINS and outside and not keywords:
            known = [a.value for a in args if isinstance(a, Const)]
            if len(known) == len(args):
                try:
                    return Const(_BUILTINS[name](*known))
                except (TypeError, ValueError):
                    pass
        callee = self.value(node.func, frame)
        if isinstance(callee, Callee):
            return self._inline(node, name, callee, args, keywords)
        text = ", ".join([*map(_text, args), *(f"{k}={_text(v)}" for k, v in keywords.items())])
        return self._opaque(f"{_text(callee)}({text})", node, frame, parts=(callee, *args))

    def _leads_outside(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a callable is not defined in the distribution."""
        dotted = _dotted(node)
        if dotted is None:
            return not isinstance(node, ast.Name)
        if dotted[0] in frame.values or dotted[0] in frame.locals:
            return isinstance(node, ast.Attribute)
        found = self.package.lookup(frame.module, dotted[0])
        if found is None:
            return True
        if isinstance(node, ast.Name):
            return False
        return self._module_attribute(dotted, frame) is None

    def _inline(
        self,
        node: ast.Call,
        name: str,
        callee: Callee,
        args: list[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        module = callee.module
        every = [*callee.args, *args, *(v for _, v in callee.keywords), *keywords.values()]
        text = ", ".join([*map(_text, args), *(f"{k}={_text(v)}" for k, v in keywords.items())])
        opaque = Opaque(f"{name}({text})")
        smells = any(self.package.smells(module, part) for part in callee.node.body)
        if not (smells or _returns_plain(callee.node) or any(map(_is_known, every))):
            return opaque
        values = _arguments(callee, args, keywords)
        plain = all(_is_plain_decorator(d) for d in callee.node.decorator_list)
        if values is None or not plain or self._depth >= DEPTH:
            reason = f"{name}() tests the architecture in a way that is not followed"
            return Opaque(opaque.text, reason if smells else "")
        self._depth += 1
        try:
            defaults = self._defaults(callee)
            frame = Frame(module, {**defaults, **values})
            found = self._run(list(callee.node.body), frame)
        except _NotFollowedError as error:
            return Opaque(opaque.text, f"{name}(): {error}" if smells else "")
        finally:
            self._depth -= 1
        if isinstance(found, Opaque) and not found.unknown:
            return opaque
        return found

    def _defaults(self, callee: Callee) -> dict[str, Value]:
        arguments = callee.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        frame = Frame(callee.module)
        given = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                given[arg.arg] = default
        found: dict[str, Value] = {n: Opaque(n) for n in names}
        found.update({a.arg: Opaque(a.arg) for a in arguments.kwonlyargs})
        found.update({n: self.value(default, frame) for n, default in given.items()})
        return found

    def _run(self, body: list[ast.stmt], frame: Frame) -> Value:
        """What a function's statements return."""
        if not body:
            return Const(None)
        first, *rest = body
        match first:
            case ast.Return(value=value):
                return self.value(value, frame) if value is not None else Const(None)
            case ast.If(test=test, body=then, orelse=other):
                truth = self.truth_of(test, frame)
                if isinstance(truth, bool):
                    return self._run([*(then if truth else other), *rest], frame)
                return self._choice(
                    truth, self._run([*then, *rest], frame), self._run([*other, *rest], frame)
                )
            case ast.Assign(targets=[target], value=value):
                return self._run(rest, self._assigned(frame, target, self.value(value, frame)))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._run(rest, self._assigned(frame, target, self.value(value, frame)))
            case ast.Try(body=then):
                # The handlers run where there is no device, so no architecture either.
                return self._run([*then, *first.orelse, *first.finalbody, *rest], frame)
            case ast.With(body=then):
                return self._run([*then, *rest], frame)
            case ast.Raise():
                return Const(False)
            case ast.Import() | ast.ImportFrom():
                return self._run(rest, self._with_import(frame, first))
            case ast.Expr() | ast.Pass() | ast.Assert() | ast.Global() | ast.Nonlocal():
                return self._run(rest, frame)
        raise _NotFollowedError(f"its statement on line {first.lineno} is not followed")

    def _with_import(self, frame: Frame, node: ast.Import | ast.ImportFrom) -> Frame:
        bindings: dict[str, list[Binding]] = {}
        bind(frame.module, node, bindings)
        module = Module(
            frame.module.path,
            frame.module.tree,
            {**frame.module.bindings, **bindings},
            frame.module.stars,
        )
        return Frame(module, frame.values, frame.locals)

    def _assigned(self, frame: Frame, target: ast.expr, value: Value) -> Frame:
        values = dict(frame.values)
        match target:
            case ast.Name(id=name):
                values[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = value.value if isinstance(value, Const) else None
                whole = isinstance(known, tuple | list) and len(known) == len(parts)
                for index, part in enumerate(parts):
                    if isinstance(part, ast.Name):
                        values[part.id] = (
                            Const(known[index])
                            if whole and isinstance(known, tuple | list)
                            else Opaque(f"{_text(value)}[{index}]", _unknown(value))
                        )
        return Frame(frame.module, values, frame.locals)

    def _opaque(
        self,
        text: str,
        node: ast.AST,
        frame: Frame,
        *,
        parts: tuple[Value, ...] = (),
        outside: bool = False,
    ) -> Opaque:
        """A value that is not known, and why it may hide a test of the architecture."""
        for part in parts:
            if reason := _unknown(part):
                return Opaque(text, reason)
        if outside:
            return Opaque(text, _smell_of(text))
        if any(_is_device(part) for part in parts):
            return Opaque(text, f"{text} depends on the architecture in a way that is not followed")
        name = getattr(node, "attr", None) or getattr(node, "id", None)
        if isinstance(name, str) and SMELL.search(name):
            return Opaque(text, _smell_of(text))
        if not parts and self.package.smells(frame.module, node):
            return Opaque(text, f"{text} tests the architecture in a way that is not followed")
        return Opaque(text)


class _NotFollowedError(Exception):
    """A statement whose effect is not worked out."""


def _smell_of(text: str) -> str:
    return (
        f"{text} may test the architecture, and its meaning is not known"
        if SMELL.search(text)
        else ""
    )


def _unknown(value: Value) -> str:
    match value:
        case Opaque(unknown=reason):
            return reason
        case Truth(function=function):
            return next((a.unknown for a in sorted(atoms(function)) if a.unknown), "")
    return ""


def _is_device(value: Value) -> bool:
    return isinstance(value, Properties)


def _is_known(value: Value) -> bool:
    return isinstance(value, Callee | Truth | Properties)


def _simplified(function: Bool) -> Value:
    return Const(function) if isinstance(function, bool) else Truth(function)


def _text(value: Value) -> str:
    match value:
        case Const(value=constant):
            return repr(constant)
        case Truth(function=function):
            return f"({to_text(function)})"
        case Opaque(text=text):
            return text
        case Callee(node=node):
            return node.name
        case Properties():
            return "device_properties"


def _dotted(node: ast.expr) -> list[str] | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else None


def _is_plain_decorator(node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(target).rpartition(".")[2] in _DECORATORS


def _is_plain(node: ast.expr) -> bool:
    """Whether it is made of names, calls without arguments, ``and``, ``or`` and ``not`` alone.

    Such an alias is followed, so that ``_is_cuda`` and ``is_cuda()`` are one atom.
    """
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value):
            return _is_plain(value)
        case ast.Call(func=func, args=[], keywords=[]):
            return _is_plain(func)
        case ast.BoolOp(values=values):
            return all(map(_is_plain, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_plain(operand)
    return False


def _returns_plain(node: FunctionNode) -> bool:
    arguments = node.args
    match [s for s in node.body if not isinstance(s, ast.Expr)]:
        case [ast.Return(value=ast.expr() as value)]:
            return not (arguments.args or arguments.kwonlyargs) and _is_plain(value)
    return False


def _arguments(
    callee: Callee, args: list[Value], keywords: Mapping[str, Value]
) -> dict[str, Value] | None:
    """The callee's parameters; None if the call does not fit them."""
    arguments = callee.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    given = [*callee.args, *args]
    if len(given) > len(names):
        return None
    return {**dict(zip(names, given, strict=False)), **dict(callee.keywords), **keywords}
