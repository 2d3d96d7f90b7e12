"""Codex CLI: `sessions/Y/M/D/rollout-<local time>-<thread>.jsonl` and its kin in, events out.

Read against real runs of codex-cli 0.1.2505172129 (TypeScript), 0.20.0, 0.42.0, 0.98.0, 0.120.0,
0.140.0, 0.147.0 and 0.171.0. The rollouts are the only source: the SQLite files are projections of
them. Which records say what depends on what the lines are, not on the version in line 1: an old
file that a new Codex resumes stays in its old form.
"""

from collections.abc import Iterable, Mapping, Sequence
from re import compile as pattern
from typing import Final

from msgspec import MsgspecError, Struct

from hub.adapter import Claim, Found, Head, Names, Read, Root
from hub.decode import Decoder
from hub.events import Event, Note, Title
from observers.codex import lines, pretty, records
from observers.codex.records import moment, text
from observers.codex.state import State

LABEL: Final = "Codex"
VERSION: Final = 2

_FOLDERS: Final = ("sessions", "archived_sessions", "thread-writer-locks", "session_index.jsonl")
_ID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ROLLOUT = pattern(
    r"(?:sessions/(?:\d{4}/\d\d/\d\d/)?|archived_sessions/)"
    rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_ID})(?:_({_ID}))?\.jsonl(\.zst)?"
)
_OLDEST = pattern(rf"sessions/rollout-(\d{{4}})-(\d\d)-(\d\d)-({_ID})\.json")
"""Of the TypeScript CLI (`observers.codex.pretty`): a save is whole, and has its own day."""
_LOCK = pattern(rf"thread-writer-locks/({_ID})\.lock")
_INDEX: Final = "session_index.jsonl"

_BINARIES = pattern(r"codex(?:-(?:x86_64|aarch64)-[a-z0-9-]+)?(?:\.exe)?(?: \(deleted\))?")
_NOT_SESSIONS: Final = frozenset({
    "app", "app-server", "apply", "archive", "cloud", "completion", "debug", "delete", "doctor",
    "exec-server", "execpolicy", "features", "generate-ts", "help", "login", "logout", "mcp",
    "mcp-server", "migrate-rollouts", "plugin", "proto", "queue", "responses-api-proxy", "sandbox",
    "stdio-to-uds", "unarchive", "update",
})  # fmt: skip
"""Subcommands that run no session: servers hold the locks of other people's threads."""
_VALUED: Final = frozenset({
    "-c", "--config", "--enable", "--disable", "-i", "--image", "-m", "--model", "-p", "--profile",
    "-s", "--sandbox", "-a", "--ask-for-approval", "-C", "--cd", "--add-dir", "--local-provider",
    "--remote",
})  # fmt: skip
"""Options whose value is the next argument."""


class _Named(Struct):
    """A line of `session_index.jsonl`: written by the interactive client, never by `exec`."""

    id: object = None
    thread_name: object = None
    updated_at: object = None


_named = Decoder(_Named)


def roots(env: Mapping[str, str], home: str, read: Read, names: Names) -> Sequence[Root]:
    """`$CODEX_HOME` and `~/.codex`; an empty variable is unset."""
    del read, names
    places = [env.get("CODEX_HOME") or "", f"{home}/.codex" if home else ""]
    places = [place.rstrip("/") or place for place in places if place]
    return [Root(place, _FOLDERS) for place in dict.fromkeys(places)]


def process(exe: str, argv: Sequence[str]) -> bool:
    """Is it the native binary, interactive or `exec`?

    Not the npm launcher (node), not the daemon (`app-server --managed-daemon`) and its updater, and
    not the binary in one of its other roles (sandbox, `apply_patch`, code-mode host).
    """
    if not argv or not all(_BINARIES.fullmatch(_base(name)) for name in (exe, argv[0])):
        return False
    skip = False
    for word in argv[1:]:
        if skip:
            skip = False
        elif word in ("--help", "-h", "--version", "-V") or word.startswith("--codex-run-as"):
            return False
        elif word.startswith("-"):
            skip = word in _VALUED
        else:
            return word not in _NOT_SESSIONS
    return True


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def find(relative: str, head: Head) -> Found | None:
    """Rollouts (plain, compressed, segments), writer locks, the index of names."""
    del head
    oldest = _OLDEST.fullmatch(relative)
    if oldest is not None:
        return Found(oldest[4], replaces=int(oldest[1] + oldest[2] + oldest[3]))
    rollout = _ROLLOUT.fullmatch(relative)
    if rollout is not None:
        thread, segment, packed = rollout.groups()
        return Found(
            thread,
            framing="zstd" if packed else "lines",
            order=segment or "",
            replaces=0 if packed else 1,
        )
    lock = _LOCK.fullmatch(relative)
    if lock is not None:
        return Found(lock[1], role="lock", framing="whole")
    if relative == _INDEX:
        return Found(_INDEX, role="sidecar", framing="whole")
    return None


def start(found: Found) -> State:
    """The state before the first line."""
    return State(found.id, segment=bool(found.order))


def events(line: bytes, offset: int, state: State) -> Iterable[Event]:
    """The events of one line."""
    out: list[Event] = []
    if (state.pretty or line[:2] in (b"{", b"  ")) and pretty.is_part(line, offset, state):
        own, began = pretty.line(line, offset, state, out)
        for event in out:
            event.offset, event.record = began, own
        return out
    try:
        record: records.Line | None = records.line.decode(line)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        record, odd = records.line.mend(line)
        if odd is not None:
            out.append(Note(code=odd))
    own = lines.line(record, line, offset, state, out) if record is not None else None
    if out:
        at = moment(record.timestamp) if record is not None else None
        for event in out:
            event.at, event.offset = at, offset
            if event.record is None:
                event.record = own
    return out


def sidecar(name: str, data: bytes) -> Iterable[Event]:
    """The names in `session_index.jsonl`: of one thread's the last counts."""
    found: dict[str, Title] = {}
    odd: list[Event] = []
    offset = 0
    for line in data.split(b"\n") if _base(name) == _INDEX else ():
        entry, code = _named(line)
        if entry is not None:
            thread, title = text(entry.id), text(entry.thread_name)
            if thread is not None and title is not None:
                found.pop(thread, None)
                at = moment(entry.updated_at)
                found[thread] = Title(session=thread, at=at, offset=offset, title=title, rank=10)
        elif code is not None:
            odd.append(Note(code=code, offset=offset))
        offset += len(line) + 1
    return [*found.values(), *odd]


def live(name: str, data: bytes) -> Claim | None:
    """Codex has no registry: a thread is alive while its lock is held."""
    del name, data
    return None
