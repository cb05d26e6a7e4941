"""Gates that speak of an architecture in other words, and code that only seems to."""

from __future__ import annotations

import pytest
from test_scan_python import admitted, gates

FACTS = b"""
import torch

def device_support_pdl(device):
    major, _ = torch.cuda.get_device_capability(device)
    return major >= 9

USES_BLACKWELL = torch.cuda.get_device_capability()[0] == 10
"""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            (
                "from pkg.facts import device_support_pdl\n"
                "def f(x, pdl):\n    return pdl and device_support_pdl(x.device)\n"
            ),
            "90 100 103 110 120 121 130",
        ),
        (
            (
                "import cutlass\n"
                "def f(architecture):\n    if cutlass.const_expr(architecture == 90):\n        return 1\n"
            ),
            "90",
        ),
        ("def f(cuda_architecture):\n    return cuda_architecture in (100, 103)\n", "100 103"),
        (
            (
                "from pkg import facts\n"
                "def f(on):\n    if on and not facts.USES_BLACKWELL:\n        return 1\n"
            ),
            "70 72 75 80 86 87 88 89 90 110 120 121 130",
        ),
        ("def f(a):\n    if a.is_rubin:\n        return 1\n", ""),
        ("def f(major):\n    if major == 6:\n        return (1, 1)\n", ""),
    ],
)
def test_it_is_told_by_other_words(text: str, answer: str) -> None:
    (found,) = gates(text, {"pkg/facts.py": FACTS})[-1:]
    assert admitted(found) == answer
    assert not found.unknown


@pytest.mark.parametrize(
    "text",
    [
        "def f(config):\n    if config.architecture == 'BertForCausalLM':\n        return 1\n",
        "def f(config):\n    if config.architectures[0] in KNOWN:\n        return 1\n",
        "def f(model_arch):\n    if not is_model_arch_supported(model_arch):\n        raise ValueError\n",
        "def f(rubinstein):\n    if rubinstein == 107:\n        return 1\n",
        "def f(version):\n    if version.major == 6:\n        return 1\n",
    ],
)
def test_other_things_go_by_like_words(text: str) -> None:
    assert not gates(text)


def test_what_supports_an_architecture_is_not_known_where_it_is_not_followed() -> None:
    (found,) = gates(
        "from other import is_dsl_arch_supported\n"
        "def f(cc):\n    if not is_dsl_arch_supported(*cc):\n        raise NotImplementedError\n"
    )
    assert found.unknown


def test_the_default_of_a_records_field_is_not_what_it_is() -> None:
    (found,) = gates(
        """
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Config:
            sm_arch: int = 100

            def wide(self):
                return 576 if self.sm_arch == 103 else 512
        """
    )
    assert admitted(found) == "103"


CHECKED = """
import torch

class Method:
    def _checked(self, least, error=True):
        # A function of more than a few lines that says yes or no.
        if torch.version.hip:
            if error:
                raise RuntimeError(
                    "not there"
                )
            return False

        major, minor = torch.cuda.get_device_capability()
        capability = major * 10 + minor
        supported = capability >= least
        if error and not supported:
            raise RuntimeError(
                "no"
            )
        return supported

    def pick(self):
        is_wide_supported = self._checked(100, error=False)
        if is_wide_supported:
            return 1
        if (
            is_wide_supported
            and self.other
        ):
            return 2
"""


def test_a_name_bound_to_a_longer_check_is_one() -> None:
    found = [one for one in gates(CHECKED) if "is_wide" in one.text]
    assert len(found) == 2
    assert all(admitted(one) == "100 103 110 120 121 130" for one in found)


TAKEN = """
import torch

def _kernel_there(device):
    if device.type != "cuda":
        return False
    # Only there.
    if torch.cuda.get_device_capability(device)[0] != 10:
        return False
    try:
        import kernels
    except ImportError:
        print(
            "not there"
        )
        return False
    return True

def f(x):
    if not _kernel_there(x.device):
        return None
"""


