"""List the gates of a C or CUDA file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gatepatch.gates.cuda_macros import is_target_macro, mentions, read_macros
from gatepatch.gates.cuda_settled import Outside, settle
from gatepatch.gates.directives import Branch, Scan, scan
from gatepatch.verdict import Verdict, arch_of


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
        by_name: Whether a macro in it was read by its name alone.
    """

    line: int
    end_line: int
    start: int
    end: int
    keyword: str
    text: str
    target: bool
    verdict: Verdict
    by_name: bool = False


def gates_in(source: bytes) -> tuple[Gate, ...]:
    """List the gates of a C or CUDA file, in order; include guards are none."""
    return tuple(gate for _, gate in gates_of(source, scan(source)))


def gates_of(
    source: bytes, found: Scan, outside: Outside | None = None
) -> Iterator[tuple[Branch, Gate]]:
    """Yield the gates among a file's directives, each with its branch.

    Args:
        source: The file.
        found: Its directives.
        outside: What macros mean that the file does not define. Those that it does define are
            followed only where this is given, and what is then the same for all is no gate.
    """
    meanings = read_macros(found)
    settled = settle(found, meanings, outside) if outside is not None else None
    for branch in found.branches.values():
        target = mentions(branch, is_target_macro)
        if target or (mentions(branch, meanings.depends) and not found.is_include_guard(branch)):
            verdict = settled.verdicts[branch] if settled else meanings.verdict(branch.condition)
            if settled and not target and not is_gate(verdict) and not verdict.unknown:
                continue
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
                    verdict=verdict,
                    by_name=settled is not None and branch in settled.by_name,
                ),
            )


def is_gate(verdict: Verdict) -> bool:
    """Whether the value depends on the device: what only the host's pass lacks is none."""
    return len({value for point, value in verdict.table.items() if arch_of(point)}) > 1
