"""The gates that a scan finds in Python files, by their shapes."""

from __future__ import annotations

import gc
import textwrap

import pytest

from gatepatch.errors import RefusedError
from gatepatch.scanning import python
from gatepatch.scanning.found import Found, admission
from gatepatch.scanning.prefilter import python_lines
from gatepatch.scanning.python import PythonScanner

UTILS = b"""
import torch

def get_capability(device=None):
    return torch.cuda.get_device_capability(device)

def is_sm90_supported():
    return torch.cuda.is_available() and get_capability()[0] == 9
"""


def gates(text: str, files: dict[str, bytes] | None = None) -> list[Found]:
    """The gates of a module beside a package's other files."""
    every = {"pkg/__init__.py": b"", "pkg/utils.py": UTILS, **(files or {})}
    source = textwrap.dedent(text).encode()
    found, _ = PythonScanner(every.get).scan("pkg/own.py", source)
    return found


def admitted(found: Found) -> str:
    """The architectures that a gate admits, whatever else it tests."""
    answers = admission(found.verdict, rejects=found.rejects)
    names = [arch.sm for arch in found.verdict.table]  # type: ignore[union-attr]
    pairs = zip(names, answers.answers, strict=True)
    return " ".join(str(sm) for sm, answer in pairs if answer in ("admits", "depends"))


BLACKWELL = "100 103 110 120 121 130"

