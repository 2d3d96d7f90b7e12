"""Sessions in; a table that fits the terminal out, as lines of text.

No library draws it: the list is what people call most often, and must cost next to nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hub.keys import bare
from hub.model import Session
from hub.state import seconds
from hub.text import line, pad, width

_COLOURS = {
    "waiting": "1;33", "working": "32", "idle": "36", "failed": "31", "lost": "31",
    "interrupted": "35", "unreadable": "31",
}  # fmt: skip
_GAP = 2
KEY = 44
"""Columns of a key at most: one that is cut cannot be asked for."""
_SGR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    session: Session
    short: str
    """The shortest prefix of the key's id that is its own."""
    depth: int = 0
    folded: int = 0
    """Sub-agents that are not shown."""


def table(rows: Sequence[Row], columns: int, now: float, *, colour: bool) -> list[str]:
    """The table, its header first."""
    wide = columns >= 110
    head = ["STATE", "AGENT", "KEY", "WHERE", "TITLE", "TOKENS", "AGE"]
    if wide:
        head.insert(5, "NOW")
    cells = [_cells(row, now, wide=wide) for row in rows]
    limits = [13, 8, KEY, 16, 0, 7, 10]
    if wide:
        limits.insert(5, 0)
    widths = [
        min(limit, max([width(name), *(width(one[place]) for one in cells)])) if limit else 0
        for place, (name, limit) in enumerate(zip(head, limits, strict=True))
    ]
    left = columns - sum(widths) - _GAP * (len(head) - 1)
    flexible = [place for place, limit in enumerate(limits) if not limit]
    for number, place in enumerate(flexible):
        share = left // (len(flexible) - number)
        widths[place] = max(8, share)
        left -= widths[place]
    right = {head.index("TOKENS"), head.index("AGE")}
    out = [_join(head, widths, right)]
    for row, one in zip(rows, cells, strict=True):
        text = _join(one, widths, right)
        code = _COLOURS.get(word(row.session)) or _COLOURS.get(row.session.state)
        if colour and code is not None:
            first = pad(one[0], widths[0])
            text = f"\x1b[{code}m{first}\x1b[0m{text[len(first) :]}"
        out.append(text)
    return out


def _join(cells: Sequence[str], widths: Sequence[int], right: set[int]) -> str:
    return (" " * _GAP).join(
        pad(cell, widths[place], right=place in right) for place, cell in enumerate(cells)
    ).rstrip()  # fmt: skip


def _cells(row: Row, now: float, *, wide: bool) -> list[str]:
    session = row.session
    mark = "?" if not session.certain else ""
    title = line(session.title or "")
    if row.folded:
        title = f"(+{row.folded}) {title}".rstrip()
    branch = "  " * (row.depth - 1) + "└ " if row.depth else ""
    if not wide and session.state in {"working", "waiting"} and session.activity is not None:
        title = f"{doing(session)} · {title}" if title else doing(session)
    cells = [
        f"{word(session)}{mark}",
        session.agent,
        row.short,
        line(place(session.cwd)),
        branch + title,
        tokens(session),
        age(session.updated_at, now),
    ]
    if wide:
        cells.insert(5, doing(session))
    return cells


def word(session: Session) -> str:
    """The one word for a state: what an ended session came to, what a waiting one waits for."""
    if any(alert.kind == "unreadable" for alert in session.alerts):
        return "unreadable"
    if session.state == "waiting":
        return "waiting"
    if session.state == "ended" or (session.state == "idle" and session.outcome == "failed"):
        return session.outcome or session.state
    return session.state


def doing(session: Session) -> str:
    """What a session does or waits for now, else the last it said."""
    activity = session.activity
    if session.state == "waiting":
        what = session.waiting_for or "something"
        tool = f": {activity.tool} {activity.summary}" if activity and activity.tool else ""
        return line(f"{what}{tool}")
    if activity is None:
        return line(session.last_error or session.last_answer or "")
    if activity.kind == "tool":
        return line(f"{activity.tool}: {activity.summary}")
    return line(f"{activity.kind} {activity.summary}")


