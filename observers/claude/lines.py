"""One line of a transcript in, its events out: sorts records by kind and handles the small ones."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from hub.events import Compact, Event, Meta, Note, Retry, Title
from observers.claude.kinds import ATTACHMENTS, IGNORED, NEEDED, SYSTEM
from observers.claude.records import Attachment, Block, Record, read
from observers.claude.replies import reply
from observers.claude.state import Place, State, end, facts, forked, moment
from observers.claude.users import said, steered, user

SUMMARY, AI, CUSTOM, NAME = 1, 2, 3, 4
"""Ranks of titles, as the CLI's own list ranks them (bundle of 2.1.197)."""
_SUMMARIES: Final = 16
_BRANCHED: Final = " (Branch)"
"""How `/branch` ends the title that it gives."""


_BULK: Final = frozenset({b"api-request", b"api-request-shape", b"api-request-blob"})
_HEAVY: Final = frozenset({
    b"prompt_snapshot", b"skill_listing", b"agent_listing_delta", b"deferred_tools_delta",
    b"deferred_tools_record", b"session_context", b"remote_session_change", b"environment",
    b"date", b"model", b"total_tokens_reminder", b"task_reminder",
})  # fmt: skip
_ATTACHED: Final = re.compile(
    rb'\{"parentUuid":(?:null|"[0-9a-f-]{36}"),"isSidechain":(?:true|false),"attachment":\{"type":"'
    rb'([a-z_]+)"'
)


def _bulk(line: bytes) -> bool:
    """Is it one of 2.1.332's large records that say nothing, whole, told by how it begins?

    2.1.332 never glues a record behind a torn one (it ends that line first), so nothing is lost.
    """
    if line[:9] == b'{"type":"':
        return line[9 : line.find(b'"', 9)] in _BULK and line[-1:] == b"}"
    if line[:15] != b'{"parentUuid":"' and line[:18] != b'{"parentUuid":null':
        return False
    found = _ATTACHED.match(line)
    return found is not None and found[1] in _HEAVY and line[-1:] == b"}"


def events(line: bytes, offset: int, state: State) -> Iterable[Event]:
    """The events of one complete line."""
    if _bulk(line):
        return ()
    record, note = read(line)
    if record is None:
        return [Note(code=note, offset=offset)] if note else []
    if record.type in IGNORED and note is None:
        return []
    return _events(record, note, offset, state)


def _events(record: Record, note: str | None, offset: int, state: State) -> Iterator[Event]:
    place: Place = {"at": moment(record.timestamp), "offset": offset, "record": record.uuid}
    if note is not None:
        yield Note(code=note, **place)
    if record.type in IGNORED:
        return
    if record.type not in NEEDED:
        if note != "salvaged":  # else it can be a block of a torn record
            yield _unknown(record.type, place)
        return
    if record.forked_from is not None and record.forked_from.session_id:
        yield from forked(record.forked_from.session_id, place, state)
        return  # a copy: it was told in the parent
    yield from facts(record, place, state)
    if record.uuid is not None and record.uuid in state.summaries:
        yield from _title(SUMMARY, state.summaries.pop(record.uuid), "agent", place, state)
    if record.type == "user":
        yield from user(record, place, state)
    elif record.type == "assistant":
        yield from reply(record, place, state)
    elif record.type == "system":
        yield from _system(record, place, state)
    elif record.type == "attachment":
        yield from _attachment(record, place, state)
    else:
        yield from _bookkeeping(record, place, state)


def _unknown(kind: str, place: Place) -> Note:
    return Note(code="unknown_record", detail=kind[:80], **place)


def _system(record: Record, place: Place, state: State) -> Iterator[Event]:
    """`turn_duration` (TUI, 2.1.x) is the clearest end of a turn."""
    if record.subtype == "turn_duration":
        yield from end("empty_answer" if state.empty else "completed", place, state)
    elif record.subtype == "compact_boundary":
        known = record.compact_metadata
        yield Compact(before_tokens=known.pre_tokens if known is not None else None, **place)
    elif record.subtype == "api_error":
        delay = record.retry_in_ms
        yield Retry(
            attempt=record.retry_attempt or 0,
            limit=record.max_retries,
            delay_ms=round(delay) if delay is not None else None,
            text=_cause(record),
            **place,
        )
    elif record.subtype not in SYSTEM:
        yield _unknown(f"system/{record.subtype}", place)


def _cause(record: Record) -> str:
    """The words of `error`: `formatted` in 2.1.332, `message` in all."""
    error = record.error
    if isinstance(error, dict):
        for key in ("formatted", "message"):
            if isinstance(error.get(key), str):
                return str(error[key])
    return error if isinstance(error, str) else ""


def _attachment(record: Record, place: Place, state: State) -> Iterator[Event]:
    attachment = record.attachment
    if attachment is None:
        return
    if attachment.type == "max_turns_reached":
        yield from end("max_turns", place, state)
    elif attachment.type == "queued_command":
        text = _queued(attachment)
        if text and not record.is_meta:
            yield from steered(text, record, place, state)
    elif attachment.type not in ATTACHMENTS:
        yield _unknown(f"attachment/{attachment.type}", place)


def _queued(attachment: Attachment) -> str:
    """What a person typed while the agent worked; notifications come the same way."""
    sender = attachment.origin.kind if attachment.origin is not None else None
    if (
        attachment.command_mode not in {None, "prompt"}
        or attachment.is_meta
        or sender not in {None, "human"}
    ):
        return ""
    prompt = attachment.prompt
    return said([Block(type="text", text=prompt)] if isinstance(prompt, str) else prompt or [])


def _bookkeeping(record: Record, place: Place, state: State) -> Iterator[Event]:
    """Records without uuid and time; most are written again and again, the last one counts."""
    if record.type == "ai-title":
        yield from _title(AI, record.ai_title, "agent", place, state)
    elif record.type == "custom-title":
        named = (record.custom_title or "").endswith(_BRANCHED)
        yield from _title(CUSTOM, record.custom_title, "agent" if named else "user", place, state)
    elif record.type == "agent-name":
        name = record.agent_name or ""
        given = record.name_source == "user" or name == state.titles.get(CUSTOM)
        mine = given and not name.endswith(_BRANCHED)
        source: Literal["user", "agent"] = "user" if mine else "agent"
        yield from _title(NAME, record.agent_name, source, place, state)
    elif record.type == "summary":
        if record.leaf_uuid and record.summary:  # its record is usually in another file
            state.summaries[record.leaf_uuid] = record.summary
            while len(state.summaries) > _SUMMARIES:
                del state.summaries[next(iter(state.summaries))]
    elif record.type == "relocated":
        if record.relocated_cwd and record.relocated_cwd != state.cwd:
            state.cwd = record.relocated_cwd
            yield Meta(cwd=record.relocated_cwd, **place)
    elif record.type == "cost-state":
        cost = record.total_cost_usd
        if cost is not None and cost != state.cost and state.parent is None:
            state.cost = cost  # a fork's total holds its parent's, so it is not said
            yield Meta(cost_usd=cost, **place)
        if state.empty:  # written at exit: nothing visible came any more
            yield from end("empty_answer", place, state)


def _title(
    rank: int,
    title: str | None,
    source: Literal["user", "agent"],
    place: Place,
    state: State,
) -> Iterator[Event]:
    if title and title.strip() and state.titles.get(rank) != title:
        state.titles[rank] = title
        yield Title(title=title, rank=rank, source=source, **place)
