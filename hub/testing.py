"""The conformance suite that is shipped: a fixture folder in, what is wrong with its adapter out.

A case is a folder `<agent>/<name>/` with `root/` (a HOME), `SOURCE.toml` (where it is from, and the
clock and processes of its moment), `expected.jsonl`, `session.json` and `truth.json`.
"""

import contextlib
import json
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hub import framing, transcript
from hub.adapter import Found, Observer
from hub.catalogue import Catalogue, catalogue, stamp
from hub.events import Answer, Event, Prompt, ToolStart, encode
from hub.keys import key_of
from hub.liveness import Fixed, Process
from hub.model import Session
from hub.observe import Engine
from hub.state import seconds
from hub.store import Store

HOME = "/home/dev"
"""What golden files say instead of the folder that the case lies in."""
JUNK: Sequence[bytes] = (
    b"", b"{", b"17", b"[1,2]", b"null", b'""', b"\0\0\0", b"\xff\xfe", b'{"type":7}', b"[" * 3000,
    b'{"type":"kind_of_2031","payload":{"a":[1]},"data":null,"message":7}',
    b'{"type":"user","message":null,"payload":[],"data":3,"timestamp":[],"time":"x"}',
)  # fmt: skip
"""Lines that no adapter may fall over."""


def log_events(observer: Observer, found: Found, data: bytes, key: str = "") -> list[Event]:
    """All events of a whole log file, numbered as the hub numbers them."""
    if found.framing == "zstd":
        return line_events(observer, found, framing.unpack(data, 0, 0)[0].lines, key)
    return line_events(observer, found, framing.split(data, 0, 0).lines, key)


def line_events(
    observer: Observer, found: Found, lines: Iterable[tuple[int, bytes]], key: str = ""
) -> list[Event]:
    """The events of lines that were framed already."""
    return list(_stream(observer, lines, observer.start(found), key))


def _stream(
    observer: Observer, lines: Iterable[tuple[int, bytes]], state: Any, key: str
) -> Iterable[Event]:
    number = 0
    for offset, line in lines:
        for event in observer.events(line, offset, state):
            event.session, event.n = event.session or key, number
            number += 1
            yield event


def source(case: Path) -> dict[str, Any]:
    """SOURCE.toml of a case."""
    return tomllib.loads((case / "SOURCE.toml").read_text(encoding="utf-8"))


def machine(case: Path) -> Fixed:
    """The machine as it was at the moment of the case."""
    said = source(case).get("liveness", {})
    now = seconds(str(said.get("now", "2026-12-01T00:00:00.000Z")))
    processes = {
        one["pid"]: Process(
            pid=one["pid"], start=str(one.get("start", "")), exe=one.get("exe", ""),
            argv=tuple(one.get("argv", ())),
        )
        for one in said.get("processes", ())
    }  # fmt: skip
    held = {}
    for lock in said.get("locks", ()):
        stat = (case / "root" / lock["path"]).stat()
        held[stat.st_dev, stat.st_ino] = lock["pid"]
    return Fixed(now or 0.0, processes, held, said.get("domain") or None)


def engine(case: Path, store: Store | None = None) -> Engine:
    """An engine that sees the case's root as its HOME."""
    home = str(case / "root")
    return Engine({}, home, machine(case), store or Store(None))


def case_golden(case: Path) -> tuple[bytes, bytes]:
    """What agenthub says of a case now: (`expected.jsonl`, `session.json`)."""
    found = catalogue(engine(case), host="test")
    return events_of(found), sessions_of(found, case)


def events_of(found: Catalogue) -> bytes:
    """Every event of every session, a line each, in order of keys."""
    return b"".join(
        encode(event) + b"\n"
        for key in sorted(found.keys())
        for event in transcript.events(found, key)
    )


def sessions_of(found: Catalogue, case: Path) -> bytes:
    """Every session, in order of keys, with the case's folder called `HOME`."""
    rows = [_undated(row) for row in found.sessions()]
    text = msgspec.json.format(msgspec.json.encode(rows), indent=1).decode()
    return text.replace(str(case / "root"), HOME).encode() + b"\n"


