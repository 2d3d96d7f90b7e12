"""Turns, retries, compactions, titles and settings of a dsh log (0.2.1rc2, format v4)."""

from typing import Final, Literal

from msgspec import UNSET, Raw

from hub.decode import bounded
from hub.events import (
    Compact,
    ErrorEvent,
    Event,
    Meta,
    Retry,
    Title,
    TurnStart,
    UsageEvent,
    WaitEnd,
)  # fmt: skip
from observers.dsh import records as r
from observers.dsh.messages import prompted
from observers.dsh.state import Fold, State, counts, flush, meta, note_of, settle, text_of

_REASONS: Final = {
    "completed": "completed", "aborted": "interrupted", "interrupted": "lost", "error": "failed",
    "max-tokens": "max_tokens",
}  # fmt: skip
_RANKS: Final = {"fallback": 1, "provider": 2, "user": 3}

_turn = r.Data(r.Turn)
_again = r.Data(r.Again)
_compaction = r.Data(r.Compaction)
_titled = r.Data(r.Titled)
_asked = r.Data(r.Asked)
_place = r.Data(r.Place)


def _turn_start(raw: Raw, state: State, out: list[Event]) -> None:
    data, note = _turn(raw)
    note_of(out, note)
    out.extend(WaitEnd(call=call) for call in state.deferred)
    state.turn = str(data.turn) if data.turn is not None else ""
    state.calls.clear()
    state.codes.clear()
    out.append(TurnStart(turn=state.turn or None))


def _turn_end(raw: Raw, state: State, out: list[Event]) -> None:
    data, note = _turn(raw)
    note_of(out, note)
    turn = str(data.turn) if data.turn is not None else state.turn or None
    kind = data.reason.kind or "unknown"
    flush(state, out)
    if kind == "forked":
        state.turn = None
        return
    if kind == "error":
        failure = data.reason.error
        out.append(
            ErrorEvent(
                text=bounded(failure.message), code=failure.code or None, status=failure.status
            )
        )
    settle(state, out, _REASONS.get(kind, kind), turn)


def _end_seed(raw: Raw, state: State, out: list[Event]) -> None:
    """A resume (or the end of the inherited prefix): what was open before it died."""
    del raw
    if state.turn is not None:
        flush(state, out)
        settle(state, out, "lost", state.turn or None)


def inherit(row: r.Row, state: State) -> None:
    """An inherited record gives no events, but the settings it leaves hold for the fork."""
    fold = _SETTINGS.get(row.type)
    if fold is not None:
        told: list[Event] = []
        fold(row.data, state, told)
        for event in told:
            if isinstance(event, Title) and (state.title is None or event.rank >= state.title[1]):
                state.title = [event.title, event.rank, event.source]


def inherited(state: State, at: str | None, out: list[Event]) -> None:
    """What holds where the fork begins: its own first record says so."""
    meta = Meta(model=state.model or UNSET, effort=state.effort or UNSET)
    meta.window = state.window or UNSET
    meta.cwd = state.cwd or UNSET
    meta.started_at = at or UNSET
    out.append(meta)
    if state.title is not None:
        title, rank, source = state.title
        out.append(Title(title=title, rank=rank, source=source))
        state.title = None


def inherits(raw: Raw) -> bool:
    """Does this `session/end-seed` close the inherited prefix?"""
    return _place(raw)[0].inherited


def _retry(raw: Raw, state: State, out: list[Event]) -> None:
    data, note = _again(raw)
    note_of(out, note)
    flush(state, out)
    delay = round(data.delay_ms) if data.delay_ms is not None else None
    text = bounded(data.failure.message)
    out.append(Retry(attempt=data.retry, limit=data.max_retries, delay_ms=delay, text=text))


def _compact_start(raw: Raw, state: State, out: list[Event]) -> None:
    del raw, state
    out.append(Compact(phase="start"))


def _compact_summary(raw: Raw, state: State, out: list[Event]) -> None:
    data, note = _compaction(raw)
    note_of(out, note)
    if data.usage is not None and data.compaction_id:
        model = data.model or state.model
        tokens = counts(data.usage)
        out.append(UsageEvent(response=data.compaction_id, model=model, counts=tokens))


def _compact_end(raw: Raw, state: State, out: list[Event]) -> None:
    del state
    data, note = _compaction(raw)
    note_of(out, note)
    out.append(Compact(phase="end"))
    if data.error:
        text = data.error if isinstance(data.error, str) else data.error.get("message", "")
        out.append(ErrorEvent(text=bounded(str(text)), code="compaction"))


def _title(raw: Raw, state: State, out: list[Event]) -> None:
    del state
    data, note = _titled(raw)
    note_of(out, note)
    if data.title:
        kind = data.source.kind
        source: Literal["user", "agent"] = "user" if kind == "user" else "agent"
        out.append(Title(title=data.title, rank=_RANKS.get(kind, 1), source=source))


def _request(raw: Raw, state: State, out: list[Event]) -> None:
    data, note = _asked(raw)
    note_of(out, note)
    meta(state, out, model=data.header.config.model, effort=data.header.config.reasoning_effort)
    if isinstance(data.header.system, str):
        prompted(data.header.system, state, out)
    elif isinstance(data.header.system, list):
        prompted(text_of(r.Message(content=r.parts(data.header.system))), state, out)


def _context(raw: Raw, state: State, out: list[Event]) -> None:
    """`request/context`, `model/selection`, `working-directory/change`."""
    data, note = _place(raw)
    note_of(out, note)
    meta(
        state,
        out,
        model=data.model,
        effort=data.reasoning_effort,
        window=data.context_window,
        cwd=data.cwd,
    )


_SETTINGS: Final[dict[str, Fold]] = {
    "model/selection": _context,
    "request/context": _context,
    "request/header": _request,
    "session/title": _title,
    "working-directory/change": _context,
}
FOLDS: Final[dict[str, Fold]] = {
    "compaction/end": _compact_end,
    "compaction/start": _compact_start,
    "compaction/summary": _compact_summary,
    "llm/retry": _retry,
    "model/selection": _context,
    "request/context": _context,
    "request/header": _request,
    "session/end-seed": _end_seed,
    "session/title": _title,
    "turn/end": _turn_end,
    "turn/start": _turn_start,
    "working-directory/change": _context,
}
