"""What the deep probe makes of every kind of device, in real child processes with a toy CuPy."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

import fake_cupy
import gatepatch
from gatepatch import cli
from gatepatch.probing import _deep_driver as d
from gatepatch.probing import deep_probe
from gatepatch.probing._deep_driver import LaunchAttribute, LaunchConfig, MulticastProperties
from gatepatch.probing.deep_probe import ask
from gatepatch.probing.device_probe import Probe, ProbeFailure
from gatepatch.probing.properties import (
    Answer,
    Cluster,
    Multicast,
    Pdl,
    PeerAccess,
    Question,
    QuestionName,
    SharedMemory,
    Unanswered,
    title,
)

Machine = Callable[..., None]
KERNELS = Path(deep_probe.__file__).with_name("deep_kernels.cu")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Call it to have a machine with toy devices that do these things wrong."""
    fake_cupy.install(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")

    def become(toy: str = "", devices: int = 1, major: int = 12) -> None:
        monkeypatch.setenv("TOY", toy)
        monkeypatch.setenv("TOY_DEVICES", str(devices))
        monkeypatch.setenv("TOY_MAJOR", str(major))

    become()
    return become


def one(question: QuestionName, *, peer: int | None = None, timeout: float = 30.0) -> Answer:
    """The answer to one question."""
    (answer,) = ask([Question(question=question, device=0, peer=peer)], timeout)
    return answer


# -- answers --


def good(device: int, peer: int | None = None) -> list[Answer]:
    """What a toy device without faults answers."""
    answers: list[Answer] = [
        Pdl(device=device, order="ordered", launches=200, wrong=0, early=200),
        Cluster(device=device, largest=8, said=8, sizes=tuple(range(1, 9))),
        SharedMemory(device=device, block=49152, opt_in=101376),
        Multicast(device=device, supported=False, granularity=None, detail=""),
    ]
    if peer is not None:
        answers.append(PeerAccess(device=device, peer=peer, access=True, copied=True, read=True))
    return answers


def test_a_device_without_faults(machine: Machine) -> None:
    probe = gatepatch.probe(deep=True)
    assert isinstance(probe, Probe)
    assert probe.answers == (*good(0),)
    assert [device.index for device in probe.devices] == [0]


def test_every_pair_is_asked_in_both_directions(machine: Machine) -> None:
    machine(devices=2)
    probe = gatepatch.probe(deep=True)
    assert isinstance(probe, Probe)
    assert probe.answers == (*good(0, 1), *good(1, 0))


def test_a_plain_probe_asks_nothing_of_it(machine: Machine) -> None:
    machine("no-nvrtc no-driver")
    probe = gatepatch.probe()
    assert isinstance(probe, Probe)
    assert probe.answers == ()


ANSWERS: dict[str, tuple[str, int, Answer, str]] = {
    "order is broken": (
        "broken",
        12,
        Pdl(device=0, order="broken", launches=200, wrong=200, early=200),
        "broken: 200 of 200 launches read too early",
    ),
    "order was not put to the test": (
        "late-start",
        12,
        Pdl(device=0, order="ordered", launches=200, wrong=0, early=0),
        "ordered in 200 launches; without the wait too: none was seen to start early",
    ),
    "order is kept": (
        "",
        9,
        Pdl(device=0, order="ordered", launches=200, wrong=0, early=200),
        "ordered in 200 launches; without the wait 200 read too early",
    ),
    "no wait": (
        "",
        8,
        Pdl(device=0, order="unsupported", launches=0, wrong=0, early=0),
        "not supported: there is no grid dependency wait before SM 9.0",
    ),
    "no clusters": ("no-clusters", 12, Cluster(device=0, largest=1, said=1, sizes=(1,)), "none"),
    "no clusters before SM 9.0": (
        "",
        8,
        Cluster(device=0, largest=1, said=1, sizes=(1,)),
        "none",
    ),
    "the driver says more than there is": (
        "says-16",
        12,
        Cluster(device=0, largest=8, said=16, sizes=tuple(range(1, 9))),
        "up to 8 blocks; the driver says 16",
    ),
    "clusters that are not portable": (
        "large-clusters",
        12,
        Cluster(device=0, largest=16, said=16, sizes=tuple(range(1, 17))),
        "up to 16 blocks",
    ),
    "shared memory": (
        "",
        8,
        SharedMemory(device=0, block=49152, opt_in=101376),
        "49152 bytes a block, 101376 with opt-in",
    ),
    "multicast": (
        "multicast",
        12,
        Multicast(device=0, supported=True, granularity=2 << 20, detail=""),
        "yes, in steps of 2097152 bytes",
    ),
    "multicast in name only": (
        "multicast no-granularity",
        12,
        Multicast(
            device=0,
            supported=False,
            granularity=None,
            detail="cuMulticastGetGranularity: CUDA_ERROR_NOT_SUPPORTED",
        ),
        "no: cuMulticastGetGranularity: CUDA_ERROR_NOT_SUPPORTED",
    ),
    "no multicast": (
        "",
        12,
        Multicast(device=0, supported=False, granularity=None, detail=""),
        "no",
    ),
}


@pytest.mark.parametrize(("toy", "major", "answer", "words"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer(machine: Machine, toy: str, major: int, answer: Answer, words: str) -> None:
    machine(toy, major=major)
    assert one(answer.question) == answer
    assert answer.words == words


PEERS = {
    "peers": ("", True, True, True, "yes; a copy and a kernel got the right bytes"),
    "no peers": ("no-peers", False, True, None, "no"),
    "no peers and a bad copy": (
        "no-peers wrong-copy",
        False,
        False,
        None,
        "no, and a copy by the host gave wrong bytes",
    ),
    "a bad copy": (
        "wrong-copy",
        True,
        False,
        True,
        "the driver says yes, and a copy got wrong bytes",
    ),
    "bad reads": (
        "wrong-read",
        True,
        True,
        False,
        "the driver says yes, and a kernel that read there got wrong bytes",
    ),
    "all bad": (
        "wrong-read wrong-copy",
        True,
        False,
        False,
        "the driver says yes, and a copy and a kernel that read there got wrong bytes",
    ),
}


@pytest.mark.parametrize(("toy", "access", "copied", "read", "words"), PEERS.values(), ids=PEERS)
def test_peer_access(
    machine: Machine, toy: str, access: bool, copied: bool, read: bool | None, words: str
) -> None:
    machine(toy, devices=2)
    answer = one("peer-access", peer=1)
    assert answer == PeerAccess(device=0, peer=1, access=access, copied=copied, read=read)
    assert answer.words == words
    assert isinstance(answer, PeerAccess)
    assert answer.works == (toy == "")
    assert title(answer) == "peer-access to 1"


# -- failures --

FAILURES: dict[str, tuple[str, QuestionName, str]] = {
    "no NVRTC": ("no-nvrtc", "pdl", "libnvrtc.so.13: cannot open shared object file"),
    "no compiling": ("no-compile", "cluster", "x.cu(2): error: no such thing"),
    "no library": ("no-driver", "multicast", "libcuda.so.1: cannot open shared object file"),
    "an old driver": ("old-driver", "pdl", "the driver has no cuLaunchKernelEx"),
    "an unknown error": ("error-launch", "pdl", "cuLaunchKernelEx: error 4242"),
    "wrong words in a cluster": (
        "wrong-cluster",
        "cluster",
        "blocks in a cluster of 2 read the wrong words",
    ),
    "wrong words in shared memory": (
        "wrong-shared",
        "shared-memory",
        "1 of 12288 words of shared memory came back wrong",
    ),
    "a crash": ("abort-pdl", "pdl", "the probe ended with signal 6"),
}


@pytest.mark.parametrize(("toy", "question", "detail"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_the_answer(
    machine: Machine, toy: str, question: QuestionName, detail: str
) -> None:
    machine(toy)
    answer = one(question)
    assert answer == Unanswered(
        question=question, device=0, peer=None, reason="failed", detail=detail
    )
    assert answer.words == f"failed: {detail}"


@pytest.mark.parametrize("toy", ["abort-pdl", "hang-pdl"])
def test_the_others_are_asked_all_the_same(machine: Machine, toy: str) -> None:
    machine(toy, devices=2)
    asked = deep_probe.questions([0, 1], deep_probe.ALL)
    told: list[Question] = []
    answers = ask(asked, 3.0, told.append)
    assert told == list(asked)
    assert [a for a in answers if a.question != "pdl"] == [
        a for a in (*good(0, 1), *good(1, 0)) if a.question != "pdl"
    ]
    reason = "hangs" if toy == "hang-pdl" else "failed"
    for answer in answers:
        assert answer.question != "pdl" or (
            isinstance(answer, Unanswered) and answer.reason == reason
        )


def test_a_hang_is_ended_and_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine("hang-peer pids", devices=2)
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    assert one("peer-access", peer=1, timeout=2) == Unanswered(
        question="peer-access",
        device=0,
        peer=1,
        reason="hangs",
        detail="nothing within 2 s, so it was ended",
    )
    fake_cupy.wait_until_gone(int(Path(os.environ["PIDS"]).read_text()))


def test_the_time_limit_is_for_each_question_not_for_all(machine: Machine) -> None:
    machine("slow")
    answers = ask(deep_probe.questions([0], ["pdl", "cluster", "shared-memory"] * 2), 3.0)
    assert not [answer for answer in answers if isinstance(answer, Unanswered)]


def test_a_child_that_is_never_ready(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "site/cupy/__init__.py").write_text("import time; time.sleep(60)")
    answers = ask(deep_probe.questions([0], ["pdl", "cluster"]), 2.0)
    assert [a.words for a in answers] == ["hangs: nothing within 2 s, so it was ended"] * 2


def test_no_cupy_in_the_child(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "site/cupy/__init__.py").write_text("raise ImportError('libcudart.so.13: gone')")
    answers = ask(deep_probe.questions([0], ["pdl", "cluster"]))
    assert [a.words for a in answers] == ["failed: libcudart.so.13: gone"] * 2
    assert isinstance(gatepatch.probe(deep=True), ProbeFailure)


@pytest.mark.parametrize(
    ("lines", "detail"),
    [
        ("nonsense", "no answer that can be read: Expecting value: line 1 column 1 (char 0)"),
        ('{"other": 1}', "no answer that can be read: {'other': 1}"),
        ("", "the probe ended with exit code 0"),
    ],
)
def test_garbage_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: str, detail: str
) -> None:
    child = tmp_path / "child.py"
    child.write_text(f"print({lines!r}) if {lines!r} else None")
    monkeypatch.setattr(deep_probe, "_CHILD", str(child))
    answers = ask(deep_probe.questions([0], ["pdl", "cluster"]))
    assert [a.words for a in answers] == [f"failed: {detail}"] * 2


def test_an_answer_with_fields_of_another_question(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = tmp_path / "child.py"
    child.write_text("""print('{"begins": 0}\\n{"answer": {"largest": 3}}')""")
    monkeypatch.setattr(deep_probe, "_CHILD", str(child))
    answers = ask(deep_probe.questions([0], ["pdl"]))
    assert answers[0].words.startswith("failed: no answer that can be read: ")


def test_an_interpreter_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert one("pdl").words == "failed: [Errno 2] No such file or directory: '/nowhere/python'"


def test_a_child_does_not_outlive_its_parent(machine: Machine, tmp_path: Path) -> None:
    machine("hang-pdl pids")
    pids = tmp_path / "pids"
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "from gatepatch.probing.deep_probe import ask; from gatepatch.probing.properties import Question\n"
        "ask([Question(question='pdl', device=0)], 60)"
    )
    source = str(Path(deep_probe.__file__).parents[1])
    env = {**os.environ, "PIDS": str(pids), "PYTHONPATH": source}
    parent = subprocess.Popen([sys.executable, "-c", code], env=env)
    fake_cupy.wait_for(pids)
    parent.kill()
    parent.wait()
    fake_cupy.wait_until_gone(int(pids.read_text()))


def test_nothing_is_written_into_the_home(machine: Machine, home: Path) -> None:
    machine("cache")
    assert isinstance(one("pdl"), Pdl)
    assert isinstance(gatepatch.probe(), Probe)
    assert list(home.rglob("*")) == []


# -- the command --


def test_the_command(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine("hang-peer multicast", devices=2)
    assert cli.main(["probe", "--deep", "--timeout", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[1:7] == [
        f"device 0: NVIDIA Toy, SM 12.0, 0000:00:00.0, GPU-{UUID(int=0)}; reaches 1",
        "  pdl               ordered in 200 launches; without the wait 200 read too early",
        "  cluster           up to 8 blocks",
        "  shared-memory     49152 bytes a block, 101376 with opt-in",
        "  multicast         yes, in steps of 2097152 bytes",
        "  peer-access to 1  hangs: nothing within 2 s, so it was ended",
    ]


def test_the_command_in_json(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probe", "--deep", "--json"]) == 0
    probe = json.loads(capsys.readouterr().out)["probe"]
    assert probe["answers"][0] == {
        "question": "pdl",
        "device": 0,
        "order": "ordered",
        "launches": 200,
        "wrong": 0,
        "early": 200,
    }
    assert [answer["question"] for answer in probe["answers"]] == [
        "pdl",
        "cluster",
        "shared-memory",
        "multicast",
    ]


# -- what only NVIDIA's own header and compiler can tell --

OFFSETS = """
#include <cuda.h>
#include <cstdio>
#include <cstddef>
#define AT(type, field) (int)offsetof(type, field)
int main() {
  printf("%d %d %d %d %d %d %d  ", AT(CUlaunchConfig, gridDimX), AT(CUlaunchConfig, blockDimX),
    AT(CUlaunchConfig, sharedMemBytes), AT(CUlaunchConfig, hStream), AT(CUlaunchConfig, attrs),
    AT(CUlaunchConfig, numAttrs), (int)sizeof(CUlaunchConfig));
  printf("%d %d %d  ", AT(CUlaunchAttribute, id), AT(CUlaunchAttribute, value),
    (int)sizeof(CUlaunchAttribute));
  printf("%d %d %d %d %d  ", AT(CUmulticastObjectProp, numDevices), AT(CUmulticastObjectProp, size),
    AT(CUmulticastObjectProp, handleTypes), AT(CUmulticastObjectProp, flags),
    (int)sizeof(CUmulticastObjectProp));
  printf("%d %d %d %d %d %d %d %d %d %d", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,
    CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_MULTICAST_GRANULARITY_RECOMMENDED,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}
"""


def offsets(structure: type) -> list[int]:
    """Where the fields begin, but for padding, and the size."""
    names = [field[0] for field in structure._fields_ if field[0] != "pad"]  # type: ignore[attr-defined]
    return [*(getattr(structure, name).offset for name in names), ctypes.sizeof(structure)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_layouts_and_numbers_are_those_of_the_header(tmp_path: Path) -> None:
    source, program = tmp_path / "offsets.cpp", tmp_path / "offsets"
    source.write_text(OFFSETS)
    subprocess.run(["nvcc", "-o", str(program), str(source)], check=True)
    told = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    numbers = [
        d.MAX_SHARED,
        d.MAX_SHARED_OPTIN,
        d.CLUSTER_LAUNCH,
        d.MULTICAST_SUPPORTED,
        d.DYNAMIC_SHARED,
        d.NON_PORTABLE_CLUSTER,
        d.CLUSTER_DIMENSION,
        d.PROGRAMMATIC_STREAM_SERIALIZATION,
        d._RECOMMENDED,
        d._POSIX_FILE,
    ]
    ours = [offsets(LaunchConfig), offsets(LaunchAttribute), offsets(MulticastProperties), numbers]
    assert told == "  ".join(" ".join(map(str, row)) for row in ours)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(("arch", "waits"), [(80, 0), (89, 0), (90, 1), (100, 1), (120, 1)])
def test_kernels_compile(tmp_path: Path, arch: int, waits: int) -> None:
    out = tmp_path / "out.ptx"
    subprocess.run(["nvcc", "-ptx", f"-arch=sm_{arch}", "-o", str(out), str(KERNELS)], check=True)
    assert out.read_text().count("griddepcontrol.wait") == waits
    subprocess.run(["ptxas", f"-arch=sm_{arch}", "-o", str(tmp_path / "x"), str(out)], check=True)
