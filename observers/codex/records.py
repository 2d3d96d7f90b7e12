"""The records of a Codex rollout: bytes of a line in, the fields that the observer needs out.

Fields are `Any` or `Raw` on purpose: one of an unexpected type costs only itself, never the line.
Measured on codex-cli 0.20.0, 0.42.0, 0.98.0, 0.120.0, 0.140.0 and 0.171.0.
"""

from datetime import UTC, datetime
from re import compile as pattern
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from hub.decode import Decoder
from hub.events import Event, Note

T = TypeVar("T")

NOTHING: Final = Raw()


class Line(Struct, gc=False):
    """One line: `{timestamp, type, payload}` (0.34+), with `ordinal` where paginated (0.149+).

    Up to 0.29 the first line is `{id, timestamp, instructions}` and every other a naked item.
    """

    timestamp: Any = None
    ordinal: Any = None
    type: Any = None
    payload: Raw = NOTHING
    id: Any = None
    instructions: Raw = NOTHING
    record_type: Any = None
    previous_response_id: Any = None
    """0.8: the last response that came; its items follow, save those of the very last one."""


class SessionMeta(Struct, gc=False):
    """`session_meta` (0.34+): who the thread is."""

    id: Any = None
    timestamp: Any = None
    cwd: Any = None
    originator: Any = None
    cli_version: Any = None
    source: Any = None
    """0.44+."""
    forked_from_id: Any = None
    parent_thread_id: Any = None
    instructions: Any = None
    """Up to 0.80; later `base_instructions`."""
    base_instructions: Any = None
    git: Any = None
    history_base: Any = None
    """0.149+: what a fork or a segment stands on; its own lines are not in this file."""
    subagent_history_start_ordinal: Any = None
    """0.149+: lines below this ordinal are the parent's."""


class TurnContext(Struct, gc=False):
    """`turn_context` (0.36+): what a turn runs with."""

    cwd: Any = None
    model: Any = None
    effort: Any = None
    approval_policy: Any = None
    approvals_reviewer: Any = None


class Ledger(Struct, gc=False):
    """`token_usage_record` (0.155+): one API response; never replayed."""

    response_id: Any = None
    turn_id: Any = None
    usage: Raw = NOTHING


class Tokens(Struct, gc=False):
    """One set of counts: of a response, or so far."""

    input_tokens: Any = None
    cached_input_tokens: Any = None
    cache_write_input_tokens: Any = None
    """0.149+."""
    output_tokens: Any = None
    reasoning_output_tokens: Any = None
    total_tokens: Any = None


class Info(Struct, gc=False):
    """What a `token_count` says (0.34+; null up to 0.128 where a turn begins)."""

    total_token_usage: Raw = NOTHING
    last_token_usage: Raw = NOTHING
    model_context_window: Any = None


class Message(Struct, gc=False):
    """`event_msg`: all kinds flat."""

    type: Any = None
    turn_id: Any = None
    item: Raw = NOTHING
    message: Any = None
    text: Any = None
    kind: Any = None
    """Up to 0.58: `user_message` says whether the text is injected."""
    images: Raw = NOTHING
    local_images: Any = None
    last_agent_message: Any = None
    error: Any = None
    """`task_complete` of 0.155+."""
    codex_error_info: Any = None
    reason: Any = None
    info: Raw = NOTHING
    rate_limits: Raw = NOTHING
    model_context_window: Any = None
    num_turns: Any = None
    thread_name: Any = None
    phase: Any = None


class Item(Struct, gc=False):
    """`response_item`, and what `item_completed` holds (0.149+): all kinds flat."""

    type: Any = None
    id: Any = None
    text: Any = None
    role: Any = None
    name: Any = None
    call_id: Any = None
    arguments: Any = None
    input: Any = None
    output: Raw = NOTHING
    content: Raw = NOTHING
    summary: Raw = NOTHING
    summary_text: Any = None
    action: Any = None
    phase: Any = None
    status: Any = None
    source: Any = None
    command: Any = None
    aggregated_output: Any = None
    exit_code: Any = None
    changes: Raw = NOTHING
    stdout: Any = None
    stderr: Any = None
    server: Any = None
    tool: Any = None
    result: Any = None
    error: Any = None
    query: Any = None
    kind: Any = None
    agent_thread_id: Any = None
    receiver_thread_ids: Any = None


class Completed(Struct, gc=False):
    """`item_completed` as it nearly always is: read in one pass."""

    item: Item
    turn_id: Any = None


class Counted(Struct, gc=False):
    """`token_usage_record` as it nearly always is."""

    usage: Tokens
    response_id: Any = None
    turn_id: Any = None


class Part(Struct, gc=False):
    """A part of a message's content."""

    type: Any = None
    text: Any = None


class Reader(Generic[T]):
    """Reads one kind: msgspec at once, `hub.decode` for what it refuses."""

    __slots__ = ("decode", "mend")

    def __init__(self, kind: type[T], salvage: tuple[bytes, ...] = ()) -> None:
        decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self.decode = decoder.decode
        self.mend = Decoder(kind, salvage)


