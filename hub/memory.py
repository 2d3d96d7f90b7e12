"""What must outlive the cache, in and out of `state.db`: owners of shared responses, and crashes.

It is migrated forward, never dropped. Where it cannot be written, it is held in memory: the list
goes on, with what this process has seen.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

VERSION = 1
"""`PRAGMA user_version` of the tables below; a migration raises it, after a backup."""
FEW = 400
"""Responses that are looked up one by one."""
_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS owners (
  agent TEXT NOT NULL, response TEXT NOT NULL, session TEXT NOT NULL,
  PRIMARY KEY (agent, response)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS crashes (
  session TEXT PRIMARY KEY, events INT NOT NULL, seen_at REAL NOT NULL, path TEXT NOT NULL,
  text TEXT NOT NULL) WITHOUT ROWID;
COMMIT;
"""


class Memory:
    """state.db; opened only when something is asked or said.

    Args:
        path: the file; None = in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.notice: str | None = None
        self._base: sqlite3.Connection | None = None

    def close(self) -> None:
        """Closes the database, if it was opened."""
        if self._base is not None:
            self._base.close()
            self._base = None

    def owners(self, agent: str, names: Iterable[str]) -> dict[str, str]:
        """Response -> the session that once claimed it, for those that were ever shared."""
        if self._base is None and (self.path is None or not self.path.is_file()):
            return {}
        wanted = set(names)
        if len(wanted) > FEW:
            rows = self._all("SELECT response, session FROM owners WHERE agent=?", (agent,))
        else:
            sql = "SELECT response, session FROM owners WHERE agent=? AND response=?"
            rows = [row for name in sorted(wanted) for row in self._all(sql, (agent, name))]
        return {name: session for name, session in rows if name in wanted}

    def claim(self, agent: str, owners: Mapping[str, str]) -> None:
        """Remembers owners of shared responses."""
        rows = [(agent, name, session) for name, session in owners.items()]
        if rows:
            self._write("INSERT OR REPLACE INTO owners VALUES (?,?,?)", rows)

    def crashes(self) -> dict[str, tuple[int, str, str]]:
        """Session -> (its events then, path of the trace, what the trace said)."""
        if self._base is None and (self.path is None or not self.path.is_file()):
            return {}
        rows = self._all("SELECT session, events, path, text FROM crashes", ())
        return {session: (events, path, text) for session, events, path, text in rows}

    def crashed(self, session: str, events: int, at: float, path: str, text: str) -> None:
        """Remembers that a session's process died in a turn, before the agent tidies up."""
        row = (session, events, at, path, text)
        self._write("INSERT OR REPLACE INTO crashes VALUES (?,?,?,?,?)", [row])

    def _all(self, sql: str, values: tuple[object, ...]) -> list[Any]:
        try:
            return self._open().execute(sql, values).fetchall()
        except sqlite3.Error as error:
            self._aside(error)
            return []

    def _write(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        for _ in range(2):
            base = self._open()
            try:
                base.execute("BEGIN IMMEDIATE")
                base.executemany(sql, rows)
                base.execute("COMMIT")
            except sqlite3.Error as error:
                self._aside(error)
            else:
                return

    def _open(self) -> sqlite3.Connection:
        if self._base is not None:
            return self._base
        try:
            self._base = self._connect(self.path)
        except (sqlite3.Error, OSError) as error:
            self.notice = f"{self.path} cannot be used ({error}): nothing is remembered this time"
            self._base = self._connect(None)
        return self._base

    def _connect(self, path: Path | None) -> sqlite3.Connection:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        base = sqlite3.connect(path or ":memory:", timeout=5.0, isolation_level=None)
        try:
            (version,) = base.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise sqlite3.DatabaseError(f"made by a newer agenthub (version {version})")
            if version < VERSION:
                base.execute("PRAGMA journal_mode=WAL")
                self._migrate(base, path, version)
        except sqlite3.Error:
            base.close()
            raise
        return base

    @staticmethod
    def _migrate(base: sqlite3.Connection, path: Path | None, version: int) -> None:
        if path is not None and version > 0:
            kept = sqlite3.connect(path.with_suffix(f".db.{version}.bak"))
            with contextlib.closing(kept):
                base.backup(kept)  # with what only its log holds yet
        base.executescript(_TABLES)
        base.execute(f"PRAGMA user_version={VERSION}")

    def _aside(self, error: sqlite3.Error) -> None:
        """The disk is full, say: go on in memory; the file stays as it is."""
        self.notice = f"{self.path} is not written this time: {error}"
        old, self._base = self._base, self._connect(None)
        if old is not None:
            with contextlib.suppress(sqlite3.Error):
                old.rollback()
            with contextlib.suppress(sqlite3.Error):
                for table, marks in (("owners", "?,?,?"), ("crashes", "?,?,?,?,?")):
                    rows = old.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
                    sql = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608
                    self._base.executemany(sql, rows)
            with contextlib.suppress(sqlite3.Error):
                old.close()
