"""Events of one session in, in order; everything that its records say of it out.

No clock and no liveness here: `hub.state` adds those. A fold is a plain struct that the store
keeps, so that a grown file costs only its growth.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, field

from hub.decode import bounded
from hub.events import (
    Answer,
    Compact,
    ErrorEvent,
    Event,
    Meta,
    Note,
    Prompt,
    Retry,
    Rewind,
    Subagent,
    Thinking,
    Title,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
    UsageEvent,
    Wait,
    WaitEnd,
)
from hub.model import Usage

TEXT = 2_000
"""Characters kept of a text in a session."""
KEPT_TOOLS = 10
KEPT_FILES = 500
KEPT_NOTES = 200
KEPT_DETAIL = 200


class OpenCall(Struct):
    """A tool call without a result."""

    name: str
    summary: str
    at: str | None
    path: str
    offset: int


class OpenWait(Struct):
    """A question without an answer."""

    what: str
    certain: bool
    at: str | None
    path: str
    offset: int


class Spot(Struct):
    """The record that says something, for `explain`."""

    text: str
    path: str
    offset: int


Counts: TypeAlias = tuple[int, int, int, int, int]
"""Turns, prompts, tool calls, failed tools, failed turns."""


class Response(Struct):
    """One response of a model, as one session has it."""

    at: str | None
    model: str | None
    counts: Usage
    raw: dict[str, object] | None = None
    n: int = 0
    """Number of its event in the session."""
    cost: float | None = None
    """List price in `currency`; null where it is not known."""
    currency: str = "USD"
    basis: str | None = None
    """`table` or `override`, and behind a colon the version of the table."""
    owner: str | None = None
    """Key of the session that made the request, where its record says that it was another."""
    upto: Counts = (0, 0, 0, 0, 0)
    """The session's counts before the turn after this response began."""
    next_at: str | None = None
    """When that turn began: where a copy of everything before it becomes a session's own."""


