"""hub.memory: owners and crashes outlive the cache; what cannot be kept is held for this time."""

import sqlite3
from pathlib import Path

import pytest

from hub import memory
from hub.memory import Memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "state.db"


def kept(path: Path) -> None:
    one = Memory(path)
    one.claim("fake", {"r1": "fake:a", "r2": "fake:b"})
    one.claim("other", {"r1": "other:c"})
    one.crashed("fake:a", 7, 1.5, "a.lock", "nobody holds it")
    assert one.notice is None
    one.close()


CRASH = {"fake:a": (7, "a.lock", "nobody holds it")}


def test_owners_and_crashes_survive(path: Path) -> None:
    kept(path)
    one = Memory(path)
    assert one.owners("fake", ["r1", "r3"]) == {"r1": "fake:a"}
    many = [f"r{n}" for n in range(2 * memory.FEW)]
    assert one.owners("fake", many) == {"r1": "fake:a", "r2": "fake:b"}
    assert one.owners("other", ["r1"]) == {"r1": "other:c"}
    assert one.crashes() == CRASH
    one.claim("fake", {"r1": "fake:z"})
    one.crashed("fake:a", 9, 2.0, "b", "c")
    one.close()
    again = Memory(path)
    assert again.owners("fake", ["r1"]) == {"r1": "fake:z"}
    assert again.crashes() == {"fake:a": (9, "b", "c")}
    again.close()


def test_it_is_made_only_when_something_is_remembered_and_for_its_owner(path: Path) -> None:
    one = Memory(path)
    assert (one.owners("fake", ["r"]), one.crashes()) == ({}, {})
    one.claim("fake", {})
    assert not path.parent.exists()
    kept(path)
    assert {file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == {0}
    one.close()


@pytest.mark.parametrize("damage", ["newer", "junk"])
def test_a_file_that_cannot_be_understood_is_not_touched(path: Path, damage: str) -> None:
    kept(path)
    if damage == "newer":
        base = sqlite3.connect(path)
        base.execute(f"PRAGMA user_version={memory.VERSION + 1}")
        base.close()
    else:
        path.write_bytes(b"no database" * 500)
    before, mode = path.read_bytes(), path.stat().st_mode
    one = Memory(path)
    assert one.owners("fake", ["r1"]) == {}
    assert one.notice is not None
    assert ("newer agenthub" in one.notice) == (damage == "newer")
    one.claim("fake", {"r1": "fake:b"})
    one.crashed("fake:c", 1, 1.0, "p", "t")
    assert one.owners("fake", ["r1"]) == {"r1": "fake:b"}
    assert list(one.crashes()) == ["fake:c"]
    one.close()
    assert (path.read_bytes(), path.stat().st_mode) == (before, mode)
    assert [file.name for file in path.parent.iterdir() if "bak" in file.name] == []


@pytest.mark.parametrize("pragma", ["query_only=1", "max_page_count=1", "locked"])
def test_where_nothing_can_be_written_it_is_held_with_what_was_known(
    path: Path, pragma: str
) -> None:
    kept(path)
    one = Memory(path)
    base = one._open()
    holder = sqlite3.connect(path, isolation_level=None)
    if pragma == "locked":
        base.execute("PRAGMA busy_timeout=1")
        holder.execute("BEGIN IMMEDIATE")
    else:
        base.execute(f"PRAGMA {pragma}")
    more = {f"n{n}": "fake:" + "x" * 900 for n in range(50)}
    one.claim("fake", more)
    assert one.notice is not None
    assert one.owners("fake", ["r1", "n1"]) == {"r1": "fake:a", "n1": more["n1"]}
    assert one.crashes() == CRASH
    one.close()
    holder.close()
    again = Memory(path)
    assert again.owners("fake", ["r1", "n1"]) == {"r1": "fake:a"}
    assert again.notice is None
    again.close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    one = Memory(tmp_path / "file" / "state.db")
    one.claim("fake", {"r": "fake:a"})
    assert one.owners("fake", ["r"]) == {"r": "fake:a"}
    assert one.notice is not None
    one.close()


def test_a_migration_makes_a_backup_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(path)
    older = memory.VERSION
    open_still = Memory(path)  # what it wrote last is only in the log
    open_still.claim("fake", {"late": "fake:l"})
    monkeypatch.setattr(memory, "VERSION", older + 1)
    one = Memory(path)
    assert one.owners("fake", ["r1", "late"]) == {"r1": "fake:a", "late": "fake:l"}
    assert one.notice is None
    one.close()
    open_still.close()
    backup = sqlite3.connect(path.with_suffix(f".db.{older}.bak"))
    assert backup.execute("PRAGMA user_version").fetchone() == (older,)
    assert backup.execute("SELECT session FROM owners WHERE response='late'").fetchall() == [
        ("fake:l",)
    ]
    backup.close()
    base = sqlite3.connect(path)
    assert base.execute("PRAGMA user_version").fetchone() == (older + 1,)
    base.close()
