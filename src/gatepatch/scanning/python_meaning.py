"""What a Python condition means to a scan: as for a proof, and by the names where that ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from gatepatch.arch import Arch
from gatepatch.boolean import Bool, and_, atom, not_
from gatepatch.gates import python_calls
from gatepatch.gates.python_evaluator import Evaluator
from gatepatch.gates.python_scope import (
    Assigned,
    Binding,
    FunctionNode,
    Package,
    dotted_name,
    hides,
    name_of,
)
from gatepatch.gates.python_values import (
    Const,
    Frame,
    Opaque,
    Properties,
    Raises,
    Value,
    from_bool,
    of_device,
    reason,
    text_of,
    truth,
)
from gatepatch.scanning import names
from gatepatch.scanning.python_free import Free, is_own
from gatepatch.scanning.python_mappings import is_cache, is_something, items_of, keys_of, picked
from gatepatch.scanning.python_tuples import entry_of, membership, rows, same_parts
from gatepatch.scanning.python_words import (
    TEXT_METHODS,
    is_of_models,
    is_other_word,
    is_permission,
    is_targets,
    spelt_like,
    targets,
)
from gatepatch.scanning.speaking import is_support, says, speaks

_MEMBER = re.compile(r"(?:\w+\.)*\w*[Aa]rch\w*\.[sS][mM]_?(\d{2,3})([af]?)")


def _member(value: Value) -> tuple[int, int] | None:
    """The number and the suffix's place of an enumeration's member; None if it is none."""
    if not isinstance(value, Opaque) or (found := _MEMBER.fullmatch(value.text)) is None:
        return None
    return int(found[1]), ("", "a", "f").index(found[2])


def _members(text: str) -> list[tuple[int, int]]:
    """The members of an enumeration that a list is made of; none where something else is in it."""
    found = []
    for part in text.strip("()[]{}").split(","):
        # A text may be that of a whole table: most are given up at their first part.
        if part.strip():
            member = _member(Opaque(part.strip()))
            if member is None:
                return []
            found.append(member)
    return found


_FAMILY = 2
"""The place of ``f`` among the suffixes."""


_CAPABILITY = frozenset(
    {"get_device_capability", "get_compute_capability", "get_cuda_capability", "device_capability"}
)
"""Functions that return a pair in every package seen: PyTorch's own, and what wraps it."""

_PLATFORM: Mapping[str, Callable[[Arch, Arch], bool]] = {
    "has_device_capability": lambda arch, asked: arch >= asked,
    "is_device_capability": lambda arch, asked: arch == asked,
    "is_device_capability_family": lambda arch, asked: arch.major == asked.major,
}
"""Methods of vLLM's platforms, and of what was made after them: the number is 100 or (10, 0)."""

_LOOKED = frozenset({"get", "getattr", "is_family_of"})

_TRANSPARENT = frozenset({"const_expr", "constexpr", "bool", "dict", "MappingProxyType"})
"""Functions whose truth, or what they hold, is that of what they are given."""

_CACHED = re.compile(r"(?i)\w*cached?(?:_\w+)?|\w*once\w*|staticmethod|classmethod|property")
"""Decorators after which a function returns what its body says."""

_SHORT = 30
"""How many characters a text may have that is worked on."""


_WORDS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}

_OF_TENSORS = frozenset({"shape", "dtype", "ndim"})
"""Attributes that say nothing of an architecture, whatever it was that made the tensor."""

_PLAIN = (ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.JoinedStr)

_UNTOLD = "its meaning is not known"
"""How a reason ends that speaks of a name alone."""

_LONG = 400
"""How much is shown of a part of a condition that is not evaluated."""


def _is_beside(op: ast.cmpop, left: Value, right: Value) -> bool:
    """Whether a comparison is of something else: a model's kind, what was compiled so far."""
    if isinstance(op, ast.In | ast.NotIn):
        if right in (Const({}), Const(frozenset()), Const([])):
            return True  # filled as the program runs
        if isinstance(right, Opaque) and is_of_models(names.last_name(right.text)):
            return True
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Opaque) and isinstance(other, Const) and is_other_word(other.value):
            name = names.last_name(_bare(one.text))
            if names.is_number(name) or names.is_major(name):
                return True
    return False


