"""The two reports of `agenthub verify` in; lines for people out, 80 cells wide."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hub.text import line, pad, width

WIDE = 80
_SHOWN = 5
_SPACE = "\x1f"
"""A space at which no line is broken."""


def fidelity(found: Mapping[str, Any]) -> Iterator[str]:
    """The report over this machine's sessions."""
    for name, agent in found["agents"].items():
        versions = agent["versions"]
        count = sum(version["sessions"] for version in versions.values())
        yield f"{agent['label']} ({name}): {_many(count, 'session')}"
        if not versions:
            for root in agent["looked_in"]:
                yield f"  looked in {root['path']}{'' if root['exists'] else '  (not there)'}"
        for version, one in versions.items():
            yield from _version(version, one)
        for one in agent["unreadable"]:
            yield from _named("not readable", [f"{one['path']}: {one['reason']}"], 2)
        yield ""
    yield from _verdict(found)


def _version(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    subs = f", {_many(one['sub_agents'], 'sub-agent')} among them" if one["sub_agents"] else ""
    yield f"  version {name}: {_many(one['sessions'], 'session')}{subs}"
    fields = one["fields"]
    always = [field for field, value in fields.items() if value["count"] == one["sessions"]]
    never = [field for field, value in fields.items() if not value["count"]]
    partly = [
        f"{field} {value['count']} ({value['share']:.0%})"
        for field, value in fields.items()
        if 0 < value["count"] < one["sessions"]
    ]
    yield from _named("in all", always)
    yield from _named("in some", partly)
    yield from _named("in none", never)
    yield from _named("not understood", _counted(one["not_understood"]))
    yield from _named("other notes", _counted(one["notes"]))
    empty = one["no_turn"]
    more = [f"and {len(empty) - _SHOWN} more"] if len(empty) > _SHOWN else []
    yield from _named("no turn in", [*empty[:_SHOWN], *more])


def _verdict(found: Mapping[str, Any]) -> Iterator[str]:
    if found["ok"]:
        some = any(agent["versions"] for agent in found["agents"].values())
        yield "Every record is understood." if some else "No sessions: nothing to verify."
        return
    for name, agent in found["agents"].items():
        for version, one in agent["versions"].items():
            if one["not_understood"]:
                kinds = _joined(_counted(one["not_understood"]))
                yield from _wrap(f"NOT UNDERSTOOD of {name}, version {version}: {kinds}", "  ")
        if agent["unreadable"]:
            yield f"NOT READABLE of {name}: {_many(len(agent['unreadable']), 'file or folder')}"


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{line(name)} x{count}" for name, count in counts.items()]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _named(title: str, words: Sequence[str], indent: int = 4) -> Iterator[str]:
    if words:
        first = f"{' ' * indent}{title:<15} "
        yield from _wrap(first + _joined(words), " " * len(first))


def _joined(words: Iterable[str]) -> str:
    """A list whose items are not broken at the end of a line."""
    return ", ".join(one.replace(" ", _SPACE) if width(one) < WIDE // 2 else one for one in words)


def _wrap(text: str, indent: str) -> list[str]:
    wrapped = textwrap.wrap(
        text, WIDE, subsequent_indent=indent, break_long_words=True, break_on_hyphens=False
    )
    return [one.replace(_SPACE, " ") for one in wrapped]


def matrix(found: Mapping[str, Any]) -> Iterator[str]:
    """The matrix of scenarios and agents, and what differs below it."""
    rows: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in found["scenarios"]:
        rows.setdefault(row["scenario"], {})[row["agent"]] = row
    agents = [name for name, one in found["agents"].items() if one["executable"]]
    if rows:
        yield from _table(rows, agents)
        yield ""
    for name, one in found["agents"].items():
        yield _summary(name, one, [row for row in found["scenarios"] if row["agent"] == name])
    bad = [row for row in found["scenarios"] if not row["ok"]]
    yield from _details(bad)
    yield ""
    yield _end(found, len(bad))


def _details(bad: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What differs; scenarios with the same differences are told together."""
    same: dict[tuple[str, tuple[str, ...]], list[Mapping[str, Any]]] = {}
    for row in bad:
        told = [f"  {line(row['problem'])}"] if row["problem"] else []
        for name in () if row["problem"] else row["differs"]:
            wanted, seen = repr(row["expected"][name]), repr(row["seen"].get(name))
            told.append(f"  {name}: expected {line(wanted)}, seen {line(seen)}")
        same.setdefault((row["agent"], tuple(told)), []).append(row)
    for (agent, differences), rows in same.items():
        yield ""
        yield from _wrap(f"{agent}: {_joined(row['scenario'] for row in rows)}:", "  ")
        for one in differences:
            yield from _wrap(one, "    ")
        if rows[0]["said"] and not rows[0]["problem"]:
            yield from _wrap(f"  the program: {line(rows[0]['said'])}", "    ")


def _end(found: Mapping[str, Any], bad: int) -> str:
    if not found["scenarios"]:
        return "No CLI is installed here: nothing was tried."
    told = f"{bad} of {len(found['scenarios'])} differ" if bad else "Everything is as expected"
    return f"{told}; {found['seconds']:.0f} s."


def _table(rows: Mapping[str, Mapping[str, Mapping[str, Any]]], agents: list[str]) -> Iterator[str]:
    cells = [["SCENARIO", "EXPECTED", *(name.upper() for name in agents)]]
    notes = []
    for scenario, by_agent in rows.items():
        wanted = {name: _expectation(row["expected"]) for name, row in by_agent.items()}
        words = list(dict.fromkeys(one for one in wanted.values() if one))
        if len(words) > 1:
            told = ", ".join(f"{one} {wanted[one]}" for one in agents if wanted[one])
            notes += _wrap(f"{scenario} is to end so: {told}.", "  ")
        cells.append([scenario, " or ".join(words), *(_cell(by_agent[name]) for name in agents)])
    widths = [max(width(one[place]) for one in cells) for place in range(2)]
    left = (WIDE - sum(widths) - 2 * (1 + len(agents))) // max(len(agents), 1)
    widths += [
        max(4, min(left, max(width(one[2 + place]) for one in cells)))
        for place in range(len(agents))
    ]
    for one in cells:
        yield "  ".join(pad(*pair) for pair in zip(one, widths, strict=True)).rstrip()
    yield from notes


def _cell(row: Mapping[str, Any]) -> str:
    if row["ok"]:
        return "ok"
    if row["problem"]:
        return "FAILED"
    seen, differs = row["seen"], row["differs"]
    if {"state", "outcome", "activity"} & set(differs):
        return _seen(seen)
    return ", ".join(differs)


def _seen(seen: Mapping[str, Any]) -> str:
    """The word for a state that is not the expected one."""
    if not seen.get("sessions"):
        return "NO SESSION"
    words = [seen.get("outcome") or seen.get("state") or "unknown"]
    if seen.get("activity"):
        words.append(seen["activity"])
    return ", ".join(words).upper()


def _expectation(expected: Mapping[str, Any]) -> str:
    """`completed, 3 tools`: the outcome, and what tells this scenario from others."""
    if not expected:
        return ""
    if expected["live"]:
        return f"{expected['state']}, {expected['activity']}"
    counts: Iterable[tuple[str, str, int]] = (
        ("children", "child", 0), ("turns", "turn", 1), ("errors", "error", 0),
        ("tool_calls", "tool", 0),
    )  # fmt: skip
    for name, what, usual in counts:
        if expected["outcome"] == "completed" and expected.get(name, 0) > usual:
            return f"completed, {_many(expected[name], what)}"
    return str(expected["outcome"])


def _summary(name: str, one: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    if one["problem"]:
        return f"{name}: {line(one['problem'])}"
    if not one["executable"]:
        return (
            f"{name}: not installed ([agents.{name}] executable, AGENTHUB_{name.upper()}_BIN, PATH)"
        )
    good = sum(row["ok"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    head = f"{name} {one['version'] or '(says no version)'}: {good} of {len(rows)} ok,"
    head += f" {seconds:.0f} s, "
    path = line(one["executable"])
    room = WIDE - width(head)
    return head + (path if width(path) <= room else "…" + path[-(room - 1) :])
