"""One session's files in; its fold, its responses and the places reached out: no store, no clock.

What is read is the growth since the places that are handed in, or everything where a file is not
the one that was read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from hub import registry
from hub.adapter import Observer
from hub.cursor import Place, Reader
from hub.decode import packed
from hub.discover import File
from hub.errors import why
from hub.events import (
    Answer,
    ErrorEvent,
    Event,
    Prompt,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
    UsageEvent,
)
from hub.fold import Fold, Response
from hub.keys import key_of
from hub.model import Usage

UNFINISHED = "torn_frame"
"""Note of a compressed log of which nothing can be read yet, or ever."""
HEAD = 1 << 12
"""Bytes of the head that a quick reading looks at; a longer first line is read whole."""
DEEP = 1 << 16
"""Bytes of the head in which the first prompt is looked for."""
PART = 1 << 13
"""Bytes of the tail that it looks at first."""
Price: TypeAlias = Callable[[UsageEvent], tuple[float | None, str, str | None]]
"""Gives (list price or null, currency, basis) of one request."""


def no_price(_event: UsageEvent) -> tuple[float | None, str, str | None]:
    """Where no price table is wanted."""
    return None, "USD", None


class Kept(Struct):
    """What the store keeps of a log file beside its row."""

    place: Place
    state: bytes
    note: str | None = None


@dataclass
class Plan:
    """A session to read."""

    key: str
    agent: str
    files: list[File]
    """In order; all of them."""
    fold: bytes | None = None
    """Where the last reading of exactly these files ended; None = read everything."""
    passed: list[File] = field(default_factory=list)
    """Files of it that are not read: another one replaces them."""
    last: bytes | None = None
    """msgpack of the `Kept` of the last file, the only one that may have grown."""

    @property
    def size(self) -> int:
        """Bytes that may have to be read."""
        return sum(file.size for file in self.files)


class FileRead(Struct):
    """One file as it was read."""

    path: str
    device: int
    inode: int
    size: int
    mtime: int
    position: int
    body: bytes


class SessionRead(Struct):
    """What one session's files say."""

    key: str
    fold: Fold
    anew: bool
    """Everything was read: what was kept of the session before is void."""
    files: list[FileRead] = []
    responses: dict[str, Response] = {}
    troubles: list[tuple[str, str]] = []
    """(path, reason)"""
    read_bytes: int = 0


def read(plan: Plan, price: Price = no_price) -> SessionRead:
    """Reads a session's growth, or all of it."""
    observer = registry.observer(plan.agent)
    if plan.fold is not None and plan.last is not None:
        out = SessionRead(plan.key, _fold.decode(plan.fold), anew=False)
        kept = msgspec.msgpack.decode(plan.last, type=Kept)
        if _read(out, plan.files[-1:], kept, observer, price):
            return out
    out = SessionRead(plan.key, Fold(), anew=True)
    _read(out, plan.files, None, observer, price)
    return out


_fold = msgspec.msgpack.Decoder(Fold)


def _read(
    out: SessionRead, files: list[File], kept: Kept | None, observer: Observer, price: Price
) -> bool:
    """Reads the files; False where the first is not the one that was read before."""
    take = Taker(out, price)
    for file in files:
        try:
            if not _file(out, file, kept, observer, take):
                return False
        except FileNotFoundError:
            continue
        except OSError as error:
            out.troubles.append((file.path, why(error)))
    take.finish()
    return True


def _file(
    out: SessionRead, file: File, kept: Kept | None, observer: Observer, take: "Taker"
) -> bool:
    state: Any = observer.start(file.found)
    place = Place()
    if kept is not None:
        state = msgspec.msgpack.decode(kept.state, type=type(state))
        place = kept.place
    with Reader(file.path, file.found.framing, place) as reader:
        if reader.restarted:
            return False
        before = place.position
        take.path = file.relative
        events, one = observer.events, take.one
        for lines in reader.pieces():
            for offset, line in lines:
                for event in events(line, offset, state):
                    one(event)
        out.read_bytes += place.position - before
        for note, count in reader.skipped.items():
            out.fold.notes[note] = out.fold.notes.get(note, 0) + count
        out.fold.notes.pop(UNFINISHED, None)
        if reader.note is not None and out.fold.events == 0:
            out.fold.notes[UNFINISHED] = 1
        stat = reader.stat
        body = packed(Kept(place, packed(state), reader.note))
        out.files.append(
            FileRead(
                file.path,
                stat.st_dev,
                stat.st_ino,
                stat.st_size,
                stat.st_mtime_ns,
                place.position,
                body,
            )  # fmt: skip
        )
    return True


