"""The child of ``deep_probe``: asks one question after the other, and prints a line for each.

Run as a file, with one JSON argument: what to import from (``path``) and the ``questions``. Each
question has a line when it begins and one when it is answered, so that the parent knows which of
them hangs. A question that fails is the last: what CUDA does after an error is anyone's guess.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any, TextIO

_PR_SET_PDEATHSIG = 1


def main(argument: str) -> int:
    """Answer the questions.

    Args:
        argument: The parent's JSON.
    """
    # A kernel that hangs would outlive a parent that is killed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    task = json.loads(argument)
    sys.path[:] = [*task["path"], str(Path(__file__).parents[2])]
    # Whatever CuPy, its libraries or the driver print is no part of the answers.
    answers = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(answers, "w") as out:
        _answer(task["questions"], out)
        out.flush()
        os._exit(0)  # tearing CuPy down may hang where a device does


def _answer(questions: list[tuple[str, int, int | None]], out: TextIO) -> None:
    warnings.simplefilter("ignore")
    try:
        import cupy

        from gatepatch.probing._deep_questions import ask
    except Exception as error:
        _say(out, unusable=_words(error))
        return
    for number, (question, index, peer) in enumerate(questions):
        _say(out, begins=number)
        try:
            answer = ask(cupy, question, index, peer)
        except Exception as error:
            _say(out, failed=_words(error))
            return
        _say(out, answer=answer)


def _say(out: TextIO, **line: Any) -> None:
    print(json.dumps(line), file=out, flush=True)


def _words(error: BaseException) -> str:
    """The first cause in one line: CuPy wraps what failed in a page of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    # A compiler's log is told by its first error.
    line = next((line for line in lines if "error" in line), lines[0] if lines else "")
    return " ".join(line.split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
