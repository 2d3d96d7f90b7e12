"""hub.store under hub.observe: whatever happens to the cache, the next list is exact."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fakes import World, encoded

from hub import step, store
from hub.errors import StoreError
from hub.fold import Fold, Response
from hub.model import Usage
from hub.paths import SCHEMA
from hub.rows import FileRow, SessionRow, Totals
from hub.store import Store

HUGE = 2**70


class Home(World):
    """Two sessions of an agent that the registry does not know."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, patch)
        self.folder = folder
        for name in ("a", "b"):
            self.say(name, "one", 5)
            self.say(name, "two", 7)

    def say(self, name: str, text: str, tokens: int) -> None:
        path = self.logs / f"{name}.log"
        number = path.read_bytes().count(b"say") if path.exists() else 0
        self.write(path.name, f"say {text}", f"use {name}{number}={tokens}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


def look(home: Home, cache: Store) -> dict[str, tuple[int | None, str | None, int | None]]:
    """Session -> (prompts, the last one, tokens); as a process of its own would see it."""
    return {
        one.key: (one.prompts, one.last_prompt, one.usage and one.usage.output)
        for one in home.look(cache).values()
    }


EXACT = {"fake:a": (2, "two", 12), "fake:b": (2, "two", 12)}
GROWN = {"fake:a": (3, "three", 15), "fake:b": (2, "two", 12)}


def database(home: Home | Path) -> Path:
    return (home if isinstance(home, Path) else home.folder) / f"cache-{SCHEMA}.db"


def test_a_grown_file_costs_its_growth(home: Home) -> None:
    assert look(home, Store(database(home))) == EXACT
    home.say("a", "three", 3)
    cache = Store(database(home))
    engine = home.engine(cache)
    assert engine.step().read_bytes == len(encoded("say three") + encoded("use a2=3"))
    engine.memory.close()
    cache.close()
    assert look(home, Store(database(home))) == GROWN


def test_a_file_that_is_gone_is_forgotten(home: Home) -> None:
    look(home, Store(database(home)))
    (home.logs / "a.log").unlink()
    assert look(home, Store(database(home))) == {"fake:b": EXACT["fake:b"]}
    cache = Store(database(home))
    assert [Path(path).name for path in cache.files()] == ["b.log"]
    assert (list(cache.sessions()), cache.responses("fake:a")) == (["fake:b"], {})
    cache.close()


def test_a_file_that_was_replaced_counts_nothing_of_the_old_one(home: Home) -> None:
    look(home, Store(database(home)))
    (home.logs / "a.log").unlink()
    home.say("a", "new", 1)
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
        sql("UPDATE sessions SET fold=7"), sql("UPDATE sessions SET names=''"),
        sql("UPDATE sessions SET totals=x'c1'"), sql("UPDATE sessions SET totals=7"),
        sql("UPDATE files SET found=x'c1'"), sql("UPDATE files SET found=5"),
        sql("UPDATE files SET role='x'"), sql("UPDATE files SET session='fake:b'"),
        sql("DELETE FROM sessions"), sql("DELETE FROM sessions WHERE id='a'"),
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
    home: Home, damage: Callable[[Path], None], grow: bool
) -> None:
    look(home, Store(database(home)))
    damage(database(home))
    if grow:
        home.say("a", "three", 3)
    exact = GROWN if grow else EXACT
    assert look(home, Store(database(home))) == exact
    again = Store(database(home))
    assert look(home, again) == exact
    assert again.notice is None


def test_a_cache_of_another_shape_is_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
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
    home: Home, make: Callable[[Path], None]
) -> None:
    make(home.folder / "odd")
    cache = Store(home.folder / "odd" / "cache-9.db" if make is Path.touch else home.folder / "odd")
    assert cache.notice is not None
    assert "in memory" in cache.notice
    assert look(home, cache) == EXACT


@pytest.mark.parametrize("pages_left", range(0, 10, 2))
def test_a_disk_that_fills_up_costs_only_the_cache(home: Home, pages_left: int) -> None:
    for number in range(40):
        home.say("a", "x" * 900, 1)
        home.say(f"c{number}", "one", 5)
    look(home, Store(database(home)))
    home.say("a", "y" * 4_000, 1)
    for number in range(40, 80):
        home.say(f"c{number}", "one", 5)
    exact = look(home, Store(None))
    cache = Store(database(home))
    (count,) = cache._base.execute("PRAGMA page_count").fetchone()
    cache._base.execute(f"PRAGMA max_page_count={count + pages_left}")
    assert look(home, cache) == exact
    assert cache.notice is not None
    assert "full" in cache.notice
    assert look(home, Store(database(home))) == exact


def test_a_cache_that_another_process_holds_is_left_to_it(home: Home) -> None:
    look(home, Store(database(home)))
    home.say("a", "three", 3)
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
    home: Home, monkeypatch: pytest.MonkeyPatch, statement: int
) -> None:
    monkeypatch.setattr(step, "BATCH", 1)  # a commit after each session
    look(home, Store(database(home)))
    home.say("a", "three", 3)
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


def test_two_that_index_at_once_both_see_everything(home: Home) -> None:
    one, two = Store(database(home)), Store(database(home))
    first = home.engine(one)
    second = home.engine(two)
    first.step()
    home.say("a", "three", 3)
    second.step()
    home.say("a", "four", 4)
    first.step()
    second.step()
    for engine in (first, second):
        engine.memory.close()
        engine.store.close()
    last = {**EXACT, "fake:a": (4, "four", 19)}
    assert look(home, Store(database(home))) == last


def file_row(path: str, **values: Any) -> FileRow:
    row = FileRow(path, "s", "fake", "/", "a", "log", "lines", 1, 1, 5, 9, 1, 4, b"x")
    return msgspec.structs.replace(row, **values)


def test_numbers_beyond_the_databases_are_kept(tmp_path: Path) -> None:
    cache = Store(database(tmp_path))
    row = file_row(os.fsdecode(b"/a\xff"), device=2**64 - 1, inode=2**63)
    cache.put_file(row, b"y")
    assert cache.files() == {row.path: row}
    assert cache.files_of("s") == [row]
    assert cache.body(row.path) == b"y"
    cache.put_file(file_row("/late", mtime=HUGE), b"x")
    assert cache.files()["/late"].mtime == 2**63 - 1
    fold = Fold(meta={"limits": {"x": HUGE}}, context_tokens=HUGE)
    session = SessionRow("s", "fake", "s", "/", "a", None, None, None, Totals(Usage(HUGE)))
    cache.put_session(session, store.packed(fold))
    assert cache.sessions()["s"].totals.usage.input == 2**63 - 1
    assert cache.fold("s").context_tokens == 2**63 - 1
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
