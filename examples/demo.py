"""The main job, from a fresh clone, on real wheels and without a GPU: ``make demo``.

A scratch environment under .demo/ gets the released sglang 0.5.9 and flashinfer-python 0.6.3.
Then: probe, plan, apply, status, apply again, revert. After each step the environment is compared
with the wheels, byte for byte; the demo stops with exit code 1 where anything is not as it should
be. Nothing outside .demo/ is read or written, the JIT caches of your home included.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / ".demo"
WHEELS, ENV, HOME = DEMO / "wheels", DEMO / "env", DEMO / "home"
REQUIREMENTS = ("sglang==0.5.9", "flashinfer-python==0.6.3")
WHEEL_NAMES = ("sglang-0.5.9-py3-none-any.whl", "flashinfer_python-0.6.3-py3-none-any.whl")
SET = "sm120-allreduce"

# The same change by hand, as (text, replacement, how often it must stand there): what the engines
# make must be what these make.
BY_HAND: Mapping[str, Sequence[tuple[str, str, int]]] = {
    "flashinfer/jit/comm.py": [
        ("supported_major_versions=[9, 10]", "supported_major_versions=[9, 10, 12]", 1),
    ],
    "flashinfer/data/include/flashinfer/comm/trtllm_allreduce.cuh": [
        ("(__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)",
         "(__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1300)", 13),
    ],
    "sglang/srt/layers/communicator.py": [
        ("    is_sm100_supported,\n", "    is_sm100_supported,\n    is_sm120_supported,\n", 1),
        ("_is_cuda and is_sm100_supported()\n",
         "_is_cuda and is_sm100_supported()\n_is_sm120_supported = _is_cuda and is_sm120_supported()\n", 1),
        ("(_is_sm90_supported or _is_sm100_supported)",
         "(_is_sm90_supported or _is_sm100_supported or _is_sm120_supported)", 1),
    ],
    "sglang/srt/server_args.py": [
        ("(is_sm90_supported() or is_sm100_supported())",
         "(is_sm90_supported() or is_sm100_supported() or is_sm120_supported())", 1),
    ],
}  # fmt: skip


def main() -> None:
    """Run every step; stop at the first that is not as it should be."""
    title("A scratch environment with real wheels")
    site = make_environment()
    before, modes_before = contents(site), modes(site)
    pristine = wheel_contents()
    demand(differences(before, pristine) == [], "what pip installed is what the wheels hold")
    patched = pristine | {path: by_hand(path, pristine[path]) for path in BY_HAND}

    title("Probe the devices")
    has_sm12x = probe()

    title("Plan: what would be done, and the proof")
    gatepatch("plan", SET)
    files = gatepatch_json("plan", SET)["sets"][0]["files"]
    diffs = {file["path"]: file["diff"] for file in files}
    demand(set(diffs) == set(BY_HAND) and all(diffs.values()), "four files, each with a diff")
    demand(all(file["pinned"] for file in files), "all are pinned: reviewed ahead of time")
    files = gatepatch_json("plan", SET, "--patches", str(without_pins()))["sets"][0]["files"]
    demand(not any(file["pinned"] for file in files), "without the pins the engines plan them")
    demand({file["path"]: file["diff"] for file in files} == diffs, "and come to the same diffs")
    demand(contents(site) == before, "planning wrote nothing")

    title("Apply for the devices that are here")
    if has_sm12x:
        gatepatch("apply", SET)
        check_edits(site, pristine, patched)
        gatepatch("revert", SET)
    else:
        refused = gatepatch_json("apply", SET, expect=1)
        print(refused["problems"][0]["message"], refused["problems"][0]["hint"], sep="\n  ")
        demand(refused["error"] == "probe", "refused, for want of a device that the set admits")
    demand(differences(contents(site), pristine) == [], "every file is as in the wheels")

    title("Apply, as in an image build")
    stale, other = make_jit_cache()
    gatepatch("apply", SET, "--assume", "sm_120")
    check_edits(site, pristine, patched)
    demand(not stale.exists(), "the JIT binary that derives from the edited header is gone")
    demand(other.exists(), "the other JIT binary stays")

    title("Status")
    gatepatch("status", SET, "--require")

    title("Apply again: nothing to do")
    times = modification_times(site)
    gatepatch("apply", SET, "--assume", "sm_120")
    again = gatepatch_json("apply", SET, "--assume", "sm_120")
    demand(again["outcome"] == "already-applied", "the outcome is already-applied")
    demand(modification_times(site) == times, "no file was touched")

    title("Revert")
    gatepatch("revert", SET)
    demand(differences(contents(site), pristine) == [], "every file is as in the wheels")
    left = sorted(set(contents(site)) - set(before) - {".gatepatch/lock"})
    demand(not left, f"nothing is left behind {left or ''}".rstrip())
    demand(modes(site) == modes_before, "every file has the mode that it had")
    gatepatch("status", SET)
    status = gatepatch_json("status", SET)
    demand(status["outcome"] == "pristine", "the outcome is pristine")
    print("\nThe demo went as it should. Its environment is in .demo/, to try more.")


def make_environment() -> Path:
    """Download the wheels once, and install them in a fresh environment; return its site."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    if not all((WHEELS / name).is_file() for name in WHEEL_NAMES):
        pip("download", "--no-deps", "--dest", WHEELS, *REQUIREMENTS)
    for folder in (ENV, HOME):
        shutil.rmtree(folder, ignore_errors=True)
    HOME.mkdir()
    venv.EnvBuilder(symlinks=True, with_pip=False).create(ENV)
    pip("--python", ENV / "bin" / "python", "install", "--no-deps", "--no-index",
        "--find-links", WHEELS, *REQUIREMENTS)  # fmt: skip
    (site,) = ENV.glob("lib/python3*/site-packages")
    return site


