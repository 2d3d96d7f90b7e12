"""Tokens and rate limits of Codex.

`input_tokens` includes `cached_input_tokens` and `cache_write_input_tokens` (0.149+, a detail of
the input as the Responses API reports it), `output_tokens` includes `reasoning_output_tokens`.
From 0.155 on `token_usage_record` has one API response each; `token_count` repeats it and is then
used for the window and the limits only. Before, usage is the growth of `total_token_usage`.
"""

from typing import Any, Final

from hub.events import Event, UsageEvent
from hub.model import Usage
from observers.codex.records import Ledger, Message, mapping, text, whole
from observers.codex.state import State, tell

FIELDS: Final = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


def _counts(value: Any) -> list[int | None]:
    got = mapping(value)
    return [whole(got.get(name)) for name in FIELDS]


def usage_of(counts: list[int | None]) -> Usage:
    """The counts with cached and written input taken out of the input."""
    total, cached, written, output, reasoning = counts
    if total is not None:
        total = max(total - (cached or 0) - (written or 0), 0)
    return Usage(total, cached, written, output, reasoning)


def recorded(record: Ledger, state: State, out: list[Event]) -> None:
    """A `token_usage_record`."""
    response = text(record.response_id)
    counts = _counts(record.usage)
    state.ledger = True
    state.fresh.clear()
    if response is None:
        response = _local(state, text(record.turn_id))
    if any(count is not None for count in counts):
        event = UsageEvent(response=response, model=state.model, counts=usage_of(counts))
        event.record = text(record.response_id)
        out.append(event)


def _local(state: State, turn: str | None = None) -> str:
    state.counted += 1
    turn = turn or state.turn or (state.finished[-1] if state.finished else "0")
    return f"{turn}:{state.counted}"


def token_count(message: Message, state: State, out: list[Event], *, own: bool) -> None:
    """A `token_count`: window, limits, and before 0.155 the growth of the totals.

    A synthetic one (input = output = 0, total not) is an estimate after a compaction or says that
    the window is full: it counts nothing, but later totals go on from it.
    """
    info = mapping(message.info)
    last, total = mapping(info.get("last_token_usage")), mapping(info.get("total_token_usage"))
    if own:
        tell(state, out, window=whole(info.get("model_context_window")))
        _limits(mapping(message.rate_limits), state, out)
    state.context = whole(last.get("total_tokens")) or state.context
    if not total or state.ledger:
        return
    now = [count or 0 for count in _counts(total)]
    before, state.total = state.total, now
    if not own or not (last.get("input_tokens") or last.get("output_tokens")):
        return
    if before == now:
        return
    grown: list[int | None] = [one - two for one, two in zip(now, before or [0] * 5, strict=True)]
    if (state.forked and not before) or any(count is None or count < 0 for count in grown):
        grown = [count or 0 for count in _counts(last)]
    if "cache_write_input_tokens" not in total:
        grown[2] = None
    state.fresh.clear()
    out.append(UsageEvent(response=_local(state), model=state.model, counts=usage_of(grown)))


def _limits(limits: dict[str, Any], state: State, out: list[Event]) -> None:
    """`rate_limits`: `primary` and `secondary`; other families by their `limit_id` before it."""
    family = text(limits.get("limit_id"))
    prefix = "" if family in (None, "codex") else f"{family}/"
    changed = False
    for name in ("primary", "secondary"):
        limit = mapping(limits.get(name))
        if not limit:
            continue
        said = {"used": limit.get("used_percent")}
        for fact in ("resets_at", "resets_in_seconds", "window_minutes"):
            if limit.get(fact) is not None:
                said[fact] = limit[fact]
        if state.limits.get(prefix + name) != said:
            state.limits[prefix + name] = said
            changed = True
    if changed:
        tell(state, out, limits=dict(state.limits))
