"""What macros mean in each pass, and the gates of a file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gatepatch.arch import CUDA_PASSES, TABLE, Arch, CudaPass, Suffix
from gatepatch.gates.cuda import gates_in
from gatepatch.gates.cuda_macros import is_target_macro, speaks_of_architecture, target_macro
from gatepatch.spec import Goal
from gatepatch.verdict import wanted


@pytest.mark.parametrize(
    "name",
    [
        *("CUTLASS_ARCH_MMA_SM90_ENABLED", "MIN_ARCH", "ENABLE_SM_100", "isSM90", "USE_HOPPER"),
        *("__CUDA_ARCH_LIST__", "__CUDA_ARCH_HAS_FEATURE__", "TARGET_COMPUTE_90", "ADA_KERNELS"),
        *("BLACKWELL", "CapabilityMajor", "FOR_ADA", "MY_GENCODE"),
    ],
)
def test_names_that_speak_of_an_architecture(name: str) -> None:
    assert speaks_of_architecture(name)


@pytest.mark.parametrize(
    "name",
    [
        *("CUDA_VERSION", "__CUDACC__", "__CUDACC_VER_MAJOR__", "NDEBUG", "ENABLE_BF16", "CANADA"),
        *("USE_BEAM_SEARCH", "ARCHIVE_DIR", "__aarch64__", "__has_include", "ENABLE_PDL", "SMALL"),
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not speaks_of_architecture(name)


def _defined(compilation: CudaPass) -> dict[str, int]:
    assert compilation.arch is not None
    names = [
        *("__CUDA_ARCH__", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__"),
        *(f"__CUDA_ARCH_FEAT_SM{arch.sm}_ALL" for arch in TABLE),
    ]
    assert all(map(is_target_macro, names))
    values = {name: target_macro(name, compilation) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def test_target_macros() -> None:
    assert _defined(CudaPass(Arch(9, 0))) == {"__CUDA_ARCH__": 900}
    assert _defined(CudaPass(Arch(12, 1), Suffix.ARCHITECTURE)) == {
        "__CUDA_ARCH__": 1210,
        "__CUDA_ARCH_SPECIFIC__": 1210,
        "__CUDA_ARCH_FAMILY_SPECIFIC__": 1210,
        "__CUDA_ARCH_FEAT_SM121_ALL": 1,
    }
    assert _defined(CudaPass(Arch(10, 3), Suffix.FAMILY)) == {
        "__CUDA_ARCH__": 1030,
        "__CUDA_ARCH_FAMILY_SPECIFIC__": 1030,
    }
    assert target_macro("__CUDA_ARCH__", CudaPass(None)) is None


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed: it is the judge")
def test_nvcc_defines_the_same_target_macros(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.touch()
    known = subprocess.run(["nvcc", "--list-gpu-arch"], capture_output=True, text=True, check=True)
    judged = 0
    for compilation in CUDA_PASSES:
        if compilation.arch is None or f"compute_{compilation.arch.sm}\n" not in known.stdout:
            continue
        target = f"{compilation.arch.sm}{compilation.suffix.value}"
        code = f"arch=compute_{target},code=sm_{target}"
        done = subprocess.run(
            ["nvcc", "-gencode", code, "--dryrun", "-c", source],
            capture_output=True,
            text=True,
            check=True,
        )
        (line,) = (text for text in done.stderr.splitlines() if "cpp1.ii" in text and "gcc" in text)
        macros = re.findall(r"-D(__CUDA_ARCH(?!_LIST)\w*?)(?:=(\d+))?(?= )", line)
        assert {name: int(value or 1) for name, value in macros} == _defined(compilation)
        judged += 1
    assert judged >= 15


_MADE_UP = b"""#ifndef MY_SM90_KERNELS_H_
#define MY_SM90_KERNELS_H_
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define USE_PDL 1
#endif
#define TILE 64
#if TILE > 32
#endif
#if USE_PDL
#endif
#ifdef HAS_SM90_KERNELS
#elif CUDA_VERSION >= 12080
#endif
#if __CUDA_ARCH__ >= MIN_SUPPORTED \\
    && TILE
#endif
#if __CUDA_ARCH__ 900
#endif
#endif
"""


def test_the_gates_of_a_file() -> None:
    gates = gates_in(_MADE_UP)
    assert [(g.line, g.end_line, g.keyword, g.target, g.verdict.unknown) for g in gates] == [
        (3, 3, "if", True, ()),
        (9, 9, "if", False, ("USE_PDL: line 4 defines it under a test of the architecture",)),
        (11, 11, "ifdef", False, ("defined(HAS_SM90_KERNELS): its name speaks of an architecture",)),
        (14, 15, "if", True, (
            (
                "__CUDA_ARCH__ >= MIN_SUPPORTED: "
                "the value of MIN_SUPPORTED beside __CUDA_ARCH__ is not known"
            ),
        )),
        (17, 17, "if", True, (
            "the condition: it does not parse: expected an operator, found '900'",
        )),
    ]  # fmt: skip
    assert gates[0].verdict.words() == {
        "no": "host 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9",
        "yes": "9.0 10.0 10.3 11.0 12.0 12.1 13.0",
    }
    for gate in gates:
        assert _MADE_UP[gate.start : gate.end].decode() == gate.text


def test_a_file_that_redefines_a_target_macro_makes_it_unknown() -> None:
    source = (
        b"#ifndef __CUDA_ARCH__\n#define __CUDA_ARCH__ 900\n#endif\n#if __CUDA_ARCH__ > 800\n#endif"
    )
    guard, gate = gates_in(source)
    assert guard.verdict.unknown == ("defined(__CUDA_ARCH__): line 2 redefines it",)
    assert gate.verdict.unknown == ("__CUDA_ARCH__ > 800: line 2 redefines it",)


def test_a_macro_defined_from_the_architecture_is_unknown() -> None:
    source = b"#define MAJOR (__CUDA_ARCH__ / 100)\n#define TWICE MAJOR * 2\n#if TWICE > 18\n#endif"
    (gate,) = gates_in(source)
    assert gate.verdict.unknown == ("TWICE > 18: line 2 defines it from the architecture",)


def test_a_family_target_shares_the_plain_verdict_of_an_architecture_without_families() -> None:
    (gate,) = gates_in(b"#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n#endif")
    goal = Goal(action="open", archs=frozenset({Arch(12, 0)}), like=Arch(9, 0))
    table = wanted(gate.verdict, goal).table
    assert [table[CudaPass(Arch(12, 0), suffix)] for suffix in Suffix] == [False, True, False]
