"""What a dsh log's lines so far mean for the next ones, and what every fold shares.

Plain values only: the store keeps the state between processes.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from hub.events import Event, Meta, TurnEnd, UsageEvent, Wait, WaitEnd
from hub.model import Usage
from observers.dsh import records as r
from observers.dsh.reading import Reader

T = TypeVar("T", bound=Struct)


class State(Struct):
    """What of the lines so far matters for the next."""

    version: int = 0
    """Of the format, from the file name, then from the header."""
    child: bool = False
    """A sub-agent's log: its prompts are tasks."""
    inherited: bool = False
    """In the prefix that a seeded log copied from its parent."""
    seed: int = 0
    """v0, v1: rows with a smaller `seq` are inherited."""
    unstarted: bool = False
    """A seeded log whose first own record has not come."""
    turn: str | None = None
    """The open turn."""
    step: str = ""
    attempts: int = 0
    """Failed tries of this step."""
    spent: dict[str, Any] | None = None
    """v0, v1: usage that was streamed for a response whose message has not come."""
    cwd: str | None = None
    model: str | None = None
    effort: str | None = None
    window: int | None = None
    system: str | None = None
    """Fingerprint of the system prompt."""
    title: list[Any] | None = None
    """The inherited title: text, rank, source."""
    compacting: bool = False
    planning: bool = False
    """In plan mode."""
    calls: dict[str, list[str]] = field(default_factory=dict)
    """Open calls: name and description."""
    codes: dict[str, int] = field(default_factory=dict)
    """Exit codes of open calls."""
    failed: list[str] = field(default_factory=list)
    """Open calls whose program made a call that failed."""
    approvals: dict[str, str | None] = field(default_factory=dict)
    """Open approvals and their calls."""
    asked: list[str] = field(default_factory=list)
    """Calls that wait for the user."""
    deferred: list[str] = field(default_factory=list)
    """Timed questions that gave up waiting; an answer is still welcome."""
    queued: list[str] = field(default_factory=list)
    """Messages put into the inbox while a turn was open."""
    children: dict[str, str] = field(default_factory=dict)
    """Sub-agents told so far, with the call that made them; "" = not known."""


class Fold(Generic[T]):
    """What a record type says: `function` appends its events and gives the record's own id."""

    def __init__(
        self, kind: type[T], function: Callable[[T, State, list[Event]], str | None]
    ) -> None:
        self.read = Reader(kind)
        self.function = function


def text_of(message: r.Message) -> str:
    """The text blocks, with a mark for each image."""
    parts = [
        part.text if part.type == "text" else "[image]"
        for part in message.content
        if part.type in ("text", "image")
    ]
    return "\n".join(parts)


def meta(
    state: State,
    out: list[Event],
    *,
    model: str = "",
    effort: str | None = None,
    window: int | None = None,
    cwd: str = "",
) -> None:
    """What changed; "" and None = not said."""
    meta = Meta()
    if model and model != state.model:
        meta.model = state.model = model
    if effort and effort != state.effort:
        meta.effort = state.effort = effort
    if window and window != state.window:
        meta.window = state.window = window
    if cwd and cwd != state.cwd:
        meta.cwd = state.cwd = cwd
    if meta != Meta():
        out.append(meta)


def settle(state: State, out: list[Event], reason: str, turn: str | None) -> None:
    """The turn is over: nothing is waited for in it, save late answers to timed questions."""
    out.extend(WaitEnd(call=call) for call in [*state.approvals.values(), *state.asked])
    state.approvals.clear()
    state.asked.clear()
    state.calls.clear()
    state.codes.clear()
    state.failed.clear()
    state.turn = None
    out.append(TurnEnd(reason=reason, turn=turn))
    out.extend(Wait(for_="question", call=call) for call in state.deferred)


def step(turn: int | None, number: int | None, state: State) -> None:
    """A new step begins its tries from 1."""
    now = f"{turn or 0}:{number or 0}"
    if now != state.step:
        state.step = now
        state.attempts = 0


def counts(usage: r.Tokens) -> Usage:
    """The usage in our names; `outputTokens` includes reasoning."""
    return Usage(
        input=usage.input_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        output=usage.output_tokens,
        reasoning=usage.reasoning_tokens,
    )


def spent(state: State) -> r.Tokens | None:
    """v0, v1: usage that no message has claimed."""
    return msgspec.convert(state.spent, r.Tokens) if state.spent is not None else None


def one_try(state: State, out: list[Event], usage: r.Tokens) -> None:
    """What a failed try cost: `<turn>:<step>.<n>`."""
    response = f"{state.step}.{state.attempts}"
    out.append(UsageEvent(response=response, model=state.model, counts=counts(usage)))


def flush(state: State, out: list[Event]) -> None:
    """v0, v1: a try that ended without a message."""
    usage = spent(state)
    if usage is not None:
        state.spent = None
        state.attempts += 1
        one_try(state, out, usage)
