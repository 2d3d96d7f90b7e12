"""The kinds of lines of a Codex rollout: one decoded line in, its events out."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec import Raw

from hub.events import Answer, Compact, ErrorEvent, Event, Note, Retry, Rewind, Title, TurnEnd, Wait
from observers.codex import items, records, state, thread, usage
from observers.codex.records import Line, Message, mapping, text, whole
from observers.codex.state import State

_HISTORY: Final = ("event_msg", "response_item", "turn_context", "token_usage_record", "compacted")
_GAP: Final = 1.0
"""Seconds without a line after which a copied history without turn ids (up to 0.98) is over."""


def line(record: Line, raw: bytes, offset: int, memory: State, out: list[Event]) -> str | None:
    """Adds the events of one line to `out`.

    Returns:
        The agent's own id of the record.
    """
    kind = record.type
    payload = record.payload
    if payload is records.NOTHING:
        return _bare(record, raw, offset, memory, out)
    memory.paginated = type(record.ordinal) is int
    own = (memory.floor < 0 and not memory.copying) or _own(record, payload, memory)
    if kind == "session_meta":
        meta = records.read(records.session_meta, payload, kind, out)
        if meta is not None:
            thread.session_meta(meta, memory, out)
        return None
    if own and memory.unstarted and kind in _HISTORY and bytes(payload)[:1] == b"{":
        began = records.moment(record.timestamp)
        memory.unstarted = began is None
        state.tell(memory, out, started_at=began)
    if kind == "event_msg":
        return _event(payload, offset, memory, out, own=own)
    if not own:
        return None
    if kind == "response_item":
        return items.response(payload, offset, memory, out)
    if kind == "turn_context":
        context = records.read(records.turn_context, payload, kind, out)
        if context is not None:
            thread.turn_context(context, memory, out)
    elif kind == "token_usage_record":
        usage.record(payload, memory, out)
    elif kind == "compacted":
        out.append(Compact(before_tokens=memory.context))
        memory.fresh.clear()
    elif not isinstance(kind, str) or kind not in records.IGNORED_LINES:
        out.append(Note(code="unknown_record", detail=str(kind)[:80]))
    return None


def _bare(record: Line, raw: bytes, offset: int, memory: State, out: list[Event]) -> str | None:
    """A line of 0.8 .. 0.29: the header, `record_type` noise, or a naked item."""
    if isinstance(record.type, str):
        memory.paginated = False
        return items.response(raw, offset, memory, out, bare=True)
    if record.record_type is None:
        if isinstance(record.id, str):
            meta = records.SessionMeta(
                record.id, record.timestamp, instructions=records.loose(record.instructions)
            )
            thread.session_meta(meta, memory, out)
        else:
            out.append(Note(code="unknown_record", detail=str(record.type)[:80]))
        return None
    response = text(record.previous_response_id)
    if response is not None and response != memory.response:
        memory.response = response
        if memory.prompted and not memory.open:
            # 0.8 ends before it writes the last answer: that it came is all there is of it
            state.finish(memory, None, "completed", out)
    return None


def _own(record: Line, payload: Raw, memory: State) -> bool:
    """Is this line the thread's own, and not its parent's?

    0.149+: by `subagent_history_start_ordinal`. Before, a copied history (a second `session_meta`)
    goes on until the first `task_started` whose turn is not older than the thread (both ids are
    UUIDv7), and where there are no turn ids, until nothing was written for a second.
    """
    if memory.floor >= 0:
        ordinal = whole(record.ordinal)
        own = not memory.inherited if ordinal is None else ordinal >= memory.floor
        if own and memory.inherited:
            state.reset(memory)
        memory.inherited = not own
        return own
    if record.type == "event_msg" and b'"task_started"' in bytes(payload)[:200]:
        memory.copied_turns = True
        event = records.read(records.message, payload, None, [])
        turn = event.turn_id if event is not None else None
        if isinstance(turn, str) and _newer(turn, memory.id):
            state.reset(memory)
            return True
    before, memory.copied_at = memory.copied_at, records.moment(record.timestamp)
    if not memory.copied_turns and _gap(before, memory.copied_at):
        state.reset(memory)
        return True
    return False


def _newer(turn: str, own: str) -> bool:
    return turn[14:15] == own[14:15] == "7" and turn >= own


def _gap(before: str | None, now: str | None) -> bool:
    if before is None or now is None:
        return False
    past = datetime.fromisoformat(now) - datetime.fromisoformat(before)
    return past.total_seconds() > _GAP


def _event(payload: Raw, offset: int, memory: State, out: list[Event], *, own: bool) -> str | None:
    head = records.begins(payload, 32)
    if own and head.startswith(b'{"type":"item_completed"'):
        try:
            done = records.completed.decode(payload)
        except records.ODD:
            pass
        else:
            return items.completed(done.item, done.turn_id, offset, memory, out)
    elif (
        memory.ledger
        and head.startswith(b'{"type":"token_count"')
        and usage.says_nothing(bytes(payload), memory)
    ):
        return None
    message = records.read(records.message, payload, "event_msg", out)
    if message is None:
        return None
    if message.type == "token_count":
        usage.token_count(message, memory, out, own=own)
        return None
    if not own:
        return None
    handler = _EVENTS.get(message.type) if isinstance(message.type, str) else None
    if handler is not None:
        return handler(message, offset, memory, out)
    if not isinstance(message.type, str) or message.type not in records.IGNORED_EVENTS:
        out.append(Note(code="unknown_record", detail=f"event_msg/{message.type}"[:80]))
    return None


def _started(message: Message, offset: int, memory: State, out: list[Event]) -> str | None:
    memory.turn_records = True
    turn = text(message.turn_id)
    state.begin(memory, turn, offset, out)
    state.tell(memory, out, window=whole(message.model_context_window))
    return turn


def _complete(message: Message, _offset: int, memory: State, out: list[Event]) -> str | None:
    """`task_complete`: `error` since 0.155; before, a turn that said and did nothing has failed.

    `last_agent_message` null alone is no failure: `/compact`, `!cmd`, a review's parent. After a
    turn that proposed a plan the interactive client asks whether to go on; "no" leaves no trace.
    """
    memory.turn_records = True
    turn = text(message.turn_id)
    said = text(message.last_agent_message)
    error = mapping(message.error)
    if said is not None and memory.turn is not None and state.fingerprint(said) not in memory.said:
        memory.worked = True
        memory.said.append(state.fingerprint(said))
        out.append(Answer(text=said, final=True))
    silent = said is None and memory.prompted and not (memory.worked or memory.paginated)
    if error:
        _failure(text(error.get("message")) or "", error.get("codex_error_info"), out)
    elif silent and not memory.failed:
        out.append(ErrorEvent(text="the turn ended without an answer"))
    failed = bool(error) or memory.failed or silent
    reason = _reason(text(error.get("message")) or "") if failed else "completed"
    state.finish(memory, turn, reason, out)
    if memory.plan is not None and memory.turn is None and memory.told.get("surface") == "tui":
        out.append(Wait(for_="plan", call=memory.plan, certain=False))
    return turn


def _reason(said: str) -> str:
    """Why a turn failed, where the message is one of two that say it."""
    word = said.rpartition("Incomplete response returned, reason: ")[2]
    return {"max_output_tokens": "max_tokens", "content_filter": "refused"}.get(word, "failed")


def _failure(said: str, info: object, out: list[Event]) -> None:
    """`codex_error_info` is a word, or `{word: {http_status_code}}`."""
    code, status = info if isinstance(info, str) else None, None
    if isinstance(info, dict) and info:
        code = str(next(iter(info)))
        status = whole(mapping(info[code]).get("http_status_code"))
    out.append(ErrorEvent(text=said, code=code, status=status))


def _aborted(message: Message, _offset: int, memory: State, out: list[Event]) -> str | None:
    """`turn_aborted`: up to 0.98 without a `turn_id`."""
    reason = text(message.reason) or "interrupted"
    words = {"replaced": "interrupted", "review_ended": "completed"}
    turn = text(message.turn_id)
    if memory.turn is None and not memory.turn_records and memory.finished:
        out.append(TurnEnd(reason=words.get(reason, reason), turn=memory.finished[-1]))
    state.finish(memory, turn, words.get(reason, reason), out)
    return turn


def _error(message: Message, _offset: int, memory: State, out: list[Event]) -> str | None:
    """`error` (only where all events are kept): the turn's end says nothing of it before 0.155."""
    memory.failed = True
    _failure(text(message.message) or "", message.codex_error_info, out)
    return None


