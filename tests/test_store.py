"""hub.store under hub.observe: whatever happens to the cache, the next list is exact."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct

from hub import observe, registry, store
from hub.adapter import Found, Head, Root
from hub.decode import Decoder
from hub.errors import StoreError
from hub.events import Event, Prompt, TurnStart, UsageEvent
from hub.fold import Fold
from hub.liveness import Fixed
from hub.model import Usage
from hub.observe import Engine
from hub.paths import SCHEMA
from hub.store import FileRow, Response, Store

HUGE = 2**70


class Line(Struct):
    say: str
    tokens: int = 0


class Lines(Struct):
    count: int = 0


read = Decoder(Line)


def events(line: bytes, offset: int, state: Lines) -> Iterator[Event]:
    record, _ = read(line)
    if record is None:
        return
    state.count += 1
    yield TurnStart(offset=offset)
    yield Prompt(text=record.say, offset=offset)
    yield UsageEvent(response=f"r{state.count}", model=None, counts=Usage(output=record.tokens))


def find(relative: str, head: Head) -> Found | None:
    return Found(relative.removesuffix(".log")) if relative.endswith(".log") else None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions of an agent that the registry does not know."""
    fake: Any = SimpleNamespace(
        VERSION=1, find=find, events=events, start=lambda _: Lines(),
        roots=lambda *_: [Root(str(tmp_path / "logs"))], sidecar=lambda *_: (),
    )  # fmt: skip
    monkeypatch.setattr(registry, "observer", lambda _: fake)
    (tmp_path / "logs").mkdir()
    for name in ("a", "b"):
        say(tmp_path, name, "one", 5)
        say(tmp_path, name, "two", 7)
    return tmp_path


def say(home: Path, name: str, text: str, tokens: int) -> None:
    with (home / "logs" / f"{name}.log").open("a") as stream:
        stream.write(f'{{"say":"{text}","tokens":{tokens}}}\n')


def look(home: Path, cache: Store) -> dict[str, tuple[int, str | None, int]]:
    """Session -> (prompts, the last one, tokens); as a process of its own would see it."""
    engine = Engine({}, str(home), Fixed(0.0), cache, agents=["fake"])
    try:
        seen = engine.step()
    finally:
        cache.close()
    return {
        key: (
            one.fold.prompts,
            one.fold.last_prompt,
            sum(response.counts.output or 0 for response in seen.responses.get(key, {}).values()),
        )
        for key, one in seen.sessions.items()
    }


EXACT = {"fake:a": (2, "two", 12), "fake:b": (2, "two", 12)}
GROWN = {"fake:a": (3, "three", 15), "fake:b": (2, "two", 12)}


def database(home: Path) -> Path:
    return home / f"cache-{SCHEMA}.db"


def test_a_grown_file_costs_its_growth(home: Path) -> None:
    assert look(home, Store(database(home))) == EXACT
    say(home, "a", "three", 3)
    cache = Store(database(home))
    engine = Engine({}, str(home), Fixed(0.0), cache, agents=["fake"])
    assert engine.step().read_bytes == len('{"say":"three","tokens":3}\n')
    cache.close()
    assert look(home, Store(database(home))) == GROWN


def test_a_file_that_is_gone_is_forgotten(home: Path) -> None:
    look(home, Store(database(home)))
    (home / "logs" / "a.log").unlink()
    assert look(home, Store(database(home))) == {"fake:b": EXACT["fake:b"]}
    cache = Store(database(home))
    assert [Path(path).name for path in cache.files()] == ["b.log"]
    assert (list(cache.folds()), cache.responses("fake:a")) == (["fake:b"], {})
    cache.close()


def test_a_file_that_was_replaced_counts_nothing_of_the_old_one(home: Path) -> None:
    look(home, Store(database(home)))
    (home / "logs" / "a.log").unlink()
    say(home, "a", "new", 1)
    assert look(home, Store(database(home))) == {**EXACT, "fake:a": (1, "new", 1)}


def sql(*statements: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        base = sqlite3.connect(path)
        for statement in statements:
            base.execute(statement)
        base.commit()
        base.close()

    return damage


def junk(data: bytes) -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(data), None)[1]


def pages(path: Path) -> None:
    junk(path.read_bytes()[:4096] + b"\xa5" * 40_000)(path)


