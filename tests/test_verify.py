"""`agenthub verify`: exact figures, drift, what cannot be read; and never a word that was said."""

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Home, copy_home
from conftest import CASES, FIXTURES

from hub import registry, verify
from hub.local import open_local
from hub.model import Session

AGENTS = registry.agents()
every_agent = pytest.mark.parametrize("agent", AGENTS)
WORD = "zanzibar-9157"
FIGURES = {
    "claude": ("2.1.332", {"title": 2, "parent": 1, "last_prompt": 1, "effort": 2}),
    "codex": ("0.171.0", {"title": 2, "parent": 1, "last_prompt": 1, "effort": 0}),
    "dsh": ("unknown", {"title": 2, "parent": 1, "last_prompt": 1, "cli_version": 0}),
}
"""A session and its sub-agent of each agent: version, and how often some fields are filled."""


def verified(home: Home, *args: str) -> tuple[int, dict[str, Any]]:
    ran = home.run("verify", "--json", *args)
    assert ran.stderr == b""
    return ran.returncode, json.loads(ran.stdout)


def text(home: Home, *args: str) -> str:
    return home.run("verify", *args).stdout.decode()


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Every recorded session of every agent in one home."""
    target = tmp_path_factory.mktemp("verify") / "home"
    for case in CASES:
        if not case.name.startswith("trap-"):
            shutil.copytree(case / "root", target, dirs_exist_ok=True)
    return Home(target)


@pytest.mark.parametrize("agent", sorted(FIGURES))
def test_figures_of_one_session_with_a_sub_agent(agent: str, tmp_path: Path) -> None:
    home = copy_home(FIXTURES / agent / "subagent" / "root", tmp_path / "home")
    code, found = verified(home)
    assert (code, found["ok"]) == (0, True)
    version, filled = FIGURES[agent]
    assert set(found["agents"]) == set(AGENTS)
    (told,) = found["agents"][agent]["versions"].items()
    assert told[0] == version
    one = told[1]
    assert (one["sessions"], one["sub_agents"]) == (2, 1)
    assert {name: one["fields"][name]["count"] for name in filled} == filled
    assert one["fields"]["parent"]["share"] == 0.5
    for always in ("cwd", "model", "usage", "turns", "state", "started_at", "sources"):
        assert one["fields"][always] == {"count": 2, "share": 1.0}
    for never in ("job", "pid", "waiting_for", "files_touched", "last_error"):
        assert one["fields"][never] == {"count": 0, "share": 0.0}
    assert (one["not_understood"], one["notes"], one["no_turn"]) == ({}, {}, [])
    said = text(home)
    assert f"  version {version}: 2 sessions, 1 sub-agent among them" in said
    assert "parent 1 (50%)" in said
    assert said.endswith("\nEvery record is understood.\n")


def test_figures_agree_with_the_list(everything: Home) -> None:
    code, found = verified(everything)
    rows = {row["key"]: row for row in everything.rows()}
    for agent in AGENTS:
        told = found["agents"][agent]
        assert told["unreadable"] == []
        mine = [row for row in rows.values() if row["agent"] == agent]
        by_version: dict[str, list[dict[str, Any]]] = {}
        for row in mine:
            by_version.setdefault(row["cli_version"] or "unknown", []).append(row)
        # the list leaves out sessions in which no turn began
        assert set(by_version) <= set(told["versions"])
        for version, one in told["versions"].items():
            shown = by_version.get(version, [])
            hidden = [key for key in one["no_turn"] if key not in rows]
            assert len(shown) <= one["sessions"]
            assert one["fields"]["last_answer"]["count"] == sum(
                row["last_answer"] is not None for row in shown
            )
            assert one["sessions"] - len(shown) >= len(hidden)
            odd = sum(
                note["count"]
                for row in shown
                for note in row["notes"]
                if note["code"] == "unknown_record"
            )
            assert sum(one["not_understood"].values()) == odd
    drifted = any(
        one["not_understood"]
        for agent in found["agents"].values()
        for one in agent["versions"].values()
    )
    assert code == (1 if drifted else 0)


def test_every_field_of_the_model_is_counted_once(everything: Home) -> None:
    _, found = verified(everything)
    by_hub = {"key", "agent", "id", "host", "root", "complete", "certain"}
    for agent in found["agents"].values():
        for one in agent["versions"].values():
            assert list(one["fields"]) == [
                name for name in Session.__struct_fields__ if name not in by_hub
            ]
            assert all(value["count"] <= one["sessions"] for value in one["fields"].values())


def test_a_session_without_a_turn_is_named(everything: Home) -> None:
    _, found = verified(everything)
    keys = [
        key
        for agent in found["agents"].values()
        for one in agent["versions"].values()
        for key in one["no_turn"]
    ]
    assert keys
    for key in keys[:3]:
        events = everything.events(key)
        assert events
        assert not [event for event in events if event["kind"] == "turn_start"]
    assert "no turn in" in text(everything)


def drift(case: Path) -> dict[str, int]:
    """Records that are not understood, as the case's golden file has them."""
    rows = json.loads((case / "session.json").read_bytes())
    notes = [note for row in rows for note in row["notes"] if note["code"] == "unknown_record"]
    return {note["detail"] or "<no type>": note["count"] for note in notes}


