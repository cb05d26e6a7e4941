"""`gatepatch new --from-diff`: diffs that apply exactly, and those that are refused."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatepatch
from gatepatch.authoring.diff import apply_diff, read_diff
from gatepatch.errors import GatepatchError, RefusedError
from gatepatch.loader import load
from lookalikes import COMM, FLASHINFER, HEADER, make_server
from releases import make_wheel
from trees import git, make_distribution, make_environment, make_repository, site_of

LIST = """\
--- a/flashinfer/jit/comm.py
+++ b/flashinfer/jit/comm.py
@@ -1,2 +1,2 @@
 def gen_trtllm_comm_module():
-    return flags(supported_major_versions=[9, 10])
+    return flags(supported_major_versions=[9, 10, 12])
"""


def written(tmp_path: Path, text: str) -> Path:
    """A diff's file."""
    path = tmp_path / "my.diff"
    path.write_bytes(text.encode())
    return path


def refusal(tmp_path: Path, text: str, pristine: str = FLASHINFER[COMM]) -> list[tuple[str, str]]:
    """Where a diff is refused, and why."""

    def apply_all() -> None:
        for diff in read_diff(written(tmp_path, text)):
            apply_diff(pristine.encode(), diff)

    with pytest.raises(RefusedError) as error:
        apply_all()
    return [((p.where or "").removeprefix(f"{tmp_path}/"), p.message) for p in error.value.problems]


@pytest.mark.parametrize(
    "header",
    [
        "--- a/flashinfer/jit/comm.py\n+++ b/flashinfer/jit/comm.py\n",
        "--- flashinfer/jit/comm.py\t2026-01-01 00:00:00 +0000\n+++ flashinfer/jit/comm.py\tnow\n",
        """\
From: someone

diff --git a/x b/x
index 12..34 100644
--- a/checkout/flashinfer/jit/comm.py
+++ b/checkout/flashinfer/jit/comm.py
""",
        "--- comm.py.orig\n+++ /usr/lib/python3/site-packages/flashinfer/jit/comm.py\n",
    ],
    ids=["git", "plain", "mail", "absolute"],
)
def test_a_diff_becomes_a_set(header: str, tmp_path: Path) -> None:
    server = make_server(tmp_path)
    diff = written(tmp_path, header + LIST.split("\n", 2)[2] + "-- \n2.40\n")
    made = gatepatch.new("mine", diff=diff, prefix=server, output=tmp_path / "sets")
    assert [file.path for file in made.files] == [COMM]
    assert [edit.kind for edit in made.files[0].edits] == ["open"]
    fill_and_plan(server, Path(made.source), "[9, 10, 12]")


def fill_and_plan(prefix: Path, source: Path, expected: str) -> None:
    text = source.read_text().replace("TODO: say", "It is right to say")
    source.write_text(text)
    result = gatepatch.plan("mine", prefix=prefix, patches=[source.parents[1]])
    (changed,) = result.sets[0].files
    assert f"+    return flags(supported_major_versions={expected})" in changed.diff


def test_the_diff_is_of_the_release_where_the_file_is_edited_already(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    (site_of(server) / COMM).write_text("broken\n")
    wheel = make_wheel(tmp_path, "flashinfer-python", "0.6.3", FLASHINFER)
    made = gatepatch.new(
        "mine",
        diff=written(tmp_path, LIST),
        prefix=server,
        wheels=[wheel],
        output=tmp_path / "sets",
    )
    assert made.notes == (f"{COMM} is edited already; the diff was applied to the release's bytes",)


def test_patches_of_one_file_in_a_series(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    second = LIST.replace("-    return flags(supported_major_versions=[9, 10])", "-OLD")
    second = second.replace("[9, 10, 12]", "[9, 10, 11, 12]")
    second = second.replace("-OLD", "-    return flags(supported_major_versions=[9, 10, 12])")
    made = gatepatch.new(
        "mine",
        diff=written(tmp_path, LIST + second),
        prefix=server,
        output=tmp_path / "sets",
        admit=["sm_110", "sm_120", "sm_121"],
    )
    (file,) = load(Path(made.source)).targets[0].files
    assert len(file.edits) == 1
    fill_and_plan(server, Path(made.source), "[9, 10, 11, 12]")


def test_paths_of_a_checkout_are_found_in_site_packages_and_in_the_checkout(
    tmp_path: Path,
) -> None:
    server = make_server(tmp_path)
    before = FLASHINFER[HEADER].splitlines(keepends=True)
    after = FLASHINFER[HEADER].replace("< 1200", "< 1300").splitlines(keepends=True)
    # FlashInfer's build puts include/ under flashinfer/data/.
    name = "include/flashinfer/comm/trtllm_allreduce.cuh"
    text = "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"))
    made = gatepatch.new(
        "mine", diff=written(tmp_path, text), prefix=server, output=tmp_path / "sets"
    )
    assert [file.path for file in made.files] == [HEADER]

    prefix = make_environment(tmp_path, "other")
    files = {f"python/{path}": text for path, text in FLASHINFER.items() if path != HEADER}
    checkout = make_repository(tmp_path / "checkout", {**files, name: FLASHINFER[HEADER]})
    (checkout / "python/flashinfer/data").mkdir()
    (checkout / "python/flashinfer/data/include").symlink_to("../../../include")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "link")
    info = make_distribution(site_of(prefix), "flashinfer-python", "0.6.3", {})
    (site_of(prefix) / "flashinfer.pth").write_text(f"{checkout}/python\n")
    (info / "RECORD").write_text("flashinfer.pth,,\n")
    (info / "direct_url.json").write_text(
        json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}})
    )
    made = gatepatch.new(
        "mine", diff=written(tmp_path, text), prefix=prefix, output=tmp_path / "more"
    )
    assert [file.path for file in made.files] == [HEADER]