class Fold(Struct):
    """What the records of a session say so far."""

    meta: dict[str, object] = field(default_factory=dict)
    title: str | None = None
    title_rank: int = -1
    title_spot: Spot | None = None
    first_prompt: str | None = None
    started_at: str | None = None
    updated_at: str | None = None
    events: int = 0
    turns: int = 0
    prompts: int = 0
    tool_calls: int = 0
    failed_tools: int = 0
    failed_turns: int = 0
    open_turn: Spot | None = None
    turn: str | None = None
    """The agent's id of the last turn that began."""
    last_at: str | None = None
    """Time of the last event with one: since when the session does what it does."""
    last_end: str | None = None
    """Reason of the last turn_end; null before the first."""
    last_end_spot: Spot | None = None
    lost_turns: int = 0
    """Turns that another one began over."""
    calls: dict[str, OpenCall] = field(default_factory=dict)
    waits: dict[str, OpenWait] = field(default_factory=dict)
    retrying: str | None = None
    compacting: bool = False
    last_prompt: str | None = None
    last_answer: str | None = None
    last_answer_response: str | None = None
    last_tools: list[str] = field(default_factory=list)
    last_command: str | None = None
    last_error: str | None = None
    files: list[str] = field(default_factory=list)
    context_tokens: int | None = None
    children: dict[str, str | None] = field(default_factory=dict)
    """Native id of a child -> the call that made it."""
    notes: dict[str, int] = field(default_factory=dict)
    """`code` or `code:detail` -> how often."""
    last: tuple[str, Response] | None = None
    """The response after which no turn has begun yet."""
    usage_events: int = 0
    """With the number of responses this says how many repeats were dropped."""

    def apply(self, event: Event) -> None:  # the one switch over event kinds
        """Takes one event in."""
        self.events += 1
        if event.at is not None:
            self.last_at = event.at
            if self.started_at is None:
                self.started_at = event.at
            if self.updated_at is None or event.at > self.updated_at:
                self.updated_at = event.at
        match event:
            case UsageEvent():
                self._usage(event)
            case ToolStart():
                self._tool_start(event)
            case ToolEnd():
                self._tool_end(event)
            case Answer():
                self._answer(event)
            case Thinking():
                self.retrying = None
            case Prompt():
                self._prompt(event)
            case TurnStart():
                self._turn_start(event)
            case TurnEnd():
                self._turn_end(event)
            case Meta():
                self._meta(event)
            case Title():
                if event.rank >= self.title_rank:
                    self.title, self.title_rank = bounded(event.title, TEXT), event.rank
                    self.title_spot = Spot("title record", event.path, event.offset)
            case Wait():
                call = event.call or ""
                self.waits[call] = OpenWait(
                    event.for_, event.certain, event.at, event.path, event.offset
                )
            case WaitEnd():
                self._wait_end(event.call)
            case Retry():
                self.retrying = bounded(event.text, TEXT)
            case Compact():
                self.compacting = event.phase == "start"
            case Subagent():
                self.children[event.child] = event.call
            case ErrorEvent():
                self.last_error = bounded(event.text, TEXT)
            case Note():
                self._note(event.code, event.detail)
            case Rewind():
                self.calls.clear()
                self.waits.clear()
            case _:
                pass

    def _note(self, code: str, detail: str | None) -> None:
        key = code if detail is None else f"{code}:{detail[:KEPT_DETAIL]}"
        if key not in self.notes and len(self.notes) >= KEPT_NOTES:
            key = code  # whoever invents a kind a record must not fill the store
        self.notes[key] = self.notes.get(key, 0) + 1

    def counts(self) -> Counts:
        """What a copy of everything so far would inherit."""
        return (
            self.turns,
            self.prompts,
            self.tool_calls,
            self.failed_tools,
            self.failed_turns,
        )

    def _meta(self, event: Meta) -> None:
        for name in (
            "cwd", "git_branch", "model", "effort", "cli_version", "surface", "parent",
            "relation", "call", "window", "limits", "cost_usd",
        ):  # fmt: skip
            value = getattr(event, name)
            if value is not UNSET:
                self.meta[name] = value
        if event.started_at is not UNSET:
            self.started_at = event.started_at

    def _prompt(self, event: Prompt) -> None:
        if event.source == "task":
            if self.first_prompt is None:
                self.first_prompt = bounded(event.text, TEXT)
            return
        self.prompts += 1
        self.last_prompt = bounded(event.text, TEXT)
        if self.first_prompt is None:
            self.first_prompt = self.last_prompt

    def _turn_start(self, event: TurnStart) -> None:
        again = event.turn is not None and event.turn == self.turn
        if self.open_turn is not None and not again:
            self.lost_turns += 1
        if not again:
            # an agent without turn records may only see later that its turn went on
            self.turns += 1
        self.turn = event.turn
        self.open_turn = Spot("the turn began", event.path, event.offset)
        self.calls.clear()
        self.waits.clear()
        self.retrying = None
        self.last_error = None

    def _turn_end(self, event: TurnEnd) -> None:
        self.open_turn = None
        self.last_end = event.reason
        self.last_end_spot = Spot(f"the turn ended: {event.reason}", event.path, event.offset)
        if event.reason not in {"completed", "interrupted", "lost"}:
            self.failed_turns += 1
        self.calls.clear()
        self.waits.clear()
        self.retrying = None
        self.compacting = False

    def _answer(self, event: Answer) -> None:
        self.retrying = None
        text = event.text
        if event.response is not None and event.response == self.last_answer_response:
            text = f"{self.last_answer or ''}\n{text}"
        self.last_answer = bounded(text, TEXT)
        self.last_answer_response = event.response

    def _tool_start(self, event: ToolStart) -> None:
        self.tool_calls += 1
        self.retrying = None
        summary = summarise(event)
        self.calls[event.call] = OpenCall(event.name, summary, event.at, event.path, event.offset)
        self.last_tools = [*self.last_tools[1 - KEPT_TOOLS :], event.name]
        if event.intent == "terminal" and summary:
            self.last_command = bounded(summary, TEXT)
        if event.intent == "diff":
            for name in event.files:
                if name not in self.files and len(self.files) < KEPT_FILES:
                    self.files.append(name)

    def _tool_end(self, event: ToolEnd) -> None:
        self.calls.pop(event.call, None)
        self._wait_end(event.call)
        if not event.ok:
            self.failed_tools += 1

    def _wait_end(self, call: str | None) -> None:
        self.waits.pop(call or "", None)

    def _usage(self, event: UsageEvent) -> None:
        self.usage_events += 1
        counts = event.counts
        known = [
            value
            for value in (counts.input, counts.cache_read, counts.cache_write, counts.output)
            if value is not None
        ]
        if known:
            self.context_tokens = sum(known)


def summarise(event: ToolStart) -> str:
    """What a call does, in one line: the command, the path, or the first text argument."""
    args = event.args
    for name in ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url",
                 "description", "prompt", "message"):  # fmt: skip
        value = args.get(name)
        if isinstance(value, str) and value.strip():
            return bounded(value.strip(), TEXT)
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return bounded(" ".join(value), TEXT)
    if event.files:
        return bounded(", ".join(event.files), TEXT)
    return _asked(args)


def _asked(args: Mapping[str, Any]) -> str:
    """What a call asks a person: its questions, or the first line of the plan to approve."""
    questions = args.get("questions")
    if isinstance(questions, list):
        texts = [one.get("question") for one in questions if isinstance(one, dict)]
        return bounded(" / ".join(one.strip() for one in texts if isinstance(one, str)), TEXT)
    for name in ("question", "plan"):
        value = args.get(name)
        if isinstance(value, str) and value.strip():
            return bounded(value.strip().partition("\n")[0], TEXT)
    return ""
