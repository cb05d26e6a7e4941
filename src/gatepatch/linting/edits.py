"""Edits of a set that do nothing, cannot be reached, or match what they or others make."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from gatepatch.gates.python_source import flattened, is_within, same
from gatepatch.linting.finding import Finding
from gatepatch.loader import PYTHON_SUFFIXES
from gatepatch.spec import Edit, FileSpec, GateEdit, Import, Insert, PatchSet, Replace, Text


def edit_findings(patch_set: PatchSet) -> Iterator[Finding]:
    """What is wrong with the edits, without the files that they are for."""
    for target in patch_set.targets:
        first: dict[str, str] = {}
        for file in target.files:
            if file.path in first:
                yield Finding(
                    key=f"{file.where}.path",
                    message=f"{file.path} is there twice for {target.distribution} "
                    f"{target.versions}: see {first[file.path]}",
                    hint="put its edits together",
                )
            first.setdefault(file.path, file.where)
            yield from _in_file(file)


def _in_file(file: FileSpec) -> Iterator[Finding]:
    yield from _never_reached(file.edits)
    for edit in file.edits:
        yield from _does_nothing(edit)
        if file.path.endswith(PYTHON_SUFFIXES):
            yield from _anywhere(edit)
    yield from _found_in_results(file.edits)


def _never_reached(edits: Sequence[Edit]) -> Iterator[Finding]:
    """Edits whose place another one has taken."""
    told: set[str] = set()
    for first, second in combinations(edits, 2):
        if _key(first) == _key(second) and second.where not in told:
            told.add(second.where)
            yield Finding(
                key=second.where,
                message=f"can never match: {first.where} has the same place",
                hint="take it out, or correct its place",
            )
        elif _place(first) == _place(second) and _nested(first, second):
            yield Finding(
                key=second.where,
                message=f"matches a place of {first.where} too: one stands within the other",
                hint="name functions in within: that have nothing in common",
            )


def _key(edit: Edit) -> object:
    """What an edit matches."""
    match edit:
        case GateEdit() | Replace():
            return (*_place(edit), edit.within)
        case Text():
            return ("text", edit.find)
        case Import() | Insert():
            return replace(edit, where="")


def _place(edit: Edit) -> tuple[str, ...]:
    """What an edit looks for, wherever it stands; nothing in common with other kinds."""
    match edit:
        case GateEdit(keyword=str(keyword)):
            return ("keyword", keyword)
        case GateEdit(condition=str(text)) | Replace(expression=text):
            return ("condition", " ".join(text.split()))
        case _:
            return ("", edit.where)


def _nested(first: Edit, second: Edit) -> bool:
    if not isinstance(first, GateEdit | Replace) or not isinstance(second, GateEdit | Replace):
        return False
    one, two = first.within, second.within
    if one is None or two is None:
        return one is not two
    return one != two and (is_within(one, two) or is_within(two, one))


def _does_nothing(edit: Edit) -> Iterator[Finding]:
    message, hint = "", "take it out, or correct it"
    match edit:
        case Text(find=find, replace=new) if find == new:
            message = "replaces a text by itself"
        case Text(find=find, replace=new) if find in new and not _grows(find, new):
            message = "the text to find stands in its replacement too"
            hint = "it is told apart by the whole replacement; a longer anchor is safer"
        case Replace(expression=old, by=new) if _equal(old, new):
            message = "replaces an expression by itself"
        case Insert(code=code) if not ast.parse(code).body:
            message = "inserts nothing"
        case GateEdit(condition=str(condition), operand=str(operand)):
            if any(_equal(part, operand) for part in _operands(condition)):
                message = "adds an operand that the condition has already"
    if message:
        yield Finding(key=edit.where, message=message, hint=hint)


def _grows(find: str, new: str) -> bool:
    """Whether whole lines are put beside the text, which stays as it is."""
    start = new.index(find)
    end = start + len(find)
    left = start == 0 or new[start - 1] == "\n" or find.startswith("\n")
    right = end == len(new) or new[end] == "\n" or find.endswith("\n")
    return left and right


def _equal(first: str, second: str) -> bool:
    """Whether two expressions are the same, parentheses and white space ignored."""
    if first.split() == second.split():
        return True
    try:
        return same(*(ast.parse(f"({text}\n)", mode="eval") for text in (first, second)))
    except (SyntaxError, ValueError):
        return False  # a preprocessor's condition


def _operands(condition: str) -> list[str]:
    try:
        node = ast.parse(f"({condition}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return [condition]
    parts = flattened(node) if isinstance(node, ast.BoolOp) else [node]
    return [ast.unparse(part) for part in parts]


def _anywhere(edit: Edit) -> Iterator[Finding]:
    """Edits of a Python file that a second place would take in, or that would be refused for it."""
    match edit:
        case GateEdit(within=None, count=1, condition=str()):
            what = "condition"
        case GateEdit(within=None, count=1, keyword=str()):
            what = "keyword"
        case Replace(within=None, count=1):
            what = "expression"
        case _:
            return
    yield Finding(
        key=edit.where,
        message=f"says no function: the same {what} in another one would match",
        hint="name the function in within:",
    )


def _found_in_results(edits: Sequence[Edit]) -> Iterator[Finding]:
    """Texts that another edit puts there: once applied, they are found once more."""
    for one, two in permutations(edits, 2):
        if not isinstance(one, Text):
            continue
        match two:
            case Text(find=find, replace=made):
                before = find.count(one.find)
            case Insert(code=made):
                before = 0
            case _:
                continue
        if made.count(one.find) > before and one.find != getattr(two, "find", None):
            yield Finding(
                key=one.where,
                message=f"{two.where} puts the text to find there: applied, it is found once more",
                hint="make the anchor longer, or make one edit of both",
            )
