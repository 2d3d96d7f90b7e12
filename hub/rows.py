"""What the cache keeps: its tables, and their rows as structs."""

from msgspec import Struct

from hub.fold import Counts
from hub.model import Usage

TABLES = """
CREATE TABLE IF NOT EXISTS files (
  path BLOB PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, root BLOB NOT NULL,
  relative TEXT NOT NULL, role TEXT NOT NULL, framing TEXT NOT NULL, device INT, inode INT,
  size INT, mtime INT, version INT, position INT, found BLOB NOT NULL, body BLOB NOT NULL)
  WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS file_of ON files (session);
CREATE TABLE IF NOT EXISTS sessions (
  key TEXT PRIMARY KEY, agent TEXT NOT NULL, id TEXT NOT NULL, root BLOB NOT NULL,
  names TEXT NOT NULL, parent TEXT, relation TEXT, updated_at TEXT, totals BLOB NOT NULL,
  fold BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asides (
  path BLOB NOT NULL, session TEXT NOT NULL, events BLOB NOT NULL, PRIMARY KEY (path, session))
  WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS aside_of ON asides (session);
CREATE TABLE IF NOT EXISTS responses (
  session TEXT NOT NULL, response TEXT NOT NULL, counts BLOB NOT NULL,
  PRIMARY KEY (session, response)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS response_of ON responses (response);
CREATE TABLE IF NOT EXISTS copies (
  session TEXT NOT NULL, response TEXT NOT NULL, owner TEXT NOT NULL,
  PRIMARY KEY (session, response)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS copy_of ON copies (owner);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""


class FileRow(Struct, frozen=True):
    """One file as it was read last."""

    path: str
    session: str
    """Key; of a registry or many-session sidecar, "" ."""
    agent: str
    root: str
    relative: str
    role: str
    """As the observer says, or `twin`: a log that is not read, another one replaces it."""
    framing: str
    device: int
    inode: int
    size: int
    mtime: int
    """Nanoseconds."""
    version: int
    """VERSION of the observer that read it."""
    position: int
    """Byte of the file that was reached."""
    found: bytes
    """msgpack of what the observer found it to be."""


class Totals(Struct):
    """What a session owns of its responses."""

    usage: Usage = Usage()
    cost: float | None = None
    """Null where a response has no price."""
    currency: str = "USD"
    basis: str | None = None
    responses: int = 0
    copied: dict[str, int] = {}
    """Owner -> responses that were copied from it."""
    inherited: Counts = (0, 0, 0, 0, 0)
    """Counts of the copied part, as in `Response.upto`."""
    own_at: str | None = None
    """First own record of a session that begins with a copy."""
    models: list[str] = []


class SessionRow(Struct, frozen=True):
    """One session as its files said it last."""

    key: str
    agent: str
    id: str
    root: str
    names: str
    """Its log files in order, a line each."""
    parent: str | None
    relation: str | None
    updated_at: str | None
    totals: Totals