SHAPES = [
    pytest.param(
        "def f(device_cc):\n    if device_cc == (9, 0):\n        return 1\n",
        ("comparison", "90"),
        id="a name that ends in cc",
    ),
    pytest.param(
        "def f(x):\n    x = (\n"
        '        "fast" if x.get_device_capability()[0] == 9 else "slow"\n    )\n',
        ("comparison", "90"),
        id="on a line that begins with a text",
    ),
    pytest.param(
        "import torch, tl\nFAST = tl.constexpr(torch.cuda.get_device_capability() == (9, 0))\n"
        "def f(x):\n    if x:\n        if FAST:\n            return 1\n",
        ("predicate", "90"),
        id="a constant of a kernel",
    ),
    pytest.param(
        'def f(target, slow):\n    if target == "sm_90a":\n        return slow\n',
        ("string", "90"),
        id="a target",
    ),
    pytest.param(
        'ROUTES = {("sm_90a", 4): {8: 2}}\ndef f(arch, n, m):\n'
        "    most = ROUTES.get((arch, int(n)), {}).get(int(m))\n    return most is not None\n",
        ("predicate", "90"),
        id="a table in a table",
    ),
    pytest.param(
        'TABLE = {(9, 0): "sm_90a"}\nclass A:\n'
        "    def __init__(self, n, cc):\n"
        "        self._target = None if n else TABLE.get(cc)\n"
        "    def run(self):\n        if self._target is None:\n            raise ValueError\n",
        ("predicate", "90"),
        id="an attribute that is looked up",
    ),
    pytest.param(
        'ARCH_BY_CAPABILITY = {(10, 7): "sm_107a"}\n',
        ("table", ""),
        id="a table of one that is not in the table of architectures",
    ),
    pytest.param(
        "from pkg.utils import is_sm90_supported\nif is_sm90_supported():\n    x = 1\n",
        ("predicate", "90"),
        id="a predicate of the package",
    ),
    pytest.param(
        "from pkg.utils import is_sm90_supported\n_is_sm90 = is_sm90_supported()\n"
        "def f(a):\n    return a and _is_sm90\n",
        ("predicate", "90"),
        id="its alias",
    ),
    pytest.param(
        "def f(p):\n    if p.get_platform().is_sm100:\n        return 1\n",
        ("predicate", "100 103"),
        id="a flag, by its name",
    ),
    pytest.param(
        "from pkg.utils import get_capability\nif get_capability()[0] == 9:\n    x = 1\n",
        ("comparison", "90"),
        id="a capability's major",
    ),
    pytest.param(
        "from pkg.utils import get_capability\nassert get_capability() >= (10, 0)\n",
        ("comparison", BLACKWELL),
        id="a pair",
    ),
    pytest.param(
        "def f(sm_version):\n    if sm_version < 90:\n        raise ValueError\n",
        ("comparison", f"90 {BLACKWELL}"),
        id="a number that is handed in, and turned away",
    ),
    pytest.param(
        "def f(major, minor):\n    return (major, minor) == (10, 3)\n",
        ("comparison", "103"),
        id="two names",
    ),
    pytest.param(
        "def f(prop):\n    if prop.major in (9, 10):\n        return 1\n",
        ("membership", "90 100 103"),
        id="one of several majors",
    ),
    pytest.param(
        "SUPPORTED = [90, 100]\ndef f(sm_version):\n    if sm_version not in SUPPORTED:\n"
        "        return False\n",
        ("membership", "90 100"),
        id="a set with a name",
    ),
    pytest.param(
        "def f(device_sm):\n    if device_sm // 10 == 12:\n        return 1\n",
        ("comparison", "120 121"),
        id="the family of a number",
    ),
    pytest.param(
        "def f(capability):\n"
        "    if capability is None or (int(capability[0]), int(capability[1])) not in ((10, 0),):\n"
        "        raise ValueError\n",
        ("membership", "100"),
        id="both parts of a pair",
    ),
    pytest.param(
        "import p\n_cuda = p.is_cuda()\n_new = _cuda and p.get_platform().is_sm100\n"
        "def f():\n    if _new:\n        return 1\n",
        ("predicate", "100 103"),
        id="an alias of a flag, by its name",
    ),
    pytest.param(
        "def f(p):\n    if p.has_device_capability(100):\n        return 1\n",
        ("predicate", BLACKWELL),
        id="a platform's method that names the lowest",
    ),
    pytest.param(
        "def f(p):\n    return not p.is_device_capability_family(120)\n",
        ("predicate", "70 72 75 80 86 87 88 89 90 100 103 110 130"),
        id="a platform's method that names a family",
    ),
    pytest.param(
        "def f(flags):\n    return flags(supported_major_versions=[9, 10])\n",
        ("list", "90 100 103"),
        id="a list that is handed on",
    ),
    pytest.param(
        "from x import supported_compute_capability\n"
        "@supported_compute_capability([90, 100])\ndef f():\n    pass\n",
        ("decorator", "90 100"),
        id="a decorator",
    ),
    pytest.param(
        'def f(arch):\n    if arch == "sm_90a":\n        return 1\n',
        ("string", "90"),
        id="a name in a string",
    ),
    pytest.param(
        "TILES = {(10, 0): 1, (12, 0): 2}\n",
        ("table", "100 120"),
        id="a dictionary by pairs",
    ),
    pytest.param(
        "SMEM_BY_ARCH = {90: 1, 100: 2}\n",
        ("table", "90 100"),
        id="a dictionary by numbers, called so",
    ),
    pytest.param(
        "from x import Arch\ndef f(arch):\n    return Arch.sm_100 <= arch <= Arch.sm_100f\n",
        ("enum", "100"),
        id="an enumeration, chained",
    ),
    pytest.param(
        "from x import Requirement\nNEED = Requirement.cuda(min_sm=(9, 0), max_sm=(10, 9))\n",
        ("requirement", "90 100 103"),
        id="a lowest and a highest",
    ),
]


@pytest.mark.parametrize(("text", "expected"), SHAPES)
def test_a_shape_is_found(text: str, expected: tuple[str, str]) -> None:
    found = [(one.kind, admitted(one)) for one in gates(text)]
    assert expected in found


@pytest.mark.parametrize(
    "text",
    [
        "# only sm_90 is supported here\n",
        '"""Runs on sm_100 and sm_120."""\n',
        'raise RuntimeError("needs SM90 or SM100")\n',
        "from x import is_sm90_supported\n",
        "import numpy\nif numpy.__version__.split('.')[0] == '1':\n    x = 1\n",
        "version_major = 3\nif version_major == 3:\n    x = 1\n",
        "COUNTS = {90: 1, 100: 2}\n",
        "def f(cute, x):\n    if cute.arch.warp_idx() == 0:\n        return x\n",
        "def f(torch):\n    if torch.cuda.is_current_stream_capturing():\n        return 1\n",
        "def f(capability):\n    if capability is None:\n        return 1\n",
    ],
)
def test_what_is_no_gate_is_not_listed(text: str) -> None:
    assert gates(text) == []


