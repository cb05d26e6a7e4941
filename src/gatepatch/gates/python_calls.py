"""Calls in Python code: questions to the device, builtins, and functions of the distribution."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gatepatch.arch import Arch
from gatepatch.boolean import Node, and_, atom, or_
from gatepatch.gates.python_changes import changed_in
from gatepatch.gates.python_scope import (
    Binding,
    FunctionNode,
    bind,
    dotted_name,
    hides,
    is_plain,
)
from gatepatch.gates.python_values import (
    Callee,
    Choice,
    Const,
    Frame,
    Held,
    Opaque,
    Properties,
    Raises,
    Truth,
    Value,
    choose,
    from_bool,
    leaves,
    lift,
    of_device,
    reason,
    text_of,
    truth,
)

if TYPE_CHECKING:
    from gatepatch.gates.python_evaluator import Evaluator


WAYS = 64
"""How many conditions of which nothing is known are followed in one call."""


def _int(value: Any, *base: int) -> Any:
    """``int``, that leaves a number what it is: it may be one that keeps count of what is asked of it."""
    return value + 0 if isinstance(value, int) and not base else int(value, *base)


_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "int": _int,
    **{
        f.__name__: f
        for f in (abs, all, any, bool, frozenset, len, list, max, min, set, sorted, str, tuple)
    },
}

METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(
        [
            "startswith",
            "endswith",
            "split",
            "join",
            "lower",
            "upper",
            "strip",
            "lstrip",
            "rstrip",
            "replace",
            "removeprefix",
            "removesuffix",
            "isdigit",
            "find",
            "count",
        ]
    ),
    frozenset: frozenset(
        ("intersection", "union", "difference", "isdisjoint", "issubset", "issuperset")
    ),
    tuple: frozenset(("index", "count")),
    list: frozenset(("index", "count")),
    dict: frozenset(("get", "keys", "values", "items")),
}
"""Methods without an effect, by the type of what they belong to."""

_PAIR = ("get_device_capability", "get_compute_capability")
_NUMBER = ("get_device_sm", "get_sm_version")

_OF_PAIR: Mapping[str, Callable[[Arch], Any]] = {
    "to_int": lambda arch: arch.sm,
    "as_version_str": str,
}
"""Methods of a platform's DeviceCapability."""

_FEW = 3
"""Over how many values of an argument a call is told apart."""

_DECORATORS = frozenset({"lru_cache", "cache", "cached", "staticmethod"})


