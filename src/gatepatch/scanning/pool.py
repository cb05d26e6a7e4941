"""Scan many files in processes of gatepatch's own: the caller may have threads, or use CUDA."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from gatepatch.scanning.borrowed import Given

Job: TypeAlias = "tuple[str, str, str, Given]"
"""The folder that a distribution is imported from, a path in it, the file, and the predicates of
other files for whose sake alone it is read, if any."""

Done: TypeAlias = "tuple[Sequence[Job], list[dict[str, Any]]]"

_FILES = 64
_BYTES = 2_000_000
_LOST = {"tree": "own", "gates": [], "problem": "the process that read it has died"}


def batches(jobs: Sequence[tuple[Job, int]], most: int = _BYTES) -> Iterator[list[Job]]:
    """Put jobs together, neighbours with neighbours, by their number and their sizes.

    Args:
        jobs: The jobs, each with the size of its file.
        most: Bytes of files that are put together.
    """
    batch: list[Job] = []
    size = 0
    for job, length in jobs:
        if batch and (len(batch) == _FILES or size + length > most or batch[0][0] != job[0]):
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += length
    if batch:
        yield batch


class Pool:
    """Processes that scan: started when there is work for them, and all ended with the block.

    Args:
        processes: How many at most.
    """

    def __init__(self, processes: int):
        self._processes = processes
        self._children: list[subprocess.Popen[str]] = []
        self._idle: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Pool:
        """Nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self._end()

    def run(self, work: Sequence[Sequence[Job]]) -> Iterator[Done]:
        """Yield each batch with its answers, as they are done; on any error all processes are ended.

        Args:
            work: The batches.
        """
        todo: queue.SimpleQueue[Sequence[Job]] = queue.SimpleQueue()
        for batch in work:
            todo.put(batch)
        done: queue.SimpleQueue[Done | BaseException | None] = queue.SimpleQueue()
        stop = threading.Event()

        def feed() -> None:
            try:
                child = self._free()
                while not stop.is_set():
                    try:
                        batch = todo.get_nowait()
                    except queue.Empty:
                        break
                    answers = _ask(child, batch)
                    if answers is None and not stop.is_set():
                        child = _start(self._children)
                        answers = []
                        for job in batch:  # one of them ended it
                            found = _ask(child, [job])
                            if found is None:
                                child = _start(self._children)
                            answers += found or [_LOST]
                    done.put((batch, answers or []))
                self._idle.append(child)
            except BaseException as error:
                done.put(error)
            finally:
                done.put(None)

        running = min(self._processes, len(work))
        threads = [threading.Thread(target=feed, daemon=True) for _ in range(running)]
        try:
            for thread in threads:
                thread.start()
            while running:
                found = done.get()
                if found is None:
                    running -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    yield found
        finally:
            stop.set()
            if running:  # a thread may wait for an answer still
                self._end()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()

    def _free(self) -> subprocess.Popen[str]:
        """A process that has nothing to do."""
        try:
            return self._idle.pop()
        except IndexError:
            return _start(self._children)

    def _end(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self._children.clear()
        self._idle.clear()


def _start(children: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    child = subprocess.Popen(
        [sys.executable, "-B", "-m", "gatepatch.scanning._scanner_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="ascii",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # Ctrl-C is for the one that waits for it
    )
    children.append(child)
    return child


def _ask(child: subprocess.Popen[str], batch: Sequence[Job]) -> list[dict[str, Any]] | None:
    """Have a process scan a batch; None if it has died."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(batch) + "\n")
        child.stdin.flush()
        line = child.stdout.readline()
    except (OSError, ValueError):
        return None
    if not line:
        return None
    answers: list[dict[str, Any]] = json.loads(line)
    return answers
