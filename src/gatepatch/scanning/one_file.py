"""Scan one file, into what can be written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gatepatch.arch import TABLE
from gatepatch.errors import RefusedError
from gatepatch.gates.cuda_settled import Outside
from gatepatch.scanning import cuda, host
from gatepatch.scanning.borrowed import Given
from gatepatch.scanning.c_text import Outline, without_directives, without_template_arguments
from gatepatch.scanning.found import ANSWERS, Found, admission
from gatepatch.scanning.included import Headers
from gatepatch.scanning.prefilter import may_hold_directives
from gatepatch.scanning.python import PythonScanner
from gatepatch.scanning.records import Finding, Guards
from gatepatch.scanning.walk import PYTHON, tree_of

_HEAD = 2048
LONGEST = 2000
_END = 200
"""Characters of each end of a long reason that are told."""


class Scanner:
    """Scans the files of one distribution.

    Args:
        base: Where it is imported from.
    """

    def __init__(self, base: Path):
        self._base = base
        self._python = PythonScanner(self._read)
        self._headers = Headers(base)

    def _read(self, path: str) -> bytes | None:
        try:
            return (self._base / path).read_bytes()
        except (OSError, ValueError):
            return None

    def scan(self, path: str, file: str, given: Given | None = None) -> dict[str, Any]:
        """Scan one file: its tree, its gates, and what is wrong with it.

        Args:
            path: The file, relative to where the distribution is imported from.
            file: The file.
            given: Predicates of other files, where only what hangs on those is looked for.
        """
        try:
            data = Path(file).read_bytes()
        except OSError as error:
            return {"tree": "own", "gates": [], "problem": error.strerror or str(error)}
        scan: Iterable[Found]
        answer: dict[str, Any] = {"tree": tree_of(path, data[:_HEAD]), "gates": []}
        read: set[str] = set()
        try:
            if path.endswith(PYTHON):
                scan, lends = self._python.scan(path, data, given)
                if lends:
                    answer["lends"] = lends
            else:
                own = answer["tree"] == "own"
                scan = found_in_cuda(data, self._headers.of(path, read) if own else None)
            answer["gates"] = [_written(found) for found in scan]
            if read:
                answer["read"] = sorted(read)
        except RefusedError as error:
            answer["problem"] = error.problems[0].message
        except RecursionError:
            answer["problem"] = "is nested too deeply to be read"
        except MemoryError:
            self._python = PythonScanner(self._read)
            answer["problem"] = "takes too much memory to be read"
        except Exception as error:  # a fault here must not cost the scan of all other files
            answer["problem"] = (
                f"is not read, by a fault of gatepatch: {type(error).__name__}: {error}"
            )
        return answer


def found_in_cuda(data: bytes, outside: Outside | None = None) -> Iterator[Found]:
    """Yield the gates of a C, C++ or CUDA file: those of directives, then the others.

    Args:
        data: The file.
        outside: What macros mean that it does not define; without that, those that hang on the
            architecture are not followed, which would take its time in the many vendored headers.
    """
    directives, lines = may_hold_directives(data), host.lines(data)
    if not (directives or lines):
        return
    outline = Outline(data)
    if directives:
        yield from cuda.directives(data, outline, outside)
    if lines:
        text = without_template_arguments(without_directives(data))
        yield from host.conditions(data, text, outline, lines)


def _written(found: Found) -> list[Any]:
    """What is written down of a gate: short, since there are tens of thousands."""
    admitted = admission(found.verdict, rejects=found.rejects)
    guards = found.guards
    return [
        found.line,
        found.end_line,
        found.within,
        found.language,
        found.kind,
        found.text[:LONGEST],
        found.rejects,
        "".join(str(ANSWERS.index(answer)) for answer in admitted.answers),
        admitted.words,
        admitted.classes,
        admitted.narrower,
        [guards.effect, guards.lines, guards.calls, guards.otherwise],
        found.compiled,
        [*map(_short, found.unknown or found.verdict.unknown)],
        found.by_name,
    ]


def _short(reason: str) -> str:
    """A reason by its two ends: what it is about may be a table of the whole package."""
    if len(reason) <= 2 * _END:
        return reason
    return f"{reason[:_END]} ... {reason[-_END:]}"


def read_back(
    written: list[Any], *, distribution: str, path: str, tree: Any, leaves_out: bool
) -> Finding:
    """Make a finding of what was written down."""
    effect, lines, calls, otherwise = written[11]
    answers = [ANSWERS[int(number)] for number in written[7]]
    return Finding(
        distribution=distribution,
        path=path,
        line=written[0],
        end_line=written[1],
        within=written[2],
        language=written[3],
        kind=written[4],
        text=written[5],
        rejects=written[6],
        verdict={str(arch): answer for arch, answer in zip(TABLE, answers, strict=True)},
        words=written[8],
        leaves_out=leaves_out,
        guards=Guards(effect=effect, lines=lines, calls=tuple(calls), otherwise=otherwise),
        compiled=written[12],
        unknown=tuple(written[13]),
        by_name=written[14],
        tree=tree,
    )