def _stream_error(message: Message, _offset: int, _memory: State, out: list[Event]) -> str | None:
    """`stream_error` "Reconnecting... 2/5" (only where all events are kept)."""
    said = text(message.message) or ""
    attempt, slash, limit = said.rpartition(" ")[2].partition("/")
    numbered = bool(slash) and attempt.isdecimal() and limit.isdecimal()
    out.append(
        Retry(
            attempt=int(attempt) if numbered else 1,
            limit=int(limit) if numbered else None,
            text=said,
        )
    )
    return None


def _user_message(message: Message, offset: int, memory: State, out: list[Event]) -> str | None:
    """`user_message` (0.34 .. 0.147): up to 0.58 `kind` tells injected text."""
    if message.kind in (None, "plain"):
        said = text(message.message) or ""
        local = message.local_images if isinstance(message.local_images, list) else []
        images = [f"[image {path}]" for path in local if isinstance(path, str)]
        if bytes(message.images) not in (b"", b"null", b"[]"):
            images += ["[image]"]
        items.prompt(memory, "\n".join([said, *images] if said else images), None, offset, out)
    return None


def _agent_message(message: Message, _offset: int, memory: State, out: list[Event]) -> str | None:
    said = text(message.message)
    if said is not None and said != "Compact task completed":  # what 0.42 .. 0.58 say for it
        state.reopen(memory, out)
        final = message.phase == "final_answer"
        state.answer(memory, said, out, final=final, repeats=memory.turn_records)
    return None


