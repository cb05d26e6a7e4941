"""What a set may say of its translation units, and how it is told that it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatepatch import catalog, cli
from gatepatch.errors import SpecError
from gatepatch.loader import load
from gatepatch.spec import Expectation, UnitSpec

UNIT = "flashinfer/data/csrc/trtllm_allreduce.cu"
GOOD = f"""\
schema: 1
name: good
summary: Admit SM 12.0
why: It is refused.
admit: [sm_120]
like: sm_100
targets:
  - distribution: flashinfer-python
    versions: ">=0.6,<0.7"
    files:
      - path: flashinfer/jit/comm.py
        edits:
          - open: {{within: gen, keyword: supported_major_versions}}
    compile:
      - unit: {UNIT}
        expect:
          - {{instruction: griddepcontrol, before: none, after: as-like}}
          - {{kernels: empty, before: some}}
"""
PLACE = "targets[0].compile[0]"


def read(tmp_path: Path, text: str) -> tuple[UnitSpec, ...]:
    (tmp_path / "good.yaml").write_text(text)
    return load(tmp_path / "good.yaml").targets[0].units


def test_units_are_read_as_written(tmp_path: Path) -> None:
    first = Expectation(
        where=f"{PLACE}.expect[0]", instruction="griddepcontrol", before="none", after="as-like"
    )
    second = Expectation(where=f"{PLACE}.expect[1]", before="some")
    assert read(tmp_path, GOOD) == (UnitSpec(where=PLACE, path=UNIT, expect=(first, second)),)
    assert (first.subject, second.subject) == ("griddepcontrol instructions", "empty kernels")


BAD = {
    "another distribution": (
        "distribution: flashinfer-python",
        "distribution: vllm",
        "targets[0].compile",
        "it is not known how vllm compiles: this is for flashinfer-python",
        None,
    ),
    "a unit elsewhere": (
        UNIT,
        "flashinfer/jit/comm.py",
        f"{PLACE}.unit",
        "'flashinfer/jit/comm.py' is no unit that FlashInfer compiles",
        f"write one such as {UNIT}",
    ),
    "a path that climbs": (
        UNIT,
        "flashinfer/data/../x.cu",
        f"{PLACE}.unit",
        "'flashinfer/data/../x.cu' is no path inside a distribution",
        "write it from where the package is imported, such as sglang/srt/server_args.py",
    ),
    "both subjects": (
        "kernels: empty,",
        "kernels: empty, instruction: bra,",
        f"{PLACE}.expect[1]",
        "expected one of instruction and kernels",
        None,
    ),
    "no subject": (
        "kernels: empty, ",
        "",
        f"{PLACE}.expect[1]",
        "expected one of instruction and kernels",
        None,
    ),
    "no amount": (
        "kernels: empty, before: some",
        "kernels: empty",
        f"{PLACE}.expect[1]",
        "expected before, after, or both: none, some or as-like",
        None,
    ),
    "another amount": (
        "before: some",
        "before: any",
        f"{PLACE}.expect[1].before",
        "expected none or some or as-like, found 'any'",
        "known: as-like, none, some",
    ),
    "another property of kernels": (
        "kernels: empty",
        "kernels: full",
        f"{PLACE}.expect[1].kernels",
        "expected empty, found 'full'",
        "known: empty",
    ),
    "no opcode": (
        "griddepcontrol",
        "'griddepcontrol;'",
        f"{PLACE}.expect[0].instruction",
        "'griddepcontrol;' is no PTX opcode",
        "write one such as griddepcontrol",
    ),
    "a misspelt key": (
        "before: none",
        "befor: none",
        f"{PLACE}.expect[0]",
        "unknown key 'befor'",
        "did you mean 'before'?",
    ),
    "like nothing": (
        "admit: [sm_120]\nlike: sm_100",
        "exclude: [sm_120]",
        f"{PLACE}.expect[0].after",
        "as-like needs a set with like",
        "write none or some",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_told(case: str, tmp_path: Path) -> None:
    old, new, place, message, hint = BAD[case]
    text = GOOD.replace(old, new)
    assert text != GOOD
    if "exclude" in new:
        text = text.replace("open:", "close:")
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text)
    problem = caught.value.problems[0]
    assert (problem.where or "").partition(" ")[2] == f"({place})"
    assert (problem.message, problem.hint) == (message, hint)


def test_units_change_nothing_that_is_applied_and_no_pin(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    with_units = load(tmp_path / "good.yaml")
    (tmp_path / "good.yaml").write_text(GOOD.partition("    compile:")[0])
    without = load(tmp_path / "good.yaml")
    (file,) = with_units.targets[0].files
    (other,) = without.targets[0].files
    assert with_units.recipe(file) == without.recipe(other)


def test_the_set_that_ships_has_units_where_tvm_ffi_is_used() -> None:
    patch_set = catalog.load("sm120-allreduce")
    flashinfer = [t for t in patch_set.targets if t.distribution == "flashinfer-python"]
    assert [[unit.path for unit in target.units] for target in flashinfer] == [[], [UNIT], []]


def test_show_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "sm120-allreduce"]) == 0
    assert f"    verify --compile: {UNIT}  (2 expectations)\n" in capsys.readouterr().out
