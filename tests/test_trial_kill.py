"""A trial that is interrupted or killed leaves the environment as it was before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gatepatch
from benchmarks import (
    SET,
    WITH,
    installed,
    is_alive,
    make_split_server,
    number_in,
    script,
    throughput,
    wait_for,
    write_toy_set,
)
from crashing import SignalAt, counting, in_child
from gatepatch import cli, trialmark
from gatepatch.errors import PendingError
from lookalikes import COMM, COMMUNICATOR, make_server
from trees import git, site_of

SLEEPS = f"{throughput('100', '110')}\nif {WITH}; then echo $PPID > $HERE/keeper; echo $$ > $HERE/pid; sleep 100; fi"


class Trial:
    """A trial in a process of its own, whose benchmark sleeps with the set."""

    def __init__(self, prefix: Path, folder: Path, text: str = SLEEPS):
        self.prefix = prefix
        self.folder = folder
        self.before = installed(prefix)
        command = [sys.executable, "-m", "gatepatch", "trial", SET, "--prefix", str(prefix)]
        command += [
            "--assume",
            "sm_120",
            "--metric",
            "throughput: ([0-9.]+)",
            "--warmup",
            "0",
            "--",
        ]
        self.process = subprocess.Popen(
            [*command, *script(folder, text)], stderr=subprocess.PIPE, text=True
        )
        self.benchmark = number_in(folder / "pid")
        self.keeper = number_in(folder / "keeper")

    def is_as_before(self) -> bool:
        mark = site_of(self.prefix) / ".gatepatch" / trialmark.NAME
        try:
            return installed(self.prefix) == self.before and not mark.exists()
        except FileNotFoundError:  # looked at while it was being put back
            return False

    def kill_without_a_keeper(self) -> None:
        """Kill everything of gatepatch's, so that nothing is left to put anything back."""
        os.kill(self.keeper, signal.SIGSTOP)
        self.process.kill()
        self.process.wait()
        os.kill(self.keeper, signal.SIGKILL)
        wait_for(lambda: not is_alive(self.keeper))


@pytest.fixture(autouse=True)
def _toy_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEPATCH_PATCHES", str(write_toy_set(tmp_path / "toy")))


@pytest.fixture(params=["pristine", "applied"])
def server(request: pytest.FixtureRequest, tmp_path: Path, _toy_set: None) -> Path:
    """An environment, in which the set may have been applied before the trial."""
    prefix = make_server(tmp_path)
    if request.param == "applied":
        gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    return prefix


@pytest.fixture
def trial(server: Path, tmp_path: Path) -> Iterator[Trial]:
    trial = Trial(server, tmp_path)
    yield trial
    trial.process.wait()
    assert trial.process.stderr is not None
    trial.process.stderr.close()
    assert not is_alive(trial.benchmark)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_everything_is_put_back(
    trial: Trial, signum: signal.Signals, code: int
) -> None:
    trial.process.send_signal(signum)
    _, err = trial.process.communicate()
    assert trial.process.returncode == code
    assert f"interrupted by signal {signum}; nothing was changed" in err
    assert trial.is_as_before()
    assert not is_alive(trial.benchmark)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGHUP])
def test_a_kill_of_gatepatch_ends_the_benchmark_and_everything_is_put_back(
    trial: Trial, signum: signal.Signals
) -> None:
    trial.process.send_signal(signum)
    wait_for(trial.is_as_before)
    assert trial.process.wait() == -signum
    wait_for(lambda: not is_alive(trial.benchmark))


def test_a_kill_of_the_keeper_too_is_settled_by_the_next_command(
    trial: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    trial.kill_without_a_keeper()
    wait_for(lambda: not is_alive(trial.benchmark))
    assert not trial.is_as_before()
    assert cli.main(["status", "--prefix", str(trial.prefix)]) == 4
    err = capsys.readouterr().err
    assert f"a trial of {SET}, begun " in err
    assert "was killed: what it changed is to be put back: gatepatch recover" in err
    assert cli.main(["recover", "--prefix", str(trial.prefix)]) == 0
    assert capsys.readouterr().out.startswith(f"rolled-back: {site_of(trial.prefix)}\n")
    assert trial.is_as_before()
    assert cli.main(["status", "--prefix", str(trial.prefix)]) == 0


def test_a_killed_trial_is_settled_by_a_revert(trial: Trial) -> None:
    trial.kill_without_a_keeper()
    gatepatch.revert(prefix=trial.prefix)
    assert not (site_of(trial.prefix) / ".gatepatch" / trialmark.NAME).exists()
    assert gatepatch.status(SET, prefix=trial.prefix).outcome == "pristine"


def test_a_file_that_was_edited_meanwhile_is_not_written_over(trial: Trial) -> None:
    trial.kill_without_a_keeper()
    comm = site_of(trial.prefix) / COMM
    patched = comm.read_bytes()
    comm.write_bytes(b"# by hand\n")
    for command in (gatepatch.recover, gatepatch.revert):
        with pytest.raises(PendingError, match="cannot be put back") as caught:
            command(prefix=trial.prefix)
        assert "put the file back and run: gatepatch recover" in str(caught.value)
    assert comm.read_bytes() == b"# by hand\n"
    assert gatepatch.status(prefix=trial.prefix).pending is not None
    comm.write_bytes(patched)
    gatepatch.recover(prefix=trial.prefix)
    assert trial.is_as_before()


def test_a_keeper_that_is_killed_ends_the_trial(trial: Trial) -> None:
    os.kill(trial.keeper, signal.SIGKILL)
    _, err = trial.process.communicate()
    assert trial.process.returncode == 1
    assert "the process that watches the benchmark was killed" in err
    assert trial.is_as_before()


def killed_at_each_step(server: Path, folder: Path, stride: int) -> None:
    """Kill a trial at its steps, one after the other, and recover each time."""
    before = installed(server)
    command = script(folder, throughput("100", "100"))

    def run() -> None:
        gatepatch.trial(
            SET,
            command,
            prefix=server,
            assume="sm_120",
            metric="throughput: ([0-9.]+)",
            repeat=1,
            warmup=0,
            output=folder / "out",
        )

    for number in counting():
        status, _ = in_child(run, SignalAt(number * stride))
        gatepatch.recover(prefix=server)
        kept = installed(server)
        if status == 0:
            assert "[9, 10]" in kept["flashinfer/jit/comm.py"].decode()
            return
        assert status == -signal.SIGKILL
        assert kept == before
        assert gatepatch.status(prefix=server).pending is None


def test_a_kill_at_any_step_is_settled_by_recover(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    killed_at_each_step(server, tmp_path, 41)


@pytest.mark.slow
def test_a_kill_at_every_step_is_settled_by_recover(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    killed_at_each_step(server, tmp_path, 1)


def test_a_killed_trial_over_a_checkout_and_a_site_is_settled_in_both(tmp_path: Path) -> None:
    prefix, checkout = make_split_server(tmp_path)
    trial = Trial(prefix, tmp_path)
    assert git(checkout, "status", "--short") == f"M python/{COMMUNICATOR}"
    trial.kill_without_a_keeper()
    assert trial.process.stderr is not None
    trial.process.stderr.close()
    marked = [site_of(prefix) / ".gatepatch", checkout / ".git" / ".gatepatch"]
    assert [(folder / trialmark.NAME).exists() for folder in marked] == [True, True]
    assert {done.root for done in gatepatch.recover(prefix=prefix)} == {site_of(prefix), checkout}
    assert trial.is_as_before()
    assert git(checkout, "status", "--short") == ""
    assert [folder.exists() for folder in marked] == [False, False]
