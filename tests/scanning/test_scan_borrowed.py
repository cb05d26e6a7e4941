"""Predicates that one file defines and another one asks: under names that say nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import gatepatch
from gatepatch.scanning.found import Found
from gatepatch.scanning.python import PythonScanner
from trees import make_distribution, make_environment, site_of

GEMM = """
import torch

def fits():
    return torch.cuda.get_device_capability()[0] == 10

def size(n):
    return n + 1

WIDE = torch.cuda.get_device_capability() >= (9, 0)
"""


def found(tmp_path: Path, files: dict[str, str]) -> list[tuple[str, int, str]]:
    """The gates of a package beside the one of ``toy/gemm.py``: file, line, and the answer for 12.0."""
    prefix = make_environment(tmp_path)
    sources: dict[str, bytes | str] = {
        "toy/__init__.py": "",
        "toy/gemm.py": GEMM,
        **{name: textwrap.dedent(text) for name, text in files.items()},
    }
    make_distribution(site_of(prefix), "toy", "1.0", sources)
    result = gatepatch.scan(["toy"], sm="120", prefix=prefix, everything=True)
    assert result.problems == ()
    again = gatepatch.scan(["toy"], sm="120", prefix=prefix, everything=True)
    assert again.findings == result.findings
    return [
        (gate.path, gate.line, gate.verdict["12.0"])
        for gate in result.findings
        if gate.path != "toy/gemm.py"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "from toy.gemm import fits\nif fits():\n    x = 1\n",
        "from .gemm import fits as ready\nx = 1 if ready() else 2\n",
        "from toy.gemm import (\n    size,\n    fits,\n)\nif not fits():\n    raise ValueError\n",
        "from . import gemm\nx = gemm.fits() and y\n",
        "import toy.gemm as gemm\nassert gemm.fits()\n",
        "def f():\n    from toy.gemm import fits\n    return fits() and size\n",
        "from toy.gemm import fits\nx = fits()\n",
        "from toy.gemm import fits\nf(fast=fits())\n",
    ],
)
def test_a_predicate_of_another_file(tmp_path: Path, text: str) -> None:
    ((path, _, answer),) = found(tmp_path, {"toy/run.py": text})
    assert (path, answer) == ("toy/run.py", "shuts")


def test_what_hangs_on_it(tmp_path: Path) -> None:
    text = """
    from toy.gemm import WIDE, fits

    class Layer:
        def __init__(self):
            self.ready = fits()

        def run(self):
            if self.ready:
                return 1
            return 2 if WIDE else 3
    """
    assert found(tmp_path, {"toy/run.py": text}) == [
        ("toy/run.py", 6, "shuts"),
        ("toy/run.py", 9, "shuts"),
        ("toy/run.py", 11, "admits"),
    ]


def test_through_a_package_and_through_another_predicate(tmp_path: Path) -> None:
    files = {
        "toy/ops/__init__.py": "from .kernels import usable\n",
        "toy/ops/kernels.py": "from toy.gemm import fits\ndef usable():\n    return fits()\n",
        "toy/run.py": "from toy.ops import usable\nif usable():\n    x = 1\n",
    }
    assert found(tmp_path, files) == [
        ("toy/ops/kernels.py", 3, "shuts"),
        ("toy/run.py", 2, "shuts"),
    ]


def test_one_that_is_far_away_through_a_method_that_imports_it(tmp_path: Path) -> None:
    device = """
        import torch
        NAMES = {(10, 0): "one"}

        def capability_of(index):
            return torch.cuda.get_device_capability(index)

        def serves(index=None):
            return capability_of(index) in NAMES
    """
    between = """
        def reduces(config, fleet):
            from toy.device import serves

            return fleet.tokens in (1, 2) and config.top == 6 and serves()
    """
    own = """
        class Kernel:
            def reduces(self, fleet):
                from toy.between import reduces

                return self.kind() == "small" and reduces(self.config, fleet)

            def kind(self):
                return self.config.kind

            def mode(self, fleet):
                if self.reduces(fleet):
                    return 1
                return 2
    """

    told = found(tmp_path, {"toy/device.py": device, "toy/between.py": between, "toy/own.py": own})

    assert [one for one in told if one[0] == "toy/own.py"] == [
        ("toy/own.py", 6, "shuts"),
        ("toy/own.py", 12, "shuts"),
    ]


def test_one_whose_name_begins_another(tmp_path: Path) -> None:
    files = {
        "toy/more.py": "import torch\ndef fits_well():\n    return torch.cuda.get_device_capability()[0] == 10\n",
        "toy/run.py": "from toy.more import fits_well\nif fits_well():\n    x = 1\n",
    }
    assert [one[0] for one in found(tmp_path, files)] == ["toy/more.py", "toy/run.py"]


@pytest.mark.parametrize(
    "text",
    [
        "from toy.other import fits\nif fits():\n    x = 1\n",  # of the same name
        "from toy import other\nif other.fits():\n    x = 1\n",
        "from toy.gemm import size\nif size(1):\n    x = 1\n",
        "from toy.gemm import fits\ndef f(fits):\n    if fits:\n        return 1\n",  # handed over
        "from toy.gemm import fits\nrun(fits)\n",
    ],
)
def test_it_is_no_gate(tmp_path: Path, text: str) -> None:
    other = "def fits():\n    return True\n"
    assert found(tmp_path, {"toy/other.py": other, "toy/run.py": text}) == []


def gates(text: str) -> list[Found]:
    """The gates of a module."""
    files = {"pkg/__init__.py": b""}
    gates, _ = PythonScanner(files.get).scan("pkg/own.py", textwrap.dedent(text).encode())
    return gates


def test_a_predicate_is_listed_where_it_is_called() -> None:
    text = """
    import torch

    def fits(device):
        return torch.cuda.get_device_capability(device)[0] == 10

    def name(device):
        return "fast" if fits(device) else "slow"

    def capability(device):
        return torch.cuda.get_device_capability(device)

    def run(x):
        fast = fits(x.device)
        slow = name(x.device)
        pair = capability(x.device)
        return launch(x, pdl=device_support_pdl(x.device), wide=fits(x.device))
    """
    assert [gate.text for gate in gates(text)] == [
        "torch.cuda.get_device_capability(device)[0] == 10",
        "fits(device)",
        "fits(x.device)",
        "fits(x.device)",
    ]


def test_parts_of_the_capability_under_more_names() -> None:
    text = """
    def why(*, arch_major, dev_major):
        if arch_major == 8:
            return "old"
        if dev_major == 12:
            return "new"
    """
    assert [gate.text for gate in gates(text)] == ["arch_major == 8", "dev_major == 12"]


def test_a_text_that_no_f_string_can_hold() -> None:
    text = r"""
    def key(name, sm):
        return f"{name}-{sm}"

    if key("a\nb", gpu_arch) == "a\nb-sm_90":
        x = 1
    """
    gates(text)


@pytest.mark.parametrize(
    "body",
    [
        "    if torch.cuda.get_device_capability() != (10, 0):\n        return False\n    return all(map(has, needs))",
        "    return x.is_cuda and x.ndim == 2 and torch.cuda.get_device_capability() == (10, 0)",
        "    if hip:\n        return is_other_supported()\n    return torch.cuda.get_device_capability() == (10, 0)",
    ],
)
def test_predicates_of_more_forms(body: str) -> None:
    text = f"import torch\n\ndef fits(x, m, n, k, *, needs):\n{body}\n\n\n\n\n\n\n\n\n\nready = fits(x, 1, 2, 3, needs=())\n"
    found = gates(text)[-1]
    assert (found.line, found.text) == (text.count("\n"), "fits(x, 1, 2, 3, needs=())")


def test_a_file_that_does_nothing_else() -> None:
    text = """
    class Backend:
        def __init__(self, device):
            self.pdl = device_support_pdl(device)
    """
    utils = (
        b"import torch\ndef device_support_pdl(device):\n"
        b"    return torch.cuda.get_device_capability(device)[0] >= 9\n"
    )
    files = {"pkg/__init__.py": b"", "pkg/utils.py": utils}
    source = "from pkg.utils import device_support_pdl\n" + textwrap.dedent(text)
    (found,), _ = PythonScanner(files.get).scan("pkg/own.py", source.encode())
    assert found.text == "device_support_pdl(device)"


def test_a_condition_in_a_text() -> None:
    text = """
    import torch

    major, minor = torch.cuda.get_device_capability()
    target = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    shown = f"{major}.{minor}{'!' if loud else ''}"
    spread = (
        f"{shown}{'a' if major >= 9 else ''}"
    )
    """
    found, spread = gates(text)
    assert spread.line == 8
    assert (found.line, found.kind, found.text) == (
        5,
        "comparison",
        """f"sm_{major}{minor}{'a' if major >= 9 else ''}\"""",
    )
    assert {str(arch) for arch, holds in found.verdict.table.items() if not holds} >= {"8.9"}
