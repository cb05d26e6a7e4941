"""Single files: content, mode, owner, attributes, links and mtimes."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepatch.edits import sha256
from gatepatch.files import Image, image, read, remove, stage, sync_folder, write_new


def test_an_image_is_content_and_link(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to("./file")
    assert image(file) == Image(sha256=sha256(b"x"))
    assert image(link) == Image(sha256=sha256(b"x"), link="./file")


def test_what_is_not_there_has_no_image(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").write_bytes(b"")
    for name in ("nothing", "dangling", "file/inside", "no/folder"):
        assert image(tmp_path / name) is None
        assert read(tmp_path / name) is None


def test_staging_keeps_mode_owner_and_attributes(tmp_path: Path) -> None:
    path, staged = tmp_path / "file", tmp_path / ".staged"
    path.write_bytes(b"old")
    path.chmod(0o4751)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
        path.chmod(0o4751)
    os.setxattr(path, "user.note", b"\x00\xff")
    stage(path, staged, b"new")
    assert staged.read_bytes() == b"new"
    assert path.read_bytes() == b"old"
    old, new = path.stat(), staged.stat()
    assert (new.st_mode, new.st_uid, new.st_gid) == (old.st_mode, old.st_uid, old.st_gid)
    assert os.getxattr(staged, "user.note") == b"\x00\xff"


def test_a_read_only_file_is_replaced_and_stays_read_only(tmp_path: Path) -> None:
    path, staged = tmp_path / "file", tmp_path / ".staged"
    path.write_bytes(b"old")
    path.chmod(0o444)
    stage(path, staged, b"new")
    staged.replace(path)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o444


def test_no_attribute_of_the_file_system_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, staged = tmp_path / "file", tmp_path / ".staged"
    path.write_bytes(b"old")

    def unsupported(path: Path) -> list[str]:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "listxattr", unsupported)
    stage(path, staged, b"new")
    assert staged.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("name", "copied"),
    [("user.x", True), ("security.selinux", True), ("security.ima", False)],
)
def test_which_attributes_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, copied: bool
) -> None:
    path, staged = tmp_path / "file", tmp_path / ".staged"
    path.write_bytes(b"old")
    asked: list[str] = []

    def refuse(target: object, name: str, value: bytes) -> None:
        asked.append(name)
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "listxattr", lambda path: [name])
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"")
    monkeypatch.setattr(os, "setxattr", refuse)
    if name == "user.x":  # a label may be the kernel's own affair, the user's own data is not
        with pytest.raises(PermissionError) as caught:
            stage(path, staged, b"new")
        assert caught.value.filename == str(path)
    else:
        stage(path, staged, b"new")
    assert asked == [name] * copied


@given(old=st.integers(-(10**10), 10**10), known=st.integers(-(10**10), 10**10))
def test_an_mtime_is_later_than_everything(
    tmp_path_factory: pytest.TempPathFactory, old: int, known: int
) -> None:
    folder = tmp_path_factory.mktemp("mtime")
    path, staged = folder / "file", folder / ".staged"
    path.write_bytes(b"old")
    now = time.time_ns()
    os.utime(path, ns=(now + old, now + old))
    stage(path, staged, b"new", newer_than=now + known)
    mtime = staged.stat().st_mtime_ns
    assert mtime // 10**9 > now // 10**9
    assert mtime // 10**9 > (now + old) // 10**9
    assert mtime // 10**9 > (now + known) // 10**9
    assert mtime - max(now, now + old, now + known) < 2 * 10**9


def test_a_link_is_put_back_while_it_still_leads_there(tmp_path: Path) -> None:
    path, staged = tmp_path / "file", tmp_path / ".staged"
    path.write_bytes(b"patched")
    (tmp_path / "cached").write_bytes(b"original")
    stage(path, staged, b"original", link="./cached")
    assert os.readlink(staged) == "./cached"  # noqa: PTH115
    for broken in ("gone", "file"):
        staged.unlink()
        stage(path, staged, b"original", link=broken)
        assert not staged.is_symlink()
        assert staged.read_bytes() == b"original"


def test_staging_never_overwrites(tmp_path: Path) -> None:
    path, staged = tmp_path / "file", tmp_path / ".staged"
    path.write_bytes(b"old")
    staged.write_bytes(b"someone's")
    with pytest.raises(FileExistsError):
        stage(path, staged, b"new")
    assert staged.read_bytes() == b"someone's"


def test_a_full_device_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        stage(path, tmp_path / ".staged", b"new")
    assert caught.value.filename == str(path)
    with pytest.raises(OSError, match="No space left") as caught:
        write_new(path, b"new")
    assert caught.value.filename == str(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".staged", "file"]
    assert path.read_bytes() == b"old"


def test_removing_what_is_not_there_asks_nobody(tmp_path: Path) -> None:
    remove(tmp_path / "nothing")
    (tmp_path / "dangling").symlink_to("nowhere")
    remove(tmp_path / "dangling")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_synced_is_let_be(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    sync_folder(tmp_path / "nothing")
