"""Trials with synthetic benchmarks of every kind: what is decided, and the environment's bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
    write_toy_set,
)
from gatepatch import api, cli, trialmark
from gatepatch.errors import (
    GatepatchError,
    LockTimeoutError,
    PendingError,
    RefusedError,
    StaleError,
    TransactionError,
    TrialError,
)
from gatepatch.results import Outcome
from gatepatch.trials import trial as trials
from gatepatch.trials.bench import Bench as RealBench
from gatepatch.trials.record import Trial
from gatepatch.trials.trial import Teller
from lookalikes import COMM, COMMUNICATOR, HEADER, make_server
from test_sets_together import text_edit, write_set
from trees import git, site_of

METRIC = r"throughput: ([0-9.]+)"
STEADY = "100 101 100.5"
Ran = tuple[int, str, str]


@pytest.fixture(autouse=True)
def _toy_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEPATCH_PATCHES", str(write_toy_set(tmp_path / "toy")))


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command line here; return its exit code, stdout and stderr."""

    def main(*words: str | Path) -> Ran:
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return main


class Bench:
    """An environment, and trials in it."""

    def __init__(self, prefix: Path, folder: Path):
        self.prefix = prefix
        self.folder = folder
        self.pristine = installed(prefix)

    def trial(self, text: str, **options: Any) -> Trial:
        defaults: dict[str, Any] = {"metric": METRIC, "repeat": 3, "warmup": 0, "assume": "sm_120"}
        command = script(self.folder, text)
        return gatepatch.trial(SET, command, prefix=self.prefix, **(defaults | options))

    def is_as_before(self) -> bool:
        return installed(self.prefix) == self.pristine

    def outcome(self) -> Outcome:
        return gatepatch.status(SET, prefix=self.prefix).outcome


@pytest.fixture
def bench(server: Path, tmp_path: Path) -> Iterator[Bench]:
    yield Bench(server, tmp_path)
    assert not (site_of(server) / ".gatepatch" / trialmark.NAME).exists()


def test_a_gain_keeps_the_set(bench: Bench) -> None:
    trial = bench.trial(throughput(STEADY, "110 111 110.5"))
    assert trial.outcome == "applied"
    assert trial.decision is not None
    assert trial.decision.verdict == "gain"
    assert trial.decision.gain == pytest.approx(0.0995, abs=0.006)
    assert bench.outcome() == "applied"
    assert gatepatch.revert(prefix=bench.prefix).outcome == "reverted"
    assert bench.is_as_before()


@pytest.mark.parametrize(
    ("having", "verdict"),
    [
        ("12 12.1 12.2", "loss"),
        ("99 102 100.4", "no-difference"),
        ("103 103.1 103.2", "small-gain"),
        (STEADY, "no-difference"),
    ],
)
def test_without_a_gain_the_set_goes_out_again(bench: Bench, having: str, verdict: str) -> None:
    trial = bench.trial(throughput(STEADY, having), min_gain=0.05)
    assert trial.decision is not None
    assert (trial.outcome, trial.decision.verdict) == ("reverted", verdict)
    assert bench.is_as_before()
    assert bench.outcome() == "pristine"


def test_lower_is_better_turns_it_round(bench: Bench) -> None:
    text = throughput(STEADY, "110 111 110.5")
    assert bench.trial(text, higher_is_better=False).outcome == "reverted"
    assert bench.is_as_before()


def test_the_run_time_is_the_metric_unless_another_is_named(bench: Bench) -> None:
    trial = bench.trial("true", metric=None, repeat=1)
    assert not trial.higher
    assert all(run.metric == pytest.approx(run.seconds, abs=0.001) for run in trial.runs)


def test_a_set_that_may_lose_a_little_stays(bench: Bench) -> None:
    text = throughput(STEADY, "99 99.5 99.2")
    assert bench.trial(text, max_loss=0.10).outcome == "applied"
    assert bench.trial(text, max_loss=0.01).outcome == "reverted"
    assert bench.is_as_before()


