"""Which gates that a scan found an engine can open, and by which edit of a patch set."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatepatch.authoring.cuda_units import source_of
from gatepatch.authoring.writer import ChosenGate
from gatepatch.errors import TargetError
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_tree import operands
from gatepatch.scanning.one_file import LONGEST
from gatepatch.scanning.records import Finding, Kind
from gatepatch.spec import Edit, GateEdit
from gatepatch.target import Target

_NOT_OPENED: Mapping[Kind, str] = {
    "table": "a dictionary by architecture needs an entry, and no engine makes one: use text",
    "requirement": "a lowest and highest architecture is no list: use replace, or text",
    **dict.fromkeys(
        ("branch", "constexpr", "switch", "check", "value"),
        "only conditions of directives are opened in C and CUDA files: use text",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A gate that the scan shows, and that the set does not open.

    Args:
        gate: The gate.
        reason: Why no edit opens it.
    """

    gate: Finding
    reason: str


@dataclass(slots=True)
class Draft:
    """Gates of one file that one edit may open.

    Args:
        findings: The gates: all that read the same in one function.
        options: What the edit may name, the surest first; none left where it is dropped.
        reason: Why the first of them did not do.
        count: How many places the edit matches.
    """

    where: str
    distribution: str
    path: str
    findings: list[Finding]
    options: list[ChosenGate]
    reason: str = ""
    count: int = 1

    @property
    def live(self) -> bool:
        """Whether there is an edit that may open them."""
        return bool(self.options)

    def drop(self, reason: str) -> None:
        """Give them up."""
        self.reason = self.reason or reason
        self.options = []

    def refuse(self, reason: str) -> None:
        """Go on to the next edit that may do."""
        self.reason = self.reason or reason
        self.options = self.options[1:]

    def join(self, other: Draft) -> None:
        """Hand the gates over to an edit that opens them as well."""
        other.findings += self.findings
        self.findings, self.options = [], []

    def edit(self) -> GateEdit:
        """The edit, with any number of places."""
        gate = self.options[0]
        return GateEdit(
            where=self.where,
            action="open",
            within=gate.within or None,
            condition=gate.what if gate.kind == "condition" else None,
            keyword=gate.what if gate.kind == "keyword" else None,
            count=None,
        )

    def chosen(self) -> ChosenGate:
        """The same, with the places counted."""
        gate = self.options[0]
        return ChosenGate(
            path=gate.path, kind=gate.kind, what=gate.what, within=gate.within, count=self.count
        )

    def is_edit(self, edit: Edit) -> bool:
        """Whether an edit of a set is this one."""
        own = self.edit()
        return isinstance(edit, GateEdit) and (edit.within, edit.condition, edit.keyword) == (
            own.within,
            own.condition,
            own.keyword,
        )


def drafts_of(target: Target, findings: Sequence[Finding]) -> list[Draft]:
    """Gather gates by the edit that may open them; what has none says why."""
    drafts: dict[object, Draft] = {}
    trees: dict[str, ast.Module] = {}
    for finding in findings:
        gates: list[ChosenGate] = []
        reason = ""
        try:
            gates = list(_gates(target, finding, trees))
        except (ConditionError, SyntaxError, OSError, TargetError) as error:
            reason = f"cannot be named in a set: {error}"
        except _NotOpenedError as error:
            reason = str(error)
        key = gates[0] if gates else id(finding)
        if key in drafts:
            drafts[key].findings.append(finding)
        else:
            drafts[key] = Draft(
                where=f"gate {len(drafts) + 1}",
                distribution=finding.distribution,
                path=finding.path,
                findings=[finding],
                options=gates,
                reason=reason,
            )
    return list(drafts.values())


class _NotOpenedError(Exception):
    """No edit of a set opens a gate of this kind."""


def _gates(target: Target, finding: Finding, trees: dict[str, ast.Module]) -> Iterator[ChosenGate]:
    """What an edit may name to open a gate: all of its condition, then each operand."""
    if finding.unknown:
        raise _NotOpenedError(f"its verdict is not known: {finding.unknown[0]}")
    if finding.kind in _NOT_OPENED:
        raise _NotOpenedError(_NOT_OPENED[finding.kind])
    if len(finding.text) >= LONGEST:
        raise _NotOpenedError("its condition is too long to be written down")
    path = finding.path
    if finding.kind in ("list", "decorator"):
        if path not in trees:
            trees[path] = ast.parse(target.locate(path).read_bytes())
        name = _keyword(trees[path], finding)
        yield ChosenGate(path=path, kind="keyword", what=name, within=finding.within)
    elif finding.language == "python":
        node = ast.parse(f"({finding.text})", mode="eval").body
        parts = [node]
        if isinstance(node, ast.BoolOp):
            parts += node.values
        elif isinstance(node, ast.UnaryOp):
            parts.append(node.operand)
        texts = [finding.text if "\n" not in finding.text else ast.unparse(node)]
        texts += map(ast.unparse, parts[1:])
        for text in texts:
            yield ChosenGate(path=path, kind="condition", what=text, within=finding.within)
    else:
        expression = parse(_spelt(finding.text).encode())
        whole = operands(expression)
        for part in [expression, *(whole if len(whole) > 1 else ())]:
            yield ChosenGate(path=path, kind="condition", what=source_of(part))


def _spelt(text: str) -> str:
    """The condition of a directive, where a scan gives its keyword too."""
    keyword, _, name = text.partition(" ")
    if keyword in ("ifdef", "elifdef"):
        return f"defined({name.strip()})"
    return f"!defined({name.strip()})" if keyword in ("ifndef", "elifndef") else text


def _keyword(tree: ast.Module, finding: Finding) -> str:
    """The keyword whose value a list is."""
    for node in ast.walk(tree):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            value = keyword.value
            if (value.lineno, value.end_lineno) == (finding.line, finding.end_line) and (
                keyword.arg and ast.unparse(value) == ast.unparse(_value(finding.text))
            ):
                return keyword.arg
    raise _NotOpenedError("the list is no keyword's value, and a set names lists by keyword")


def _value(text: str) -> ast.expr:
    return ast.parse(f"({text})", mode="eval").body