def test_what_a_gate_guards() -> None:
    raising, other, default = gates(
        """
        def f(major):
            if major < 9:
                raise RuntimeError("too old")
            if major >= 10:
                return launch(major)
            else:
                tile = 3
            size = 128 if major == 9 else 64
        """
    )
    assert (raising.guards.effect, raising.rejects, raising.guards.lines) == ("raises", True, 1)
    assert (other.guards.effect, other.guards.calls) == ("returns", ("launch",))
    assert other.guards.otherwise == "another value"
    assert default.guards.effect == "default"


def test_what_cannot_be_told_is_listed_with_its_reason() -> None:
    (found,) = gates("def f(x):\n    if x.blackwell_supported(3):\n        return 1\n")
    assert found.unknown
    assert "may test the architecture" in found.unknown[0]


def test_a_list_of_what_is_compiled_is_marked() -> None:
    (found,) = gates(
        "def gen_module(get):\n    return get.nvcc_flags(supported_major_versions=[9])\n"
    )
    assert found.compiled


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"is_sm90 = (\n", "does not parse"), (b"x = sm_version > '\xff'\n", "is not UTF-8")],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        list(PythonScanner(lambda path: None).scan("pkg/own.py", data))


@pytest.mark.parametrize(
    "condition",
    [
        "torch.cuda.get_device_capability(dev) == (10, 7)",
        "sm_arch == 107",
        "major == 10 and minor >= 7",
        'arch == "sm_107a"',
    ],
)
def test_a_test_for_an_architecture_beside_the_table_is_a_gate(condition: str) -> None:
    text = f"import torch\ndef f(dev, sm_arch, major, minor, arch):\n    if {condition}:\n        g()\n"
    (found,) = gates(text)
    assert admitted(found) == ""


def test_a_condition_that_no_architecture_turns_is_none() -> None:
    assert not gates("import torch\nif torch.cuda.get_device_capability() != (1, 1):\n    x = 1\n")


LOOKED_UP = """
import torch
NAMES = {(10, 0): "a", (10, 3): "b"}
LIMITS = {(12, 0): 64}
def name_for(device):
    return NAMES.get(torch.cuda.get_device_capability(device))
"""


@pytest.mark.parametrize(
    ("body", "archs"),
    [
        (
            "name = NAMES.get(torch.cuda.get_device_capability(d))\n    if name is None:\n        raise ValueError",
            "100 103",
        ),
        ("name = name_for(d)\n    if name is None:\n        raise ValueError", "100 103"),
        (
            "bound = LIMITS.get(torch.cuda.get_device_capability(d))\n    if bound is not None and n > bound:\n        raise ValueError",
            "70 72 75 80 86 87 88 89 90 100 103 110 120 121 130",
        ),
    ],
)
def test_what_a_table_gives_for_an_architecture_is_tested(body: str, archs: str) -> None:
    every = gates(LOOKED_UP + f"def f(d, n):\n    {body}\n")
    found = [one for one in every if one.kind != "table" and one.within == "f"]
    assert [admitted(one) for one in found] == [archs]
    assert not found[0].unknown


@pytest.mark.parametrize(
    ("condition", "archs"),
    [
        ("arch in (Arch.sm_100a, Arch.sm_103a)", "100 103"),
        ('arch >= Arch.sm_103 and arch <= getattr(Arch, "sm_107f", Arch.sm_103f)', "103"),
        ("arch.is_family_of(Arch.sm_100f)", "100 103"),
    ],
)
def test_an_enumeration_tells_the_architecture(condition: str, archs: str) -> None:
    text = f"def f(n):\n    arch = dsl().get_arch_enum()\n    if {condition}:\n        g()\n"
    (found,) = gates(text)
    assert (admitted(found), found.unknown) == (archs, ())


def test_half_of_a_pair_tells_of_most_architectures() -> None:
    text = """
        import torch
        def f(n):
            major, minor = torch.cuda.get_device_capability()
            if (major, minor) != (10, n):
                raise ValueError
    """
    (found,) = gates(text)
    assert (admitted(found), found.unknown) == ("100 103", ())


