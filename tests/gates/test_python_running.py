"""The evaluator against predicate modules that really run, with a torch for each architecture."""

from __future__ import annotations

import ast

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from python_sets import OPEN_12, closing, gate, opening, run
from python_world import executed, value_of

from gatepatch.arch import TABLE
from gatepatch.edits import splice
from gatepatch.errors import RefusedError
from gatepatch.gates.python_meaning import Meaning
from gatepatch.gates.python_scope import Package
from gatepatch.gates.python_values import Frame
from gatepatch.spec import Goal
from gatepatch.verdict import Verdict

FLAGS = ("A", "B", "C")
NUMBERS = (
    "torch.cuda.get_device_capability()[0]",
    "torch.cuda.get_device_properties(0).major",
    "CAP[0]",
    "CAP[-1] + 7",
    "MAJOR",
    "SM // 10",
    "SM % 10 + 9",
    "-MAJOR + 20",
    "int(f'{MAJOR}{MINOR}') // 10",
    "(MAJOR if A else 0)",
    "(B and MAJOR)",
    "(C or MAJOR)",
    "max(MAJOR, 9)",
    "{9: 9, 10: 12}.get(MAJOR, 8)",
)
PAIRS = ("CAP", "(MAJOR, MINOR)", "torch.cuda.get_device_capability()", "(CAP if A else (0, 0))")
HEAD = """\
from functools import cache, lru_cache, partial

import torch
from env import A, B, C

CAP = torch.cuda.get_device_capability()
MAJOR, MINOR = CAP
SM = MAJOR * 10 + MINOR
"""

majors = st.sampled_from((8, 9, 10, 11, 12, 13))
pairs = st.sampled_from(((8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)))
orders = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))


@st.composite
def compares(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(("order", "in", "chain", "pair", "pairs", "generator")))
    word = draw(st.sampled_from(("in", "not in")))
    number, pair = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(PAIRS))
    few = draw(st.lists(majors, min_size=1, max_size=3))
    match kind:
        case "order":
            return f"{number} {draw(orders)} {draw(majors)}"
        case "in":
            return f"{number} {word} {draw(st.sampled_from((few, tuple(few), set(few))))!r}"
        case "chain":
            return f"{draw(majors)} <= {number} < {draw(majors)}"
        case "pair":
            return f"{pair} {draw(orders)} {draw(pairs)!r}"
        case "pairs":
            return f"{pair} {word} {draw(st.lists(pairs, min_size=1, max_size=2))!r}"
        case _:
            return f"any({number} == m for m in {few!r})"


def conditions(known: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    leaves = compares() | st.sampled_from((*FLAGS, *known))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(lambda a: f"(not {a})"),
            st.tuples(inner, inner).map(lambda p: f"({p[0]} and {p[1]})"),
            st.tuples(inner, inner).map(lambda p: f"({p[0]} or {p[1]})"),
            st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        ),
        max_leaves=5,
    )


@st.composite
def definitions(draw: st.DrawFn, name: str, known: tuple[str, ...]) -> str:
    def condition() -> str:
        return draw(conditions(known))

    decorator = draw(st.sampled_from(("", "@cache\n", "@lru_cache(maxsize=1)\n")))
    match draw(
        st.sampled_from(("def", "ifs", "local", "lambda", "partial", "nested", "walrus", "try"))
    ):
        case "def":
            return f"{decorator}def {name}():\n    '''Doc.'''\n    return {condition()}\n"
        case "ifs":
            return (
                f"{decorator}def {name}():\n    if {condition()}:\n        return {condition()}\n"
                f"    elif {condition()}:\n        return False\n    return {condition()}\n"
            )
        case "local":
            return (
                f"{decorator}def {name}():\n    major, minor = torch.cuda.get_device_capability()\n"
                f"    x = {condition()}\n    if x:\n        major = 9\n    return major == 9 or minor > 0\n"
            )
        case "lambda":
            return f"{name} = lambda: {condition()}\n"
        case "partial":
            return (
                f"def _{name}(majors, flag=False):\n    return MAJOR in majors or flag\n"
                f"{name} = other_{name} = lru_cache(maxsize=1)(partial(_{name}, majors=[9, 12], flag=B))\n"
            )
        case "nested":
            return (
                f"def {name}():\n    def inner(x, *, y=12):\n        return x == y or {condition()}\n"
                f"    return inner(MAJOR) and inner(CAP[0], y=9)\n"
            )
        case "walrus":
            return f"def {name}():\n    if (m := CAP[0]) and m in (9, 12):\n        return True\n    return {condition()}\n"
        case _:
            return (
                f"def {name}():\n    try:\n        cap = torch.cuda.get_device_capability()\n"
                f"    except RuntimeError:\n        return False\n    return cap[0] == 12 or {condition()}\n"
            )


