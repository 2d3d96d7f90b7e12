"""`agenthub verify --live`: the pinned CLIs are all right, wrong ones are named, nothing is left.

Names no agent: whatever can be tried is. The real CLIs are told by `AGENTHUB_<X>_BIN`.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import Home, agenthub_argv
from recorder import driver as drivers
from recorder.scratch import until

from hub import registry, verify_cases, verify_play
from hub.adapter import Launch
from hub.liveness import this_machine
from hub.modelserver import ModelServer
from hub.verify_play import Play, Row
from hub.verify_scratch import Scratch

AGENTS = registry.launchable()
real = pytest.mark.real
MOMENTS = [moment.name for one in verify_cases.SCENARIOS for moment in one.moments]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "temp").mkdir()
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home")


def programs(*agents: str) -> dict[str, str]:
    return {f"AGENTHUB_{name.upper()}_BIN": str(drivers.program(name)) for name in agents}


def fake(home: Home, script: str, *agents: str) -> dict[str, str]:
    """A program that is no CLI, in the place of these agents' CLIs."""
    path = home.path.parent / "fake"
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return {f"AGENTHUB_{name.upper()}_BIN": str(path) for name in agents}


def live(home: Home, *args: str, **more: str) -> "subprocess.CompletedProcess[bytes]":
    temp = home.path.parent / "temp"
    env = home.env(TMPDIR=str(temp), PATH="/usr/bin:/bin", **more)
    ran = subprocess.run(
        [*agenthub_argv(), "verify", "--live", *args], env=env, capture_output=True, check=False,
        timeout=250, stdin=subprocess.DEVNULL, cwd=home.path,
    )  # fmt: skip
    assert list(temp.iterdir()) == [], "the scratch folders are removed"
    assert inhabitants(temp) == []
    assert list(home.path.iterdir()) == [], "the user's home is not touched"
    return ran


def inhabitants(temp: Path) -> list[int]:
    """Processes whose HOME is below this folder."""
    mark = f"HOME={temp}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if any(one.startswith(mark) for one in environ.split(b"\0")):
                found.append(int(entry.name))
    return found


@real
def test_the_whole_matrix(home: Home) -> None:
    ran = live(home, "--json", **programs(*AGENTS))
    found = json.loads(ran.stdout)
    wrong = [
        {
            **{name: row[name] for name in ("agent", "scenario", "problem", "said")},
            **{name: (row["expected"][name], row["seen"].get(name)) for name in row["differs"]},
        }
        for row in found["scenarios"]
        if not row["ok"]
    ]
    assert wrong == []
    assert (ran.returncode, found["ok"]) == (0, True)
    assert {(row["scenario"], row["agent"]) for row in found["scenarios"]} == {
        (name, agent) for name in MOMENTS for agent in AGENTS
    }
    for agent in AGENTS:
        told = found["agents"][agent]
        pinned = drivers.load(agent).PACKAGE.version
        assert told["version"].replace("-rc.", "rc") == pinned
        assert told["executable"] == str(drivers.program(agent))
    for row in found["scenarios"]:
        assert {"state", "outcome", "live", "tokens", "answer", "cwd", "not_understood"} <= set(
            row["expected"]
        )
        if row["expected"]["outcome"] == "completed":
            assert row["expected"]["tokens"]["output"] > 0
            assert row["expected"]["answer"]
            assert row["expected"]["model"]


