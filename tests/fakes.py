"""An agent that does not exist: its observer, its files, and looks as new processes have them."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from hub import registry
from hub.adapter import Claim, Found, Head, Root
from hub.catalogue import catalogue
from hub.decode import Decoder
from hub.events import (
    Event,
    Meta,
    Prompt,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
    UsageEvent,
)
from hub.keys import native_of
from hub.liveness import Fixed
from hub.memory import Memory
from hub.model import Session, Usage
from hub.observe import Engine
from hub.paths import SCHEMA
from hub.store import Store


class Line(Struct):
    do: str
    at: str | None = None
    name: str = ""
    tokens: int = 0


class Lines(Struct):
    count: int = 0


_read = Decoder(Line)


def events(line: bytes, offset: int, state: Lines) -> Iterator[Event]:
    """`say` a prompt, `use` tokens, call a `tool` that fails, `end` the turn, name a `parent`."""
    record, _ = _read(line)
    if record is None:
        return
    state.count += 1
    at = record.at
    match record.do:
        case "say":
            yield TurnStart(at=at, offset=offset)
            yield Prompt(text=record.name, at=at, offset=offset)
        case "use":
            counts = Usage(output=record.tokens)
            yield UsageEvent(response=record.name, model="m", counts=counts, at=at, offset=offset)
        case "tool":
            call = record.name or f"c{state.count}"
            yield ToolStart(call=call, name="t", at=at, offset=offset)
            yield ToolEnd(call=call, ok=False, at=at, offset=offset)
        case "parent":
            yield Meta(parent=record.name, relation="subagent", at=at, offset=offset)
        case _:
            yield TurnEnd(reason="completed", at=at, offset=offset)


def sidecar(relative: str, data: bytes) -> Iterator[Event]:
    """Lines of `session parent`."""
    for line in data.decode(errors="replace").splitlines():
        session, _, parent = line.partition(" ")
        yield Meta(session=session, parent=parent or UNSET, relation="subagent")


def find(relative: str, head: Head) -> Found | None:
    """A log, `a@2.log` its second file, `a.log.zst` instead of it; `x.side`, `x.reg`, `a.lock`."""
    name = Path(relative).name
    stem, _, kind = name.partition(".")
    stem, _, order = stem.partition("@")
    match kind:
        case "log":
            return Found(stem, order=order)
        case "log.zst":
            return Found(stem, framing="zstd", order=order, replaces=1)
        case "head":  # its first line says whose it is
            return Found(head().partition(b"\n")[0].decode(errors="replace"))
        case "side":
            return Found(name, role="sidecar")
        case "reg":
            return Found(name, role="registry")
        case "lock":
            return Found(stem, role="lock")
        case _:
            return None


def live(relative: str, data: bytes) -> Claim | None:
    """`session pid start`."""
    words = data.decode(errors="replace").split()
    return Claim(words[0], int(words[1]), words[2]) if len(words) == 3 else None


def observer(*roots: Path) -> Any:
    """The observer, for `monkeypatch.setattr(registry, "observer", ...)`."""
    return SimpleNamespace(
        LABEL="Fake", VERSION=1, find=find, events=events, start=lambda _: Lines(), live=live,
        roots=lambda *_: [Root(str(root)) for root in roots], sidecar=sidecar,
        process=lambda *_: False,
    )  # fmt: skip


class World:
    """Homes of the agent, a cache and a memory; every look is one of a process of its own."""

    def __init__(self, folder: Path, patch: Any, roots: int = 1) -> None:
        self.roots = [folder / f"logs{number}" for number in range(roots)]
        self.logs = self.roots[0]
        for root in self.roots:
            root.mkdir()
        self.cache, self.memory = folder / "own" / f"cache-{SCHEMA}.db", folder / "own" / "state.db"
        self.machine = Fixed(0.0)
        self.processes = 1
        self.fake = observer(*self.roots)
        patch.setattr(registry, "observer", lambda _: self.fake)

    def write(self, name: str, *lines: str, root: int = 0) -> Path:
        """Adds lines `do name@at=tokens` to a file."""
        path = self.roots[root] / name
        with path.open("ab") as stream:
            stream.write(b"".join(map(encoded, lines)))
        return path

    def engine(self, store: Store | None = None, memory: Memory | None = None) -> Engine:
        """As a process has it that begins now."""
        return Engine(
            {}, "/nowhere", self.machine, store or Store(self.cache),
            memory=memory or Memory(self.memory), agents=["fake"], processes=self.processes,
        )  # fmt: skip

    def look(self, store: Store | None = None, *, quick: bool = False) -> dict[str, Session]:
        """Native id -> session."""
        engine = self.engine(store)
        try:
            found = catalogue(engine, quick=quick)
            return {native_of(one.key): one for one in found.sessions()}
        finally:
            engine.store.close()
            engine.memory.close()

    def fresh(self) -> dict[str, Session]:
        """The same with nothing known: neither cache nor memory."""
        engine = self.engine(Store(None), Memory(None))
        try:
            found = catalogue(engine)
            return {native_of(one.key): one for one in found.sessions()}
        finally:
            engine.store.close()
            engine.memory.close()

    def forget(self) -> None:
        """Deletes the cache."""
        for path in self.cache.parent.glob("cache-*"):
            path.unlink()


def encoded(line: str) -> bytes:
    """`do name@at=tokens` as a record."""
    do, _, rest = line.partition(" ")
    rest, _, tokens = rest.partition("=")
    name, _, at = rest.partition("@")
    stamp = f"2026-11-01T00:00:{at}.000Z" if at else None
    return (
        json.dumps({"do": do, "name": name, "at": stamp, "tokens": int(tokens or 0)}).encode()
        + b"\n"
    )


def plain(sessions: dict[str, Session]) -> dict[str, Any]:
    """As JSON has them, so that a difference is told field by field."""
    out: dict[str, Any] = msgspec.to_builtins(sessions)
    return out


def output(sessions: dict[str, Session]) -> dict[str, int | None]:
    """Native id -> output tokens that it owns."""
    return {key: one.usage.output if one.usage else None for key, one in sessions.items()}