def without_pins() -> Path:
    """A folder with the set's YAML alone."""
    folder = DEMO / "patches"
    (folder / SET).mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "patches" / SET / "set.yaml", folder / SET)
    return folder


def make_jit_cache() -> tuple[Path, Path]:
    """Two stand-ins for JIT binaries, one of them built from the header that the set edits."""
    binaries = []
    for module in ("trtllm_comm", "norm"):
        folder = HOME / ".cache" / "flashinfer" / "0.6.3" / "120a" / "cached_ops" / module
        folder.mkdir(parents=True, exist_ok=True)
        binaries.append(folder / f"{module}.so")
        binaries[-1].write_bytes(b"a stand-in")
    return binaries[0], binaries[1]


def probe() -> bool:
    """Probe the devices, with CuPy where there is a driver; whether one of them is SM 12.x."""
    devices = 0
    if extra := cupy_extra():
        print(f"an NVIDIA driver is here: installing the extra {extra}")
        pip("install", "--editable", f"{ROOT}[{extra}]")
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
        devices = listed.stdout.count("UUID: GPU-") if listed.returncode == 0 else 0
    else:
        print("no NVIDIA driver is here, so the probe is expected to fail, and to say why")
    gatepatch("probe", expect=None)
    document = gatepatch_json("probe", expect=None)
    if "probe" not in document:
        demand(document["error"] == "probe", "the probe says why it has no answer")
        demand(devices == 0, "and there is no device that nvidia-smi lists")
        return False
    return any(device["arch"].startswith("12.") for device in document["probe"]["devices"])


def cupy_extra() -> str | None:
    """The extra whose CuPy fits the driver; None without a driver."""
    if shutil.which("nvidia-smi"):
        told = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=False).stdout
        if match := re.search(r"CUDA (?:UMD )?Version:\s*(\d+)", told):
            return "cuda13" if int(match[1]) >= 13 else "cuda12"
    version = Path("/proc/driver/nvidia/version")
    if version.is_file():
        # CUDA 13 wants the drivers from 580 on. Source: CUDA Toolkit release notes.
        match = re.search(r"\s(\d{3})\.\d+", version.read_text())
        return "cuda13" if match and int(match[1]) >= 580 else "cuda12"
    return None