@st.composite
def modules(draw: st.DrawFn) -> tuple[str, str]:
    """A module's source, and a condition in its terms."""
    text = HEAD
    known: tuple[str, ...] = ()
    for index in range(draw(st.integers(0, 3))):
        name = f"check{index}"
        text += draw(definitions(name, known))
        known = (*known, f"{name}()")
        if draw(st.booleans()):
            text += f"alias{index} = A and {name}()\n"
            known = (*known, f"alias{index}")
    return text, draw(conditions(known))


def _verdict(source: str, condition: str) -> Verdict:
    package = Package(lambda path: None)
    module = package.put("pkg/gate.py", ast.parse(source))
    return Meaning(package, {}).verdict(ast.parse(condition, mode="eval").body, Frame(module))


def _flags(number: int) -> dict[str, object]:
    return {name: bool(number >> index & 1) for index, name in enumerate(FLAGS)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_the_evaluator_agrees_with_really_running_the_code(found: tuple[str, str]) -> None:
    source, condition = found
    verdict = _verdict(source, condition)
    assert verdict.unknown == ()
    for arch in TABLE:
        for number in range(8):
            names = executed(source, arch, _flags(number))
            expected = bool(eval(condition, names))
            assert value_of(verdict.table[arch], names) == expected, f"{arch} {_flags(number)}"


PLACES = (
    "GATE = {}",
    "GATE = ({}) == A",
    "GATE = not ({})",
    "GATE = bool({})",
    "GATE = [m for m in (1,) if {}] == []",
    "GATE = (lambda: {})()",
    "GATE = B if {} else C",
    "GATE = ({} if B else A)",
    "GATE = (x := {})",
    "GATE = f'{{({})}}' == 'True'",
    "GATE = {{True: ({})}}[True]",
    "GATE = ({}).__bool__() if A else B",
    "def f():\n    if {}:\n        return True\n    return C\nGATE = f()",
    (
        "def f():\n    if {}:\n        raise ValueError\n    return True\n"
        "try:\n    GATE = f()\nexcept ValueError:\n    GATE = False"
    ),
    "GATE = False\nwhile {}:\n    GATE = True\n    break",
)
GOALS = (
    OPEN_12,
    opening("12.0"),
    opening("11.0", like="9.0"),
    closing("12.0 12.1"),
    closing("9.0"),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    conditions(("is_blackwell()", "is_12()")),
    st.data(),
    st.sampled_from(PLACES),
    st.sampled_from(GOALS),
)
def test_what_really_runs_changes_for_the_architectures_named_alone(
    condition: str, data: st.DataObject, place: str, goal: Goal
) -> None:
    text = ast.unparse(ast.parse(condition))
    kinds = data.draw(st.sampled_from((ast.BoolOp, ast.Compare, ast.Call)))
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    assume(nodes)
    part = ast.unparse(data.draw(st.sampled_from(nodes)))
    operand = data.draw(st.sampled_from((None, "is_12()", "MAJOR == 12", "A and is_12()")))
    helpers = "is_blackwell = lambda: MAJOR in (10, 12)\nis_12 = lambda: CAP[0] == 12\n"
    source = f"{HEAD}{helpers}{place.format(text)}\n"
    edit = gate(part, action=goal.action, operand=operand, count=None)
    try:
        found = run(source, edit, goal=goal)
    except RefusedError:
        return
    result = splice(source.encode(), found.edits).decode()
    for arch in TABLE:
        for number in range(8):
            before = executed(source, arch, _flags(number))["GATE"]
            after = executed(result, arch, _flags(number))["GATE"]
            if arch not in goal.archs:
                assert bool(after) == bool(before), f"{arch} {_flags(number)}: {result}"
    assert run(result, edit, goal=goal).edits == ()
