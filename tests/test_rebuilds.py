"""Whatever the order of apply, build and revert: no build keeps a binary of other sources."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from gatepatch import files
from gatepatch.jitcache import find_modules
from gatepatch.target import Root
from gatepatch.transaction import RootChange, Transaction, Write, commit, image, read_state
from jitlike import Jit, load_elsewhere, make_package
from ninjas import VERSIONS, ninja_at_hand, ninja_of

GATE = "flashinfer/data/include/flashinfer/comm.cuh"
OTHER = "flashinfer/data/include/flashinfer/deep.cuh"
SHUT, OPEN = b"gate = 900;", b"gate = 1200;"
NAMES = {"flashinfer": ("comm",)}


@dataclass
class Machine:
    """An environment, a cache that gatepatch knows, and one that it does not.

    Args:
        root: The site folder.
        known: What is built over the cache that is known.
        unknown: What is built over the other one.
        builds: The builds that there were, and of those, the ones that ninja called up to date.
    """

    root: Root
    known: Jit
    unknown: Jit
    other: int = 1
    builds: list[bool] = field(default_factory=list)

    def toggle(self) -> None:
        """Apply what is not applied, revert what is."""
        path = self.root.path / GATE
        before, state = path.read_bytes(), read_state(self.root)
        after = before.replace(*((SHUT, OPEN) if state is None else (OPEN, SHUT)))
        assert before != after
        seen = image(path)
        assert seen is not None
        modules = find_modules(NAMES, [self.known.ops])
        write = Write(
            path=GATE,
            before=seen,
            after=after,
            newer_than=max((module.newest_output for module in modules), default=0),
        )
        change = RootChange(
            root=self.root,
            writes=(write,),
            blobs=(before,),
            state=b"{}" if state is None else None,
            state_before=state,
        )
        commit(Transaction(changes=(change,), jit=modules))

    def touch_other(self) -> None:
        """Someone changes a header that no set touches."""
        time.sleep(0.015)  # ninja itself cannot tell two changes within one tick of the clock
        self.other += 1
        path = self.root.path / OTHER
        path.write_text(f"int deep = {self.other};\n")

    def build(self, jit: Jit) -> None:
        """Build as a server does that starts, and compare the binary with the sources."""
        library = jit.ops / "comm/comm.so"
        before = library.stat().st_mtime_ns if library.exists() else None
        loaded = jit.load()
        self.builds.append(library.stat().st_mtime_ns == before)
        gate = (self.root.path / GATE).read_text().splitlines()[-1]
        assert f"int deep = {self.other};" in loaded.splitlines()
        assert gate in loaded.splitlines()


def make_machine(tmp_path: Path, ninja: str, *, absolute: bool) -> Machine:
    site = tmp_path / "site"
    package = make_package(site)
    for path in package.rglob("*.cu*"):
        os.utime(path, ns=(10**18, 10**18))  # long ago, as uv leaves them
    known = Jit(package=package, ops=tmp_path / "known/cached_ops", absolute=absolute, ninja=ninja)
    return Machine(
        root=Root(path=site, state_dir=site / ".gatepatch", kind="site", repository=False),
        known=known,
        unknown=replace(known, ops=tmp_path / "unknown/cached_ops"),
    )


def every_word(letters: str, length: int) -> str:
    """The shortest text in which each word of a length stands: a de Bruijn sequence."""
    word = [0] * (length + 1)
    text: list[str] = []

    def extend(place: int, period: int) -> None:
        if place > length:
            if length % period == 0:
                text.extend(letters[i] for i in word[1 : period + 1])
            return
        word[place] = word[place - period]
        extend(place + 1, period)
        for letter in range(word[place - period] + 1, len(letters)):
            word[place] = letter
            extend(place + 1, place)

    extend(1, 1)
    return "".join(text) + "".join(text)[: length - 1]


def walk(machine: Machine, text: str) -> None:
    """Do what each letter stands for, half of the time before an edit's mtime has come."""
    for place, letter in enumerate(text):
        match letter:
            case "t":
                machine.toggle()
                if place % 2:
                    time.sleep(files.MTIME_STEP / 1e9 + 0.01)
            case "k":
                machine.build(machine.known)
            case "u":
                machine.build(machine.unknown)
            case "h":
                machine.touch_other()
    assert {True, False} == set(machine.builds)  # else it would have shown nothing


