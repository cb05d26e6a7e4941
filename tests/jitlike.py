"""A JIT like FlashInfer's in small: its folders, locks, build.ninja and calls of ninja.

The compiler is ``gcc -E``: fast, with real depfiles, and a binary shows what it was built from.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from ninjas import ninja_at_hand
from trees import write_files

PACKAGE = {
    "data/csrc/comm.cu": '#include "flashinfer/comm.cuh"\nint source = 1;\n',
    "data/csrc/binding.cpp": "#include <flashinfer/comm.cuh>\nint binding = 1;\n",
    "data/include/flashinfer/comm.cuh": '#include "flashinfer/deep.cuh"\nint gate = 900;\n',
    "data/include/flashinfer/deep.cuh": "int deep = 1;\n",
}


def make_package(site: Path) -> Path:
    """Make a package ``flashinfer`` with sources; return its folder."""
    write_files(site / "flashinfer", PACKAGE)
    return site / "flashinfer"


@dataclass(frozen=True, kw_only=True)
class Jit:
    """One environment's FlashInfer over one cache.

    Args:
        package: Its ``flashinfer`` folder.
        ops: Its ``cached_ops``.
        absolute: Whether outputs are absolute and ninja's records lie in the module's folder, as
            from 0.6.0 on; else they lie in ``cached_ops``.
        rewrites: Whether build.ninja is written each time it differs; from 0.4.0 to 0.6.11 it is
            only where there is none.
        ninja: The program.
        delay: Seconds that the compiler sleeps after it has read its sources.
    """

    package: Path
    ops: Path
    absolute: bool = True
    rewrites: bool = False
    ninja: str = field(default_factory=ninja_at_hand)
    delay: float = 0

    def load(self, name: str = "comm", *sources: str) -> str:
        """Build a module if ninja finds it necessary; return the content of its binary."""
        (self.ops / "tmp").mkdir(parents=True, exist_ok=True)
        with FileLock(self.ops / "tmp" / f"{name}.lock", thread_local=False):
            self._build(name, sources or ("comm.cu",))
            return (self.ops / name / f"{name}.so").read_text()

    def _build(self, name: str, sources: tuple[str, ...]) -> None:
        folder = self.ops / name
        folder.mkdir(exist_ok=True)
        manifest, text = folder / "build.ninja", self._manifest(name, sources)
        if not manifest.exists() or (self.rewrites and manifest.read_text() != text):
            manifest.write_text(text)
        where = folder if self.absolute else self.ops
        command = [self.ninja, "-v", "-C", str(where), "-f", str(manifest)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def _manifest(self, name: str, sources: tuple[str, ...]) -> str:
        data = self.package.resolve() / "data"
        out = f"{self.ops.resolve()}/{name}" if self.absolute else "$name"
        objects = [
            f"{out}/{source.replace('.cu', '.cuda').replace('.cpp', '')}.o" for source in sources
        ]
        builds = [
            f"build {o}: {'cuda_compile' if s.endswith('.cu') else 'compile'} {data}/csrc/{s}"
            for o, s in zip(objects, sources, strict=True)
        ]
        return f"""ninja_required_version = 1.3
name = {name}
cxx = gcc -E -P -ffreestanding -x c++

common_cflags = -DNAME=$name $
    -isystem {data}/include $
    -isystem {data}/csrc
cflags = $common_cflags

rule compile
  command = $cxx -MMD -MF $out.d $cflags $in -o $out
  depfile = $out.d
  deps = gcc

rule cuda_compile
  command = $cxx -MD -MF $out.d $cflags $in -o $out.tmp && sleep {self.delay} && cat $out.tmp > $out
  depfile = $out.d
  deps = gcc

rule link
  command = cat $in > $out

{chr(10).join(builds)}

build {out}/{name}.so: link {" ".join(objects)}
default {out}/{name}.so
"""


def load_elsewhere(jit: Jit) -> subprocess.Popen[str]:
    """Build in another process, as a server does; wait until it has read its sources."""
    code = f"from jitlike import *; from pathlib import *; print(repr({jit!r}.load()))"
    code = code.replace("PosixPath", "Path")
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True
    )
    while not any(path.stat().st_size for path in (jit.ops / "comm").glob("*.d")):
        assert child.poll() is None
        time.sleep(0.01)
    return child
