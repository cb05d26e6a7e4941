"""Compile translation units to PTX, several at once, and say what came of each."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from gatepatch.edits import sha256
from gatepatch.signals import Noted, noted
from gatepatch.verifying import depfile, ptx
from gatepatch.verifying.compile_cache import Cache
from gatepatch.verifying.nvcc import Compiler, Folders
from gatepatch.verifying.ptx import Summary
from gatepatch.verifying.source_tree import MARK, SourceTree

CLOCK_STEP = 10_000_000
"""Nanoseconds by which the clock of file systems may be late: a tick of the kernel."""

FIRST_LINES = 12
"""How much of what a compiler says is shown."""

_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH")
"""What changes a compilation without standing in its command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit for one architecture.

    Args:
        unit: Its path in the tree.
        arch: As the compiler calls it: ``120a``.
        tree: The sources.
        title: For a person who waits.
    """

    unit: str
    arch: str
    tree: SourceTree
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What came of a job.

    Args:
        summary: None if there is no result.
        seconds: How long it took; 0 from the cache.
        cached: Whether it was known.
        said: The first lines of what the compiler said, if it failed.
        command: What repeats it.
    """

    job: Job
    summary: Summary | None
    seconds: float = 0.0
    cached: bool = False
    said: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all jobs of a run share.

    Args:
        flags: Those that name neither folders nor an architecture.
        cache: Where results are kept.
        timeout: Seconds for one compilation.
        workers: How many run at once.
    """

    compiler: Compiler
    flags: tuple[str, ...]
    folders: Folders
    cache: Cache
    timeout: float
    workers: int

    def words(self, job: Job, data: Path) -> list[str]:
        """The words of a job's command, but for its outputs."""
        return [
            *self.compiler.command,
            "-ptx",
            f"-arch=compute_{job.arch}",
            *self.flags,
            *self.folders.words(data),
            str(data / job.unit),
        ]

    def key(self, job: Job) -> str:
        """What a result goes by, beside the content of its inputs."""
        variables = [os.environ.get(name, "") for name in _VARIABLES]
        words = self.words(job, Path(MARK))
        return sha256(json.dumps([self.compiler.identity, words, variables]).encode())


Progress = Callable[[Compiled | Job], None]
"""Is told of each job as it begins, and of what came of it."""


def run(bench: Bench, jobs: Sequence[Job], progress: Progress) -> tuple[Compiled, ...]:
    """Compile, or look up what was compiled before.

    Raises:
        SignalError: One came; every compiler has been ended.
    """
    done: dict[int, Compiled] = {}
    for index, job in enumerate(jobs):
        summary = bench.cache.find(bench.key(job), job.tree)
        if summary is not None:
            done[index] = Compiled(job=job, summary=summary, cached=True)
            progress(done[index])
    missing = [(index, job) for index, job in enumerate(jobs) if index not in done]
    if missing:
        done |= _Run(bench, progress).all(missing)
    return tuple(done[index] for index in range(len(jobs)))


def needs_scratch(results: Iterable[Compiled]) -> Iterator[bool]:
    """Which of the failures can be repeated in the scratch folder alone.

    Most units that fail there fail as they are installed as well, and that says it all.
    """
    failed = [done.job for done in results if done.summary is None]
    installed = {(job.unit, job.arch) for job in failed if not job.tree.exchanged}
    return (bool(j.tree.exchanged) and (j.unit, j.arch) not in installed for j in failed)


