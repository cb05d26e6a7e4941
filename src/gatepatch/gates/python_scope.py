"""What the names of a Python module stand for: read, never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

SMELL = re.compile(
    r"(?i)(?<![a-z])sm_?\d{2,3}|sm_version|device_sm|capab|blackwell|hopper|ampere|ada_|turing|volta"
    r"|compute_?cap|(?<![a-z])(cuda_|gpu_|sm_|compute_)?arch(?![a-z])|gfx\d|device_prop"
)
"""Identifiers that may stand for a test of the architecture."""

DEPTH = 8
"""How many definitions are followed from one to the next."""

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


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
    """A name is a class, a loop variable, or bound in another way that is not followed."""


Binding: TypeAlias = "Assigned | Element | Defined | Imported | Other"


@dataclass(slots=True)
class Module:
    """One module of the distribution.

    Args:
        path: From where the distribution is imported.
        tree: Its syntax.
        bindings: Every name bound at its top level, with all that it is bound to.
        stars: Modules whose names are all imported.
    """

    path: str
    tree: ast.Module
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

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

    def __init__(self, read: Callable[[str], bytes | None]):
        self._read = read
        self._modules: dict[str, Module | None] = {}
        self._smells: dict[int, bool] = {}

    def module(self, path: str, source: bytes | None = None) -> Module | None:
        """A module by its path; None if there is none, or it does not parse."""
        if path not in self._modules:
            data = self._read(path) if source is None else source
            self._modules[path] = None if data is None else parse_module(path, data)
        return self._modules[path]

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
                found = self.lookup(target, name, depth - 1) if target else None
                if found is not None:
                    return found
            return None
        match bindings:
            case [Imported(module=origin, name=str(original))]:
                if self.by_name(f"{origin}.{original}") is not None:
                    return Found(module, tuple(bindings), name)
                target = self.by_name(origin)
                return self.lookup(target, original, depth - 1) if target else None
        return Found(module, tuple(bindings), name)

    def smells(self, module: Module, node: ast.AST, depth: int = DEPTH) -> bool:
        """Whether code may test the architecture, in itself or in what it calls."""
        if depth == 0:
            return False
        key = id(node)
        if key not in self._smells:
            self._smells[key] = False  # recursion: a cycle smells if something else in it does
            self._smells[key] = any(
                SMELL.search(name) or self._name_smells(module, name, depth)
                for name in identifiers(node)
            )
        return self._smells[key]

    def _name_smells(self, module: Module, name: str, depth: int) -> bool:
        found = self.lookup(module, name)
        if found is None:
            return False
        for binding in found.bindings:
            match binding:
                case Assigned(value=value) | Element(value=value):
                    if self.smells(found.module, value, depth - 1):
                        return True
                case Defined(node=node):
                    if any(self.smells(found.module, part, depth - 1) for part in node.body):
                        return True
                case Imported() | Other():
                    continue
        return False


def identifiers(node: ast.AST) -> Iterator[str]:
    """The identifiers in some code, annotations left out."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(attr=name):
            yield name
        case ast.keyword(arg=str(name)):
            yield name
        case ast.arg():
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
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    module = Module(path, tree)
    for statement in tree.body:
        bind(module, statement, module.bindings)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            for name in node.names:
                module.bindings.setdefault(name, []).append(Other())
    return module


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
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                bindings.pop(name, None)
    return bindings


def bind(module: Module, node: ast.stmt, bindings: dict[str, list[Binding]]) -> None:
    """Add the names that a statement binds, those in its blocks included."""

    def add(name: str, binding: Binding) -> None:
        known = bindings.setdefault(name, [])
        if binding not in known:
            known.append(binding)

    def target(node: ast.expr, value: ast.expr | None) -> None:
        match node:
            case ast.Name(id=name):
                add(name, Assigned(value) if value is not None else Other())
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for index, part in enumerate(parts):
                    if isinstance(part, ast.Name) and value is not None:
                        add(part.id, Element(value, index))
                    else:
                        target(part, None)
            case ast.Starred(value=inner):
                target(inner, None)

    match node:
        case ast.Assign(targets=targets, value=value):
            for part in targets:
                target(part, value)
        case ast.AnnAssign(target=part, value=annotated):
            if annotated is not None:
                target(part, annotated)
        case ast.AugAssign(target=part):
            target(part, None)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            add(name, Defined(node))
        case ast.ClassDef(name=name):
            add(name, Other())
        case ast.Import(names=names):
            for alias in names:
                if alias.asname:
                    add(alias.asname, Imported(alias.name, None))
                else:
                    top = alias.name.split(".")[0]
                    add(top, Imported(top, None))
        case ast.ImportFrom(names=names):
            origin = _origin(module, node)
            for alias in names:
                if alias.name == "*":
                    module.stars.append(origin)
                else:
                    add(alias.asname or alias.name, Imported(origin, alias.name))
        case ast.For(target=part) | ast.AsyncFor(target=part):
            target(part, None)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    target(item.optional_vars, None)
    for child in _nested(node):
        bind(module, child, bindings)


def _nested(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield from handler.body


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    package = module.package
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])
