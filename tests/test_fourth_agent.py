"""A fourth agent is one module in observers/, one folder in fixtures/, and no other line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hub

ROOT = Path(hub.__file__).resolve().parent.parent
MODULE = '''
"""Observes Fourth: `~/.fourth/<id>.jsonl`, lines `{"say": TEXT, "by": "user" | "agent"}`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from hub.adapter import Claim, Found, Head, Names, Read, Root
from hub.decode import Decoder
from hub.events import Answer, Event, Meta, Note, Prompt, TurnEnd, TurnStart, UsageEvent
from hub.model import Usage

LABEL: Final = "Fourth"
VERSION: Final = 1


class Line(Struct):
    say: str
    by: str
    at: str
    tokens: int = 0


class State(Struct):
    turns: int = 0


_read = Decoder(Line)


def roots(env: Mapping[str, str], home: str, read: Read, names: Names) -> Sequence[Root]:
    return [Root(f"{home}/.fourth")]


def process(exe: str, argv: Sequence[str]) -> bool:
    return exe.endswith("/fourth")


def find(relative: str, head: Head) -> Found | None:
    return Found(relative[:-6]) if relative.endswith(".jsonl") else None


def start(found: Found) -> State:
    return State()


def events(line: bytes, offset: int, state: Any) -> Iterable[Event]:
    record, note = _read(line)
    if note is not None:
        yield Note(code=note, offset=offset)
    if record is None:
        return
    if record.by == "user":
        state.turns += 1
        yield TurnStart(at=record.at, offset=offset)
        yield Prompt(text=record.say, at=record.at, offset=offset)
        yield Meta(cwd="/home/dev/proj", model="fourth-1", offset=offset)
    else:
        yield Answer(text=record.say, at=record.at, offset=offset, final=True)
        yield UsageEvent(
            response=f"{state.turns}:1", model="fourth-1", counts=Usage(output=record.tokens),
            at=record.at, offset=offset,
        )
        yield TurnEnd(reason="completed", at=record.at, offset=offset)


def sidecar(name: str, data: bytes) -> Iterable[Event]:
    return ()


def live(name: str, data: bytes) -> Claim | None:
    return None
'''
LOG = (
    '{"say":"What is it?","by":"user","at":"2026-11-30T10:00:00.000Z"}\n'
    '{"say":"It is 4.","by":"agent","at":"2026-11-30T10:00:02.000Z","tokens":12}\n'
)
TRUTH = {
    "sessions": {
        "first": {
            "answers": ["It is 4."], "prompts": ["What is it?"], "models": ["fourth-1"],
            "tokens": {"input": None, "cache_read": None, "cache_write": None, "output": 12,
                       "reasoning": None},
            "cwd": "/home/dev/proj", "state": "ended", "outcome": "completed", "live": False,
        }
    },
    "differences": [],
}  # fmt: skip
CHECK = """
import sys
from pathlib import Path
from hub import registry, testing
case = Path(sys.argv[1])
events, sessions = testing.case_golden(case)
(case / "expected.jsonl").write_bytes(events)
(case / "session.json").write_bytes(sessions)
assert "fourth" in registry.agents()
problems = testing.golden_problems(case) + testing.truth_problems(case)
sys.exit("\\n".join(problems) or 0)
"""


def test_one_module_and_one_fixture_folder(tmp_path: Path) -> None:
    for package in ("hub", "observers", "backends"):
        shutil.copytree(ROOT / package, tmp_path / package)
    case = tmp_path / "fixtures" / "fourth" / "answer"
    (case / "root" / ".fourth").mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "observers" / "fourth.py").write_text(MODULE, "utf-8")
    (case / "root" / ".fourth" / "first.jsonl").write_text(LOG, "utf-8")
    (case / "SOURCE.toml").write_text('agent = "fourth"\n', "utf-8")
    (case / "truth.json").write_text(json.dumps(TRUTH), "utf-8")
    added = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.relative_to(tmp_path).parts[0] for path in added} == {"observers", "fixtures"}
    env = {"PATH": os.defpath, "PYTHONPATH": str(tmp_path), "AGENTHUB_HOME": str(tmp_path / "own")}
    env["HOME"] = str(case / "root")
    checked = subprocess.run(
        [sys.executable, "-c", CHECK, str(case)], env=env, cwd=tmp_path, capture_output=True,
        check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr.decode()
    listed = subprocess.run(
        [sys.executable, "-m", "hub", "ls", "--all", "--json"], env=env, cwd=tmp_path,
        capture_output=True, check=True,
    )  # fmt: skip
    (row,) = json.loads(listed.stdout)
    assert (row["key"], row["title"]) == ("fourth:first", "What is it?")
    assert row["usage"]["output"] == 12
    doctor = subprocess.run(
        [sys.executable, "-m", "hub", "doctor"], env=env, cwd=tmp_path, capture_output=True,
        check=True,
    )  # fmt: skip
    assert b"Fourth (fourth)" in doctor.stdout
