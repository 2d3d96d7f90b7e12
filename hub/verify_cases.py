"""What `agenthub verify --live` plays to a CLI, and what the list must say at which moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from signal import SIGINT, SIGKILL, Signals
from typing import Any, Literal

from hub.scripts import FINAL, Hold, Script, Shell, Text

GATE = "gate"
RUNS = "tool-runs"
"""The endless command makes this file in the working folder."""
SCRIPTS: Mapping[str, Script] = {
    "endless": ((Text("I wait."), Shell(f"touch {RUNS}; tail -f /dev/null")), FINAL),
    "held": ((Text("The answer "), Hold(GATE), Text("is 42.")),),
    "wide": (
        (Text("你好 🎉"), Shell("printf 'héllo 🎉 日本\\n'")),
        (Text("完成 ✅ 日本語"),),
    ),
}
AS_MEASURED = object()
"""Stands for the outcome that the agent's own module tells."""
ANY = object()
"""Stands for a value that is not compared."""


@dataclass(frozen=True)
class Moment:
    """One row of the matrix: the list is looked at here."""

    name: str
    expected: Mapping[str, Any]
    """What the ledger and the scratch home do not say already."""
    signal: Signals | None = None
    """Sent to the CLI first, and its end waited for."""


@dataclass(frozen=True)
class Scenario:
    """Prompts, each a run that resumes the session of the one before, and moments in the last."""

    prompts: tuple[str, ...]
    reach: Literal["end", "gate", "tool"]
    """How far the last run goes before the first moment."""
    moments: tuple[Moment, ...]
    folder: str = "proj"


def _live(kind: str, **more: Any) -> dict[str, Any]:
    return {"state": "working", "outcome": None, "live": True, "activity": kind, **more}


def _over(outcome: Any, **more: Any) -> dict[str, Any]:
    return {"state": "ended", "outcome": outcome, "live": False, "activity": None, **more}


def _one(name: str, prompt: str, outcome: Any, **more: Any) -> Scenario:
    return Scenario((prompt,), "end", (Moment(name, _over(outcome, **more)),))


_DONE = {"tool_calls": 0, "errors": 0, "children": 0}


SCENARIOS: tuple[Scenario, ...] = (
    _one("answer", "What is the answer? [[answer]]", "completed", **_DONE),
    _one("tool", "Use a tool. [[tool]]", "completed", **_DONE | {"tool_calls": 1}),
    _one("parallel tools", "Do three at once. [[parallel]]", "completed",
         **_DONE | {"tool_calls": 3}),
    _one("failing tool", "Use a tool that fails. [[failtool]]", "completed",
         **_DONE | {"tool_calls": 1, "errors": 1}),
    Scenario(("Answer slowly. [[held]]",), "gate", (
        Moment("model thinks", _live("thinking", tool_calls=0)),
        Moment("SIGKILL in answer", _over("lost", tool_calls=0), SIGKILL),
    )),
    Scenario(("Run for ever. [[endless]]",), "tool", (
        Moment("tool runs", _live("tool", tool_calls=1)),
        Moment("SIGKILL in tool", _over("lost", tool_calls=1), SIGKILL),
    )),
    Scenario(("Run until I stop you. [[endless]]",), "tool", (
        Moment("SIGINT in tool", _over(AS_MEASURED, tool_calls=1), SIGINT),
    )),
    _one("API error", "Ask in vain. [[http:400]]", "failed", **_DONE | {"errors": 1}),
    _one("retry", "Ask twice. [[once:503:1]]", "completed", **_DONE),
    _one("sub-agent", "Have somebody count. [[subagent]]", "completed", children=1, errors=0,
         turns=ANY),  # the child's end may begin a turn of its own
    Scenario(("First. [[tool]]", "Second. [[answer]]"), "end", (
        Moment("resume", _over("completed", **_DONE | {"tool_calls": 1})),
    )),
    Scenario(("请说你好 🎉 [[wide]]",), "end", (
        Moment("CJK and emoji", _over("completed", **_DONE | {"tool_calls": 1})),
    ), "项目 一号 🎉"),
)  # fmt: skip
