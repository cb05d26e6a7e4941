"""Witnesses: RECORD's hashes and git's blobs vouch for the right bytes, and for no others."""

from __future__ import annotations

import csv
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatepatch.edits import sha256
from gatepatch.errors import TargetError
from gatepatch.witness import Witness, git_folder, git_witness, record_witness
from trees import git, make_distribution, make_repository, record_hash, write_files

BYTES = b"majors = [9, 10]\n"


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.lstat().st_mtime_ns, p.lstat().st_size) for p in sorted(folder.rglob("*"))}


# RECORD


def test_record_has_the_hash(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, "toy", "1", {"toy/a.py": BYTES, "toy/b.py": "x"})
    assert record_witness(info, "toy/a.py", tmp_path / "toy/a.py") == Witness(
        kind="record", sha256=sha256(BYTES)
    )


def test_record_keeps_vouching_for_what_was_there(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, "toy", "1", {"toy/a.py": BYTES})
    (tmp_path / "toy/a.py").write_bytes(b"majors = [9, 10, 12]\n")
    found = record_witness(info, "toy/a.py", tmp_path / "toy/a.py")
    assert found is not None
    assert found.sha256 == sha256(BYTES)


def lines(tmp_path: Path, text: str, name: str = "toy/a.py") -> Witness | None:
    """The witness of a file by a RECORD with this text."""
    info = make_distribution(tmp_path, "toy", "1", {name: BYTES})
    (info / "RECORD").write_bytes(text.encode())
    return record_witness(info, name, tmp_path / name)


RIGHT = Witness(kind="record", sha256=sha256(BYTES))
ENTRY = record_hash(BYTES)
OTHER = record_hash(b"other")


@pytest.mark.parametrize(
    "text",
    [
        f"toy/a.py,{ENTRY}\n",
        f"toy/a.py,{ENTRY}",
        f"x,,\r\ntoy/a.py,{ENTRY}\r\ny,,\r\n",
        f"x,,\r\ntoy/a.py,{ENTRY.partition(',')[0]}\r\ny,,\r\n",
        f"other/toy/a.py,{OTHER}\ntoy/a.py.bak,{OTHER}\ntoy/a.py,{ENTRY}\n",
        f"toy/a.pyc,{OTHER}\ntoy/a.py,{ENTRY}\n",
        f'"toy/a.py",{ENTRY}\n',
        f"toy/a.py,{ENTRY.partition(',')[0]}=,17\n",
    ],
    ids=["plain", "no end", "crlf", "no size", "similar before", "longer before", "quoted",
         "padded"],
)  # fmt: skip
def test_forms_of_a_record_line(tmp_path: Path, text: str) -> None:
    assert lines(tmp_path, text) == RIGHT


@pytest.mark.parametrize("name", ['toy/a,b".py', "toy/ä b.py"])
def test_names_that_need_care(tmp_path: Path, name: str) -> None:
    quoted = '"{}"'.format(name.replace('"', '""')) if "," in name else name
    assert lines(tmp_path, f"x,,\n{quoted},{ENTRY}\n", name) == RIGHT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "toy/a.py,,\n",
        "toy/a.py\n",
        "toy/a.py,sha256=,3\n",
        "toy/a.py,sha256=%%%,3\n",
        "toy/a.py,sha256=AAAA,3\n",
        f"toy/a.py,sha256={sha256(BYTES)},3\n",
        f"toy/a.py,nohash={ENTRY.partition('=')[2]}\n",
        "toy/a.py,shake_128=AAAA,3\n",
        f"./toy/a.py,{ENTRY}\n",
        f"toy/b.py,{ENTRY}\n",
    ],
)
def test_what_vouches_for_nothing(tmp_path: Path, text: str) -> None:
    assert lines(tmp_path, text) is None