@pytest.fixture
def short_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let edits be dated ahead by less, so that hundreds of them take seconds."""
    monkeypatch.setattr(files, "MTIME_STEP", 20_000_000)


NINJAS = pytest.mark.parametrize(
    "version", ["at hand", *(pytest.param(v, marks=pytest.mark.slow) for v in VERSIONS)]
)


def program(version: str) -> str:
    return ninja_at_hand() if version == "at hand" else ninja_of(version)


LAYOUTS = pytest.mark.parametrize(
    "absolute", [True, False], ids=["records by module", "records shared"]
)


def test_every_word_stands_in_the_text_and_none_twice() -> None:
    text = every_word("tkuh", 4)
    words = [text[i : i + 4] for i in range(len(text) - 3)]
    assert len(words) == len(set(words)) == 4**4


@LAYOUTS
@pytest.mark.usefixtures("short_step")
def test_all_orders_of_three(tmp_path: Path, absolute: bool) -> None:
    walk(make_machine(tmp_path, ninja_at_hand(), absolute=absolute), every_word("tkuh", 3))


@LAYOUTS
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
@pytest.mark.usefixtures("short_step")
def test_all_orders_of_five(tmp_path: Path, version: str, absolute: bool) -> None:
    walk(make_machine(tmp_path, ninja_of(version), absolute=absolute), every_word("tkuh", 5))


@LAYOUTS
@NINJAS
def test_with_the_real_step(tmp_path: Path, version: str, absolute: bool) -> None:
    machine = make_machine(tmp_path, program(version), absolute=absolute)
    for jit in (machine.unknown, machine.known):
        machine.build(jit)
    for _ in range(2):
        machine.toggle()
        machine.build(machine.unknown)  # dated ahead of the clock: built again until it has come
        time.sleep(1.1)
        for jit in (machine.unknown, machine.known, machine.unknown, machine.known):
            machine.build(jit)
        assert machine.builds[-2:] == [True, True]


@LAYOUTS
@NINJAS
@pytest.mark.usefixtures("short_step")
def test_a_build_that_runs_is_waited_for(tmp_path: Path, version: str, absolute: bool) -> None:
    machine = make_machine(tmp_path, program(version), absolute=absolute)
    for _ in range(2):  # the apply, then the revert
        slow = load_elsewhere(replace(machine.known, delay=0.6, rewrites=True))
        machine.toggle()
        assert slow.poll() is not None or slow.wait(0.5) == 0
        assert slow.communicate()[0]
        assert not (machine.known.ops / "comm").exists()
        time.sleep(0.05)
        machine.build(machine.known)


@NINJAS
@pytest.mark.usefixtures("short_step")
def test_a_first_build_that_runs_is_waited_for(tmp_path: Path, version: str) -> None:
    machine = make_machine(tmp_path, program(version), absolute=True)
    lock = machine.known.ops / "tmp/comm.lock"
    lock.parent.mkdir(parents=True)
    code = (
        "import sys, time; from filelock import FileLock\n"
        "with FileLock(sys.argv[1], thread_local=False): print(flush=True); time.sleep(0.5)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, lock], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    start = time.monotonic()
    machine.toggle()
    assert time.monotonic() - start > 0.3
    child.communicate()
    machine.build(machine.known)


@pytest.mark.usefixtures("short_step")
def test_binaries_dated_ahead_of_the_clock_are_built_again(tmp_path: Path) -> None:
    """As where the cache lies on a file server whose clock is ahead."""
    machine = make_machine(tmp_path, ninja_at_hand(), absolute=True)
    for jit in (machine.known, machine.unknown):
        machine.build(jit)
        ahead = time.time_ns() + 300 * 10**9
        for path in (jit.ops / "comm").iterdir():
            os.utime(path, ns=(ahead, ahead))
    machine.toggle()
    for jit in (machine.known, machine.unknown):
        machine.build(jit)
