"""The real CLIs against the model server: listed while they work, ask, rest, and after kill -9.

Names no agent: whatever has a driver in the recorder's folder is started. A CLI that cannot be
fetched or started is a failure, never a skip.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from commands import Home, texts
from recorder import driver as drivers
from recorder.driver import settle
from recorder.scenarios import Stage
from recorder.scratch import Scratch, until

from hub import registry
from hub.modelserver import ModelServer
from hub.scripts import Hold, Shell, Text

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]
AGENTS = drivers.names()
every_agent = pytest.mark.parametrize("agent", AGENTS)
KINDS = ("input", "cache_read", "cache_write", "output")
SLEEP = "[[shell:tail -f /dev/null]]"
SCRIPTS = {
    "toolthenslow": (
        (Text("I will run a command."), Shell("echo hi from tool")),
        (Text("The answer "), Hold("gate"), Text("is 42.")),
    )
}


@contextmanager
def stage(agent: str) -> Iterator[tuple[Stage, Home]]:
    """The agent's scratch home, the model server, and agenthub looking at that home."""
    with ModelServer(SCRIPTS) as server, Scratch() as scratch:
        driver = drivers.load(agent)
        driver.home(scratch, server.url)
        yield Stage(driver, scratch, server), Home(scratch.home)


def top(home: Home) -> dict[str, Any]:
    """The one session that is nobody's sub-agent."""
    (row,) = [row for row in home.rows() if row["relation"] != "subagent"]
    return row


def listed(home: Home, **wanted: Any) -> dict[str, Any]:
    """The session once it is listed so: what the agent has not written yet is waited for."""
    last: list[Any] = []

    def so() -> bool:
        rows = [row for row in home.rows() if row["relation"] != "subagent"]
        last[:] = [[row[name] for name in wanted] for row in rows]
        return len(rows) == 1 and last[0] == list(wanted.values())

    try:
        until(so, f"a list with {wanted}", 20)
    except TimeoutError as error:
        error.add_note(f"listed was {last}")
        raise
    return top(home)


def given(play: Stage) -> dict[str, int]:
    """The tokens that the server gave out in whole answers of the agent's own work."""
    total: dict[str, int] = dict.fromkeys(KINDS, 0)
    for entry in play.server.ledger:
        if entry.usage is not None and entry.purpose == "turn" and entry.ended == "complete":
            for kind in KINDS:
                total[kind] += getattr(entry.usage, kind)
    return total


def counted(row: dict[str, Any]) -> dict[str, int]:
    return {kind: row["usage_with_children"][kind] or 0 for kind in KINDS}


def check_facts(play: Stage, row: dict[str, Any], answer: str) -> None:
    """Tokens, answer, model and directory, against the ledger and the scenario."""
    assert counted(row) == given(play)
    assert row["last_answer"] == answer
    models = {entry.model for entry in play.server.ledger if entry.purpose == "turn"}
    assert {row["model"]} == models
    assert row["cwd"] == str(play.scratch.work)


def test_every_agent_has_a_driver() -> None:
    assert set(AGENTS) == set(registry.agents())


@every_agent
def test_headless(agent: str) -> None:
    with stage(agent) as (play, home):
        process = play.run("Use a tool, then answer slowly. [[toolthenslow]]")
        play.server.holding("gate")
        settle(play.driver, play.scratch)
        row = listed(home, state="working", live=True)
        assert row["certain"]
        assert row["activity"]["kind"] == "thinking"
        assert row["pid"] in set(play.scratch.processes())
        assert row["cwd"] == str(play.scratch.work)
        assert texts(home.events(row["key"]), "prompt") == play.said
        play.server.release("gate")
        assert process.finish().code == 0
        settle(play.driver, play.scratch)
        row = listed(home, state="ended", outcome="completed", live=False)
        check_facts(play, row, "The answer is 42.")
        assert (row["turns"], row["prompts"], row["tool_calls"], row["errors"]) == (1, 1, 1, 0)
        assert row["agent"] == agent


@every_agent
def test_interactive(agent: str) -> None:
    with stage(agent) as (play, home):
        talk = play.open(ask=True)
        play.say("What is the answer? [[answer]]")
        talk.wait_idle()
        settle(play.driver, play.scratch)
        row = listed(home, state="idle", outcome="completed", live=True)
        check_facts(play, row, "The answer is 42.")
        assert row["pid"] == talk.pid
        play.say("Leave the folder. [[permission]]")
        talk.wait_asked()
        settle(play.driver, play.scratch)
        row = listed(home, state="waiting", waiting_for="permission", live=True)
        assert row["activity"]["kind"] == "tool"
        assert row["pid"] == talk.pid
        talk.deny()
        talk.wait_idle()
        settle(play.driver, play.scratch)
        row = listed(home, state="idle", live=True)
        assert row["errors"] >= 1, "a refused tool is a failed one"
        play.say("Work until you die. [[slowstream:gate]]")
        play.server.holding("gate")
        settle(play.driver, play.scratch)
        row = listed(home, state="working", live=True)
        assert row["pid"] == talk.pid
        play.scratch.end([talk.pid])
        row = listed(home, state="ended", outcome="lost", live=False)
        assert row["prompts"] == 3
        assert counted(row) == given(play)
        talk.gone()


@every_agent
def test_question(agent: str) -> None:
    with stage(agent) as (play, home):
        talk = play.ask()
        play.say("Ask me something. [[ask]]")
        talk.wait_asked()
        settle(play.driver, play.scratch)
        row = listed(home, state="waiting", waiting_for="question", live=True)
        assert row["certain"]
        assert row["pid"] == talk.pid
        play.scratch.end([talk.pid])
        listed(home, state="ended", outcome="lost", live=False)
        talk.gone()


@every_agent
def test_kill_in_a_tool(agent: str) -> None:
    with stage(agent) as (play, home):
        process = play.run(f"Sleep for long. {SLEEP}")
        play.sleeping()
        row = listed(home, state="working", live=True)
        assert row["activity"]["kind"] == "tool"
        assert "tail -f /dev/null" in row["activity"]["summary"]
        play.scratch.end([int(row["pid"])])
        process.kill()
        listed(home, state="ended", outcome="lost", live=False)
