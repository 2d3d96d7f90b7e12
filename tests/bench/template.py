"""Recorded records in; byte templates with slots out, which are filled anew for every copy.

A template keeps every byte of the record but its ids, times, counters, folders and the texts that
may grow. `Block` is a run of records (a turn, or what stands before the first) with one table of
slots, so that a copy costs one join.
"""

import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TOKEN = (
    rf"{UUID}|(?:msg|req|resp|toolu|fc|fco|rs|ctc)_[0-9a-f]{{20,32}}|call_\d+_\d+_[0-9a-f]{{12}}"
    r"|\bbash-[0-9a-f]{16}\b|\ba[0-9a-f]{16}\b"
)
IDS = re.compile(TOKEN)
TIMES = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
HEX = re.compile(r"[0-9a-f]+$")
REMOVED = re.compile(r"<text, (\d+) chars>")
"""Where the recorder left out a text that is not its own, which the agent writes at its start."""
SHAPE = re.compile(r"<json, (\d+) chars>")
SPLIT = re.compile('"\ue002(\\d+)\ue001"|\ue000(\\d+)\ue001')
DAY = 86_400_000
Slot = tuple[Any, ...]
Record = dict[str, Any]


@dataclass(frozen=True)
class Rules:
    """What an agent's records mean to a copier."""

    counter: Callable[[tuple[str, ...]], str | None]
    """Path of a number -> the counter that it shows."""
    running: Callable[[str], bool]
    """Whether a counter is a running total (else it numbers records)."""
    carry: Mapping[str, str] = field(default_factory=dict)
    """Field that names a record of the block before -> what it names."""
    exports: Callable[[Record], dict[str, str]] = lambda _record: {}
    """What a record is to the block behind it: name -> id."""


@dataclass
class Block:
    """Records as templates. A frame is what is written (and compressed) at once."""

    frames: list[list[bytes | int]]
    slots: list[Slot]
    exports: dict[str, int]
    advance: dict[str, int]
    base: dict[str, int]
    first_ms: int
    last_ms: int

    def fill(self, values: Sequence[bytes]) -> list[bytes]:
        """The bytes of every frame."""
        return [
            b"".join([part if part.__class__ is bytes else values[part] for part in frame])  # type: ignore[index]
            for frame in self.frames
        ]


