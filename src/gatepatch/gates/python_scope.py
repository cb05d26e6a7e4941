"""What the names of a Python module stand for: read, never imported."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

SMELL = re.compile(
    r"(?i)(?<![a-z])sm_?\d{2,3}|sm_version|device_sm|capab|blackwell|hopper|ampere|rubin|ada_|(?<!cap)turing|volta"
    r"|compute_?cap|(?<![a-z])(cuda|gpu|sm|compute|device|target|nvcc)_arch(s|itecture)?(?![a-z])|(^|\.)_*(archs?(_list)?|architecture)$|gfx\d|device_prop"
)
"""Identifiers that may stand for a test of the architecture."""

_EXACT = re.compile(
    r"((cc|sm|device|dev|cuda|gpu|capability|cap|compute|arch)_?)?(major|minor)"
    r"|((device|dev|cuda|gpu|compute|target|current|cur)_)?(sm|cc)|(sm_)?arch_(num(ber)?|int)"
)
"""Names that stand for a part of the compute capability, unless they are a version's."""

_INSTRUCTIONS = re.compile(r"(?:\w+\.)*(?:cute|cutlass)\.arch(?:\.\w+)*")
"""CuTe's module of a device's instructions, as in ``cute.arch.warp_idx()``: no test of anything."""

_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
_OUTER = (b"nonlocal", b"global ", b"global\t", b"global\f", b"global\\")
"""One of these stands in whatever binds names outside of the function that it stands in."""

DEPTH = 8
"""How many imports of one name are followed from one to the next."""

REACH = 5
"""How many definitions away a test of the architecture is looked for."""

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"

_Node = TypeVar("_Node", bound=ast.AST)
_Told = TypeVar("_Told")
_Answer = TypeVar("_Answer")


_EVERY_LINE = range(1 << 30)
"""The lines of a file that is not at hand."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A name is one expression."""

    value: ast.expr


@dataclass(frozen=True, slots=True)
class Element:
    """A name is one element of an unpacked expression."""

    value: ast.expr
    index: int


@dataclass(frozen=True, slots=True)
class Defined:
    """A name is a function."""

    node: FunctionNode


@dataclass(frozen=True, slots=True)
class Imported:
    """A name comes from a module; the module itself where ``name`` is None."""

    module: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Other:
    """A name is a class, a loop variable, or bound in another way that is not followed.

    Args:
        node: The class.
    """

    node: ast.ClassDef | None = field(default=None, compare=False)


Binding: TypeAlias = "Assigned | Element | Defined | Imported | Other"