def _agent_reasoning(message: Message, _offset: int, memory: State, out: list[Event]) -> str | None:
    items.thinking(memory, text(message.text) or "", out)
    return None


def _item_completed(message: Message, offset: int, memory: State, out: list[Event]) -> str | None:
    item = records.read(records.item, message.item, "event_msg/item_completed", out)
    return None if item is None else items.completed(item, message.turn_id, offset, memory, out)


def _rolled_back(message: Message, _offset: int, memory: State, out: list[Event]) -> str | None:
    """`thread_rolled_back` (legacy): the last turns are dead."""
    turns = whole(message.num_turns) or 0
    if turns > 0 and memory.starts:
        kept = memory.starts[:-turns]
        out.append(Rewind(to_offset=memory.starts[len(kept)]))
        memory.starts = kept
    return None


def _named(message: Message, _offset: int, _memory: State, out: list[Event]) -> str | None:
    name = text(message.thread_name)
    if name is not None:
        out.append(Title(title=name, rank=10))
    return None


_EVENTS: Final[dict[str, Callable[[Message, int, State, list[Event]], str | None]]] = {
    "task_started": _started,
    "turn_started": _started,
    "task_complete": _complete,
    "turn_complete": _complete,
    "turn_aborted": _aborted,
    "error": _error,
    "stream_error": _stream_error,
    "user_message": _user_message,
    "agent_message": _agent_message,
    "agent_reasoning": _agent_reasoning,
    "item_completed": _item_completed,
    "thread_rolled_back": _rolled_back,
    "thread_name_updated": _named,
}
