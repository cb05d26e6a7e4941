"""Plan a patch set over an environment: a value, made without writing anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gatepatch.blocks import candidates
from gatepatch.classify import Classified, classify
from gatepatch.edits import sha256, splice
from gatepatch.errors import Problem, RefusedError, TargetError
from gatepatch.gates.engines import run_engine
from gatepatch.gates.result import Context
from gatepatch.pins import Pins
from gatepatch.planned import Inspected, PlannedFile, PlannedTarget, SetPlan
from gatepatch.results import Place
from gatepatch.spec import FileSpec, PatchSet, TargetSpec
from gatepatch.target import Target
from gatepatch.workspace import Workspace


def pins_of(patch_set: PatchSet) -> Pins:
    """The pins that lie beside a set's YAML."""
    from gatepatch.pins import FOLDER

    source = Path(patch_set.source)
    return Pins(source.parent / FOLDER if source.name == "set.yaml" else None)


def plan_set(
    workspace: Workspace,
    patch_set: PatchSet,
    *,
    pins: Pins | None = None,
    accept_current: bool = False,
    require_pin: bool = False,
) -> SetPlan:
    """Plan a set over all its distributions.

    Args:
        workspace: The environment.
        patch_set: The set.
        pins: Pins to use; the set's own by default.
        accept_current: Take the present bytes of a foreign file as the base.
        require_pin: Refuse a file that no pin knows.

    Raises:
        RefusedError: With everything that stands in the way, over all distributions.
    """
    planner = _Planner(
        workspace, patch_set, pins_of(patch_set) if pins is None else pins, accept_current
    )
    problems: list[Problem] = []
    targets = []
    for distribution in dict.fromkeys(spec.distribution for spec in patch_set.targets):
        specs = [spec for spec in patch_set.targets if spec.distribution == distribution]
        try:
            targets.append(planner.distribution(distribution, specs))
        except RefusedError as error:
            problems += error.problems
    if require_pin:
        problems += [
            Problem(
                message="no pin has these bytes",
                where=f"{file.name} ({file.target.distribution} {file.target.version})",
                hint="pin it and review the pin: gatepatch pin " + patch_set.name,
            )
            for target in targets
            for file in target.files
            if not file.pinned
        ]
    if problems:
        raise RefusedError(problems)
    return SetPlan(patch_set=patch_set, targets=tuple(targets))


def inspect_set(
    workspace: Workspace, patch_set: PatchSet, *, pins: Pins | None = None
) -> tuple[Inspected, ...]:
    """Look at the files of a set without planning it; what is not installed is left out.

    Raises:
        TargetError: A distribution's metadata is damaged.
    """
    planner = _Planner(workspace, patch_set, pins_of(patch_set) if pins is None else pins, False)
    found: list[Inspected] = []
    for distribution in dict.fromkeys(spec.distribution for spec in patch_set.targets):
        target = workspace.target(distribution)
        specs = [spec for spec in patch_set.targets if spec.distribution == distribution]
        if target is None:
            continue
        try:
            blocks = list(candidates(target, specs))
        except RefusedError:
            continue
        found += min((planner.inspect(target, s) for s in blocks), key=_strangeness)
    return tuple(found)


def _strangeness(files: Iterable[Inspected]) -> tuple[int, int]:
    """How badly a set's block fits what is installed: files missing, then files foreign."""
    kinds = [file.classified.kind for file in files]
    return kinds.count("missing"), kinds.count("foreign")


