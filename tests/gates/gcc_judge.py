"""``gcc -E`` as the judge of conditions."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

# With -w every line is about an error; one in a macro's expansion names the place in a note.
_ERROR = re.compile(rb"^<stdin>:(\d+):", re.MULTILINE)


def judge(conditions: Sequence[str], defines: Mapping[str, str]) -> list[bool | None]:
    """Return whether each condition holds as C++; None where the compiler takes it for an error."""
    lines: list[str] = []
    at: list[tuple[int, int]] = []
    for number, condition in enumerate(conditions):
        first = len(lines) + 1
        lines += f"#if {condition}\nholds {number}\n#endif".split("\n")
        at.append((first, len(lines)))
    done = _preprocess("\n".join([*lines, ""]).encode(), defines)
    holds = {int(n) for n in re.findall(rb"^\s*holds (\d+)$", done.stdout, re.MULTILINE)}
    wrong = {int(n) for n in _ERROR.findall(done.stderr)}
    assert not done.returncode or wrong, done.stderr.decode()
    return [
        None if any(line in wrong for line in range(first, last + 1)) else number in holds
        for number, (first, last) in enumerate(at)
    ]


def reached(source: bytes, defines: Mapping[str, str]) -> frozenset[int]:
    """Return the numbers of the lines ``reached N`` that are compiled."""
    done = _preprocess(source, defines, "-undef")
    return frozenset(int(n) for n in re.findall(rb"^\s*reached (\d+)$", done.stdout, re.MULTILINE))


def _preprocess(
    source: bytes, defines: Mapping[str, str], *options: str
) -> subprocess.CompletedProcess[bytes]:
    gcc = shutil.which("gcc")
    assert gcc is not None, "these tests need gcc: it is the judge of the evaluator"
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    return subprocess.run(
        [gcc, "-E", "-P", "-w", "-nostdinc", "-x", "c++", "-std=gnu++17", *options, *macros, "-"],
        input=source,
        capture_output=True,
        check=False,
    )
