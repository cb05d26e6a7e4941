"""Write pins from real releases, and prove that pins and set still agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from packaging.version import Version

from gatepatch import __version__, parsed, pins, release
from gatepatch.edits import sha256, splice
from gatepatch.errors import Problem, RefusedError, UsageError
from gatepatch.files import read, write_new
from gatepatch.gates.engines import run_engine
from gatepatch.gates.result import Change, Context
from gatepatch.pins import Pin, PinnedFile
from gatepatch.records import dataclass, replace
from gatepatch.release import Release
from gatepatch.results import Place
from gatepatch.spec import FileSpec, PatchSet, TargetSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """What became of one release.

    Args:
        outcome: ``written``, ``unchanged``; with a check ``agrees`` or ``differs``; ``refused``
            where the set cannot be planned for it.
        detail: Why it is refused, or how it differs.
    """

    distribution: str
    version: str
    outcome: str
    detail: str = ""


def make_pin(patch_set: PatchSet, found: Release) -> Pin:
    """Plan and prove a set for one release.

    Raises:
        RefusedError: It cannot be planned, or no block of the set is for this version.
    """
    specs = [
        spec
        for spec in patch_set.targets
        if spec.distribution == found.distribution
        and spec.versions.contains(found.version, prereleases=True)
    ]
    if len(specs) != 1:
        raise RefusedError(
            f"{len(specs)} blocks of {patch_set.name} are for "
            f"{found.distribution} {found.version}; it takes one"
        )
    return Pin(
        set=patch_set.name,
        digest=patch_set.digest,
        tool=__version__,
        distribution=found.distribution,
        version=str(found.version),
        files=_files(patch_set, specs[0], found),
    )


def _files(patch_set: PatchSet, spec: TargetSpec, found: Release) -> tuple[PinnedFile, ...]:
    results: dict[str, bytes] = {}
    files = []
    problems: list[Problem] = []
    for file in spec.files:
        pristine = found.read(file.path)
        if pristine is None:
            problems.append(Problem(message="is not in this release", where=file.path))
            continue
        context = Context(
            path=file.path,
            goal=patch_set.goal,
            read=found.read,
            read_after=lambda path: results.get(path) or found.read(path),
            predicates=patch_set.predicates,
        )
        try:
            planned = run_engine(pristine, file.edits, context)
        except RefusedError as error:
            problems += error.problems
            continue
        if planned.edits and spec.expect == "native":
            problems.append(Problem(message="is not native as expected", where=file.path))
        results[file.path] = splice(pristine, planned.edits)
        files.append(
            PinnedFile(
                path=file.path,
                before=sha256(pristine),
                after=sha256(results[file.path]),
                recipe=patch_set.recipe(file),
                edits=planned.edits,
                places=tuple(_place(change, file) for change in planned.changes),
            )
        )
    if problems:
        raise RefusedError(problems)
    return tuple(files)


def _place(change: Change, file: FileSpec) -> Place:
    """A place; the block's own place in the set would change with every block above it."""
    return replace(Place.of(change), where=change.where.removeprefix(f"{file.where}."))


def pin_releases(
    patch_set: PatchSet,
    found: Iterable[Release],
    *,
    check: bool = False,
    progress: Callable[[Pinned], None] = lambda pinned: None,
) -> tuple[Pinned, ...]:
    """Write the pins of some releases, and what was read of the set, or with ``check`` compare them
    with what would be written.

    Raises:
        UsageError: The set does not lie in a folder of its own, so pins have no place.
    """
    folder = folder_of(patch_set)
    results = []
    if not _keep_parsed(patch_set, check):
        results.append(
            Pinned(
                distribution=patch_set.name,
                version="set.yaml",
                outcome="differs",
                detail=f"{parsed.path_of(Path(patch_set.source)).name} is not what is read of it",
            )
        )
        progress(results[0])
    for item in found:
        result = _one(patch_set, item, folder, check)
        progress(result)
        results.append(result)
    return tuple(results)


def _keep_parsed(patch_set: PatchSet, check: bool) -> bool:
    """Keep what was read of the set, unless it is a check; whether what counts for it is right."""
    source = Path(patch_set.source)
    if not check and read(parsed.path_of(source)) != (data := parsed.to_bytes(patch_set)):
        write_new(parsed.path_of(source), data)
    return parsed.load(source) in (None, patch_set)


def _one(patch_set: PatchSet, found: Release, folder: Path, check: bool) -> Pinned:
    def result(outcome: str, detail: str = "") -> Pinned:
        return Pinned(
            distribution=found.distribution,
            version=str(found.version),
            outcome=outcome,
            detail=detail,
        )

    try:
        pin = make_pin(patch_set, found)
    except RefusedError as error:
        return result("refused", str(error))
    path = folder / pins.file_name(found.distribution, str(found.version))
    old = pins.load(path) if path.is_file() else None
    same = old is not None and _content(old) == _content(pin)
    if check:
        if same:
            return result("agrees")
        return result("differs", "there is no pin" if old is None else "its files differ")
    if same:
        return result("unchanged")
    folder.mkdir(exist_ok=True)
    write_new(path, pin.to_bytes())
    return result("written")


def _content(pin: Pin) -> list[tuple[object, ...]]:
    """What a pin does, and its verdicts; the source beside them is not kept in it."""
    return [
        (
            file.path,
            file.before,
            file.after,
            file.recipe,
            file.edits,
            [replace(place, before="", after="") for place in file.places],
        )
        for file in pin.files
    ]


def folder_of(patch_set: PatchSet) -> Path:
    """The folder of a set's pins.

    Raises:
        UsageError: The set does not lie in a folder of its own.
    """
    source = Path(patch_set.source)
    if source.name != "set.yaml":
        raise UsageError(
            Problem(
                message="pins lie beside a set in a folder of its own",
                where=str(source),
                hint=f"move it to {source.parent / patch_set.name / 'set.yaml'}",
            )
        )
    return source.parent / pins.FOLDER


def releases(
    patch_set: PatchSet,
    sources: Sequence[Path] = (),
    wanted: Sequence[str] = (),
    *,
    pre: bool = False,
) -> Iterable[Release]:
    """The releases to pin.

    Args:
        patch_set: The set.
        sources: Folders of wheels, or wheels; the package index is asked where there is none.
        wanted: Such as ``sglang==0.5.9``; every version in the set's ranges where there is none.
        pre: Whether the package index is asked for pre-releases too.
    """
    named = [tuple(text.split("==", 1)) for text in wanted]
    for text, parts in zip(wanted, named, strict=True):
        if len(parts) != 2:
            raise UsageError(f"{text!r} is no release; write sglang==0.5.9")
    if sources:
        for source in sources:
            for found in release.releases_in(source):
                if _covers(patch_set, found.distribution, found.version) and (
                    not named or (found.distribution, str(found.version)) in named
                ):
                    yield found
        return
    for distribution in dict.fromkeys(spec.distribution for spec in patch_set.targets):
        for version in (
            [Version(v) for d, v in named if d == distribution]
            if named
            else release.versions(distribution, pre=pre)
        ):
            if named or _covers(patch_set, distribution, version):
                yield release.fetch(distribution, version)


def _covers(patch_set: PatchSet, distribution: str, version: Version) -> bool:
    return any(
        spec.distribution == distribution and spec.versions.contains(version, prereleases=True)
        for spec in patch_set.targets
    )
