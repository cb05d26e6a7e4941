"""Which files, and which of their lines, can hold a gate: cheap, and never too few."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache

from gatepatch.gates.python_scope import name_of, statements_in
from gatepatch.scanning.speaking import ASKS, answered, looked_up, says_so, speaks, spells_one
from gatepatch.scanning.words import Words, line_at

# What the engine's own reading takes for a test of the architecture (gates.python_scope.SMELL),
# in bytes. `cute.arch.…` is a module of instructions.
_PYTHON = re.compile(
    # What a match begins with: elsewhere none of the many branches needs a try.
    rb"(?=[A-EG-IMNOR-Ua-eg-imnor-u_\"'.(])(?:"
    rb"(?i:capability(?!requirement)|compute_?cap\b|(?<!-)\bmajor\b|major_version|(?:cc|sm|device|capability|dev|cuda|arch|compute|cap)_?major\b)"
    # An architecture in a predicate's name, in an enumeration, or alone in a text.
    rb"|(?i:(?:is|has|use|uses|on|need|needs|require|requires|support|supports|enable|not|targets?|_)_(?:\w*_)?sm_?\d\d)"
    rb"|(?i:sm_?\d\d\w*(?:support|avail|capable|device|enabled))"
    # A module's name, or the architecture whose memory is asked for, is none.
    rb"|(?<!_bytes\()(?<!_cols\()[\"'.](?:sm|SM|Sm|compute)_?\d{2,3}[af]?\b(?!\.\w+[.(])"
    rb"|\bgfx\d|sm_version|device_sm(?!_?count|s\b)|[mM]in_?[cC]apab"
    rb"|(?i:is_\w*(?:blackwell|hopper|ampere|rubin)|(?:blackwell|hopper)\w*(?:support|avail))"
    rb"|\b\w*_(?:BLACKWELL|HOPPER|AMPERE)\b|support(?:s|ed)?_pdl|pdl_support"
    rb"|\barchitecture\s*(?:[=!<>]=|[<>]|(?:not +)?in\b)\s*[(\[{]?\s*\d"
    rb"|(?:cuda|gpu|sm|compute|device|target|nvcc)_arch(?:s|itecture)?(?![A-Za-z])"
    rb"|(?:_|\b)ARCH(?:S|ITECTURES)?\b|(?:_|\b)SM\b|\(\s*(?:[789]|1\d)\s*,\s*\d\s*\)\s*:"
    rb"|\b_*(?:is_)?(?:cuda_|gpu_)?archs?_(?:is_)?support|_archs?_supported|(?<!cpu)(?<!model)_arch\(|\barch_(?:for|of)_"
    rb"|\b_*(?:arch|Arch)(?:_num(?:ber)?|_int|s?(?:_list)?)\b(?!\.(?!sm))|\b(?:(?:min|max|device|current|target)_)?sm\b|(?:\b|_)cc\b"
    rb")"
)
# One of these stands in whatever the pattern matches.
_WORDS = Words(
    (
        *(b"sm_", b"SM_", b"sm1", b"sm8", b"sm9", b"sm7", b"SM1", b"SM8", b"SM9", b"SM7"),
        *(b"Sm1", b"Sm9", b"Sm8", b"apab", b"APAB", b"lackwell", b"LACKWELL", b"opper", b"OPPER"),
        *(b"mpere", b"MPERE", b"turing", b"Turing", b"TURING", b"olta", b"OLTA", b"ubin"),
        *(b"compute_cap", b"_pdl", b"pdl_"),
        *(b"gfx", b"device_prop", b"device_sm", b"major", b"_arch", b" arch", b".arch", b"(arch"),
        *(
            b"[arch",
            b"Arch",
            b"!arch",
            b"_sm",
            b"(sm",
            b" sm",
            b".sm",
            b" cc",
            b"(cc",
            b".cc",
            b"_cc",
        ),
        *(b"computecap", b"ComputeCap", b"ARCH", b"_SM", b"SM_"),
        *(b"0):", b"1):", b"2):", b"3):", b"5):", b"6):", b"7):", b"9):"),
    ),
)
_IDLE = re.compile(
    rb"#|import\b|from\b|class\b|\w+,\s*$|\"\"\"|'''"
    rb"|[rf]?[\"'](?!.*(?:\{[^{}]* if |[\"'] (?:if|in|not in|[=!]=) ))[^:]*$"
)
"""A line that binds or tests nothing: a comment, an import, a name in a list, a text."""

_CHOSEN = re.compile(rb"\bf[\"'].*\{[^{}]* if ")
"""An f-string that holds one text or another."""

_SIGNATURE = re.compile(rb" *(?:async )?def \w+\([^=]*\).*:$")
_TEXT = re.compile(rb"(?:\b\w+ *= *)?(?:\"[^\"\n]*\"|'[^'\n]*')")
_TESTED = re.compile(
    rb"[=!<>]=|[<>]|\b(?:if|elif|else|while|assert|and|or|not|in|is|return|for|lambda|case)\b"
    rb"|[\[{@]|(?<!\w)\( *\d|\bsupport\w* *=|\.(?:starts|ends)with\b"
)
_ASKED = re.compile(
    rb"(?:archs?_(?:is_)?support\w*|archs?_supported|supports?_pdl|pdl_support\w*)\("
)
_CALL = rb"[\w.]+(?:\([\w., =\"]*\))*(?:\.\w+(?:\([\w., \"]*\))?)*"
_BOUND = re.compile(
    rb" *((?:\w+\.)*\w+(?:, ?\w+)*)(?: *: *[\w.| ,\"]+)?(?: *= *(?:" + _CALL + rb"|\"\"))? *,?$"
)
_PASSED = re.compile(rb" *(?:\w+=)?[\w.]*\w\([^()]*\b\w+\([\w., ]*\)[^()]*\)+,?$")

_DIRECTIVE = re.compile(rb"#[ \t]*(?:if|el|def|undef)(?:[^\\\n]+|\\[ \t]*\r?\n|\\)*")
_CUDA = re.compile(
    rb"(?i:arch(?!iv|64|32)|sm_?\d\d|compute_?\d\d|capability|gencode"
    rb"|volta|turing|ampere|hopper|blackwell|rubin|pascal|_ada|lovelace)"
)
_MODELS = (
    b"ForCausalLM",
    b"ForConditionalGeneration",
    b"_config.architectures",
    b'onfig, "architectures"',
    b"ModelRegistry",
)
"""A file with one of these speaks of the architectures of models."""

_MODELS_OWN = ("!arch", "!archs", "!arches", "!arch_list", "!architecture")
"""Names that then stand for one of those, with a ``!`` before them."""

_ANSWERS = re.compile(
    r"bool|all|any|callable|isinstance|hasattr|_*(?:is|has|can|should|uses?|supports?|needs?)_\w+"
    r"|\w+_(?:supported|available|enabled|eligible|applies|ready)"
)
"""Names of functions that say yes or no."""

_ROUNDS = 2
_SMALL = 12
"""Functions of so many lines are followed to where they are called."""
_LONG = 30
"""And of so many, if they say yes or no, and do so of few things."""
_FEW = 6


def may_hold_directives(source: bytes) -> bool:
    """Whether a directive of a C file speaks of an architecture."""
    if b"#" not in source:
        return False
    return any(_CUDA.search(match[0]) for match in _DIRECTIVE.finditer(source))


def python_lines(source: bytes) -> list[int]:
    """The lines of a Python file that may hold a gate, from 1; comments and imports left out."""
    starts = [
        start for start, end in _WORDS.lines(source) if _may_hold_gate(source[start:end].strip())
    ]
    texts = _texts(source) if starts else []
    code = [start for start in starts if not _inside(start, texts)]
    found = _numbers(source, code)
    if found:
        every = source.split(b"\n")
        if all(_hands_on(every[number - 1]) for number in found):
            return []
    return found


@lru_cache(maxsize=1 << 12)
def _may_hold_gate(line: bytes) -> bool:
    """Whether a line may hold a gate; most are copies of lines in files beside."""
    return _IDLE.match(line) is None and _PYTHON.search(line) is not None


def _hands_on(line: bytes) -> bool:
    """Whether a line does no more than name an architecture: it declares, binds or passes it."""
    if _CHOSEN.search(line):
        return False
    bare = _TEXT.sub(b'""', line).partition(b"#")[0].rstrip()
    if _SIGNATURE.match(bare):
        return True
    if _TESTED.search(bare) or _ASKED.search(bare):
        return False
    if not _PYTHON.search(bare):
        return True
    bound = _BOUND.match(bare)
    if bound is not None:
        names = [name.strip() for name in bound[1].split(b",")]
        return all(name == b"minor" or _PYTHON.search(b" " + name) for name in names)
    return _PASSED.match(bare) is not None


def _texts(source: bytes) -> list[int]:
    """Where texts in triple quotes begin and end, in turn; none where that is not plain."""
    for quote, other in ((b'"""', b"'''"), (b"'''", b'"""')):
        if other not in source:
            places = [match.start() for match in re.finditer(quote, source)]
            return places if len(places) % 2 == 0 else []
    return []


def _inside(start: int, texts: Sequence[int]) -> bool:
    return bisect_left(texts, start) % 2 == 1


def _numbers(source: bytes, starts: Sequence[int]) -> list[int]:
    """The numbers of the lines that begin at some offsets, in order."""
    found: list[int] = []
    line, last = 1, 0
    for start in starts:
        line += source.count(b"\n", last, start)
        last = start
        found.append(line)
    return found


def _is_idle(source: bytes, start: int, end: int) -> bool:
    return _IDLE.match(source[start:end].lstrip()) is not None


_WORD = re.compile(rb"\w")


def naming(source: bytes, names: Sequence[str]) -> list[int]:
    """The lines that have one of some names."""
    names = [n.removeprefix("?") for n in names]
    found = {*_named(source, [n for n in names if n[0] not in ".="])}
    own = [f"{owner}{n}".encode() for n in names if n[0] == "." for owner in ("self", "cls")]
    found.update(Words(own).lines(source))
    starts = [start for start, end in sorted(found) if not _is_idle(source, start, end)]
    return _numbers(source, starts)


def _testing(source: bytes, names: Sequence[str]) -> list[int]:
    """The lines on which one of some names is tested: whether it is so, or there, or holds something."""
    if not names:
        return []
    one = b"(?:" + b"|".join(re.escape(name.encode()) for name in names) + b")"
    pattern = re.compile(
        rb"\b(?:if|elif|and|or|not|while|assert|in) +"
        + one
        + rb"(?: *(?:$|#|:|\))| +(?:and|or|else|is)\b)"
        rb"|^ *" + one + rb" +is\b"
    )
    starts = [
        start
        for start, end in sorted({*_named(source, names)})
        if pattern.search(source[start:end])
    ]
    return _numbers(source, starts)


def _named(source: bytes, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where lines begin and end that have one of some names, whole."""
    for _, start, end in Words([name.encode() for name in names]).places(source):
        if not (_WORD.match(source, start - 1, start) or _WORD.match(source, end, end + 1)):
            yield line_at(source, start)


def alias_lines(
    source: bytes, tree: ast.Module, lines: Sequence[int], known: Set[str] = frozenset()
) -> tuple[list[int], frozenset[str]]:
    """The same lines and those that name what such lines bind; and the names themselves.

    Args:
        source: The file.
        tree: Its syntax.
        lines: The lines.
        known: Names that stand for a test from the start.
    """
    every = set(lines)
    known = {*known, *(_MODELS_OWN if any(word in source for word in _MODELS) else ())}
    answers: set[str] = set()
    for _ in range(_ROUNDS):
        bound = set(_bound(tree.body, sorted(every), frozenset({*known, ASKS})))
        answers.update(name for name in bound if name.startswith("~"))
        fresh = bound - known - answers
        if not fresh:
            break
        known |= fresh
        every.update(naming(source, sorted(fresh)))
    # What hangs on those is not followed any further.
    every.update(_testing(source, sorted(name.removeprefix("~") for name in answers)))
    return sorted(every), frozenset(known | answers)


def _bound(body: Sequence[ast.stmt], lines: Sequence[int], known: Set[str]) -> Iterator[str]:
    """The names that statements with one of some lines bind to a test, or to what is tested.

    With a ``?`` before it, one that is bound to what was looked up by the architecture; with a ``~``, to
    what a function says that an architecture is handed to; with a dot,
    an attribute of ``self``; with a ``=``, one that is yes or no, or a function that says so.
    """
    for statement in body:
        last = statement.end_lineno or statement.lineno
        place = bisect_left(lines, statement.lineno)
        if place == len(lines) or lines[place] > last:
            continue
        inside = set(_inside_of(statement, lines, known))
        yield from inside
        match statement:
            case ast.Assign(targets=[target], value=value) if looked_up(value, known):
                yield from _looked_up(target)
            case ast.Assign(
                targets=[ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), *_])], value=value
            ) if answered(value, known):
                yield f"~{name}"
        match statement:
            case ast.Assign(targets=targets, value=value) if _is_test(value, known):
                for target in targets:
                    yield from _names(target, value)
                    if isinstance(target, ast.Name) and is_answer(value, known):
                        yield f"={target.id}"
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _is_test(value, known):
                yield from _names(target, value)
            case ast.FunctionDef() if last - statement.lineno < _LONG:
                yield from _function(statement, known, inside)


def _looked_up(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield f"?{name}"
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            yield f"?.{name}"


def _inside_of(statement: ast.stmt, lines: Sequence[int], known: Set[str]) -> Iterator[str]:
    """The names that the blocks of a statement bind."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(statement, field, ()):
            if isinstance(inner, ast.stmt):
                yield from _bound([inner], lines, known)
            else:  # a handler or a case
                yield from _bound(inner.body, lines, known)


def _function(function: ast.FunctionDef, known: Set[str], own: Set[str]) -> Iterator[str]:
    """The name of a function that is a predicate, or that looks something up."""
    nodes = [*statements_in(function)]
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value]
    small = (function.end_lineno or function.lineno) - function.lineno < _SMALL
    if (small and any(_is_test(value, known) for value in returned)) or (
        _is_of_few(function)
        and returned
        and all(_may_answer(value, own) for value in returned)
        and (
            any(_is_test(value, known | own) for value in returned)
            or any(
                speaks(node.test, known)
                for node in nodes
                if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return)
            )
        )
    ):
        answers = all(is_answer(value, known | own) for value in returned)
        for name in (function.name, *([f".{function.name}"] if _is_method(function) else ())):
            yield name
            if answers:
                yield f"={name}"
    elif small and (
        any(looked_up(value, known) for value in returned) or _is_given_or_not(nodes, known)
    ):
        yield f"?{function.name}"
    elif any(spells_one(value, known) for value in returned):
        yield f"?{function.name}"  # what is looked for in such a text


def _is_given_or_not(nodes: Sequence[ast.AST], known: Set[str]) -> bool:
    """Whether a function gives something on one side of a test of the architecture, and None on the other.

    A text that it gives says what is amiss.
    """
    none = given = asked = False
    for node in nodes:
        match node:
            case ast.Return(value=None | ast.Constant(value=None)):
                none = True
            case ast.Return(value=ast.JoinedStr() | ast.Constant()):
                return False
            case ast.Return():
                given = True
            case ast.If(test=test, body=[*_, ast.Return()]):
                asked = asked or speaks(test, known)
    return none and given and asked


def _is_of_few(function: ast.FunctionDef) -> bool:
    """Whether a function takes few arguments: one that picks a kernel's variant takes many."""
    taken = function.args
    return len(taken.posonlyargs) + len(taken.args) + len(taken.kwonlyargs) <= _FEW


def _may_answer(value: ast.expr, own: Set[str]) -> bool:
    """Whether a value may be yes or no, by its form alone."""
    match value:
        case ast.Name(id=name):
            return name in own
        case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=func):
            return _ANSWERS.fullmatch(name_of(func)) is not None
        case ast.BoolOp(values=values):
            first = ast.Compare | ast.UnaryOp | ast.Call | ast.Name | ast.Attribute
            return isinstance(values[0], first)
    return False


def is_answer(value: ast.expr, known: Set[str]) -> bool:
    """Whether a value is yes or no, by its form and by what it calls.

    Args:
        value: The value.
        known: Names that stand for a test, and, with a ``=`` before them, those that are yes or no.
    """
    match value:
        case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Name(id=name):
            return f"={name}" in known
        case ast.BoolOp(values=values):
            return any(is_answer(one, known) for one in values)
        case ast.IfExp(body=one, orelse=other):
            return is_answer(one, known) and is_answer(other, known)
        case ast.Call(func=func):
            name = name_of(func)
            return f"={name}" in known or _ANSWERS.fullmatch(name) is not None or says_so(name)
    return False


def _is_test(value: ast.expr, known: Set[str]) -> bool:
    """Whether a value is a test of the architecture, or a part of the capability."""
    if isinstance(value, ast.Dict | ast.List | ast.Set | ast.Constant | ast.JoinedStr):
        return False
    if isinstance(value, ast.BinOp) and any(isinstance(n, ast.IfExp) for n in ast.walk(value)):
        return False  # a number, of which the architecture picks a part
    return speaks(value, known)


def _is_method(node: ast.FunctionDef) -> bool:
    first = [arg.arg for arg in node.args.args[:1]]
    return first in (["self"], ["cls"]) or any(
        isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list
    )


def _names(target: ast.expr, value: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            if not isinstance(value, ast.Name | ast.Attribute):  # what was handed in
                yield f".{name}"
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _names(part, value)