def _undated(row: Session) -> Session:
    """A session without the times of its files: no two checkouts have the same."""
    times = set()
    for one in row.sources:
        with contextlib.suppress(OSError):
            times.add(stamp(Path(row.root, one.path).stat().st_mtime_ns))
    return msgspec.structs.replace(
        row,
        started_at=None if row.started_at in times else row.started_at,
        updated_at=None if row.updated_at in times else row.updated_at,
    )


def golden_problems(case: Path) -> list[str]:
    """How what agenthub says differs from the golden files."""
    out = []
    for name, now in zip(("expected.jsonl", "session.json"), case_golden(case), strict=True):
        path = case / name
        if not path.is_file():
            out.append(f"{path} is missing")
        elif path.read_bytes() != now:
            out.append(f"{path}: {_difference(path.read_bytes(), now)}")
    return out


def _difference(expected: bytes, now: bytes) -> str:
    old, new = expected.splitlines(), now.splitlines()
    for number, (left, right) in enumerate(zip(old, new, strict=False), 1):
        if left != right:
            return f"line {number}: expected {left[:600]!r}, got {right[:600]!r}"
    return f"expected {len(old)} lines, got {len(new)}"


def truth_problems(case: Path) -> list[str]:
    """How what agenthub says differs from the ledger's truth."""
    truth = json.loads((case / "truth.json").read_text(encoding="utf-8"))
    agent = case.parent.name
    found = catalogue(engine(case), host="test")
    out = []
    for native, said in truth["sessions"].items():
        key = key_of(agent, native)
        if key not in found:
            out.append(f"{case}: there is no session {key}")
            continue
        session = found.session(key)
        for name, wanted in said.items():
            got = _fact(found, session, name)
            if got != wanted:
                out.append(f"{case}: {key}: {name}: truth {wanted!r}, got {got!r}")
    # agents' own warm-up runs are no rows; where they are, they are theirs
    natives = [*truth["sessions"], *truth.get("warmups", ())]
    known = {key_of(agent, native) for native in natives}
    extra = [key for key in sorted(found.keys()) if key not in known]
    return out + [f"{case}: {key} is in no truth" for key in extra]


def _fact(found: Catalogue, session: Session, name: str) -> Any:
    """One fact of truth.json, as agenthub has it."""
    stream = list(transcript.events(found, session.key))
    match name:
        case "tokens":
            return msgspec.to_builtins(session.usage)
        case "usage_with_children":
            return msgspec.to_builtins(session.usage_with_children)
        case "answers":
            return [one.text for one in stream if isinstance(one, Answer)]
        case "prompts":
            return [one.text for one in stream if isinstance(one, Prompt) and one.source != "task"]
        case "tools":
            return [
                {"id": one.call, "name": one.name, "args": one.args}
                for one in stream
                if isinstance(one, ToolStart)
            ]
        case "models":
            return found.totals(session.key).models
        case "parent":
            return None if session.parent is None else session.parent.partition(":")[2]
        case _:
            return getattr(session, name)


def cut_problems(observer: Observer, found: Found, lines: Sequence[tuple[int, bytes]]) -> list[str]:
    """Any cut of the lines must give a prefix of the events; state must survive being stored."""
    whole = [encode(one) for one in line_events(observer, found, lines)]
    state = observer.start(found)
    kind = type(state)
    so_far: list[bytes] = []
    number = 0
    for place, (offset, line) in enumerate(lines):
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=kind)
        for event in observer.events(line, offset, state):
            event.n = number
            number += 1
            so_far.append(encode(event))
        if so_far != whole[: len(so_far)]:
            return [f"{found.id}: the events of the first {place + 1} lines are no prefix"]
    return [] if so_far == whole else [f"{found.id}: two passes differ from one"]


def junk_problems(
    observer: Observer, found: Found, lines: Sequence[tuple[int, bytes]]
) -> list[str]:
    """Junk between the lines must cost only itself."""
    whole = [one for one in map(_bare, line_events(observer, found, lines)) if one is not None]
    for place in range(1, len(lines) + 1):
        dirty = [*lines[:place], *((-1, one) for one in JUNK), *lines[place:]]
        got = [
            one
            for event in line_events(observer, found, dirty)
            if event.offset != -1 and (one := _bare(event)) is not None
        ]
        if got != whole:
            return [f"{found.id}: junk after line {place} changes what the other lines say"]
    return []


def _bare(event: Event) -> bytes | None:
    event.n = 0
    return encode(event)