def test_runs_alternate_with_warm_ups_that_do_not_count(bench: Bench) -> None:
    told = "$GATEPATCH_TRIAL_SIDE $GATEPATCH_TRIAL_COUNTED $GATEPATCH_TRIAL_SET"
    edited = f"$(grep -c 12, {site_of(bench.prefix) / COMM})$(grep -c '10, 12' {site_of(bench.prefix) / COMM})"
    text = f"echo {told} {edited} >> $HERE/log\n{throughput(STEADY, STEADY)}"
    bench.trial(text, repeat=2, warmup=1)
    without, having = f"without {{}} {SET} 00", f"with {{}} {SET} 01"
    assert (bench.folder / "log").read_text().splitlines() == [
        without.format(0),
        without.format(1),
        having.format(0),
        having.format(1),
        having.format(1),
        without.format(0),
        without.format(1),
    ]


def test_a_hang_with_the_set_is_ended_and_the_set_goes_out(bench: Bench) -> None:
    text = f"{throughput(STEADY, STEADY)}\nif {WITH}; then echo $$ > $HERE/pid; sleep 100; fi"
    trial = bench.trial(text, timeout=0.5)
    assert trial.decision is not None
    assert (trial.outcome, trial.decision.verdict) == ("reverted", "hung")
    assert "not done within 0.5 s" in trial.decision.reason
    assert not is_alive(number_in(bench.folder / "pid"))
    assert bench.is_as_before()


def test_a_crash_at_the_third_run_puts_the_set_back(bench: Bench) -> None:
    text = f"{throughput(STEADY, STEADY)}\necho no memory left\n[ $GATEPATCH_TRIAL_RUN != 3 ]"
    trial = bench.trial(text, warmup=0, repeat=2)
    assert trial.decision is not None
    assert (trial.outcome, trial.decision.verdict) == ("reverted", "failed")
    assert trial.decision.reason == (
        "the benchmark fails with the set, in run 3: it ended with exit code 1"
    )
    assert trial.runs[-1].last_lines[-1] == "no memory left"
    assert bench.is_as_before()


def test_a_crash_by_a_signal_is_a_failure_too(bench: Bench) -> None:
    trial = bench.trial(f"{throughput(STEADY, STEADY)}\n{WITH} && kill -SEGV $$; true")
    assert trial.runs[-1].problem == "it ended by signal 11"
    assert bench.is_as_before()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("echo no device; exit 7", "it ended with exit code 7"),
        ("echo no device", f"nothing in the output matches {METRIC!r}"),
        ("echo throughput: 0.0; echo no device", "and it has to be above 0"),
    ],
)
def test_a_baseline_that_fails_is_an_error_and_nothing_is_changed(
    bench: Bench, text: str, problem: str
) -> None:
    before = {p: (site_of(bench.prefix) / p).stat().st_mtime_ns for p in bench.pristine}
    with pytest.raises(TrialError) as caught:
        bench.trial(text)
    assert problem in str(caught.value)
    assert "no device" in str(caught.value)
    assert bench.is_as_before()
    assert {p: (site_of(bench.prefix) / p).stat().st_mtime_ns for p in before} == before


def test_a_baseline_that_fails_later_is_an_error_and_all_is_put_back(bench: Bench) -> None:
    text = f"{throughput(STEADY, STEADY)}\n[ $GATEPATCH_TRIAL_RUN != 4 ]"
    with pytest.raises(TrialError, match="in run 4: it ended with exit code 1"):
        bench.trial(text, warmup=0, repeat=2)
    assert bench.is_as_before()
    assert bench.outcome() == "pristine"


def test_a_program_that_is_not_there_is_a_baseline_that_fails(bench: Bench) -> None:
    with pytest.raises(TrialError, match="cannot be started: nowhere: No such file"):
        gatepatch.trial(SET, ["nowhere"], prefix=bench.prefix, assume="sm_120")


def test_a_metric_that_is_gone_with_the_set_puts_it_back(bench: Bench) -> None:
    trial = bench.trial(f"{WITH} || echo throughput: 5")
    assert trial.outcome == "reverted"
    assert "nothing in the output matches" in trial.runs[-1].problem
    assert bench.is_as_before()


def test_a_server_that_daemonises_is_ended_with_its_run(bench: Bench) -> None:
    """It leaves the session and the parent that a group or a session would know it by."""
    daemon = (
        "setsid sh -c 'setsid sh -c \"echo \\$\\$ > $0/pid; exec sleep 100\" $0 & exit' $HERE &"
    )
    text = f"rm -f $HERE/pid\n{daemon}\nwhile ! [ -s $HERE/pid ]; do sleep 0.01; done\n"
    trial = bench.trial(text + throughput(STEADY, STEADY), repeat=1, warmup=0)
    assert not is_alive(number_in(bench.folder / "pid"))
    assert all("left processes behind, which were ended: sleep" in r.notes[0] for r in trial.runs)
    assert bench.is_as_before()