@settings(max_examples=50)
@given(
    names=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1).filter(
            lambda name: name.splitlines() == [name]
        ),
        min_size=1,
        unique=True,
    )
)
def test_law_a_line_is_found_as_a_csv_reader_finds_it(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "RECORD"
        with record.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([name, *record_hash(name.encode()).split(",")] for name in names)
        for name in names:
            found = record_witness(Path(folder), name, record)
            assert found is not None
            assert found.sha256 == sha256(name.encode())


def test_no_record(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, "toy", "1", {"toy/a.py": BYTES}, record=False)
    assert record_witness(info, "toy/a.py", tmp_path / "toy/a.py") is None


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha384", "sha512", "blake2b"])
def test_another_algorithm_vouches_for_fitting_bytes_alone(tmp_path: Path, algorithm: str) -> None:
    assert lines(tmp_path, f"toy/a.py,{record_hash(BYTES, algorithm)}\n") == RIGHT
    wrong = lines(tmp_path, f"toy/a.py,{record_hash(b'other', algorithm)}\n")
    assert wrong is not None  # so a changed file is never called unwitnessed
    assert wrong.sha256 == f"{algorithm}:{hashlib.new(algorithm, b'other').hexdigest()}"


def test_another_algorithm_and_a_file_that_is_gone(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, "toy", "1", {"toy/a.py": BYTES})
    (info / "RECORD").write_text(f"toy/a.py,{record_hash(BYTES, 'sha512')}\n")
    (tmp_path / "toy/a.py").unlink()
    found = record_witness(info, "toy/a.py", tmp_path / "toy/a.py")
    assert found is not None
    assert found.sha256.startswith("sha512:")


# Git


def test_head_vouches_whatever_the_work_tree_and_the_index_have(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"toy/a.py": BYTES})
    write_files(repository, {"toy/a.py": "staged\n"})
    git(repository, "add", "-A")
    write_files(repository, {"toy/a.py": "edited\n"})
    found = git_witness(repository, "toy/a.py")
    assert found is not None
    assert (found.kind, found.sha256) == ("git", sha256(BYTES))
    assert found.read is not None
    assert found.read() == BYTES


@pytest.mark.parametrize("name", ["a b.py", "ä.py", "[a]*.py", ":a.py", "a\tb.py", "-a.py"])
def test_names_that_git_could_misread(tmp_path: Path, name: str) -> None:
    repository = make_repository(tmp_path / "r", {name: BYTES, "a.py": "no\n"})
    found = git_witness(repository, name)
    assert found is not None
    assert found.sha256 == sha256(BYTES)


def test_what_git_does_not_track(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"toy/a.py": BYTES})
    write_files(repository, {"toy/new.py": BYTES})
    git(repository, "add", "toy/new.py")
    for name in ("toy/new.py", "toy/gone.py", "toy"):
        assert git_witness(repository, name) is None


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write_files(tmp_path, {"a.py": BYTES})
    assert git_witness(tmp_path, "a.py") is None


def test_line_ends_as_git_checks_them_out(tmp_path: Path) -> None:
    repository = make_repository(
        tmp_path / "r", {".gitattributes": "*.cuh text eol=crlf\n", "a.cuh": "a\r\nb\r\n"}
    )
    assert git(repository, "cat-file", "-s", "HEAD:a.cuh") == "4"
    found = git_witness(repository, "a.cuh")
    assert found is not None
    assert found.sha256 == sha256((repository / "a.cuh").read_bytes()) == sha256(b"a\r\nb\r\n")


def test_line_ends_by_configuration(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "a\nb\n"})
    git(repository, "config", "core.autocrlf", "true")
    (repository / "a.py").unlink()
    git(repository, "checkout", "--", "a.py")
    found = git_witness(repository, "a.py")
    assert found is not None
    assert found.sha256 == sha256((repository / "a.py").read_bytes()) == sha256(b"a\r\nb\r\n")