@dataclass(slots=True, eq=False)
class Module:
    """One module of the distribution.

    Args:
        path: From where the distribution is imported.
        tree: Its syntax.
        bindings: Every name bound at its top level, with all that it is bound to.
        stars: Modules whose names are all imported.
        walruses: The lines on which an expression may bind a name, in order.
        outer: Whether its functions may bind names outside of themselves.
    """

    path: str
    tree: ast.Module
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    walruses: Sequence[int] = _EVERY_LINE
    outer: bool = True

    @property
    def name(self) -> str:
        """Its dotted name."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def exports(self, name: str) -> bool:
        """Whether ``from module import *`` takes a name."""
        match self.bindings.get("__all__"):
            case [Assigned(value=ast.List(elts=names) | ast.Tuple(elts=names))]:
                return any(isinstance(n, ast.Constant) and n.value == name for n in names)
        return not name.startswith("_")

    @property
    def package(self) -> list[str]:
        """The package that relative imports start from."""
        return self.path.split("/")[:-1]


@dataclass(frozen=True, slots=True)
class Found:
    """What a name stands for, and in which module that is to be read."""

    module: Module
    bindings: tuple[Binding, ...]
    name: str


class Package:
    """The modules of one distribution, parsed when they are asked for."""

    reach: ClassVar[int] = REACH

    def __init__(self, read: Callable[[str], bytes | None]):
        self._read = read
        self._modules: dict[str, Module | None] = {}
        # By the node itself, not by its id: a node that is gone would lend its id to another.
        self._smells: dict[ast.AST, bool] = {}
        self._names: dict[ast.AST, tuple[frozenset[str], bool]] = {}
        self._answers: dict[Hashable, Any] = {}
        self._told: dict[tuple[Callable[[Any], Any], ast.AST], Any] = {}

    def once(self, tell: Callable[[_Node], _Told], node: _Node) -> _Told:
        """What some code tells by itself, wherever it stands: worked out once."""
        key = (tell, node)
        if key not in self._told:
            self._told[key] = tell(node)
        told: _Told = self._told[key]
        return told

    def asked(self, place: Hashable, tell: Callable[[], _Answer]) -> _Answer:
        """What is told of a place: worked out once."""
        if place not in self._answers:
            self._answers[place] = tell()
        answer: _Answer = self._answers[place]
        return answer

    def module(self, path: str) -> Module | None:
        """A module by its path; None if there is none, or it does not parse."""
        if path not in self._modules:
            data = self._read(path)
            self._modules[path] = None if data is None else parse_module(path, data)
        return self._modules[path]

    def read(self, path: str) -> bytes | None:
        """A file of the distribution that is no code."""
        return self._read(path)

    def put(self, path: str, tree: ast.Module, source: bytes | None = None) -> Module:
        """Read a module from its syntax instead."""
        self._modules[path] = module = read_module(path, tree, source)
        return module

    def by_name(self, name: str) -> Module | None:
        """A module by its dotted name; None for one outside the distribution."""
        base = name.replace(".", "/")
        return self.module(f"{base}.py") or self.module(f"{base}/__init__.py")

    def lookup(self, module: Module, name: str, depth: int = DEPTH) -> Found | None:
        """Follow a name through static imports to where it is bound; None if it leads outside."""
        if depth == 0:
            return None
        bindings = module.bindings.get(name)
        if bindings is None:
            for star in module.stars:
                target = self.by_name(star)
                if target is not None and target.exports(name):
                    found = self.lookup(target, name, depth - 1)
                    if found is not None:
                        return found
            return self.lazily(module, name, depth)
        match bindings:
            case [Imported(name=str()) as imported] if not self.is_module(imported):
                return self.follow(imported, depth)
        return Found(module, tuple(bindings), name)

    def lazily(self, module: Module, name: str, depth: int) -> Found | None:
        """What a module gives for a name that it does not bind; for a proof it gives nothing."""
        return None

    def is_module(self, imported: Imported) -> bool:
        """Whether an imported name is a module of the distribution."""
        name = f"{imported.module}.{imported.name}" if imported.name else imported.module
        return self.by_name(name) is not None

    def follow(self, imported: Imported, depth: int = DEPTH) -> Found | None:
        """What an imported name stands for; None if it leads outside."""
        target = self.by_name(imported.module)
        if target is None or imported.name is None:
            return None
        return self.lookup(target, imported.name, depth - 1)

    def member(self, module: Module, dotted: Sequence[str]) -> Found | None:
        """A name of another module of the distribution: ``utils.is_sm100_supported``."""
        found = self.lookup(module, dotted[0])
        names = list(dotted[1:])
        if found is None or len(found.bindings) != 1:
            return None
        match found.bindings[0]:
            case Imported(module=origin, name=None):
                name = origin
            case Imported(module=origin, name=str(original)):
                name = f"{origin}.{original}"
            case _:
                return None
        while len(names) > 1 and self.by_name(f"{name}.{names[0]}") is not None:
            name, names = f"{name}.{names[0]}", names[1:]
        target = self.by_name(name)
        return self.lookup(target, names[0]) if target and len(names) == 1 else None

    def origin(self, module: Module, dotted: Sequence[str]) -> str | None:
        """The dotted name under which a name is defined, as far as it can be told."""
        found = self.member(module, dotted) if len(dotted) > 1 else self.lookup(module, dotted[0])
        if found is not None and not isinstance(found.bindings[0], Imported):
            return f"{found.module.name}.{found.name}"
        match module.bindings.get(dotted[0]):
            case [Imported(module=origin, name=original)]:
                return ".".join([*filter(None, (origin, original)), *dotted[1:]])
        return None

    def names_a_test(self, node: ast.AST) -> bool:
        """Whether code has a name that may stand for a test of the architecture."""
        return self._identifiers(node)[1]

    def smells(self, module: Module, node: ast.AST) -> bool:
        """Whether code may test the architecture, in itself or in what it calls."""
        if node in self._smells:
            return self._smells[node]
        seen: set[ast.AST] = {node}
        level = [(module, node)]
        for _ in range(self.reach):
            following: list[tuple[Module, ast.AST]] = []
            for place, part in level:
                known = self._smells.get(part)
                names, smell = self._identifiers(part)
                if known or smell:
                    self._smells[node] = True
                    return True
                if known is False:
                    continue
                for name in names:
                    for inner_place, inner in self._defined(place, name):
                        if inner not in seen:
                            seen.add(inner)
                            following.append((inner_place, inner))
            level = following
        if not level:
            self._smells.update(dict.fromkeys(seen, False))
        self._smells[node] = False
        return False

    def tests(self, what: Found | ast.AST) -> None:
        """Take some code, or what a name stands for, as known to test the architecture."""
        if isinstance(what, ast.AST):
            self._smells[what] = True
            return
        for binding in what.bindings:
            self._smells.update(dict.fromkeys(_parts(binding), True))

    def binding_smells(self, module: Module, binding: Binding) -> bool:
        """Whether what a name is bound to may test the architecture."""
        return any(self.smells(module, part) for part in _parts(binding))

    def _defined(self, module: Module, name: str) -> Iterator[tuple[Module, ast.AST]]:
        """What a name, or one of another module such as ``utils.is_cuda``, is bound to."""
        dotted = name.split(".")
        found = self.member(module, dotted) if len(dotted) > 1 else self.lookup(module, name)
        if found is not None:
            for binding in found.bindings:
                for part in _parts(binding):
                    yield found.module, part

    def _identifiers(self, node: ast.AST) -> tuple[frozenset[str], bool]:
        """The names in some code, and whether an identifier in it smells of a test."""
        if node not in self._names:
            every = frozenset(identifiers(node))
            smell = any(_smell(n) == "part" and not _INSTRUCTIONS.fullmatch(n) for n in every)
            names = frozenset(name.lstrip(".") for name in every if not name.startswith("."))
            self._names[node] = (names, smell)
        return self._names[node]


def _parts(binding: Binding) -> Sequence[ast.AST]:
    match binding:
        case Assigned(value=value) | Element(value=value):
            return [value]
        case Defined(node=node):
            return node.body
        case Imported() | Other():
            return []


def hides(name: str, *, of: str = "") -> str:
    """Why a name that is not followed may test the architecture; empty if it cannot.

    Args:
        of: The source of what it is a member of, such as ``version.major``.
    """
    smell = _smell(name)
    if not smell or _INSTRUCTIONS.fullmatch(of):
        return ""
    if smell == "exact" and re.search(r"(?i)version", of):
        return ""
    return f"{of or name} may test the architecture, and its meaning is not known"


@lru_cache(maxsize=1 << 16)
def _smell(name: str) -> Literal["", "part", "exact"]:
    """Whether a name may stand for a test of the architecture, or for a part of the capability."""
    if SMELL.search(name):
        return "part"
    return "exact" if _EXACT.fullmatch(name) else ""


def binds(node: ast.AST) -> set[str]:
    """The names that a lambda or a comprehension binds."""
    match node:
        case ast.Lambda(args=args):
            return {n.arg for n in ast.walk(args) if isinstance(n, ast.arg)}
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            targets = [n for g in node.generators for n in ast.walk(g.target)]
            return {n.id for n in targets if isinstance(n, ast.Name)}
    return set()


def names_in(node: ast.AST) -> frozenset[str]:
    """The names in some code, those that it binds included."""
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def bound_in(node: ast.AST) -> frozenset[str]:
    """The names that lambdas and comprehensions in some code bind."""
    return frozenset(name for part in ast.walk(node) for name in binds(part))


def dotted_name(node: ast.expr) -> list[str] | None:
    """The names in ``a.b.c``; None for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else None