def call(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value:
    """The value of a call."""
    name = evaluator.package.once(ast.unparse, node.func)
    last = name.rpartition(".")[2]
    outside = _leads_outside(evaluator, node.func, frame)
    asked = _device(evaluator, last, node, frame, outside)
    if asked is not None:
        return asked
    if name in ("any", "all") and outside and len(node.args) == 1:
        elements = evaluator.elements(node.args[0], frame)
        if elements is not None:
            truths = map(truth, elements)
            function = or_(*truths) if name == "any" else and_(*truths)
            return from_bool(function, device=any(map(of_device, elements)))
    args = _given(evaluator, node, frame)
    keywords = {k.arg: evaluator.value(k.value, frame) for k in node.keywords if k.arg is not None}
    first = args[0] if args else None
    if last == "partial" and isinstance(first, Callee):
        bound = (*first.keywords, *keywords.items())
        return Callee(first.node, first.frame, (*first.args, *args[1:]), bound)
    if last in _DECORATORS and outside:
        return first if isinstance(first, Callee) else Opaque(name)
    if isinstance(node.func, ast.Call):
        # lru_cache(maxsize=1)(f)
        decorator = ast.unparse(node.func.func).rpartition(".")[2]
        if decorator in _DECORATORS and isinstance(first, Callee):
            return first
    if name in _BUILTINS and outside and not keywords:
        return lift(lambda values: _builtin(evaluator, name, values), args)
    if isinstance(node.func, ast.Attribute) and outside and not keywords:
        base = evaluator.value(node.func.value, frame)
        if any(isinstance(leaf, Const) for leaf in leaves(base)):
            attr = node.func.attr
            return lift(lambda v: method(evaluator, v[0], attr, v[1:]), [base, *args])
    callee = evaluator.value(node.func, frame)
    if isinstance(callee, Callee):
        inlined = partial(_inlined, evaluator, name, callee, args, keywords)
        closed = not (args or keywords or callee.args or callee.keywords or callee.frame.values)
        closed = closed and not callee.frame.locals
        # A predicate is worked out once, by the name that it is called here.
        if closed:
            return evaluator.remembered((callee.node, name), inlined)
        found = inlined()
        if evaluator.handing and reason(found) and any(map(_is_one_of_few, args)):
            return lift(lambda values: _inlined(evaluator, name, callee, values, keywords), args)
        return found
    return lift(
        lambda values: evaluator.opaque(
            f"{text_of(values[0])}({_arguments_text(values[1:], len(args), tuple(keywords))})",
            parts=values,
        ),
        [callee, *args, *keywords.values()],
    )


def _is_one_of_few(value: Value) -> bool:
    """Whether a value is one of two or three that are known."""
    if not isinstance(value, Choice):
        return False
    several = [*itertools.islice(leaves(value), _FEW + 1)]
    return len(several) <= _FEW and all(isinstance(one, Const) for one in several)


def _given(evaluator: Evaluator, node: ast.Call, frame: Frame) -> list[Value]:
    """The arguments of a call, one by one: a pair that is spread is two of them."""
    args: list[Value] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            spread = evaluator.value(arg.value, frame)
            if isinstance(spread, Const) and isinstance(spread.value, tuple | list):
                args += [Const(part, spread.device) for part in spread.value]
                continue
        args.append(evaluator.value(arg, frame))
    return args


def called(evaluator: Evaluator, name: str, callee: Callee) -> Value:
    """What a function returns that is called without more than it was bound to."""
    return _inlined(evaluator, name, callee, (), {})


def _arguments_text(values: Sequence[Value], positional: int, names: Sequence[str]) -> str:
    texts = list(map(text_of, values))
    named = (f"{name}={text}" for name, text in zip(names, texts[positional:], strict=True))
    return ", ".join([*texts[:positional], *named])


def _device(
    evaluator: Evaluator, last: str, node: ast.Call, frame: Frame, outside: bool
) -> Value | None:
    """What the device answers: torch's queries, and the wrappers of that name in serving stacks."""
    if last == "get_device_properties":
        evaluator.asked = True
        return Properties()
    if last not in _PAIR + _NUMBER:
        return None
    arch = evaluator.arch
    usual = (arch.major, arch.minor) if last in _PAIR else arch.sm
    if not outside and (own := _own_answer(evaluator, node, frame)) is not None:
        return own
    return evaluator.device(usual)


def _own_answer(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value | None:
    """What the distribution's own wrapper returns where there is a device."""
    callee = evaluator.value(node.func, frame)
    if not isinstance(callee, Callee) or evaluator.depth >= evaluator.deepest:
        return None
    args = [evaluator.value(arg, frame) for arg in node.args]
    keywords = {k.arg: evaluator.value(k.value, frame) for k in node.keywords if k.arg is not None}
    found = _inlined(evaluator, ast.unparse(node.func), callee, args, keywords)
    answers = [leaf for leaf in leaves(found) if isinstance(leaf, Const) and leaf.device]
    return answers[0] if answers and all(answer == answers[0] for answer in answers) else None


def _builtin(evaluator: Evaluator, name: str, values: Sequence[Value]) -> Value:
    known = [value.value for value in values if isinstance(value, Const)]
    if len(known) == len(values):
        try:
            return Const(_BUILTINS[name](*known), any(map(of_device, values)))
        except (TypeError, ValueError):
            pass
    return evaluator.opaque(f"{name}({', '.join(map(text_of, values))})", parts=values)


def method(evaluator: Evaluator, base: Value, name: str, values: Sequence[Value]) -> Value:
    """The value of a call of a method."""
    match base:
        case Const(value=(int(), int()), device=True) if name in _OF_PAIR and not values:
            return evaluator.device(_OF_PAIR[name](evaluator.arch))
        case Const(value=None):
            return Raises()
    known = [value.value for value in values if isinstance(value, Const)]
    if (
        isinstance(base, Const)
        and len(known) == len(values)
        and name in METHODS.get(type(base.value), ())
    ):
        try:
            made = getattr(base.value, name)(*known)
            made = list(made) if name in ("keys", "values", "items") else made
            return Const(made, any(map(of_device, (base, *values))))
        except (TypeError, ValueError, LookupError):
            pass
    text = f"{text_of(base)}.{name}({', '.join(map(text_of, values))})"
    return evaluator.opaque(text, parts=(base, *values), name=name)


def _leads_outside(evaluator: Evaluator, node: ast.expr, frame: Frame) -> bool:
    """Whether a callable is not defined in the distribution."""
    dotted = dotted_name(node)
    if dotted is None:
        return not isinstance(node, ast.Name)
    if frame.is_local(dotted[0]):
        if isinstance(node, ast.Attribute):
            return True
        return dotted[0] not in frame.values and not _is_local_function(evaluator, dotted[0], frame)
    found = evaluator.package.lookup(frame.module, dotted[0])
    if found is None:
        return True
    if isinstance(node, ast.Name):
        return False
    return evaluator.module_attribute(dotted, frame) is None


def _is_local_function(evaluator: Evaluator, name: str, frame: Frame) -> bool:
    return isinstance(evaluator.value(ast.Name(id=name), frame), Callee)


def _inlined(
    evaluator: Evaluator,
    name: str,
    callee: Callee,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Value:
    """What a function of the distribution returns."""
    module = callee.frame.module
    every = [*callee.args, *args, *(v for _, v in callee.keywords), *keywords.values()]

    def opaque(unknown: str = "", held: Held | None = None) -> Opaque:
        given = [*args, *keywords.values()]
        text = f"{name}({_arguments_text(given, len(args), tuple(keywords))})"
        return Opaque(text, unknown, held)

    if any(isinstance(value, Raises) for value in every):
        return Raises()
    if not evaluator.follows(callee.node):
        told = evaluator.worked_out(callee, args, keywords)
        return opaque(hides(name)) if told is None else told
    if not every and (told := evaluator.worked_out(callee, (), {})) is not None:
        return told
    body = _body(callee)
    tests = any(evaluator.package.smells(module, part) for part in body) or any(
        map(of_device, every)
    )
    followed = isinstance(callee.node, ast.Lambda) or _returns_plain(callee.node)
    followed = followed or evaluator.tells(callee.node)
    if not (tests or followed or any(map(_is_known, every))):
        return opaque()
    values = _arguments(callee, args, keywords, beyond_too=evaluator.beyond_too)
    why = f"{name}() tests the architecture in a way that is not followed"
    if (
        values is None
        or not evaluator.package.once(evaluator.is_followed, callee.node)
        or evaluator.depth >= evaluator.deepest
    ):
        return opaque(why if tests else "")
    limit = evaluator.limit
    evaluator.limit = evaluator.branches + WAYS if limit is None else limit
    evaluator.depth += 1
    try:
        frame = callee.frame
        for parameter, value in {**_defaults(evaluator, callee), **values}.items():
            frame = frame.bound(parameter, value)
        found = _run(evaluator, body, frame)
    except _NotFollowedError as error:
        if (told := evaluator.worked_out(callee, args, keywords)) is not None:
            return told
        if error.statement is not None and evaluator.asks_outside(callee, error.statement):
            return opaque(held=Held(among=(True, False)))
        if error.frame is not None and evaluator.goes_through(error.statement, error.frame):
            found = opaque()
            return replace(found, text=f"{found.text} on {evaluator.arch}")
        return opaque(f"{name}(): {error}" if tests else "")
    finally:
        evaluator.depth -= 1
        evaluator.limit = limit
    if isinstance(found, Opaque) and not found.unknown and not tests:
        return opaque(held=found.held)
    return found


def _body(callee: Callee) -> Sequence[ast.stmt]:
    if isinstance(callee.node, ast.Lambda):
        return [ast.copy_location(ast.Return(value=callee.node.body), callee.node)]
    return callee.node.body


def _is_known(value: Value) -> bool:
    if isinstance(value, Truth):
        return isinstance(value.function.low, Node) or isinstance(value.function.high, Node)
    return isinstance(value, Callee | Choice | Properties)


def is_followed(node: FunctionNode | ast.Lambda) -> bool:
    """Whether what a function returns is in its body alone: its decorators change nothing."""
    return runs_through(node) and all(name in _DECORATORS for name in decorators(node))


def runs_through(node: FunctionNode | ast.Lambda) -> bool:
    """Whether a function, its decorators aside, is no generator and no coroutine."""
    if isinstance(node, ast.Lambda):
        return True
    return not isinstance(node, ast.AsyncFunctionDef) and not any(_yields(s) for s in node.body)


def decorators(node: FunctionNode | ast.Lambda) -> Iterator[str]:
    """The last names of a function's decorators."""
    for decorator in () if isinstance(node, ast.Lambda) else node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        yield ast.unparse(target).rpartition(".")[2]


def _yields(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
        return True
    return any(map(_yields, ast.iter_child_nodes(node)))


def _returns_plain(node: FunctionNode) -> bool:
    arguments = node.args
    match [s for s in node.body if not isinstance(s, ast.Expr)]:
        case [ast.Return(value=ast.expr() as value)]:
            return not (arguments.args or arguments.kwonlyargs) and is_plain(value)
    return False


def _defaults(evaluator: Evaluator, callee: Callee) -> dict[str, Value]:
    arguments = callee.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    given = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        names.append(arg.arg)
        if default is not None:
            given[arg.arg] = default
    names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
    found: dict[str, Value] = {name: Opaque(name) for name in names}
    found.update({n: evaluator.value(default, callee.frame) for n, default in given.items()})
    return found


def _arguments(
    callee: Callee, args: Sequence[Value], keywords: Mapping[str, Value], *, beyond_too: bool
) -> dict[str, Value] | None:
    """The callee's parameters; None if the call does not fit them.

    Args:
        callee: What is called.
        args: What it is given by position.
        keywords: What it is given by name.
        beyond_too: Whether it may be given more than it has names for, where it takes that.
    """
    arguments = callee.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    given = [*callee.args, *args]
    beyond = given[len(names) :]
    if beyond and (not beyond_too or arguments.vararg is None or any(map(of_device, beyond))):
        return None
    named = {**dict(callee.keywords), **keywords}
    if arguments.kwarg is None and not named.keys() <= {
        *names,
        *(a.arg for a in arguments.kwonlyargs),
    }:
        return None
    if beyond and arguments.vararg is not None:
        rest = ", ".join(map(text_of, beyond))
        named[arguments.vararg.arg] = Opaque(f"({rest})")
    return {**dict(zip(names, given, strict=False)), **named}


class _NotFollowedError(Exception):
    """A statement whose effect is not worked out.

    Args:
        message: Why not.
        statement: The statement, if it is one by itself.
        frame: What is known where it stands.
    """

    def __init__(self, message: str, statement: ast.stmt | None = None, frame: Frame | None = None):
        super().__init__(message)
        self.statement = statement
        self.frame = frame


def _run(evaluator: Evaluator, body: Sequence[ast.stmt], frame: Frame) -> Value:
    """What a function's statements return."""
    if not body:
        return Const(None)
    first, *rest = body
    for name, value in _walruses(first) if frame.module.walruses else ():
        frame = frame.bound(name, evaluator.value(value, frame))
    if isinstance(first, ast.Assign | ast.AugAssign | ast.Expr):
        for name in evaluator.package.once(changed_in, first) & frame.values.keys():
            frame = frame.bound(name, Opaque(name, hides(name)))
    match first:
        case ast.Return(value=returned):
            return evaluator.value(returned, frame) if returned is not None else Const(None)
        case ast.If(test=test, body=then, orelse=other):
            return _branch(evaluator, test, [*then, *rest], [*other, *rest], frame)
        case ast.Assert(test=test):
            return _branch(evaluator, test, rest, [ast.Raise()], frame)
        case ast.Assign(targets=targets, value=value):
            known = evaluator.value(value, frame)
            for target in targets:
                frame = _assigned(frame, target, known)
            return _run(evaluator, rest, frame)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _run(evaluator, rest, _assigned(frame, target, evaluator.value(value, frame)))
        case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
            sum_ = ast.BinOp(left=ast.Name(id=name), op=op, right=value)
            return _run(evaluator, rest, _assigned(frame, target, evaluator.value(sum_, frame)))
        case ast.Try(body=then, handlers=handlers, orelse=other, finalbody=last):
            # The handlers run where there is no device, so no architecture either.
            if any(evaluator.package.smells(frame.module, handler) for handler in handlers):
                raise _NotFollowedError(f"the except on line {first.lineno} tests it too")
            if any(_is_only_tried(part) for part in then):
                raise _NotFollowedError(f"the try on line {first.lineno} asks what raises there")
            done = _run(evaluator, [*then, *other, *last, *rest], frame)
            # Beside other open conditions there would be too many cases to tell any.
            alone = evaluator.handing and evaluator.limit == evaluator.branches + WAYS
            if alone and (instead := _without_import(handlers)):
                there = atom(f"the imports on line {first.lineno} succeed")
                return choose(there, done, _run(evaluator, [*instead, *last, *rest], frame))
            return done
        case ast.With(body=then):
            return _run(evaluator, [*then, *rest], frame)
        case ast.Raise():
            return Raises()
        case ast.Import() | ast.ImportFrom():
            return _run(evaluator, rest, _with_import(frame, first))
        case ast.FunctionDef(name=name, decorator_list=[]):
            return _run(evaluator, rest, frame.bound(name, Callee(first, frame)))
        case ast.AnnAssign() | ast.Expr() | ast.Pass() | ast.Global() | ast.Nonlocal():
            return _run(evaluator, rest, frame)
        case ast.Delete(targets=targets) if all(isinstance(one, ast.Name) for one in targets):
            return _run(evaluator, rest, frame)
    raise _NotFollowedError(f"its statement on line {first.lineno} is not followed", first, frame)


def _without_import(handlers: Sequence[ast.ExceptHandler]) -> Sequence[ast.stmt]:
    """What is done where something is not installed; nothing if that is not all that is caught."""
    match handlers:
        case [ast.ExceptHandler(type=ast.Name(id="ImportError"), body=body)]:
            return body
    return ()


def _is_only_tried(statement: ast.stmt) -> bool:
    """Whether a call that an architecture is handed to is made for the exception that it may raise."""
    match statement:
        case ast.Expr(value=ast.Call(args=args, keywords=keywords)):
            given = [*args, *(keyword.value for keyword in keywords)]
            return any(isinstance(one, ast.Name) and hides(one.id) for one in given)
    return False


def _branch(
    evaluator: Evaluator,
    test: ast.expr,
    then: Sequence[ast.stmt],
    other: Sequence[ast.stmt],
    frame: Frame,
) -> Value:
    taken = evaluator.truth_of(test, frame)
    if isinstance(taken, bool):
        return _run(evaluator, then if taken else other, frame)
    evaluator.branches += 1
    if evaluator.limit is not None and evaluator.branches > evaluator.limit:
        raise _NotFollowedError("there are too many ways through it")
    return choose(taken, _run(evaluator, then, frame), _run(evaluator, other, frame))


def _walruses(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that the statement's own expressions bind with ``:=``."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            for node in ast.walk(child):
                if isinstance(node, ast.NamedExpr):
                    yield node.target.id, node.value


def _with_import(frame: Frame, node: ast.Import | ast.ImportFrom) -> Frame:
    bindings: dict[str, list[Binding]] = {}
    bind(frame.module, node, bindings)
    known = {**frame.module.bindings, **bindings}
    module = replace(frame.module, bindings=known)
    return Frame(module, frame.values, frame.locals, frame.hidden)


def _assigned(frame: Frame, target: ast.expr, value: Value) -> Frame:
    match target:
        case ast.Name(id=name):
            return frame.bound(name, value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for index, part in enumerate(parts):
                match part:
                    case ast.Name(id=name):
                        frame = frame.bound(name, _part(value, index, len(parts), parts))
                    case ast.Starred(value=ast.Name(id=name)):
                        frame = frame.bound(name, Opaque(f"{text_of(value)}[...]", reason(value)))
    return frame


def _part(value: Value, index: int, count: int, parts: Sequence[ast.expr]) -> Value:
    starred = any(isinstance(part, ast.Starred) for part in parts[: index + 1])

    def pick(values: Sequence[Value]) -> Value:
        whole = values[0]
        match whole:
            case Const(value=tuple() | list() as items, device=device) if not starred:
                return Const(items[index], device) if index < len(items) else Raises()
            case Opaque(held=Held(items=held)) if held and not starred and index in held:
                return held[index]
        unknown = f"{text_of(whole)} is not followed" if of_device(whole) else ""
        return Opaque(f"{text_of(whole)}[{index}]", reason(whole) or unknown)

    return lift(pick, [value])