UNKNOWN = [case for case in CASES if case.name.startswith("trap-unknown") and drift(case)]


@pytest.mark.parametrize("case", UNKNOWN, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_records_that_are_not_understood_exit_1(case: Path, tmp_path: Path) -> None:
    home = copy_home(case / "root", tmp_path / "home")
    code, found = verified(home)
    assert (code, found["ok"]) == (1, False)
    told = {
        name: count
        for one in found["agents"][case.parent.name]["versions"].values()
        for name, count in one["not_understood"].items()
    }
    assert told == drift(case)
    ran = home.run("verify")
    assert ran.returncode == 1
    last = ran.stdout.decode()[ran.stdout.decode().index("NOT UNDERSTOOD") :]
    for name, count in told.items():
        assert f"{name} x{count}" in last
    other = next(agent for agent in AGENTS if agent != case.parent.name)
    assert home.run("verify", "--agent", other).returncode == 0


def test_every_agent_has_such_a_case() -> None:
    assert {case.parent.name for case in UNKNOWN} == set(AGENTS)


@every_agent
def test_what_cannot_be_read_exits_1(agent: str, tmp_path: Path) -> None:
    home = copy_home(FIXTURES / agent / "answer" / "root", tmp_path / "home")
    assert verified(home)[0] == 0
    (row,) = home.rows()
    log = Path(row["root"]) / row["sources"][0]["path"]
    log.unlink()
    log.symlink_to(log.name)
    code, found = verified(home)
    assert code == 1
    (one,) = found["agents"][agent]["unreadable"]
    assert one["path"].endswith(log.name)
    assert f"NOT READABLE of {agent}: 1 file or folder" in text(home)


@every_agent
def test_what_was_read_once_and_is_closed_now_is_not_readable(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list still has it from its cache; who asks for fidelity is told."""
    home = copy_home(FIXTURES / agent / "answer" / "root", tmp_path / "home")
    (row,) = home.rows()

    def closed(path: str) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(verify, "open_regular", closed)  # root may open everything
    found = verify.report(open_local(home.env()))
    assert not found["ok"]
    (one,) = found["agents"][agent]["unreadable"]
    assert one["path"].endswith(row["sources"][0]["path"])
    assert one["reason"] == "permission denied"


@every_agent
def test_no_word_that_was_said_is_shown(agent: str, tmp_path: Path) -> None:
    """A secret stands in the prompt, the answer, the command and in the type of a record."""
    plain = FIXTURES / agent / "uncompressed"
    case = plain if plain.is_dir() else FIXTURES / agent / "tool"
    home = copy_home(case / "root", tmp_path / "home")
    prompt = json.loads((case / "session.json").read_bytes())[0]["last_prompt"]
    words = [prompt.partition(" [[")[0], "The answer is 42.", "echo hi from tool"]
    for log in home.path.rglob("*.jsonl"):
        data = log.read_bytes()
        for word in words:
            data = data.replace(word.encode(), f"{WORD} {word}".encode())
        odd = {"type": f"{WORD} and more", "timestamp": "2026-11-30T10:00:00.000Z"}
        log.write_bytes(data + json.dumps(odd).encode() + b"\n")
    listed = json.dumps(home.rows())
    assert listed.count(WORD) >= 2, "the secret was planted"
    for args in ((), ("--json",)):
        ran = home.run("verify", *args)
        assert ran.returncode == 1
        assert WORD not in (ran.stdout + ran.stderr).decode()
    (told,) = verified(home)[1]["agents"][agent]["versions"].values()
    assert told["not_understood"] == {f"<not a word, {len(WORD) + 9} characters>": 1}


def test_no_sessions_says_where_it_looked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    code, found = verified(home)
    assert (code, found["ok"]) == (0, True)
    said = text(home)
    for agent in AGENTS:
        assert found["agents"][agent]["versions"] == {}
        for root in found["agents"][agent]["looked_in"]:
            assert f"looked in {root['path']}" in said
    assert said.count("(not there)") >= len(AGENTS)
    assert said.endswith("No sessions: nothing to verify.\n")


def test_usage_errors_exit_2(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.run("verify", "--agent", "cursor").returncode == 2
    assert home.run("verify", "--live", "--agent", "cursor").returncode == 2
    assert home.run("verify", "--nonsense").returncode == 2


def test_the_text_fits_80_columns(everything: Home) -> None:
    for line in text(everything).splitlines():
        assert len(line) <= 80 or "/" in line, line
