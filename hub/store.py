"""Cursors, folds and responses in and out of the SQLite cache; the only file that knows its tables.

The cache is disposable: whatever is wrong with it, it is rebuilt, and where the disk is full or
read-only the store works in memory and says so once (`notice`). What goes wrong in the middle
raises StoreError after that is done: whoever reads begins again, with what the store is now.
"""

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from hub.cursor import Place
from hub.decode import packed, tame
from hub.errors import StoreError
from hub.fold import Fold, OpenCall, OpenWait, Spot
from hub.model import Usage
from hub.paths import SCHEMA

_TABLES = """
CREATE TABLE IF NOT EXISTS files (
  path BLOB PRIMARY KEY, session TEXT NOT NULL, device INT, inode INT, size INT, mtime INT,
  version INT, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (
  key TEXT PRIMARY KEY, agent TEXT NOT NULL, files TEXT NOT NULL, fold BLOB NOT NULL)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS responses (
  session TEXT NOT NULL, response TEXT NOT NULL, at TEXT, model TEXT, counts BLOB NOT NULL,
  PRIMARY KEY (session, response)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS response_of ON responses (response);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""


class FileRow(Struct):
    """One file as it was read last."""

    path: str
    session: str
    device: int
    inode: int
    size: int
    mtime: int
    """Nanoseconds."""
    version: int
    """VERSION of the observer that read it."""
    body: bytes
    """msgpack of the place, the observer's state, or a sidecar's events."""


class Response(Struct):
    """One response of a model, as one session has it."""

    at: str | None
    model: str | None
    counts: Usage
    raw: dict[str, object] | None = None


_SHAPE: Final = zlib.crc32(
    repr(
        (_TABLES, [(kind.__name__, kind.__annotations__)
                   for kind in (Fold, OpenCall, OpenWait, Spot, Place, Response, Usage)])
    ).encode()
) >> 1  # fmt: skip
"""Of what the rows hold: a cache of another shape is none, whatever its name says."""
_UNSIGNED: Final = 2**64 - 1


class Store:
    """The cache.

    Args:
        path: the database file; None = in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.notice: str | None = None
        self.path = path
        self._base = self._open(path)

    def _open(self, path: Path | None) -> sqlite3.Connection:
        if path is None:
            return self._memory()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._drop_older(path)
            return self._connect(str(path))
        except sqlite3.DatabaseError as error:
            if _is_disk(error):
                return self._without(path, str(error))
            try:
                self._remove(path)
                return self._connect(str(path))
            except (sqlite3.Error, OSError) as again:
                return self._without(path, str(again))
        except OSError as error:
            return self._without(path, error.strerror or str(error))

    def _without(self, path: Path, reason: str) -> sqlite3.Connection:
        self.notice = (
            f"the cache {path} cannot be written ({reason.lower()}): working in memory, every"
            " file is read anew each time. Free some space or set AGENTHUB_HOME."
        )
        self.path = None
        return self._memory()

    def _memory(self) -> sqlite3.Connection:
        return self._connect(":memory:")

    @staticmethod
    def _connect(name: str) -> sqlite3.Connection:
        if name != ":memory:":
            # it holds what was said to agents: for nobody else to read
            with contextlib.suppress(FileExistsError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        base = sqlite3.connect(name, timeout=10.0, isolation_level=None)
        try:
            base.execute("PRAGMA busy_timeout=10000")
            base.execute("PRAGMA journal_mode=WAL")
            base.execute("PRAGMA synchronous=NORMAL")
            there = base.execute("SELECT 1 FROM sqlite_master").fetchone()
            if there and base.execute("PRAGMA user_version").fetchone() != (_SHAPE,):
                raise sqlite3.DatabaseError("a cache of another shape")
            if not there:
                base.executescript(
                    f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version={_SHAPE}; COMMIT;"
                )
        except sqlite3.Error:
            base.close()
            raise
        return base

    @staticmethod
    def _drop_older(path: Path) -> None:
        for old in path.parent.glob("cache-*.db*"):
            if not old.name.startswith(f"cache-{SCHEMA}.db"):
                with contextlib.suppress(OSError):
                    old.unlink()

    @staticmethod
    def _remove(path: Path) -> None:
        for tail in ("", "-wal", "-shm"):
            Path(f"{path}{tail}").unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the database."""
        self._base.close()

    def rebuild(self, reason: object) -> StoreError:
        """Throws the cache away; what is to be raised, so that the reading begins again."""
        with contextlib.suppress(sqlite3.Error):
            self._base.close()
        if self.path is not None:
            with contextlib.suppress(OSError):
                self._remove(self.path)
        self._base = self._open(self.path)
        return StoreError(f"the cache was damaged and is built anew: {reason}")

    def _rows(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._base.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self.rebuild(error) from error

    def files(self) -> dict[str, FileRow]:
        """Every file that was read, by path."""
        rows = self._rows(
            "SELECT path, session, device, inode, size, mtime, version, body FROM files"
        )
        if not all(isinstance(row[-1], bytes) for row in rows):
            raise self.rebuild("a place that is none")
        try:
            return {
                (path := os.fsdecode(row[0])): FileRow(
                    path, row[1], row[2] & _UNSIGNED, row[3] & _UNSIGNED, *row[4:]
                )
                for row in rows
            }
        except TypeError as error:  # SQLite keeps any value in any column
            raise self.rebuild(error) from error

    def folds(self) -> dict[str, tuple[str, bytes]]:
        """(names of its files, msgpack of the fold) of every session, by key."""
        rows = self._rows("SELECT key, files, fold FROM sessions")
        if not all(isinstance(fold, bytes) for _, _, fold in rows):
            raise self.rebuild("a fold that is none")
        return {key: (files, fold) for key, files, fold in rows}

    def responses(self, session: str) -> dict[str, Response]:
        """The responses of a session."""
        rows = self._rows("SELECT response, counts FROM responses WHERE session=?", session)
        return {name: self._response(body) for name, body in rows}

    def all_responses(self) -> Iterator[tuple[str, str, Response]]:
        """(session, response, its figures) of every session, in order of sessions."""
        rows = self._rows("SELECT session, response, counts FROM responses ORDER BY session")
        return ((key, name, self._response(body)) for key, name, body in rows)

    def _response(self, body: bytes) -> Response:
        try:
            return _response.decode(body)
        except (msgspec.MsgspecError, TypeError) as error:
            raise self.rebuild(error) from error

    def fact(self, name: str) -> bytes | None:
        """A value that was kept by name."""
        try:
            rows = self._rows("SELECT value FROM facts WHERE name=?", name)
        except StoreError:
            return None
        return rows[0][0] if rows else None

    def _begin(self) -> None:
        """Starts a transaction at the first write; a process that only reads never locks."""
        if self._base.in_transaction:
            return
        try:
            self._base.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._give_up(error) from error

    def commit(self) -> None:
        """Makes what was written since the last commit true, all of it or nothing."""
        if not self._base.in_transaction:
            return
        try:
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._give_up(error) from error

    def _write(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        self._begin()
        try:
            self._base.executemany(sql, rows)
        except (OverflowError, UnicodeEncodeError):
            # a clock beyond the year 2262, a name that is no text
            self._write(sql, [tuple(tame(one) for one in row) for row in rows])
        except sqlite3.Error as error:
            # the cache is left as the last commit had it: the next process reads those files anew
            raise self._give_up(error) from error

    def _give_up(self, error: sqlite3.Error) -> StoreError:
        """Goes on in memory, with nothing known; what is to be raised."""
        with contextlib.suppress(sqlite3.Error):
            self._base.rollback()
        with contextlib.suppress(sqlite3.Error):
            self._base.close()
        self.notice = f"the cache {self.path} is not written this time: {error}"
        self.path = None
        self._base = self._memory()
        return StoreError(self.notice)

    def put_file(self, row: FileRow) -> None:
        """Keeps a file's place."""
        self._write(
            "INSERT OR REPLACE INTO files VALUES (?,?,?,?,?,?,?,?)",
            [(os.fsencode(row.path), row.session, _signed(row.device), _signed(row.inode),
              row.size, row.mtime, row.version, row.body)],
        )  # fmt: skip

    def put_session(self, key: str, agent: str, files: str, fold: Fold) -> None:
        """Keeps a session's fold."""
        self._write(
            "INSERT OR REPLACE INTO sessions VALUES (?,?,?,?)",
            [(key, agent, files, packed(fold))],
        )

    def put_responses(self, key: str, responses: dict[str, Response]) -> None:
        """Keeps responses that are new or changed."""
        if not responses:
            return
        self._write(
            "INSERT OR REPLACE INTO responses VALUES (?,?,?,?,?)",
            [(key, name, one.at, one.model, packed(one)) for name, one in responses.items()],
        )

    def forget_responses(self, key: str) -> None:
        """Before a session is read anew."""
        self._write("DELETE FROM responses WHERE session=?", [(key,)])

    def drop(self, paths: Iterable[str], keys: Iterable[str]) -> None:
        """Forgets files and sessions that are gone."""
        if gone := [(os.fsencode(one),) for one in paths]:
            self._write("DELETE FROM files WHERE path=?", gone)
        if lost := [(one,) for one in keys]:
            self._write("DELETE FROM sessions WHERE key=?", lost)
            self._write("DELETE FROM responses WHERE session=?", lost)

    def put_fact(self, name: str, value: bytes) -> None:
        """Keeps a value by name."""
        with contextlib.suppress(StoreError):
            self._write("INSERT OR REPLACE INTO facts VALUES (?,?)", [(name, value)])


_response = msgspec.msgpack.Decoder(Response)


def _signed(number: int) -> int:
    """Inode numbers fill 64 bits on some file systems; SQLite's integers have a sign."""
    return number - 2**64 if number >= 2**63 else number


def _is_disk(error: sqlite3.DatabaseError) -> bool:
    words = ("full", "readonly", "unable to open", "disk i/o", "locked")
    return any(word in str(error).lower() for word in words)
