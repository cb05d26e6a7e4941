"""List the gates of a C or CUDA file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gatepatch.gates.cuda_macros import is_target_macro, mentions, read_macros
from gatepatch.gates.directives import Branch, Scan, scan
from gatepatch.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A directive's condition that has a macro of the architecture, or one that may hide it.

    Args:
        line: Its directive's first line, from 1.
        end_line: Its last.
        start: The condition's first byte in the file.
        end: The byte behind its last.
        keyword: ``if``, ``ifdef``, ``elif`` and so on.
        text: The condition as it stands.
        target: Whether it has a macro that the CUDA compiler defines for each pass.
        verdict: Its value in each pass.
    """

    line: int
    end_line: int
    start: int
    end: int
    keyword: str
    text: str
    target: bool
    verdict: Verdict


def gates_in(source: bytes) -> tuple[Gate, ...]:
    """List the gates of a C or CUDA file, in order; include guards are none."""
    return tuple(gate for _, gate in gates_of(source, scan(source)))


def gates_of(source: bytes, found: Scan) -> Iterator[tuple[Branch, Gate]]:
    """Yield the gates among a file's directives, each with its branch."""
    meanings = read_macros(found)
    for branch in found.branches.values():
        target = mentions(branch, is_target_macro)
        if target or (mentions(branch, meanings.depends) and not found.is_include_guard(branch)):
            yield (
                branch,
                Gate(
                    line=branch.directive.line,
                    end_line=branch.directive.end_line,
                    start=branch.span[0],
                    end=branch.span[1],
                    keyword=branch.directive.keyword,
                    text=source[slice(*branch.span)].decode("utf-8", "backslashreplace"),
                    target=target,
                    verdict=meanings.verdict(branch.condition),
                ),
            )
