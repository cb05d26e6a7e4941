"""Make a patch set of what was edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import SpecifierSet

from gatepatch.arch import TABLE
from gatepatch.authoring import writer
from gatepatch.authoring.contexts import Contexts
from gatepatch.authoring.diffed import diffed_files
from gatepatch.authoring.drafting import draft, edits_of
from gatepatch.authoring.edited import Edited, Originals, edited_files
from gatepatch.authoring.goal import Given, infer_goal
from gatepatch.authoring.made import Made, MadeFile, made_file
from gatepatch.authoring.shipped import known_jit, known_predicates
from gatepatch.edits import splice
from gatepatch.errors import Problem, RefusedError, UsageError
from gatepatch.gates.engines import run_engine
from gatepatch.loader import is_name
from gatepatch.reasons import unfilled
from gatepatch.spec import FileSpec, PatchSet, TargetSpec
from gatepatch.target import Target
from gatepatch.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to make a set of, and where.

    Args:
        edits: Distributions whose edits are taken up.
        diff: A unified diff; None where edits are.
        wheels: Wheels to take pristine bytes from.
        given: What the author says of the goal.
        output: The folder of sets that it goes into.
    """

    edits: tuple[str, ...] = ()
    diff: Path | None = None
    wheels: tuple[Path, ...] = ()
    given: Given = field(default_factory=Given)
    output: Path = Path("patches")


def new(
    workspace: Workspace,
    name: str,
    options: Options,
    progress: Callable[[str], None] = lambda text: None,
) -> Made:
    """Make a set; see ``gatepatch.new``."""
    if not is_name(name):
        raise UsageError(f"{name!r} is no name: use lower-case letters, digits and hyphens")
    if bool(options.edits) == (options.diff is not None):
        raise UsageError("give one of --from-edits and --from-diff")
    _check_known(options.given)
    path = writer.check_free(options.output, name)
    originals = Originals(workspace, options.wheels)
    edited, notes = _edited(workspace, originals, options, progress)
    predicates = known_predicates(edited)
    contexts = Contexts(edited, predicates)
    drafts = []
    for item in edited:
        progress(f"comparing {item.path}")
        drafts.append((item, draft(item.path, item.before, item.after, contexts.all(item))))
    goal = infer_goal(
        [unit.judged for _, d in drafts for unit in d.units if unit.judged], options.given
    )
    # What a file with gates needs of another must be planned before it.
    drafts.sort(key=lambda pair: any(unit.judged for unit in pair[1].units))
    files: dict[str, list[FileSpec]] = {}
    for item, value in drafts:
        progress(f"working out the edits of {item.path}")
        edits, reasons = edits_of(value, contexts.planned(item, goal))
        notes += reasons
        contexts.done(item)
        spec = FileSpec(where="", path=item.path, edits=edits)
        files.setdefault(item.target.distribution, []).append(spec)
    targets = {item.target.distribution: item.target for item in edited}
    blocks = [_block(target, files[name]) for name, target in targets.items()]
    notes += [
        f"{block.distribution}: if a JIT compiles these files, name its modules in jit:, so that "
        "what was built of them is removed"
        for block in blocks
        if block.distribution == "flashinfer-python" and not block.jit
    ]
    if predicates:
        notes.append(
            "what these predicates mean was taken over from a set that ships; check it: "
            + ", ".join(predicates)
        )
    meant = replace(writer.new_set(name, goal, blocks), predicates=predicates)
    patch_set, data = writer.read_back(meant, _header(targets, options))
    made = _check(patch_set, edited)
    writer.publish(path, data)
    return Made(
        name=name,
        source=str(path),
        action=goal.action,
        archs=tuple(sorted(goal.archs)),
        like=goal.like,
        files=made,
        missing=unfilled(patch_set),
        notes=tuple(notes),
    )


def _check_known(given: Given) -> None:
    named = sorted({*given.admit, *given.exclude, *([given.like] if given.like else [])})
    if odd := [str(arch) for arch in named if arch not in TABLE]:
        known = ", ".join(map(str, TABLE))
        raise UsageError(f"nothing can be proved for {', '.join(odd)}: known are {known}")
    if given.admit and given.exclude:
        raise UsageError("give --admit or --exclude, not both")
    if given.like in given.admit:
        raise UsageError(f"--like: {given.like} is among the architectures to admit")


def _edited(
    workspace: Workspace,
    originals: Originals,
    options: Options,
    progress: Callable[[str], None],
) -> tuple[list[Edited], list[str]]:
    if options.diff is not None:
        found, notes = diffed_files(workspace, originals, options.diff)
        if not found:
            raise RefusedError(Problem(message="changes nothing", where=str(options.diff)))
    else:
        found, notes = [], []
    for distribution in dict.fromkeys(options.edits):
        progress(f"looking for edits of {distribution}")
        files, more = edited_files(workspace, originals, distribution)
        notes += more
        if not files:
            raise RefusedError(
                Problem(
                    message=f"nothing is edited in {distribution}",
                    hint="name the environment that was edited: --python EXE or --prefix DIR",
                )
            )
        found += files
    return sorted(found, key=lambda item: (item.target.distribution, item.path)), notes


def _block(target: Target, files: Sequence[FileSpec]) -> TargetSpec:
    return TargetSpec(
        distribution=target.distribution,
        versions=SpecifierSet(f"=={target.version}"),
        files=tuple(files),
        jit=known_jit(target.distribution, {file.path for file in files}),
    )


def _header(targets: Mapping[str, Target], options: Options) -> list[str]:
    what = "edits of" if options.diff is None else f"{options.diff.name} against"
    releases = ", ".join(f"{t.distribution} {t.version}" for t in targets.values())
    return [
        f"Written by gatepatch new from {what} {releases}.",
        "Give a reason wherever it says TODO; until then the set is not applied.",
    ]


def _check(patch_set: PatchSet, edited: Sequence[Edited]) -> tuple[MadeFile, ...]:
    """Plan the set on pristine bytes.

    Raises:
        RefusedError: It does not give exactly the edited bytes.
    """
    items = {(item.target.distribution, item.path): item for item in edited}
    contexts = Contexts(edited, patch_set.predicates)
    made = []
    for block in patch_set.targets:
        for file in block.files:
            item = items[block.distribution, file.path]
            found = run_engine(item.before, file.edits, contexts.planned(item, patch_set.goal))
            contexts.done(item)
            if splice(item.before, found.edits) != item.after:
                raise RefusedError(
                    Problem(
                        message="the set does not give the edited bytes",
                        where=f"{file.path} ({block.distribution} {item.target.version})",
                        hint="report it, with the edits",
                    )
                )
            made.append(made_file(item, file.edits, found.changes))
    return tuple(made)
