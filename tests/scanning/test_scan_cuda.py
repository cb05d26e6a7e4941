"""The gates that a scan finds in C, C++ and CUDA files, by their shapes."""

from __future__ import annotations

import textwrap

import pytest

from gatepatch.arch import TABLE
from gatepatch.boolean import atoms
from gatepatch.gates.cuda_settled import Outside
from gatepatch.scanning.found import Found, admission
from gatepatch.scanning.one_file import found_in_cuda
from gatepatch.scanning.records import Answer


def gates(text: str) -> list[Found]:
    """The gates of a file."""
    return list(found_in_cuda(textwrap.dedent(text).encode(), Outside()))


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
    ("#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900\n#endif\n", FROM_90),
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


def test_a_macros_text_ends_with_its_directive() -> None:
    (found,) = gates(
        "int a\n#define NEW __CUDA_ARCH__ >= 900 && \\\n  __CUDA_ARCH__ < 1200\nint x;\n"
    )
    assert found.text == "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200"
    assert (admitted(found), found.verdict.unknown) == ("90 100 103 110", ())


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
        ("bool f() const { return mSM >= 100 && mSM < 110 && !mBias; }", "100 103"),
        ("void f(int sm) { int n = small ? 6 : (sm >= 80 ? 4 : 2); }", f"80 86 87 88 89 {FROM_90}"),
        ('void f(int sm_version) { assert(sm_version >= 90 && "too old"); }', FROM_90),
        ("int f(int sm_version) { if (sm_version >= 90) return (int)large; return 0; }", FROM_90),
        ("void f(Target arch) { CHECK(arch == Target::kSm100a); }", "100"),
        ("void f() { CHECK(mSM == kSM_100 || mSM == kSM_103 || mSM == kSM_107); }", "100 103"),
        ("void f() { if (run->smVersion() == kSM_103 && n) { a(); } }", "103"),
        (
            "void f() { if (compute_capability.first < 9) { return error; } }",
            "70 72 75 80 86 87 88 89",
        ),
        (
            "#define PICK(cap, ...) \\\n  if (compute_capacity.first >= 9) { __VA_ARGS__ }\n",
            FROM_90,
        ),
        ("void f() { CHECK(major == 10 && minor == 7); }", ""),
        ("void f() { if (major == 6) { a(); } }", ""),
        ("void f() { FFI_ICHECK_EQ(major, 10) << why; }", "100 103"),
        ('void f() { CHECK_GE(props.major, 9, "too old"); }', FROM_90),
        ("bool f() { return even && (this->getSM() >= 90); }", FROM_90),
        (
            "bool f() { return is_same_v<T, X> && !is_same_v<U, Y> && (sm >= 90) && m % 64 == 0; }",
            FROM_90,
        ),
        (
            'int f(int sm) { if (sm < 90) { err << "too old" << end; return cudaErrorNotSupported; } }',
            FROM_90,
        ),
        (
            "void f(int sm) { if (is_same_v<A, B> && (sm == 90 && fits<A, C<2>>(n))) { a(); } }",
            "90",
        ),
        ("void f(int sm) { bool ok = is_same<A, row<B, 2>>::value && sm == 90; }", "90"),
        ("using A = std::conditional_t<sm_arch >= 900, B, C>;", FROM_90),
        (
            "template <typename T, typename std::enable_if<(sm_arch == 90)>::type> struct A {};",
            "90",
        ),
        (
            "#define PICK(T) \\\n  pick<std::conditional_t< \\\n    sm_arch == 90 && T::small, A, B>>()\n",
            "90",
        ),
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
        "void f() { if (inputs.gemm_config->sm_version >= 90) { a(); } }",
        "void f() { if (kernelMeta.mSM == kSM_100) { a(); } }",
        "bool f(int kernelSM) { return kernelSM == kSM_100; }",
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
        "#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)\nint x;\n#endif\n",
        "using Step = conditional_t<is_major<0, Stride>(), One, Two>;\n",
        "bool const ok = is_same<Layout, layout::ColumnMajorInterleaved<32>>::value || other;\n",
        "static_assert(__CUDA_ARCH__ == MY_CUDA_ARCH);\n",
        "#if 0  // later\n#ifdef X\n#endif\nvoid f(int sm) { if (sm == 90) g(); }\n#endif\n",
    ],
)
def test_what_only_looks_like_a_condition_on_architectures_is_none(text: str) -> None:
    assert not gates(text)


