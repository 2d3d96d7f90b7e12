"""Units in; one new session with its sub-agents out: bytes, and what is true of it."""

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any

import zstandard
from recorded import Child, Counts, Facts, Unit, mended, total
from template import IDS, Block, Scope, iso

Truth = dict[str, Any]
LEVEL = 3
WORDS = 2_000


class Pools:
    """Texts that recorded ones grow by; the same for every corpus."""

    def __init__(self) -> None:
        rng = random.Random("texts")  # noqa: S311
        letters = "etaoinshrdlucmfwypvbgk"
        words = ["".join(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(WORDS)]
        words += ["数据", "测试", "函数", "🎉", "naïve"]
        self.plain = " ".join(rng.choices(words, k=30_000))
        lines: list[bytes] = []
        for number in range(12_000):
            said = " ".join(rng.choices(words, k=rng.randint(1, 14)))
            lines.append(rng.choice((
                f"src/{rng.choice(words)}.py:{number}: {said}\\n", f"\\t{said}\\n",
                f'  \\"{rng.choice(words)}\\": {rng.getrandbits(40)},\\n', f"{said}\\n",
            )).encode())  # fmt: skip
        self.rough = b"".join(lines)
        self.padded: dict[tuple[str, int], bytes] = {}
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))

    def padding(self, kind: str, size: int) -> bytes:
        """What an agent writes at every start, whole: always the same."""
        key = (kind, size)
        if key not in self.padded:
            self.padded[key] = self._padding(kind, size)
        return self.padded[key]

    def _padding(self, kind: str, size: int) -> bytes:
        if kind == "text":
            return self.plain[size : 2 * size].encode("ascii", "replace")
        tools: list[Any] = []
        room = size
        while room > 0:
            said = self.plain[room : room + 900].encode("ascii", "replace").decode()
            words = said.split()[:4]
            kinds = {word: {"type": "string", "description": said[:90]} for word in words}
            schema = {"type": "object", "properties": kinds, "required": words[:2]}
            tools.append({"name": words[0], "description": said, "input_schema": schema})
            room -= len(json.dumps(tools[-1]))
        return json.dumps(tools, separators=(",", ":")).encode()

    @staticmethod
    def unpadded(kind: str, size: int) -> bytes:
        """What stands there when a running agent goes on: nothing of that."""
        return f"<text, {size} chars>".encode() if kind == "text" else b"[]"

    def text(self, rng: random.Random, most: int) -> str:
        """Words that need no escape in JSON."""
        size = int(min(most, rng.lognormvariate(4.2, 1.3)))
        start = rng.randrange(len(self.plain) - most)
        return " " + self.plain[start : start + size].strip() if size > 8 else ""

    def output(self, rng: random.Random) -> bytes:
        """Lines that a tool printed, escaped."""
        lines = int(min(2_500, rng.lognormvariate(4.1, 1.5)))
        start = rng.randrange(len(self.starts) - lines - 1)
        return b"\\n" + self.rough[self.starts[start] : self.starts[start + lines]]


@dataclass
class Made:
    """One file of the corpus."""

    path: str
    data: list[bytes]
    at: int
    """Milliseconds of its last record."""
    beside: dict[str, bytes] = field(default_factory=dict)