def test_the_metric_comes_from_a_file_that_the_run_writes(bench: Bench) -> None:
    text = f'v=10; {WITH} && v=12; echo "{{\\"sum\\": [{{\\"tps\\": $v}}]}}" >> $HERE/out.json'
    trial = bench.trial(text, metric=None, metric_json=f"{bench.folder}/out.json:sum.0.tps")
    assert [run.metric for run in trial.runs if run.side == "with"] == [12.0] * 3
    assert trial.outcome == "applied"


def test_a_file_from_before_the_run_is_no_metric(bench: Bench) -> None:
    (bench.folder / "out.json").write_text('{"tps": 5}')
    with pytest.raises(TrialError, match="is from before the run"):
        bench.trial("true", metric=None, metric_json=f"{bench.folder}/out.json:tps")


def test_with_one_run_a_side_the_spread_is_unknown(bench: Bench) -> None:
    text = throughput("100", "150")
    trial = bench.trial(text, repeat=1)
    assert trial.decision is not None
    assert "the spread is unknown" in trial.decision.reason
    assert (trial.outcome, trial.decision.low) == ("reverted", None)
    assert bench.is_as_before()
    assert bench.trial(text, repeat=1, min_gain=0.2).outcome == "applied"


def test_a_set_that_was_applied_stays_where_it_pays_and_goes_where_not(bench: Bench) -> None:
    gatepatch.apply(SET, prefix=bench.prefix, assume="sm_120")
    trial = bench.trial(throughput(STEADY, "110 111 110.5"))
    assert (trial.outcome, trial.applied_before) == ("applied", True)
    assert bench.outcome() == "applied"
    assert bench.trial(throughput(STEADY, STEADY)).outcome == "reverted"
    assert bench.is_as_before()


def test_a_set_that_was_applied_is_there_again_after_an_error(bench: Bench) -> None:
    gatepatch.apply(SET, prefix=bench.prefix, assume="sm_120")
    before = installed(bench.prefix)
    with pytest.raises(TrialError):
        bench.trial("exit 1")
    assert installed(bench.prefix) == before
    assert bench.outcome() == "applied"
    gatepatch.revert(prefix=bench.prefix)
    assert bench.is_as_before()


def test_other_sets_stay_on_both_sides(bench: Bench) -> None:
    write_set(bench.folder / "sets", "other", text_edit("def gen", "# other\\ndef gen"))
    where = {"prefix": bench.prefix, "patches": [bench.folder / "sets"]}
    gatepatch.apply("other", assume="sm_120", **where)  # type: ignore[arg-type]
    before = installed(bench.prefix)
    text = f"grep -q other {site_of(bench.prefix) / COMM} || exit 1\n"
    trial = bench.trial(text + throughput(STEADY, STEADY), patches=where["patches"])
    assert (trial.outcome, trial.others) == ("reverted", ("other",))
    assert installed(bench.prefix) == before
    assert bench.trial(text + throughput(STEADY, "200 201 202")).outcome == "applied"
    gatepatch.revert(SET, prefix=bench.prefix)
    assert installed(bench.prefix) == before


def test_files_edited_by_hand_are_there_again(bench: Bench) -> None:
    path = site_of(bench.prefix) / HEADER
    copy = path.with_suffix(".new")
    copy.write_text(path.read_text() + "// by hand\n")
    copy.replace(path)
    before = installed(bench.prefix)
    with pytest.raises(RefusedError, match="accept-current"):
        bench.trial(throughput(STEADY, STEADY))
    assert bench.trial(throughput(STEADY, STEADY), accept_current=True).outcome == "reverted"
    assert installed(bench.prefix) == before


def test_nothing_to_try_where_the_release_is_native(bench: Bench) -> None:
    folder = bench.folder / "sets"
    keyword = "open: {within: gen_trtllm_comm_module, keyword: supported_major_versions}"
    write_set(folder, "sm100", keyword, arch="sm_100, sm_103")
    text = (folder / "sm100.yaml").read_text().replace("like: sm_100", "like: sm_90")
    (folder / "sm100.yaml").write_text(text)
    options = {"prefix": bench.prefix, "patches": [folder], "assume": "sm_100"}
    with pytest.raises(
        RefusedError, match="there is nothing to try: what sm100 is for is there without it"
    ):
        gatepatch.trial("sm100", ["true"], **options)  # type: ignore[arg-type]


