"""Put the deep probe to the test on real devices: ``python tests/device/check_deep.py``.

It wants gatepatch and CuPy, prints the answers and a line PASS or FAIL for each check, and exits 1
if one fails. Without a device: see ``tests/test_deep_probe.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from checks import failed

import gatepatch
from gatepatch.errors import ProbeError
from gatepatch.probing import deep_probe
from gatepatch.probing.device_probe import Device, Probe
from gatepatch.probing.properties import (
    Answer,
    Cluster,
    Multicast,
    Pdl,
    PeerAccess,
    SharedMemory,
    Unanswered,
    title,
)
from gatepatch.report import to_json
from trees import make_distribution, make_environment, site_of

BAD_CHILD = str(Path(__file__).with_name("bad_child.py"))
LIMIT = 20.0


def devices() -> tuple[Device, ...]:
    """The devices that are visible."""
    answer = gatepatch.probe()
    assert isinstance(answer, Probe), answer.message
    return answer.devices


def indices() -> list[int]:
    """Their indices."""
    return [device.index for device in devices()]


def deep() -> tuple[Answer, ...]:
    """All answers of all devices."""
    answer = gatepatch.probe(deep=True, timeout=LIMIT)
    assert isinstance(answer, Probe), answer.message
    return answer.answers


def listed(answers: tuple[Answer, ...]) -> str:
    """The answers in words, a line each."""
    return "\n".join(f"  device {a.device}  {title(a):16}  {a.words}" for a in answers)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)


def running(name: str) -> bool:
    """Whether a process has this in its command line."""
    found = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))
    return any(name.encode() in words for words in found)


def check_answers() -> str:
    """Every device answers every question."""
    start = time.monotonic()
    answers = deep()
    seconds = time.monotonic() - start
    print(to_json(answers))
    print(listed(answers))
    asked = deep_probe.questions(indices(), deep_probe.ALL)
    told = [(a.question, a.device, getattr(a, "peer", None)) for a in answers]
    assert told == [(q.question, q.device, q.peer) for q in asked]
    missing = [a for a in answers if isinstance(a, Unanswered)]
    assert not missing, missing
    return f"{len(answers)} answers in {seconds:.2f} s"


def check_pdl() -> str:
    """The order is kept with the wait, and seen to be broken without it: the test can fail."""
    found = deep_probe.ask(deep_probe.questions(indices(), ["pdl"]), LIMIT)
    for device, answer in zip(devices(), found, strict=True):
        assert isinstance(answer, Pdl), answer
        wanted = "ordered" if device.arch.major >= 9 else "unsupported"
        assert answer.order == wanted, answer
        assert (answer.early > 0) == (wanted == "ordered"), f"not put to the test: {answer}"
    return found[0].words


def check_clusters() -> str:
    """The largest cluster that runs is the one that the driver says."""
    found = deep_probe.ask(deep_probe.questions(indices(), ["cluster"]), LIMIT)
    for device, answer in zip(devices(), found, strict=True):
        assert isinstance(answer, Cluster), answer
        assert answer.largest == answer.said, answer
        assert (answer.largest > 1) == (device.arch.major >= 9), answer
    return f"{found[0]}"


def check_shared_memory() -> str:
    """The sizes are those that CuPy's own attributes have."""
    code = (
        "import cupy; a = cupy.cuda.Device(0).attributes; "
        "print(a['MaxSharedMemoryPerBlock'], a['MaxSharedMemoryPerBlockOptin'])"
    )
    told = run(code).stdout.split()
    (answer,) = deep_probe.ask(deep_probe.questions(indices()[:1], ["shared-memory"]), LIMIT)
    assert isinstance(answer, SharedMemory), answer
    assert [str(answer.block), str(answer.opt_in)] == told, (answer, told)
    return answer.words


def check_peers() -> str:
    """Where there is access the bytes are right, and there is access where CuPy says so."""
    found = deep_probe.ask(deep_probe.questions(indices(), ["peer-access"]), LIMIT)
    reach = {device.index: device.peers for device in devices()}
    for answer in found:
        assert isinstance(answer, PeerAccess), answer
        assert answer.copied, answer
        assert answer.access == answer.works == (answer.peer in reach[answer.device]), answer
    return f"{len(found)} pairs, {sum(isinstance(a, PeerAccess) and a.works for a in found)} work"


def check_multicast() -> str:
    """The question of multicast is answered."""
    found = deep_probe.ask(deep_probe.questions(indices(), ["multicast"]), LIMIT)
    assert all(isinstance(answer, Multicast) for answer in found), found
    return found[0].words


