"""What a scan says of directives, against ``gcc -E``, on the own files of both packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "gates"))

from gcc_judge import judge, reached

from gatepatch.arch import CUDA_PASSES, TABLE, Arch, CudaPass
from gatepatch.boolean import Atom, Bool, atoms, evaluate
from gatepatch.gates.cuda_gates import Gate, gates_in
from gatepatch.gates.cuda_macros import COMPILER, is_target_macro, read_macros, target_macro
from gatepatch.gates.cuda_settled import Outside, settle
from gatepatch.gates.directives import Branch, scan
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_tree import Call, macros, to_source, walk
from gatepatch.scanning.prefilter import may_hold_directives
from gatepatch.scanning.walk import CUDA, tree_of
from gatepatch.verdict import Verdict
from wheels import fetch

pytestmark = pytest.mark.slow

_MACROS = (
    *("__CUDA_ARCH__", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__"),
    *(f"__CUDA_ARCH_FEAT_SM{arch.sm}_ALL" for arch in TABLE),
)


def _own(tree: Path) -> Iterator[bytes]:
    for path in sorted(tree.rglob("*")):
        if path.suffix in CUDA and path.is_file():
            data = path.read_bytes()
            if tree_of(path.relative_to(tree).as_posix(), data[:2048]) == "own":
                yield data


def _condition(gate: Gate) -> str:
    if gate.keyword.endswith("def"):
        return f"{'!' * ('n' in gate.keyword)}defined({gate.text})"
    return gate.text


def _targets(compilation: CudaPass) -> dict[str, str]:
    """The macros that nvcc defines in a pass."""
    values = {name: target_macro(name, compilation) for name in _MACROS}
    targets = {name: str(value) for name, value in values.items() if value is not None}
    return targets if compilation.arch is None else {COMPILER: "1", **targets}


def _parses(condition: str) -> bool:
    try:
        parse(condition)
    except ConditionError:
        return False
    return True


@pytest.mark.parametrize(
    ("distribution", "version"), [("sglang", "0.5.23"), ("flashinfer-python", "0.7.4")]
)
def test_gcc_agrees_on_every_condition(
    distribution: str, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, Gate] = {}
    files = total = 0
    for data in _own(fetch(distribution, version)):
        files += 1
        gates = gates_in(data)
        # The scan looks only into files that the prefilter lets through: it misses none.
        assert may_hold_directives(data) or not gates
        total += len(gates)
        for gate in gates:
            hidden = any("redefines" in r or "defines it" in r for r in gate.verdict.unknown)
            if _parses(_condition(gate)) and not hidden:
                found.setdefault(_condition(gate), gate)
    conditions = list(found)
    parts = sorted(
        {a.text for g in found.values() for f in g.verdict.table.values() for a in atoms(f)}
    )
    others = {n for c in conditions for n in macros(parse(c)) if not is_target_macro(n)}
    judged = 0
    for compilation in CUDA_PASSES:
        targets = _targets(compilation)
        for setting in ({}, dict.fromkeys(sorted(others), "1")):
            answers = judge([*conditions, *parts], {**setting, **targets})
            told = dict(zip(parts, answers[len(conditions) :], strict=True))

            def value_of(atom: Atom, told: dict[str, bool | None] = told) -> bool:
                return bool(told[atom.text])

            for condition, answer in zip(conditions, answers[: len(conditions)], strict=True):
                if answer is None:
                    continue  # a function-like macro that is not defined
                function: Bool = found[condition].verdict.table[compilation]
                assert evaluate(function, value_of) is answer, (condition, str(compilation))
                judged += 1
    with capsys.disabled():
        print(
            f"\n{distribution} {version}: {files} own files, {total} directives, "
            f"{len(conditions)} different ones, {judged} judgements of gcc -E, no disagreement"
        )
    assert judged > 1000


_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_JUDGED = [
    p for p in CUDA_PASSES if p.arch in {None, Arch(7, 5), Arch(8, 9), Arch(9, 0), Arch(12, 0)}
]


def _asked(source: bytes, questions: Mapping[Branch, Sequence[str]]) -> bytes:
    """The source, with conditions asked in front of directives, by number; nothing is included."""
    parts: list[bytes] = []
    last = number = 0
    for branch, conditions in questions.items():
        start = source.rfind(b"\n", 0, branch.directive.start) + 1
        parts.append(source[last:start])
        for condition in conditions:
            parts.append(f"#if {condition}\nreached {number}\n#endif\n".encode())
            number += 1
        last = start
    return _INCLUDE.sub(b"#pragma x", b"".join([*parts, source[last:]]))


def _settled(data: bytes) -> tuple[frozenset[str], dict[Branch, Verdict]]:
    """The macros that are followed in a file, and the verdicts that can be judged."""
    found = scan(data)
    settling = settle(found, read_macros(found), Outside())
    # gcc takes a function-like macro that is not defined for an error.
    if settling is None or any(map(_calls, settling.verdicts)):
        return frozenset(), {}
    return settling.followed, {
        branch: verdict
        for branch, verdict in settling.verdicts.items()
        if branch.directive.keyword.startswith("if")
        and branch not in settling.by_name
        and not isinstance(branch.condition, ConditionError)
    }


def _calls(branch: Branch) -> bool:
    if branch.condition is None or isinstance(branch.condition, ConditionError):
        return False
    return any(isinstance(node, Call) for node in walk(branch.condition))


def _disagreements(data: bytes) -> Iterator[str]:
    """A line for each judgement of ``gcc -E`` on a file: empty where it agrees."""
    followed, verdicts = _settled(data)
    questions: dict[Branch, list[str]] = {}
    for branch, verdict in verdicts.items():
        assert branch.condition is not None
        assert not isinstance(branch.condition, ConditionError)
        parts = sorted({a.text for f in verdict.table.values() for a in atoms(f)})
        questions[branch] = ["1", to_source(branch.condition), *parts]
    asked = _asked(data, questions)
    for compilation in _JUDGED if verdicts else ():
        lines = reached(asked, _targets(compilation))
        number = 0
        for branch, texts in questions.items():
            here, holds, *told = [n in lines for n in range(number, number + len(texts))]
            number += len(texts)
            # What a macro was before the file: nothing, as it is compiled here.
            now = {
                text: value and not followed.intersection(macros(parse(text)))
                for text, value in zip(texts[2:], told, strict=True)
            }
            if here:
                mine = evaluate(verdicts[branch].table[compilation], lambda a, now=now: now[a.text])  # type: ignore[misc]
                yield "" if mine is holds else f"line {branch.directive.line}, {compilation}"


@pytest.mark.parametrize(
    ("distribution", "version"), [("sglang", "0.5.23"), ("flashinfer-python", "0.7.4")]
)
def test_gcc_agrees_on_macros_that_a_file_defines(
    distribution: str, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        line
        for data in _own(fetch(distribution, version))
        if may_hold_directives(data)
        for line in _disagreements(data)
    ]
    with capsys.disabled():
        print(f"\n{distribution} {version}: {len(lines)} judgements of gcc -E on whole files")
    assert not list(filter(None, lines))
    assert len(lines) > 100