def test_a_function_that_says_no_on_a_branch_is_a_predicate() -> None:
    found = gates(TAKEN)[-1]
    assert found.text == "not _kernel_there(x.device)"
    assert "yes" not in str(found.unknown)


def test_a_function_that_gives_a_number_on_a_branch_is_none() -> None:
    text = TAKEN.replace("return False", "return 1").replace("return True", "return 2")
    assert [one.text for one in gates(text)] == [
        "torch.cuda.get_device_capability(device)[0] != 10"
    ]


def test_what_gives_an_architecture_or_none_is_tested_for_none() -> None:
    files = {
        "pkg/facts.py": b"import torch\n"
        b"def get_own_arch(device):\n"
        b"    major, minor = torch.cuda.get_device_capability(device)\n"
        b"    arch = major * 10 + minor\n"
        b"    return arch if arch // 10 == 12 else None\n"
    }
    (found,) = gates(
        "from pkg.facts import get_own_arch\n"
        "def f(x):\n    own = get_own_arch(x.device)\n    if own is not None:\n        return 1\n",
        files,
    )
    assert admitted(found) == "120 121"


def test_the_error_for_an_architecture_is_tested_for_none() -> None:
    *_, found = gates(
        """
        import torch

        def arch_error(cc):
            return None if cc >= (9, 0) else "too old"

        def f(x):
            why = arch_error(torch.cuda.get_device_capability(x))
            if why is not None:
                raise ValueError(why)
        """
    )
    assert admitted(found) == "90 100 103 110 120 121 130"


def test_targets_are_picked_from_a_set() -> None:
    (found,) = gates(
        "def f(context):\n    targets = context.TARGET_CUDA_ARCHS\n"
        "    if targets & {(12, '0'), (12, '0a')}:\n        return 1\n"
    )
    assert admitted(found) == "120"


def test_a_list_is_handed_on_as_a_copy() -> None:
    (found,) = gates("MAJORS = (9, 10)\nf(supported_major_versions=list(MAJORS))\n")
    assert admitted(found) == "90 100 103"


def test_a_list_of_architectures_that_is_asked_for_is_no_gate() -> None:
    assert not gates("def main(sm_architectures):\n    if sm_architectures:\n        return 1\n")


def test_what_a_caller_allows_no_device_answers() -> None:
    found = gates(
        "import torch\ndef f(x, *, allow_sm90=False):\n"
        "    cc = torch.cuda.get_device_capability(x)\n"
        "    return allow_sm90 and cc == (9, 0)\n"
    )[-1]
    assert not found.unknown
    assert not found.verdict.unknown
    assert admitted(found) == "90"


def test_the_kind_of_a_model_is_no_architecture() -> None:
    assert not gates(
        "def f(arch, other_models):\n    if arch in other_models:\n        return other_models[arch]\n"
    )


def test_a_tuple_with_an_architecture_is_looked_up_among_known_keys() -> None:
    found = gates(
        "from kernels import made\nWIDE = {('a', 'sm_103a', 1): made(1), ('a', 'sm_103a', 2): made(2)}\n"
        "def f(arch, kind, size):\n    entry = WIDE.get((kind, arch, size))\n"
        "    if entry is not None:\n        return entry\n"
    )[-1]
    assert not found.unknown
    assert not found.verdict.unknown
    assert admitted(found) == "103"


HOSTS = """
import torch

def host_of(sm):
    if sm // 10 == 12:
        return make_host()
    return None

def amiss(sm):
    if sm < 90:
        return "too old"
    return None
"""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("def f(sm):\n    return host_of(sm) is not None\n", "120 121"),
        (
            "def f(sm):\n    host = host_of(sm)\n    return 1 if host is not None else 2\n",
            "120 121",
        ),
    ],
)
def test_whether_there_is_one_for_the_architecture(text: str, answer: str) -> None:
    found = gates(HOSTS + text)
    last = found[-1]
    assert last.line > HOSTS.count("\n")
    assert admitted(last) == answer
    assert not last.unknown


