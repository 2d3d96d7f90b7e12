"""Where Claude Code keeps its files, what each file is, and which processes are the CLI itself."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from hub.adapter import Found, Head, Root

FOLDERS: Final = ("projects", "sessions")

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""A session's file stem: any UUID can be given with `--session-id`."""
_AGENT: Final = re.compile(r"agent-(?P<id>[A-Za-z0-9_-]+)\.(?P<kind>jsonl|meta\.json)")
"""Agent ids are hexadecimal, or words and hexadecimal (`/fork` of 2.1.197)."""
_REGISTRY: Final = re.compile(r"(?:pid-)?[0-9]+\.json")


_WHOLE: Final = 1 << 16
"""A head of so many bytes can be a part of the file."""


def roots(env: Mapping[str, str], home: str) -> list[Root]:
    """`$CLAUDE_CONFIG_DIR` is one path, commas and all; the defaults may hold older sessions."""
    named = env.get("CLAUDE_CONFIG_DIR", "")
    paths = [f"{home}/.claude", f"{home}/.config/claude"]
    if named:
        paths.insert(0, named if named == "/" else named.rstrip("/"))
    return [Root(path, FOLDERS) for path in dict.fromkeys(paths)]


def find(relative: str, head: Head) -> Found | None:
    """What the file at this path below a root is; None = not ours."""
    parts = relative.split("/")
    name = parts[-1]
    if parts[0] == "sessions" and len(parts) == 2 and _REGISTRY.fullmatch(name):
        return Found(name.removesuffix(".json"), "registry", "whole")
    if parts[0] != "projects" or len(parts) < 3:
        return None
    if len(parts) == 3:
        stem = name.removesuffix(".jsonl")
        if stem != name and _UUID.fullmatch(stem):
            return _session(stem, head)
        return _beside(name, head)
    session = parts[2]
    if not _UUID.fullmatch(session):
        return None
    if len(parts) == 4 and name == "custom-title.json":
        return Found(session, "sidecar", "whole")
    agent = _AGENT.fullmatch(name)
    if agent is None or len(parts) < 5 or parts[3] != "subagents":
        return None
    child = f"{session}/{agent['id']}"
    if agent["kind"] == "jsonl":
        return Found(child, parent=session, relation="subagent")
    return Found(child, "sidecar", "whole", parent=session, relation="subagent")


class _Owner(Struct, rename="camel"):
    session_id: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    timestamp: str | None = None


def _owners(head: bytes) -> Iterator[_Owner]:
    """The owner that each record of the file's first part names."""
    for line in head.split(b"\n"):
        try:
            yield msgspec.json.decode(line.lstrip(b"\0"), type=_Owner)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue


def _session(stem: str, head: Head) -> Found | None:
    """A transcript; mostly of the session that it is named after.

    A session that the terminal of 1.0.128 resumed goes on in a file of another name: its records
    keep the session's id, and the first of them has its parent in the older file. A file with
    nothing but summaries of other files' records is no session.
    """
    first = head()
    if not first or stem.encode() in first:
        return Found(stem)
    for record in _owners(first):
        if record.uuid is None:
            continue  # a summary, or bookkeeping of newer versions
        owner = record.session_id
        if owner and owner != stem and record.parent_uuid and _UUID.fullmatch(owner):
            return Found(owner, order=f"{record.timestamp or ''} {stem}")
        return Found(stem)
    return Found(stem) if len(first) >= _WHOLE or b'"summary"' not in first else None


def _beside(name: str, head: Head) -> Found | None:
    """`agent-<7 hex>.jsonl` beside the sessions (2.1.0 and older): the records name the session."""
    agent = _AGENT.fullmatch(name)
    if agent is None or agent["kind"] != "jsonl":
        return None
    for record in _owners(head()):
        session = record.session_id
        if session and _UUID.fullmatch(session):
            return Found(f"{session}/{agent['id']}", parent=session, relation="subagent")
    return None


_NODE: Final = frozenset({"node", "nodejs", "bun"})
_SCRIPT: Final = re.compile(r"(?:^|/)@anthropic-ai/claude-code/cli\.m?js$|(?:^|/)bin/claude$")
_VERSION: Final = re.compile(r"/claude/versions/[^/]+$")
"""The native installer keeps the binary under its version."""
_OTHER: Final = frozenset({
    "agents", "attach", "auth", "auto-mode", "config", "daemon", "doctor", "gateway", "install",
    "logs", "mcp", "migrate-installer", "plugin", "plugins", "project", "purge", "remote-control",
    "respawn", "rm", "setup-token", "stop", "ultrareview", "update", "upgrade",
})  # fmt: skip
"""Subcommands that run no session in this process."""
_PROBES: Final = frozenset({
    "-h", "--help", "-v", "--version", "--claude-in-chrome-mcp", "--chrome-native-host",
    "--computer-use-mcp", "--ripgrep", "--daemon-worker", "--bg-spare", "--bg-pty-host",
    "--update-loop",
})  # fmt: skip
"""Options of probes and helpers; `-p /usage` and the like are sessions of their own."""


def process(exe: str, argv: Sequence[str]) -> bool:
    """Is this the CLI itself? A wrapper has another `exe`, an embedded tool another `argv[0]`."""
    if not argv:
        return False
    name = _base(exe.removesuffix(" (deleted)"))
    called = _base(argv[0])
    rest = list(argv[1:])
    if name in _NODE:
        if called != "claude":  # else it has set its title, and the arguments are gone
            while rest and rest[0].startswith("-"):
                del rest[0]
            if not rest or not _SCRIPT.search(rest[0]):
                return False
            del rest[0]
    elif name in {"claude", "claude.exe"} or _VERSION.search(exe):
        if called not in {"claude", "claude.exe", name}:
            return False  # the binary serves as rg, ugrep and bfs under those names
    else:
        return False
    if any(word in _PROBES for word in rest):
        return False
    return not (rest and rest[0] in _OTHER)


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
