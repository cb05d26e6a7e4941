"""What FlashInfer would load or compile in place of the sources that a set edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatepatch.aot import AotBinary, compiled_elsewhere, find_aot
from gatepatch.errors import Problem, RefusedError
from gatepatch.planned import PlannedTarget, SetPlan
from gatepatch.target import Target
from gatepatch.workspace import Workspace


def prebuilt(
    workspace: Workspace, made: SetPlan, names: Mapping[str, Sequence[str]], *, hide: bool
) -> tuple[AotBinary, ...]:
    """The prebuilt modules to move aside.

    Args:
        workspace: The environment.
        made: What the set does.
        names: Cache kind to the modules that derive from what it edits.
        hide: Whether the user has asked to move them aside.

    Raises:
        RefusedError: There are some, and the user has not asked to hide them; or FlashInfer
            compiles other sources, or sources that are links.
    """
    flashinfer = workspace.target("flashinfer-python")
    if flashinfer and names.get("flashinfer") and (folder := compiled_elsewhere(flashinfer)):
        raise RefusedError(
            Problem(
                message=f"links into an installer's cache, and FlashInfer compiles the sources "
                f"there, so a patched one has no effect: {folder}",
                where=str(flashinfer.locate("flashinfer/jit/env.py")),
                hint=_without_links(flashinfer),
            )
        )
    if linked := [problem for target in made.targets for problem in _linked(target)]:
        raise RefusedError(linked)
    binaries = find_aot(workspace.environment, flashinfer, names)
    if binaries and not hide:
        raise RefusedError([_aot_problem(binary, made.patch_set.name) for binary in binaries])
    return binaries


def _linked(planned: PlannedTarget) -> list[Problem]:
    """The sources of JIT modules that are links.

    A revert would put the link back, and with it the mtime of what it leads to: ninja would find
    the patched binary newer than its source, and keep it (seen, in a cache that is not known here).
    """
    target, spec = planned.target, planned.spec
    if target is None or spec is None or not spec.jit:
        return []
    return [
        Problem(
            message="is a link, so a JIT would not see that it is put back",
            where=str(target.root.path / file.path),
            hint=_without_links(target),
        )
        for file in planned.files
        if file.edits and not file.name.endswith(".py")
        if file.classified.image is not None and file.classified.image.link is not None
    ]


def _without_links(target: Target) -> str:
    return (
        "install it without links: uv pip install --link-mode copy --no-deps "
        f"--reinstall-package {target.distribution} {target.distribution}=={target.version}"
    )


def _aot_problem(binary: AotBinary, name: str) -> Problem:
    return Problem(
        message=f"the prebuilt {binary.module} would be loaded, so a patched source has no effect",
        where=str(binary.root.path / binary.path),
        hint=f"move it aside in the same step: gatepatch apply {name} --hide-aot",
    )
