"""Turns, retries, compactions, titles and settings of a dsh log (0.2.1rc2, format v4)."""

from typing import Any, Final, Literal

from msgspec import UNSET

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
from observers.dsh.reading import parts
from observers.dsh.state import Fold, State, counts, flush, meta, settle, text_of

_REASONS: Final = {
    "completed": "completed", "aborted": "interrupted", "interrupted": "lost", "error": "failed",
    "max-tokens": "max_tokens",
}  # fmt: skip
_SETTINGS: Final = frozenset(
    {
        "model/selection",
        "plan/mode",
        "request/context",
        "request/header",
        "session/title",
        "working-directory/change",
    }
)
_RANKS: Final = {"fallback": 1, "provider": 2, "user": 3}


def _turn_start(data: r.Turn, state: State, out: list[Event]) -> None:
    out.extend(WaitEnd(call=call) for call in state.deferred)
    state.turn = str(data.turn) if data.turn is not None else ""
    state.calls.clear()
    state.codes.clear()
    state.failed.clear()
    out.append(TurnStart(turn=state.turn or None))


def _turn_end(data: r.Turn, state: State, out: list[Event]) -> None:
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


def _end_seed(data: r.Place, state: State, out: list[Event]) -> None:
    """A resume (or the end of the inherited prefix): what was open before it died."""
    del data
    if state.compacting:
        state.compacting = False
        out.append(Compact(phase="end"))
    if state.turn is not None:
        flush(state, out)
        settle(state, out, "lost", state.turn or None)


def inherit(row: r.Row[Any], state: State) -> None:
    """An inherited record gives no events, but the settings it leaves hold for the fork."""
    if row.type in _SETTINGS:
        told: list[Event] = []
        FOLDS[row.type].function(row.data, state, told)
        for event in told:
            if isinstance(event, Title) and (state.title is None or event.rank >= state.title[1]):
                state.title = [event.title, event.rank, event.source]


def inherited(state: State, out: list[Event]) -> None:
    """What holds where the fork begins."""
    meta = Meta(model=state.model or UNSET, effort=state.effort or UNSET)
    meta.window = state.window or UNSET
    meta.cwd = state.cwd or UNSET
    if meta != Meta():
        out.append(meta)
    if state.title is not None and not state.child:
        title, rank, source = state.title
        out.append(Title(title=title, rank=rank, source=source))
        state.title = None


def _retry(data: r.Again, state: State, out: list[Event]) -> None:
    flush(state, out)
    delay = round(data.delay_ms) if data.delay_ms is not None else None
    text = bounded(data.failure.message)
    out.append(Retry(attempt=data.retry, limit=data.max_retries, delay_ms=delay, text=text))


def _compact_start(data: r.Compaction, state: State, out: list[Event]) -> None:
    del data
    state.compacting = True
    out.append(Compact(phase="start"))


def _compact_summary(data: r.Compaction, state: State, out: list[Event]) -> None:
    if data.usage is not None and data.compaction_id:
        model = data.model or state.model
        tokens = counts(data.usage)
        out.append(UsageEvent(response=data.compaction_id, model=model, counts=tokens))


def _compact_end(data: r.Compaction, state: State, out: list[Event]) -> None:
    state.compacting = False
    out.append(Compact(phase="end"))
    if data.error:
        text = data.error.get("message") if isinstance(data.error, dict) else data.error
        out.append(ErrorEvent(text=bounded(str(text)), code="compaction"))


def _title(data: r.Titled, state: State, out: list[Event]) -> None:
    del state
    if data.title:
        kind = data.source.kind
        source: Literal["user", "agent"] = "user" if kind == "user" else "agent"
        out.append(Title(title=data.title, rank=_RANKS.get(kind, 1), source=source))


def _descriptor(data: r.Catalog, state: State, out: list[Event]) -> None:
    """`subagent/descriptor`: what the parent called it says more than its first words."""
    if data.label and state.child:
        out.append(Title(title=data.label, rank=_RANKS["provider"], source="agent"))


def _request(data: r.Asked, state: State, out: list[Event]) -> None:
    meta(state, out, model=data.header.config.model, effort=data.header.config.reasoning_effort)
    if isinstance(data.header.system, str):
        prompted(data.header.system, state, out)
    elif isinstance(data.header.system, list):
        prompted(text_of(r.Message(content=parts(data.header.system))), state, out)


def _plan_mode(data: r.Plan, state: State, out: list[Event]) -> None:
    """Outside plan mode `exit_plan_mode` is refused at once."""
    del out
    state.planning = data.active


def _context(data: r.Place, state: State, out: list[Event]) -> None:
    """`request/context`, `model/selection`, `working-directory/change`."""
    meta(
        state,
        out,
        model=data.model,
        effort=data.reasoning_effort,
        window=data.context_window,
        cwd=data.cwd,
    )


FOLDS: Final[dict[str, Fold[Any]]] = {
    "compaction/end": Fold(r.Compaction, _compact_end),
    "compaction/start": Fold(r.Compaction, _compact_start),
    "compaction/summary": Fold(r.Compaction, _compact_summary),
    "llm/retry": Fold(r.Again, _retry),
    "model/selection": Fold(r.Place, _context),
    "plan/mode": Fold(r.Plan, _plan_mode),
    "request/context": Fold(r.Place, _context),
    "request/header": Fold(r.Asked, _request),
    "session/end-seed": Fold(r.Place, _end_seed),
    "subagent/descriptor": Fold(r.Catalog, _descriptor),
    "session/title": Fold(r.Titled, _title),
    "turn/end": Fold(r.Turn, _turn_end),
    "turn/start": Fold(r.Turn, _turn_start),
    "working-directory/change": Fold(r.Place, _context),
}
