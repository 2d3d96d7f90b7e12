"""The frozen contracts: field names, schemas, exit codes; every golden line fits them."""

import json

import generate
import msgspec
import pytest
from conftest import CASES, case_id

from hub import events
from hub.errors import EXIT_CODES
from hub.model import Job, Outcome, Session

KINDS = {
    "meta", "title", "prompt", "answer", "thinking", "tool_start", "tool_end", "turn_start",
    "turn_end", "usage", "wait", "wait_end", "retry", "compact", "subagent", "rewind", "system",
    "error", "note", "state", "snapshot", "gap", "reset",
}  # fmt: skip
SESSION = (
    "key agent id host root parent relation title cwd git_branch model effort cli_version surface"
    " state outcome waiting_for activity evidence certain alternatives job pid tty tmux live"
    " started_at updated_at turns prompts tool_calls errors last_prompt last_answer last_tools"
    " last_command last_error files_touched usage usage_with_children context cost_usd cost_basis"
    " alerts sources notes complete"
).split()
JOB = "id agent state session mode cwd created_at started_at ended_at attempts outcome".split()
OUTCOME = "ok code answer partial fields usage cost_usd exit_status signal warnings".split()


def test_schemas_are_as_generated() -> None:
    for path, text in generate.documents().items():
        assert path.read_text("utf-8") == text, f"{path} differs: run make golden, read the diff"


def test_names_of_the_contract() -> None:
    tags = {kind.__struct_config__.tag for kind in events.Event.__args__}  # type: ignore[attr-defined]
    assert tags == KINDS
    assert list(Session.__struct_fields__) == SESSION
    assert list(Job.__struct_fields__) == JOB
    assert list(Outcome.__struct_fields__) == OUTCOME


def test_exit_codes() -> None:
    assert {code for code, exit_code in EXIT_CODES.items() if exit_code == 0} == {"completed"}
    assert len(EXIT_CODES) == 30


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_golden_files_fit_the_contract(case: "generate.Path") -> None:
    lines = (case / "expected.jsonl").read_bytes().splitlines()
    decoded = [events.decode(line) for line in lines]
    assert [events.encode(event) for event in decoded] == lines
    rows = json.loads((case / "session.json").read_bytes())
    again = msgspec.convert(rows, list[Session])
    assert msgspec.to_builtins(again) == rows
    assert {event.session for event in decoded} <= {row["key"] for row in rows}
