"""The installed CLIs in; what the list says of them while they play scenarios, beside what it must.

Each scenario has a scratch HOME, a model server on 127.0.0.1 and an engine of its own. Nothing
waits for a fixed time: the server's gates, files and ends of processes say when to look, and the
list is asked until it is right or the time is up.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from hub import doctor, registry
from hub.adapter import Launch
from hub.errors import AdapterError
from hub.local import Local
from hub.modelserver import ModelServer
from hub.verify_cases import SCENARIOS, SCRIPTS, Scenario
from hub.verify_play import Play, Row
from hub.verify_scratch import Scratch, StoppedError

Told = Callable[[str], None]


def report(
    local: Local,
    agents: Sequence[str] = (),
    told: Told | None = None,
    scenarios: Sequence[Scenario] = SCENARIOS,
) -> dict[str, Any]:
    """Plays every scenario with every agent that is installed.

    Args:
        local: says which executables, and lends them its PATH.
        agents: only these; all that can be tried by default.
        told: is given a line for each row that is done, an empty one at the end.
        scenarios: what is played.
    """
    begun = time.monotonic()
    found = {agent: _installed(agent, local) for agent in agents or registry.launchable()}
    stop = threading.Event()
    rows = _play_all(local, found, scenarios, stop, told or _mute)
    return {
        "agents": found,
        "scenarios": [
            {"scenario": row.scenario, "agent": row.agent, "ok": row.ok(),
             "seconds": round(row.seconds, 1), "expected": row.expected, "seen": row.seen,
             "differs": row.differs(), "problem": row.problem, "said": row.said}
            for row in rows
        ],
        "seconds": round(time.monotonic() - begun, 1),
        "ok": bool(rows) and all(row.ok() for row in rows),
    }  # fmt: skip


def _installed(agent: str, local: Local) -> dict[str, Any]:
    """Where an agent's CLI is; a broken adapter costs only its own agent.

    Raises:
        UnknownAgent: it is none that can be tried.
    """
    out = {"label": agent, "executable": None, "version": None, "problem": None}
    try:
        out["label"] = registry.trial(agent).LABEL
    except AdapterError as error:
        return out | {"problem": error.message}
    return out | {"executable": doctor.program(agent, local)}


def _mute(_text: str) -> None:
    """Says nothing."""


def _play_all(
    local: Local, found: Mapping[str, dict[str, Any]], scenarios: Sequence[Scenario],
    stop: threading.Event, told: Told,
) -> list[Row]:  # fmt: skip
    """The rows in the order of scenarios; whatever ends this early ends every process first."""
    hopeless: set[str] = set()
    able = [agent for agent, one in found.items() if one["executable"]]
    pool = ThreadPoolExecutor(min((os.cpu_count() or 1) + 1, 8))
    with _deadly_signals():
        try:
            versions = {agent: pool.submit(_version, local, agent, stop) for agent in able}
            jobs = {
                pool.submit(_played, local, agent, scenario, stop, hopeless): (agent, scenario)
                for scenario in scenarios
                for agent in able
            }
            _follow(jobs, told)
            for agent, version in versions.items():
                found[agent]["version"] = version.result()
            return [row for job in jobs for row in job.result()]
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            told("")


def _follow(jobs: Mapping["Future[list[Row]]", object], told: Told) -> None:
    left = set(jobs)
    while left:
        # a wait without a limit would not see Ctrl-C everywhere
        done, left = wait(left, 1.0, FIRST_COMPLETED)
        for job in done:
            for row in job.result():
                told(f"{row.agent}: {row.scenario}: {'ok' if row.ok() else 'differs'}")


@contextlib.contextmanager
def _deadly_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the command as Ctrl-C does: in the orderly way."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, interrupt) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _version(local: Local, agent: str, stop: threading.Event) -> str | None:
    """What the CLI says of itself, asked in a scratch home."""
    trial = registry.trial(agent)
    with Scratch(local.env, stop) as scratch:
        work, home = str(scratch.work), str(scratch.home)
        env = trial.trial(b"", work, home, "http://127.0.0.1:9", None).env
        try:
            running = scratch.start(
                str(doctor.program(agent, local)), Launch(tuple(trial.VERSION_ARGV), b"", env)
            )
        except OSError:
            return None
        return trial.version(running.printed()) if scratch.until(running.ended) else None


def _played(
    local: Local, agent: str, scenario: Scenario, stop: threading.Event, hopeless: set[str]
) -> list[Row]:
    """One scenario; not tried where the agent could not even play the first."""
    rows = [Row(agent, moment.name) for moment in scenario.moments]
    if agent in hopeless:
        for row in rows:
            row.problem = f"not tried: {SCENARIOS[0].moments[0].name} failed"
        return rows
    program = str(doctor.program(agent, local))
    with ModelServer(SCRIPTS) as server, Scratch(local.env, stop, scenario.folder) as scratch:
        play = Play(agent, registry.trial(agent), program, scenario, server, scratch)
        for row, moment in zip(rows, scenario.moments, strict=True):
            begun = time.monotonic()
            try:
                play.look(row, moment)
            except StoppedError:
                raise
            except Exception as error:  # noqa: BLE001  # what a new CLI writes may break anything
                row.problem = f"{type(error).__name__}: {error}"
            row.seconds = time.monotonic() - begun
            if row.problem is not None:
                for later in rows[rows.index(row) + 1 :]:
                    later.problem = f"not reached: {row.scenario} failed"
                if scenario is SCENARIOS[0]:
                    hopeless.add(agent)
                break
    return rows