def test_a_set_whose_state_is_lost_is_not_tried_against_itself(tmp_path: Path) -> None:
    prefix, checkout = make_split_server(tmp_path)
    gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    shutil.rmtree(checkout / ".git" / ".gatepatch")
    patched = installed(prefix)
    with pytest.raises(RefusedError, match="the state that could take it out is lost"):
        gatepatch.trial(SET, ["true"], prefix=prefix, assume="sm_120")
    assert installed(prefix) == patched
    assert git(checkout, "status", "--short") == f"M python/{COMMUNICATOR}"


def test_a_set_that_does_what_another_has_done_is_not_tried(bench: Bench) -> None:
    folder = bench.folder / "sets"
    write_set(folder, "one", text_edit("[9, 10]", "[9, 10, 12]"))
    write_set(folder, "two", text_edit("[9, 10]", "[9, 10, 12]"))
    options = {"prefix": bench.prefix, "patches": [folder], "assume": "sm_120"}
    gatepatch.apply("one", **options)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="there is nothing to try"):
        gatepatch.trial("two", ["true"], **options)  # type: ignore[arg-type]


def test_an_upgrade_in_the_middle_ends_the_trial(bench: Bench) -> None:
    """A package that the benchmark installs is not to be measured as if it were the set."""
    comm = site_of(bench.prefix) / COMM
    text = f"[ $GATEPATCH_TRIAL_RUN = 4 ] && echo '# new' > {comm}\n{throughput(STEADY, STEADY)}"
    with pytest.raises(GatepatchError):
        bench.trial(text, warmup=0)
    assert comm.read_text() == "# new\n"
    shutil.rmtree(site_of(bench.prefix) / ".gatepatch")


def test_an_edit_by_hand_in_the_middle_is_left_and_said(bench: Bench) -> None:
    comm = site_of(bench.prefix) / COMM
    text = f"{WITH} && cp {comm} $HERE/kept && echo '# new' > {comm}\n"
    with pytest.raises(PendingError) as caught:
        bench.trial(text + throughput(STEADY, STEADY), repeat=1)
    assert "foreign: something other than gatepatch has edited it" in str(caught.value)
    assert f"what the trial of {SET} changed could not be put back" in str(caught.value)
    assert comm.read_text() == "# new\n"
    assert gatepatch.status(prefix=bench.prefix).pending is not None
    shutil.copy(bench.folder / "kept", comm)
    assert gatepatch.recover(prefix=bench.prefix)
    assert bench.is_as_before()


