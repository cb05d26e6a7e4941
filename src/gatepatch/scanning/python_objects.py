"""What is known of a tuple's parts, a record's fields and a class's attributes and methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from gatepatch.gates import python_calls
from gatepatch.gates.python_scope import (
    Binding,
    Found,
    FunctionNode,
    Imported,
    Module,
    Other,
    Package,
    hides,
    local_bindings,
    name_of,
    statements_in,
)
from gatepatch.gates.python_values import Callee, Const, Frame, Held, Opaque, Value
from gatepatch.scanning.python_flow import Flow, functions_around

_BASES = 4
"""How many classes are gone through from one to what it is made of."""

_RECORDS = frozenset({"NamedTuple", "dataclass"})


@dataclass(frozen=True, slots=True)
class _Attribute:
    """What a class binds a name to, and where that is to be read."""

    node: ast.expr | FunctionNode
    module: Module


_Set: TypeAlias = "tuple[ast.expr, FunctionNode]"


def _class_around(body: Sequence[ast.stmt], line: int) -> ast.ClassDef | None:
    """The innermost class around a line."""
    found = None
    for node in body:
        if node.lineno > line:
            break
        if line <= (node.end_lineno or node.lineno):
            if isinstance(node, ast.ClassDef):
                found = node
            for field in ("body", "orelse", "finalbody"):
                inner = _class_around(getattr(node, field, ()), line)
                found = inner or found
    return found


def _own(node: ast.ClassDef) -> Mapping[str, ast.expr | FunctionNode]:
    """What the body of a class binds, each name once."""
    found: dict[str, ast.expr | FunctionNode] = {}
    for part in node.body:
        match part:
            case ast.FunctionDef(name=name):
                found[name] = part
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def _returned(node: ast.FunctionDef) -> Sequence[ast.expr | None]:
    return [part.value for part in statements_in(node) if isinstance(part, ast.Return)]


def _set_by_methods(node: ast.ClassDef) -> Mapping[str, list[_Set]]:
    """What the methods of a class assign to its instances' attributes."""
    found: dict[str, list[_Set]] = {}
    for method in node.body:
        for part in statements_in(method) if isinstance(method, ast.FunctionDef) else ():
            match part:
                case ast.Assign(targets=[target], value=value):
                    pass
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    pass
                case ast.AugAssign(target=target, value=value):
                    pass
                case _:
                    continue
            for inner in ast.walk(target):
                match inner:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name):
                        assert isinstance(method, ast.FunctionDef)
                        found.setdefault(name, []).append((value, method))
                        if inner is not target or isinstance(part, ast.AugAssign):
                            found[name].append((value, method))  # not known as a whole
    return found


def _is_record(node: ast.ClassDef) -> bool:
    """Whether a class is made of the fields that its body names, in order."""
    named = [*node.bases, *node.decorator_list]
    plain = [one.func if isinstance(one, ast.Call) else one for one in named]
    names = {name_of(one) for one in plain}
    return not names.isdisjoint(_RECORDS) and "__init__" not in _own(node)


def _field_names(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        match part:
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def _left_open(node: ast.ClassDef) -> frozenset[str]:
    """The names that a class says to be a class's, and leaves to those that are made of it."""
    return frozenset(
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign)
        and part.value is None
        and isinstance(part.target, ast.Name)
        and isinstance(part.annotation, ast.Subscript)
        and name_of(part.annotation.value) == "ClassVar"
    )


