"""What a scan returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gatepatch.errors import Problem

Answer: TypeAlias = Literal["admits", "shuts", "depends", "unknown"]
"""What a gate does to an architecture: ``depends`` on what else it tests, or nobody can say."""

Language: TypeAlias = Literal["python", "cuda"]

Kind: TypeAlias = Literal[
    "predicate",
    "comparison",
    "membership",
    "string",
    "enum",
    "list",
    "decorator",
    "table",
    "requirement",
    "directive",
    "branch",
    "constexpr",
    "switch",
    "check",
    "value",
]

KINDS: Mapping[Kind, str] = {
    "predicate": "Python: a predicate or its alias, such as is_sm100_supported()",
    "comparison": "Python: a comparison of a capability, a major or an sm number",
    "membership": "Python: a capability that must be one of several",
    "string": "Python: a comparison with an architecture's name, such as sm_90a",
    "enum": "Python: a comparison with a member of an enumeration of architectures",
    "list": "Python: a list of architectures that is handed to a call",
    "decorator": "Python: a list of architectures in a decorator",
    "table": "Python: a dictionary by architecture",
    "requirement": "Python: a lowest and a highest architecture, such as min_sm=(10, 0)",
    "directive": "C, C++, CUDA: #if, #ifdef, #elif and the like",
    "branch": "C, C++, CUDA: an if, a while or a ?: on an architecture number",
    "constexpr": "C, C++, CUDA: if constexpr or static_assert",
    "switch": "C, C++, CUDA: a switch over an architecture number",
    "check": "C, C++, CUDA: a macro that checks, such as TORCH_CHECK",
    "value": "C, C++, CUDA: a condition that is assigned, returned or handed on",
}
"""What each kind of gate is."""

ANSWERS: Mapping[Answer, str] = {
    "admits": "lets it through",
    "shuts": "turns it away",
    "depends": "hangs on what else it tests",
    "unknown": "cannot be told",
}
"""What each answer says of an architecture."""

Effect: TypeAlias = Literal["raises", "returns", "default", "trap", "pdl", "body", "code", "value"]

EFFECTS: Mapping[Effect, str] = {
    "raises": "raises an error, or stops the compilation",
    "returns": "returns early",
    "default": "picks a value",
    "trap": "stops the kernel",
    "pdl": "waits for, or starts, a dependent kernel (programmatic dependent launch)",
    "body": "is a whole function's body: where it is shut, the function does nothing",
    "code": "runs other code",
    "value": "is a value that something else tests",
}
"""What becomes of it, by what stands under the gate."""

Tree: TypeAlias = Literal["own", "vendored", "generated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What stands under a gate.

    Args:
        effect: What it does, the weightiest first.
        lines: How many lines it has.
        calls: What it calls, where that tells something, each once.
        otherwise: What is done instead where the gate is shut; empty if nothing.
    """

    effect: Effect
    lines: int
    calls: tuple[str, ...] = ()
    otherwise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A gate, or what may be one.

    Args:
        distribution: Canonical name.
        path: Relative to where the distribution is imported from, with ``/``.
        line: Its first line, from 1.
        end_line: Its last.
        within: The function or class around it; empty at the top of a file.
        text: The condition as it stands.
        rejects: Whether it turns an architecture away where it holds, as ``if …: raise`` does.
        verdict: What it does to each architecture; for CUDA, over that architecture's device
            passes: it admits where any of them is compiled.
        words: When it admits, to the architectures for which that is so.
        leaves_out: Whether it admits the architecture asked for in fewer cases than the one
            that it is like.
        compiled: Why nothing is compiled behind it for the architectures that it shuts; empty
            where the code shows no such thing.
        unknown: Why its verdict cannot be told, or how it was read; empty where it is known.
        by_name: Whether it is read by the name of what it tests, such as ``major``, because
            that is bound outside of what is read.
        tree: Whether it stands in the distribution's own code.
    """

    distribution: str
    path: str
    line: int
    end_line: int
    within: str
    language: Language
    kind: Kind
    text: str
    rejects: bool
    verdict: Mapping[str, Answer]
    words: Mapping[str, str]
    leaves_out: bool
    guards: Guards
    compiled: str = ""
    unknown: tuple[str, ...] = ()
    by_name: bool = False
    tree: Tree = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """A distribution that was scanned, with its counts.

    Args:
        root: The folder that paths are relative to.
        files: How many files were looked at.
        size: Their bytes.
        gates: How many gates there are in all, folded trees included.
        leaves_out: How many leave the architecture out.
        unknown: How many cannot be told.
        kinds: How many there are of each kind.
    """

    distribution: str
    version: str
    root: str
    files: int
    size: int
    gates: int
    leaves_out: int
    unknown: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A tree that is vendored or generated, and only counted.

    Args:
        path: The folder, or the file.
        files: How many files of it hold gates.
        gates: How many gates it has.
        leaves_out: How many leave the architecture out.
    """

    distribution: str
    path: str
    tree: Tree
    files: int
    gates: int
    leaves_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that a scan's findings were written to.

    Args:
        file: Where it is.
        gates: How many gates stand in it.
        left_out: How many do not, because code hosts take no more.
    """

    file: str
    format: Literal["sarif", "html"]
    gates: int
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """What a scan found.

    Args:
        environment: The environment's folder.
        sm: The architecture asked for.
        like: The architectures that a gate must admit, one of them, to leave the other out.
        distributions: Those that were scanned.
        findings: The gates that were asked for, by distribution, path and line.
        folded: The trees that were only counted.
        problems: Files that could not be read, and why.
        cached: How many files' results came from the cache.
        written: The files that the findings were written to.
    """

    environment: str
    sm: str
    like: tuple[str, ...]
    distributions: tuple[Scanned, ...] = ()
    findings: tuple[Finding, ...] = ()
    folded: tuple[Folded, ...] = ()
    problems: tuple[Problem, ...] = ()
    cached: int = 0
    written: tuple[Written, ...] = ()
    command: str = "scan"
