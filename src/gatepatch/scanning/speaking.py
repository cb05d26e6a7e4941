"""Whether a Python condition speaks of the architecture itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence, Set
from functools import lru_cache

from gatepatch.gates.python_scope import dotted_name, hides, name_of
from gatepatch.scanning import names

_WRAPPERS = frozenset(
    {
        *("int", "tuple", "bool", "any", "all", "str", "list", "set"),
        *("const_expr", "constexpr", "is_family_of"),
    }
)
"""Functions whose value speaks of what they are given."""

_OF_KINDS = frozenset({"isinstance", "hasattr", "getattr", "len", "print", "range", "repr"})
"""Functions that say nothing of the architecture that they are handed."""

ASKS = "()"
"""Among the names that stand for a test: functions are asked that an architecture is handed to."""

_NUMBERED = re.compile(r"(?i)sm_?\d{2,3}|blackwell|hopper|ampere|turing|volta|rubin")
_ASKING = re.compile(
    r"(?i)_*(?:is|has|uses?|on|needs?|requires?|supports?|enabled?|should|can|allow|targets?)_|"
    r"(?:supported|available|capable|enabled|device)$|^_*sm_?\d{2,3}[af]?$|_(?:BLACKWELL|HOPPER|AMPERE)$"
)
_LOOKS_UP = re.compile(r"get|\w+_for(?:_\w+)?|(?:\w+_)?error")
"""Functions whose value is looked up by what they are given."""

_GETS = re.compile(r"(?!\w*(?:cpu|model|hf|gcn|rocm))\w*arch(?:_(?:for|of)(?:_\w+)?)?")
"""Functions that give an architecture, or none."""

_TEXT = re.compile(r"sm_?\d{2,3}[af]?")
_BEGINS = re.compile(r"(?i)(?:sm|compute)_?")

_COUNT = re.compile(r"(?i)(?:\w+_)?sms|\w*sm_?count\w*|(?:max_)?n(?:um)?_?sms?")
"""Names of a number of multiprocessors."""

_SUPPORT = re.compile(
    r"(?i)_*(?:is_)?(?:cuda_|gpu_)?archs?_(?:is_)?support\w*|\w+_archs?_supported"
    r"|_*(?:\w+_)?(?:supports?_pdl|pdl_support(?:ed)?)"
)
"""Names of a predicate that says of no architecture which one it is for."""

_OTHER = re.compile(
    r"(?i)gfx\d|nvlink|model_arch|^_*(?:cutlass|nvcc|ptxas|toolkit|compiler|toolchain)_supports_|_compatible$"
)
"""Names that speak of AMD's architectures, of links, of what a compiler can do, of shapes that fit."""

_FACTS = frozenset({"multi_processor_count", "total_memory", "name", "uuid"})
"""What device properties say besides the capability."""


def _whether(op: ast.cmpop, other: ast.expr) -> bool:
    """Whether a comparison asks if there is something: for None, or for membership."""
    if isinstance(op, ast.In | ast.NotIn):
        return True
    return isinstance(other, ast.Constant) and other.value is None


def speaks(node: ast.expr, aliases: Set[str]) -> bool:
    """Whether a condition speaks of the architecture itself, not only what it hands on."""
    match node:
        case ast.Name(id=name):
            return name in aliases or (f"!{name}" not in aliases and says(name, name))
        case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")) if f".{name}" in aliases:
            return True
        case ast.Attribute(attr=name, value=ast.Name(id=base)) if f"{base}.{name}" in aliases:
            return True
        case ast.Attribute(attr=name) if name in _FACTS or is_count(name):
            return False
        case ast.Attribute(attr=name, value=value):
            said = f"!{name}" not in aliases and says(name, _dotted(node))
            return said or speaks(value, aliases)
        case ast.Call(
            func=ast.Name(id="tuple" | "list"),
            args=[ast.GeneratorExp(elt=ast.Call(func=ast.Name(id="int")), generators=[loop])],
        ):
            return speaks(loop.iter, aliases)  # the same, of whatever kind its numbers were
        case ast.Call(func=func, args=args):
            if speaks(func, aliases):
                return True
            name = name_of(func)
            return name in _WRAPPERS and any(speaks(arg, aliases) for arg in args)
        case ast.Compare(left=left, ops=[op], comparators=[other]) if _whether(op, other) and any(
            looked_up(side, aliases) for side in (left, other)
        ):
            return True
        case ast.Compare(left=left, comparators=others):
            return (
                speaks(left, aliases)
                or any(speaks(other, aliases) for other in others)
                or _is_target_tested(left, others)
                or any(spells_one(side, aliases) for side in (left, *others))
            )
        case ast.Subscript(value=value):
            return speaks(value, aliases)
        case ast.Constant() | ast.Dict() | ast.Lambda() | ast.JoinedStr():
            return False
    return any(
        speaks(child, aliases)
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.expr)
    )