class Taker:
    """Stamps events, folds them, and keeps what each response stands for."""

    def __init__(self, out: SessionRead, price: Price) -> None:
        self.out, self.key, self.fold, self.responses = out, out.key, out.fold, out.responses
        self.price = price
        self.path = ""

    def one(self, event: Event) -> None:
        """Takes one event in."""
        fold = self.fold
        event.session, event.path, event.n = self.key, self.path, fold.events
        if fold.last is not None and isinstance(event, (TurnStart, Prompt)):
            self._settle(event.at)
        fold.apply(event)
        if isinstance(event, UsageEvent):
            self._usage(event)

    def _usage(self, event: UsageEvent) -> None:
        fold = self.fold
        if fold.last is not None and fold.last[0] != event.response:
            self.finish()
        known = self.responses.get(event.response)
        if known is not None and known.counts == event.counts and known.model == event.model:
            # as if it were the only one: the one before may have been read by another step
            known.at, known.raw, known.n = event.at, event.raw, event.n
            known.owner = self._owner(event.owner)
            known.upto, known.next_at = (0, 0, 0, 0, 0), None
            fold.last = (event.response, known)
            return
        cost, currency, basis = self.price(event)
        one = Response(
            event.at, event.model, event.counts, event.raw, event.n, cost, currency, basis,
            self._owner(event.owner),
        )  # fmt: skip
        self.responses[event.response] = one
        fold.last = (event.response, one)

    def _owner(self, native: str | None) -> str | None:
        """The key of another session that made the request."""
        key = key_of(self.key.partition(":")[0], native) if native else None
        return None if key == self.key else key

    def _settle(self, at: str | None) -> None:
        """A turn begins: a copy of everything before it inherits the counts up to here."""
        self.finish()
        if self.fold.last is not None:
            self.fold.last[1].next_at = at
            self.fold.last = None

    def finish(self) -> None:
        """The counts that a copy up to the last response would inherit."""
        if self.fold.last is not None:
            name, one = self.fold.last
            one.upto = self.fold.counts()
            self.responses[name] = one


def quick(plan: Plan) -> SessionRead:
    """Reads only head and tail of a session's files: counts are not to be had from it."""
    observer = registry.observer(plan.agent)
    out = SessionRead(plan.key, Fold(), anew=True)
    take = Taker(out, no_price)
    for file in plan.files:
        try:
            _ends(file, observer, take)
        except FileNotFoundError:
            continue
        except OSError as error:
            out.troubles.append((file.path, why(error)))
    out.responses = {}
    out.fold.last = None
    return out


def _ends(file: File, observer: Observer, take: Taker) -> None:
    """The head, and a tail that is made longer until it says how the session stands."""
    state = observer.start(file.found)
    take.path = file.relative
    with Reader(file.path, file.found.framing, Place()) as reader:
        if reader.stat.st_size <= 2 * PART:
            _feed([line for piece in reader.pieces() for line in piece], observer, state, take)
            return
        place = reader.place
        looked = 0
        while not (_feed(reader.next(HEAD), observer, state, take) and take.fold.first_prompt):
            looked += HEAD
            if looked > DEEP or place.position >= reader.stat.st_size:
                break
        after = place.position
        kept, fold = packed(state), packed(take.fold)
        size = PART
        while True:
            tail = reader.tail(size, after)
            if _feed(tail, observer, state, take) or size >= reader.stat.st_size:
                return
            size *= 4
            state = msgspec.msgpack.decode(kept, type=type(state))
            take.fold = take.out.fold = _fold.decode(fold)


_DECIDES = (Answer, ErrorEvent, Prompt, ToolStart, ToolEnd, TurnEnd, TurnStart)


def _feed(lines: list[tuple[int, bytes]], observer: Observer, state: Any, take: Taker) -> bool:
    """Takes the lines in; was there anything in them that says how the session stands?"""
    decided = False
    for offset, line in lines:
        for event in observer.events(line, offset, state):
            decided = decided or isinstance(event, _DECIDES)
            take.one(event)
    return decided


def total(responses: dict[str, Response]) -> Usage:
    """The sum over responses; all null where there is none."""
    sums: list[int | None] = [None] * 5
    for one in responses.values():
        counts = one.counts
        for place, count in enumerate(
            (counts.input, counts.cache_read, counts.cache_write, counts.output, counts.reasoning)
        ):
            if count is not None:
                sums[place] = (sums[place] or 0) + count
    return Usage(*sums)
