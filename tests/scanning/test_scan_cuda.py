"""The gates that a scan finds in C, C++ and CUDA files, by their shapes."""

from __future__ import annotations

import textwrap

import pytest

from gatepatch.arch import TABLE
from gatepatch.scanning.found import Found, admission
from gatepatch.scanning.one_file import found_in_cuda
from gatepatch.scanning.records import Answer


def gates(text: str) -> list[Found]:
    """The gates of a file."""
    return list(found_in_cuda(textwrap.dedent(text).encode()))


def admitted(found: Found, *answers: Answer) -> str:
    """The architectures of which a gate says one of some things."""
    told = admission(found.verdict, rejects=found.rejects).answers
    wanted = answers or ("admits", "depends")
    return " ".join(str(a.sm) for a, answer in zip(TABLE, told, strict=True) if answer in wanted)


FROM_90 = "90 100 103 110 120 121 130"

DIRECTIVES = [
    ("#if __CUDA_ARCH__ >= 900\n#endif\n", FROM_90),
    ("#if (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)\n#endif\n", "90 100 103 110"),
    ("#if 1000 == __CUDA_ARCH__\n#endif\n", "100"),
    ("#if defined(__CUDA_ARCH__) && \\\n    __CUDA_ARCH__ >= 900 // both\n#endif\n", FROM_90),
    ("#if defined(OTHER) && \\\n    __CUDA_ARCH__ >= 900\n#endif\n", FROM_90),
    ("#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n#endif\n", "90"),
    (
        "#if __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1200 and __CUDA_ARCH_FAMILY_SPECIFIC__ < 1300\n#endif\n",
        "120 121",
    ),
]


@pytest.mark.parametrize(("text", "archs"), DIRECTIVES)
def test_a_directive_is_found(text: str, archs: str) -> None:
    (found,) = gates(text)
    assert (found.kind, admitted(found)) == ("directive", archs)


HOST = [
    ("int f(int sm) { if (sm == 90) { g(); } }", "branch", "90"),
    (
        "int f(int sm) { if (90 <= getSMVersion() && getSMVersion() < 120) g(); }",
        "branch",
        "90 100 103 110",
    ),
    ('void f() { TORCH_CHECK(prop.major >= 9, "no"); }', "check", FROM_90),
    ('void f() { TVM_FFI_ICHECK(p->major == 10 && p->minor == 3) << "no"; }', "check", "103"),
    (
        "void f(int sm) { switch (sm) { case 90: a(); break; case 100: b(); break; } }",
        "switch",
        "90 100",
    ),
    ("bool f() { return smMajor >= 9 && tokens > 3; }", "value", FROM_90),
    ("void f() { bool const wide = (sm_major >= 9); }", "value", FROM_90),
    ("void f() { int n = sm >= 100 ? 2 : 1; }", "branch", "100 103 110 120 121 130"),
    (
        "void f() { if constexpr (Arch::kSM >= 90) { } static_assert(arch >= 900); }",
        "constexpr",
        FROM_90,
    ),
    ("void f(int sm) { if (sm < 90) { throw Error(); } }", "branch", FROM_90),
    ("void f(int sm) { if (sm / 10 == 12) { g(); } }", "branch", "120 121"),
]


@pytest.mark.parametrize(("text", "kind", "archs"), HOST)
def test_a_condition_of_host_code_is_found(text: str, kind: str, archs: str) -> None:
    assert (kind, archs) in [(found.kind, admitted(found)) for found in gates(text)]


@pytest.mark.parametrize(
    "text",
    [
        "// if (sm == 90)\n/* #if __CUDA_ARCH__ >= 900 */\n",
        'char const* text = "#if __CUDA_ARCH__ >= 900";\n',
        "#ifndef MY_SM90_HEADER_H\n#define MY_SM90_HEADER_H\n#endif\n",
        "void f() { if (smem_bytes > 48 * 1024) g(); }",
        "void f() { if (num_sms == 2) g(); }",
        "void f() { if (version.major == 3) g(); }",
        "void f() { if (mma_sm == 2) g(); }",
    ],
)
def test_what_is_no_gate_is_not_listed(text: str) -> None:
    assert gates(text) == []


