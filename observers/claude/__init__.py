"""Claude Code: transcripts `projects/<slug>/<session>.jsonl`, live processes `sessions/<pid>.json`.

Measured with 2.1.332; 2.1.197, 2.0.76 and 1.0.128 write subsets of the same records.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hub.adapter import Claim, Found, Head, Names, Read, Root
from hub.events import Event
from observers.claude import aside, lines, places
from observers.claude.state import State

LABEL: Final = "Claude Code"
VERSION: Final = 3


def roots(env: Mapping[str, str], home: str, read: Read, names: Names) -> Sequence[Root]:
    """`$CLAUDE_CONFIG_DIR`, `~/.claude`, and `~/.config/claude` where older tools looked."""
    del read, names
    return places.roots(env, home)


def process(exe: str, argv: Sequence[str]) -> bool:
    """Is this the CLI itself: the native binary, or node with `@anthropic-ai/claude-code`?"""
    return places.process(exe, argv)


def find(relative: str, head: Head) -> Found | None:
    """Transcripts of sessions and sub-agents, their sidecars, the registry; nothing else."""
    return places.find(relative, head)


def start(found: Found) -> State:
    """The state before a file's first line."""
    return State(session=found.id)


def events(line: bytes, offset: int, state: State) -> Iterable[Event]:
    """The events of one line of a transcript."""
    return lines.events(line, offset, state)


def sidecar(name: str, data: bytes) -> Iterable[Event]:
    """The events of a `*.meta.json` or `custom-title.json`; `name` is the path below the root."""
    return aside.sidecar(name, data)


def live(name: str, data: bytes) -> Claim | None:
    """What `sessions/<pid>.json` claims."""
    del name
    return aside.live(data)
