"""The evaluator and the engine on FlashInfer's own source, with ``gcc -E`` as the judge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cuda_sets import gate, run
from gcc_judge import judge, reached

from gatepatch.arch import CUDA_PASSES, TABLE, Arch, CudaPass, Suffix
from gatepatch.boolean import Atom, Bool, atoms, evaluate
from gatepatch.edits import ByteEdit, splice
from gatepatch.gates.cuda import Gate, gates_in
from gatepatch.gates.cuda_macros import is_target_macro, reach, speaks_of_architecture, target_macro
from gatepatch.gates.directives import Branch, scan
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_eval import Known, Macro
from gatepatch.gates.preprocessor_eval import evaluate as evaluate_condition
from gatepatch.gates.preprocessor_tree import macros
from gatepatch.verdict import Verdict
from wheels import fetch

pytestmark = pytest.mark.slow

_TARGET_MACROS = (
    *("__CUDA_ARCH__", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__"),
    *(f"__CUDA_ARCH_FEAT_SM{arch.sm}_ALL" for arch in TABLE),
)
_A = Suffix.ARCHITECTURE
_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".inl", ".inc", ".cc", ".cpp", ".jinja")


@pytest.fixture(scope="module")
def flashinfer() -> Path:
    return fetch("flashinfer-python", "0.6.3") / "flashinfer"


def _sources(package: Path) -> Iterator[Path]:
    """FlashInfer's own headers and sources: not the trees of CUTLASS and spdlog beside them."""
    for folder in ("include", "csrc"):
        paths = sorted((package / "data" / folder).rglob("*"))
        yield from (p for p in paths if p.suffix in _SUFFIXES and p.is_file())


@dataclass(frozen=True, kw_only=True)
class _Case:
    path: str
    gate: Gate
    condition: str
    others: tuple[str, ...]


def _cases(package: Path) -> list[_Case]:
    cases = []
    for path in _sources(package):
        for found in gates_in(path.read_bytes()):
            text = found.text
            if found.keyword.endswith("def"):
                text = f"{'!' * ('n' in found.keyword)}defined({text})"
            names = macros(parse(text))
            others = tuple(name for name in names if not is_target_macro(name))
            where = path.relative_to(package).as_posix()
            cases.append(_Case(path=where, gate=found, condition=text, others=others))
    return cases


def _definitions(compilation: CudaPass) -> dict[str, str]:
    values = {name: target_macro(name, compilation) for name in _TARGET_MACROS}
    return {name: str(value) for name, value in values.items() if value is not None}


def _settings(names: list[str]) -> Iterator[dict[str, str]]:
    """Values of all other macros: none, all, and some at random."""
    yield {}
    yield dict.fromkeys(names, "1")
    for seed in range(4):
        chance = random.Random(seed)
        chosen = [name for name in names if chance.random() < 0.6]
        yield {name: str(chance.choice([0, 1, 12, 900, 1000, 1200, 13000])) for name in chosen}


