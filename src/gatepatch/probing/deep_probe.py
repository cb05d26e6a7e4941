"""Ask devices what they can do, by compiling and launching small kernels in a child process.

Each question has a time limit of its own. One that hangs is ended with the child that asked it, and
the next child goes on with the others.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal

from gatepatch.probing.device_probe import (
    Probe,
    ProbeFailure,
    child_environment,
    end,
    how_it_ended,
    probe,
)
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
)

ALL: tuple[QuestionName, ...] = ("pdl", "cluster", "shared-memory", "multicast", "peer-access")

_PAIRS = ("peer-access",)
_CHILD = str(Path(__file__).with_name("_deep_child.py"))
_ANSWERS: Mapping[str, Callable[..., Answer]] = {
    "pdl": Pdl,
    "cluster": Cluster,
    "shared-memory": SharedMemory,
    "peer-access": PeerAccess,
    "multicast": Multicast,
}
_ENDING = 10.0
"""Seconds that the driver has to put a device right whose kernel was ended."""


def deep_probe(
    timeout: float = 30.0, progress: Callable[[Question], None] = lambda question: None
) -> Probe | ProbeFailure:
    """Find the devices, then ask each of them, and each pair, all there is to ask.

    Args:
        timeout: Seconds for each question.
        progress: Is told of each question when it is asked.
    """
    found = probe(timeout)
    if isinstance(found, ProbeFailure):
        return found
    asked = questions([device.index for device in found.devices], ALL)
    return replace(found, answers=ask(asked, timeout, progress))


def questions(devices: Sequence[int], names: Iterable[QuestionName]) -> tuple[Question, ...]:
    """What to ask: of every device, and for peer access of every pair, in both directions.

    Args:
        devices: Their indices.
    """
    words = tuple(names)
    return tuple(
        Question(question=name, device=device, peer=peer)
        for device in devices
        for name in words
        for peer in ([other for other in devices if other != device] if name in _PAIRS else [None])
    )


def ask(
    asked: Sequence[Question],
    timeout: float = 30.0,
    progress: Callable[[Question], None] = lambda question: None,
) -> tuple[Answer, ...]:
    """Ask, with as many children as it takes; an answer for each question, in their order.

    Args:
        timeout: Seconds for each question, and for a child to be ready for its first.
        progress: Is told of each question when it is asked.
    """
    answers: list[Answer] = []
    while len(answers) < len(asked):
        answers += _ask_one_child(asked[len(answers) :], timeout, progress)
    return tuple(answers)


def _ask_one_child(
    asked: Sequence[Question], timeout: float, progress: Callable[[Question], None]
) -> list[Answer]:
    """The answers that one child gave, the last of them perhaps that there is none."""
    with (
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
    ):
        try:
            child = _start(asked, said, scratch)
        except OSError as error:
            return [_unanswered(question, "failed", str(error)) for question in asked]
        answers: list[Answer] = []
        began = False
        try:
            for line in _lines(child, timeout):
                match line:
                    case {"begins": int()}:
                        began = True
                        progress(asked[len(answers)])
                    case {"answer": dict(fields)}:
                        began = False
                        answers.append(_read(asked[len(answers)], fields))
                        if len(answers) == len(asked):
                            return answers
                    case {"failed": str(detail)}:
                        return [*answers, _unanswered(asked[len(answers)], "failed", detail)]
                    case {"unusable": str(detail)}:
                        return [_unanswered(question, "failed", detail) for question in asked]
                    case _:
                        raise ValueError(line)
        except TimeoutError:
            detail = f"nothing within {timeout:g} s, so it was ended"
            return _cut_off(answers, asked, began, "hangs", detail)
        except (ValueError, TypeError) as error:
            return _cut_off(answers, asked, began, "failed", f"no answer that can be read: {error}")
        finally:
            end(child, _ENDING)
        said.seek(0)
        detail = how_it_ended(child.returncode, said.read().decode(errors="replace"))
        return _cut_off(answers, asked, began, "failed", detail)


def _cut_off(
    answers: list[Answer],
    asked: Sequence[Question],
    began: bool,
    reason: Literal["hangs", "failed"],
    detail: str,
) -> list[Answer]:
    """What a child that was cut off leaves: the question that it was at has no answer.

    One that has not even begun the first will not do better for the others.
    """
    if began:
        return [*answers, _unanswered(asked[len(answers)], reason, detail)]
    return answers or [_unanswered(question, reason, detail) for question in asked]


def _unanswered(question: Question, reason: Literal["hangs", "failed"], detail: str) -> Unanswered:
    return Unanswered(
        question=question.question,
        device=question.device,
        peer=question.peer,
        reason=reason,
        detail=detail,
    )


def _read(question: Question, fields: dict[str, Any]) -> Answer:
    if "sizes" in fields:
        fields["sizes"] = tuple(fields["sizes"])
    if question.peer is not None:
        fields["peer"] = question.peer
    return _ANSWERS[question.question](device=question.device, **fields)


def _lines(child: subprocess.Popen[bytes], timeout: float) -> Iterator[dict[str, Any]]:
    """The child's lines until it ends.

    Args:
        timeout: Seconds for each line.

    Raises:
        TimeoutError: There was none within that time.
    """
    assert child.stdout is not None
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + timeout
        while selector.select(max(0.0, deadline - time.monotonic())):
            data = os.read(child.stdout.fileno(), 65536)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                yield json.loads(line)
                deadline = time.monotonic() + timeout
    raise TimeoutError


def _start(asked: Sequence[Question], said: IO[bytes], scratch: str) -> subprocess.Popen[bytes]:
    task = {
        "path": [path for path in sys.path if path],
        "questions": [(q.question, q.device, q.peer) for q in asked],
    }
    return subprocess.Popen(
        [sys.executable, _CHILD, json.dumps(task)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=said,
        start_new_session=True,
        env=child_environment(scratch),
    )
