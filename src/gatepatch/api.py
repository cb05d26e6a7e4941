"""The library: one function a command. Each loads what it needs when it is called."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gatepatch.arch import Arch
    from gatepatch.authoring.made import Made
    from gatepatch.cachecheck import Finding
    from gatepatch.doctoring.check import Diagnosis
    from gatepatch.errors import Problem
    from gatepatch.jitcache import Module
    from gatepatch.pinning import Pinned
    from gatepatch.probing.device_probe import Probe, ProbeFailure
    from gatepatch.probing.properties import Question
    from gatepatch.results import Result
    from gatepatch.scanning.against import Comparison
    from gatepatch.scanning.chosen import Chosen
    from gatepatch.scanning.records import ScanResult
    from gatepatch.scanning.scan import Narrowed, Query
    from gatepatch.spec import PatchSet
    from gatepatch.transaction import Recovered
    from gatepatch.trials.record import Trial
    from gatepatch.trials.trial import Teller
    from gatepatch.verifying.compiling import Compiled, Job
    from gatepatch.verifying.verify import Verified
    from gatepatch.workspace import Workspace

PathLike = str | Path


def apply(
    name: str,
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
    assume: str | Sequence[str] = (),
    all_devices: bool = False,
    accept_current: bool = False,
    require_pin: bool = False,
    hide_aot: bool = False,
    jit_roots: Sequence[PathLike] = (),
    timeout: float = 60.0,
) -> Result:
    """Apply a patch set: all of it, or nothing.

    Args:
        name: The set's name, such as ``sm120-allreduce``.
        python: Interpreter of another environment.
        prefix: Folder of another environment.
        patches: Folders of your own patch sets.
        assume: Architectures that stand in for the probe, such as ``sm_120``.
        all_devices: Demand that every visible device is admitted, not just one.
        accept_current: Take the present bytes of files edited by hand as the base.
        require_pin: Refuse files that no pin knows.
        hide_aot: Move prebuilt modules aside that would be loaded instead of the patched source.
        jit_roots: More JIT cache roots to clear the set's modules from.
        timeout: Seconds to wait for each lock.

    Raises:
        GatepatchError: Any refusal or failure; nothing was changed. The subclass says which.
    """
    from gatepatch import carried

    workspace = _workspace(python, prefix)
    assumed = _archs(assume)
    if done := carried.already_applied(workspace, name, _paths(patches), assumed):
        return done
    from gatepatch import applier

    return applier.apply(
        workspace,
        name,
        applier.Options(
            patches=_paths(patches),
            assume=assumed,
            all_devices=all_devices,
            accept_current=accept_current,
            require_pin=require_pin,
            hide_aot=hide_aot,
            jit_roots=_paths(jit_roots),
            timeout=timeout,
        ),
    )


def plan(
    name: str,
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
    accept_current: bool = False,
    require_pin: bool = False,
    hide_aot: bool = False,
) -> Result:
    """Say what ``apply`` would do, with unified diffs and proofs. Writes nothing.

    Raises:
        GatepatchError: The set would be refused.
    """
    from gatepatch import applier

    return applier.plan(
        _workspace(python, prefix),
        name,
        applier.Options(
            patches=_paths(patches),
            accept_current=accept_current,
            require_pin=require_pin,
            hide_aot=hide_aot,
        ),
    )


def revert(
    name: str | None = None,
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
    discard_foreign: bool = False,
    wheels: Sequence[PathLike] = (),
    jit_roots: Sequence[PathLike] = (),
    timeout: float = 60.0,
) -> Result:
    """Put the originals back, byte for byte.

    Args:
        name: The set to revert; all sets for None.
        python: Interpreter of another environment.
        prefix: Folder of another environment.
        patches: Folders of your own patch sets; read only where state has been lost.
        discard_foreign: Replace files edited by hand by the pristine bytes; theirs are kept.
        wheels: Wheels to take pristine bytes from.
        jit_roots: More JIT cache roots to clear the set's modules from.
        timeout: Seconds to wait for each lock.

    Raises:
        GatepatchError: Any refusal or failure; nothing was changed.
    """
    from gatepatch import reverter

    return reverter.revert(
        _workspace(python, prefix),
        name,
        reverter.Options(
            patches=_paths(patches),
            discard_foreign=discard_foreign,
            wheels=_paths(wheels),
            jit_roots=_paths(jit_roots),
            timeout=timeout,
        ),
    )


def status(
    name: str | None = None,
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
) -> Result:
    """Say what is applied, going by the files themselves. Writes nothing, takes no lock."""
    from gatepatch import inspector

    return inspector.status(_workspace(python, prefix), name, _paths(patches))


def verify(
    name: str,
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
    jit_roots: Sequence[PathLike] = (),
    compile: bool = False,  # noqa: A002, as the option is called
    archs: str | Sequence[str] = (),
    timeout: float = 900.0,
    progress: Callable[[Compiled | Job], None] = lambda step: None,
) -> Verified:
    """Say again, from the bytes on disk, whether a set is applied and has its effect.

    Writes nothing into the environment, and takes no lock. Results of ``compile`` are kept in
    the user's cache folder.

    Args:
        name: The set's name.
        python: Interpreter of another environment.
        prefix: Folder of another environment.
        patches: Folders of your own patch sets.
        jit_roots: More JIT cache roots.
        compile: Compile the units that the set names, and check what it expects of them.
        archs: Of the set's architectures, only these are compiled for, such as ``sm_120``.
        timeout: Seconds for one compilation.
        progress: Is told of each compilation as it begins, and of what came of it.

    Raises:
        GatepatchError: The set cannot be read, or the environment cannot be found.
    """
    from gatepatch.verifying import verify as verifying
    from gatepatch.verifying.units import Wanted

    wanted = Wanted(archs=_archs(archs, "--arch"), timeout=timeout, progress=progress)
    return verifying.verify(
        _workspace(python, prefix),
        name,
        verifying.Options(
            patches=_paths(patches),
            jit_roots=_paths(jit_roots),
            compile=wanted if compile else None,
        ),
    )


def recover(
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    timeout: float = 60.0,
) -> tuple[Recovered, ...]:
    """Settle an interrupted change: all-before, or all-after if it had been committed.

    Raises:
        PendingError: It cannot be settled; the backups are kept.
    """
    from gatepatch import unfinished

    return unfinished.recover(_workspace(python, prefix), timeout)


def trial(
    name: str,
    command: Sequence[str],
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
    assume: str | Sequence[str] = (),
    all_devices: bool = False,
    accept_current: bool = False,
    require_pin: bool = False,
    hide_aot: bool = False,
    jit_roots: Sequence[PathLike] = (),
    metric: str | None = None,
    metric_json: str | None = None,
    higher_is_better: bool | None = None,
    min_gain: float | None = None,
    max_loss: float | None = None,
    repeat: int = 5,
    warmup: int = 1,
    timeout: float | None = None,
    lock_timeout: float = 60.0,
    output: PathLike | None = None,
    sccache: bool = True,
    repeat_line: str = "",
    teller: Teller | None = None,
) -> Trial:
    """Run a benchmark without and with a set, and keep the set only if it pays.

    A trial that ends with an error leaves the environment as it was before.

    Args:
        name: The set's name.
        command: The benchmark: a program and its arguments.
        python: Interpreter of another environment.
        prefix: Folder of another environment.
        patches: Folders of your own patch sets.
        assume: Architectures that stand in for the probe, such as ``sm_120``.
        all_devices: Demand that every visible device is admitted, not just one.
        accept_current: Take the present bytes of files edited by hand as the base.
        require_pin: Refuse files that no pin knows.
        hide_aot: Move prebuilt modules aside that would be loaded instead of the patched source.
        jit_roots: More JIT cache roots to clear the set's modules from.
        metric: Regular expression with one group; its last match in the output is the metric.
        metric_json: ``FILE:path.to.it``, a number in a JSON file that the benchmark writes.
        higher_is_better: Unless said, lower for the run time and higher for the others.
        min_gain: Least gain that pays, as a fraction: 0.02 is 2 %.
        max_loss: Keep the set without a gain too, if it surely loses no more than this fraction.
        repeat: Counted runs of each side.
        warmup: Runs after each switch that do not count.
        timeout: Seconds until a run is ended and counts as failed.
        lock_timeout: Seconds to wait for each lock.
        output: Folder for the record and the report; beside the state if None.
        sccache: Whether to compile through sccache where it is installed.
        repeat_line: The command line that repeats the trial, for the report.
        teller: Is told of the progress.

    Raises:
        TrialError: The benchmark fails without the set.
        GatepatchError: Any other refusal or failure.
        PendingError: It could not all be put back.
    """
    from gatepatch import applier
    from gatepatch.trials import metric as metrics
    from gatepatch.trials import trial as trials
    from gatepatch.trials.decide import Rule

    measured = metrics.parse(metric, metric_json)
    return trials.run_trial(
        _workspace(python, prefix),
        name,
        command,
        trials.Options(
            apply=applier.Options(
                patches=_paths(patches),
                assume=_archs(assume),
                all_devices=all_devices,
                accept_current=accept_current,
                require_pin=require_pin,
                hide_aot=hide_aot,
                jit_roots=_paths(jit_roots),
                timeout=lock_timeout,
            ),
            metric=measured,
            rule=Rule(
                higher=metrics.higher_is_better(measured, higher_is_better),
                min_gain=min_gain,
                max_loss=max_loss,
            ),
            repeat=repeat,
            warmup=warmup,
            timeout=timeout,
            output=Path(output) if output is not None else None,
            sccache=sccache,
            repeat_line=repeat_line,
        ),
        teller or trials.Teller(),
    )


def trial_history(
    name: str | None = None, *, python: PathLike | None = None, prefix: PathLike | None = None
) -> tuple[dict[str, Any], ...]:
    """Read the records of the trials in an environment, oldest first.

    Args:
        name: The set's name; all sets for None.
        python: Interpreter of another environment.
        prefix: Folder of another environment.
    """
    from gatepatch.trials import record

    found = record.history(_workspace(python, prefix).roots())
    return tuple(entry for entry in found if name in (None, entry["set"]))


def probe(
    *,
    deep: bool = False,
    timeout: float = 30.0,
    progress: Callable[[Question], None] = lambda question: None,
) -> Probe | ProbeFailure:
    """Ask CuPy, in a child process, which devices there are.

    Args:
        deep: Ask them what they can do as well, by launching small kernels: see ``Probe.answers``.
        timeout: Seconds until the child is ended; of a deep probe, for each question.
        progress: Is told of each question of a deep probe when it is asked.
    """
    if deep:
        from gatepatch.probing.deep_probe import deep_probe

        return deep_probe(timeout, progress)
    from gatepatch.probing.device_probe import probe as ask

    return ask(timeout)


def list_sets(*, patches: Sequence[PathLike] = ()) -> tuple[PatchSet, ...]:
    """Read every patch set: your own and those that ship.

    Raises:
        SpecError: One of them cannot be read.
    """
    from gatepatch import catalog

    folders = _paths(patches)
    return tuple(catalog.load(name, folders) for name in catalog.files(folders))


def show(name: str, *, patches: Sequence[PathLike] = ()) -> PatchSet:
    """Read one patch set.

    Raises:
        UnknownSetError: No set has this name.
        SpecError: It cannot be read.
    """
    from gatepatch import catalog

    return catalog.load(name, _paths(patches))


def lint(
    name: str | None = None,
    *,
    patches: Sequence[PathLike] = (),
    python: PathLike | None = None,
    prefix: PathLike | None = None,
) -> tuple[Problem, ...]:
    """Check a patch set, or all: everything that is wrong with it.

    Args:
        name: The set's name; all sets for None.
        patches: Folders of your own patch sets.
        python: Interpreter of an environment whose packages the sets are compared with.
        prefix: Folder of such an environment; without one the sets are looked at alone.

    Raises:
        UnknownSetError: No set has this name.
    """
    from gatepatch import catalog, linting
    from gatepatch.errors import SpecError

    folders = _paths(patches)
    names = [name] if name is not None else list(catalog.files(folders))
    workspace = None if python is None and prefix is None else _workspace(python, prefix)
    problems: list[Problem] = []
    for each in names:
        try:
            problems += linting.lint(catalog.read(each, folders), workspace)
        except SpecError as error:
            problems += error.problems
    return tuple(problems)


def new(
    name: str,
    *,
    edits: str | Sequence[str] = (),
    diff: PathLike | None = None,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    wheels: Sequence[PathLike] = (),
    admit: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    like: str | None = None,
    output: PathLike = "patches",
    progress: Callable[[str], None] = lambda text: None,
) -> Made:
    """Write a patch set of edits that someone made by hand, or of a diff.

    Planned on pristine bytes, the set gives exactly the edited ones. Its reasons are left for
    you to give; until then it is not applied.

    Args:
        name: The set's name.
        edits: Distributions whose installed files were edited.
        diff: A unified diff against the installed, pristine files.
        python: Interpreter of another environment.
        prefix: Folder of another environment.
        wheels: Wheels to take pristine bytes from; pip downloads them unless they are named.
        admit: The architectures to admit; worked out from the gates unless given.
        exclude: The architectures to shut out.
        like: The architecture that the admitted ones are to be like.
        output: The folder of sets that it goes into.
        progress: Is told what is being done.

    Raises:
        GatepatchError: Something stands there already, nothing was edited, or the edits cannot
            be told as a set; nothing was written.
    """
    from gatepatch.authoring import new as authoring
    from gatepatch.authoring.goal import Given

    return authoring.new(
        _workspace(python, prefix),
        name,
        authoring.Options(
            edits=(edits,) if isinstance(edits, str) else tuple(edits),
            diff=None if diff is None else Path(diff),
            wheels=_paths(wheels),
            given=Given(
                admit=frozenset(_archs(admit, "--admit")),
                exclude=frozenset(_archs(exclude, "--exclude")),
                like=None if like is None else _archs(like, "--like")[0],
            ),
            output=Path(output),
        ),
        progress,
    )


def pin(
    name: str,
    *,
    patches: Sequence[PathLike] = (),
    sources: Sequence[PathLike] = (),
    releases: Sequence[str] = (),
    pre: bool = False,
    check: bool = False,
    progress: Callable[[Pinned], None] = lambda pinned: None,
) -> tuple[Pinned, ...]:
    """Work a set out for released versions, and write a pin for each beside the set.

    What was read of the set's YAML is kept beside it too, so that later calls load no parser.

    Args:
        name: The set's name.
        patches: Folders of your own patch sets.
        sources: Folders of wheels, or wheels; the package index is asked where there is none.
        releases: Such as ``sglang==0.5.9``; every version in the set's ranges where there is none.
        pre: Pin pre-releases that the package index has too.
        check: Write nothing; say where what is kept differs from what would be written.
        progress: Is told of each release when it is done.

    Raises:
        GatepatchError: A release cannot be had, or the set cannot be read.
    """
    from gatepatch import catalog, pinning

    patch_set = catalog.read(name, _paths(patches))
    found = pinning.releases(patch_set, _paths(sources), releases, pre=pre)
    return pinning.pin_releases(patch_set, found, check=check, progress=progress)


def doctor(
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
    assume: str | Sequence[str] = (),
    jit_roots: Sequence[PathLike] = (),
) -> Diagnosis:
    """Say what is wrong with gatepatch's footing here, and what to do. Writes nothing.

    Args:
        python: Interpreter of another environment.
        prefix: Folder of another environment.
        patches: Folders of your own patch sets.
        assume: Architectures that stand in for the probe, such as ``sm_120``.
        jit_roots: More JIT cache roots.

    Raises:
        UsageError: An argument names what is not there.
        TargetError: The environment cannot be found; what is wrong inside it is in the result.
    """
    from gatepatch.doctoring import examine
    from gatepatch.doctoring.subject import Subject

    subject = Subject(
        _workspace(python, prefix),
        patches=_paths(patches),
        assume=_archs(assume),
        jit_roots=_paths(jit_roots),
    )
    return examine.examine(subject)


def cache(*, jit_roots: Sequence[PathLike] = ()) -> tuple[Module, ...]:
    """List the modules in the JIT caches that are known here.

    Args:
        jit_roots: More JIT cache roots.
    """
    from gatepatch import jitcache

    return jitcache.list_modules(jitcache.cache_roots(extra=_paths(jit_roots)))


def check_cache(
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    jit_roots: Sequence[PathLike] = (),
) -> tuple[Finding, ...]:
    """Find JIT binaries that do not derive from the sources on disk.

    Args:
        python: Interpreter of the server's environment.
        prefix: Folder of the server's environment.
        jit_roots: More JIT cache roots.
    """
    from gatepatch import cachecheck, jitcache

    packages = cachecheck.packages_of(_workspace(python, prefix))
    return cachecheck.check(jitcache.cache_roots(extra=_paths(jit_roots)), packages)


def scan(
    distributions: Sequence[str] = (),
    *,
    sm: str,
    like: str | None = None,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    everything: bool = False,
    kinds: Sequence[str] = (),
    paths: Sequence[str] = (),
    within: Sequence[str] = (),
    cached: bool = True,
    sarif: PathLike | None = None,
    html: PathLike | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ScanResult:
    """List the architecture gates of installed distributions. Writes its cache, and files if named.

    Args:
        distributions: Which to scan; all that hold gates for none.
        sm: The architecture that may be left out, such as ``sm_120``.
        like: The one that a gate must admit to leave the other out; 9.0, 10.0 or 10.3 for None.
        python: Interpreter of another environment.
        prefix: Folder of another environment.
        everything: Give every gate, those of vendored and generated trees too, not only those
            that leave the architecture out or cannot be told.
        kinds: Give gates of these kinds only.
        paths: Give gates in files that match one of these patterns, or lie in one of these folders.
        within: Give gates in these functions or classes only; their last names are enough.
        cached: Whether earlier results may be used, and are kept for the next time.
        sarif: File for the gates as SARIF 2.1.0; not written for None.
        html: File for a page to filter and read; not written for None.
        progress: Is told how many files are done, and of how many.

    Raises:
        TargetError: A distribution is not installed, or cannot be read.
        UsageError: An architecture or a kind is not known, or a file's folder is not there.
        GatepatchError: A file cannot be written.
    """
    from gatepatch.environment import find_environment
    from gatepatch.scanning import scan as scanning
    from gatepatch.scanning import writing

    files = writing.Files(
        sarif=Path(sarif) if sarif is not None else None,
        html=Path(html) if html is not None else None,
    )
    files.check()
    result = scanning.scan(
        find_environment(python=python, prefix=prefix),
        distributions,
        _query(
            sm,
            like=like,
            everything=everything,
            kinds=kinds,
            paths=paths,
            within=within,
            cached=cached,
        ),
        progress,
    )
    return writing.write(result, files)


def scan_to_set(
    name: str,
    distributions: Sequence[str] = (),
    *,
    sm: str,
    admit: Sequence[str] = (),
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    output: PathLike = "patches",
    progress: Callable[[int, int], None] = lambda done, total: None,
    **narrowed: Unpack[Narrowed],
) -> Chosen:
    """Write a patch set that opens the gates that ``scan`` shows, where an engine can.

    Its reasons are left for you to give; until then it is not applied. The arguments are those
    of ``scan``, without its files, and:

    Args:
        name: The set's name.
        admit: Architectures to admit beside ``sm``, such as the others of its family.
        output: The folder of sets that it goes into.

    Raises:
        UsageError: Something stands there already, or the query is wrong.
        TargetError: A distribution is not installed, or cannot be read.
        RefusedError: No gate is left; nothing was written.
    """
    from gatepatch.scanning import chosen
    from gatepatch.scanning import scan as scanning

    options = chosen.Options(name=name, admit=_archs(admit, "--admit"), output=Path(output))
    options.check()
    query = _query(sm, **narrowed)
    workspace = _workspace(python, prefix)
    result = scanning.scan(workspace.environment, distributions, query, progress)
    return chosen.write_set(workspace, result, query, options, progress)


def scan_against(
    other: PathLike,
    distributions: Sequence[str] = (),
    *,
    sm: str,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **narrowed: Unpack[Narrowed],
) -> Comparison:
    """Compare the gates of an environment with another's: what an upgrade changes.

    The arguments are those of ``scan``, without its files, and:

    Args:
        other: The folder or the interpreter of another environment, a wheel, or a folder of
            wheels.

    Raises:
        UsageError: ``other`` is none of these, or the query is wrong.
        TargetError: A distribution is missing on one side, or cannot be read.
    """
    from gatepatch.environment import find_environment
    from gatepatch.scanning.against import against

    return against(
        find_environment(python=python, prefix=prefix),
        Path(other),
        distributions,
        _query(sm, **narrowed),
        progress,
    )


def _query(sm: str, **narrowed: Unpack[Narrowed]) -> Query:
    from gatepatch.scanning.scan import Query

    like = narrowed.get("like")
    return Query(
        sm=_archs(sm, "--sm")[0],
        like=_archs(like, "--like")[0] if like is not None else None,
        everything=narrowed.get("everything", False),
        kinds=tuple(narrowed.get("kinds", ())),
        paths=tuple(narrowed.get("paths", ())),
        within=tuple(narrowed.get("within", ())),
        cached=narrowed.get("cached", True),
    )


@contextlib.contextmanager
def applied(
    name: str,
    *,
    python: PathLike | None = None,
    prefix: PathLike | None = None,
    patches: Sequence[PathLike] = (),
    assume: str | Sequence[str] = (),
    jit_roots: Sequence[PathLike] = (),
) -> Iterator[Result]:
    """Apply a set, and revert it at the end of the block; a set applied before stays.

    The arguments are those of ``apply``.
    """
    result = apply(
        name, python=python, prefix=prefix, patches=patches, assume=assume, jit_roots=jit_roots
    )
    try:
        yield result
    finally:
        if result.outcome == "applied":
            revert(name, python=python, prefix=prefix, patches=patches, jit_roots=jit_roots)


def _workspace(python: PathLike | None, prefix: PathLike | None) -> Workspace:
    from gatepatch.environment import find_environment
    from gatepatch.workspace import Workspace

    return Workspace(find_environment(python=python, prefix=prefix))


def _paths(paths: Sequence[PathLike]) -> tuple[Path, ...]:
    return tuple(map(Path, paths))


def _archs(named: str | Sequence[str], option: str = "--assume") -> tuple[Arch, ...]:
    from gatepatch.arch import Arch
    from gatepatch.errors import UsageError

    try:
        return tuple(map(Arch.parse, [named] if isinstance(named, str) else named))
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