@pytest.mark.parametrize(
    "damage",
    [
        junk(b"x" * 5_000), junk(b""), junk(b"SQLite format 3\0"), pages,
        sql("UPDATE sessions SET fold=x'c1'"), sql("UPDATE sessions SET fold=x''"),
        sql("UPDATE sessions SET fold=x'81a57475726e73a178'"),  # turns is text
        sql("UPDATE sessions SET fold=7"), sql("UPDATE sessions SET files=''"),
        sql("UPDATE files SET body=x'c1'"), sql("UPDATE files SET body=x'c1', size=1"),
        sql("UPDATE files SET body=3"), sql("UPDATE files SET inode='x'"),
        sql("UPDATE files SET version=0"), sql("UPDATE files SET mtime=1, device=1"),
        sql("UPDATE responses SET counts=x'c1'"), sql("UPDATE responses SET counts=1.5"),
        sql("DROP TABLE responses"), sql("DROP TABLE facts"), sql("PRAGMA user_version=7"),
        sql("ALTER TABLE files DROP COLUMN mtime"), sql("DELETE FROM files"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("grow", [False, True])
def test_a_damaged_cache_is_read_anew(
    home: Path, damage: Callable[[Path], None], grow: bool
) -> None:
    look(home, Store(database(home)))
    damage(database(home))
    if grow:
        say(home, "a", "three", 3)
    exact = GROWN if grow else EXACT
    assert look(home, Store(database(home))) == exact
    again = Store(database(home))
    assert look(home, again) == exact
    assert again.notice is None


def test_a_cache_of_another_shape_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look(home, Store(database(home)))
    monkeypatch.setattr(store, "_SHAPE", store._SHAPE ^ 1)
    cache = Store(database(home))
    assert (cache.files(), cache.notice) == ({}, None)
    cache.close()


def test_older_caches_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("cache-0.db", "cache-0.db-wal", "state.db", "config.toml"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "cache-00.db").mkdir()
    cache = Store(database(tmp_path))
    cache.close()
    assert cache.notice is None
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"state.db", "config.toml", "cache-00.db", database(tmp_path).name}


def test_the_cache_is_for_its_owner_only(tmp_path: Path) -> None:
    cache = Store(database(tmp_path))
    cache.put_fact("a", b"b")
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}
    cache.close()


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, os.mkfifo])
def test_where_nothing_can_be_kept_it_works_in_memory(
    home: Path, make: Callable[[Path], None]
) -> None:
    make(home / "odd")
    cache = Store(home / "odd" / "cache-9.db" if make is Path.touch else home / "odd")
    assert cache.notice is not None
    assert "in memory" in cache.notice
    assert look(home, cache) == EXACT


@pytest.mark.parametrize("pages_left", range(0, 10, 2))
def test_a_disk_that_fills_up_costs_only_the_cache(home: Path, pages_left: int) -> None:
    for number in range(40):
        say(home, "a", "x" * 900, 1)
        say(home, f"c{number}", "one", 5)
    look(home, Store(database(home)))
    say(home, "a", "y" * 4_000, 1)
    for number in range(40, 80):
        say(home, f"c{number}", "one", 5)
    exact = look(home, Store(None))
    cache = Store(database(home))
    (count,) = cache._base.execute("PRAGMA page_count").fetchone()
    cache._base.execute(f"PRAGMA max_page_count={count + pages_left}")
    assert look(home, cache) == exact
    assert cache.notice is not None
    assert "full" in cache.notice
    assert look(home, Store(database(home))) == exact


def test_a_cache_that_another_process_holds_is_left_to_it(home: Path) -> None:
    look(home, Store(database(home)))
    say(home, "a", "three", 3)
    other = sqlite3.connect(database(home), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    cache = Store(database(home))
    cache._base.execute("PRAGMA busy_timeout=1")
    assert look(home, cache) == GROWN
    assert cache.notice is not None
    other.execute("ROLLBACK")
    other.close()
    assert look(home, Store(database(home))) == GROWN


class Killed(BaseException):
    """What kill -9 leaves behind: everything up to some statement, and no clean end."""


@pytest.mark.parametrize("statement", range(14))
def test_a_kill_at_any_write_leaves_an_exact_list(
    home: Path, monkeypatch: pytest.MonkeyPatch, statement: int
) -> None:
    monkeypatch.setattr(observe, "BATCH", 1)  # a commit after each session
    look(home, Store(database(home)))
    say(home, "a", "three", 3)
    left = [statement]

    def dying(self: Store, *args: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        whole(self, *args)

    whole = Store._write
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_write", dying)
        with contextlib.suppress(Killed):
            look(home, Store(database(home)))
    assert look(home, Store(database(home))) == GROWN


def test_two_that_index_at_once_both_see_everything(home: Path) -> None:
    one, two = Store(database(home)), Store(database(home))
    first = Engine({}, str(home), Fixed(0.0), one, agents=["fake"])
    second = Engine({}, str(home), Fixed(0.0), two, agents=["fake"])
    first.step()
    say(home, "a", "three", 3)
    second.step()
    say(home, "a", "four", 4)
    first.step()
    second.step()
    one.close()
    two.close()
    last = {**EXACT, "fake:a": (4, "four", 19)}
    assert look(home, Store(database(home))) == last


def test_numbers_beyond_the_databases_are_kept(tmp_path: Path) -> None:
    cache = Store(database(tmp_path))
    row = FileRow(os.fsdecode(b"/a\xff"), "s", 2**64 - 1, 2**63, 5, 9, 1, b"x")
    cache.put_file(row)
    assert cache.files() == {row.path: row}
    late = FileRow("/late", "s", 1, 1, 5, HUGE, 1, b"x")
    cache.put_file(late)
    assert cache.files()["/late"].mtime == 2**63 - 1
    fold = Fold(meta={"limits": {"x": HUGE}}, context_tokens=HUGE)
    cache.put_session("s", "fake", "names", fold)
    cache.put_responses("s", {"r\ud800": Response(None, None, Usage(HUGE), {"raw": HUGE})})
    ((name, kept),) = cache.responses("s").items()
    assert (name, kept.counts.input) == ("r\ufffd", 2**63 - 1)
    cache.commit()
    cache.close()


def test_an_error_says_that_the_reading_begins_again(tmp_path: Path) -> None:
    cache = Store(database(tmp_path))
    cache._base.execute("DROP TABLE responses")
    with pytest.raises(StoreError, match="built anew"):
        cache.responses("s")
    assert cache.responses("s") == {}
    cache._base.execute("DROP TABLE facts")
    assert cache.fact("a") is None
    cache.close()
