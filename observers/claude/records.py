"""One line of a Claude Code transcript in; the fields that the observer needs out.

The shapes are those of 2.1.332; older CLIs (1.0.128 to 2.1.197) write a subset, in another key
order. A field of an unexpected type is dropped alone; heavy parts are skipped, never decoded.
"""

import types
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from hub.decode import Decoder

T = TypeVar("T", bound=Struct)

SALVAGE = (b'{"parentUuid":', b'{"type":')
"""How a record begins: 2.1.197 glues its next record onto a torn line."""


class ImageSource(Struct, gc=False):
    """Where the bytes of an image or document stand: base64 in the block itself."""

    media_type: str | None = None
    data: Raw = field(default_factory=Raw)


class Block(Struct, gc=False):
    """One block of `message.content`, of every kind; also of a tool result's content."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    tool_use_id: str | None = None
    content: "str | list[Block] | Block | None" = None
    is_error: bool | None = None
    source: ImageSource | None = None
    title: str | None = None
    error_code: str | None = None


class CacheCreation(Struct, gc=False):
    """Cache writes by lifetime (2.0.76 and newer)."""

    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class OutputDetails(Struct, gc=False):
    """Parts of `output_tokens` (2.1.332)."""

    thinking_tokens: int | None = None


class ServerTools(Struct, gc=False):
    """Searches and fetches that cost extra."""

    web_search_requests: int | None = None
    web_fetch_requests: int | None = None


class Tokens(Struct, gc=False):
    """`message.usage`, repeated whole on every block record of a response."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    server_tool_use: ServerTools | None = None
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None


class Message(Struct, gc=False):
    """`message` of a user or assistant record."""

    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Tokens | None = None


class Origin(Struct, gc=False):
    """Who caused a user record (2.1.19x and newer): human, task-notification, ..."""

    kind: str | None = None


class Attachment(Struct, rename="camel", gc=False):
    """`attachment` (2.1.100 and newer); the prompt of a `queued_command` is text or blocks."""

    type: str = ""
    prompt: str | list[Block] | None = None
    command_mode: str | None = None
    """prompt, task-notification, ..."""
    origin: Origin | None = None
    is_meta: bool | None = None


class ResultInfo(Struct, rename="camel", gc=False):
    """`toolUseResult` where it is an object."""

    agent_id: str | None = None
    persisted_output_path: str | None = None
    persisted_output_size: int | None = None


class ForkedFrom(Struct, rename="camel", gc=False):
    """On every record that `/branch` copied (2.1.197 and newer)."""

    session_id: str | None = None


class Compaction(Struct, rename="camel", gc=False):
    """`compactMetadata` of a `compact_boundary`."""

    pre_tokens: int | None = None


class Record(Struct, rename="camel", gc=False):
    """One line, of every `type`."""

    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | UnsetType | None = UNSET
    """Null at the root of the conversation."""
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    """2.1.80 and newer."""
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    prompt_id: str | None = None
    """One per prompt, 2.1.80 and newer."""
    prompt_source: str | None = None
    """typed, queued, sdk, system: 2.1.19x and newer."""
    origin: Origin | None = None
    forked_from: ForkedFrom | None = None
    request_session_id: str | None = None
    """On responses that `--fork-session` copied, 2.1.332: the session that paid for them."""
    message: Message | None = None
    attachment: Attachment | None = None
    tool_use_result: ResultInfo | str | list[Raw] | None = None
    effort: str | None = None
    """2.1.332."""
    is_api_error_message: bool | None = None
    api_error_status: int | None = None
    error: Any = None
    """A word on a synthetic assistant record, an object on `system/api_error`."""
    retry_attempt: int | None = None
    max_retries: int | None = None
    retry_in_ms: float | None = None
    compact_metadata: Compaction | None = None
    ai_title: str | None = None
    custom_title: str | None = None
    agent_name: str | None = None
    name_source: str | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    relocated_cwd: str | None = None
    total_cost_usd: float | None = field(default=None, name="totalCostUSD")


_typed = Decoder(Record, SALVAGE)
_loose: Decoder[dict[str, Any]] = Decoder(dict, SALVAGE)


def read(line: bytes) -> tuple[Record | None, str | None]:
    """The record, and a note's code where the line was odd (the codes of `hub.decode`)."""
    record, note = _typed(line)
    if record is not None or note is None:
        return record, note
    if note != "wrong_shape":
        return None, note
    value, mended = _loose(line)
    if value is None:
        return None, mended or note
    return shaped(Record, value), mended or note


def shaped(kind: type[T], value: dict[str, Any]) -> T:
    """A `kind` of an untyped object; what does not fit is left at its default."""
    fields: dict[str, Any] = {}
    for known in msgspec.structs.fields(kind):
        if known.encode_name in value:
            part = _part(known.type, value[known.encode_name])
            if part is not None:
                fields[known.name] = part
    return kind(**fields)


def _part(kind: Any, value: Any) -> Any:
    try:
        if kind is Raw:
            return Raw(msgspec.json.encode(value))
        return msgspec.convert(value, kind)
    except (msgspec.MsgspecError, RecursionError):
        pass
    for option in get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,):
        if isinstance(value, dict) and isinstance(option, type) and issubclass(option, Struct):
            return shaped(option, value)
        if isinstance(value, list) and get_origin(option) is list:
            parts = (_part(get_args(option)[0], item) for item in value)
            return [part for part in parts if part is not None]
    return None
