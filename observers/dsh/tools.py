"""Tool calls, their results, and what is waited for in a dsh log (0.2.1rc2, format v4).

A call counts from `tool/call`, which is on disk before the tool runs: of several calls in one
`assistant/message` the next ones wait for their turn, and may never begin. Questions and plans have
no record of their own: the call is open, or the user answers.
"""

import re
from typing import Any, Final

import msgspec

from hub.decode import bounded
from hub.events import Event, Intent, Subagent, ToolEnd, ToolStart, Wait, WaitEnd, WaitingFor
from observers.dsh import records as r
from observers.dsh.reading import parts
from observers.dsh.state import Fold, State, text_of

_INTENTS: Final[dict[str, Intent]] = {
    "bash": "terminal",
    "edit": "diff", "write": "diff",
    "read": "locations", "read_image": "locations", "glob": "locations", "grep": "locations",
    "list": "locations",
}  # fmt: skip
_ASKS: Final[dict[str, WaitingFor]] = {"ask_user_question": "question", "exit_plan_mode": "plan"}
_DELEGATES: Final = frozenset({"subagent", "subagent_fork", "workflow"})
_EXIT: Final = re.compile(
    r"\[(?:exit code:|Command finished with exit code|shell exited: code) (-?\d{1,6})\]"
    r"|\[(?:killed by signal|timed out|Command timed out|shell killed by)[^\]\n]*\]"
)
"""How a bash result ends; profile sdk-minimal has its own words."""
_SPILL: Final = re.compile(r"Full formatted result stored at: (\S+?)(?=\. |\)|\s|$)")
_SUBPROCESS: Final = re.compile(r"\[output truncated; full output: ([^\]\n]+)\]")
_STARTED: Final = re.compile(r"started subagent ([0-9A-Za-z._-]{1,200})")
"""What a delegating call returns at once, in every version."""
_DETAIL: Final = re.compile(r"exit code: (-?\d{1,6})")