def test_what_stands_behind_an_if_0_is_listed() -> None:
    text = "#if 0\nint a;\n#else\nvoid f(int sm) { if (sm == 90) g(); }\n#endif\n"
    after = "void h(int sm) { if (sm == 100) g(); }\n"
    assert [admitted(one) for one in gates(text + after)] == ["90", "100"]


def test_a_kernels_own_number_is_no_test_of_the_architecture_in_its_name() -> None:
    assert not gates("#if defined(SM120_TILE_RANK) && SM120_TILE_RANK == 64\nint x;\n#endif\n")
    (found,) = gates("#if defined(SM120_TILE) && SM120_TILE == 64\nint x;\n#endif\n")
    assert found.verdict.unknown


SETTLED = [
    pytest.param(
        """
        #if __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FEAT_SM100_ALL)
        #define HAS_ROUNDING 1
        #else
        #define HAS_ROUNDING 0
        #endif
        #if HAS_ROUNDING
        """,
        "100",
        id="set to 1 or 0",
    ),
    pytest.param(
        """
        #ifndef SOME_HEADER_SM90_H
        #define SOME_HEADER_SM90_H
        #if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        #define HAS_COPY
        #endif
        #ifdef HAS_COPY
        #endif
        """,
        FROM_90,
        id="defined as nothing, in an include guard",
    ),
    pytest.param(
        """
        #if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
        #define IS_HOST 1
        #else
        #define IS_HOST 0
        #endif
        #if __CUDA_ARCH__ >= 1000 || IS_HOST
        #define HAS_IT 1
        #else
        #define HAS_IT 0
        #endif
        #if HAS_IT
        """,
        "100 103 110 120 121 130",
        id="by way of the host's pass",
    ),
    pytest.param(
        """
        #define IS_LARGE (__CUDA_ARCH__ >= 1200)
        #if !IS_LARGE && __CUDA_ARCH__ >= 900
        """,
        "90 100 103 110",
        id="defined from the architecture",
    ),
    pytest.param(
        "#define FROM(x) (__CUDA_ARCH__ >= x)\n#if FROM(900) && !FROM(1200)\n",
        "90 100 103 110",
        id="with an argument",
    ),
    pytest.param(
        """
        #if !defined(HAS_IT) && __CUDA_ARCH__ >= 900
        #define HAS_IT 1
        #endif
        #if __CUDA_ARCH__ == 1200
        #undef HAS_IT
        #endif
        #if defined(HAS_IT)
        """,
        "90 100 103 110 121 130",
        id="let go of again",
    ),
    pytest.param(
        "#if MY_CUDA_ARCH >= 900 && MY_CUDA_ARCH < 1200\n", "90 100 103 110", id="by name"
    ),
]


@pytest.mark.parametrize(("text", "archs"), SETTLED)
def test_a_macro_that_the_file_settles_is_read(text: str, archs: str) -> None:
    found = gates(f"{textwrap.dedent(text)}int x;\n#endif\n#endif\n")
    *_, last = [gate for gate in found if gate.kind == "directive"]
    assert (admitted(last), last.verdict.unknown) == (archs, ())


UNSETTLED = [
    pytest.param(
        """
        #ifndef HAS_IT
        #if __CUDA_ARCH__ >= 900
        #define HAS_IT 1
        #else
        #define HAS_IT 0
        #endif
        #endif
        #if HAS_IT
        """,
        "depends",
        id="the build may have defined it",
    ),
    pytest.param(
        "#if __CUDA_ARCH__ >= 900\n#define HAS_IT a && b\n#endif\n#if HAS_IT\n",
        "unknown",
        id="what means another thing beside other operators",
    ),
    pytest.param(
        "#if __CUDA_ARCH__ >= 900\n#define LEVEL 2\n#endif\n#if LEVEL == OTHER\n",
        "unknown",
        id="beside another macro",
    ),
    pytest.param(
        "#if __CUDA_ARCH__ >= 900\n#define IT IT\n#endif\n#if IT\n", "unknown", id="by itself"
    ),
    pytest.param("#if MY_ARCH == 90\n", "unknown", id="a build's own number"),
]


@pytest.mark.parametrize(("text", "answer"), UNSETTLED)
def test_a_macro_that_the_file_does_not_settle_is_not(text: str, answer: Answer) -> None:
    *_, last = gates(f"{textwrap.dedent(text)}int x;\n#endif\n")
    assert "90" in admitted(last, answer).split()


