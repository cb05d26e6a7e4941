"""A scan's result as SARIF 2.1.0, which code hosts and editors read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gatepatch import __version__
from gatepatch.report import to_json
from gatepatch.scanning.records import EFFECTS, KINDS, Finding, Kind, ScanResult

LIMIT = 5000
"""How many results are written: GitHub shows no more of a run, and refuses 25,001.

Source: GitHub Docs, "SARIF support for code scanning", limits.
"""

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_RULES = {kind: number for number, kind in enumerate(KINDS)}
_HELP = (
    "A gate that leaves an architecture out may be right as it stands: what it guards says "
    "whether there is anything to open."
)


def chosen(findings: Sequence[Finding]) -> tuple[int, ...]:
    """Which findings are written: the weightiest where there are too many, in their order."""
    by_weight = sorted(range(len(findings)), key=lambda index: _weight(findings[index]))
    return tuple(sorted(by_weight[:LIMIT]))


def _weight(finding: Finding) -> tuple[bool, bool, bool]:
    return (not finding.leaves_out, finding.tree != "own", not finding.unknown)


def render(result: ScanResult) -> str:
    """The document."""
    roots = _roots(result)
    return to_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(result, roots)]}) + "\n"


def _run(result: ScanResult, roots: Mapping[str, str]) -> dict[str, Any]:
    written = chosen(result.findings)
    base_of = {scanned.distribution: roots[scanned.root] for scanned in result.distributions}
    prints = tuple(fingerprints(result.findings))
    return {
        "tool": {
            "driver": {
                "name": "gatepatch",
                "semanticVersion": __version__,
                "rules": list(map(_rule, KINDS)),
            }
        },
        "automationDetails": {"id": f"gatepatch/scan/{result.sm}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            name: {"uri": f"file://{_uri(root.rstrip('/'))}/"} for root, name in roots.items()
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": list(_notifications(result, len(written))),
            }
        ],
        "results": [
            _result(finding, result, base_of[finding.distribution], prints[index])
            for index in written
            for finding in (result.findings[index],)
        ],
        "properties": {
            "architecture": result.sm,
            "like": result.like,
            "distributions": {d.distribution: d.version for d in result.distributions},
        },
    }


def _roots(result: ScanResult) -> dict[str, str]:
    """A name for each folder that paths are relative to."""
    folders = dict.fromkeys(scanned.root for scanned in result.distributions)
    return {folder: f"ROOT{number}" for number, folder in enumerate(folders, 1)}


def _uri(path: str) -> str:
    # A name may hold bytes that are no text; in a URI they stand as they are.
    return quote(path, errors="surrogateescape")


def _rule(kind: Kind) -> dict[str, Any]:
    return {
        "id": kind,
        "name": f"{kind.capitalize()}Gate",
        "shortDescription": {"text": f"An architecture gate: {kind}"},
        "fullDescription": {"text": KINDS[kind]},
        "help": {"text": _HELP},
        "defaultConfiguration": {"level": "warning"},
    }


def _result(finding: Finding, result: ScanResult, base: str, fingerprint: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.path), "uriBaseId": base},
            "region": {"startLine": finding.line, "endLine": finding.end_line},
        }
    }
    if finding.within:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.within}]
    return {
        "ruleId": finding.kind,
        "ruleIndex": _RULES[finding.kind],
        **_severity(finding),
        "message": _message(finding, result),
        "locations": [location],
        # GitHub tells alerts apart by the second name, and by no other.
        "partialFingerprints": {
            "gatepatchGate/v1": fingerprint,
            "primaryLocationLineHash": fingerprint,
        },
        "properties": {
            "distribution": finding.distribution,
            "language": finding.language,
            "tree": finding.tree,
            "condition": finding.text,
            "rejects": finding.rejects,
            "verdict": finding.verdict,
            "words": finding.words,
            "leavesOut": finding.leaves_out,
            "guards": finding.guards,
            "compiled": finding.compiled,
            "unknown": finding.unknown,
            "byName": finding.by_name,
        },
    }


def _severity(finding: Finding) -> dict[str, str]:
    """A warning leaves the architecture out; a note cannot be told; the rest is information."""
    if finding.leaves_out:
        return {"kind": "fail", "level": "warning"}
    if finding.unknown:
        return {"kind": "fail", "level": "note"}
    return {"kind": "informational", "level": "none"}  # only "fail" may have another level


def _text(text: str) -> dict[str, str]:
    """A message: ``{0}`` in one is a placeholder, and ``[0](1)`` is a link (3.11.5, 3.11.6)."""
    return {"text": text.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _message(finding: Finding, result: ScanResult) -> dict[str, str]:
    if finding.leaves_out:
        says = f"leaves {result.sm} out and admits {' or '.join(result.like)}"
    elif finding.unknown:
        says = f"cannot be told: {finding.unknown[0]}"
    else:
        says = f"does not leave {result.sm} out"
    guards = f"What it guards {EFFECTS[finding.guards.effect]}."
    if finding.guards.effect in ("value", "body"):
        guards = f"It {EFFECTS[finding.guards.effect]}."
    compiled = f" Nothing is compiled for those it shuts: {finding.compiled}." * bool(
        finding.compiled
    )
    return _text(f"{' '.join(finding.text.split())}: {says}. {guards}{compiled}")


def fingerprints(findings: Iterable[Finding]) -> Iterator[str]:
    """What a gate is known by when its lines have moved, or the release is another one.

    Gates that are alike in one function are told apart by their order.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in findings:
        text = " ".join(finding.text.split())
        key = (finding.distribution, finding.path, finding.within, finding.kind, text)
        seen[key] += 1
        data = "\0".join((*key, str(seen[key]))).encode("utf-8", "surrogateescape")
        yield hashlib.sha256(data).hexdigest()[:32]


def _notifications(result: ScanResult, written: int) -> Iterator[dict[str, Any]]:
    """What is not among the results, and why."""
    if written < len(result.findings):
        yield _note(
            "warning",
            f"{len(result.findings) - written} of {len(result.findings)} gates are left out: code "
            f"hosts show {LIMIT} at most; narrow the scan with --kind, --path or a distribution",
        )
    for tree in result.folded:
        yield _note(
            "note",
            f"{tree.distribution}: {tree.path}: {tree.tree}, {tree.gates} gates, {tree.leaves_out} "
            f"leave {result.sm} out; --all writes them too",
        )
    for problem in result.problems:
        yield _note("warning", str(problem))


def _note(level: str, text: str) -> dict[str, Any]:
    return {"level": level, "message": _text(text)}