def test_a_change_between_planning_and_the_first_run_is_seen(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set(bench.folder / "sets", "other", text_edit("def gen", "# other\\ndef gen"))
    options = {"prefix": bench.prefix, "assume": "sm_120", "patches": [bench.folder / "sets"]}

    def late(**arguments: Any) -> Bench:
        gatepatch.apply("other", **options)  # type: ignore[arg-type]
        return real(**arguments)  # type: ignore[no-any-return]

    real: Any = RealBench
    monkeypatch.setattr(trials, "Bench", late)
    with pytest.raises(StaleError, match="has changed since the trial was planned"):
        bench.trial(throughput(STEADY, STEADY))
    assert installed(bench.prefix)[COMM].startswith(b"# other")


def test_nobody_changes_the_environment_meanwhile(bench: Bench) -> None:
    caught = []

    class Meddler(Teller):
        def output(self, data: bytes) -> None:
            for call in (gatepatch.revert, lambda **o: gatepatch.apply(SET, assume="sm_120", **o)):
                with pytest.raises(LockTimeoutError, match=f"runs a trial of {SET}"):
                    call(prefix=bench.prefix)
            with pytest.raises(LockTimeoutError):
                gatepatch.trial(SET, ["true"], prefix=bench.prefix, assume="sm_120")
            status = gatepatch.status(SET, prefix=bench.prefix)
            assert (status.pending, len(status.warnings)) == (None, 1)
            caught.append(status.outcome)

    bench.trial(throughput(STEADY, STEADY), repeat=1, warmup=0, teller=Meddler())
    assert set(caught) == {"pristine", "applied"}


def test_the_command_line_says_it_all(
    run: Callable[..., Ran], server: Path, tmp_path: Path
) -> None:
    words = ["trial", SET, "--prefix", server, "--assume", "sm_120", "--metric", METRIC]
    gain = script(tmp_path, throughput("100 101", "110 111"), "gain.sh")
    loss = script(tmp_path, throughput("100 101", "10 11"), "loss.sh")
    code, out, err = run(*words, "--repeat", "2", "--", *gain)
    assert (code, out.splitlines()[0]) == (0, f"{SET}: applied (the set stays)")
    assert f"gatepatch: run 1 of 7, without {SET}, warm-up\n" in err
    assert "throughput: 100 tokens/s\n" in err
    code, out, err = run(*words, "--repeat", "2", "--json", "--", *loss)
    assert (code, json.loads(out)["decision"]["verdict"]) == (3, "loss")
    code, out, err = run(*words, "--json", "--", "false")
    assert (code, json.loads(out)["error"]) == (1, "trial")
    code, out, _ = run("trial", "--history", "--prefix", server, "--json")
    found = json.loads(out)["trials"]
    assert [entry["outcome"] for entry in found] == ["applied", "reverted", "refused"]
    code, out, _ = run("trial", "--history", "--prefix", server)
    assert (code, len(out.splitlines())) == (0, 3)
    assert all(Path(line.split()[-1]).is_file() for line in out.splitlines())


def test_records_go_where_they_are_wanted(bench: Bench, tmp_path: Path) -> None:
    trial = bench.trial(throughput(STEADY, STEADY), output=tmp_path / "new" / "out")
    assert Path(trial.record).parent == Path(trial.page).parent == tmp_path / "new" / "out"
    written = json.loads(Path(trial.record).read_text())
    assert (written["schema"], written["command"], written["id"]) == (1, "trial", trial.id)
    assert api.trial_history(prefix=bench.prefix) == (written,)


def test_a_command_whose_bytes_are_no_text(bench: Bench) -> None:
    command = ["sh", "-c", "true", os.fsdecode(b"caf\xe9")]
    trial = gatepatch.trial(SET, command, prefix=bench.prefix, assume="sm_120", repeat=1)
    assert "caf\\udce9" in Path(trial.page).read_text()


def test_readers_that_go_away_do_not_change_what_is_decided(bench: Bench) -> None:
    command = [sys.executable, "-m", "gatepatch", "trial", SET, "--prefix", str(bench.prefix)]
    command += ["--assume", "sm_120", "--repeat", "1", "--", "sh", "-c", "echo a line"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for pipe in (child.stdout, child.stderr):
        assert pipe is not None
        pipe.close()
    assert child.wait() == 3
    assert bench.is_as_before()


def test_history_of_one_set(bench: Bench) -> None:
    bench.trial(throughput("100", "101"), repeat=1)
    assert len(api.trial_history(SET, prefix=bench.prefix)) == 1
    assert api.trial_history("other", prefix=bench.prefix) == ()


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_run(bench: Bench) -> None:
    (site_of(bench.prefix) / ".gatepatch").write_text("no folder")
    with pytest.raises(TransactionError, match="Not a directory; nothing was changed"):
        bench.trial("exit 1")
    (site_of(bench.prefix) / ".gatepatch").unlink()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([SET], "there is no benchmark to run"),
        (["--", "true"], "which set?"),
        ([SET, "./bench.sh"], "the benchmark's command stands after --"),
        ([SET, "--repeat", "0", "--", "true"], "--repeat is at least 1"),
        ([SET, "--min-gain", "2", "--", "true"], "no percentage, such as 2%"),
        ([SET, "--min-gain", "2%", "--max-loss", "1%", "--", "true"], "--min-gain or --max-loss"),
        ([SET, "--metric", "a", "--metric-json", "b:c", "--", "true"], "not both"),
        ([SET, "--metric", "(a)(b)", "--", "true"], "has 2 groups, and needs one"),
        ([SET, "--metric", "(", "--", "true"], "is no regular expression"),
        ([SET, "--metric-json", "b", "--", "true"], "is not FILE:path"),
        ([SET, "--metric", "mean latency: (.*)", "--", "true"], "say which way is better"),
    ],
)
def test_a_wrong_command_line_exits_2(
    run: Callable[..., Ran], server: Path, words: list[str], message: str
) -> None:
    code, out, err = run("trial", "--prefix", server, *words)
    assert (code, out) == (2, "")
    assert message in err