@real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything(home: Home, number: signal.Signals) -> None:
    temp = home.path.parent / "temp"
    with subprocess.Popen(
        [*agenthub_argv(), "verify", "--live"], env=home.env(TMPDIR=str(temp), **programs(*AGENTS)),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as command:  # fmt: skip
        until(lambda: len(inhabitants(temp)) >= 2, "CLIs that run")
        command.send_signal(number)
        out, error = command.communicate(timeout=60)
    assert command.returncode == 130
    assert out == b""
    assert b"Traceback" not in error
    assert inhabitants(temp) == []
    assert list(temp.iterdir()) == []


def test_without_a_cli(home: Home) -> None:
    ran = live(home)
    assert ran.returncode == 1
    for agent in AGENTS:
        assert f"{agent}: not installed" in ran.stdout.decode()
    assert "No CLI is installed here: nothing was tried." in ran.stdout.decode()


def test_a_program_that_only_fails_is_named(home: Home) -> None:
    ran = live(home, **fake(home, "echo no such option >&2; exit 3", AGENTS[0]))
    assert ran.returncode == 1
    said = ran.stdout.decode()
    assert "exit 3: no such option" in said
    assert f"{AGENTS[0]} (says no version): 0 of {len(MOMENTS)} ok" in said
    assert said.count("FAILED") == len(MOMENTS)
    for agent in AGENTS[1:]:
        assert f"{agent}: not installed" in said
    assert max(map(len, said.splitlines())) <= 80


def test_an_adapter_that_cannot_try_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from hub.local import open_local  # noqa: PLC0415
    from hub.verify_live import report  # noqa: PLC0415
    from hub.verify_text import matrix  # noqa: PLC0415

    monkeypatch.setattr(registry, "_TRIAL_PARTS", ("LABEL", "no_such_part"))
    found = report(open_local(home.env()))
    assert found["ok"] is False
    assert found["scenarios"] == []
    said = "\n".join(matrix(found))
    assert said.count("is no complete adapter: it lacks no_such_part") == len(AGENTS)


def test_a_program_that_cannot_be_started_is_named(home: Home) -> None:
    ran = live(home, **{f"AGENTHUB_{AGENTS[0].upper()}_BIN": "/nowhere/cli"})
    assert ran.returncode == 1
    assert b"/nowhere/cli" in ran.stdout
    assert b"Traceback" not in ran.stderr


def test_a_program_that_is_happy_and_writes_nothing_differs(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = fake(home, "exit 0", "x")["AGENTHUB_X_BIN"]
    monkeypatch.setattr(verify_play, "SETTLE_ENDED", 0.1)
    with stage(AGENTS[0], path) as (play, moment):
        row = Row(AGENTS[0], moment.name)
        play.look(row, moment)
    assert not row.ok()
    assert row.problem == "no session is listed: exit 0"
    assert {"sessions", "state", "outcome", "turns", "cwd", "prompt"} <= set(row.differs())


@contextmanager
def stage(agent: str, program: str) -> Iterator[tuple[Play, Any]]:
    """The first scenario, with any program."""
    import threading  # noqa: PLC0415

    scenario = verify_cases.SCENARIOS[0]
    with (
        ModelServer(verify_cases.SCRIPTS) as server,
        Scratch({"PATH": os.defpath}, threading.Event()) as scratch,
    ):
        yield (
            Play(agent, registry.trial(agent), program, scenario, server, scratch),
            (scenario.moments[0]),
        )


def test_each_field_that_differs_is_told() -> None:
    row = Row("agent", "scenario", expected={"state": "ended", "turns": 1}, seen={})
    assert row.differs() == ["state", "turns"]
    row.seen = {"state": "ended", "turns": 1}
    assert row.ok()
    row.problem = "it did not start"
    assert not row.ok()
    assert not Row("agent", "scenario").ok(), "nothing expected, nothing proven"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_trial_keeps_to_its_scratch_home(agent: str) -> None:
    trial = registry.trial(agent)
    for resume in (None, "an-id"):
        launch = trial.trial(b"Hi.", "/s/home/proj", "/s/home", "http://127.0.0.1:9", resume)
        assert launch.stdin == b"Hi."
        assert all(not name.startswith(("/", "..")) for name in launch.files)
        assert ("an-id" in launch.argv) is bool(resume)
        whole = json.dumps([launch.env, [data.decode() for data in launch.files.values()]])
        if resume is None:
            assert "http://127.0.0.1:9" in whole
    assert trial.trial_session(b"") is None
    assert trial.trial_session(b'{"half') is None
    assert trial.version(b"no number") is None
    assert trial.version(b"some-cli 1.2.3-rc.1 (Some)\n") == "1.2.3-rc.1"


def test_everything_of_a_scratch_home_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child in a session of its own that ignores SIGTERM and SIGINT is ended, too."""
    import tempfile  # noqa: PLC0415
    import threading  # noqa: PLC0415

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = "trap '' INT TERM; setsid tail -f /dev/null & touch up; wait"
    with Scratch({"PATH": os.defpath}, threading.Event()) as scratch:
        launch = Launch(("-c", script), b"", {}, {"settings/file": b"x"})
        running = scratch.start("/bin/sh", launch)
        assert scratch.until(lambda: len(scratch.processes()) == 2, 20)
        assert (scratch.home / "settings" / "file").read_bytes() == b"x"
        seen = scratch.processes()
        assert running.pid in seen
        env = Path(f"/proc/{running.pid}/environ").read_bytes()
        assert os.fsencode(os.environ["HOME"]) not in env
    machine = this_machine()
    assert [pid for pid in seen if machine.process(pid) is not None] == []
    assert list(tmp_path.iterdir()) == []
