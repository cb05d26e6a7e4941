"""What is wrong with the files of a set, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatepatch.spec import PatchSet
from gatepatch.verifying.finding import Finding
from gatepatch.verifying.looked import Looked
from gatepatch.workspace import Workspace


def about(one: Looked, name: str) -> Iterator[Finding]:
    """What is wrong with a file and its gates."""
    where = str(one.item.target.root.path / one.item.path)
    yield from _bytes(one, name, where)
    if one.outcome in ("applied", "native", "foreign"):
        yield from _gates(one, name, where)


def _bytes(one: Looked, name: str, where: str) -> Iterator[Finding]:
    target, apply = one.item.target, f"gatepatch apply {name}"
    reinstall = target.reinstall_command(one.item.name)
    release = f"{target.distribution} {target.version}"

    def finding(kind: str, found: str, command: str, expected: str = "the set's edits") -> Finding:
        return Finding(kind=kind, where=where, expected=expected, found=found, command=command)

    match one.outcome:
        case "pristine" if one.item.spec.expect == "native":
            gates = f"gates that admit the architectures, as {release} should have them"
            yield finding("not-native", _undone(one), reinstall, gates)
        case "pristine":
            yield finding("not-applied", _undone(one), apply)
        case "upgraded":
            yield finding("upgraded", f"the bytes of {release}, installed over them", apply)
        case "missing":
            yield finding("missing", "no such file", reinstall)
        case "foreign":
            found = f"an edit by something else: {one.item.classified.detail}"
            known = "the release's bytes, or what gatepatch made of them"
            yield finding("foreign", found, way_out(name), known)
        case "applied" if one.judged.expected and one.judged.expected != one.sha256:
            found = f"sha256 {one.sha256}: it was applied from another version of the set"
            made = f"sha256 {one.judged.expected}, which the set as it is now makes"
            yield finding("bytes", found, apply, made)


def _undone(one: Looked) -> str:
    if one.judged.problem is not None:
        return one.judged.problem.message
    left = sum(bool(place.left) for place in one.judged.places)
    return f"the release's own bytes, with {left} place{'s' * (left != 1)} to change"


def way_out(name: str) -> str:
    """What drops the edits of something else, and applies a set."""
    return f"gatepatch revert {name} --discard-foreign, then gatepatch apply {name}"


def _gates(one: Looked, name: str, where: str) -> Iterator[Finding]:
    command = way_out(name) if one.outcome == "foreign" else f"gatepatch apply {name}"
    if (problem := one.judged.problem) is not None:
        yield Finding(
            kind="not-judged",
            where=problem.where or where,
            expected="the places that the set names",
            found=problem.message,
            command=command,
        )
    for place in one.judged.places:
        at = f"{where}:{place.line}"
        if place.left:
            yield Finding(
                kind="left-shut",
                where=at,
                expected=place.left.strip(),
                found=place.source.strip() or "nothing of it",
                command=command,
            )
        elif place.wrong:
            yield Finding(
                kind="verdict",
                where=at,
                expected="the verdict that the set makes of the release's own",
                found="; ".join(place.wrong),
                command=command,
            )


def missing(
    workspace: Workspace, patch_set: PatchSet, looked: Sequence[Looked]
) -> Iterator[Finding]:
    """Distributions of the set that are not there, or in no range of it."""
    seen = {one.item.target.distribution for one in looked}
    for distribution in dict.fromkeys(spec.distribution for spec in patch_set.targets):
        if distribution in seen:
            continue
        target = workspace.target(distribution)
        specs = [spec for spec in patch_set.targets if spec.distribution == distribution]
        if target is None and all(spec.optional for spec in specs):
            continue
        yield Finding(
            kind="not-installed" if target is None else "no-range",
            where=str(workspace.environment.prefix),
            expected=f"{distribution} {' or '.join(str(spec.versions) for spec in specs)}",
            found="it is not installed" if target is None else f"version {target.version}",
            command="name the environment that has it: --python EXE or --prefix DIR"
            if target is None
            else f"gatepatch show {patch_set.name}",
        )


def strays(
    workspace: Workspace, patch_set: PatchSet, looked: Sequence[Looked]
) -> Iterator[Finding]:
    """Files that the set has changed, by state, and does not name any more."""
    named = {(one.item.target.root.path, one.item.path) for one in looked}
    for root in workspace.roots():
        value = workspace.state(root).sets.get(patch_set.name)
        for path in value.files if value else ():
            if (root.path, path) not in named:
                yield Finding(
                    kind="stray",
                    where=str(root.path / path),
                    expected="only files that the set names",
                    found="it was changed by another version of the set, or of its package",
                    command=f"gatepatch apply {patch_set.name}",
                )


def notes(looked: Sequence[Looked]) -> Iterator[str]:
    """What a person should know of the files, though it is not wrong."""
    for one in looked:
        yield from one.item.target.warnings
        if one.item.classified.rebuilt:
            yield f"the state that knew of {one.item.path} is lost; its bytes say what it is"
        if one.shared:
            yield f"{one.item.path} is shared with {', '.join(one.shared)}"
        if one.pristine is None and one.outcome not in ("foreign", "missing"):
            yield f"the pristine bytes of {one.item.path} are not to be had, so nothing was compared with them"
        for place in one.judged.places:
            if place.unproved:
                yield f"{one.item.path}:{place.line} is not proved: {' '.join(place.unproved.split())}"
