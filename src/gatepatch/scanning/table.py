"""A scan's result as lines for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gatepatch.report import Printer
from gatepatch.scanning.records import EFFECTS, Finding, Folded, Scanned, ScanResult

_WIDE = 150


def table(result: ScanResult, out: Printer) -> Iterator[str]:
    """Yield the lines: the gates by distribution and file, folded trees, and the counts."""
    for scanned in result.distributions:
        own = [f for f in result.findings if f.distribution == scanned.distribution]
        folded = [f for f in result.folded if f.distribution == scanned.distribution]
        yield from _distribution(result, scanned, own, folded, out)
    if not result.distributions:
        yield "no installed distribution holds a gate"
        return
    if not any(finding.leaves_out for finding in result.findings):
        yield f"nothing shown leaves {result.sm} out"
    yield (
        "a gate that leaves an architecture out may be right as it stands: what it guards says "
        "whether there is anything to open"
    )


def _distribution(
    result: ScanResult,
    scanned: Scanned,
    findings: Iterable[Finding],
    folded: Iterable[Folded],
    out: Printer,
) -> Iterator[str]:
    like = " or ".join(result.like)
    yield (
        f"{scanned.distribution} {scanned.version}: {scanned.gates} gates in {scanned.files} files; "
        f"{scanned.leaves_out} leave {result.sm} out and admit {like}; "
        f"{scanned.unknown} cannot be told"
    )
    path = ""
    for finding in findings:
        if finding.path != path:
            path = finding.path
            yield f"  {path}"
        yield from _finding(result, finding, out)
    for tree in folded:
        yield (
            f"  {tree.path}/: {tree.tree}, {tree.gates} gates in {tree.files} files, "
            f"{tree.leaves_out} leave {result.sm} out (--all shows them)"
        )


def one_line(text: str, width: int) -> str:
    """A text on one line, its end left out where it is wider."""
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _finding(result: ScanResult, finding: Finding, out: Printer) -> Iterator[str]:
    word = finding.verdict[result.sm]
    word = "unknown" if finding.unknown else word
    within = f"  in {finding.within}" if finding.within else ""
    text = one_line(finding.text, _WIDE)
    yield f"    {finding.line:6}  {out.word(word, 8)}{finding.kind:12}{text}{within}"
    for reason in finding.unknown[:1]:
        yield f"            not known: {reason[:_WIDE]}"
    guards = finding.guards
    parts = [EFFECTS[guards.effect]]
    if guards.lines > 1:
        parts.append(f"{guards.lines} lines")
    if guards.calls:
        parts.append(", ".join(guards.calls))
    if guards.otherwise:
        parts.append(f"else {guards.otherwise}")
    yield f"            {'; '.join(parts)}"
    if finding.compiled:
        yield f"            nothing compiled: {finding.compiled}"