@pytest.mark.parametrize("name", ["flashinfer/jit/core.py", "core.py"])
def test_a_file_that_nothing_has(name: str, tmp_path: Path) -> None:
    server = make_server(tmp_path)
    diff = written(tmp_path, LIST.replace("flashinfer/jit/comm.py", name))
    with pytest.raises(RefusedError) as error:
        gatepatch.new("mine", diff=diff, prefix=server, output=tmp_path / "sets")
    assert str(error.value).startswith(f"{diff}:1: no installed distribution has a file {name}")
    assert not (tmp_path / "sets").exists()


def test_every_hunk_that_does_not_apply_is_told(tmp_path: Path) -> None:
    text = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-one\n+1\n@@ -3,2 +3,2 @@\n two\n-four\n+4\n"
    assert refusal(tmp_path, text, "zero\none\ntwo\nthree\n") == [
        (
            "my.diff:3",
            r"hunk 1 does not apply: x.py, line 1 is 'zero\n', and the diff has 'one\n'",
        ),
        (
            "my.diff:6",
            r"hunk 2 does not apply: x.py, line 4 is 'three\n', and the diff has 'four\n'",
        ),
    ]


def test_lines_that_stand_elsewhere_are_named(tmp_path: Path) -> None:
    diff = read_diff(written(tmp_path, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+1\n"))[0]
    with pytest.raises(RefusedError) as error:
        apply_diff(b"zero\none\n", diff)
    assert error.value.problems[0].hint == (
        "make the diff against the installed release; the same lines stand at line 2"
    )


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("nothing\n", "my.diff", "has no hunk of a unified diff"),
        (
            "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n",
            "my.diff:1",
            "adds a file, and a patch set changes the lines of files only",
        ),
        (
            "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            "my.diff:1",
            "takes a file away, and a patch set changes the lines of files only",
        ),
        (
            "diff --git a/x b/y\nrename from x\nrename to y\n",
            "my.diff:2",
            "renames a file, and a patch set changes the lines of files only",
        ),
        (
            "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
            "my.diff:2",
            "changes a binary file, and a patch set changes the lines of files only",
        ),
        (
            "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
            "my.diff:2",
            "changes a file's mode, and a patch set changes the lines of files only",
        ),
        ("--- a/x\n+++ b/x\nno\n", "my.diff:3", "expected a hunk: @@ -LINE,COUNT +LINE,COUNT @@"),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n",
            "my.diff:5",
            "the hunk is cut off",
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\nwrong\n",
            "my.diff:6",
            "is no line of a hunk: its header, on line 3, says more",
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n-b\n+c\n",
            "my.diff:5",
            "is no line of a hunk: its header, on line 3, says fewer such lines",
        ),
    ],
)
def test_what_a_diff_may_not_be(text: str, where: str, message: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text) == [(where, message)]


def test_a_diff_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(GatepatchError, match="cannot be read: No such file or directory"):
        read_diff(tmp_path / "none.diff")


def test_git_quotes_paths(tmp_path: Path) -> None:
    text = '--- "a/\\303\\274.py"\n+++ "b/\\303\\274.py"\n@@ -1 +1 @@\n-a\n+b\n'
    assert read_diff(written(tmp_path, text))[0].path == "ü.py"


LINE = st.sampled_from([b"one\n", b"two\n", b"\n", b"  \xff\n", b"cr\r\n", b"-- \n", b"\\ x\n"])


@settings(deadline=None)
@given(st.lists(LINE), st.lists(LINE), st.booleans(), st.booleans(), st.integers(0, 4))
def test_what_diff_writes_is_read_and_applied(
    tmp_path_factory: pytest.TempPathFactory,
    old: list[bytes],
    new: list[bytes],
    old_ends: bool,
    new_ends: bool,
    context: int,
) -> None:
    before, after = b"".join(old), b"".join(new)
    before = before if old_ends else before[:-1]
    after = after if new_ends else after[:-1]
    sides = [data.split(b"\n") for data in (before, after)]
    lines = [
        [line + b"\n" for line in side[:-1]] + ([side[-1]] if side[-1] else []) for side in sides
    ]
    raw = difflib.diff_bytes(
        difflib.unified_diff, lines[0], lines[1], fromfile=b"a/x", tofile=b"b/x", n=context
    )
    text = b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in raw
    )
    path = tmp_path_factory.mktemp("diff") / "x.diff"
    path.write_bytes(text)
    if before == after:
        return
    (diff,) = read_diff(path)
    assert apply_diff(before, diff) == after