def _number(value: Value) -> Arch | None:
    """The architecture that a constant such as 100 or ``(10, 0)`` is."""
    match value:
        case Const(value=(int(major), int(minor))):
            return Arch(major, minor)
        case Const(value=int(number)) if 50 <= number < 200:
            return Arch(*divmod(number, 10))
    return None


def _is_followed(node: FunctionNode | ast.Lambda) -> bool:
    """Whether a function returns what its body says, as far as its decorators' names tell."""
    return python_calls.runs_through(node) and all(
        _CACHED.fullmatch(name) for name in python_calls.decorators(node)
    )


def _keywords(text: str) -> dict[str, Any]:
    """The constants that a call is given by keyword."""
    found: dict[str, Any] = {}
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return found
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        try:
            found[keyword.arg or ""] = ast.literal_eval(keyword.value)
        except ValueError:
            continue
    return found


def _entry(table: Value, asked: ast.expr) -> frozenset[Arch] | None:
    """The architectures of an entry such as ``sm90`` in a table of capabilities that was handed
    over; None for any other."""
    match table, asked:
        case Opaque(unknown=str(why)), ast.Constant(value=str(key)) if (
            why and "capabilities" in names.last_name(table.text).lower()
        ):
            return names.in_key(key)
    return None


def _bare(text: str) -> str:
    """A text without ``int(…)``, ``tuple(…)`` or the like around it."""
    while found := re.fullmatch(r"(?:int|str|tuple|list)\((.*)\)", text):
        text = found[1]
    return text


def _is_minor(text: str) -> bool:
    """Whether a text is that of a minor, or of the second part of a capability."""
    whole = text.removesuffix("[1]")
    named = names.last_name(whole)
    return names.is_minor(named) or (whole != text and names.is_number(named))


def _is_named(value: Value) -> bool:
    """Whether a value that is not followed is an architecture by its name."""
    if not isinstance(value, Opaque) or not value.unknown:
        return False
    return names.is_number(names.last_name(_bare(value.text)))


def _is_empty(value: Value) -> bool:
    """Whether nothing is in a value, now and later."""
    if not isinstance(value, Const) or value.value:
        return False
    return value.device or isinstance(value.value, tuple)


class Modules(Package):
    """The modules of one distribution, not looked into as far as for a proof."""

    reach: ClassVar[int] = 2