line: Final = Reader(Line, (b'{"timestamp":"',))
session_meta: Final = Reader(SessionMeta)
turn_context: Final = Reader(TurnContext)
ledger: Final = Reader(Ledger)
tokens: Final = Reader(Tokens)
info: Final = Reader(Info)
message: Final = Reader(Message)
item: Final = Reader(Item)
completed: Final = msgspec.json.Decoder(Completed)
counted: Final = msgspec.json.Decoder(Counted)
_content: Final = msgspec.json.Decoder(list[Part])
ODD: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for a record that has to be read with more care."""

IGNORED_LINES: Final = frozenset({
    "world_state", "retained_context", "dynamic_tools_updated", "realtime_item",
    "security_risk_score", "id_allocation", "inter_agent_communication",
    "inter_agent_communication_metadata",
})  # fmt: skip
"""Known top-level kinds that say nothing here (0.171)."""

IGNORED_EVENTS: Final = frozenset({
    "thread_settings_applied", "context_compacted", "entered_review_mode", "exited_review_mode",
    "thread_goal_updated", "agent_reasoning_raw_content", "agent_reasoning_section_break",
    "patch_apply_begin", "patch_apply_end", "mcp_tool_call_begin", "mcp_tool_call_end",
    "web_search_begin", "web_search_end", "image_generation_begin", "image_generation_end",
    "sub_agent_activity", "exec_command_begin", "exec_command_end", "view_image_tool_call",
    "collab_agent_spawn_begin", "collab_agent_spawn_end", "collab_waiting_begin",
    "collab_waiting_end", "collab_close_begin", "collab_close_end", "collab_resume_begin",
    "collab_resume_end", "collab_agent_interaction_begin", "collab_agent_interaction_end",
    "dynamic_tool_call_request", "dynamic_tool_call_response", "item_started", "warning",
    "turn_diff", "plan_update", "session_configured", "undo_started", "undo_completed",
    "background_event", "deprecation_notice", "shutdown_complete", "guardian_assessment",
})  # fmt: skip
"""Known `event_msg` kinds that say nothing that another record does not say."""

IGNORED_ITEMS: Final = frozenset({
    "ContextCompaction", "HookPrompt", "Sleep", "ImageView", "ImageGeneration",
})  # fmt: skip
"""Known `item_completed` kinds that say nothing here (0.149+)."""

IGNORED_RESPONSES: Final = frozenset({
    "additional_tools", "compaction", "compaction_summary", "context_compaction",
    "configuration_update", "ghost_snapshot", "image_generation_call", "tool_search_call",
    "tool_search_output", "other",
})  # fmt: skip
"""Known `response_item` kinds that say nothing here."""

_CLEAN = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def read(reader: Reader[T], data: Raw | bytes, kind: str | None, out: list[Event]) -> T | None:
    """The record in `data`; a note where it was odd."""
    try:
        return reader.decode(data)
    except ODD:
        value, odd = reader.mend(bytes(data))
        if odd is not None:
            out.append(Note(code=odd, detail=kind))
        return value


class _Any(Struct):
    value: Any = None


_any = msgspec.json.Decoder()
_mended = Decoder(_Any)


def loose(data: Raw | bytes, out: list[Event] | None = None) -> Any:
    """Any value in `data`, None where there is none; a note in `out` where it was odd."""
    try:
        return _any.decode(data)
    except ODD:
        if not bytes(data):
            return None
        value, odd = _mended(b'{"value":' + bytes(data) + b"}")
        if odd is not None and out is not None:
            out.append(Note(code=odd))
        return None if value is None else value.value


def moment(value: Any) -> str | None:
    """An RFC 3339 time as `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    if not isinstance(value, str):
        return None
    if _CLEAN.fullmatch(value):
        return value
    try:
        at = datetime.fromisoformat(value)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def text(value: Any) -> str | None:
    """The value if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def whole(value: Any) -> int | None:
    """The value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def begins(data: Raw | bytes, size: int) -> bytes:
    """The first bytes of a record."""
    return bytes(memoryview(data)[:size])


def content(data: Raw | bytes, out: list[Event]) -> str:
    """The text of a message's content; nearly always it is one part."""
    try:
        found = _content.decode(data)
    except ODD:
        return parts(loose(data, out))
    if len(found) == 1 and found[0].type in _TEXTS and isinstance(found[0].text, str):
        only: str = found[0].text
        if not only.startswith(_IMAGE):
            return only
    return parts(loose(data, out))


_TEXTS: Final = ("text", "Text", "input_text", "output_text")
_IMAGE: Final = ("<image ", "</image>")


def parts(value: Any, image: str = "[image]") -> str:
    """The text of a message's content: a string, or parts; images become a placeholder.

    Paginated files say `{"type":"local_image","path":...}`; items `<image ...>` and a data URL.
    """
    if isinstance(value, str):
        return value
    found: list[str] = []
    for part in value if isinstance(value, list) else ():
        kind, said = mapping(part).get("type"), mapping(part).get("text")
        if kind in ("local_image", "image", "input_image"):
            path = text(mapping(part).get("path"))
            found.append(f"[image {path}]" if path else image)
        elif isinstance(said, str) and not said.startswith(_IMAGE):
            found.append(said)
    return "\n".join(found)