class Session:
    """A session that grows unit by unit."""

    def __init__(self, module: Any, pools: Pools, rng: random.Random, cwd: str, at: int) -> None:
        self.module, self.pools, self.rng, self.cwd, self.at = module, pools, rng, cwd, at
        self.ids: dict[str, str] = {}
        self.counters: dict[str, int] = {}
        self.carry: dict[str, bytes] = {}
        self.frames: list[bytes] = []
        self.size = 0
        self.path = ""
        self.native = self.token = ""
        self.end = at
        self.units: list[Unit] = []
        self.facts: list[Facts] = []
        self.last: dict[str, str | None] = {"answer": None, "prompt": None}
        self.children: list[tuple[Made, str, Truth]] = []
        self.started: str | None = None
        self.beside: dict[str, bytes] = {}

    def begin(self, unit: Unit) -> None:
        """Head and first turn."""
        head = unit.head
        assert head is not None
        delta = self._delta(unit.block)
        for block in (head, unit.block):
            for name, value in block.base.items():
                if not self.module.RULES.running(name):
                    self.counters.setdefault(name, value)
        scope = self._scope(delta, {})
        self.token = IDS.findall(unit.native)[0]
        self.native = IDS.sub(lambda match: scope.name(self.ids, match.group()), unit.native)
        self.started = iso(head.first_ms + delta if head.frames[0] else self.at, "000")
        self.path = self.module.path_of(self.native, self.cwd, self.started)
        self.beside = {self.module.beside(self.path, self.native): b"" for _ in unit.beside}
        self._write(head, scope.values(head))
        self.add(unit)

    def add(self, unit: Unit, *, gap: int = 0) -> None:
        """One more unit, some milliseconds later."""
        self.at = self.end + gap
        self._adopt(unit)
        delta = self._delta(unit.block)
        grown = {
            "prompt": self.pools.text(self.rng, 1_400),
            "answer": self.pools.text(self.rng, 1_400),
        }
        texts = {name: text.encode() for name, text in grown.items()}
        texts["output"] = self.pools.output(self.rng)
        scope = self._scope(delta, texts)
        self._write(unit.block, scope.values(unit.block))
        self.end = self.at + unit.block.last_ms - unit.block.first_ms
        self.units.append(unit)
        self.facts.append(unit.facts)
        kinds = {slot[1] for slot in unit.block.slots if slot[0] == "text"}
        for name, said in (("answer", unit.facts.answers), ("prompt", unit.facts.prompts)):
            if said:
                self.last[name] = mended(said[-1]) + (grown[name] if name in kinds else "")
        for child in unit.children:
            self._child(child, scope, delta)

    def torn(self, unit: Unit) -> None:
        """The beginning of what was being written when the power went."""
        self._adopt(unit)
        scope = self._scope(self._delta(unit.block), {})
        values = scope.values(unit.block)
        frame = unit.block.fill(values)[0]
        if self.packed:
            self.frames.append(packed(frame)[:-7])
        else:
            line = frame.split(b"\n", 1)[0]
            self.frames.append(line[: len(line) * 3 // 5])

    def forked(self, rng: random.Random, at: int, *, stated: bool) -> "Session":
        """A session that begins as a copy of this one."""
        out = copy.copy(self)
        out.rng, out.end = rng, at
        new = f"{rng.getrandbits(128):032x}"
        old = self.native
        out.native = f"{new[:8]}-{new[8:12]}-4{new[13:16]}-a{new[17:20]}-{new[20:]}"
        out.ids = {key: out.native if one == old else one for key, one in self.ids.items()}
        data = self.module.forked(b"".join(self.frames), old, out.native, stated=stated)
        out.frames = [data]
        out.counters, out.carry = dict(self.counters), dict(self.carry)
        out.units, out.facts, out.children = [], [], []
        out.last, out.beside = dict(self.last), {}
        out.path = self.module.path_of(out.native, self.cwd, iso(at, "000"))
        return out

    @property
    def packed(self) -> bool:
        return self.path.endswith(".zstd")

    def truth(self) -> Truth:
        """What is true of the session where no process lives."""
        return {
            **_said(self.facts),
            "turns": sum(unit.turns for unit in self.units),
            "state": "ended",
            "live": False,
            "outcome": self.units[-1].outcome,
            "cwd": self.cwd,
            "last_answer": self.last["answer"],
            "last_prompt": self.last["prompt"],
            "parent": None,
            "relation": None,
        }

    def made(self) -> Made:
        return Made(self.path, self.frames, self.end, self.beside)

    def _adopt(self, unit: Unit) -> None:
        """What the unit's own recording called its session is this session."""
        self.ids[IDS.findall(unit.native)[0]] = self.ids[self.token]

    def _delta(self, block: Block) -> int:
        return (self.at - block.first_ms) // 1000 * 1000

    def _scope(self, delta: int, texts: dict[str, bytes]) -> Scope:
        padding = self.pools.unpadded if self.units else self.pools.padding
        return Scope(
            self.rng, self.ids, delta, self.cwd, self.counters, self.carry, texts, padding
        )  # fmt: skip

    def _write(self, block: Block, values: list[bytes]) -> None:
        for frame in block.fill(values):
            if frame:
                data = packed(frame) if self.packed else frame
                self.frames.append(data)
                self.size += len(frame)
        for name, slot in block.exports.items():
            self.carry[name] = b'"' + values[slot] + b'"'
        for name, more in block.advance.items():
            self.counters[name] = self.counters.get(name, 0) + more

    def _child(self, child: Child, above: Scope, delta: int) -> None:
        ids = {**self.ids, **above.ids}
        answer = self.pools.text(self.rng, 1_400)
        texts = {"answer": answer.encode(), "output": self.pools.output(self.rng)}
        counters = {
            name: value
            for name, value in child.block.base.items()
            if not self.module.RULES.running(name)
        }
        scope = Scope(self.rng, ids, delta, self.cwd, counters, {}, texts, self.pools.padding)
        native = IDS.sub(lambda match: scope.name(ids, match.group()), child.native)
        at = child.block.first_ms + delta
        path = self.module.path_of(native, self.cwd, iso(at, "000"))
        frames = child.block.fill(scope.values(child.block))
        made = Made(
            path, [packed(one) if self.packed else one for one in frames],
            child.block.last_ms + delta,
            {self.module.beside(path, native): b"".join(block.fill(scope.values(block)))
             for _, block in child.beside},
        )  # fmt: skip
        said = [mended(child.facts.answers[-1]) + answer] if child.facts.answers else []
        truth = {
            **_said([child.facts]), "turns": child.turns, "state": "ended", "live": False,
            "outcome": child.outcome, "cwd": self.cwd, "last_answer": said[0] if said else None,
            "last_prompt": None, "parent": self.native, "relation": "subagent",
        }  # fmt: skip
        self.children.append((made, native, truth))


def _said(parts: list[Facts]) -> Truth:
    usage: Counts = total(one.tokens() for one in parts)
    return {
        "usage": usage,
        "prompts": sum(len(one.prompts) for one in parts),
        "tool_calls": sum(len(one.tools) for one in parts),
    }


def packed(data: bytes) -> bytes:
    """A frame as the agent writes one: with a checksum, without the size of its content."""
    maker = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=False)
    return maker.compress(data)
