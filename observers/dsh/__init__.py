"""DeepSeek Harness (dsh): one session log in, events out.

`$DSH_HOME/sessions/--<project>--/<escaped id>/session.v4.jsonl.zstd`, seen from 0.2.1rc2 (format
v4), 0.1.5rc1 (v3) and 0.1.2rc1 (v0); v1 and v2 by the codecs in 0.2.1rc2. Newer formats are folded
as far as they are understood, with a note. No record names the version of dsh.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from msgspec import UNSET

from hub.adapter import Claim, Found, Head, Names, Read, Root
from hub.decode import Decoder
from hub.events import Event, Meta, Note, Surface
from observers.dsh import homes, messages, tools, turns
from observers.dsh.records import Envelope, Header, Row
from observers.dsh.state import State

LABEL: Final = "DeepSeek Harness"
VERSION: Final = 2

NEWEST: Final = 4
"""The newest format that was seen written (0.2.1rc2)."""
FOLDS: Final = turns.FOLDS | messages.FOLDS | tools.FOLDS
# fmt: off
IGNORED: Final = frozenset({
    "agent-preset/selected", "approval/policy", "command/done", "command/run",
    "compaction/prune", "deliverables/presented", "developer/message",
    "feedback/message-delete", "feedback/message-put", "feedback/record", "goal/change",
    "hook/invoked", "hook/result", "image/offload", "job/registered", "llm/retry-started",
    "permission/preset", "sandbox/mode", "schedule/change",
    "session-log-deepseek/delivery-accepted", "session/title-llm-request", "step/end",
    "step/start", "subagent/model-selection-policy", "team/member",
    "team/message/delivered", "team/message/queued", "team/task", "todo/write",
    "tool-workflow/agent-end", "tool-workflow/agent-start", "tool-workflow/run-end",
    "tool-workflow/run-start", "tool/ptc-dispatch-start",
    "web/deepseek-search-llm-request", "workspace/changes",
    # v0 to v3 only:
    "text-chunks", "reasoning-chunks", "tool-call-chunks", "tool/code-dispatch-start",
    "steering/message", "request/header-delta", "mode/set",
    "compact/start", "compact/end",
})
# fmt: on
"""Types that are known and say nothing here: the other names of 0.2.1rc2's known-event-types."""
_TYPE: Final = b'{"type":"'
_PIECE: Final = re.compile(
    rb'\{"type":"assistant/chunk","seq":\d+,"time":\d+,"data":'
    rb'\{"turn":\d+,"step":\d+,"chunk":\{"type":"(?!usage")[a-z-]+"'
)
"""A chunk that is no usage (v0, v1): one of very many."""
_MUTE: Final[Mapping[bytes, Callable[[bytes], bool]]] = {
    b"agent/inbox/spliced": lambda line: b'"inserted":[]' in line,
    b"assistant/chunk": lambda line: _PIECE.match(line) is not None,
    b"user/message": lambda line: b'"kind":"user' not in line,  # injected
}
"""Types of which many rows say nothing. (Within a text every quote is escaped.)"""
_SKIPPED: Final = frozenset(name.encode() for name in IGNORED)
_FOLDS: Final = {name.encode(): fold for name, fold in FOLDS.items()}
_ENVELOPE: Final = Decoder(Envelope, (_TYPE,))
_HEADER: Final = Decoder(Header, (_TYPE,))
_SDK: Final = re.compile(r"session-[0-9a-f]{32}")
_HEADLESS: Final = re.compile(r"session-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ACP: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def roots(env: Mapping[str, str], home: str, read: Read, names: Names) -> Sequence[Root]:
    """`$DSH_HOME`, `~/.dsh`, and the literal session roots in their patch files."""
    return homes.roots(env, home, read, names)


def process(exe: str, argv: Sequence[str]) -> bool:
    """Is this dsh with a profile (headless, web, acp, sdk)?"""
    return homes.process(exe, argv)


def find(relative: str, head: Head) -> Found | None:
    """A session's log of any generation, or its lock."""
    del head
    return homes.find(relative)


def start(found: Found) -> State:
    """The state before the header."""
    return State(version=found.replaces)


def sidecar(name: str, data: bytes) -> Iterable[Event]:
    """There are none: the projection cache goes stale in silence."""
    del name, data
    return ()


def live(name: str, data: bytes) -> Claim | None:
    """There is no registry: life is a held `session.lock`."""
    del name, data
    return None


def events(line: bytes, offset: int, state: State) -> Iterable[Event]:
    """The events of one row."""
    kind = line[9 : line.find(b'"', 9, 80)] if line.startswith(_TYPE) else b""
    if not state.unstarted and _silent(line, kind):
        return ()  # not even decoded
    out: list[Event] = []
    at, record = None, None
    row, code = _read(line, kind)
    if code is not None:
        out.append(Note(code=code))
    if row is not None and row.type == "session":
        header = _HEADER(line)[0] or Header()
        at = _time(header.created_at)
        _header(header, at, state, out)
    elif row is not None:
        at = _time(row.time)
        if not _inherited(row, at, state, out):
            record = _own(row, state, out)
    for event in out:
        event.at = at
        event.offset = offset
        event.record = record
    return out


def _silent(line: bytes, kind: bytes) -> bool:
    """Is it one whole row that says nothing: not a torn one with another behind it?"""
    if kind in _SKIPPED:
        return line.find(_TYPE, 9) < 0
    mute = _MUTE.get(kind)
    return mute is not None and mute(line) and line.count(b'"seq":') == 1


def _read(line: bytes, kind: bytes) -> tuple[Row[Any] | None, str | None]:
    fold = _FOLDS.get(kind)
    row = fold.read.row(line) if fold is not None else None
    if row is not None:
        return row, None
    whole, code = _ENVELOPE(line)
    if whole is None:
        return None, code
    fold = FOLDS.get(whole.type)
    data, note = fold.read.data(whole.data) if fold is not None else (None, None)
    return Row(whole.type, data, whole.time, whole.seq, whole.seq0, whole.surface_op), code or note


def _own(row: Row[Any], state: State, out: list[Event]) -> str | None:
    fold = FOLDS.get(row.type)
    if fold is None:
        if row.type not in IGNORED:
            out.append(Note(code="unknown_record", detail=row.type[:200]))
        return None
    if row.surface_op is not None and row.surface_op != "append":
        return None  # a copy that only the model sees
    return fold.function(row.data, state, out)


def _inherited(row: Row[Any], at: str | None, state: State, out: list[Event]) -> bool:
    """Is the row a copy of the parent's? The first own one says when the fork began.

    (`session/end-seed {inherited: true}` carries the time of the parent's last row, 0.2.1rc2.)
    """
    if state.inherited:
        if row.type == "session/end-seed" and row.data.inherited:
            state.inherited = False
            turns.inherited(state, out)
        else:
            turns.inherit(row, state)
        return True
    if state.seed:  # v0, v1
        seq = row.seq if row.seq0 is None else row.seq0
        if type(seq) is not int or seq < state.seed:
            turns.inherit(row, state)
            return True
        state.seed = 0
        turns.inherited(state, out)
    if state.unstarted and at is not None:
        state.unstarted = False
        out.append(Meta(started_at=at))
    return False


def _header(row: Header, at: str | None, state: State, out: list[Event]) -> None:
    """Line 1: `{type: session, version, id, createdAt, cwd, isSeeded, delegationDepth, ...}`."""
    version = _count(row.version, -1)
    if version != state.version:
        out.append(Note(code="version_mismatch", detail=f"{state.version} {version}"))
    if version > NEWEST:
        out.append(Note(code="format_unverified", detail=str(version)))
    state.version = version
    state.inherited = row.is_seeded is True
    state.seed = _count(row.seed_length, 0) if version < 2 else 0
    state.unstarted = state.inherited or state.seed > 0
    state.child = row.origin == "subagent"
    meta = Meta(surface=_surface(row) or UNSET)
    if at is not None:
        meta.started_at = at
    if isinstance(row.cwd, str) and row.cwd:
        meta.cwd = state.cwd = row.cwd
    if isinstance(row.parent_session, str) and row.parent_session:
        meta.parent = row.parent_session
        meta.relation = "subagent" if state.child else "fork"
    out.append(meta)


def _surface(row: Header) -> Surface | None:
    """No record names the profile: the web host alone writes a preset, and ids have shapes."""
    if row.agent_preset is not None:
        return "web"
    if row.origin is not None or row.parent_session is not None:
        return None  # a child's face is its parent's
    name = row.id if isinstance(row.id, str) else ""
    if _SDK.fullmatch(name):
        return "sdk"
    if _HEADLESS.fullmatch(name):
        return "headless"
    return "ide" if _ACP.fullmatch(name) else None


def _count(value: Any, other: int) -> int:
    return value if type(value) is int and 0 <= value <= 2**53 else other


def _time(value: Any) -> str | None:
    """Epoch milliseconds as RFC 3339."""
    if type(value) is not int or not 0 <= value < 253_402_300_800_000:
        return None
    return f"{_second(value // 1000)}.{value % 1000:03d}Z"


@lru_cache(1024)
def _second(value: int) -> str:
    return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%S}"