class Objects(Flow):
    """An evaluator that looks into tuples, records and classes of the package."""

    aliases: frozenset[str] = frozenset()
    """Names that the file binds to tests; with a dot, attributes of ``self``."""

    def tells(self, node: FunctionNode | ast.Lambda) -> bool:
        """Whether a function is looked into that tests nothing: a least capability is a number."""
        if not isinstance(node, ast.FunctionDef) or not hides(node.name):
            return False
        returned = self.package.once(_returned, node)
        return bool(returned) and all(
            isinstance(one, ast.Tuple)
            or (isinstance(one, ast.Constant) and isinstance(one.value, int))
            for one in returned
        )

    def gathered(self, node: ast.expr, text: str, parts: Sequence[Value]) -> Value:
        """A collection of which not all is known: a dictionary's keys come before its values."""
        whole = super().gathered(node, text, parts)
        if not isinstance(whole, Opaque):
            return whole
        if isinstance(node, ast.Tuple | ast.List):
            return replace(whole, held=Held(items=dict(enumerate(parts))))
        if isinstance(node, ast.Dict):
            keys, values = parts[: len(parts) // 2], parts[len(parts) // 2 :]
            known = [key.value for key in keys if isinstance(key, Const)]
            if len(known) == len(keys):
                items = dict(zip(known, values, strict=True))
                return replace(whole, held=Held(items=items, is_mapping=True))
        return whole

    def _item(self, base: Value, index: Value, text: str) -> Value:
        if isinstance(base, Opaque) and base.held and isinstance(index, Const):
            items = base.held.items
            if items is not None and _is_in(index.value, items):
                return items[index.value]
        return super()._item(base, index, text)

    def _bound(self, name: str, bindings: tuple[Binding, ...], frame: Frame) -> Value:
        match bindings:
            case (Other(node=ast.ClassDef() as node),):
                return Opaque(name, hides(name), Held(made_by=node, module=frame.module))
        return super()._bound(name, bindings, frame)

    def _name(self, name: str, frame: Frame) -> Value:
        value = super()._name(name, frame)
        if isinstance(value, Opaque) and value.held is None and not frame.is_local(name):
            held = self.package.asked(
                (frame.module, "annotated", name), lambda: self._annotated(name, frame)
            )
            return replace(value, held=held) if held else value
        return value

    def _annotated(self, name: str, frame: Frame) -> Held | None:
        """What a module says a name of it to be an instance of."""
        module = frame.module
        for _ in range(2):
            match module.bindings.get(name):
                case [imported] if origin := getattr(imported, "module", None):
                    name = getattr(imported, "name", None) or name
                    target = self.package.by_name(origin)
                    if target is None:
                        return None
                    module = target
                case _:
                    break
        for node in module.tree.body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=own), annotation=ast.Name(id=kind)) if (
                    own == name
                ):
                    found = self._class(kind, module)
                    return Held(made_by=found[0], module=found[1]) if found else None
        return None

    def _class(self, name: str, module: Module) -> tuple[ast.ClassDef, Module] | None:
        match self.package.lookup(module, name):
            case Found(module=place, bindings=(Other(node=ast.ClassDef() as node),)):
                return node, place
        return None

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls" as name), attr=attr) if (
                name not in frame.values and hasattr(node, "lineno")
            ):
                found = self._own_attribute(name, attr, node, frame)
                if found is not None:
                    return found
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name[:1].isupper():
                value = super()._value(node, frame)
                if isinstance(value, Opaque) and value.held is None:
                    held = self._made(node, frame)
                    return replace(value, held=held) if held else value
                return value
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                isinstance(frame.locals.get(name, (None,))[0], Imported)
                and name not in frame.values
                and name not in frame.hidden
            ):
                found = self.module_attribute([name, attr], frame)
                return super()._value(node, frame) if found is None else found
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                hides(attr) and name not in frame.values and hasattr(node, "lineno")
            ):
                return self._of_parameter(name, attr, node, frame) or super()._value(node, frame)
        return super()._value(node, frame)

    def _of_parameter(self, name: str, attr: str, node: ast.expr, frame: Frame) -> Value | None:
        """A method that gives a constant, of the class that a parameter is said to be of."""
        module, line = frame.module, node.lineno
        around = (module, "functions", line)
        functions = self.package.asked(around, lambda: [*functions_around(module.tree.body, line)])
        for function in reversed(functions):
            for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
                match arg:
                    case ast.arg(arg=own, annotation=ast.Name(id=kind)) if own == name:
                        found = self._class(kind, module)
                        told = found and self._attribute_of(*found, attr)
                        if (
                            told
                            and isinstance(told.node, ast.FunctionDef)
                            and self.tells(told.node)
                        ):
                            static = "staticmethod" in python_calls.decorators(told.node)
                            args = () if static else (Opaque(name),)
                            return Callee(told.node, Frame(told.module), args)
                        return None
                    case ast.arg(arg=own) if own == name:
                        return None
        return None

    def _made(self, node: ast.Call, frame: Frame) -> Held | None:
        """The fields of a record that is made; None for something else."""
        match self.value(node.func, frame):
            case Opaque(held=Held(made_by=ast.ClassDef() as kind, module=Module() as module)):
                if not self.package.once(_is_record, kind):
                    return None
            case _:
                return None
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            match node.args:
                case [ast.Starred(value=spread)]:
                    pair = self.iterated(self.value(spread, frame))
                    if not isinstance(pair, Const) or not isinstance(pair.value, tuple | list):
                        return None
                    given = [Const(part, pair.device) for part in pair.value]
                case _:
                    return None
            values: list[Value] = [*given]
        else:
            values = [self.value(arg, frame) for arg in node.args]
        own = self.package.once(_own, kind)
        names = [*_field_names(kind)]
        fields: dict[str, Value] = {
            name: self.value(default, Frame(module))
            for name in names
            if isinstance(default := own.get(name), ast.expr) and isinstance(default, ast.Constant)
        }
        fields.update(zip(names, values, strict=False))
        fields.update({k.arg: self.value(k.value, frame) for k in node.keywords if k.arg})
        return Held(fields=fields, made_by=kind, module=module)

    def module_attribute(self, dotted: Sequence[str], frame: Frame) -> Value | None:
        """A name of another module of the distribution, one that a function imports included."""
        match frame.locals.get(dotted[0]):
            case (Imported() as imported,):
                own: list[Binding] = [imported]
                known = {**frame.module.bindings, dotted[0]: own}
                found = self.package.member(replace(frame.module, bindings=known), dotted)
                return self.found(dotted[-1], found) if found is not None else None
        return super().module_attribute(dotted, frame)

    def _member(self, base: Value, name: str) -> Value:
        if isinstance(base, Opaque) and base.held:
            if name in base.held.fields:
                return base.held.fields[name]
            found = self._of_class(base, name)
            if found is not None:
                return found
        return super()._member(base, name)

    def _of_class(self, base: Opaque, name: str) -> Value | None:
        """What the class of a value, or one that it is made of, binds a name to."""
        held = base.held
        if held is None or held.made_by is None or held.module is None:
            return None
        found = self._attribute_of(held.made_by, held.module, name)
        if found is None:
            return None
        match found.node:
            case ast.FunctionDef() as method:
                kinds = set(python_calls.decorators(method))
                args = () if "staticmethod" in kinds else (base,)
                callee = Callee(method, Frame(found.module), args)
                if kinds & {"property", "cached_property"}:
                    return python_calls.called(self, f"{base.text}.{name}", callee)
                return callee
            case ast.Constant(value=bool()):
                return Opaque(f"{base.text}.{name}")  # for another class to set
            case ast.Constant() if self.package.once(_is_record, held.made_by) and name in (
                _field_names(held.made_by)
            ):
                return Opaque(f"{base.text}.{name}", hides(name))  # a default, for whoever makes it
            case ast.expr() as value:
                return self.value(value, Frame(found.module))
        return None

    def _attribute_of(
        self, node: ast.ClassDef, module: Module, name: str, bases: int = _BASES
    ) -> _Attribute | None:
        own = self.package.once(_own, node)
        if name in own:
            return _Attribute(own[name], module)
        for base in node.bases if bases else ():
            if isinstance(base, ast.Name) and (found := self._class(base.id, module)):
                inner = self._attribute_of(*found, name, bases - 1)
                if inner is not None:
                    return inner
        return None

    def _of_those_made_of_it(self, kind: ast.ClassDef, attr: str, frame: Frame) -> Value | None:
        """One of what the classes of the file that are made of one bind a name to, that leaves it to them."""
        module = frame.module
        if attr not in self.package.once(_left_open, kind):
            return None
        mades = {kind.name}
        values: list[Value] = []
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not mades.isdisjoint(map(name_of, node.bases)):
                mades.add(node.name)
                bound = self.package.once(_own, node).get(attr)
                if isinstance(bound, ast.expr):
                    values.append(self.value(bound, Frame(module)))
        known = [value.value for value in values if isinstance(value, Const)]
        if not known or len(known) != len(values):
            return None
        return Opaque(f"self.{attr}", "", Held(among=tuple(known)))

    def _own_attribute(self, name: str, attr: str, node: ast.expr, frame: Frame) -> Value | None:
        """An attribute of ``self`` or ``cls``, where its class tells what it is."""
        module = frame.module
        line = node.lineno
        kind = self.package.asked(
            (module, "class", line), lambda: _class_around(module.tree.body, line)
        )
        if kind is None:
            return None
        base = Opaque(name, "", Held(made_by=kind, module=module))
        sets = self.package.once(_set_by_methods, kind).get(attr)
        if sets is None:
            return self._of_class(base, attr) or self._of_those_made_of_it(kind, attr, frame)
        match sets:  # what its body says is what it is before
            case [(value, method)] if value not in self._active and self.depth < self.deepest:
                told = not self.aliases.isdisjoint((f".{attr}", f"?.{attr}")) or hides(attr)
                if not (told or self.package.smells(module, value)):
                    return None
                names = locals_of(self.package, module, method)
                return self.again(value, Frame(module, {}, names))
        return None


def locals_of(
    package: Package, module: Module, function: FunctionNode
) -> Mapping[str, tuple[Binding, ...]]:
    """The names that a function binds."""

    def tell() -> dict[str, tuple[Binding, ...]]:
        return {name: tuple(bound) for name, bound in local_bindings(module, function).items()}

    return package.asked((module, "locals", function), tell)


def _is_in(key: Any, items: Mapping[Any, Value]) -> bool:
    try:
        return key in items
    except TypeError:
        return False