def test_gcc_agrees_on_every_condition(
    flashinfer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = _cases(flashinfer)
    names = sorted({name for case in cases for name in case.others})
    parts = sorted({a.text for c in cases for f in c.gate.verdict.table.values() for a in atoms(f)})
    judged = disagreements = 0
    for compilation in CUDA_PASSES:
        for setting in _settings(names):
            defines = {**setting, **_definitions(compilation)}
            answers = judge([c.condition for c in cases] + parts, defines)
            values = dict(zip(parts, answers[len(cases) :], strict=True))

            def value_of(atom: Atom, values: dict[str, bool | None] = values) -> bool:
                value = values[atom.text]
                assert value is not None, atom
                return value

            for case, answer in zip(cases, answers[: len(cases)], strict=True):
                function: Bool = case.gate.verdict.table[compilation]
                judged += 1
                disagreements += evaluate(function, value_of) is not answer
    counts = Counter(_kind(case) for case in cases)
    with capsys.disabled():
        print(
            f"\nFlashInfer 0.6.3: {len(list(_sources(flashinfer)))} own files, {len(cases)} gates"
        )
        for kind, count in sorted(counts.items()):
            print(f"  {count:5} {kind}")
        print(f"  {judged} judgements of gcc -E, {disagreements} disagreements")
    assert disagreements == 0
    assert len(cases) > 500


def _kind(case: _Case) -> str:
    target = "target macros" if case.gate.target else "no target macro"
    if not case.others:
        return f"{target} only: {'unknown' if case.gate.verdict.unknown else 'known'}"
    return (
        f"{target} and others: {'unknown' if case.gate.verdict.unknown else 'known, others free'}"
    )


def test_what_is_unknown_is_unknown_by_a_macro_s_name(flashinfer: Path) -> None:
    redefining = "data/csrc/xqa/cuda_hint.cuh"
    for case in _cases(flashinfer):
        unknown = case.gate.verdict.unknown
        if not case.others:
            # One file pretends to an editor that it is compiled for 9.0.
            assert not unknown or case.path == redefining, case
        for reason in unknown:
            assert any(name in reason for name in macros(parse(case.condition))), reason
        if case.others and not unknown:
            assert not any(map(speaks_of_architecture, case.others)), case


def _marked(source: bytes) -> tuple[bytes, dict[int, Branch]]:
    """Mark the end of what each branch guards, and leave no other directive an effect."""
    found = scan(source)
    edits = [
        ByteEdit(d.name.start, source[d.name.start : d.name.end], b"pragma")
        for d in found.directives
        if d.name and d.name.text in ("define", "undef", "include", "error", "warning", "line")
    ]
    marks = {n: branch for n, branch in enumerate(found.branches.values()) if branch in found.ends}
    for number, branch in marks.items():
        edits.append(ByteEdit(found.ends[branch].start, b"", b"\nreached %d\n" % number))
    return splice(source, edits), marks


@pytest.mark.parametrize("compilation", [CudaPass(None), CudaPass(Arch(9, 0), _A)], ids=str)
def test_gcc_takes_the_same_branches_of_whole_files(
    flashinfer: Path, compilation: CudaPass, capsys: pytest.CaptureFixture[str]
) -> None:
    def lookup(name: str) -> Macro:
        if name == "__cplusplus":
            return Known(201703)
        return Known(target_macro(name, compilation) if is_target_macro(name) else None)

    def verdict(branch: Branch) -> Verdict:
        condition = branch.condition
        assert not isinstance(condition, ConditionError)
        return Verdict({compilation: condition is None or evaluate_condition(condition, lookup)})

    compared = 0
    for path in _sources(flashinfer):
        marked, marks = _marked(path.read_bytes())
        if not marks:
            continue
        found = reached(marked, _definitions(compilation))
        for number, branch in marks.items():
            # A function-like macro that is not defined is an error, and has no value.
            if isinstance(value := reach(branch, verdict).table[compilation], bool):
                assert value is (number in found), (path, branch.directive.line)
                compared += 1
    with capsys.disabled():
        print(f"\nFlashInfer 0.6.3, {compilation}: {compared} branches as gcc -E takes them")
    assert compared > 1500


_HEADER = "data/include/flashinfer/comm/trtllm_allreduce.cuh"


def test_thirteen_conditions_of_the_all_reduce_header(flashinfer: Path) -> None:
    source = (flashinfer / _HEADER).read_bytes()
    edit = gate("__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200", count=13)
    planned = run(source, edit)
    assert {(e.old, e.new) for e in planned.edits} == {(b"1200", b"1300")}
    assert len(planned.edits) == len(planned.changes) == 13
    for change in planned.changes:
        assert change.unproved == ""
        assert change.verdict_after is not None
        assert change.verdict_after.words()["yes"] == "9.0 10.0 10.3 11.0 12.0 12.1"
    result = splice(source, planned.edits)
    assert result == source.replace(b"(__CUDA_ARCH__ < 1200)", b"(__CUDA_ARCH__ < 1300)")
    again = run(result, edit)
    assert (len(again.changes), again.edits) == (13, ())
