"""What ``doctor`` says of an environment, its exit codes, and that it only looks."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gatepatch
from changing import root_of
from crashing import SignalAt, in_child
from doctors import APPLY, OFF, SET, doctor, edit, of, of_set, problems, state_dir
from gatepatch import cli, locks
from gatepatch.doctoring import check, examine, left
from gatepatch.doctoring.check import Check
from gatepatch.errors import GatepatchError, Problem, TargetError, UsageError
from lookalikes import COMM, make_server
from trees import make_environment, python_of, site_of


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


@pytest.fixture
def applied(server: Path) -> Path:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    return server


def stats(folder: Path) -> Iterator[tuple[Path, int, int, int]]:
    """Everything in a folder, with inode and times."""
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        yield path, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


# -- where all is well --


def test_an_applied_set_is_healthy_and_nothing_is_written(applied: Path, home: Path) -> None:
    before = list(stats(applied)), list(stats(home))
    found = doctor(applied)
    assert (list(stats(applied)), list(stats(home))) == before
    assert (found.healthy, found.pending, problems(found)) == (True, False, [])
    assert (found.prefix, found.python, found.running) == (
        str(applied),
        f"{python_of(applied)}3",
        False,
    )
    assert of(found, "environment")[0][1].endswith(f"; gatepatch runs in {sys.prefix}")
    assert of(found, "interrupted") == [("ok", "no change and no trial was left half way", None)]
    words = f"1 set recorded as applied: {SET}; every original is kept"
    assert of(found, "state") == [("ok", words, None)]
    assert of(found, "distribution") == [
        ("ok", f"flashinfer-python 0.6.3, in {site_of(applied)}", None),
        ("ok", f"sglang 0.5.9, in {site_of(applied)}", None),
    ]
    assert of_set(found) == ("ok", "applied, 4 files", None)
    assert of_set(found, OFF)[0] == "ok"
    words = "4 patched files, none shadowed, no stale bytecode"
    assert of(found, "import") == [("ok", words, None)]
    assert of(found, "pins")[0] == ("ok", f"{SET}: flashinfer-python 0.6.3, sglang 0.5.9", None)
    assert of(found, "jit-cache") == [("ok", "no JIT cache is there yet", None)]


class Writing:
    """A step that is told of every lock and of everything that would be written."""

    def __init__(self) -> None:
        self.fired = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not isinstance(args[0], int) and args[0] != os.devnull:  # pipes to children
            self.fired = True


def test_no_lock_is_taken_and_no_file_opened_for_writing(applied: Path) -> None:
    assert in_child(lambda: doctor(applied), Writing()) == (0, False)
    locking = Writing()
    assert in_child(partial(gatepatch.revert, prefix=applied), locking)[1]  # it can be seen


def test_sets_that_are_not_applied_are_no_problem(server: Path) -> None:
    found = doctor(server)
    assert of_set(found) == ("ok", "not applied", None)
    assert of(found, "state") == [("ok", "no set is recorded as applied", None)]
    assert of(found, "import") == []
    assert found.healthy


def test_the_environment_that_gatepatch_runs_in() -> None:
    found = gatepatch.doctor(assume="sm_120")
    assert found.running
    assert of(found, "environment")[0][1].endswith("; gatepatch runs in it")


# -- the environment --


def test_an_environment_whose_interpreter_does_not_run(applied: Path) -> None:
    for python in (applied / "bin").glob("python*"):
        python.unlink()
    found = doctor(applied)
    ((outcome, words, command),) = of(found, "environment")
    assert (outcome, command) == ("note", "name one that runs: --python EXE")
    assert "no interpreter of it runs here" in words
    assert of(found, "import")[0][0] == "note"
    assert found.healthy


def test_an_environment_without_what_sets_name(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    found = doctor(prefix)
    ((outcome, words, command),) = of(found, "distribution")
    assert (outcome, words) == (
        "note",
        f"none that a set names is installed in {prefix}: flashinfer-python, sglang",
    )
    assert command is not None
    assert "--python EXE or --prefix DIR" in command
    assert of(found, "writable") == []
    words = "not for this environment: flashinfer-python is not installed; sglang is not installed"
    assert of_set(found) == ("ok", words, None)


@pytest.mark.parametrize("name", [".", ".gatepatch", "flashinfer/jit"])
def test_folders_that_cannot_be_written(
    applied: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut = site_of(applied) / name
    monkeypatch.setattr(
        "gatepatch.doctoring.place.os.access",
        lambda path, mode: Path(path) != shut or not mode & os.W_OK,
    )
    found = doctor(applied)
    ((outcome, words, command),) = of(found, "writable")
    assert outcome == "problem"
    assert words.startswith(f"{shut}: ")
    assert "cannot write, " in words
    assert command == "run it as the owner of the files"
    assert not found.healthy


def test_a_user_without_a_name(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    ((outcome, words, _),) = of(doctor(server), "writable")
    assert (outcome, words) == ("ok", f"{site_of(server)}, by user {os.getuid()}")


def test_a_read_only_file_system(applied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "gatepatch.doctoring.place.os.access", lambda path, mode: mode == os.R_OK | os.X_OK
    )
    monkeypatch.setattr(
        "gatepatch.doctoring.place.os.statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY)
    )
    ((outcome, words, command),) = of(doctor(applied), "writable")
    assert (outcome, words.partition(": ")[2]) == ("problem", "the file system is read-only")
    assert " more: " in words or words.startswith(str(site_of(applied)))
    assert command is not None
    assert command.startswith("the file system is read-only: do this where the image is built")


# -- what was left --


def test_a_killed_apply_exits_4_and_the_files_are_nobody_s_word(
    server: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apply = partial(gatepatch.apply, SET, prefix=server, assume="sm_120")
    number = 20
    while not (state_dir(server) / "journal.json").exists():
        assert in_child(apply, SignalAt(number))[0] < 0
        number += 5
    before = list(stats(server))
    found = doctor(server)
    assert list(stats(server)) == before
    words = f"an interrupted change of 4 files in {site_of(server)} is to be put back"
    assert of(found, "interrupted") == [("problem", words, "gatepatch recover")]
    assert found.pending
    words = "not looked at: an interrupted change is to be settled first"
    assert of(found, "set") == [("note", words, None)]
    assert cli.main(["doctor", "--prefix", str(server), "--assume", "sm_120"]) == 4
    out = capsys.readouterr().out
    assert f"gatepatch recover --prefix {server}\n" in out
    gatepatch.recover(prefix=server)
    assert doctor(server).healthy


def test_a_damaged_journal_is_pending_too(applied: Path) -> None:
    (state_dir(applied) / "journal.json").write_text("{")
    found = doctor(applied)
    ((outcome, words, command),) = of(found, "interrupted")
    assert (outcome, found.pending) == ("problem", True)
    assert "the journal of an interrupted change cannot be read" in words
    assert command is not None
    assert command.startswith("upgrade gatepatch; ")
    assert of(found, "patch-set")[0][0] == "ok"
    assert of(found, "import") == of(found, "prebuilt") == []


def test_a_change_that_goes_on_is_to_be_waited_for(
    applied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "process 4242 is changing 4 files right now"
    monkeypatch.setattr("gatepatch.journal.pending", lambda root: line)
    monkeypatch.setattr("gatepatch.locks.holder", lambda lock: 4242)
    found = doctor(applied)
    waiting = "wait for it; to see what it is: ps -fp 4242"
    assert of(found, "interrupted") == [("problem", line, waiting)]
    assert of(found, "lock") == []


MARK: dict[str, Any] = {
    "schema": 1,
    "id": "one",
    "name": SET,
    "state": None,
    "jit_roots": [],
    "process": 4242,
    "began": "2026-11-30T09:00:00+00:00",
}


def mark(prefix: Path) -> Path:
    """Leave the mark of a trial."""
    path, folder = site_of(prefix), state_dir(prefix)
    root = {"path": str(path), "state_dir": str(folder), "kind": "site", "repository": False}
    (folder / "trial.json").write_text(json.dumps({**MARK, "root": root, "roots": [root]}))
    return folder / "trial.json"


def test_a_killed_trial(applied: Path) -> None:
    mark(applied)
    ((outcome, words, command),) = of(doctor(applied), "interrupted")
    assert (outcome, command) == ("problem", "gatepatch recover")
    assert words.startswith(f"a trial of {SET}, begun 2026-11-30T09:00:00+00:00, was killed")


def test_a_killed_trial_of_several_roots_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = (root_of(tmp_path / "a"), root_of(tmp_path / "b"))
    monkeypatch.setattr("gatepatch.trialmark.pending", lambda root: "killed: gatepatch recover")
    subject: Any = SimpleNamespace(workspace=SimpleNamespace(roots=lambda: roots))
    (told,) = left.interrupted(subject)
    assert (told.found, told.next) == ("killed", "gatepatch recover")


def test_a_running_trial_is_a_note(applied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark(applied)
    monkeypatch.setattr("gatepatch.trialmark._is_held", lambda path: True)
    found = doctor(applied)
    ((outcome, words, command),) = of(found, "trial")
    assert outcome == "note"
    assert words.startswith(f"process 4242 runs a trial of {SET} here")
    assert command == "wait for it, or interrupt it: it puts everything back"
    assert found.healthy


def test_a_held_lock_is_a_note_that_says_who(applied: Path) -> None:
    with locks.held([state_dir(applied)], time.monotonic() + 5, lambda: None):
        found = doctor(applied)
    ((outcome, words, command),) = of(found, "lock")
    assert (outcome, words) == (
        "note",
        f"{state_dir(applied) / 'lock'}: process {os.getpid()} holds it",
    )
    assert command == f"wait for it; to see what it is: ps -fp {os.getpid()}"
    assert of(doctor(applied), "lock") == []


@pytest.mark.parametrize("text", ['{"schema": 9}', "", "[]"])
def test_a_state_that_cannot_be_read(applied: Path, text: str) -> None:
    (state_dir(applied) / "state.json").write_text(text)
    found = doctor(applied)
    ((outcome, words, command),) = of(found, "state")
    assert outcome == "problem"
    assert words.startswith(f"{state_dir(applied) / 'state.json'}: the state cannot be read: ")
    assert command is not None
    assert "upgrade gatepatch" in command
    assert of(found, "set") == [("note", "not looked at: a state cannot be read", None)]
    assert (problems(found), found.pending) == (["state"], False)


def test_originals_that_are_lost_are_said_for_each_distribution(applied: Path) -> None:
    for blob in (state_dir(applied) / "store").iterdir():
        blob.write_bytes(b"damaged")
    found = doctor(applied)
    first, second = of(found, "state")
    assert first[1].startswith(
        f"{state_dir(applied)}: the originals of 2 applied files of flashinfer-python are missing "
        "or damaged, and a revert would be refused: "
    )
    assert second[1].endswith(" and 1 more")
    assert [shlex.split(str(each[2]))[-1] for each in (first, second)] == [
        "flashinfer-python==0.6.3",
        "sglang==0.5.9",
    ]


def test_a_state_that_is_gone_is_recorded_again_by_its_command(applied: Path) -> None:
    (state_dir(applied) / "state.json").unlink()
    outcome, words, command = of_set(doctor(applied))
    assert (outcome, command) == ("problem", APPLY)
    assert words == "applied, and the state that knew of it is lost; this records it again"
    gatepatch.apply(SET, prefix=applied, assume="sm_120")
    assert doctor(applied).healthy


# -- faults --


FAULTS: dict[str, tuple[Exception, str, str]] = {
    "its own": (
        KeyError("odd"),
        "could not be looked at: KeyError: 'odd'",
        "report it, with what this prints: gatepatch doctor --json",
    ),
    "the system's": (
        PermissionError(errno.EACCES, "Permission denied", "/srv/x"),
        "could not be looked at: PermissionError: [Errno 13] Permission denied: '/srv/x'",
        "run it as the owner of the files",
    ),
    "a refusal": (
        TargetError(Problem(message="is odd", where="/srv/x", hint="mend it")),
        "/srv/x: is odd",
        "mend it",
    ),
}


@pytest.mark.parametrize("number", range(len(examine.CHECKS)))
@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_in_one_check_is_said_and_the_others_go_on(
    case: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, words, command = FAULTS[case]
    whole = {name: Check(name=name, outcome="ok", found="right") for name, _ in examine.CHECKS}

    def right(name: check.CheckName) -> Callable[[object], Iterator[Check]]:
        return lambda subject: iter([whole[name]])

    def wrong(subject: object) -> Iterator[Check]:
        yield from [whole[name]]
        raise error

    name = examine.CHECKS[number][0]
    steps = [(other, right(other)) for other, _ in examine.CHECKS]
    steps[number] = (name, wrong)
    monkeypatch.setattr(examine, "CHECKS", tuple(steps))
    found = gatepatch.doctor(assume="sm_120")
    expected = list(whole.values())
    expected.insert(number + 1, Check(name=name, outcome="problem", found=words, next=command))
    assert list(found.checks) == expected


# -- the command line --


def main(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = cli.main(["doctor", *map(str, words)])
    return (code, *capsys.readouterr())


def test_words_exit_codes_and_commands_as_they_have_to_be_typed(
    applied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = tmp_path / "own sets"
    sets.mkdir()
    words = ("--prefix", applied, "--patches", sets, "--assume", "sm_120")
    code, out, err = main(capsys, *words)
    assert (code, err) == (0, "")
    assert f"ok    set           {SET}: applied, 4 files\n" in out
    assert out.splitlines()[-1].startswith("0 problems, ")
    assert "\x1b" not in out
    edit(site_of(applied) / COMM)
    code, out, err = main(capsys, *words)
    assert (code, err) == (1, "")
    where = f"--prefix {applied} --patches '{sets}'"
    revert = f"gatepatch revert {where} {SET} --discard-foreign, then gatepatch apply {where} {SET}"
    assert f"                       {revert}\n" in out
    last = out.splitlines()[-1]
    assert last.startswith("1 problem, ")
    assert last.endswith(f"; first: {revert}")


def test_one_document(applied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--prefix", applied, "--assume", "sm_120", "--json")
    code, out, _ = main(capsys, *words)
    document = json.loads(out)
    assert (code, document["schema"], document["command"]) == (0, 1, "doctor")
    assert (document["healthy"], document["pending"]) == (True, False)
    assert (document["prefix"], document["version"]) == (
        str(applied),
        "{}.{}".format(*sys.version_info),
    )
    assert {tuple(row) for row in document["checks"]} == {("name", "outcome", "found", "next")}
    edit(site_of(applied) / COMM)
    code, out, _ = main(capsys, *words)
    document = json.loads(out)
    assert (code, document["healthy"]) == (1, False)
    ((command,),) = ([row["next"]] for row in document["checks"] if row["outcome"] == "problem")
    assert f"gatepatch apply --prefix {applied} {SET} --accept-current" in command


@pytest.mark.parametrize(
    "words",
    [
        ("--patches", "/nowhere"),
        ("--prefix", "/nowhere"),
        ("--jit-root", "/nowhere"),
        ("--assume", "ten"),
    ],
)
def test_what_is_named_wrongly_exits_2(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = main(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    with pytest.raises(UsageError):
        gatepatch.doctor(
            **{  # type: ignore[arg-type]
                words[0].strip("-").replace("jit-root", "jit_roots"): [words[1]]
                if words[0] in ("--patches", "--jit-root")
                else words[1]
            }
        )


def test_an_environment_that_cannot_be_asked_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = main(capsys, "--prefix", tmp_path)
    assert (code, out) == (1, "")
    assert "is no Python environment" in err
    with pytest.raises(GatepatchError):
        gatepatch.doctor(prefix=tmp_path)