def test_a_predicate_without_an_architecture_in_its_name_is_read() -> None:
    arch = b"@cache_once\ndef is_arch_support_launch():\n    return jit_cuda_arch().major >= 9\n"
    text = """
        from pkg.archs import is_arch_support_launch
        def f(a):
            return {"launch": a} if is_arch_support_launch() else {}
    """
    (found,) = gates(text, {"pkg/archs.py": arch})
    assert (admitted(found), found.unknown) == (f"90 {BLACKWELL}", ())


@pytest.mark.parametrize(
    "text",
    [
        "def f(arch):\n    if arch == 'moe':\n        g()\n",
        "def f(device_sms, budget):\n    if int(budget) != int(device_sms):\n        g()\n",
        "def f(rest):\n    if int(rest.sm_count) != 0:\n        g()\n",
        "def f(arch, device_arch):\n    g(arch=device_arch or arch)\n",
        "import torch\ndef f(entry):\n    if entry[0] is not torch.cuda.get_device_capability:\n        g()\n",
    ],
)
def test_what_only_looks_like_a_test_of_the_architecture_is_none(text: str) -> None:
    assert not gates(text)


def test_a_call_made_in_several_branches_is_one() -> None:
    text = """
        import torch
        def f(a):
            if a:
                recent = torch.cuda.get_device_capability()[0] >= 9
            else:
                recent = torch.cuda.get_device_capability()[0] >= 9
            if recent:
                g()
    """
    found = gates(text)
    assert [admitted(one) for one in found] == [f"90 {BLACKWELL}"] * 3
    assert not found[-1].unknown


@pytest.mark.parametrize("refusal", ["raise ValueError", "g()"])
def test_an_architecture_on_which_a_condition_raises_is_left_out(refusal: str) -> None:
    text = f"""
        import torch
        def name():
            if torch.cuda.get_device_capability() == (10, 0):
                return "sm_100a"
            raise RuntimeError
        def f(a):
            if name() {"!=" if refusal != "g()" else "=="} "sm_100a":
                {refusal}
    """
    found = gates(text)[-1]
    assert admitted(found) == "100"


@pytest.mark.parametrize(
    ("body", "archs"),
    [
        pytest.param("names = list(TABLE)\n    raise ValueError(names)", "90", id="a message"),
        pytest.param(
            "if why:\n        why += '.'\n    raise ValueError(why)", "90", id="worked out"
        ),
        pytest.param("if why:\n        return 1\n    raise ValueError", "70 89 120", id="a route"),
        pytest.param("log.warning('no')\n    return None", "90", id="a warning"),
        pytest.param("note = 'no'\n    return False, note", "90", id="a reason"),
        pytest.param("run_other(x)\n    return", "70 89 120", id="another way"),
        pytest.param("return", "90", id="nothing is done"),
        pytest.param("pytest.skip('no')", "90", id="a test left out"),
    ],
)
def test_what_turns_the_caller_away(body: str, archs: str) -> None:
    (found,) = gates(f"def f(x, why, major):\n  if major != 9:\n    {body}\n  work(x)\n")
    assert set(archs.split()) <= set(admitted(found).split())
    assert ("90" in admitted(found)) == ("90" in archs)


def test_a_return_before_a_check_that_raises_lets_the_caller_through() -> None:
    (found,) = gates(
        "def check(lib, major):\n    if major != 9:\n        return\n    if not lib:\n        raise E\n"
    )
    assert "120" in admitted(found)
    assert "90" not in admitted(found)