def test_what_a_directive_guards() -> None:
    pdl, body, trap, error = gates(
        """
        __global__ void first(int* p) {
          int x = *p;
        #if __CUDA_ARCH__ >= 900
          asm volatile("griddepcontrol.wait;");
        #endif
        }
        __global__ void second(int* p) {
        #if __CUDA_ARCH__ >= 900
          p[0] = 1;
          p[1] = 2;
        #endif
        }
        __global__ void third(int* p) {
        #if __CUDA_ARCH__ < 900
          asm volatile("trap;");
        #endif
          p[0] = 1;
        }
        #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
        #error too old
        #endif
        """
    )
    assert (pdl.within, pdl.guards.effect) == ("first", "pdl")
    assert pdl.guards.calls == ("griddepcontrol.wait",)
    assert (body.within, body.guards.effect, body.guards.lines) == ("second", "body", 2)
    assert body.compiled
    assert (trap.within, trap.guards.effect, trap.rejects) == ("third", "trap", True)
    assert admitted(trap, "admits") == FROM_90
    assert (error.guards.effect, error.rejects) == ("raises", True)


def test_what_is_done_instead() -> None:
    (found,) = gates("#if __CUDA_ARCH__ >= 900\nint a;\n#else\n#error no\n#endif\n")
    assert found.guards.otherwise == "an error"


def test_a_condition_that_does_not_parse_is_unknown() -> None:
    (found,) = gates("#if __CUDA_ARCH__ >= \n#endif\n")
    assert found.verdict.unknown
    assert "does not parse" in found.verdict.unknown[0]


@pytest.mark.parametrize(
    ("text", "archs"),
    [
        ("void f() { if (sm_ >= 80 && sm_ < 89) { a(); } }", "80 86 87 88"),
        ("void f(int sm) { int n = small ? 6 : (sm >= 80 ? 4 : 2); }", f"80 86 87 88 89 {FROM_90}"),
        ('void f(int sm_version) { assert(sm_version >= 90 && "too old"); }', FROM_90),
        ("int f(int sm_version) { if (sm_version >= 90) return (int)large; return 0; }", FROM_90),
        ("void f(Target arch) { CHECK(arch == Target::kSm100a); }", "100"),
    ],
)
def test_a_condition_of_host_code_is_read(text: str, archs: str) -> None:
    (found,) = gates(text)
    assert (admitted(found), found.unknown) == (archs, ())


@pytest.mark.parametrize(
    "text",
    [
        "void f() { if constexpr (Stages > 2 && arch::kMinComputeCapability < 80) { a(); } }",
        "void f() { CHECK(kTarget == Target::kSm100a); }",
    ],
)
def test_what_code_was_built_for_is_not_known(text: str) -> None:
    (found,) = gates(text)
    assert admitted(found, "unknown") == " ".join(str(arch.sm) for arch in TABLE)


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef __CUDA_ARCH__\n__device__ int x;\n#endif\n",
        "#if !defined(__CUDA_ARCH__)\nint x;\n#endif\n",
        "using Step = conditional_t<is_major<0, Stride>(), One, Two>;\n",
    ],
)
def test_what_only_looks_like_a_condition_on_architectures_is_none(text: str) -> None:
    assert not gates(text)


def test_a_kernels_own_number_is_no_test_of_the_architecture_in_its_name() -> None:
    assert not gates("#if defined(SM120_TILE_RANK) && SM120_TILE_RANK == 64\nint x;\n#endif\n")
    (found,) = gates("#if defined(SM120_TILE) && SM120_TILE == 64\nint x;\n#endif\n")
    assert found.verdict.unknown


def test_a_macro_that_is_1_or_0_by_the_architecture_is_its_test() -> None:
    text = """
        #if __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FEAT_SM100_ALL)
        #define HAS_ROUNDING 1
        #else
        #define HAS_ROUNDING 0
        #endif
        #if HAS_ROUNDING
        int x;
        #endif
    """
    first, last = gates(text)
    assert admitted(first) == admitted(last) == "100"
    assert not last.verdict.unknown
    again = gates(text + "\n#undef HAS_ROUNDING\n")
    assert again[-1].verdict.unknown
