"""bench of a server: measured and recommended; what goes wrong is said in a sentence, and nothing is left running."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaigns import FAKES, FakeInstruments, asking, forked

from loam_lab.base import processes
from loam_lab.base.errors import LoamError
from loam_lab.base.interrupts import ends_like_ctrl_c
from loam_lab.base.processes import Used
from loam_lab.commands.bench import bench, children, job_options, percentiles, serving, trial
from loam_lab.commands.bench.job import Job

RATE = r"([\d.]+) requests per second"
NAME = FAKES / "fake-server"


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Whatever a test does: no process of the server, of its load or of its children goes on."""
    marked = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    os.environ["FAKE_MARK"] = marked
    yield
    del os.environ["FAKE_MARK"]
    assert marked_processes(marked) == []


def marked_processes(mark: str) -> list[str]:
    """The command lines of all processes that were started with a mark, this one apart."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"FAKE_MARK={mark}".encode() in (process / "environ").read_bytes():
                commands.append((process / "cmdline").read_text())
        except OSError:
            continue
    return commands


def job(port: int, *, mode: str = "", load: str = "", count: int = 10, **changed: Any) -> Job:
    options: dict[str, Any] = {
        "server": f"{sys.executable} {NAME} {port} {mode}", "ready": str(port), "metric": RATE, "better": None,
        "load": f"{sys.executable} {NAME} load {port} {count} {load}", "commands": (), "command_file": None,
        "prepare": "", "cleanup": "", "checks": (), "warmup": 0, "limits": (), "timeout_s": 20.0, **changed,
    }  # fmt: skip
    asked = job_options.what((), **options)
    assert isinstance(asked, Job)
    return asked


def run(what: Job, folder: Path, **options: Any) -> dict[str, Any]:
    options = {"allocators": ["plain", "fast"], "blocks": 6, "as_json": True, **options}
    bench.bench(what, asking(out=folder, report=False, **options), FakeInstruments())
    document: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return document


def refused(what: Job, folder: Path) -> str:
    """What is said of a job that does not work."""
    with pytest.raises(LoamError) as caught:
        run(what, folder)
    assert caught.value.exit_code == 1
    assert not folder.exists()
    return str(caught.value)


@pytest.mark.alone
def test_a_server_is_measured_by_what_its_load_prints(tmp_path: Path, port: int) -> None:
    result = run(job(port, warmup=1), tmp_path / "o")
    assert result["failures"] == []
    assert result["primary_metrics"] == {Path(sys.executable).name: "metric"}
    fast = next(cell for cell in result["cells"] if cell["factors"]["allocator"] == "fast")
    assert fast["ratio_to_baseline"]["estimate"] > 1.5, "more requests per second"
    assert fast["verdict"] == "better"
    assert fast["metrics"]["metric"]["unit"] == "1/s"
    assert fast["metrics"]["latency_p99_s"]["estimate"] == pytest.approx(0.0015)
    for name in ("server_cpu_s", "rss_after_bytes", "pss_after_bytes"):
        assert fast["metrics"][name]["estimate"] >= 0
    advice = result["recommendation"]
    assert advice["allocator"] == "fast"
    assert re.search(r"Use fast: metric is [\d.]+ % higher than with plain \[", advice["text"])
    assert [choice["for"] for choice in advice["choices"]] == ["speed", "memory", "both"]
    assert result["commands"][0].startswith("./loam bench --allocator plain,fast --server ")


@pytest.mark.alone
def test_a_pattern_tells_when_a_server_is_ready_and_names_its_metric(tmp_path: Path, port: int) -> None:
    what = job(port, ready="ready to .erve", metric=r"(?P<requests_per_s>[\d.]+) requests", better="higher")
    result = run(what, tmp_path / "o", blocks=1)
    assert result["failures"] == []
    assert all(len(cell["metrics"]["requests_per_s"]["values"]) == 1 for cell in result["cells"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mode": "fails"}, r"the server ended with status 1 before it was ready: no such configuration"),
        ({"mode": "dies"}, r"the server ended under load, with SIGSEGV"),
        ({"mode": "dies-after-hanging-up"}, r"the server ended under load, with SIGKILL"),
        ({"mode": "daemon"}, r"went into the background.*start it in the foreground"),
        ({"mode": "slow-daemon", "load": "hangs"}, r"went into the background.*start it in the foreground"),
        ({"mode": "open"}, r"listens on 0\.0\.0\.0:\d+, which other machines can reach; bind it to 127"),
        ({"mode": "open-to-ipv6"}, r"listens on \[::\]:\d+, which other machines can reach; bind it to 127"),
        ({"load": "fails"}, r"the load ended with status 1: cannot load"),
        ({"load": "hangs", "timeout_s": 0.3}, r"the load did not end within 0\.3 s"),
        ({"metric": r"([\d.]+) answers per second"}, r"matches nothing that the load prints; its last line:   99%  1\.5ms"),
        ({"metric": r"requests (per) second"}, r"'per' is no number above 0"),
        ({"checks": ["grep -q nonsense $LOAM_OUTPUT"]}, r"--check 'grep .*' ended with status 1"),
        ({"prepare": "echo no >&2; exit 4"}, r"--prepare 'echo .*' ended with status 4: no"),
        ({"fill": "echo full >&2; exit 4"}, r"--fill ended with status 4: full"),
        ({"fill": "sleep 60", "timeout_s": 0.3}, r"--fill did not end within 0\.3 s"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said(tmp_path: Path, port: int, changed: dict[str, Any], message: str) -> None:
    if changed.get("mode") == "open-to-ipv6" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    assert re.search(message, refused(job(port, **changed), tmp_path / "o"))


def test_a_server_that_ends_while_it_is_filled_is_told(tmp_path: Path, port: int) -> None:
    message = refused(job(port, mode="dies", fill=f"{sys.executable} {NAME} load {port} 10"), tmp_path / "o")
    assert "the server ended during --fill, with SIGSEGV" in message


def test_a_server_is_filled_once_before_its_loads(tmp_path: Path, port: int) -> None:
    diary = tmp_path / "said"
    load = f"{sys.executable} {NAME} load {port} 5"
    what = job(
        port, warmup=1, prepare=f"echo prepare >> {diary}", fill=f"echo fill $FAKE_ALLOCATOR >> {diary}; {load}",
    )  # fmt: skip
    what = replace(what, load=["/bin/sh", "-c", f"echo load >> {diary}; {load}"])
    result = run(what, tmp_path / "o", allocators=["plain"], blocks=1)
    assert result["failures"] == []
    assert diary.read_text().split() == ["prepare", "fill", "load", "load"] * 3
    assert "--fill" in result["commands"][0]
    with pytest.raises(LoamError, match="--fill: belongs to a server"):
        job_options.what(
            ["true"], server=None, ready=None, load=None, metric=None, better=None, commands=(), command_file=None,
            prepare="", cleanup="", checks=(), warmup=0, limits=(), timeout_s=None, fill="true",
        )  # fmt: skip


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize(("address", "pattern"), [("::", r"\[::\]:\d+"), ("::1", ""), ("::ffff:127.0.0.1", "")])
def test_addresses_of_ipv6_are_seen(address: str, pattern: str) -> None:
    with socket.socket(socket.AF_INET6) as opened:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind((address, 0))
        opened.listen()
        assert re.fullmatch(pattern, serving.elsewhere({os.getpid()}))


def test_a_load_that_ends_before_its_server_is_not_blamed(port: int) -> None:
    """The server hangs up, and so ends the load; it takes a little longer to end itself."""
    log = subprocess.DEVNULL
    server = children.start(["sh", "-c", "sleep 0.1; kill -9 $$"], os.environ, log, {})
    try:
        with pytest.raises(children.Failed, match="the server ended under load, with SIGKILL"):
            serving.load(replace(job(port), load=["false"]), os.environ, server)
    finally:
        children.reap(server, Used())


def test_the_waiting_of_all_living_threads_is_added_up() -> None:
    """Three busy threads of two processes on one processor: two of them always wait."""
    spin = (
        "import threading; threading.Thread(target=sum, args=(iter(int, 1),), daemon=True).start(); sum(iter(int, 1))"
    )
    processor = min(os.sched_getaffinity(0))
    started = children.start(
        ["taskset", "-c", str(processor), "sh", "-c", f"while :; do :; done & exec {sys.executable} -c '{spin}'"],
        os.environ, subprocess.DEVNULL, {},
    )  # fmt: skip
    try:
        own, both, deadline = 0.0, 0.0, time.monotonic() + 60
        while min(own, both - own) < 0.02 and time.monotonic() < deadline:  # until either process has waited
            own = children.waited_s({started.pid}) or 0.0
            both = children.waited_s(processes.tree(started.pid)) or 0.0
            time.sleep(0.01)
        assert min(own, both - own) >= 0.02
        assert children.waited_s(set()) is None
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        children.reap(started, Used())
        # The loop in the background is this process's grandchild: whoever adopts it waits for its end.
        while marked_processes(os.environ["FAKE_MARK"]):
            time.sleep(0.01)


def test_own_waiting_of_a_server_is_told_with_what_to_do(tmp_path: Path, port: int) -> None:
    what = job(port)
    request = asking(allocators=["plain"], blocks=1, as_json=True, out=tmp_path / "o", report=False)
    bench.bench(what, request, FakeInstruments(own_share=0.4))
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    assert result["waiting"] == {"blocks": 1, "disturbed": 0, "own": 1, "decides": "metric"}
    assert "taskset -c 0 before the server, taskset -c 1 before the load" in result["recommendation"]["text"]


def test_a_server_that_is_never_ready_is_given_up(tmp_path: Path, port: int) -> None:
    what = replace(job(port, mode="never-ready"), ready_s=0.5)
    message = refused(what, tmp_path / "o")
    assert re.search(r"not ready within 0\.5 s: port \d+ does not answer: getting nowhere", message)


def test_a_taken_port_is_refused_before_the_server_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        message = refused(job(number), tmp_path / "o")
    assert f"port {number} is taken" in message


def test_a_child_that_left_its_group_ends_with_the_server(tmp_path: Path, port: int) -> None:
    """The fixture looks for it."""
    result = run(job(port, mode="children"), tmp_path / "o", blocks=1)
    assert result["failures"] == []
    assert any("left processes behind" in warning for warning in result["warnings"] + result["cells"][0]["warnings"])


def test_an_interrupted_driver_ends_all_that_it_started(port: int) -> None:
    what = job(port, load="hangs")
    driver = subprocess.Popen(
        [sys.executable, "-m", "loam_lab.commands.bench.driver", what.as_json(), "fake"], stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(bench.__file__).parents[2])},
    )  # fmt: skip
    deadline = time.monotonic() + 20
    while not serving._answers(port) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)
    driver.terminate()
    driver.communicate(timeout=20)
    assert not serving._answers(port)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ready": None}, r"--server=.* needs --ready too"),
        ({"metric": None, "ready": None}, r"needs --ready and --metric too"),
        ({"ready": "99999"}, r"is no port"),
        ({"ready": "("}, r"neither a port nor a regular expression"),
        ({"metric": "x("}, r"is no regular expression"),
        ({"metric": "no group per second"}, r"has 0 groups; one must hold the number"),
        ({"metric": r"value ([\d.]+)"}, r"does not say whether more is better \(add --better"),
        ({"server": "no-such-server-here"}, r"no such program"),
        ({"server": "'"}, r"close the quote"),
        ({"limits": ["memory=1"]}, r"--limit=memory=1: is none of as, "),
        ({"limits": ["as=much"]}, r"needs a whole number"),
        ({"commands": ["true"]}, r"only one of them can be measured"),
        ({"command_file": Path("/no/such/file")}, r"--commands=/no/such/file: cannot be read"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(port: int, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LoamError, match=message):
        job(port, **options)


def test_options_of_a_server_need_a_server() -> None:
    with pytest.raises(LoamError, match=r"--ready: belongs to a server"):
        job(1, server=None, metric=None, commands=["true"])


@pytest.mark.parametrize(
    ("printed", "latencies"),
    [
        ("SET: 100 requests per second, p50=0.255 msec", {"p50": 0.000255}),
        (
            "  latency summary (msec):\n          avg       min       p50       p95       p99       max\n"
            "        0.269     0.080     0.263     0.367     0.471     1.103\n",
            {"p50": 0.000263, "p95": 0.000367, "p99": 0.000471, "max": 0.001103},
        ),
        ("  Latency Distribution\n     50%  635.91us\n     99%   12.50ms\n", {"p50": 0.00063591, "p99": 0.0125}),
        ("  50%      2\n  99%     11\n 100%     14 (longest request)\n", {"p50": 0.002, "p99": 0.011, "max": 0.014}),
        ("  99% in 0.0125 secs\n p99.9: 3 ms", {"p99": 0.0125, "p999": 0.003}),
        ("100% done, 50% of it", {}),
    ],
)  # fmt: skip
def test_percentiles_are_found(printed: str, latencies: dict[str, float]) -> None:
    assert percentiles.find(printed) == pytest.approx(latencies)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_first_run_leaves_nothing_whatever_ends_it(
    tmp_path: Path, port: int, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Driver, server and load are in groups of their own, and the load would never end."""
    mark = os.environ["FAKE_MARK"]
    what = job(port, load="hangs")

    def measured() -> int:
        with ends_like_ctrl_c():
            run(what, tmp_path / "o")
        return 0

    child = forked(measured)
    while not any("hangs" in line and "driver" not in line for line in marked_processes(mark)):
        time.sleep(0.02)
    os.kill(child, number)
    os.waitpid(child, 0)
    if number is signal.SIGKILL:  # the kernel tells the driver, which ends the others
        for _ in range(1000):
            if not marked_processes(mark):
                break
            time.sleep(0.02)
    else:
        assert "in the first run, which does not count" in capfd.readouterr().err
    assert not (tmp_path / "o").exists()


def test_a_server_is_ended_by_the_signal_that_was_asked_for(tmp_path: Path, port: int) -> None:
    """One that ends in order at USR1 alone, as HAProxy does: TERM would kill it before it could say who served it."""
    what = job(port, mode="usr1", stop="sigusr1")
    assert what.options()[what.options().index("--stop") + 1] == "USR1"
    used = Used()
    with serving.server(what, os.environ, used) as process:
        pass
    assert process.returncode == 0
    with serving.server(replace(what, stop=""), os.environ, used) as process:
        pass
    assert process.returncode < 0, "killed"
    with pytest.raises(LoamError, match="--stop=NONE: is no signal"):
        job(port, stop="NONE")


def test_a_load_that_never_ends_says_how_long_it_has_taken_and_when_it_is_ended(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trial, "TOLD_S", 0.2)
    message = refused(job(port, load="hangs", timeout_s=2.0), tmp_path / "o")
    assert "the load did not end within 2 s" in message
    stderr = capsys.readouterr().err
    assert re.search(
        r"the first run, which does not count, has taken \d s so far; it is ended after 2 s \(--timeout\)", stderr
    )
