"""A real compiler's word on the real FlashInfer, and FlashInfer's own word on its flags."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import filelock
import packaging
import pytest

import gatepatch
import wheels
from gatepatch import ninja
from gatepatch.arch import Arch
from gatepatch.environment import find_environment
from gatepatch.target import find_target
from gatepatch.verifying import nvcc
from gatepatch.verifying.nvcc import Compiler
from gatepatch.verifying.verify import Verified
from lookalikes import HEADER
from trees import make_environment, python_of, site_of, write_files

SET = "sm120-allreduce"
OPEN = "(__CUDA_ARCH__ < 1300)"
SHUT = "(__CUDA_ARCH__ < 1200)"

# Stand-ins for what FlashInfer imports: enough to write its compile commands, and no more.
STUBS = {
    "torch/__init__.py": """\
class cuda:
    device_count = staticmethod(lambda: 0)
    is_available = staticmethod(lambda: False)
class version:
    cuda = None
class _C:
    _GLIBCXX_USE_CXX11_ABI = True
def __getattr__(name):
    return type(name, (), {})
""",
    "tvm_ffi/__init__.py": "from . import libinfo\n",
    "tvm_ffi/libinfo.py": """\
import pathlib
find_include_path = lambda: str(pathlib.Path(__file__).parent / "include")
find_dlpack_include_path = lambda: str(pathlib.Path(__file__).parent / "include")
""",
    "jinja2/__init__.py": "Template = Environment = None\n",
    "tvm_ffi/include/tvm/nothing.h": "",
    "tvm_ffi/include/dlpack/nothing.h": "",
}

# Its packages import much that is not there: the modules of the JIT are all that is wanted.
ASK = """\
import sys, types, pathlib
package = pathlib.Path(sys.argv[1]) / "flashinfer"
for name in ("flashinfer", "flashinfer.jit"):
    module = types.ModuleType(name)
    module.__path__ = [str(package.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = module
from flashinfer.jit import comm
context = comm.current_compilation_context
all_targets = context.get_nvcc_flags_list
context.get_nvcc_flags_list = lambda *args, **options: all_targets()  # as if its list were open
spec = comm.gen_trtllm_comm_module()
spec.ninja_path.parent.mkdir(parents=True, exist_ok=True)
spec.write_ninja()
print(spec.ninja_path)
"""


def ffi_headers() -> Path:
    """The headers of apache-tvm-ffi, whichever Python's wheel comes."""
    return wheels.fetch("apache-tvm-ffi", "0.1.6")


def installed(tmp_path: Path, *releases: tuple[str, str]) -> Path:
    """An environment with real releases; return its prefix."""
    prefix = make_environment(tmp_path)
    for name, version in releases:
        shutil.copytree(wheels.fetch(name, version), site_of(prefix), dirs_exist_ok=True)
    return prefix


def figures(found: Verified) -> dict[tuple[str, str], tuple[int | None, ...]]:
    return {
        (unit.target, unit.side): (
            unit.instructions.get("griddepcontrol"),
            unit.kernels,
            unit.empty,
        )
        for unit in found.compiled
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_the_compiler_agrees_with_the_set_and_sees_one_condition_left_shut(tmp_path: Path) -> None:
    prefix = installed(tmp_path, ("flashinfer-python", "0.6.3"), ("sglang", "0.5.9"))
    shutil.copytree(ffi_headers(), site_of(prefix), dirs_exist_ok=True)

    def verify() -> Verified:
        return gatepatch.verify(SET, prefix=prefix, compile=True, archs="sm_120")

    gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    found = verify()
    assert found.findings == ()
    assert figures(found) == {
        ("compute_120a", "before"): (0, 921, 480),
        ("compute_120a", "after"): (1836, 921, 0),
        ("compute_100a", "before"): (1836, 921, 0),
        ("compute_100a", "after"): (1836, 921, 0),
    }
    header = site_of(prefix) / HEADER
    text = header.read_text()
    parts = text.split(OPEN)
    assert len(parts) == 14
    for place in (1, 5):  # one guards a call, the other a kernel's body
        shut = OPEN.join(parts[:place]) + SHUT + OPEN.join(parts[place:])
        header.write_text(shut)
        found = verify()
        count, kernels, empty = figures(found)["compute_120a", "after"]
        print(f"condition {place} left shut: {count} griddepcontrol, {empty} of {kernels} empty")
        kinds = [finding.kind for finding in found.findings]
        assert kinds[:2] == ["foreign", "left-shut"]
        assert kinds[2:]
        assert set(kinds[2:]) == {"expectation"}


def flags_of(command: str) -> Iterator[str]:
    """The flags of a command, without its files; ``-isystem`` and ``-I`` as one word each."""
    words = iter(shlex.split(command)[1:])
    for word in words:
        if word in ("-o", "-MF"):
            next(words, "")  # the reader leaves $in and $out empty
        elif word in ("-isystem", "-I"):
            yield f"{word} {os.path.realpath(next(words))}"
        elif word.startswith("-I"):
            yield f"-I {os.path.realpath(word[2:])}"
        elif word.startswith("-"):
            yield word


DEPENDENCIES = ("--dependency-output", "--generate-dependencies", ".d")
# No part of what the source means: threads, compression of what is linked, and the target, which
# stands as -arch, since PTX is asked for.
MEANINGLESS = ("--threads=", "-Xfatbin=", "-gencode=", "-c", "-ptx", "-arch=", *DEPENDENCIES)


def meaning(command: str) -> list[str]:
    return sorted(flag for flag in flags_of(command) if not flag.startswith(MEANINGLESS))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.5.3", "0.6.3", "0.6.9", "0.6.12", "0.6.16.post4"])
@pytest.mark.parametrize(("arch", "named"), [("12.0", Arch(12, 0)), ("12.1", Arch(12, 1))])
def test_the_flags_are_those_that_flashinfer_writes(
    version: str, arch: str, named: Arch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("CC", raising=False)
    home = tmp_path / "cuda"
    write_files(home, {"bin/nvcc": "#!/bin/sh\necho 'release 13.0, V13.0.88'\n", "include/x": ""})
    (home / "bin/nvcc").chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(home))
    prefix = installed(tmp_path, ("flashinfer-python", version))
    write_files(site_of(prefix), STUBS)
    needed = [str(Path(path).parents[1]) for path in (filelock.__file__, packaging.__file__)]
    minor = {"0.5.3": "a", "0.6.3": "a"}.get(version, "")
    done = subprocess.run(
        [python_of(prefix), "-c", ASK, str(site_of(prefix))],
        env={
            **os.environ,
            "FLASHINFER_CUDA_ARCH_LIST": arch + minor,
            "PYTHONPATH": os.pathsep.join(needed),
            "FLASHINFER_DISABLE_VERSION_CHECK": "1",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    manifest = Path(done.stdout.splitlines()[-1]).read_text()
    edges = ninja.read_manifest(manifest)
    theirs = next(e.command for e in edges if e.inputs[0].endswith("/trtllm_allreduce.cu"))

    environment = find_environment(prefix=prefix)
    target = find_target(environment, "flashinfer-python")
    assert target is not None
    compiler: Compiler = nvcc.find()
    data = site_of(prefix) / "flashinfer/data"
    words = [
        *compiler.command,
        *nvcc.flags(compiler),
        *nvcc.folders(environment, compiler, data).words(data),
    ]
    there = [
        flag
        for flag in meaning(theirs)
        if not flag.startswith("-isystem") or Path(flag.split()[1]).is_dir()
    ]
    assert meaning(shlex.join(words)) == sorted(set(there))
    assert f"arch=compute_{nvcc.target_name(named, target)}," in theirs
    assert shlex.split(theirs)[0] == compiler.command[0]