def name_of(node: ast.expr) -> str:
    """The name itself, or that of the attribute; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def is_plain(node: ast.expr) -> bool:
    """Whether it is made of names, calls without arguments, ``and``, ``or`` and ``not`` alone.

    Such an alias is followed, so that ``_is_cuda`` and ``is_cuda()`` are one atom.
    """
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value):
            return is_plain(value)
        case ast.Call(func=func, args=[], keywords=[]):
            return is_plain(func)
        case ast.BoolOp(values=values):
            return all(map(is_plain, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return is_plain(operand)
    return False


def identifiers(node: ast.AST) -> Iterator[str]:
    """The identifiers in some code, annotations left out; ``.name`` for a member of an object."""
    match node:
        case ast.Name(id=name):
            yield name
            return
        case ast.Attribute(attr=name):
            dotted = dotted_name(node)
            yield ".".join(dotted) if dotted is not None else f".{name}"
        case ast.keyword(arg=str(name)):
            yield f".{name}"
        case ast.arg() | ast.Constant():
            return
    for field_name, value in ast.iter_fields(node):
        if field_name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from identifiers(child)


def parse_module(path: str, source: bytes) -> Module | None:
    """Read a module's top level; None if it does not parse."""
    try:
        return read_module(path, ast.parse(source), source)
    except (SyntaxError, ValueError):
        return None


def read_module(path: str, tree: ast.Module, source: bytes | None = None) -> Module:
    """Read a module's top level.

    Args:
        path: From where the distribution is imported.
        tree: Its syntax.
        source: Its text, if it is at hand: what that has not is not looked for in all of its syntax.
    """
    walruses = _EVERY_LINE if source is None else _lines_with(b":=", source)
    outer = source is None or _binds_outside(source)
    module = Module(path, tree, walruses=walruses, outer=outer)
    for statement in tree.body:
        bind(module, statement, module.bindings)
    for node in statements_in(tree) if outer else ():
        for name in node.names if isinstance(node, ast.Global) else ():
            module.bindings.setdefault(name, []).append(Other())
    return module


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """A statement or a module and the statements in its blocks, as ``ast.walk`` has them.

    It goes into no expression, of which there are ten times as many.
    """
    todo = [node]
    for part in todo:
        yield part
        for name in part._fields:
            if name in _BLOCKS:
                todo += getattr(part, name)


