"""Architectures that a Python file lists: in a call, a decorator, a dictionary, as a range."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from gatepatch.arch import TABLE, Arch
from gatepatch.boolean import Bool
from gatepatch.gates.python_gates import membership, unit_of
from gatepatch.gates.python_scope import Assigned, Module, hides, name_of
from gatepatch.gates.python_source import Expression, Source
from gatepatch.scanning.found import Found
from gatepatch.scanning.python_guards import Statements
from gatepatch.scanning.records import Guards, Kind
from gatepatch.verdict import Point, Verdict

_COMPILES = re.compile(r"nvcc|gencode|gen_|compile|supported_major|build|arch_list|cuda_arch")
_LOWEST = re.compile(r"min_?(?:sm|capability|cc|compute_?capability|arch)")
_HIGHEST = re.compile(r"max_?(?:sm|capability|cc|compute_?capability|arch)")
_BESIDE = Arch(10, 7)
"""An architecture that the table of them lacks."""

_HOLDS = (ast.Call, ast.Dict, ast.BoolOp, ast.UnaryOp)
_LISTS = ast.Tuple | ast.List | ast.Set
_LISTED = "the list says for which architectures it is compiled"
_TABLED = "the table says for which architectures there is an entry"


def listed(
    source: Source, tops: Sequence[Expression], module: Module, statements: Statements
) -> Iterator[Found]:
    """Yield the lists, tables and ranges of architectures in some expressions."""
    seen: set[int] = set()
    for top in tops:
        if not isinstance(top.node, _HOLDS):
            continue
        for node in _parts(top.node):
            if id(node) in seen:
                continue
            seen.add(id(node))
            match node:
                case ast.Call():
                    yield from _in_call(source, node, top, module, statements)
                case ast.Dict():
                    yield from _table(source, node, top, statements)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of a Boolean expression that are calls or dictionaries."""
    stack: list[ast.expr] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.BoolOp):
            stack += part.values
        elif isinstance(part, ast.UnaryOp):
            stack.append(part.operand)
        else:
            yield part


def _in_call(
    source: Source, call: ast.Call, top: Expression, module: Module, statements: Statements
) -> Iterator[Found]:
    within = top.within
    name = name_of(call.func) or ast.unparse(call.func).rpartition(".")[2]
    parts = [(name, arg) for arg in call.args]
    parts += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
    for label, given in parts:
        node = _copied(given)
        if not isinstance(node, _LISTS | ast.Name) or not _names(label):
            continue
        archs = _bound(node.id, module) if isinstance(node, ast.Name) else node
        if isinstance(archs, _LISTS) and (unit := unit_of(archs)) is not None:
            decorates = statements.decorates(call)
            kind: Kind = "decorator" if decorates else "list"
            compiles = _COMPILES.search(f"{name} {label} {within}") is not None and not decorates
            yield _found(
                source, node, within, kind, membership(archs, unit), _LISTED if compiles else ""
            )
    bounds = {k.arg: k.value for k in call.keywords if k.arg is not None}
    low = next((v for k, v in bounds.items() if _LOWEST.fullmatch(k)), None)
    high = next((v for k, v in bounds.items() if _HIGHEST.fullmatch(k)), None)
    lowest, highest = _arch(low), _arch(high)
    if lowest is not None or highest is not None:
        table: dict[Point, Bool] = {
            arch: (lowest is None or arch >= lowest) and (highest is None or arch <= highest)
            for arch in TABLE
        }
        yield _found(source, call, within, "requirement", Verdict(table), "")


def _copied(node: ast.expr) -> ast.expr:
    """What a list is made of that is handed on as a copy: ``list(MAJORS)``."""
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "sorted"), args=[inner]):
            return inner
    return node


def _bound(name: str, module: Module) -> ast.expr | None:
    """What a name of the module is bound to; None if it is not, or more than once."""
    match module.bindings.get(name):
        case [Assigned(value=value)]:
            return value
    return None


def _arch(node: ast.expr | None) -> Arch | None:
    match node:
        case ast.Tuple(elts=[ast.Constant(value=int(major)), ast.Constant(value=int(minor))]):
            return Arch(major, minor)
        case ast.Constant(value=int(number)) if 50 <= number < 300:
            return Arch(*divmod(number, 10))
    return None


def _table(
    source: Source, node: ast.Dict, top: Expression, statements: Statements
) -> Iterator[Found]:
    keys = [key for key in node.keys if key is not None]
    archs = [_key(key) for key in keys]
    if not keys or any(arch is None for arch in archs):
        return
    bare = any(isinstance(key, ast.Constant) and isinstance(key.value, int) for key in keys)
    if bare and not _labelled(statements.around(node)):
        return
    table: dict[Point, Bool] = {arch: any(_same(arch, key) for key in archs) for arch in TABLE}
    if any(table.values()) or (_BESIDE in archs and _labelled(statements.around(node))):
        yield _found(source, node, top.within, "table", Verdict(table), _TABLED)


def _same(arch: Arch, key: Arch | int | None) -> bool:
    return arch == key if isinstance(key, Arch) else arch.major == key


def _key(key: ast.expr) -> Arch | int | None:
    """The architecture that a dictionary's key is; its major alone as a number."""
    match key:
        case ast.Tuple(elts=[ast.Constant(value=int(major)), ast.Constant(value=int(minor))]):
            return Arch(major, minor) if 5 <= major < 20 and 0 <= minor < 10 else None
        case ast.Constant(value=str(text)) if re.fullmatch(r"(?:sm|compute)_?\d{2,3}[af]?", text):
            return Arch.parse(text)
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(number)):
            if 70 <= number < 130:
                return Arch(*divmod(number, 10))
            return number if 7 <= number <= 13 else None
        case ast.Attribute(attr=name) if re.fullmatch(r"(?i)sm_?\d{2,3}[af]?", name):
            return Arch.parse(name)
    return None


def _labelled(statement: ast.stmt | None) -> bool:
    """Whether what a dictionary is called says that its keys are architectures."""
    names: list[str] = []
    match statement:
        case ast.Assign(targets=targets):
            names = [part for target in targets for part in _identifiers(target)]
        case ast.AnnAssign(target=target):
            names = list(_identifiers(target))
    return any(
        _names(name.lower()) or re.search(r"(?i)(?:^|_)sm(?:_|$)|arch", name) for name in names
    )


def _identifiers(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _names(label: str) -> bool:
    """Whether a name says that what it is given is architectures, and not one."""
    return (bool(hides(label)) and not label.endswith("_cc")) or "major" in label


def _found(
    source: Source, node: ast.expr, within: str, kind: Kind, verdict: Verdict, compiled: str
) -> Found:
    return Found(
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        within=within,
        language="python",
        kind=kind,
        text=source.text(node)[:2000],
        rejects=False,
        verdict=verdict,
        guards=Guards(effect="value", lines=0),
        compiled=compiled,
    )