def test_what_was_read_is_not_kept_alive_by_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    # The processes of a scan collect no cycles: trees of many files would fill the memory.
    monkeypatch.setattr(python, "_KEPT", 0)
    scanner = PythonScanner({"pkg/__init__.py": b"", "pkg/utils.py": UTILS}.get)
    texts = [str(shape.values[0]) for shape in SHAPES]
    gc.collect()
    gc.disable()
    try:
        for number, text in enumerate(texts):
            list(scanner.scan(f"pkg/m{number}.py", text.encode()))
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_field_of_a_record_is_what_it_was_made_with() -> None:
    found = gates(
        """
        def facts(i):
            props = torch.cuda.get_device_properties(i)
            return Facts(capability=(int(props.major), int(props.minor)), count=props.count)

        def f(i):
            capability = facts(i).capability
            if capability not in ((10, 0), (10, 3)):
                raise ValueError
        """
    )
    assert [admitted(one) for one in found] == ["100 103"]


@pytest.mark.parametrize("make", ["dict(NAMES)", "MappingProxyType(NAMES)"])
def test_a_copy_of_a_table_is_that_table(make: str) -> None:
    *_, found = gates(
        f"NAMES = {{(9, 0): 'a'}}\ndef f(d):\n"
        f"    name = {make}.get(torch.cuda.get_device_capability(d))\n"
        "    if name is None:\n        raise ValueError\n"
    )
    assert admitted(found) == "90"


@pytest.mark.parametrize(
    ("condition", "answers"),
    [
        ("arch == Arch.sm_100f", "depends"),
        ("arch in (Arch.sm_100f, Arch.sm_90a)", "depends"),
        ("arch in (Arch.sm_100f, Arch.sm_100a)", "admits"),
        ("arch >= Arch.sm_100 and arch <= Arch.sm_100f", "admits"),
    ],
)
def test_a_familys_member_is_one_where_it_was_asked_for(condition: str, answers: str) -> None:
    (found,) = gates(f"def f(arch):\n    if {condition}:\n        return 1\n")
    answer = admission(found.verdict, rejects=False).answers
    table = dict(zip((str(one) for one in found.verdict.table), answer, strict=True))
    assert (table["10.0"], table["10.3"], table["12.0"]) == (answers, "shuts", "shuts")


def test_a_value_or_an_empty_text_has_the_truth_of_the_value() -> None:
    *_, found = gates(
        "NAMES = {(9, 0): 'a'}\ndef f(d):\n"
        "    if NAMES.get(torch.cuda.get_device_capability(d)) or '':\n        return 1\n"
    )
    assert admitted(found) == "90"


def test_a_cache_is_empty_at_first() -> None:
    *_, found = gates(
        """
        SEEN = {}

        def facts(i):
            known = SEEN.get(i)
            if known is None:
                known = SEEN[i] = torch.cuda.get_device_capability(i)
            return known

        def f(i):
            if facts(i) != (12, 0):
                raise ValueError
        """
    )
    assert admitted(found) == "120"


@pytest.mark.parametrize(
    "line",
    [
        "TARGET_ARCH = 'sm_103a'",
        "arch = target_arch()",
        "major, minor = torch.cuda.get_device_capability(x.device)",
        "f(x, arch='sm_100')",
        "    args=pack(n, is_sm100_supported()),",
        "def get_sm_version(device: str) -> int:",
        "    arch: int",
    ],
)
def test_a_file_that_only_names_an_architecture_is_not_read(line: str) -> None:
    assert python_lines(f"{line}\n".encode()) == []
    assert python_lines(f"{line}\nif arch == 100:\n    pass\n".encode()) == [1, 2]


@pytest.mark.parametrize(
    "line",
    [
        "is_sm100_supported()",  # of a condition that goes on in other lines
        "and is_sm100_supported()",
        "supported_major_versions=MAJORS,",
        "ARCHS = {(10, 0)}",
        "x = get_device_capability()",
        "x = tuple(get_device_capability(device))",
        "return major * 10",
        "cap = (10, 0) if major else 0",
    ],
)
def test_a_line_that_may_be_part_of_a_gate_is_read(line: str) -> None:
    assert python_lines(f"{line}\n".encode()) == [1]


@pytest.mark.parametrize(
    "condition", ["sm_major >= 10", "arch_number in (100, 103)", "sm_major > 9"]
)
def test_a_parameter_is_read_by_its_name(condition: str) -> None:
    (found,) = gates(f"def f(x, sm_major, arch_number):\n    if {condition}:\n        g(x)\n")
    assert "100" in admitted(found)
    assert "90" not in admitted(found)
