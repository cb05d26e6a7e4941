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
    gcc = shutil.which("gcc")
    assert gcc is not None, "these tests need gcc: it is the judge of the evaluator"
    lines: list[str] = []
    at: list[tuple[int, int]] = []
    for number, condition in enumerate(conditions):
        first = len(lines) + 1
        lines += f"#if {condition}\nholds {number}\n#endif".split("\n")
        at.append((first, len(lines)))
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    done = subprocess.run(
        [gcc, "-E", "-P", "-w", "-nostdinc", "-x", "c++", *macros, "-"],
        input="\n".join([*lines, ""]).encode(),
        capture_output=True,
        check=False,
    )
    holds = {int(n) for n in re.findall(rb"^\s*holds (\d+)$", done.stdout, re.MULTILINE)}
    wrong = {int(n) for n in _ERROR.findall(done.stderr)}
    assert not done.returncode or wrong, done.stderr.decode()
    return [
        None if any(line in wrong for line in range(first, last + 1)) else number in holds
        for number, (first, last) in enumerate(at)
    ]