def by_hand(path: str, data: bytes) -> bytes:
    """The bytes that the change gives when it is made by plain replacement."""
    text = data.decode()
    for old, new, count in BY_HAND[path]:
        demand(text.count(old) == count, f"{path}: {count} x {old.strip()!r}", quiet=True)
        text = text.replace(old, new)
    return text.encode()


def check_edits(site: Path, pristine: Mapping[str, bytes], patched: Mapping[str, bytes]) -> None:
    """Compare the environment after apply with the same change made by hand."""
    now = contents(site)
    changed = differences(now, pristine)
    demand(changed == sorted(BY_HAND), f"exactly four files differ from the wheels: {changed}")
    for path in BY_HAND:
        demand(now[path] == digest(patched[path]), f"{path}: as by hand")


def wheel_contents() -> dict[str, bytes]:
    """Every file of the wheels; RECORD is pip's to rewrite."""
    files = {}
    for name in WHEEL_NAMES:
        with zipfile.ZipFile(WHEELS / name) as wheel:
            for member in wheel.infolist():
                if not member.is_dir() and not member.filename.endswith(".dist-info/RECORD"):
                    files[member.filename] = wheel.read(member)
    return files


def contents(site: Path) -> dict[str, str]:
    """The hash of every file, by its path; bytecode is Python's to write."""
    return {
        path.relative_to(site).as_posix(): digest(path.read_bytes())
        for path in site.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def differences(now: Mapping[str, str], wheels: Mapping[str, bytes]) -> list[str]:
    """The files of the wheels that are missing or differ."""
    return sorted(path for path, data in wheels.items() if now.get(path) != digest(data))


def modes(site: Path) -> dict[Path, int]:
    """The mode of every file that is not bytecode or gatepatch's own."""
    files = (path for path in site.rglob("*") if path.suffix != ".pyc")
    return {path: path.stat().st_mode for path in files if ".gatepatch" not in path.parts}


def modification_times(site: Path) -> dict[Path, int]:
    """When each file and folder was last written."""
    return {path: path.stat().st_mtime_ns for path in site.rglob("*")}


def digest(data: bytes) -> str:
    """SHA-256."""
    return hashlib.sha256(data).hexdigest()


def gatepatch(*arguments: str, expect: int | None = 0) -> None:
    """Run a command for all to see; its exit code must be the expected one."""
    words = command(arguments)
    print(f"$ {shlex.join(['gatepatch', *words[3:]])}", flush=True)
    code = subprocess.run(words, env=environment(), check=False).returncode
    demand(expect in (None, code), f"exit code {code}")


def gatepatch_json(*arguments: str, expect: int | None = 0) -> Any:
    """Run a command again for its JSON document."""
    words = [*command(arguments), "--json"]
    done = subprocess.run(words, env=environment(), check=False, capture_output=True, text=True)
    demand(
        expect in (None, done.returncode), f"{words[3]}: exit code {done.returncode}", quiet=True
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        fail(f"{words[3]} --json printed no JSON document: {done.stdout}{done.stderr}")


def command(arguments: Sequence[str]) -> list[str]:
    """The command line of a gatepatch command for the scratch environment."""
    where = [] if arguments[0] == "probe" else ["--prefix", os.path.relpath(ENV)]
    return [sys.executable, "-m", "gatepatch", *arguments, *where]


def environment() -> dict[str, str]:
    """This process's variables, with a home of the demo's own and no JIT cache elsewhere."""
    ours = ("FLASHINFER_", "SGLANG_", "GATEPATCH_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "HOME": str(HOME)}


def pip(*arguments: str | Path) -> None:
    """Run pip; stop where it fails."""
    words = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*words, *map(str, arguments)], check=False).returncode != 0:
        fail(f"pip {shlex.join(map(str, arguments))}")


def title(text: str) -> None:
    """Head a step."""
    print(f"\n=== {text}", flush=True)


def demand(holds: bool, what: str, *, quiet: bool = False) -> None:
    """Stop unless it holds."""
    if not holds:
        fail(what)
    if not quiet:
        print(f"ok: {what}", flush=True)


def fail(what: str) -> NoReturn:
    """Stop the demo."""
    sys.exit(f"\nFAILED: {what}")


if __name__ == "__main__":
    main()