class ByName(Free):
    """An evaluator that takes what it cannot follow for what its name says.

    ``named`` is set where that was done. What it works out without asking the device is shared
    with the evaluators of the other architectures. It follows less far than a proof does: there are thousands
    of conditions to read, and a predicate is a few calls away.
    """

    deepest: ClassVar[int] = 6
    longest: int = 400
    cases: ClassVar[int] = 1_500
    tallest: ClassVar[int] = 30
    """How many lines a predicate may have."""
    is_followed = staticmethod(_is_followed)

    def __init__(
        self,
        package: Package,
        predicates: Mapping[str, frozenset[Arch]],
        arch: Arch,
        given: Mapping[int, Value] | None = None,
        shared: dict[Hashable, Value] | None = None,
        untold: dict[ast.expr, int] | None = None,
    ):
        super().__init__(package, predicates, arch, given)
        self._shared = {} if shared is None else shared
        self.untold = {} if untold is None else untold
        self.named = False
        self.raised = False
        self.aliases: frozenset[str] = frozenset()
        self._named_keys: set[Hashable] = set()

    def follows(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
        """Whether a function that is called is looked into: one that is as short as a predicate."""
        return (node.end_lineno or node.lineno) - node.lineno < self.tallest

    def is_changed(self, name: str, first: Value, frame: Frame) -> bool:
        """Whether a collection is another one later: read as it was first, as a person would."""
        return False

    def remembered(self, key: Hashable, work_out: Callable[[], Value]) -> Value:
        """A value that is worked out once, and whether that was by its name."""
        if (known := self._shared.get(key)) is not None:
            return known
        before, self.named = self.named, key in self._named_keys
        value = super().remembered(key, work_out)
        if not self._known[key][1]:
            self._shared[key] = value
        if self.named:
            self._named_keys.add(key)
        self.named = self.named or before
        return value

    def truth_of(self, node: ast.expr, frame: Frame) -> Bool:
        """The truth of an expression."""
        if isinstance(node, ast.BoolOp | ast.Constant) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return super().truth_of(node, frame)
        if self.depth == 0 and not speaks(node, self.aliases):
            return atom(
                self.package.once(ast.unparse, node)[:_LONG]
            )  # a part that is of no concern
        value = self._predicated(self.value(node, frame))
        if isinstance(node, ast.Name) and reason(value):
            chain = self._chain(node.id, frame)
            if chain is not None and chain not in self._active and self.depth < self.deepest:
                return self._truth_of_chain(chain, frame)
        if isinstance(node, ast.Name | ast.Attribute) and _is_named(value):
            return atom(text_of(value))  # whether it was given at all
        if isinstance(value, Opaque) and value.held and value.held.items:
            return True
        self.raised = self.raised or (self.depth == 0 and isinstance(value, Raises))
        return truth(value)

    def _chain(self, name: str, frame: Frame) -> ast.BoolOp | None:
        """What a function's name is bound to that stands for ``a and b``: None for all else."""
        if name in frame.values or name in frame.hidden:
            return None
        match frame.locals.get(name):
            case (Assigned(value=ast.BoolOp() as chain),):
                return chain
        return None

    def _truth_of_chain(self, chain: ast.BoolOp, frame: Frame) -> Bool:
        """Its truth, where its value is one of too many: only one of them matters here."""
        self.depth += 1
        self._active.add(chain)
        try:
            return self.truth_of(chain, Frame(frame.module, frame.values, frame.locals))
        finally:
            self.depth -= 1
            self._active.discard(chain)

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        if isinstance(node, _PLAIN):  # most of them: no need to ask what this reads beside a proof
            return Evaluator._value(self, node, frame)
        if isinstance(node, ast.Call):
            func = node.func
            name = name_of(func)
            if name in _CAPABILITY:
                return self.device((self.arch.major, self.arch.minor))
            if name in _PLATFORM and node.args:
                number = _number(self.value(node.args[0], frame))
                if number is not None:
                    return self._by_name(_PLATFORM[name](self.arch, number))
            if name == "hasattr" and node.args and self.value(node.args[0], frame) == Properties():
                return Const(True)
            if name in _LOOKED and (found := self._looked_up(name, node, frame)) is not None:
                return found
            if name in _TRANSPARENT and len(node.args) == 1:
                return self.value(node.args[0], frame)
            found = self._told(node, frame) or self._called_predicate(node, frame)
            if found is not None:
                return found
            value = self._predicated(super()._value(node, frame))
            if name in ("any", "all") and reason(value):
                return self.over_free(node, frame) or value
            return self._called_again(node, value, frame)
        return self._predicated(super()._value(node, frame))

    def _member(self, base: Value, name: str) -> Value:
        if name in _OF_TENSORS and isinstance(base, Opaque) and base.held is None:
            return Opaque(f"{base.text}.{name}")
        told = isinstance(base, Opaque) and (base.unknown or names.is_number(name))
        if told and f"{name}=" in text_of(base):
            # A field of a record, as it was made.
            made = _keywords(text_of(base))
            if name in made:
                return self.device(made[name])
        return super()._member(base, name)

    def _told(self, node: ast.Call, frame: Frame) -> Value | None:
        """What a method of an architecture's name gives; None for another call."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr="sub"), args=[_, _, _], keywords=[]
            ):
                return self._substituted([self.value(arg, frame) for arg in node.args])
            case ast.Call(func=ast.Attribute(value=base, attr=method), keywords=[]) if (
                method in TEXT_METHODS
            ):
                args = [self.value(arg, frame) for arg in node.args]
                text = self._text(self.value(base, frame), args)
                return python_calls.method(self, text, method, args) if text else None
        return None

    def _substituted(self, args: Sequence[Value]) -> Value | None:
        """A short text with a pattern replaced: the suffix of an architecture taken off."""
        match args:
            case [Const(value=str(old)), Const(value=str(new)), Const(value=str(text))] if (
                len(old) <= _SHORT and len(text) <= _SHORT
            ):
                try:
                    return Const(re.sub(old, new, text), of_device(args[2]))
                except re.error:
                    return None
        return None

    def _text(self, value: Value, samples: Sequence[Value] = ()) -> Const | None:
        """The text that a value is that is named as an architecture; None if it is not."""
        if not _is_named(value):
            return None
        texts = [one.value for one in samples if isinstance(one, Const)]
        known = [text for text in texts if isinstance(text, str)]
        if any("gfx" in text for text in known):
            return None
        self.named = True
        self.asked = True
        return Const(spelt_like(self.arch, known), device=True)

    def iterated(self, value: Value) -> Value:
        """What a comprehension goes over: the pair that a capability is, if it is named so."""
        if _is_named(value):
            return self._by_name((self.arch.major, self.arch.minor))
        return value

    def _called_predicate(self, node: ast.Call, frame: Frame) -> Value | None:
        """A predicate of an object that is not known, by its name; None for another call."""
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
                archs = names.predicate(name)
                if archs is not None and isinstance(self.value(node.func, frame), Const):
                    return self._by_name(self.arch in archs)
        return None

    def _looked_up(self, name: str, node: ast.Call, frame: Frame) -> Value | None:
        """What a table gives for an architecture, or an enumeration says of one; None otherwise."""
        match node:
            case ast.Call(args=[base, ast.Constant(value=str(attribute)), _]) if name == "getattr":
                dotted = dotted_name(base)
                if dotted is not None and not frame.is_local(dotted[0]):
                    there = self.module_attribute((*dotted, attribute), frame)
                    if isinstance(there, Const):
                        return there
                if (properties := self.value(base, frame)) == Properties():
                    return self._member(properties, attribute)
                found = Opaque(f"{ast.unparse(base)}.{attribute}")
                return found if _member(found) else None
            case ast.Call(func=ast.Attribute(), args=[asked]) if name == "is_family_of":
                member = _member(self.value(asked, frame))
                if member is None:
                    return None
                major, minor = divmod(member[0], 10)
                return self._by_name(self.arch.major == major and self.arch.minor >= minor)
            case ast.Call(func=ast.Attribute(value=base), args=[asked, *rest], keywords=[]):
                table = self.value(base, frame)
                if (archs := _entry(table, asked)) is not None:
                    return self._by_name(self.arch in archs)
                if (items := items_of(table)) is not None:
                    key = self.beside(self.value(asked, frame), Const(tuple(items)), ast.In())
                    default = self.value(rest[0], frame) if rest else Const(None)
                    return picked(self, items, key, default)
                if not isinstance(table, Const) or not isinstance(table.value, dict):
                    return None
                if not table.value:  # a cache, to be filled
                    return self.value(rest[0], frame) if rest else Const(None)
                key = self.beside(self.value(asked, frame), table, ast.In())
                default = self.value(rest[0], frame) if rest else Const(None)
                if (known := rows(self, key, table)) is not None:
                    self.asked = True
                    return entry_of(table, key, known, default)
                if isinstance(key, Const) and key.device and isinstance(default, Const):
                    return self.device(table.value.get(key.value, default.value))
        return None

    def _item(self, base: Value, index: Value, text: str) -> Value:
        items = items_of(base)
        table = Const(tuple(items)) if items is not None else base
        if isinstance(table, Const) and isinstance(base, Opaque | Const) and reason(index):
            whole = isinstance(table.value, dict) or items is not None
            key = self.beside(index, table, ast.In()) if whole else index
            if isinstance(key, Const) and key.device:
                if key.value not in (table.value if items is None else items):
                    self.asked = True
                    return Raises()
                index = key
        return super()._item(base, index, text)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        match node:
            case ast.Compare(
                left=ast.Tuple(elts=mine), ops=[op], comparators=[ast.Tuple(elts=others)]
            ) if isinstance(op, ast.Eq | ast.NotEq) and len(mine) == len(others):
                # (major, minor) == (10, n): what n is matters for major 10 alone.
                pairs = [
                    ast.Compare(left=other, ops=[ast.Eq()], comparators=[one])
                    for one, other in zip(mine, others, strict=True)
                ]
                values = [super(ByName, self)._compare(pair, frame) for pair in pairs]
                same = and_(*map(truth, values))
                function = same if isinstance(op, ast.Eq) else not_(same)
                return from_bool(function, device=any(map(of_device, values)))
        return super()._compare(node, frame)

    def _bound(self, name: str, bindings: tuple[Binding, ...], frame: Frame) -> Value:
        if len(bindings) > 1 and all(isinstance(one, Assigned) for one in bindings):
            told = [
                self.package.once(ast.unparse, b.value) for b in bindings if hasattr(b, "value")
            ]
            if len(set(told)) == 1 and "(" in told[0]:
                # One call, made in several branches.
                return super()._bound(name, bindings[:1], frame)
        return super()._bound(name, bindings, frame)

    def _predicated(self, value: Value) -> Value:
        """A predicate that is not followed, by its name; and a set of compile targets."""
        if isinstance(value, Opaque) and value.unknown and not _member(value):
            name = names.last_name(value.text)
            if name in _CAPABILITY and value.text.endswith(")"):
                return self.device((self.arch.major, self.arch.minor))
            archs = names.predicate(name)
            if archs is not None:
                return self._by_name(self.arch in archs)
            if is_targets(name):
                return self._by_name(targets(self.arch))
            own = hides(name) and value.unknown.endswith(_UNTOLD)
            if own and (is_permission(name) or not says(name, value.text)):
                return Opaque(value.text)
        elif isinstance(value, Opaque) and is_support(names.last_name(value.text)):
            if value.held is None:
                return Opaque(value.text, f"{value.text} may test the architecture, and {_UNTOLD}")
            if not re.search(
                r"\(\d", value.text
            ):  # of the device, and not of a number that is given
                self.asked = True
                return replace(value, text=f"{value.text} on {self.arch}")
        return value

    def _by_name(self, constant: Any) -> Value:
        self.named = True
        return self.device(constant)

    def _pair(self, op: ast.cmpop, sides: Sequence[Value]) -> Value:
        left, right = sides[0], keys_of(sides[1])
        listed, asks = isinstance(op, ast.In | ast.NotIn), isinstance(op, ast.Is | ast.IsNot)
        if listed and is_cache(right):
            return from_bool(atom(f"{text_of(left)} {_WORDS[type(op)]} {text_of(right)}"[:_LONG]))
        if listed and _is_empty(right):
            self.asked = self.asked or of_device(right)
            return Const(isinstance(op, ast.NotIn), of_device(right))
        if asks and is_something(left) and right == Const(None):
            return Const(isinstance(op, ast.IsNot), of_device(left))
        if asks and not isinstance(left, Const):
            # Whether it was asked for at all is no test of it; what it gave in a table is one.
            word = "is" if isinstance(op, ast.Is) else "is not"
            unknown = left.unknown if isinstance(left, Opaque) and right == Const(None) else ""
            unknown = unknown if unknown.endswith("in a way that is not followed") else ""
            return from_bool(atom(f"{text_of(left)} {word} {text_of(right)}", unknown=unknown))
        counts = isinstance(left, Opaque) and left.text.startswith(("int(", "len("))
        if counts and isinstance(op, ast.Eq | ast.NotEq) and right == Const(None, device=True):
            return self.device(isinstance(op, ast.NotEq))
        if listed and (found := membership(self, op, left, right)):
            return found
        if isinstance(op, ast.Eq | ast.NotEq) and (same := same_parts(self, op, left, right)):
            return same
        if _is_beside(op, left, right):
            return from_bool(atom(f"{text_of(left)} {_WORDS[type(op)]} {text_of(right)}"[:_LONG]))
        if isinstance(left, Opaque) and not left.unknown and isinstance(right, Const):
            own = right.device and is_own(self.arch, right.value)
            if not own and not isinstance(right.value, str | tuple):
                # What hides no test of it, against what a table gives for it: known but for that.
                word = _WORDS[type(op)]
                return from_bool(atom(f"{left.text} {word} {text_of(right)}"[:_LONG]))
        if (told := self.among(op, left, right)) is not None:
            return told
        if (ordered := self._enumerated(op, left, right)) is not None:
            return ordered
        return super()._pair(op, [self.beside(left, right, op), self.beside(right, left, op)])

    def _enumerated(self, op: ast.cmpop, left: Value, right: Value) -> Value | None:
        """A comparison with ``Arch.sm_100a``: members are in order, plain before ``a`` and ``f``.

        Equality looks at the number, but for a family's member: whether ``a`` was asked for is not known.
        """
        for one, other, mirrored in ((left, right, False), (right, left, True)):
            member = _member(one)
            name = names.last_name(text_of(other))
            if member is None or not (isinstance(other, Opaque) and names.is_number(name)):
                continue
            sm, suffix = member
            if isinstance(op, ast.Eq | ast.NotEq):
                return self._same(op, text_of(other), [(sm, suffix)])
            mine, its = (self.arch.sm, 1), (sm, suffix)
            pair = (its, mine) if not mirrored else (mine, its)
            match op:
                case ast.Lt():
                    return self._by_name(pair[0] < pair[1])
                case ast.LtE():
                    return self._by_name(pair[0] <= pair[1])
                case ast.Gt():
                    return self._by_name(pair[0] > pair[1])
                case ast.GtE():
                    return self._by_name(pair[0] >= pair[1])
        if isinstance(op, ast.In | ast.NotIn) and names.is_number(names.last_name(text_of(left))):
            members = _members(text_of(right))
            if members:
                return self._same(op, text_of(left), members)
        return None

    def _same(self, op: ast.cmpop, text: str, members: Sequence[tuple[int, int]]) -> Value:
        """Whether an architecture is one of some members of an enumeration, or is not.

        It is one of a family's, ``sm_100f``, where the family was asked for.
        """
        suffixes = [suffix for sm, suffix in members if sm == self.arch.sm]
        if suffixes and min(suffixes) == _FAMILY:
            self.named = self.asked = True
            same: Bool = atom(f"{text} == sm_{self.arch.sm}f")
        else:
            same = bool(suffixes)
        is_positive = isinstance(op, ast.Eq | ast.In)
        if isinstance(same, bool):
            return self._by_name(same is is_positive)
        return from_bool(same if is_positive else not_(same), device=True)

    def beside(self, value: Value, other: Value, op: ast.cmpop) -> Value:
        """A value that is not followed, in the unit of the constant that it is compared with."""
        if not isinstance(value, Opaque) or not isinstance(other, Const):
            return value
        if not value.unknown and not names.is_target(value.text):
            return value
        if isinstance(op, ast.Eq | ast.NotEq) and other.device and "." in value.text:
            return value  # what a record was made for, against what the device is
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(other.value, tuple | list | frozenset | dict) or not other.value:
                return value
            beside = list(other.value)
        else:
            beside = [other.value]
        text = value.text
        if value.held and value.held.items and not value.held.is_mapping:
            text = f"({', '.join(map(text_of, value.held.items.values()))})"
        found = self._named_value(text, beside)
        return value if found is None else self._by_name(found)

    def _named_value(self, text: str, beside: Sequence[Any]) -> Any:
        text = _bare(text)
        name = names.last_name(text)
        if not name and text.endswith(("[0]", "[1]")):
            inner = names.last_name(text[:-3])
            if inner and names.is_number(inner):
                return self.arch.major if text.endswith("[0]") else self.arch.minor
            return None
        if not name and text.startswith("(") and text.endswith(")"):
            bare = [_bare(part.strip()) for part in text[1:-1].split(",")]
            if [part[-3:] for part in bare] == ["[0]", "[1]"]:
                whole = {names.last_name(part[:-3]) for part in bare}
                if len(whole) == 1 and names.is_number(*whole):
                    return (self.arch.major, self.arch.minor)
            parts = [names.last_name(part) for part in bare]
            if len(parts) == 2 and names.is_major(parts[0]) and names.is_minor(parts[1]):
                return (self.arch.major, self.arch.minor)
            return None
        return names.value(name, self.arch, beside) if name else None

    def _binary(self, left: Value, right: Value, node: ast.BinOp, frame: Frame) -> Value:
        if isinstance(left, Opaque) and left.unknown:
            name = names.last_name(left.text)
            if isinstance(node.op, ast.FloorDiv | ast.Mod) and isinstance(right, Const):
                if right.value in (10, 100) and names.is_number(name):
                    whole = self.arch.sm if right.value == 10 else self.arch.cuda_arch
                    left = self._by_name(whole)
            elif isinstance(node.op, ast.Mult) and names.is_major(name):
                left = self._by_name(self.arch.major)
            elif isinstance(node.op, ast.Mult) and self._named_value(left.text, ()) is not None:
                left = self._by_name(self._named_value(left.text, ()))
        added = isinstance(node.op, ast.Add) and isinstance(left, Const)
        if added and isinstance(right, Opaque) and _is_minor(right.text):
            right = self._by_name(self.arch.minor)
        return super()._binary(left, right, node, frame)
