"""What the observer remembers between two lines of one file, and the steps that change it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import Struct, field

from hub.events import Event, Meta, Surface, TurnEnd, TurnStart, WaitEnd
from hub.model import Usage
from observers.claude.records import Record

RECENT = 64
"""Responses whose last counts are remembered: the records of one lie close together."""

Place: TypeAlias = dict[str, Any]
"""`at`, `offset` and `record` of the events of one line."""


class State(Struct):
    """Where the reading of one file stands."""

    session: str
    """Native id: `<session>` or `<session>/<agent>`."""
    turn: str | None = None
    """`promptId` of the open turn."""
    open: bool = False
    unasked_at: str | None = None
    """Time at which the latest turn began that no prompt had begun, until its prompt comes."""
    answered: str | None = None
    """Response whose text ended the latest turn: its later blocks continue that answer."""
    empty: bool = False
    """The last response of the open turn had no visible output."""
    nudged: bool = False
    """The CLI has asked once more for visible output in the open turn."""
    told: bool = False
    """The last word of the open turn is a text without `stop_reason`: its end?"""
    paused: bool = False
    """That word is from before 2.1.80, so the turn counts as ended until something follows."""
    stop: str | None = None
    """`stop_reason` of the latest response."""
    calls: dict[str, str] = field(default_factory=dict)
    """Tool calls without a result, and the response that made each."""
    asking: list[str] = field(default_factory=list)
    """Those of them that wait for a person."""
    counts: dict[str, Usage] = field(default_factory=dict)
    """The counts that were last given out, by response."""
    titles: dict[int, str] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    """Summaries of records that did not come yet, by their `leafUuid`."""
    cwd: str | None = None
    branch: str | None = None
    version: str | None = None
    early: bool = False
    """That version can write the last word of a turn without a `stop_reason`."""
    surface: str | None = None
    model: str | None = None
    effort: str | None = None
    parent: str | None = None
    cost: float | None = None
    prompts: list[tuple[str, int]] = field(default_factory=list)
    """Parent record and offset of the latest prompts: places to rewind to."""
    silent: bool = False
    """The model has said nothing in the open turn."""

    @property
    def root(self) -> str:
        """The session that the file's agents belong to."""
        return self.session.split("/", 1)[0]

    @property
    def child(self) -> bool:
        """Is this the file of a sub-agent?"""
        return "/" in self.session


_SURFACES: dict[str, Surface] = {
    "cli": "tui",
    "sdk-cli": "headless",
    "claude-desktop": "ide",
    "remote": "web",
    "web": "web",
}


def surface(entrypoint: str) -> Surface:
    """`entrypoint` (2.1.80 and newer) in the hub's words."""
    if entrypoint in _SURFACES:
        return _SURFACES[entrypoint]
    if entrypoint.startswith("sdk"):
        return "sdk"
    if any(word in entrypoint for word in ("vscode", "jetbrains", "cursor", "ide")):
        return "ide"
    return "web" if "web" in entrypoint or "remote" in entrypoint else "unknown"


def moment(timestamp: str | None) -> str | None:
    """The record's time as the hub writes times; null where it is none."""
    if timestamp is None:
        return None
    if len(timestamp) == 24 and timestamp[10] == "T" and timestamp[19::4] == ".Z":
        return timestamp if _is_time(timestamp) else None
    try:
        time = datetime.fromisoformat(timestamp)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def facts(record: Record, place: Place, state: State) -> Iterator[Meta]:
    """What the record says about the session and was not said before."""
    if record.is_sidechain and not state.child:
        return  # 1.0.128 keeps sub-agents inside the session's file
    new: dict[str, Any] = {}
    if record.cwd and record.cwd != state.cwd:
        state.cwd = new["cwd"] = record.cwd
    if record.git_branch is not None:
        branch = None if record.git_branch in {"", "HEAD"} else record.git_branch
        if branch != state.branch:
            state.branch = new["git_branch"] = branch
    if record.version and record.version != state.version:
        state.version = new["cli_version"] = record.version
        state.early = early(record.version)
    if record.entrypoint and record.entrypoint != state.surface:
        state.surface = record.entrypoint
        new["surface"] = surface(record.entrypoint)
    if record.type == "assistant" and record.message is not None:
        model = record.message.model
        if model and model not in {"<synthetic>", state.model}:
            state.model = new["model"] = model
        if record.effort and record.effort != state.effort:
            state.effort = new["effort"] = record.effort
    if new:
        yield Meta(**new, **place)


def forked(parent: str, place: Place, state: State) -> Iterator[Meta]:
    """The session is a fork of `parent`."""
    if parent not in {state.parent, state.root}:
        state.parent = parent
        yield Meta(parent=parent, relation="fork", **place)


def begin(record: Record, place: Place, state: State) -> Iterator[Event]:
    """A turn begins."""
    if state.told:
        yield from end("completed", place, state)
    yield from withdraw(place, state)
    state.open, state.turn = True, record.uuid or record.prompt_id
    state.answered, state.empty, state.unasked_at = None, False, None
    state.silent, state.told, state.nudged, state.paused = True, False, False, False
    yield TurnStart(turn=state.turn, **place)


def end(reason: str, place: Place, state: State) -> Iterator[Event]:
    """The open turn, if there is one, is over."""
    if not state.open:
        return
    yield from withdraw(place, state)
    state.open, state.empty, state.told = False, False, False
    yield TurnEnd(reason=reason, turn=state.turn, **place)
    state.turn = None


def pause(place: Place, state: State) -> Iterator[Event]:
    """The open turn may be over: CLIs before 2.1.80 wrote records before they knew."""
    yield TurnEnd(reason="completed", turn=state.turn, **place)
    state.open, state.paused, state.told = False, True, False


def resume(place: Place, state: State) -> Iterator[Event]:
    """It was not over."""
    if state.paused:
        state.open, state.paused = True, False
        yield TurnStart(turn=state.turn, **place)


def early(version: str | None) -> bool:
    """Is this a CLI that can write the last word of a turn without a `stop_reason`?

    All do in 2.1.20 to 2.1.7x, and every older one when the stream is slower than the disk.
    """
    known = re.match(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})", version or "")
    return known is not None and tuple(map(int, known.groups())) < (2, 1, 80)


def withdraw(place: Place, state: State) -> Iterator[Event]:
    """Calls of an earlier turn will get no result any more."""
    for call in state.asking:
        yield WaitEnd(call=call, **place)
    state.asking.clear()
    state.calls.clear()


def fullest(response: str, counts: Usage, state: State) -> Usage:
    """The counts of the response with the most output: an early record may hold a placeholder."""
    before = state.counts.get(response)
    if before is not None and (before.output or 0) > (counts.output or 0):
        return before
    state.counts[response] = counts
    while len(state.counts) > RECENT:
        del state.counts[next(iter(state.counts))]
    return counts
