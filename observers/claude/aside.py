"""The small files beside transcripts: `*.meta.json`, `custom-title.json`, `sessions/<pid>.json`."""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from hub.adapter import Claim
from hub.events import Event, Meta, Title
from observers.claude.lines import AI, CUSTOM
from observers.claude.state import moment

Status: TypeAlias = Literal["working", "waiting", "idle"]
Waiting: TypeAlias = Literal["permission", "question", "plan", "dialog", "other"]

_CHILD: Final = re.compile(
    r"(?:^|/)(?P<session>[^/]+)/subagents/(?:.*/)?agent-(?P<id>[^/]+)\.meta\.json$"
)
_OWNER: Final = re.compile(r"(?:^|/)(?P<session>[^/]+)/custom-title\.json$")
_STATUS: Final[dict[str, Status]] = {
    "busy": "working",
    "waiting": "waiting",
    "idle": "idle",
    "shell": "idle",  # a background shell runs, the model does not
}
_WAITING: Final[dict[str, Waiting]] = {
    "permission prompt": "permission",
    "sandbox request": "permission",
    "input needed": "question",
    "dialog open": "dialog",
    "plan approval": "plan",
}


def sidecar(name: str, data: bytes) -> Iterator[Event]:
    """The events of a sidecar: what a sub-agent is (2.1.80 and newer), a title (2.1.332)."""
    known = _object(data)
    child, owner = _CHILD.search(name), _OWNER.search(name)
    if known is None or (child is None and owner is None):
        return
    if owner is not None:
        title = _text(known, "customTitle")
        if title:
            by: Literal["user", "agent"] = "user" if known.get("by") == "user" else "agent"
            at = moment(_text(known, "at"))
            yield Title(session=owner["session"], at=at, title=title, rank=CUSTOM, source=by)
        return
    if child is not None:
        session, call = f"{child['session']}/{child['id']}", _text(known, "toolUseId")
        above = _text(known, "parentAgentId")
        parent = f"{child['session']}/{above}" if above else child["session"]
        meta = Meta(session=session, parent=parent, relation="subagent")
        if call:
            meta.call = call
        yield meta
        title = _text(known, "description")
        if title:
            yield Title(session=session, title=title, rank=AI)


def live(data: bytes) -> Claim | None:
    """What a registry file claims (2.1.80 and newer; `status` with `-p` since 2.1.332)."""
    known = _object(data)
    if known is None:
        return None
    session = _text(known, "sessionId") or _text(known, "session_id")
    pid = known.get("pid")
    if not session or not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return None
    start = known.get("procStart")
    status, why = _text(known, "status"), _text(known, "waitingFor")
    named = _text(known, "nameSource") in {"user", "auto"}
    state = _STATUS.get(status or "")
    return Claim(
        session=session,
        pid=pid,
        start=str(start) if isinstance(start, str | int) and start != "" else None,
        domain=_text(known, "pidDomain"),
        status=state,
        waiting_for=_reason(why) if state == "waiting" else None,
        cwd=_text(known, "cwd"),
        name=_text(known, "name") if named else None,
        text=_words(status, why, _text(known, "entrypoint"), _text(known, "kind")),
    )


def _reason(why: str | None) -> Waiting:
    if why in _WAITING:
        return _WAITING[why]
    return "plan" if why is not None and why.startswith("plan") else "other"


def _words(status: str | None, why: str | None, entrypoint: str | None, kind: str | None) -> str:
    said = {"status": status, "waitingFor": why, "entrypoint": entrypoint, "kind": kind}
    return ", ".join(f"{key}: {value}" for key, value in said.items() if value)


def _object(data: bytes) -> dict[str, Any] | None:
    """The file as an object; None while it is half written."""
    try:
        return msgspec.json.decode(data.strip(b"\0 \r\n\t"), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _text(known: dict[str, Any], key: str) -> str | None:
    value = known.get(key)
    return value if isinstance(value, str) and value else None
