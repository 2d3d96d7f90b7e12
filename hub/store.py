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

from hub.cursor import Place
from hub.decode import packed, tame
from hub.errors import StoreError
from hub.fold import Fold, OpenCall, OpenWait, Response, Spot
from hub.model import Usage
from hub.paths import SCHEMA
from hub.rows import TABLES, FileRow, SessionRow, Totals

_SHAPE: Final = zlib.crc32(
    repr(
        (TABLES, [(kind.__name__, kind.__annotations__)
                   for kind in (Fold, OpenCall, OpenWait, Spot, Place, Response, Totals, Usage)])
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
                    f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version={_SHAPE}; COMMIT;"
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
            if isinstance(error, sqlite3.DatabaseError) and _is_disk(error):
                raise self._give_up(error) from error  # another process may be at it
            raise self.rebuild(error) from error

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is of one moment, whatever other processes write."""
        base = self._base
        if base.in_transaction:
            yield
            return
        self._rows("BEGIN")
        try:
            yield
        finally:
            if base is self._base and base.in_transaction:
                base.execute("COMMIT")

    def version(self) -> int:
        """Another number after another process wrote."""
        version: int = self._rows("PRAGMA data_version")[0][0]
        return version

    def files(self) -> dict[str, FileRow]:
        """Every file that was read, by path; without what was kept of its reading."""
        rows = self._rows(f"SELECT {_FILE} FROM files")  # noqa: S608  # our own words
        return {row.path: row for row in self._file_rows(rows)}

    def files_of(self, session: str) -> list[FileRow]:
        """The files of one session."""
        rows = self._rows(f"SELECT {_FILE} FROM files WHERE session=?", session)  # noqa: S608
        return self._file_rows(rows)

    def _file_rows(self, rows: list[Any]) -> list[FileRow]:
        try:
            return [
                FileRow(
                    _path(row[0]), row[1], row[2], _path(row[3]), row[4], row[5],
                    row[6], row[7] & _UNSIGNED, row[8] & _UNSIGNED, *row[9:],
                )
                for row in rows
            ]  # fmt: skip
        except TypeError as error:  # SQLite keeps any value in any column
            raise self.rebuild(error) from error

    def body(self, path: str) -> bytes:
        """What was kept of a file's reading."""
        rows = self._rows("SELECT body FROM files WHERE path=?", _kept_path(path))
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise self.rebuild("a place that is none")
        body: bytes = rows[0][0]
        return body

    def kept(self, key: str, path: str) -> tuple[bytes, bytes, str] | None:
        """A session's fold, what was kept of one of its files, its files' names: of one moment."""
        rows = self._rows(
            "SELECT fold, body, names FROM sessions JOIN files ON session=key"
            " WHERE key=? AND path=?", key, _kept_path(path),
        )  # fmt: skip
        if not rows:
            return None
        fold, body, names = rows[0]
        if not isinstance(fold, bytes) or not isinstance(body, bytes):
            raise self.rebuild("a place that is none")
        return fold, body, names

    def sessions(self) -> dict[str, SessionRow]:
        """Every session, by key; without its fold."""
        rows = self._rows(
            "SELECT key, agent, id, root, names, parent, relation, updated_at, totals FROM sessions"
        )
        try:
            return {
                row[0]: SessionRow(
                    row[0],
                    row[1],
                    row[2],
                    _path(row[3]),
                    row[4],
                    row[5],
                    row[6],
                    row[7],
                    _totals.decode(row[8]),
                )
                for row in rows
            }
        except (TypeError, msgspec.MsgspecError) as error:
            raise self.rebuild(error) from error

    def fold(self, key: str) -> Fold:
        """The fold of a session; an empty one where another process found it gone since."""
        rows = self._rows("SELECT fold FROM sessions WHERE key=?", key)
        try:
            return _fold.decode(rows[0][0]) if rows else Fold()
        except (TypeError, msgspec.MsgspecError) as error:
            raise self.rebuild(error) from error

    def asides(self, key: str) -> list[bytes]:
        """The events that sidecar files have for a session: msgpack lists of JSON lines."""
        rows = self._rows("SELECT events FROM asides WHERE session=? ORDER BY path", key)
        if not all(isinstance(row[0], bytes) for row in rows):
            raise self.rebuild("events that are none")
        return [row[0] for row in rows]

    def aside_sessions(self) -> set[str]:
        """The sessions that any sidecar file speaks of."""
        return {row[0] for row in self._rows("SELECT DISTINCT session FROM asides")}

    def aside_keys(self, path: str) -> set[str]:
        """The sessions that a sidecar file speaks of."""
        rows = self._rows("SELECT session FROM asides WHERE path=?", _kept_path(path))
        return {row[0] for row in rows}

    def responses(self, session: str) -> dict[str, Response]:
        """The responses of a session."""
        rows = self._rows("SELECT response, counts FROM responses WHERE session=?", session)
        return {name: self._response(body) for name, body in rows}

    def sharers(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Response -> the sessions it stands in, for those that stand in more than one.

        Args:
            names: the responses that are asked about; a few are looked up, many are counted.
        """
        if len(names) > FEW:
            rows = self._rows(
                "SELECT response, session FROM responses WHERE response IN (SELECT response FROM"
                " responses WHERE instr(response, ':')=0 GROUP BY response HAVING count(*)>1)"
            )
        else:
            rows = [
                (name, row[0])
                for name in names
                for row in self._rows("SELECT session FROM responses WHERE response=?", name)
            ]
        out: dict[str, list[str]] = {}
        for name, session in rows:
            out.setdefault(name, []).append(session)
        return {name: sorted(keys) for name, keys in out.items() if len(keys) > 1}

    def shared_of(self, session: str) -> set[str]:
        """The responses that this session copied, and those that others copied from it."""
        rows = self._rows(
            "SELECT response FROM copies WHERE session=? UNION SELECT response FROM copies"
            " WHERE owner=?", session, session,
        )  # fmt: skip
        return {row[0] for row in rows}

    def common(self, agent: str) -> set[str]:
        """The responses that stand in more than one session of an agent."""
        rows = self._rows(
            "SELECT response FROM responses WHERE instr(response, ':')=0"
            " AND substr(session, 1, ?)=? GROUP BY response HAVING count(*)>1",
            len(agent) + 1,
            f"{agent}:",
        )
        return {row[0] for row in rows}

    def holders(self, name: str, agent: str) -> list[str]:
        """The sessions of an agent that a response stands in."""
        rows = self._rows("SELECT session FROM responses WHERE response=?", name)
        return sorted(row[0] for row in rows if row[0].startswith(f"{agent}:"))

    def copies(self, session: str) -> dict[str, str]:
        """Response -> owner, for the responses that this session only copied."""
        return dict(self._rows("SELECT response, owner FROM copies WHERE session=?", session))

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

    def facts(self, prefix: str) -> dict[str, bytes]:
        """Values whose names begin so."""
        rows = self._rows("SELECT name, value FROM facts WHERE substr(name, 1, ?)=?",
                          len(prefix), prefix)  # fmt: skip
        return dict(rows)

    def hold(self) -> None:
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
        self.hold()
        try:
            self._base.executemany(sql, rows)
        except (OverflowError, UnicodeEncodeError):
            # a clock beyond the year 2262, a name that is no text
            self._write(sql, [tuple(tame(one) for one in row) for row in rows])
        except sqlite3.Error as error:
            if not (isinstance(error, sqlite3.DatabaseError) and _is_disk(error)):
                raise self.rebuild(error) from error
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

    def put_file(self, row: FileRow, body: bytes) -> None:
        """Keeps a file's place."""
        self._write(
            "INSERT OR REPLACE INTO files VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            [(_kept_path(row.path), row.session, row.agent, _kept_path(row.root), row.relative,
              row.role, row.framing, _signed(row.device), _signed(row.inode), row.size, row.mtime,
              row.version, row.position, row.found, body)],
        )  # fmt: skip

    def put_session(self, row: SessionRow, fold: bytes) -> None:
        """Keeps a session and its fold."""
        self._write(
            "INSERT OR REPLACE INTO sessions VALUES (?,?,?,?,?,?,?,?,?,?)",
            [(row.key, row.agent, row.id, _kept_path(row.root), row.names, row.parent,
              row.relation, row.updated_at, packed(row.totals), fold)],
        )  # fmt: skip

    def put_facts_of(self, row: SessionRow) -> None:
        """Keeps what changed of a session beside its fold: parent and totals."""
        self._write(
            "UPDATE sessions SET parent=?, relation=?, updated_at=?, totals=? WHERE key=?",
            [(row.parent, row.relation, row.updated_at, packed(row.totals), row.key)],
        )

    def put_asides(self, path: str, events: dict[str, bytes]) -> None:
        """Keeps what a sidecar file says, by session."""
        place = _kept_path(path)
        self._write("DELETE FROM asides WHERE path=?", [(place,)])
        if events:
            rows = [(place, key, body) for key, body in events.items()]
            self._write("INSERT INTO asides VALUES (?,?,?)", rows)

    def put_responses(self, key: str, responses: dict[str, Response]) -> None:
        """Keeps responses that are new or changed."""
        if responses:
            self._write(
                "INSERT OR REPLACE INTO responses VALUES (?,?,?)",
                [(key, name, packed(one)) for name, one in responses.items()],
            )

    def put_copies(self, rows: Sequence[tuple[str, str, str | None]]) -> None:
        """(session, response, owner): keeps who owns it, or with None that it is its own."""
        if own := [(key, name) for key, name, owner in rows if owner is None]:
            self._write("DELETE FROM copies WHERE session=? AND response=?", own)
        if copied := [row for row in rows if row[2] is not None]:
            self._write("INSERT OR REPLACE INTO copies VALUES (?,?,?)", copied)

    def forget(self, key: str) -> None:
        """Before a session is read anew."""
        self._write("DELETE FROM files WHERE session=? AND role IN ('log', 'twin')", [(key,)])
        self._write("DELETE FROM responses WHERE session=?", [(key,)])
        self._write("DELETE FROM copies WHERE session=?", [(key,)])

    def drop(self, paths: Iterable[str], keys: Iterable[str]) -> None:
        """Forgets files and sessions that are gone."""
        if gone := [(_kept_path(one),) for one in paths]:
            self._write("DELETE FROM files WHERE path=?", gone)
            self._write("DELETE FROM asides WHERE path=?", gone)
        if lost := [(one,) for one in keys]:
            self._write("DELETE FROM files WHERE session=? AND role IN ('log', 'twin')", lost)
            for table in ("sessions WHERE key", "responses WHERE session", "copies WHERE session"):
                self._write(f"DELETE FROM {table}=?", lost)  # noqa: S608  # our own words

    def put_fact(self, name: str, value: bytes) -> None:
        """Keeps a value by name."""
        with contextlib.suppress(StoreError):
            self._write("INSERT OR REPLACE INTO facts VALUES (?,?)", [(name, value)])


_FILE: Final = (
    "path, session, agent, root, relative, role, framing, device, inode, size, mtime, version,"
    " position, found"
)
FEW: Final = 20_000
"""Responses that are looked up one by one; beyond that one pass over the index is cheaper."""
_response = msgspec.msgpack.Decoder(Response)
_totals = msgspec.msgpack.Decoder(Totals)
_fold = msgspec.msgpack.Decoder(Fold)


def _signed(number: int) -> int:
    """Inode numbers fill 64 bits on some file systems; SQLite's integers have a sign."""
    return number - 2**64 if number >= 2**63 else number


def _is_disk(error: sqlite3.DatabaseError) -> bool:
    words = ("full", "readonly", "unable to open", "disk i/o", "locked")
    return any(word in str(error).lower() for word in words)


def _kept_path(path: str) -> str | bytes:
    """A path as SQLite keeps it: text where it is text, else its bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def _path(kept: str | bytes) -> str:
    return kept if isinstance(kept, str) else os.fsdecode(kept)
