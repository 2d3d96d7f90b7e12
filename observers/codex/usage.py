"""Tokens and rate limits of Codex.

`input_tokens` includes `cached_input_tokens` and `cache_write_input_tokens` (0.149+, a detail of
the input as the Responses API reports it), `output_tokens` includes `reasoning_output_tokens`.
From 0.155 on `token_usage_record` has one API response each; `token_count` repeats it and is then
used for the window and the limits only. Before, usage is the growth of `total_token_usage`.
"""

from typing import Final

from msgspec import Raw

from hub.events import Event, UsageEvent
from hub.model import Usage
from observers.codex import records
from observers.codex.records import Counted, Ledger, Message, Tokens, loose, mapping, text, whole
from observers.codex.state import State, tell

_EMPTY: Final = (b"", b"null")


def _tokens(data: Raw, out: list[Event]) -> Tokens | None:
    """The counts; None where there are none."""
    if bytes(data) in _EMPTY:
        return None
    return records.read(records.tokens, data, "token counts", out)


def _counts(said: Tokens) -> list[int | None]:
    """Input, cached, cache write, output, reasoning."""
    return [
        whole(said.input_tokens),
        whole(said.cached_input_tokens),
        whole(said.cache_write_input_tokens),
        whole(said.output_tokens),
        whole(said.reasoning_output_tokens),
    ]


def usage_of(counts: list[int | None]) -> Usage:
    """The counts with cached and written input taken out of the input."""
    total, cached, written, output, reasoning = counts
    if total is not None:
        total = max(total - (cached or 0) - (written or 0), 0)
    return Usage(total, cached, written, output, reasoning)


def record(payload: Raw, state: State, out: list[Event]) -> None:
    """A `token_usage_record`."""
    entry: Counted | Ledger | None
    said: Tokens | None
    try:
        entry = records.counted.decode(payload)
        said = entry.usage
    except records.ODD:
        entry = records.read(records.ledger, payload, "token_usage_record", out)
        said = None if entry is None else _tokens(entry.usage, out)
    if entry is None:
        return
    response = text(entry.response_id)
    state.ledger = True
    state.fresh.clear()
    if said is None:
        return
    state.context = whole(said.total_tokens) or state.context
    counts = _counts(said)
    if any(count is not None for count in counts):
        local = _local(state, text(entry.turn_id)) if response is None else response
        out.append(
            UsageEvent(response=local, model=state.model, counts=usage_of(counts), record=response)
        )


def _local(state: State, turn: str | None = None) -> str:
    state.counted += 1
    turn = turn or state.turn or (state.finished[-1] if state.finished else "0")
    return f"{turn}:{state.counted}"


def says_nothing(payload: bytes, state: State) -> bool:
    """Does a `token_count` behind the ledger say no new window and no new limits?"""
    window = b'"model_context_window":%d}' % (state.told.get("window") or 0)
    limits = b'"rate_limits":' + (state.limits_text or b"null") + b"}"
    return payload.endswith(limits) and window in payload


def token_count(message: Message, state: State, out: list[Event], *, own: bool) -> None:
    """A `token_count`: window, limits, and before 0.155 the growth of the totals.

    A synthetic one (input = output = 0, total not) is an estimate after a compaction or says that
    the window is full: it counts nothing, but later totals go on from it.
    """
    info = None
    if bytes(message.info) not in _EMPTY:
        info = records.read(records.info, message.info, "event_msg/token_count", out)
    if own:
        if info is not None:
            tell(state, out, window=whole(info.model_context_window))
        _limits(bytes(message.rate_limits), state, out)
    if info is not None and not state.ledger:
        _growth(info, state, out, own=own)


def _growth(info: records.Info, state: State, out: list[Event], *, own: bool) -> None:
    total, last = _tokens(info.total_token_usage, out), _tokens(info.last_token_usage, out)
    if total is None:
        return
    now = [count or 0 for count in _counts(total)]
    before, state.total = state.total, now
    if last is None:
        last = total
    state.context = whole(last.total_tokens) or state.context
    if not own or before == now or not (last.input_tokens or last.output_tokens):
        return
    grown: list[int | None] = [one - two for one, two in zip(now, before or [0] * 5, strict=True)]
    if (state.forked and not before) or any(count is None or count < 0 for count in grown):
        grown = [count or 0 for count in _counts(last)]
    if total.cache_write_input_tokens is None:
        grown[2] = None
    state.fresh.clear()
    out.append(UsageEvent(response=_local(state), model=state.model, counts=usage_of(grown)))


def _limits(data: bytes, state: State, out: list[Event]) -> None:
    """`rate_limits`: `primary` and `secondary`; other families by their `limit_id` before it."""
    if data in _EMPTY or data == state.limits_text:
        return
    state.limits_text = data
    limits = mapping(loose(data, out))
    family = text(limits.get("limit_id"))
    prefix = "" if family in (None, "codex") else f"{family}/"
    for name in ("primary", "secondary"):
        limit = mapping(limits.get(name))
        if limit:
            said = {"used": limit.get("used_percent")}
            for fact in ("resets_at", "resets_in_seconds", "window_minutes"):
                if limit.get(fact) is not None:
                    said[fact] = limit[fact]
            state.limits[prefix + name] = said
    if state.limits:
        tell(state, out, limits=dict(state.limits))