def asks_of_one(node: ast.expr, aliases: Set[str]) -> bool:
    """Whether a condition asks a function about an architecture that it hands over.

    What such a function gives is an answer by its place: in ``if served(stage, arch)``, where it may be
    None, or where something is looked for in it.
    """
    match node:
        case ast.BoolOp(values=values):
            return any(asks_of_one(value, aliases) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return asks_of_one(operand, aliases)
        case ast.Name() | ast.Call():
            return answered(node, aliases)
        case ast.Compare(left=left, ops=[op], comparators=[other]) if _whether(op, other):
            sides = [other] if isinstance(op, ast.In | ast.NotIn) else [left, other]
            return any(answered(side, aliases) for side in sides)
    return False


def answered(node: ast.expr, aliases: Set[str]) -> bool:
    """Whether a value is what a function says of an architecture that it is handed.

    Args:
        node: The value.
        aliases: Names that stand for a test, and, with a ``~`` before them, for such a value.
    """
    if ASKS not in aliases:
        return False
    match node:
        case ast.Name(id=name):
            return f"~{name}" in aliases
        case ast.Call(func=ast.Name() | ast.Attribute()) if name_of(node.func) not in _OF_KINDS:
            given = [(name_of(arg), arg) for arg in node.args]
            given += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
            return any(_is_one(name, value, aliases) for name, value in given)
    return False


def _is_one(name: str, value: ast.expr, aliases: Set[str]) -> bool:
    """Whether what a call is given is an architecture, by what it or the parameter is called."""
    match value:
        case ast.Name(id=own) | ast.Attribute(attr=own):
            pass
        case ast.Call(func=func, args=[inner]) if name_of(func) in _WRAPPERS:
            return _is_one(name, inner, aliases)
        case ast.Call(func=func):
            own = name_of(func)
            if _GETS.fullmatch(own) or own.startswith("get_device_capab"):
                return True
        case _:
            return False
    return f"!{own}" not in aliases and (names.is_number(own) or names.is_number(name))


def _is_target_tested(left: ast.expr, others: Sequence[ast.expr]) -> bool:
    """Whether a target is compared with the name of an architecture: ``target == "sm_103a"``."""
    match left:
        case ast.Name() | ast.Attribute():
            is_target = names.is_target(name_of(left))
        case ast.Call(func=func):
            is_target = _GETS.fullmatch(name_of(func)) is not None
        case _:
            is_target = False
    return is_target and any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and _TEXT.fullmatch(part.value)
        for other in others
        for part in (other.elts if isinstance(other, ast.Tuple | ast.Set | ast.List) else [other])
    )


def spells_one(side: ast.expr, aliases: Set[str]) -> bool:
    """Whether a text is put together out of the capability: ``f"sm_{major}{minor}a"``."""
    match side:
        case ast.JoinedStr(values=[ast.Constant(value=str(first)), *parts]):
            return _BEGINS.fullmatch(first) is not None and any(
                isinstance(part, ast.FormattedValue) and speaks(part.value, aliases)
                for part in parts
            )
    return False


def looked_up(node: ast.expr, aliases: Set[str]) -> bool:
    """Whether a value is what was looked up by the architecture.

    Whether there is one is a gate, and what is done with it, such as a tuning value, is none.

    Args:
        node: The value.
        aliases: Names that stand for a test, and, with a ``?`` before them, for such a value.
    """
    match node:
        case ast.Name(id=name):
            return f"?{name}" in aliases
        case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")):
            return f"?.{name}" in aliases
        case ast.IfExp(body=one, orelse=other):
            return looked_up(one, aliases) or looked_up(other, aliases)
        case ast.Call(func=func, args=args):
            name = name_of(func)
            if f"?{name}" in aliases or ("arch" in name and _GETS.fullmatch(name)):
                return True
            if name == "get" and isinstance(func, ast.Attribute) and looked_up(func.value, aliases):
                return True  # a table in a table
            return _LOOKS_UP.fullmatch(name) is not None and any(speaks(a, aliases) for a in args)
    return False


@lru_cache(maxsize=1 << 14)
def says(name: str, whole: str) -> bool:
    """Whether a name may stand for the architecture: ``sm100_utils`` and ``HopperKernel`` do not."""
    if is_support(name):
        return True
    if _OTHER.search(name):
        return False
    if is_count(name) or not hides(name, of=whole):
        return False
    if _NUMBERED.search(name) and not names.is_number(name):
        return names.predicate(name) is not None or _ASKING.search(name) is not None
    return True


def is_count(name: str) -> bool:
    """Whether a name is that of a number of multiprocessors."""
    return _COUNT.fullmatch(name) is not None


def says_so(name: str) -> bool:
    """Whether a name is that of a predicate of the architecture."""
    return names.predicate(name) is not None or is_support(name)


def is_support(name: str) -> bool:
    """Whether a name is that of a predicate that says of no architecture which one it is for."""
    return _SUPPORT.fullmatch(name) is not None and not _OTHER.search(name)


def _dotted(node: ast.expr) -> str:
    found = dotted_name(node)
    return ".".join(found) if found else ""
