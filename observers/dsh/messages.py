"""Prompts, answers, thinking, system prompts and usage of a dsh log (0.2.1rc2, format v4).

A prompt is told when it is delivered (`user/message`): the same message, with the same id, stood in
the inbox before (`agent/inbox/spliced`), and may be withdrawn from there.
"""

import hashlib
from typing import Any, Final, Literal

import msgspec

from hub.decode import bounded
from hub.events import Answer, Event, Prompt, System, Thinking, UsageEvent, WaitEnd
from observers.dsh import records as r
from observers.dsh.state import Fold, State, counts, meta, one_try, spent, step, text_of

_QUEUED_MAX: Final = 1000


def _inbox(data: r.Spliced, state: State, out: list[Event]) -> None:
    """Text given while a turn is open waits; its `user/message` comes when it is delivered."""
    del out
    if state.turn is None:
        return
    fresh = [one.id for one in data.inserted if one.id and one.source.kind == "user"]
    state.queued = [*state.queued, *fresh][-_QUEUED_MAX:]


def _user(data: r.Message, state: State, out: list[Event]) -> str | None:
    if data.source.kind == "user-question-reply" and data.source.call_id in state.deferred:
        state.deferred.remove(data.source.call_id)
        if state.turn is None:
            out.append(WaitEnd(call=data.source.call_id))
    if data.source.kind == "user":
        source: Literal["human", "queued", "task"] = "human"
        if data.id in state.queued:
            state.queued.remove(data.id)
            source = "queued"
        if state.child:
            _task(data, out)
        else:
            out.append(Prompt(text=text_of(data), source=source))
    return data.id or None


def _task(data: r.Message, out: list[Event]) -> None:
    """The order is the first text; dsh adds a text of its own on how to report."""
    texts = [part for part in data.content if part.type == "text"][:1]
    rest = [part for part in data.content if part.type != "text"]
    out.append(Prompt(text=text_of(r.Message(content=texts + rest)), source="task"))


def _system(data: r.Said, state: State, out: list[Event]) -> str | None:
    prompted(text_of(data.message), state, out)
    return data.message.id or None


def prompted(text: str, state: State, out: list[Event]) -> None:
    """A system prompt, told once until it changes."""
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    if text and fingerprint != state.system:
        state.system = fingerprint
        out.append(System(text=bounded(text, 2000), fingerprint=fingerprint))


def _assistant(data: r.Said, state: State, out: list[Event]) -> str | None:
    message = data.message
    step(data.turn, data.step, state)
    response = message.id or f"{state.step}.0"
    model = message.source.model if isinstance(message.source.model, str) else ""
    meta(state, out, model=model)
    texts = [part for part in message.content if part.type == "text" and part.text]
    done = not data.interrupted and all(part.type != "tool-call" for part in message.content)
    for part in message.content:
        if part.type == "reasoning":
            out.append(Thinking(text=part.text, response=response))
        elif part.type == "text" and part.text:
            out.append(Answer(text=part.text, response=response, final=done and part is texts[-1]))
    usage = data.usage or spent(state)
    state.spent = None
    if usage is not None:
        out.append(UsageEvent(response=response, model=model or state.model, counts=counts(usage)))
    return message.id or None


def _failed_try(data: r.Attempt, state: State, out: list[Event]) -> None:
    """`assistant/attempt`: one failed try; what it cost stands in its stream."""
    step(data.turn, data.step, state)
    state.attempts += 1
    spent = [one.chunk.usage for one in data.stream if one.chunk and one.chunk.usage]
    if spent:
        one_try(state, out, spent[-1])


def _chunk(data: r.Attempt, state: State, out: list[Event]) -> None:
    """v0, v1: usage is streamed before the message, and stays alone when the try fails."""
    del out
    if data.chunk is not None and data.chunk.usage is not None:
        step(data.turn, data.step, state)
        state.spent = msgspec.to_builtins(data.chunk.usage)


FOLDS: Final[dict[str, Fold[Any]]] = {
    "agent/inbox/spliced": Fold(r.Spliced, _inbox),
    "assistant/attempt": Fold(r.Attempt, _failed_try),
    "assistant/chunk": Fold(r.Attempt, _chunk),
    "assistant/message": Fold(r.Said, _assistant),
    "system/message": Fold(r.Said, _system),
    "user/message": Fold(r.Message, _user),
}
