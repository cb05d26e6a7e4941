"""What a scan says of directives, against ``gcc -E``, on the own files of both packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "gates"))

from gcc_judge import judge

from gatepatch.arch import CUDA_PASSES, TABLE
from gatepatch.boolean import Atom, Bool, atoms, evaluate
from gatepatch.gates.cuda_gates import Gate, gates_in
from gatepatch.gates.cuda_macros import is_target_macro, target_macro
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_tree import macros
from gatepatch.scanning.prefilter import may_hold_directives
from gatepatch.scanning.walk import CUDA, tree_of
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
        values = {name: target_macro(name, compilation) for name in _MACROS}
        targets = {name: str(value) for name, value in values.items() if value is not None}
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