def test_whether_something_is_amiss_with_an_architecture_that_is_handed_over() -> None:
    found = gates(HOSTS + "def f(sm):\n    return amiss(sm) is None\n")[-1]
    assert found.line > HOSTS.count("\n")
    assert admitted(found) == "90 100 103 110 120 121 130"


def test_a_list_of_architectures_in_a_constant() -> None:
    text = "_FAST_ARCHITECTURES = ('sm_107', 'sm_120')\ndef f(self):\n    if self.architecture in _FAST_ARCHITECTURES:\n        return 1\n"
    (found,) = gates(text)
    assert admitted(found) == "120"


@pytest.mark.parametrize(
    ("condition", "is_gate"),
    [
        ('f"sm_{major}{minor}a" in ("sm_100a", "sm_120a")', True),
        ('_arch_for(0) != "sm_90a"', True),
        ("tuple(int(x) for x in device_cc)[:2] == (10, 3)", True),
        ("any(x < 0 for x in device_cc)", False),
        ('f"={sm_arch}" in run.stdout', False),  # what a tool says of itself
        ('f"sm_{index}" in names', False),
    ],
)
def test_a_text_that_is_put_together_and_one_that_is_handed_out(
    condition: str, is_gate: bool
) -> None:
    source = f"""
import torch
def _arch_for(index):
    major, minor = torch.cuda.get_device_capability(index)
    return f"sm_{{major}}{{minor}}a"
def f(run, names, index, sm_arch, device_cc):
    major, minor = torch.cuda.get_device_capability()
    if {condition}: pass
"""
    assert bool(gates(source)) == is_gate


def test_architectures_that_are_spelt_one_by_one_are_each_asked() -> None:
    for made in (
        "tuple(f'sm_{major}{minor}' for major, minor in selected)",
        "[f'sm_{major}{minor}' for major, minor in selected]",
    ):
        (found,) = gates(
            f"def f(selected):\n    archs = {made}\n"
            "    if not archs or any(arch not in {'sm_100a', 'sm_103a'} for arch in archs):\n"
            "        raise ValueError(archs)\n"
        )
        assert admitted(found) == "100 103"
        assert not found.unknown


def test_architectures_of_a_record_are_not_asked_one_by_one() -> None:
    (found,) = gates(
        "def f(record):\n    if any(arch not in {'sm_100a'} for arch in record['archs']):\n"
        "        raise ValueError(record)\n"
    )
    assert found.unknown


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("major == 10 and minor == '3a'", "103"),
        ("major == 10 and minor in ('0', '0a')", "100"),
        ("major == 7 and minor.isdigit()", "70 72 75"),
    ],
)
def test_a_minor_is_a_text_among_compile_targets(test: str, answer: str) -> None:
    (found,) = gates(
        "def f(targets):\n    for major, minor in targets:\n"
        f"        if {test}:\n            return 1\n"
    )
    assert admitted(found) == answer
    assert not found.unknown


def test_a_family_is_asked_for_beside_the_minor() -> None:
    (found,) = gates("def f(major, minor):\n    return major == 10 and minor == '0f'\n")
    assert found.unknown


def test_a_pair_is_spread_into_a_key() -> None:
    (found,) = gates(
        "MORE = frozenset({(10, 0, 148)})\ndef f(capability, count):\n"
        "    pair = (int(capability[0]), int(capability[1]))\n"
        "    if (*pair, int(count)) in MORE:\n        return 0\n"
    )
    assert not found.unknown
    assert admitted(found) == "100"


def test_an_option_is_no_test_of_the_device() -> None:
    assert not gates("def f(enable_rubin=False):\n    return 1 if enable_rubin else 2\n")


def test_fields_of_two_records_are_compared() -> None:
    assert not gates(
        "def f(plan, space):\n    if plan.arch != space.arch:\n        raise ValueError\n"
    )
