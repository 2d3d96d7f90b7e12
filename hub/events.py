"""The events that an observer reads out of an agent's files: JSON objects told by `kind`.

The contract is `docs/contracts.md` section 2; the JSON schema is `docs/schema/event.json`.
"""

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from hub.model import Usage

Intent: TypeAlias = Literal["terminal", "diff", "locations", "generic"]
WaitingFor: TypeAlias = Literal["permission", "question", "plan", "dialog", "other"]
Surface: TypeAlias = Literal["tui", "headless", "sdk", "web", "ide", "unknown"]
Relation: TypeAlias = Literal["subagent", "fork"]


class Base(Struct, kw_only=True, tag_field="kind", omit_defaults=False):
    """What every event carries.

    An observer fills `at`, `offset` and `record`; the hub stamps `session`, `n` and `path`. A
    sidecar's event names its `session` itself (the native id), since one file can hold many.
    """

    session: str = ""
    """Key of the session; from a sidecar, the native id until the hub stamps it."""
    n: int = 0
    """Number of the event in its session, from 0, in file order."""
    at: str | None = None
    """RFC 3339 UTC with milliseconds, from the record; null where the record has no time."""
    path: str = ""
    """The file, relative to the agent home it was found in."""
    offset: int = 0
    """Byte of the record's first character in the decoded (decompressed) text."""
    record: str | None = None
    """The agent's own id of the record; equal ids in two sessions prove a fork."""


class Meta(Base, tag="meta"):
    """Descriptive fields that are true from here on; absent = not said by this record."""

    cwd: str | UnsetType = UNSET
    git_branch: str | None | UnsetType = UNSET
    model: str | UnsetType = UNSET
    effort: str | None | UnsetType = UNSET
    cli_version: str | UnsetType = UNSET
    surface: Surface | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    """Native id of the parent session."""
    relation: Relation | UnsetType = UNSET
    call: str | UnsetType = UNSET
    """Id of the tool call in the parent that made this session."""
    started_at: str | UnsetType = UNSET
    window: int | UnsetType = UNSET
    """Context window in tokens, only where the agent's own files say it."""
    limits: dict[str, Any] | UnsetType = UNSET
    """Rate limits as the agent wrote them: `{name: {used, resets_at, window_minutes}}`."""
    cost_usd: float | UnsetType = UNSET
    """The agent's own running total for the session, USD."""


class Title(Base, tag="title"):
    """A title; of several, the highest `rank` wins, then the last one."""

    title: str
    rank: int
    """The agent's own precedence: higher beats lower."""
    source: Literal["user", "agent"] = "agent"


class Prompt(Base, tag="prompt"):
    """Text given to the agent; `task` is a parent agent's order and is never counted."""

    text: str
    source: Literal["human", "dispatch", "queued", "task"] = "human"


class Answer(Base, tag="answer"):
    """Text the agent said; blocks of one `response` belong together, in order."""

    text: str
    response: str | None = None
    final: bool = False
    """True where the record says that nothing follows in this turn."""


class Thinking(Base, tag="thinking"):
    """Reasoning text; empty where the agent only stores it encrypted."""

    text: str
    response: str | None = None


class ToolStart(Base, tag="tool_start"):
    """A tool call was asked for by the model; it may still wait for a permission."""

    call: str
    name: str
    intent: Intent = "generic"
    args: dict[str, Any] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    """Paths as the call names them."""


class ToolEnd(Base, tag="tool_end"):
    """The result of a call."""

    call: str
    ok: bool
    exit_code: int | None = None
    bytes: int = 0
    """Size of the whole output text in UTF-8 bytes."""
    text: str = ""
    """The output, bounded to 30,000 characters (head and tail)."""
    spill: str | None = None
    """File that holds the whole output, where the agent spilled it."""


class TurnStart(Base, tag="turn_start"):
    """The agent began to work, whoever asked it to."""

    turn: str | None = None


class TurnEnd(Base, tag="turn_end"):
    """The turn is over. `reason`: completed, interrupted, lost, or a failure named by the agent."""

    reason: str
    turn: str | None = None


class UsageEvent(Base, tag="usage"):
    """Tokens of one response; a later event of the same `response` replaces the earlier one.

    `response` is unique over the agent's sessions, save `<turn>:<n>`: that is local to its own.
    """

    response: str
    model: str | None
    counts: Usage
    owner: str | None = None
    """Native id of the session that made the request, where the record says that it was another."""
    raw: dict[str, Any] | None = None
    """What an exact price needs beside the counts (cache lifetimes, service tier, searches)."""


class Wait(Base, tag="wait"):
    """The agent asks and waits."""

    for_: WaitingFor = field(name="for")
    call: str | None = None
    certain: bool = True


class WaitEnd(Base, tag="wait_end"):
    """What was asked has been answered or withdrawn."""

    call: str | None = None


class Retry(Base, tag="retry"):
    """A model request failed and is tried again."""

    attempt: int
    limit: int | None = None
    delay_ms: int | None = None
    text: str = ""


class Compact(Base, tag="compact"):
    """The history is being compacted (`phase` start) or has been (`end`)."""

    phase: Literal["start", "end"] = "end"
    before_tokens: int | None = None


class Subagent(Base, tag="subagent"):
    """A call made a child session."""

    child: str
    """Native id of the child."""
    call: str | None = None


class Rewind(Base, tag="rewind"):
    """What stands after this place (in this file, or in the session's earlier ones) is dead."""

    to_offset: int | None = None
    seq: int | None = None


class System(Base, tag="system"):
    """The system prompt, bounded to 2,000 characters; `fingerprint` = SHA-256 of all of it."""

    text: str
    fingerprint: str


class ErrorEvent(Base, tag="error"):
    """The agent wrote down a failure."""

    text: str
    code: str | None = None
    status: int | None = None


class Note(Base, tag="note"):
    """Odd input, counted: what could not be read or understood, and what was done about it."""

    code: str
    detail: str | None = None


class StateEvent(Base, tag="state"):
    """From the hub: a death, a registry change or a lock change."""

    state: str
    outcome: str | None = None
    waiting_for: WaitingFor | None = None


class Snapshot(Base, tag="snapshot"):
    """From the hub: the whole session as it is now."""

    value: dict[str, Any]


class Gap(Base, tag="gap"):
    """From the hub: events are missing here; a snapshot follows."""

    epoch: str


class Reset(Base, tag="reset"):
    """From the hub: a file was replaced; forget its events."""


Event: TypeAlias = (
    Meta | Title | Prompt | Answer | Thinking | ToolStart | ToolEnd | TurnStart | TurnEnd
    | UsageEvent | Wait | WaitEnd | Retry | Compact | Subagent | Rewind | System | ErrorEvent
    | Note | StateEvent | Snapshot | Gap | Reset
)  # fmt: skip

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """One event as one line of JSON, without the newline."""
    return _encoder.encode(event)


def decode(line: bytes) -> Event:
    """The event of one JSON line.

    Raises:
        msgspec.ValidationError: the line is no event.
    """
    return _decoder.decode(line)
