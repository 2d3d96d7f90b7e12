"""Assistant records: one a content block, all of one response with the same `message.id`."""

from collections.abc import Iterator
from typing import Any, Final

from hub.events import Answer, ErrorEvent, Event, Note, Thinking, UsageEvent
from hub.model import Usage
from observers.claude.records import Block, Message, Record, Tokens
from observers.claude.state import Place, State, begin, end, forked, fullest, pause, resume
from observers.claude.tools import served, started

SYNTHETIC: Final = "<synthetic>"
"""Model of records that the CLI wrote itself."""
_FILLER: Final = "No response requested."
"""Written when a cut session is resumed; no reply."""
_NOTHING: Final = "(no content)"
"""Written for an empty text by 1.0.128, which does not ask again."""
_STOPS: Final = {"refusal": "refused", "max_tokens": "max_tokens"}
_VAGUE: Final = frozenset({"", "unknown", "invalid_request"})
_ENDS: Final = frozenset({"end_turn", "stop_sequence"})


def reply(record: Record, place: Place, state: State) -> Iterator[Event]:
    """The events of a `type: assistant` record."""
    message = record.message
    if message is None:
        return
    if message.model == SYNTHETIC:
        yield from _synthetic(record, message, place, state)
        return
    response = message.id or record.uuid or ""
    other = record.request_session_id or None
    if other is not None and other != state.root:
        yield from forked(other, place, state)
    else:
        other = None
    aside = bool(record.is_sidechain) and not state.child
    if not aside:
        yield from resume(place, state)
    if not (aside or state.open or (state.answered is not None and state.answered == response)):
        yield from begin(record, place, state)
        state.unasked_at = place["at"]
    state.silent = state.silent and aside
    state.stop = message.stop_reason
    if message.usage is not None and response:
        yield from _usage(response, message, message.usage, other, place, state)
    if aside:
        return  # 1.0.128: a sub-agent inside the session's file; its tokens count
    for block in _blocks(message):
        yield from _block(block, response, message.stop_reason, place, state)


def _block(
    block: Block, response: str, stop: str | None, place: Place, state: State
) -> Iterator[Event]:
    if block.type == "text":
        text = block.text or ""
        calling = response in state.calls.values()  # a call of before a crash stays open for ever
        over = stop in _ENDS and not calling
        if not text.strip() or text == _NOTHING:
            state.empty = state.empty or over
            if over and (state.nudged or text == _NOTHING):
                yield from end("empty_answer", place, state)
            return  # else the CLI asks once more for visible output
        state.empty, state.told = False, state.open and stop is None and not calling
        yield Answer(text=text, response=response or None, final=over, **place)
        if over and state.open:
            yield from end("completed", place, state)
            state.answered = response or None
        elif state.told and state.early:
            yield from pause(place, state)
    elif block.type in {"thinking", "redacted_thinking"}:
        yield Thinking(text=block.thinking or "", response=response or None, **place)
    elif block.type in {"tool_use", "server_tool_use", "mcp_tool_use"}:
        state.empty, state.told = False, False
        yield from started(block, response, place, state)
    elif block.type.endswith("_tool_result"):
        yield from served(block, place)


def _blocks(message: Message) -> list[Block]:
    if isinstance(message.content, str):
        return [Block(type="text", text=message.content)]
    return message.content or []


def _synthetic(record: Record, message: Message, place: Place, state: State) -> Iterator[Event]:
    """What the CLI said in the model's place: a failure or a filler."""
    text = "\n".join(block.text for block in _blocks(message) if block.text)
    flag = record.is_api_error_message
    if flag or (flag is None and text.startswith("API Error")):
        if not state.open:
            yield from begin(record, place, state)
        code = record.error if isinstance(record.error, str) else None
        yield ErrorEvent(text=text, code=code, status=record.api_error_status, **place)
        yield from end(_failure(code or "", message.stop_reason, state), place, state)
    elif text.strip() not in {"", _FILLER}:
        yield Note(code="synthetic_reply", detail=text[:200], **place)


def _failure(code: str, stop: str | None, state: State) -> str:
    """Why the turn failed: `stop_reason` and `error`, or the response before it (1.0.128)."""
    if stop == "refusal":
        return "refused"
    if code == "max_output_tokens":
        return "max_tokens"
    return _STOPS.get(state.stop or "", "failed") if code in _VAGUE else "failed"


def _usage(
    response: str,
    message: Message,
    tokens: Tokens,
    owner: str | None,
    place: Place,
    state: State,
) -> Iterator[Event]:
    counts = _counts(tokens)
    if counts == Usage():
        return
    counts = fullest(response, counts, state)
    yield UsageEvent(
        response=response,
        model=message.model,
        counts=counts,
        owner=owner,
        raw=_raw(tokens),
        **place,
    )


def _counts(tokens: Tokens) -> Usage:
    """`input_tokens` is without cache; the sum of cache writes can be 0 before 2.1.152."""
    written = tokens.cache_creation_input_tokens
    parts = tokens.cache_creation
    if parts is not None:
        lifetimes = (parts.ephemeral_5m_input_tokens, parts.ephemeral_1h_input_tokens)
        known = [count for count in lifetimes if count is not None]
        written = max(written or 0, sum(known)) if known else written
    details = tokens.output_tokens_details
    return Usage(
        input=tokens.input_tokens,
        cache_read=tokens.cache_read_input_tokens,
        cache_write=written,
        output=tokens.output_tokens,
        reasoning=details.thinking_tokens if details is not None else None,
    )


def _raw(tokens: Tokens) -> dict[str, Any] | None:
    """What a price needs beside the counts, where the record says something."""
    parts, tools = tokens.cache_creation, tokens.server_tool_use
    said = {
        "cache_5m": parts.ephemeral_5m_input_tokens if parts else None,
        "cache_1h": parts.ephemeral_1h_input_tokens if parts else None,
        "web_search_requests": tools.web_search_requests if tools else None,
        "web_fetch_requests": tools.web_fetch_requests if tools else None,
        "service_tier": tokens.service_tier,
        "speed": tokens.speed,
        "inference_geo": tokens.inference_geo,
    }
    return {key: value for key, value in said.items() if value} or None
