"""The environment's CUDA compiler, and the flags that FlashInfer's JIT gives it.

Source: ``get_cuda_path``, ``build_common_cflags`` and ``build_cuda_cflags`` in
``flashinfer/jit/cpp_ext.py``, ``gen_jit_spec`` in ``flashinfer/jit/core.py``, and
``flashinfer/compilation_context.py``, 0.4.0 to 0.6.16.post4. They import torch, so they are
followed here and not called.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from gatepatch.arch import Arch, Suffix
from gatepatch.environment import Environment
from gatepatch.errors import Problem, TargetError
from gatepatch.target import Target

_DEFAULT_HOME = "/usr/local/cuda"

_FOLDERS = ("include", "csrc", "cutlass/include", "cutlass/tools/util/include", "spdlog/include")
_CCCL = ("cccl/cub", "cccl/libcudacxx/include", "cccl/thrust")
"""Vendored from 0.6.11 on, and found before the toolkit's own."""

_DEFINES = (
    "FLASHINFER_ENABLE_FP8_E8M0",
    "FLASHINFER_ENABLE_FP4_E2M1",
    "FLASHINFER_ENABLE_F16",
    "FLASHINFER_ENABLE_BF16",
    "FLASHINFER_ENABLE_FP8_E4M3",
    "FLASHINFER_ENABLE_FP8_E5M2",
    "NDEBUG",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A CUDA compiler that answers.

    Args:
        command: The command, with a launcher before it if ``FLASHINFER_NVCC`` has one.
        home: The toolkit's folder, as FlashInfer takes it.
        release: Such as ``13.0``.
        identity: All that ``--version`` says, which tells two builds apart.
    """

    command: tuple[str, ...]
    home: Path
    release: Version
    identity: str


def find(variables: Mapping[str, str] | None = None) -> Compiler:
    """Find the compiler that FlashInfer would call.

    Args:
        variables: Environment variables; those of this process by default.

    Raises:
        TargetError: There is none, or it does not answer; nothing can be compiled.
    """
    variables = os.environ if variables is None else variables
    home = _home(variables)
    named = shlex.split(variables.get("FLASHINFER_NVCC", ""))
    command = (*named,) or (str(home / "bin" / "nvcc"),)
    if home == Path() or shutil.which(command[0], path=variables.get("PATH")) is None:
        raise TargetError(
            Problem(
                message="there is no nvcc: looked at FLASHINFER_NVCC, CUDA_HOME, CUDA_PATH, PATH "
                f"and {_DEFAULT_HOME}",
                where=command[0] if home != Path() else None,
                hint="name the CUDA toolkit that the server's environment has: "
                "export CUDA_HOME=/usr/local/cuda-13.0",
            )
        )
    try:
        done = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=True,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise TargetError(
            Problem(message=f"does not answer as nvcc: {error}", where=command[0])
        ) from None
    found = re.search(r"release (\d+\.\d+),", done.stdout)
    if found is None:
        raise TargetError(Problem(message="does not say which nvcc it is", where=command[0]))
    return Compiler(
        command=command, home=home, release=Version(found[1]), identity=done.stdout.strip()
    )


def _home(variables: Mapping[str, str]) -> Path:
    named = variables.get("CUDA_HOME") or variables.get("CUDA_PATH")
    if named:
        return Path(named)
    found = shutil.which("nvcc", path=variables.get("PATH"))
    if found:
        return Path(found).absolute().parent.parent
    return Path(_DEFAULT_HOME) if Path(_DEFAULT_HOME).is_dir() else Path()


def target_name(arch: Arch, flashinfer: Target) -> str:
    """What FlashInfer calls an architecture to the compiler: ``120a``, later ``120f``.

    From 0.6.7 on it takes the family's features for SM 12.0, and its source says so.
    """
    suffix = Suffix.ARCHITECTURE.value if arch.major >= 9 else ""
    if arch == Arch(12, 0):
        context = flashinfer.locate("flashinfer/compilation_context.py")
        if context.is_file() and b'"0f"' in context.read_bytes():
            suffix = Suffix.FAMILY.value
    return f"{arch.sm}{suffix}"


def flags(compiler: Compiler, variables: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The flags of every FlashInfer module, but for those that name folders or architectures.

    The C++ ABI is the one that torch has had since 2.6; PTX does not depend on it.
    """
    variables = os.environ if variables is None else variables
    host = ("-ccbin", variables["CC"]) if variables.get("CC") else ()
    stub = ("-static-global-template-stub=false",) if compiler.release >= Version("12.8") else ()
    return (
        *host,
        "-DPy_LIMITED_API=0x03090000",
        "-D_GLIBCXX_USE_CXX11_ABI=1",
        "--compiler-options=-fPIC",
        "--expt-relaxed-constexpr",
        *stub,
        "-std=c++17",
        "-use_fast_math",
        "-O3",
        *(f"-D{name}" for name in _DEFINES),
        *shlex.split(variables.get("FLASHINFER_EXTRA_CUDAFLAGS", "")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a compilation looks for headers.

    Args:
        own: In FlashInfer's own data folder, relative to it, in order: ``-I`` or ``-isystem``.
        others: The absolute folders found before them: Python's, the toolkit's, tvm-ffi's.
    """

    own: tuple[tuple[str, str], ...]
    others: tuple[Path, ...]

    def words(self, data: Path) -> tuple[str, ...]:
        """The words of a command line.

        Args:
            data: FlashInfer's data folder, or a copy of it.
        """
        before = [(flag, str(data / name)) for flag, name in self.own if flag == "-I"]
        after = [(flag, str(data / name)) for flag, name in self.own if flag != "-I"]
        others = [("-isystem", str(folder)) for folder in self.others]
        return tuple(word for pair in (*before, *others, *after) for word in pair)


def folders(environment: Environment, compiler: Compiler, data: Path) -> Folders:
    """The include folders of every FlashInfer module.

    Args:
        environment: Whose Python and tvm-ffi headers are taken.
        compiler: Whose toolkit's.
        data: FlashInfer's data folder.
    """
    toolkit = compiler.home / "include"
    others = [
        *_python_headers(environment),
        # FlashInfer leaves /usr/include out: it would come before the compiler's own.
        *([toolkit] if compiler.home != Path("/usr") else []),
        *([] if (data / _CCCL[0]).is_dir() else [toolkit / "cccl"]),
        *_ffi_headers(environment),
    ]
    own = [("-I", name) for name in _CCCL] + [("-isystem", name) for name in _FOLDERS]
    return Folders(
        own=tuple((flag, name) for flag, name in own if (data / name).is_dir()),
        others=tuple(dict.fromkeys(folder for folder in others if folder.is_dir())),
    )


def _python_headers(environment: Environment) -> tuple[Path, ...]:
    if environment.python is None:
        return ()
    query = "import sysconfig; print(sysconfig.get_path('include'))"
    try:
        done = subprocess.run(
            [environment.python, "-I", "-B", "-c", query],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            text=True,
            errors="surrogateescape",
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return (Path(done.stdout.strip()),) if done.stdout.strip() else ()


def _ffi_headers(environment: Environment) -> tuple[Path, ...]:
    """The headers of apache-tvm-ffi, which FlashInfer's units need from 0.4.0 on."""
    for folder in environment.paths:
        package = folder / "tvm_ffi"
        if (package / "include" / "tvm").is_dir():
            return (package / "include", package / "3rdparty" / "dlpack" / "include")
    return ()
