"""The recorded cases in; units that can be repeated out, checked against each case's own ledger."""

import importlib
import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard
from template import IDS, Block, Compiler, Record, parsed

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
DONE = ("answer", "tool", "failtool", "multiturn", "parallel", "cjk", "resume", "retry", "subagent")
ENDS = ("api-error", "interrupt", "kill-in-tool", "kill-in-stream")
COUNTS = ("input", "cache_read", "cache_write", "output", "reasoning")
Counts = dict[str, int | None]


@dataclass(frozen=True)
class Log:
    """One transcript of a case."""

    native: str
    path: Path
    parent: str | None
    beside: tuple[Path, ...] = ()
    """Small files that belong to it."""


@dataclass
class Facts:
    """What some records say, read without agenthub."""

    responses: dict[str, dict[str, int]] = field(default_factory=dict)
    prompts: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def tokens(self) -> Counts:
        return total(self.responses.values())


@dataclass
class Child:
    """A sub-agent's transcript beside the unit that ordered it."""

    native: str
    block: Block
    beside: list[tuple[str, Block]]
    facts: Facts
    turns: int
    outcome: str


@dataclass
class Unit:
    """A turn (or, with sub-agents, all turns of its case)."""

    case: str
    head: Block | None
    """What stands before the first turn of a file; None for a later turn."""
    block: Block
    facts: Facts
    turns: int
    outcome: str
    group: str
    native: str
    beside: list[str]
    children: list[Child] = field(default_factory=list)


def total(responses: Iterable[Any]) -> Counts:
    """Sums; null where nothing is known."""
    out: Counts = dict.fromkeys(COUNTS)
    for one in responses:
        for name in COUNTS:
            value = one.get(name)
            if value is not None:
                out[name] = (out[name] or 0) + value
    return out


def mended(text: str) -> str:
    """Half an emoji is U+FFFD for everybody who has to print it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def frames_of(path: Path) -> list[list[Record]]:
    """The records of a transcript, as they were written together."""
    data = path.read_bytes()
    if path.suffix != ".zstd":
        return [[json.loads(line)] for line in data.split(b"\n") if line.strip()]
    out = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        text = frame.decompress(data)
        out.append([json.loads(line) for line in text.split(b"\n") if line])
        data = frame.unused_data
    return out


def shape(agent: str) -> Any:
    """The module that knows an agent's records; None where there is none."""
    try:
        return importlib.import_module(f"shape_{agent}")
    except ModuleNotFoundError:
        return None


def units(agent: str) -> list[Unit]:
    """Every unit of an agent's recorded cases."""
    out: list[Unit] = []
    for name in (*DONE, *ENDS):
        case = FIXTURES / agent / name
        if (case / "truth.json").is_file():
            out += _case(shape(agent), case)
    return out


def _case(module: Any, case: Path) -> list[Unit]:
    said = json.loads((case / "truth.json").read_text(encoding="utf-8"))
    source = tomllib.loads((case / "SOURCE.toml").read_text(encoding="utf-8"))
    now = parsed(source["recorded_at"])[0]
    logs = module.logs(case / "root")
    top = next(log for log in logs if log.parent is None)
    frames = frames_of(top.path)
    group = _group(frames) or IDS.sub("", top.native)
    packed = top.path.suffix == ".zstd"
    starts = module.turns(frames)
    cuts = starts[:1] if len(logs) > 1 else starts
    compiler = Compiler(
        module.RULES, now=now, cwd=said["sessions"][top.native]["cwd"],
        shared=IDS.findall(top.native),
    )  # fmt: skip
    head = compiler.block(_joined(frames[: cuts[0]], packed=packed), {})
    out: list[Unit] = []
    for place, cut in enumerate(cuts):
        end = cuts[place + 1] if place + 1 < len(cuts) else len(frames)
        part = frames[cut:end]
        facts = module.facts(part)
        last = place + 1 == len(cuts)
        outcome = said["sessions"][top.native]["outcome"] if last else "completed"
        texts = {} if case.name in ENDS else _texts(facts, outputs=len(logs) == 1)
        block = compiler.block(_joined(part, packed=packed), texts)
        turns = sum(cut <= one < end for one in starts)
        out.append(
            Unit(
                case.name,
                head if place == 0 else None,
                block,
                facts,
                turns,
                outcome,
                group,
                top.native,
                [path.name for path in top.beside],
            )  # fmt: skip
        )
    _check(case, top.native, said, [unit.facts for unit in out], child=False)
    out[0].children = [
        _child(module, log, compiler, said, case, packed=packed) for log in logs if log is not top
    ]
    return out


def _child(module: Any, log: Log, above: Compiler, said: Any, case: Path, *, packed: bool) -> Child:
    frames = frames_of(log.path)
    compiler = Compiler(module.RULES, now=above.now, cwd=above.cwd, shared=above.earlier)
    facts = module.facts(frames)
    _check(case, log.native, said, [facts], child=True)
    facts.prompts.clear()
    block = compiler.block(_joined(frames, packed=packed), _texts(facts, outputs=True))
    beside = []
    for path in log.beside:
        if path.suffix == ".json":
            small = [[json.loads(path.read_bytes())]]
            beside.append((path.name, compiler.block(small, {})))
        else:
            beside.append((path.name, compiler.block([], {})))
    outcome = said["sessions"][log.native]["outcome"]
    return Child(log.native, block, beside, facts, len(module.turns(frames)), outcome)


def _joined(frames: Sequence[Sequence[Record]], *, packed: bool) -> list[list[Record]]:
    if packed:
        return [list(frame) for frame in frames]
    return [[record for frame in frames for record in frame]]


def _texts(facts: Facts, *, outputs: bool) -> dict[str, str]:
    grows = [(facts.prompts, "prompt"), (facts.answers, "answer")]
    if outputs:
        grows.append((facts.outputs, "output"))
    return {text: kind for texts, kind in grows for text in texts if text}


def _group(frames: list[list[Record]]) -> str:
    """Only turns of the same kind of run are mixed: the records say which it was."""
    for record in (record for frame in frames for record in frame):
        if "entrypoint" in record:
            return str(record["entrypoint"])
        payload = record.get("payload")
        if isinstance(payload, dict) and "originator" in payload:
            return str(payload["originator"])
    return ""


def _check(case: Path, native: str, said: Any, parts: list[Facts], *, child: bool) -> None:
    """What is read here must equal the case's ledger; else the corpus would have no truth."""
    truth = said["sessions"][native]
    read = {
        "tokens": total(one for facts in parts for one in facts.responses.values()),
        "answers": [mended(text) for facts in parts for text in facts.answers],
        "prompts": [] if child else [text for facts in parts for text in facts.prompts],
    }
    tools = [call for facts in parts for call in facts.tools]
    wanted = {name: truth[name] for name in read}
    ids = [one["id"] for one in said["tools"][native]]
    if read != wanted or tools != ids:
        raise SystemExit(f"{case.name}: {native}: read {read} {tools}, its ledger: {wanted} {ids}")