def _lines_with(word: bytes, source: bytes) -> Sequence[int]:
    """The lines of a source that have a word, from 1."""
    if word not in source:
        return ()
    if b"\r" in source:  # a line may end in that alone
        return _EVERY_LINE
    return [number for number, line in enumerate(source.split(b"\n"), 1) if word in line]


def _is_on(lines: Sequence[int], node: ast.stmt) -> bool:
    """Whether a statement has one of some lines."""
    if not lines:
        return False
    place = bisect_left(lines, node.lineno)
    return place < len(lines) and lines[place] <= (node.end_lineno or node.lineno)


def _binds_outside(source: bytes) -> bool:
    """Whether a statement may bind names outside of its function: not where a text speaks of it."""
    for word in _OUTER:
        place = source.find(word)
        while place >= 0:
            before = source[source.rfind(b"\n", 0, place) + 1 : place].strip()
            if not before or before.endswith((b";", b":")) or b"\r" in before:
                return True
            place = source.find(word, place + 1)
    return False


def local_bindings(module: Module, function: FunctionNode) -> dict[str, list[Binding]]:
    """Every name bound in a function; its parameters are bound in a way that is not followed."""
    bindings: dict[str, list[Binding]] = {}
    arguments = function.args
    for arg in (
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        *filter(None, [arguments.vararg, arguments.kwarg]),
    ):
        bindings[arg.arg] = [Other()]
    for statement in function.body:
        bind(module, statement, bindings)
    for node in statements_in(function) if module.outer else ():
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                bindings.pop(name, None)
    return bindings


def bind(module: Module, node: ast.stmt, bindings: dict[str, list[Binding]]) -> None:
    """Add the names that a statement binds, those in its blocks included."""
    # No closure that calls itself: such a cycle keeps the whole tree until the next collection.
    for name, binding in _bound_by(module, node):
        known = bindings.setdefault(name, [])
        if binding not in known:
            known.append(binding)
    for child in _nested(node):
        bind(module, child, bindings)


def _bound_by(module: Module, node: ast.stmt) -> Iterator[tuple[str, Binding]]:
    """The names that a statement binds itself, and what to."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for part in targets:
                yield from _targets(part, value)
        case ast.AnnAssign(target=part, value=annotated):
            if annotated is not None:
                yield from _targets(part, annotated)
        case ast.AugAssign(target=part) | ast.For(target=part) | ast.AsyncFor(target=part):
            yield from _targets(part, None)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, Defined(node)
        case ast.ClassDef(name=name):
            yield name, Other(node)
        case ast.Import(names=names):
            for alias in names:
                top = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or top, Imported(top, None)
        case ast.ImportFrom(names=names):
            origin = _origin(module, node)
            for alias in names:
                if alias.name == "*":
                    module.stars.append(origin)
                else:
                    yield alias.asname or alias.name, Imported(origin, alias.name)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _targets(item.optional_vars, None)
        case ast.Try(handlers=handlers):
            for handler in handlers:
                if handler.name is not None:
                    yield handler.name, Other()
        case ast.Match(cases=cases):
            for name in {n for c in cases for n in _captures(c.pattern)}:
                yield name, Other()
    for walrus in _walruses(node) if _is_on(module.walruses, node) else ():
        yield from _targets(walrus.target, walrus.value)


def _targets(node: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, Binding]]:
    """The names in the target of an assignment."""
    match node:
        case ast.Name(id=name):
            yield name, Assigned(value) if value is not None else Other()
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for index, part in enumerate(parts):
                if isinstance(part, ast.Name) and value is not None:
                    yield part.id, Element(value, index)
                else:
                    yield from _targets(part, None)
        case ast.Starred(value=inner):
            yield from _targets(inner, None)


def _nested(node: ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            # Never so when the code runs.
            yield from node.orelse
            return
        case ast.Match(cases=cases):
            for case in cases:
                yield from case.body
            return
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield from handler.body


def _walruses(node: ast.AST) -> Iterator[ast.NamedExpr]:
    """The ``:=`` in a statement's own expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.Lambda | ast.match_case):
            continue
        if isinstance(child, ast.NamedExpr):
            yield child
        yield from _walruses(child)


def _captures(pattern: ast.pattern) -> Iterator[str]:
    for node in ast.walk(pattern):
        for name in ("name", "rest"):
            if isinstance(captured := getattr(node, name, None), str):
                yield captured


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    package = module.package
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])
