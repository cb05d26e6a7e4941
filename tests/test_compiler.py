"""The compiler's word: the patched header has the PDL instructions for SM 12.0, the pristine none."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gatepatch
import wheels
from trees import make_environment, site_of

SOURCE = "flashinfer/data/csrc/trtllm_allreduce.cu"
INCLUDES = (
    "flashinfer/data/include",
    "flashinfer/data/csrc",
    "flashinfer/data/cutlass/include",
    "flashinfer/data/spdlog/include",
)


def pdl_instructions(site: Path, ffi: Path, arch: str, out: Path) -> int:
    """Compile the all-reduce's translation unit to PTX, and count its PDL instructions."""
    folders = [*(site / folder for folder in INCLUDES), *ffi.rglob("include")]
    command = ["nvcc", "-ptx", "-std=c++17", "--expt-relaxed-constexpr", f"-arch=compute_{arch}"]
    flags = [flag for folder in folders for flag in ("-I", str(folder))]
    subprocess.run(
        [*command, *flags, "-o", str(out), str(site / SOURCE)], check=True, capture_output=True
    )
    return len(re.findall(r"griddepcontrol", out.read_text()))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_pdl_instructions_appear_for_sm120_and_stay_for_sm100(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    for name, version in (("flashinfer-python", "0.6.3"), ("sglang", "0.5.9")):
        shutil.copytree(wheels.fetch(name, version), site_of(prefix), dirs_exist_ok=True)
    ffi = tmp_path / "ffi"
    # Only its headers are read, so whichever Python's wheel comes is right.
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(ffi),
            "apache-tvm-ffi",
        ],
        check=True,
    )
    out = tmp_path / "out.ptx"
    hundred = pdl_instructions(site_of(prefix), ffi, "100a", out)
    assert hundred > 0
    assert pdl_instructions(site_of(prefix), ffi, "120a", out) == 0
    gatepatch.apply("sm120-allreduce", prefix=prefix, assume="sm_120")
    assert pdl_instructions(site_of(prefix), ffi, "120a", out) == hundred
    assert pdl_instructions(site_of(prefix), ffi, "100a", out) == hundred
    print(f"griddepcontrol lines: compute_100a {hundred}; compute_120a 0, with the set {hundred}")
