"""Multiplies the recorded cases into a HOME of thousands of sessions, with its truth.

python tests/bench/corpus.py OUT [--scale 0.01] [--seed 1]

Writes OUT/home and OUT/truth.json. The same seed over the same fixtures gives the same bytes.
"""

import argparse
import json
import os
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recorded import ENDS, Counts, Unit, shape, total, units
from session import Made, Pools, Session

END = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() * 1000)
DAYS = 180
MINUTE = 60_000
LARGEST = 20_000_000


@dataclass(frozen=True)
class Mix:
    """How many sessions of an agent, and of what kind."""

    sessions: int
    every: int
    """One session in so many has a sub-agent."""
    median: int
    """Bytes of half of the sessions are fewer."""
    forks: int = 0


MIXES = {
    "claude": Mix(2_000, 2, 205_000, forks=46),
    "codex": Mix(870, 6, 250_000),
    "dsh": Mix(440, 7, 220_000),
}
OTHER = Mix(100, 5, 100_000)
TORN, KILLED, FAILED, STOPPED = 0.04, 0.08, 0.05, 0.05


class Maker:
    """Makes the sessions of one agent; each depends only on seed and number."""

    def __init__(self, agent: str, seed: int, scale: float, pools: Pools) -> None:
        self.agent, self.seed, self.pools = agent, seed, pools
        mix = MIXES.get(agent, OTHER)
        self.mix = mix
        self.forks = max(1, round(mix.forks * scale)) if mix.forks else 0
        self.count = max(self.forks + 2, round(mix.sessions * scale))
        self.module = shape(agent)
        self.units = units(agent)
        self.done = [unit for unit in self.units if unit.case not in ENDS]

    def rng(self, *what: object) -> random.Random:
        return random.Random("/".join(map(str, (self.seed, self.agent, *what))))  # noqa: S311

    def session(self, number: int, stop: int | None = None) -> Session:
        """One session; `stop` = only its first units, for a fork of it."""
        rng = self.rng(number)
        end = self._end(rng)
        child = number % self.mix.every == 0
        helpers = [unit for unit in self.done if unit.children]
        group = rng.choice(helpers if child and helpers else [end] if end else self.done).group
        if end and end.group != group:
            end = None
        pool = [one for one in self.done if one.group == group and not one.children]
        size = int(min(LARGEST, self.mix.median * rng.lognormvariate(0, 1.15)))
        if number % 400 == 207:
            size = rng.randint(LARGEST // 2, LARGEST)
        at = END - int(rng.uniform(0.1, DAYS) * 1440) * MINUTE
        out = Session(self.module, self.pools, rng, _cwd(rng), at)
        out.begin(rng.choice([one for one in pool if one.head is not None]))
        pause = min(3 * MINUTE, (END - at) // (4 * (size // 8_000 + 4)))
        if child and helpers:
            out.add(rng.choice(helpers), gap=pause)
        while out.size < size and len(out.units) != stop:
            out.add(rng.choice(pool), gap=int(rng.expovariate(1 / pause)))
        if end and stop is None:
            out.add(end, gap=pause)
        if stop is None and rng.random() < TORN:
            out.torn(rng.choice(pool))
        return out

    def fork(self, number: int) -> tuple[Session, Session]:
        """(a fork, the session that it copies)"""
        rng = self.rng("fork", number)
        originals = self.count - self.forks
        while True:
            place = rng.randrange(originals)
            if place % self.mix.every == 0 and originals > 1:
                continue
            parent = self.session(place)
            if parent.size < LARGEST // 10 and parent.end < END - MINUTE:
                break
        kept = rng.randint(1, len(parent.units))
        begun = self.session(place, stop=kept)
        out = begun.forked(rng, parent.end + MINUTE, stated=number % 2 == 0)
        pool = [one for one in self.done if one.group == parent.units[0].group and not one.children]
        for _ in range(rng.randint(1, 8)):
            out.add(rng.choice(pool), gap=1_000)
        return out, parent

    def _end(self, rng: random.Random) -> Unit | None:
        """The bad end that some sessions come to."""
        drawn = rng.random()
        for share, names in (
            (KILLED, ("kill-in-tool", "kill-in-stream")), (FAILED, ("api-error",)),
            (STOPPED, ("interrupt",)),
        ):  # fmt: skip
            if drawn < share:
                found = [unit for unit in self.units if unit.case in names]
                return rng.choice(found) if found else None
            drawn -= share
        return None


def _cwd(rng: random.Random) -> str:
    names = ("shop", "api", "site", "parser", "infra", "docs", "game", "notes")
    return f"/home/dev/{rng.choice(names)}/{rng.choice(names)}{rng.randrange(60)}"


class Corpus:
    """Writes files, and counts what it writes."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.sessions: dict[str, dict[str, Any]] = {}
        self.files = self.bytes = 0

    def take(self, agent: str, session: Session, **more: Any) -> None:
        """A session and its sub-agents."""
        self._write(session.made())
        self.sessions[f"{agent}:{session.native}"] = {**session.truth(), **more}
        for made, native, truth in session.children:
            self._write(made)
            truth["parent"] = f"{agent}:{truth['parent']}"
            self.sessions[f"{agent}:{native}"] = truth

    def _write(self, made: Made) -> None:
        path = self.home / made.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(made.data)
        self.files += 1
        self.bytes += sum(map(len, made.data))
        os.utime(path, (made.at / 1000, made.at / 1000))
        for name, data in made.beside.items():
            beside = self.home / name
            beside.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(data)

    def totals(self) -> dict[str, Any]:
        """Sums by agent."""
        out: dict[str, Any] = {}
        for agent in sorted({key.partition(":")[0] for key in self.sessions}):
            rows = [row for key, row in self.sessions.items() if key.startswith(f"{agent}:")]
            usage: Counts = total(row["usage"] for row in rows)
            out[agent] = {"sessions": len(rows), "usage": usage}
        return out


def write(folder: Path, scale: float, seed: int) -> dict[str, Any]:
    """The corpus; returns its truth."""
    corpus, pools = Corpus(folder), Pools()
    for agent in sorted(MIXES):
        maker = Maker(agent, seed, scale, pools)
        for number in range(maker.count - maker.forks):
            corpus.take(agent, maker.session(number))
        for number in range(maker.forks):
            fork, parent = maker.fork(number)
            corpus.take(agent, fork, parent=f"{agent}:{parent.native}", relation="fork")
    truth = {
        "seed": seed, "scale": scale, "files": corpus.files, "bytes": corpus.bytes,
        "totals": corpus.totals(), "sessions": corpus.sessions,
    }  # fmt: skip
    text = json.dumps(truth, indent=1, ensure_ascii=False, sort_keys=True)
    (folder / "truth.json").write_text(text, encoding="utf-8")
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--sessions", type=int, help="instead of --scale: about so many sessions")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    most = sum(mix.sessions for mix in MIXES.values())
    scale = said.sessions / most if said.sessions else said.scale
    truth = write(said.out, scale, said.seed)
    print(f"{len(truth['sessions'])} sessions, {truth['files']} files, {truth['bytes']} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