@dataclass
class Scope:
    """What one copy of a block is filled with."""

    rng: random.Random
    session: dict[str, str]
    delta: int
    """Milliseconds between the recording and the copy."""
    cwd: str
    counters: Mapping[str, int]
    carry: Mapping[str, bytes]
    texts: Mapping[str, bytes]
    """Kind of a text -> what it grows by, escaped for JSON."""
    padding: Callable[[str, int], bytes]
    """(text or json, characters) -> what stands for what the recorder left out."""
    ids: dict[str, str] = field(default_factory=dict)

    def values(self, block: Block) -> list[bytes]:
        """The value of every slot of a block."""
        return [self._value(slot) for slot in block.slots]

    def _value(self, slot: Slot) -> bytes:
        match slot[0]:
            case "id":
                return self.name(self.ids, slot[1]).encode()
            case "session":
                return self.name(self.session, slot[1]).encode()
            case "iso":
                return iso(slot[1] + self.delta, slot[2]).encode()
            case "ms":
                return b"%d" % (slot[1] + self.delta)
            case "s":
                return b"%d" % (slot[1] + self.delta // 1000)
            case "real":
                return repr(slot[1] + self.delta // 1000).encode()
            case "date":
                return iso(slot[1] + self.delta, "")[:10].encode()
            case "cwd":
                return self.cwd.encode()
            case "add":
                return b"%d" % (self.counters.get(slot[1], 0) + slot[2])
            case "carry":
                return self.carry.get(slot[1], b"null")
            case "pad":
                return self.padding(slot[1], slot[2])
            case _:
                return self.texts.get(slot[1], b"")

    def name(self, known: dict[str, str], token: str) -> str:
        """The new id for a recorded one."""
        new = known.get(token)
        if new is None:
            new = known[token] = renamed(token, self.rng, self.delta)
        return new


def renamed(token: str, rng: random.Random, delta: int) -> str:
    """An id of the same shape; one that holds a time holds the shifted time."""
    if token[8:9] == "-" and token[13:14] == "-":
        digits = f"{rng.getrandbits(128):032x}"
        if token[14] == "7":
            at = int(token[:8] + token[9:13], 16) + delta
            digits = f"{at:012x}" + digits[12:]
        return (
            f"{digits[:8]}-{digits[8:12]}-{token[14]}{digits[13:16]}"
            f"-{token[19]}{digits[17:20]}-{digits[20:]}"
        )
    match = HEX.search(token)
    length = len(match.group()) if match else 16
    if token[0] == "a" and length == len(token):
        length -= 1
    return token[:-length] + f"{rng.getrandbits(4 * length):0{length}x}"


def iso(at: int, fraction: str) -> str:
    """Milliseconds as RFC 3339, with the recorded digits behind the third."""
    seconds, rest = divmod(at, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:03d}{fraction[3:]}Z" if fraction else f"{text}Z"


def parsed(text: str) -> tuple[int, str]:
    """Milliseconds and the digits of the fraction."""
    head, _, fraction = text.rstrip("Z").partition(".")
    at = int(datetime.fromisoformat(f"{head}+00:00").timestamp()) * 1000
    return at + int(f"{fraction}000"[:3]), fraction


class Compiler:
    """Makes the blocks of one session, in order."""

    def __init__(self, rules: Rules, *, now: int, cwd: str, shared: Iterable[str]) -> None:
        self.rules, self.now, self.cwd = rules, now, cwd
        self.earlier = set(shared)
        self.totals: dict[str, int] = {}
        folder = re.escape(cwd)
        self.pattern = re.compile(rf"(?P<iso>{TIMES})|(?P<id>{TOKEN})|(?P<cwd>{folder})|(?P<day>"
                                  r"(?<![\d-])\d{4}-\d\d-\d\d(?![\d-]))")  # fmt: skip

    def block(self, frames: Sequence[Sequence[Record]], texts: Mapping[str, str]) -> Block:
        """One block.

        Args:
            frames: its records.
            texts: text -> its kind; such texts can grow.
        """
        return _Pass(self, frames, texts).block()

    def shared(self, frames: Iterable[Iterable[Record]]) -> None:
        """Ids of these records belong to the whole session."""
        for frame in frames:
            for record in frame:
                self.earlier.update(IDS.findall(json.dumps(record)))


class _Pass:
    def __init__(
        self, made: Compiler, frames: Sequence[Sequence[Record]], texts: Mapping[str, str]
    ) -> None:
        self.made, self.frames, self.texts = made, frames, texts
        self.slots: dict[Slot, int] = {}
        self.times: list[int] = []
        self.numbers: dict[str, list[int]] = {}
        self.exported: dict[str, str] = {}
        self.defined: set[str] = set()
        for record in self._records():
            self.defined.update(made.rules.exports(record).values())
            self._numbers(record, ())
        self.base = {
            name: made.totals.get(name, 0) if made.rules.running(name) else values[0]
            for name, values in self.numbers.items()
        }

    def _records(self) -> Iterable[Record]:
        return (record for frame in self.frames for record in frame)

    def block(self) -> Block:
        made = self.made
        frames = [self._frame(frame) for frame in self.frames]
        exports = {name: self._slot(self._scoped(token)) for name, token in self.exported.items()}
        advance = {}
        for name, values in self.numbers.items():
            if made.rules.running(name):
                advance[name] = values[-1] - self.base[name]
                made.totals[name] = values[-1]
            else:
                advance[name] = max(values) + 1 - self.base[name]
        made.shared(self.frames)
        first, last = min(self.times, default=made.now), max(self.times, default=made.now)
        return Block(frames, list(self.slots), exports, advance, self.base, first, last)

    def _frame(self, records: Sequence[Record]) -> list[bytes | int]:
        out: list[bytes | int] = []
        for record in records:
            value = self._value(record, ())
            self.exported.update(self.made.rules.exports(record))
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
            pieces = SPLIT.split(text)
            for place in range(0, len(pieces), 3):
                if pieces[place]:
                    out.append(pieces[place].encode("utf-8", "backslashreplace"))
                if place + 2 < len(pieces):
                    out.append(int(pieces[place + 1] or pieces[place + 2]))
        return out

    def _slot(self, slot: Slot) -> int:
        return self.slots.setdefault(slot, len(self.slots))

    def _raw(self, *slot: Any) -> str:
        return f"\ue002{self._slot(slot)}\ue001"

    def _value(self, value: Any, path: tuple[str, ...]) -> Any:
        if path and path[-1] in self.made.rules.carry and value not in self.defined:
            name = self.made.rules.carry[path[-1]]
            if value is None and self.exported:
                return None
            return self._raw("carry", name)
        match value:
            case dict():
                return {key: self._value(one, (*path, key)) for key, one in value.items()}
            case list():
                out = [self._value(one, path) for one in value]
                if path[-1] == "texts" and (kind := self._kind(value)):
                    out[-1] += f"\ue000{self._slot(('text', kind))}\ue001"
                return out
            case bool() | None:
                return value
            case int() | float():
                return self._number(value, path)
            case str():
                return self._text(value)
            case _:
                return value

    def _kind(self, value: list[Any]) -> str | None:
        return self.texts.get("".join(value)) if all(isinstance(o, str) for o in value) else None

    def _text(self, value: str) -> str:
        shape = SHAPE.fullmatch(value)
        if shape is not None:
            return self._raw("pad", "json", int(shape.group(1)))
        text = self.made.pattern.sub(self._match, value)
        text = REMOVED.sub(self._removed, text)
        kind = self.texts.get(value)
        return text if kind is None else f"{text}\ue000{self._slot(('text', kind))}\ue001"

    def _match(self, match: re.Match[str]) -> str:
        text = match.group()
        match match.lastgroup:
            case "iso":
                at, fraction = parsed(text)
                if abs(at - self.made.now) > DAY:
                    return text
                self.times.append(at)
                slot: Slot = ("iso", at, fraction)
            case "id":
                slot = self._scoped(text)
            case "cwd":
                slot = ("cwd",)
            case _:
                at = int(datetime.fromisoformat(f"{text}T12:00:00+00:00").timestamp() * 1000)
                if abs(at - self.made.now) > DAY:
                    return text
                slot = ("date", self.made.now)
        return f"\ue000{self._slot(slot)}\ue001"

    def _removed(self, match: re.Match[str]) -> str:
        slot = self._slot(("pad", "text", int(match.group(1))))
        return f"\ue000{slot}\ue001"

    def _scoped(self, token: str) -> Slot:
        return ("session" if token in self.made.earlier else "id", token)

    def _number(self, value: float, path: tuple[str, ...]) -> Any:
        counter = self.made.rules.counter(path)
        if counter is not None:
            return self._raw("add", counter, int(value) - self.base[counter])
        now = self.made.now
        if abs(value - now) < DAY:
            self.times.append(int(value))
            return self._raw("ms", int(value))
        if abs(value * 1000 - now) < DAY:
            return self._raw("real" if isinstance(value, float) else "s", value)
        return value

    def _numbers(self, value: Any, path: tuple[str, ...]) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                self._numbers(one, (*path, key))
        elif isinstance(value, list):
            for one in value:
                self._numbers(one, path)
        elif isinstance(value, int) and (name := self.made.rules.counter(path)) is not None:
            self.numbers.setdefault(name, []).append(value)
