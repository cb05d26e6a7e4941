"""A compiler that stands in for nvcc: it counts the conditions of a header that let code in.

It reads what the command names, writes PTX and a depfile, and notes each call. What else it does
is said by files in its folder, so that a running one can be told too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lookalikes import FLASHINFER, HEADER, SGLANG
from trees import make_distribution, make_environment, site_of, write_files

UNIT = "flashinfer/data/csrc/trtllm_allreduce.cu"
CONTEXT = "flashinfer/compilation_context.py"

SOURCES = {
    **FLASHINFER,
    UNIT: '#include "flashinfer/comm/trtllm_allreduce.cuh"\n',
    CONTEXT: 'suffix = "a"\n',
    "flashinfer/data/cutlass/include/cute.h": "// nothing\n",
}

_COMPILER = r"""#!{python} -SE
import os, re, subprocess, sys, time
from pathlib import Path

folder = Path({folder!r})
words = sys.argv[1:]
if words == ["--version"]:
    print((folder / "version").read_text())
    sys.exit()
with (folder / "calls").open("a") as calls:
    calls.write(" ".join(words) + "\n")
arch = int(re.search(r"compute_(\d+)", " ".join(words))[1])
out, deps = (Path(words[words.index(w) + 1]) for w in ("-o", "-MF"))
source = Path(next(w for w in words if w.endswith(".cu")))
includes = [Path(b) for a, b in zip(words, words[1:]) if a in ("-isystem", "-I")]
name = re.search(r'#include "(.+)"', source.read_text())[1]
header = next(i / name for i in includes if (i / name).exists())
if (folder / "hang").exists():
    child = subprocess.Popen(["sleep", "1000"])
    with (folder / "pids").open("a") as pids:
        pids.write(f"{{os.getpid()}} {{child.pid}}\n")
    child.wait()
pristine = " < 1200" in header.read_text() and "gatepatch-" in str(source)
if (folder / f"fail-{{arch}}").exists() or (pristine and (folder / "fail-pristine").exists()):
    print("\n".join(f"{{source}}({{n}}): error: line {{n}} is wrong" for n in range(1, 31)))
    sys.exit(2)
bounds = re.findall(r"__CUDA_ARCH__ >= (\d+)\)? && \(?__CUDA_ARCH__ < (\d+)", header.read_text())
admitted = [int(low) <= arch * 10 < int(high) for low, high in bounds]
body = "mov.u32 %r1, %tid.x;\n" if admitted[-1] else ""
waits = "griddepcontrol.wait;\n" * sum(admitted[:-1])
out.write_text(
    f".version 9.0\n.target sm_{{arch}}a\n.visible .entry one(\n.param .u64 p\n)\n{{{{\n@%p1 bra done;\n{{waits}}ret;\n}}}}\n"
    f".entry two()\n{{{{\n\t{{body}}\tret;\n\n}}}}\n"
)
if (folder / "touch").exists():
    with header.open("a") as file:
        file.write("// later\n")
deps.write_text(f"{{out}} : {{source}} \\\n {{header}}\n")
"""


class FakeCompiler:
    """The stand-in, and what it was asked."""

    def __init__(self, folder: Path):
        self.folder = folder
        text = _COMPILER.format(python=sys.executable, folder=str(folder))
        write_files(
            folder, {"bin/nvcc": text, "version": "Cuda compilation tools, release 13.0, V13.0.88"}
        )
        (folder / "bin/nvcc").chmod(0o755)

    def calls(self) -> list[str]:
        """The command lines since the last time."""
        try:
            found = (self.folder / "calls").read_text().splitlines()
            (self.folder / "calls").unlink()
        except FileNotFoundError:
            return []
        return found

    def do(self, what: str) -> None:
        """Say how it is to behave: ``hang``, ``touch``, ``fail-120`` and so on."""
        (self.folder / what).touch()

    def stop(self, what: str) -> None:
        """Take that back."""
        (self.folder / what).unlink()

    def pids(self) -> list[int]:
        """The processes of compilers that hang, and of what they have started."""
        try:
            return [int(word) for word in (self.folder / "pids").read_text().split()]
        except FileNotFoundError:
            return []


def make_compiled_server(tmp_path: Path, version: str = "0.6.3") -> Path:
    """Make an environment whose FlashInfer has a unit to compile; return its prefix."""
    prefix = make_environment(tmp_path, "server")
    make_distribution(site_of(prefix), "flashinfer-python", version, SOURCES)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG)
    return prefix


def header_of(prefix: Path) -> Path:
    """The header that the unit is made of."""
    return site_of(prefix) / HEADER
