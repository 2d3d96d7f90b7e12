"""One look of the engine: what was found, read and known, as it hands it on."""

from dataclasses import dataclass, field

from hub.adapter import Claim
from hub.discover import File, Tree, Trouble
from hub.events import Event
from hub.reading import SessionRead
from hub.rows import FileRow, SessionRow

WARMUP = "warmup"
"""Note of an agent's own warm-up run: it is no row, and its tokens count with its parent's."""


@dataclass
class Seen:
    """One look at everything."""

    tree: Tree
    rows: dict[str, SessionRow] = field(default_factory=dict)
    """Every session that the store knows now."""
    files: dict[str, list[FileRow]] = field(default_factory=dict)
    """Log files of a session, in order."""
    locks: dict[str, list[FileRow]] = field(default_factory=dict)
    claims: dict[str, list[tuple[File, Claim]]] = field(default_factory=dict)
    """Session -> (registry file, what it says)."""
    asides: dict[str, list[Event]] = field(default_factory=dict)
    """Session -> what sidecars say that the store does not keep yet (quick readings)."""
    quick: dict[str, SessionRead] = field(default_factory=dict)
    """Sessions of which only head and tail were read."""
    changed: set[str] = field(default_factory=set)
    trouble: dict[str, list[Trouble]] = field(default_factory=dict)
    """Session -> what could not be read of it."""
    troubles: list[Trouble] = field(default_factory=list)
    read_bytes: int = 0