def place(cwd: str | None) -> str:
    r"""The last part of a folder, written on whatever system: `C:\Users\x\my app` -> `my app`."""
    if not cwd:
        return ""
    parts = [part for part in cwd.replace("\\", "/").split("/") if part]
    return parts[-1] if parts else cwd


def tokens(session: Session) -> str:
    """Input (cached or not) and output of the session and its sub-agents, in short."""
    usage = session.usage_with_children or session.usage
    if usage is None:
        return "…" if not session.complete else ""
    counts = [usage.input, usage.cache_read, usage.cache_write, usage.output]
    known = [count for count in counts if count is not None]
    return short_count(sum(known)) if known else ""


def short_count(count: int) -> str:
    """`950`, `1.2k`, `3.4M`."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 100 * size else f"{count // size}{unit}"
    return str(count)


def age(at: str | None, now: float) -> str:
    """How long ago, in short; a time in the future is given as its date."""
    then = seconds(at)
    if then is None:
        return ""
    passed = now - then
    if passed < -60:
        return str(at)[:10]  # as written: UTC may put it beyond the year 9999
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if passed >= size:
            return f"{int(passed // size)}{unit}"
    return f"{max(0, int(passed))}s"


def fold_rows(sessions: Sequence[Session], every: Iterable[str], *, tree: bool) -> list[Row]:
    """The table's rows: sub-agents folded into a count, or with `tree` below their parents.

    Args:
        sessions: what is listed, in order.
        every: the key of every session: what a short key must not be mixed up with.
        tree: unfold.
    """
    short = shortest(every)
    listed = {session.key for session in sessions}
    children: dict[str, list[Session]] = {}
    for session in sessions:
        if _is_child(session, listed):
            children.setdefault(str(session.parent), []).append(session)
    out: list[Row] = []
    shown: set[str] = set()
    tops = [session for session in sessions if not _is_child(session, listed)]
    # sessions that are each other's children hang on nothing: they come last, by themselves
    for session in [*tops, *sessions]:
        if session.key in shown:
            continue
        below = _below(session, children, shown)
        if tree:
            out += [Row(one, short[one.key], depth) for one, depth in below]
        else:
            out.append(Row(session, short[session.key], 0, len(below) - 1))
    return out


def _is_child(session: Session, listed: set[str]) -> bool:
    return session.relation == "subagent" and session.parent in listed


def _below(
    top: Session, children: Mapping[str, list[Session]], shown: set[str]
) -> list[tuple[Session, int]]:
    """A session and its sub-agents at every depth, each once, parents first."""
    out: list[tuple[Session, int]] = []
    todo = [(top, 0)]
    while todo:
        session, depth = todo.pop()
        if session.key in shown:
            continue
        shown.add(session.key)
        out.append((session, depth))
        todo += [(child, depth + 1) for child in reversed(children.get(session.key, []))]
    return out


def shortest(keys: Iterable[str]) -> dict[str, str]:
    """The shortest prefix of each key's id that no other id begins with (8 characters at least).

    A sub-agent's id begins with its parent's: it is told by its own last part.
    """
    ids = sorted((bare(key.partition(":")[2]), key) for key in keys)
    out: dict[str, str] = {}
    for spot, (name, key) in enumerate(ids):
        parent, slash, own = name.rpartition("/")
        need = 8
        for other, _ in (*ids[max(0, spot - 1) : spot], *ids[spot + 1 : spot + 2]):
            above, _, theirs = other.rpartition("/")
            if above == parent:
                need = max(need, _common(own, theirs) + 1)
        short = out.get(f"{key[: -len(own) - 1]}", parent[:8]) if slash else ""
        out[key] = f"{short}{slash}{own[:need]}"
    return out


def _common(one: str, two: str) -> int:
    count = 0
    for left, right in zip(one, two, strict=False):
        if left != right:
            break
        count += 1
    return count


def height(text: str, columns: int) -> int:
    """The lines of a terminal that one line of the table takes."""
    return max(1, -(-width(_SGR.sub("", text)) // max(1, columns)))
