"""The state folder: the state document, and content by its hash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepatch import store
from gatepatch.edits import sha256
from gatepatch.errors import PendingError


@given(blobs=st.lists(st.binary(max_size=40), max_size=5))
def test_what_was_added_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, blobs: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("state")
    store.add(folder / store.STORE, blobs)
    assert store.digests(folder) == {sha256(data) for data in blobs}
    assert [store.read_blob(folder, sha256(data)) for data in blobs] == blobs
    assert store.missing(folder, blobs) == {}
    store.drop(folder, store.digests(folder))
    assert list(folder.iterdir()) == []


def test_nothing_makes_no_folder(tmp_path: Path) -> None:
    store.add(tmp_path / store.STORE, [])
    assert list(tmp_path.iterdir()) == []
    assert store.digests(tmp_path) == set()


def test_what_is_whole_is_not_written_again_and_what_is_damaged_is(tmp_path: Path) -> None:
    folder = tmp_path / store.STORE
    store.add(folder, [b"one", b"two"])
    one, two = folder / sha256(b"one"), folder / sha256(b"two")
    two.write_bytes(b"rotten")
    inode = one.stat().st_ino
    assert store.missing(tmp_path, [b"one", b"two"]) == {sha256(b"two"): b"two"}
    store.add(folder, [b"one", b"two"])
    assert one.stat().st_ino == inode
    assert two.read_bytes() == b"two"


def test_dropping_takes_what_is_named_and_unfinished_writes(tmp_path: Path) -> None:
    store.add(tmp_path / store.STORE, [b"one", b"two"])
    (tmp_path / store.STORE / ".unfinished.123").write_bytes(b"")
    store.drop(tmp_path, [sha256(b"one"), sha256(b"never there")])
    assert store.digests(tmp_path) == {sha256(b"two")}


@pytest.mark.parametrize(
    ("content", "words"), [(None, "is not in the store"), (b"rotten", "is damaged in the store")]
)
def test_a_backup_that_cannot_be_had(tmp_path: Path, content: bytes | None, words: str) -> None:
    digest = sha256(b"wanted")
    path = tmp_path / store.STORE / digest
    if content is not None:
        path.parent.mkdir()
        path.write_bytes(content)
    with pytest.raises(PendingError) as caught:
        store.read_blob(tmp_path, digest)
    assert str(caught.value) == (
        f"{path}: the backup {digest[:12]}… {words}\n"
        "  reinstall the package that the file belongs to"
    )


def test_the_state_document(tmp_path: Path) -> None:
    assert store.read_state(tmp_path) is None
    store.stage_state(tmp_path, b"first")
    assert store.read_state(tmp_path) is None
    store.put_state(tmp_path, b"first")
    store.put_state(tmp_path, b"first")  # as a recovery may do again
    assert store.read_state(tmp_path) == b"first"
    store.stage_state(tmp_path, b"left over")
    store.put_state(tmp_path, b"second")
    assert store.read_state(tmp_path) == b"second"
    store.stage_state(tmp_path, None)
    store.put_state(tmp_path, None)
    store.put_state(tmp_path, None)
    assert store.read_state(tmp_path) is None