def bad(kind: str, limit: float) -> tuple[Answer, ...]:
    """The answers where the question of PDL misbehaves."""
    good, deep_probe._CHILD = deep_probe._CHILD, BAD_CHILD
    os.environ["BAD"] = kind
    try:
        return deep_probe.ask(deep_probe.questions(indices(), deep_probe.ALL), limit)
    finally:
        deep_probe._CHILD = good


def only_pdl_fails(answers: tuple[Answer, ...], reason: str) -> str:
    """All other questions are answered; the words of the one that is not."""
    words = ""
    for answer in answers:
        if answer.question == "pdl":
            assert isinstance(answer, Unanswered), answer
            assert answer.reason == reason, answer
            words = answer.words
        else:
            assert not isinstance(answer, Unanswered), answer
    return words


def check_hang() -> str:
    """A kernel that never ends is ended, and the device is free and well afterwards."""
    start = time.monotonic()
    words = only_pdl_fails(bad("endless", 8.0), "hangs")
    seconds = time.monotonic() - start
    assert not running(BAD_CHILD), "the child is still there"
    idle = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    time.sleep(2)
    busy = subprocess.run(idle, capture_output=True, text=True).stdout.split()
    assert all(value in ("0", "[N/A]") for value in busy), f"a device is {busy} % busy"
    assert not any(isinstance(answer, Unanswered) for answer in deep())
    return f"{words}; {seconds:.1f} s in all, utilisation afterwards {', '.join(busy)}"


def check_trap() -> str:
    """A kernel that ends with an error is told, and the others are asked all the same."""
    return only_pdl_fails(bad("trap", LIMIT), "failed")


def check_visible() -> str:
    """Only visible devices are asked, and none is an answer."""
    code = (
        "import gatepatch, json; r = gatepatch.probe(deep=True); "
        "print(getattr(r, 'reason', None) or sorted({a.device for a in r.answers}))"
    )
    none = run(code, CUDA_VISIBLE_DEVICES="")
    assert none.stdout == "no-device\n", none.stdout + none.stderr
    last = run(code, CUDA_VISIBLE_DEVICES=str(len(devices()) - 1))
    assert last.stdout == "[0]\n", last.stdout + last.stderr
    return "none and the last alone"


def check_home() -> str:
    """Nothing is written into the home, and the asking process loads no CUDA."""
    with tempfile.TemporaryDirectory() as home:
        done = run(
            "import gatepatch, sys; gatepatch.probe(deep=True); "
            "assert 'cupy' not in sys.modules and 'libcuda' not in open('/proc/self/maps').read()",
            HOME=home,
        )
        assert done.returncode == 0, done.stderr
        left = sorted(str(path.relative_to(home)) for path in Path(home).rglob("*"))
    assert not left, left
    return "no file, no CuPy, no libcuda"


SET = """\
schema: 1
name: toy
summary: Open a toy's gate
why: To see what is required.
admit: [{arch}]
like: sm_80
requires: {{{requires}}}
targets:
  - distribution: toy
    versions: ">=1"
    files:
      - path: toy/kernel.cuh
        edits:
          - open: {{condition: "__CUDA_ARCH__ == 800"}}
"""
KERNEL = "#if __CUDA_ARCH__ == 800\nint open;\n#endif\n"


def check_requires() -> str:
    """A set whose requirements the device meets is applied, and one that wants more is refused."""
    arch = devices()[0].arch.name
    with tempfile.TemporaryDirectory() as folder:
        prefix = make_environment(Path(folder))
        make_distribution(site_of(prefix), "toy", "1.0", {"toy/kernel.cuh": KERNEL})
        patches = Path(folder, "patches")
        patches.mkdir()
        file = site_of(prefix) / "toy/kernel.cuh"
        (patches / "toy.yaml").write_text(
            SET.format(arch=arch, requires="shared-memory: 10000000, cluster: 16, pdl: ordered")
        )
        try:
            gatepatch.apply("toy", prefix=prefix, patches=[patches])
            raise AssertionError("a set that requires 10 MB of shared memory was applied")
        except ProbeError as error:
            words = str(error)
        assert file.read_text() == KERNEL
        (patches / "toy.yaml").write_text(
            SET.format(arch=arch, requires="shared-memory: 49152, cluster: 2, pdl: ordered")
        )
        assert gatepatch.apply("toy", prefix=prefix, patches=[patches]).outcome == "applied"
        assert file.read_text() != KERNEL
    return words


CHECKS = (
    check_answers,
    check_pdl,
    check_clusters,
    check_shared_memory,
    check_peers,
    check_multicast,
    check_hang,
    check_trap,
    check_visible,
    check_home,
    check_requires,
)


def main() -> int:
    """Run all checks; the exit code."""
    return 1 if failed(CHECKS) else 0


if __name__ == "__main__":
    sys.exit(main())
