"""The preprocessor's gates in a C, C++ or CUDA file, and what they guard."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gatepatch.gates.cuda_gates import gates_of, is_gate
from gatepatch.gates.cuda_settled import Outside
from gatepatch.gates.directives import Branch, Scan, scan
from gatepatch.scanning.c_text import Outline, blanked
from gatepatch.scanning.found import Found
from gatepatch.scanning.records import Effect, Guards

_PDL = re.compile(
    rb"griddepcontrol\.\w+|cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion"
    rb"|griddepcontrol_?\w*|launch_dependent_grids|wait_on_dependent_grids"
)
_TRAP = re.compile(rb"__trap\s*\(|__brkpt\s*\(|\basm\b[^;\"]*\"\s*(?:trap|brkpt)")
_ASM = re.compile(
    rb"\basm\b[^;\"]*\"\s*(?:\{\\n\\?t?\"?\s*\"?)?([a-z][a-z0-9_]*(?:\.[a-z0-9_:]+){0,2})"
)
_DEVICE = re.compile(
    r"\s*!?\s*(?:__CUDA_ARCH__|defined\s*(?:\(\s*__CUDA_ARCH__\s*\)|__CUDA_ARCH__))\s*"
)
"""The test whether it is compiled for a device at all, whichever."""
_ASKED = re.compile(r"defined\s*(?:\(\s*__CUDA_ARCH__\s*\)|__CUDA_ARCH__\b)")
_QUANTITY = re.compile(r"_(?:RANK|SIZE|COUNT|STAGES|THREADS|WARPS|BYTES|HEADS|DIM|NUM_\w+)$")
_STOPS = re.compile(rb"error|trap|brkpt")
"""One of these stands in whatever rejects."""
_MANY = 4
"""How many calls are named."""
_SHORT = 4096
"""Bytes of a region that may do nothing but reject."""
_SMALL = 12
"""Lines of a region that is there for the sake of a call in it."""
_FAR = 65536
"""How many bytes of a guarded region are looked at."""


def directives(source: bytes, outline: Outline, outside: Outside | None) -> Iterator[Found]:
    """Yield the gates among a file's directives.

    Args:
        source: The file.
        outline: Its definitions.
        outside: What macros mean that it does not define; None to follow none.
    """
    found = scan(source)
    for branch, gate in gates_of(source, found, outside):
        if _DEVICE.fullmatch(gate.text) or (not gate.target and _is_quantity(gate.text)):
            continue
        asked, others = _ASKED.subn("", gate.text)
        if others and "__CUDA_ARCH" not in asked and not is_gate(gate.verdict):
            continue
        rejects = _rejects(source, found, branch)
        guards = _guards(source, found, branch, rejects=rejects)
        whole = guards.effect == "body" and not guards.otherwise
        yield Found(
            line=gate.line,
            end_line=gate.end_line,
            within=outline.within(branch.directive.start),
            language="cuda",
            kind="directive",
            text=gate.text if not gate.keyword.endswith("def") else f"{gate.keyword} {gate.text}",
            rejects=rejects,
            verdict=gate.verdict,
            by_name=gate.by_name,
            guards=guards,
            compiled="the function's whole body is left out where it is shut" if whole else "",
        )


def _rejects(source: bytes, found: Scan, branch: Branch) -> bool:
    """Whether a branch does nothing but stop the compiler, or the kernel."""
    end = found.ends.get(branch)
    if end is None or end.start - branch.directive.end > _SHORT:
        return False
    if not _STOPS.search(source, branch.directive.end, end.start):
        return False
    return found.rejects(source, branch)


def _is_quantity(text: str) -> bool:
    """Whether each macro of a condition is a kernel's own number, whatever its name says beside."""
    macros = [name for name in re.findall(r"[A-Za-z_]\w*", text) if name != "defined"]
    return all(map(_QUANTITY.search, macros))


def _guards(source: bytes, found: Scan, branch: Branch, *, rejects: bool) -> Guards:
    end = found.ends.get(branch)
    if end is None:
        return Guards(effect="code", lines=0)
    start, stop = branch.directive.end, end.start
    region = source[start : min(stop, start + _FAR)]
    otherwise = ""
    if end.keyword != "endif":
        following = found.branches.get(end.start)
        otherwise = _otherwise(source, found, following) if following else ""
    calls = _calls(region)
    effect: Effect = "code"
    if rejects:
        effect = "trap" if _TRAP.search(region) else "raises"
    elif _PDL.search(region) and region.count(b"\n") <= _SMALL:
        effect = "pdl"
    elif _is_body(source, found, branch):
        effect = "body"
    return Guards(
        effect=effect,
        lines=max(0, end.line - branch.directive.end_line - 1),
        calls=calls,
        otherwise=otherwise,
    )


def _otherwise(source: bytes, found: Scan, branch: Branch) -> str:
    """What the next branch of an ``#if`` does."""
    if branch.condition is not None:
        return f"#{branch.directive.keyword}"
    end = found.ends.get(branch)
    region = source[branch.directive.end : end.start] if end else b""
    if re.search(rb"#\s*error", region):
        return "an error"
    if _TRAP.search(region):
        return "a trap"
    return "other code" if blanked(region[:_FAR]).strip() else ""


def _calls(region: bytes) -> tuple[str, ...]:
    """The calls for a dependent kernel, and the instructions, in a region."""
    found = [m[0] for m in _PDL.finditer(region)] + [m[1] for m in _ASM.finditer(region)]
    return tuple(dict.fromkeys(name.decode("latin-1") for name in found))[:_MANY]


def _is_body(source: bytes, found: Scan, branch: Branch) -> bool:
    """Whether a branch, with those after it, fills the braces of a function."""
    if branch.earlier:
        return False
    last = branch
    while (end := found.ends.get(last)) is not None and end.keyword != "endif":
        last = found.branches[end.start]
    if end is None:
        return False
    after = blanked(source[end.end : end.end + 400]).lstrip()
    if not after.startswith(b"}"):
        return False
    before = blanked(source[max(0, branch.directive.start - 600) : branch.directive.start]).rstrip()
    return (
        before.endswith(b"{") and re.search(rb"(?:\)|\bconst|\bnoexcept)\s*\{$", before) is not None
    )
