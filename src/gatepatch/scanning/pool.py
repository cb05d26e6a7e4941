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


def batches(jobs: Sequence[tuple[Job, int]]) -> Iterator[list[Job]]:
    """Put jobs together, neighbours with neighbours, by their number and their sizes."""
    batch: list[Job] = []
    size = 0
    for job, length in jobs:
        if batch and (len(batch) == _FILES or size + length > _BYTES or batch[0][0] != job[0]):
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += length
    if batch:
        yield batch


def run(work: Sequence[Sequence[Job]], processes: int) -> Iterator[Done]:
    """Yield each batch with its answers, as they are done; on any error all processes are ended.

    Args:
        work: The batches.
        processes: How many processes to start.
    """
    todo: queue.SimpleQueue[Sequence[Job]] = queue.SimpleQueue()
    for batch in work:
        todo.put(batch)
    done: queue.SimpleQueue[Done | BaseException | None] = queue.SimpleQueue()
    children: list[subprocess.Popen[str]] = []
    stop = threading.Event()

    def feed() -> None:
        try:
            child = _start(children)
            while not stop.is_set():
                try:
                    batch = todo.get_nowait()
                except queue.Empty:
                    break
                answers = _ask(child, batch)
                if answers is None and not stop.is_set():
                    child = _start(children)
                    answers = []
                    for job in batch:  # one of them ended it
                        found = _ask(child, [job])
                        if found is None:
                            child = _start(children)
                        answers += found or [_LOST]
                done.put((batch, answers or []))
        except BaseException as error:
            done.put(error)
        finally:
            done.put(None)

    threads = [threading.Thread(target=feed, daemon=True) for _ in range(processes)]
    try:
        for thread in threads:
            thread.start()
        running = len(threads)
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
        for child in children:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


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