@dataclass(slots=True)
class _Run:
    """The compilers of one run, and the scratch folder that they work in."""

    bench: Bench
    progress: Progress
    _scratch: Path = field(default_factory=Path, init=False)
    _children: set[subprocess.Popen[bytes]] = field(default_factory=set, init=False)
    _telling: threading.Lock = field(default_factory=threading.Lock, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _stopped: bool = field(default=False, init=False)

    def all(self, jobs: Sequence[tuple[int, Job]]) -> dict[int, Compiled]:
        """Run jobs; the scratch folder stays where a command that failed needs it."""
        keep = False
        with noted() as signals:
            self._scratch = Path(tempfile.mkdtemp(prefix="gatepatch-"))
            try:
                with signals.waiting():
                    places = self._places([job for _, job in jobs])
                done = self._parallel(jobs, places, signals)
                keep = any(needs_scratch(done.values()))
                return done
            finally:
                if not keep:
                    shutil.rmtree(self._scratch, ignore_errors=True)

    def _places(self, jobs: Sequence[Job]) -> Mapping[str, Path]:
        """Where each tree lies, made where it is not the installed one."""
        places: dict[str, Path] = {}
        for tree in (job.tree for job in jobs):
            if tree.digest not in places:
                place = tree.data
                if tree.exchanged:
                    place = self._scratch / tree.digest[:12]
                    tree.lay_out(place, [name for _, name in self.bench.folders.own])
                places[tree.digest] = place
        return places

    def _parallel(
        self, jobs: Sequence[tuple[int, Job]], places: Mapping[str, Path], signals: Noted
    ) -> dict[int, Compiled]:
        done: dict[int, Compiled] = {}
        with ThreadPoolExecutor(self.bench.workers) as pool:
            try:
                with signals.waiting():
                    futures: dict[Future[Compiled], int] = {
                        pool.submit(self._one, job, places[job.tree.digest]): index
                        for index, job in jobs
                    }
                    left = set(futures)
                    while left:
                        finished, left = wait(left, return_when=FIRST_COMPLETED)
                        for future in finished:
                            done[futures[future]] = future.result()
                            self._tell(done[futures[future]])
            except BaseException:
                self._stop()
                pool.shutdown(cancel_futures=True)
                raise
        return done

    def _tell(self, step: Compiled | Job) -> None:
        with self._telling:  # a line that two threads print is none
            self.progress(step)

    def _one(self, job: Job, place: Path) -> Compiled:
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            out, deps = Path(folder, "out.ptx"), Path(folder, "out.d")
            words = self.bench.words(job, place)
            began, clock = time.monotonic(), time.time_ns() - CLOCK_STEP
            self._tell(job)
            said = self._call([*words, "-MD", "-MF", str(deps), "-o", str(out)], folder)
            seconds = time.monotonic() - began
            command = shlex.join([*words, "-o", "/dev/null"])
            summary = None
            if not said:
                try:
                    said = self._strays(job, deps)
                    if not said:
                        summary = ptx.read(out.read_text(errors="replace"))
                        self._keep(job, place, deps, clock, summary)
                except OSError as error:
                    said = f"it said nothing, and wrote no PTX: {error}"
        return Compiled(
            job=job,
            summary=summary,
            seconds=seconds,
            said=said,
            command="" if summary else command,
        )

    def _call(self, words: Sequence[str], folder: str) -> str:
        """Run a compiler; return the first lines of what it said if it failed."""
        with self._lock:
            if self._stopped:
                return "it was not begun"
            try:
                child = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "TMPDIR": folder},  # killed, it would leave its files
                    start_new_session=True,
                )
            except OSError as error:
                return str(error)
            self._children.add(child)
        try:
            output, _ = child.communicate(timeout=self.bench.timeout)
        except subprocess.TimeoutExpired:
            _kill(child)
            child.communicate()
            return f"it did not end within {self.bench.timeout:g} s, and was ended"
        finally:
            with self._lock:
                self._children.discard(child)
        if child.returncode == 0:
            return ""
        lines = output.decode("utf-8", "replace").strip().splitlines()
        more = [f"… and {len(lines) - FIRST_LINES} more lines"] if len(lines) > FIRST_LINES else []
        return "\n".join([*lines[:FIRST_LINES], *more]) or f"it ended with {child.returncode}"

    def _strays(self, job: Job, deps: Path) -> str:
        """Say that an installed file was read where other bytes should count; empty if none was."""
        own = {os.path.normpath(job.tree.data / path) for path in job.tree.exchanged}
        strays = sorted(own & {os.path.normpath(name) for name in _read(deps)})
        return f"it read {strays[0]}, and not the pristine bytes" if strays else ""

    def _keep(self, job: Job, place: Path, deps: Path, began: int, summary: Summary) -> None:
        """Keep a result, unless a file has changed while it was made."""
        inputs = {job.tree.name_of(name, place) for name in _read(deps)}
        digests = {name: job.tree.read_digest(name, began) for name in sorted(inputs)}
        if digests and all(digests.values()):
            self.bench.cache.keep(self.bench.key(job), digests, summary)

    def _stop(self) -> None:
        """End every compiler; those not begun never begin."""
        with self._lock:
            self._stopped = True
            for child in self._children:
                _kill(child)


def _read(deps: Path) -> tuple[str, ...]:
    """What a compiler has read; nothing where that is not known."""
    try:
        return depfile.read(deps.read_text(errors="surrogateescape"))
    except (OSError, ValueError):
        return ()


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a compiler and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