class _Planner:
    """The steps of ``plan_set``, which share what they have read."""

    def __init__(self, workspace: Workspace, patch_set: PatchSet, pins: Pins, accept_current: bool):
        self.workspace = workspace
        self.patch_set = patch_set
        self.pins = pins
        self.accept_current = accept_current

    def distribution(self, name: str, specs: Sequence[TargetSpec]) -> PlannedTarget:
        target = self.workspace.target(name)
        if target is None:
            if all(spec.optional for spec in specs):
                return PlannedTarget(distribution=name, target=None, spec=None)
            raise RefusedError(
                Problem(
                    message=f"{name} is not installed in {self.workspace.environment.prefix}",
                    hint="name the environment that has it: --python EXE or --prefix DIR",
                )
            )
        failures: list[RefusedError] = []
        for spec in candidates(target, specs):
            try:
                return PlannedTarget(
                    distribution=name, target=target, spec=spec, files=self._files(target, spec)
                )
            except RefusedError as error:
                failures.append(error)
        raise failures[0]

    def _files(self, target: Target, spec: TargetSpec) -> tuple[PlannedFile, ...]:
        planned: dict[str, PlannedFile] = {}
        problems: list[Problem] = []
        for file in spec.files:
            try:
                planned[file.path] = self._file(target, file, planned)
            except RefusedError as error:
                problems += error.problems
        if not problems and spec.expect == "native":
            problems += [
                Problem(
                    message=f"{target.distribution} {target.version} should admit the "
                    f"architectures as it is, and this gate does not: {place.before}",
                    where=f"{file.name}:{place.line}",
                    hint="the release is not what the set expects: reinstall it, or report it",
                )
                for file in planned.values()
                if file.edits
                for place in file.places
                if place.before != place.after
            ]
        if problems:
            raise RefusedError(problems)
        return tuple(planned.values())

    def inspect(self, target: Target, spec: TargetSpec) -> tuple[Inspected, ...]:
        """Look at the files of one block."""
        return tuple(
            Inspected(
                target=target,
                spec=spec,
                path=target.relative(file.path),
                name=file.path,
                classified=self.classify(target, file, self.context(target, file.path, {})),
            )
            for file in spec.files
        )

    def _file(
        self, target: Target, file: FileSpec, planned: Mapping[str, PlannedFile]
    ) -> PlannedFile:
        self._check_imported(target, file)
        context = self.context(target, file.path, planned)
        classified = self.classify(target, file, context)
        pristine = self._base(classified, target, file)
        pinned = self.pins.find(
            target.distribution,
            target.version,
            file.path,
            sha256(pristine),
            self.patch_set.recipe(file),
        )
        if pinned is not None:
            pinned.result(pristine)
            edits, places = pinned.edits, pinned.places_in(file)
        else:
            found = run_engine(pristine, file.edits, context)
            edits, places = found.edits, tuple(map(Place.of, found.changes))
        return PlannedFile(
            target=target,
            path=target.relative(file.path),
            name=file.path,
            classified=classified,
            pristine=pristine,
            context=context,
            edits=edits,
            places=places,
            pinned=pinned is not None,
            spec=file.edits,
        )

    def _check_imported(self, target: Target, file: FileSpec) -> None:
        if (other := target.shadow(file.path)) is not None:
            raise RefusedError(
                Problem(
                    message=f"a change would have no effect: {other} is imported in its place",
                    where=f"{file.path} ({target.distribution} {target.version})",
                    hint=f"take {other.parent} off the import path (PYTHONPATH), or remove what an "
                    "older install left there",
                )
            )

    def classify(self, target: Target, file: FileSpec, context: Context) -> Classified:
        """Say what a file of the set is."""
        version = target.version
        witness = target.witness(file.path)

        def pristine_of(current: bytes) -> bytes | None:
            pin = self.pins.find_result(target.distribution, version, file.path, sha256(current))
            if pin is not None:
                return pin.undo(current)
            if witness is None:
                return None
            read = witness.read
            original = read() if read else self.workspace.blob(target.root, witness.sha256)
            if original is None:
                return None
            try:
                found = run_engine(original, file.edits, context)
            except RefusedError:
                return None
            return original if splice(original, found.edits) == current else None

        return classify(
            target.locate(file.path),
            record=self.workspace.state(target.root).files.get(target.relative(file.path)),
            witness=witness,
            blob=lambda digest: self.workspace.blob(target.root, digest),
            pinned=lambda before: self.pins.knows(target.distribution, version, file.path, before),
            rebuild=pristine_of,
        )

    def _base(self, classified: Classified, target: Target, file: FileSpec) -> bytes:
        where = f"{file.path} ({target.distribution} {target.version})"
        if classified.kind == "foreign" and self.accept_current:
            return target.locate(file.path).read_bytes()
        if classified.kind == "missing":
            raise RefusedError(
                Problem(
                    message="there is no such file in this release",
                    where=where,
                    hint="the file has moved, or the installation is damaged: "
                    + target.reinstall_command(file.path),
                )
            )
        if classified.kind == "foreign":
            raise RefusedError(
                foreign_problem(where, classified, target, file.path, self.patch_set.name)
            )
        if classified.pristine is None:
            raise RefusedError(
                Problem(
                    message="it is applied, and its pristine bytes are not in the store any more",
                    where=where,
                    hint="put the original back: " + target.reinstall_command(file.path),
                )
            )
        return classified.pristine

    def context(self, target: Target, name: str, planned: Mapping[str, PlannedFile]) -> Context:
        def read(path: str) -> bytes | None:
            if path in planned:
                return planned[path].pristine
            try:
                return target.locate(path).read_bytes()
            except (OSError, TargetError):  # it is not of this distribution, or leads out of it
                return None

        def read_after(path: str) -> bytes | None:
            return planned[path].after if path in planned else read(path)

        return Context(
            path=name,
            goal=self.patch_set.goal,
            read=read,
            read_after=read_after,
            predicates=self.patch_set.predicates,
        )


def foreign_problem(
    where: str, classified: Classified, target: Target, path: str, name: str
) -> Problem:
    """Say that a file was edited by something else, and the ways out.

    Args:
        where: The file, for a person.
        classified: What it was found to be.
        target: Its distribution.
        path: Its path in the distribution.
        name: The set that wants to change it.
    """
    return Problem(
        message=f"foreign: something other than gatepatch has edited it ({classified.detail})",
        where=where,
        hint=f"keep those edits as the base: gatepatch apply {name} --accept-current\n"
        f"  or drop them: gatepatch revert {name} --discard-foreign\n"
        f"  or put the original back: {target.reinstall_command(path)}",
    )
