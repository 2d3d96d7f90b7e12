"""Claude Code's records, for the copier: where turns begin, what they come to, where files lie."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recorded import Facts, Log
from template import Record, Rules

ROOT = ".claude/projects"
BEFORE = {"file-history-snapshot", "queue-operation", "atis-latch", "tools-used"}


def counter(path: tuple[str, ...]) -> str | None:
    return "turn" if path == ("turnPosition", "turnIndex") else None


def exports(record: Record) -> dict[str, str]:
    if record.get("type") == "api-request":
        return {"request": record["id"]}
    return {"leaf": record["uuid"]} if "uuid" in record else {}


RULES = Rules(
    counter, lambda _name: False,
    {"parentUuid": "leaf", "leafUuid": "leaf", "base": "request"}, exports,
)  # fmt: skip


def logs(root: Path) -> list[Log]:
    """The transcripts of a case, children behind their parents."""
    out = []
    for path in sorted((root / ROOT).glob("*/*.jsonl")):
        out.append(Log(path.stem, path, None))
        for child in sorted((path.with_suffix("") / "subagents").glob("*.jsonl")):
            native = f"{path.stem}/{child.stem.removeprefix('agent-')}"
            out.append(Log(native, child, path.stem, (child.with_suffix(".meta.json"),)))
    return out


def turns(frames: Sequence[Sequence[Record]]) -> list[int]:
    """Where turns begin."""
    records = [frame[0] for frame in frames]
    out: list[int] = []
    for place, record in enumerate(records):
        human = record.get("type") == "user" and isinstance(record["message"]["content"], str)
        if not human:
            continue
        start = place
        while start > 0 and records[start - 1]["type"] in BEFORE:
            start -= 1
        out.append(start)
    return out


def facts(frames: Sequence[Sequence[Record]]) -> Facts:
    """What a turn says."""
    out = Facts()
    for frame in frames:
        for record in frame:
            message: Any = record.get("message") or {}
            content = message.get("content")
            if record.get("type") == "assistant":
                if record.get("isApiErrorMessage"):
                    continue
                usage = message["usage"]
                out.responses[message["id"]] = {
                    "input": usage["input_tokens"],
                    "cache_read": usage["cache_read_input_tokens"],
                    "cache_write": usage["cache_creation_input_tokens"],
                    "output": usage["output_tokens"],
                    "reasoning": usage["output_tokens_details"]["thinking_tokens"],
                }
                for block in content:
                    if block["type"] == "text":
                        out.answers.append(block["text"])
                    elif block["type"] == "tool_use":
                        out.tools.append(block["id"])
            elif record.get("type") == "user" and isinstance(content, str):
                if not record.get("isSidechain"):
                    out.prompts.append(content)
            elif record.get("type") == "user":
                for block in content:
                    text = block.get("content")
                    if block["type"] == "tool_result" and isinstance(text, str):
                        out.outputs.append(text)
    return out


def path_of(native: str, cwd: str, _at: str) -> str:
    """Where a session lies below HOME."""
    folder = re.sub(r"[^A-Za-z0-9]", "-", cwd)
    session, _, child = native.partition("/")
    if child:
        return f"{ROOT}/{folder}/{session}/subagents/agent-{child}.jsonl"
    return f"{ROOT}/{folder}/{session}.jsonl"


def forked(data: bytes, old: str, new: str, *, stated: bool) -> bytes:
    """Inherited records as a fork has them: its own session id, the same record ids."""
    data = data.replace(old.encode(), new.encode())
    if stated:
        own = f'"sessionId":"{new}"'.encode()
        said = own + f',"requestSessionId":"{old}"'.encode()
        lines = data.splitlines(keepends=True)
        data = b"".join(
            line.replace(own, said) if b'"type":"assistant"' in line else line for line in lines
        )
    return data


def beside(path: str, _native: str) -> str:
    """The small file beside a session."""
    return path.removesuffix(".jsonl") + ".meta.json"