@pytest.mark.parametrize(
    "text",
    [
        "#if __CUDACC_VER_MAJOR__ >= 12\n#define HAS_SM90_TOOLS\n#endif\n#ifdef HAS_SM90_TOOLS\n#endif\n",
        "#ifndef TRAP\n#if __CUDA_ARCH__ >= 900\n#define TRAP() __trap()\n#endif\n#endif\n",
        "#if !defined(MY_CUDA_ARCH)\n#error give it\n#endif\n",
    ],
)
def test_a_macro_that_is_the_same_for_all_is_no_gate(text: str) -> None:
    assert [found.text for found in gates(text) if "__CUDA_ARCH__" not in found.text] == []


def test_a_predicate_of_what_a_kernel_is_for_is_not_followed() -> None:
    (found,) = gates(
        "bool isArchCompatible(int version, Arch made) { return made.fits(version); }\n"
        "void f() { for (auto c : all) { if (!isArchCompatible(v, c.mSm)) continue; } }\n"
    )
    assert found.unknown
    assert found.line == 2


SWITCHED = """\
bool isArchCompatible(int smVersion, tg::CudaArch made) {
  using CudaArch = tg::CudaArch;
  switch (made) {
    case CudaArch::Sm100a:
      return smVersion == 100;
    case CudaArch::Sm100f:  // the family
      return smVersion == 100 || smVersion == 103;
#ifdef NEWER
    case CudaArch::Sm107a:
      return smVersion == 107;
#endif
    default:
      return false;
  }
}
"""

BRANCHED = """\
constexpr bool isSMCompatible(int gpuSM, int kernelSM) {
  if (gpuSM == kSM_103) {
    return kernelSM == kSM_100f || kernelSM == kSM_103;
  } else if (gpuSM == kSM_100) {
    return kernelSM == kSM_100f;
  }
  return gpuSM == kernelSM;
}
"""


def test_a_predicate_shuts_where_no_record_serves_the_device() -> None:
    (found,) = [
        found
        for found in gates(
            f"{SWITCHED}void f() {{ for (auto c : all) {{\n"
            "  if (!isArchCompatible(sv, c.mSm)) continue;\n} }\n"
        )
        if "Compatible" in found.text
    ]
    table = {str(point): function for point, function in found.verdict.table.items()}
    assert table["9.0"] is True
    assert table["12.0"] is True
    assert len({table["9.0"], table["10.0"], table["10.3"]}) == 3
    assert {atom.text for atom in atoms(table["10.3"])} == {
        "made_for_c_mSm == CudaArch_Sm100a",
        "made_for_c_mSm == CudaArch_Sm100f",
    }


@pytest.mark.parametrize(
    "call", ["isSMCompatible(mSM, meta.mSM) && a == b", "isSMCompatible(mSM, m)"]
)
def test_a_predicate_may_compare_the_two(call: str) -> None:
    (found,) = [
        found
        for found in gates(f"{BRANCHED}void f() {{\n  if ({call}) {{ g(); }}\n}}\n")
        if "isSM" in found.text
    ]
    table = {str(point): function for point, function in found.verdict.table.items()}
    assert not found.unknown
    assert not any(isinstance(function, bool) for function in table.values())
    assert table["9.0"] == table["12.0"]
    assert len({table["9.0"], table["10.0"], table["10.3"]}) == 3


@pytest.mark.parametrize(
    "text",
    [
        SWITCHED.replace("return smVersion == 100;", "break;"),
        SWITCHED.replace("return smVersion == 100;", "return fits(smVersion);"),
        SWITCHED.replace("smVersion", "wanted"),
        SWITCHED + SWITCHED.replace("tg::CudaArch made", "int made"),
    ],
)
def test_a_predicate_that_does_more_than_compare_is_not_followed(text: str) -> None:
    found = gates(f"{text}void f() {{\n  if (isArchCompatible(sv, c.mSm)) {{ g(); }}\n}}\n")
    (asked,) = [one for one in found if "Compatible(sv" in one.text]
    assert asked.unknown


def test_a_predicate_that_is_given_what_another_record_is_for_is_not_followed() -> None:
    found = gates(f"{SWITCHED}void f() {{\n  if (isArchCompatible(config.mSm, x)) {{ g(); }}\n}}\n")
    (asked,) = [one for one in found if "Compatible(config" in one.text]
    assert asked.unknown


@pytest.mark.parametrize(
    "text",
    [
        "void f() { CHECK_EQ(major_size, 10); }",
        "void f() { CHECK_EQ(x.size(0), 90); }",
        "void f() { STATIC_EQ(major, 10); }",
    ],
)
def test_a_check_of_something_else_is_no_gate(text: str) -> None:
    assert not gates(text)