def test_a_tracked_link_is_vouched_for_by_what_stands_behind_it(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"include/x.cuh": BYTES})
    (repository / "data").mkdir()
    (repository / "data" / "x.cuh").symlink_to("../include/x.cuh")
    (repository / "data" / "again").symlink_to("x.cuh")
    (repository / "data" / "out").symlink_to("../../elsewhere")
    (repository / "data" / "absolute").symlink_to("/etc/hostname")
    (repository / "data" / "loop").symlink_to("loop")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "links")
    for name in ("data/x.cuh", "data/again"):
        found = git_witness(repository, name)
        assert found is not None
        assert found.sha256 == sha256(BYTES)
    for name in ("data/out", "data/absolute", "data/loop"):
        assert git_witness(repository, name) is None


def test_a_file_of_a_submodule_is_not_its_superprojects(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"x.cuh": BYTES})
    outer = make_repository(tmp_path / "outer", {"a.py": BYTES})
    allow = ("-c", "protocol.file.allow=always")
    git(outer, *allow, "submodule", "--quiet", "add", str(inner), "deps/inner")
    git(outer, "commit", "-q", "-m", "submodule")
    assert git_witness(outer, "deps/inner/x.cuh") is None
    assert git_witness(outer, "deps/inner") is None
    found = git_folder(outer / "deps" / "inner")
    assert found == (outer / "deps" / "inner", outer / ".git" / "modules" / "deps" / "inner")
    witness = git_witness(found[0], "x.cuh")
    assert witness is not None
    assert witness.sha256 == sha256(BYTES)


def test_reading_writes_nothing_and_runs_no_hook(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"toy/a.py": BYTES})
    trap = f"#!/bin/sh\ntouch {tmp_path}/ran\n"
    for name in ("post-index-change", "post-checkout", "fsmonitor"):
        write_files(repository, {f".git/hooks/{name}": trap})
        (repository / ".git" / "hooks" / name).chmod(0o755)
    git(repository, "config", "core.fsmonitor", ".git/hooks/fsmonitor")
    write_files(repository, {"toy/a.py": "edited\n"})  # the index's cached stat is wrong now
    before = snapshot(repository)
    assert git_witness(repository, "toy/a.py") is not None
    assert snapshot(repository) == before
    assert not (tmp_path / "ran").exists()


def test_the_callers_git_variables_do_not_lead_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": BYTES})
    other = make_repository(tmp_path / "other", {"a.py": "other\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    found = git_witness(repository, "a.py")
    assert found is not None
    assert found.sha256 == sha256(BYTES)


@pytest.mark.skipif(os.geteuid() != 0, reason="another owner takes root to make")
def test_a_repository_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "a repo", {"a.py": BYTES})
    for path in (repository, repository / ".git"):
        os.chown(path, 1234, 1234)
    with pytest.raises(TargetError) as refused:
        git_witness(repository, "a.py")
    assert str(refused.value) == (
        f"{repository}: git will not read a repository that belongs to another user, so nothing "
        "vouches for its files\n"
        f"  if you trust it: git config --global --add safe.directory '{repository}'"
    )
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(repository))
    assert git_witness(repository, "a.py") is not None
    monkeypatch.delenv("GIT_CONFIG_COUNT")
    hint = refused.value.problems[0].hint
    assert hint is not None
    subprocess.run(hint.partition(": ")[2], shell=True, check=True)  # the command as it is typed
    assert git_witness(repository, "a.py") is not None


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": BYTES})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_witness(repository, "a.py") is None


def test_a_worktree_has_its_own_git_folder(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a/b.py": BYTES})
    worktree = tmp_path / "w"
    git(repository, "worktree", "add", "-q", str(worktree), "-b", "side")
    assert git_folder(worktree / "a") == (worktree, repository / ".git" / "worktrees" / "w")
    assert git_folder(repository / "a") == (repository, repository / ".git")
    assert git_witness(worktree, "a/b.py") is not None


def test_what_is_no_repository(tmp_path: Path) -> None:
    write_files(tmp_path, {"stale/.git": "gitdir: /nowhere/at/all\n", "odd/.git": "what\n"})
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    for name in ("stale", "odd", "empty"):
        assert git_folder(tmp_path / name) is None
