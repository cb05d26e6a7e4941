"""The reasons that a set must give, and which of them its author has not given yet."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from gatepatch.catalog import SET_FILE
from gatepatch.errors import Problem, RefusedError
from gatepatch.spec import PatchSet

_MARKERS = ("TODO", "FIXME", "FILL IN")


def unfilled(patch_set: PatchSet) -> tuple[str, ...]:
    """The key paths of the reasons that are not given."""
    return tuple(key for key, text in _reasons(patch_set).items() if not _is_given(text))


def _is_given(text: str) -> bool:
    return bool(text.strip(" .…")) and not text.strip().upper().startswith(_MARKERS)


def _reasons(patch_set: PatchSet) -> Mapping[str, str]:
    texts = {"summary": patch_set.summary, "why": patch_set.why}
    for index, advisory in enumerate(patch_set.advisories):
        texts[f"advisories[{index}].text"] = advisory.text
        texts[f"advisories[{index}].source"] = advisory.source
    for target in patch_set.targets:
        for file in target.files:
            for edit in file.edits:
                if reason := getattr(edit, "unproved", ""):
                    texts[f"{edit.where}.unproved"] = reason
    return texts


def refuse_unfilled(patch_set: PatchSet) -> None:
    """Refuse a set whose author has not given every reason.

    Raises:
        RefusedError: One is missing.
    """
    if missing := unfilled(patch_set):
        source = Path(patch_set.source)
        folder = source.parents[1] if source.name == SET_FILE else source.parent
        raise RefusedError(
            Problem(
                message="is not finished: its author is to give "
                + ("a reason" if len(missing) == 1 else f"{len(missing)} reasons")
                + f" ({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''})",
                where=patch_set.source,
                hint=f"write them where it says TODO, and check: gatepatch lint {patch_set.name} "
                f"--patches {shlex.quote(str(folder))}",
            )
        )