def _tool_call(data: r.Called, state: State, out: list[Event]) -> None:
    """Written before the body runs; of several calls in a message the next waits its turn."""
    args = _arguments(data.arguments)
    intent = _INTENTS.get(data.name, "generic")
    named = args.get("file_path") or args.get("path")
    files = [named] if isinstance(named, str) and intent in ("diff", "locations") else []
    label = args.get("description")
    state.calls[data.call_id] = [data.name, label if isinstance(label, str) else ""]
    out.append(ToolStart(call=data.call_id, name=data.name, intent=intent, args=args, files=files))
    waiting = _ASKS.get(data.name)
    if waiting == "question" or (waiting and state.planning):
        state.asked.append(data.call_id)
        out.append(Wait(for_=waiting, call=data.call_id))


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text) if text else None
    except (msgspec.MsgspecError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {key: bounded(one) if isinstance(one, str) else one for key, one in value.items()}


def _tool_result(data: r.Said, state: State, out: list[Event]) -> str | None:
    message = data.message
    call, bad, blocks = message.tool_call_id, message.is_error, message.content
    for part in message.content:  # v0..v3 wrap the result into a block of a user message
        if part.type == "tool-result":
            call, bad, blocks = part.tool_call_id, part.is_error, parts(part.content)
    name = state.calls.pop(call, [""])[0]
    code = state.codes.pop(call, None)
    error = data.error.code if data.error is not None else ""
    if error == "TOOL_NOT_STARTED" and not name:
        return None  # a closer for a call that never began
    text = text_of(r.Message(content=blocks))
    spill = None
    if "ull " in text:
        spill = _SPILL.search(text, max(len(text) - 2000, 0)) or _SUBPROCESS.search(text)
    failed = call in state.failed
    if failed:
        state.failed.remove(call)
    killed = False
    if name == "bash":
        said, killed = _exit(text)
        code = said if code is None else code
        killed = killed and code in (None, 0)
    out.append(
        ToolEnd(
            call=call,
            ok=not (bad or error or failed or killed) and code in (None, 0),
            exit_code=code,
            bytes=len(text.encode()),
            text=bounded(text),
            spill=spill[1] if spill else None,
        )
    )
    started = _STARTED.match(text) if name in _DELEGATES else None
    if started and state.children.get(started[1]) != call:
        state.children[started[1]] = call
        out.append(Subagent(child=started[1], call=call))
    _answered(call, state, out)
    if name == "ask_user_question" and not bad and _pending(text):
        state.deferred.append(call)
    return _record(message.id)


def _exit(text: str) -> tuple[int | None, bool]:
    """How a command ended: the exit code that its text names, and whether it was killed."""
    if "]" not in text:
        return None, False
    marks = list(_EXIT.finditer(text, max(len(text) - 2000, 0)))
    if not marks:
        return None, False
    return (int(marks[-1][1]), False) if marks[-1][1] else (None, True)


def _dispatched(data: r.Dispatched, state: State, out: list[Event]) -> None:
    """What a program of `run_code` called is a part of that call, and fails it."""
    del out
    if data.root_call_id not in state.calls:
        return
    code, killed = None, False
    if data.name == "bash":
        code, killed = _exit(text_of(r.Message(content=data.content)))
    if code:
        state.codes[data.root_call_id] = code
    if (data.is_error or killed) and data.root_call_id not in state.failed:
        state.failed.append(data.root_call_id)


def _record(name: str) -> str | None:
    """The record's id; a closer's is made of the call's and says nothing of forks."""
    return None if name.startswith("interrupted-") else name or None


def _pending(text: str) -> bool:
    return _arguments(text).get("pending") is True


def _answered(call: str, state: State, out: list[Event]) -> None:
    """A result closes what its call asked."""
    for key in [key for key, of in state.approvals.items() if of == call]:
        del state.approvals[key]
        out.append(WaitEnd(call=call))
    if call in state.asked:
        state.asked.remove(call)
        out.append(WaitEnd(call=call))


def _settled(data: r.Ran, state: State, out: list[Event]) -> None:
    """`job/settled`: the exit code that a successful bash result does not print (v4)."""
    del out
    code = _DETAIL.fullmatch(data.detail)
    if code and data.tool_call.call_id in state.calls:
        state.codes[data.tool_call.call_id] = int(code[1])


def _approval_asked(data: r.Approval, state: State, out: list[Event]) -> None:
    call = data.call_id or None
    state.approvals[data.id] = call
    out.append(Wait(for_="plan" if data.tool_name == "exit_plan_mode" else "permission", call=call))


def _approval_decided(data: r.Approval, state: State, out: list[Event]) -> None:
    if data.id in state.approvals:
        out.append(WaitEnd(call=state.approvals.pop(data.id)))


def _child(data: r.Catalog, state: State, out: list[Event]) -> None:
    """`subagent/catalog` (v3 on) names no call: told by being the only one, else by its label.

    The result of the call tells it for sure, save for a workflow's.
    """
    if not data.child_id or data.child_id in state.children:
        return
    calls = {call: label for call, (name, label) in state.calls.items() if name in _DELEGATES}
    if len(calls) > 1:
        calls = {call: label for call, label in calls.items() if label == data.label}
    call = next(iter(calls)) if len(calls) == 1 else None
    state.children[data.child_id] = call or ""
    out.append(Subagent(child=data.child_id, call=call))


FOLDS: Final[dict[str, Fold[Any]]] = {
    "approval/asked": Fold(r.Approval, _approval_asked),
    "approval/decided": Fold(r.Approval, _approval_decided),
    "job/settled": Fold(r.Ran, _settled),
    "subagent/catalog": Fold(r.Catalog, _child),
    "tool/call": Fold(r.Called, _tool_call),
    "tool/code-dispatch": Fold(r.Dispatched, _dispatched),
    "tool/ptc-dispatch": Fold(r.Dispatched, _dispatched),
    "tool/result": Fold(r.Said, _tool_result),
}
