"""dsh's records, for the copier."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recorded import Facts, Log, frames_of
from template import Record, Rules

ROOT = ".dsh/sessions"


def counter(path: tuple[str, ...]) -> str | None:
    if path[-1] in {"seq", "messageSeqs", "sourceEventSeqs"}:
        return "seq"
    return "turn" if path == ("data", "turn") else None


RULES = Rules(counter, lambda _name: False)


def logs(root: Path) -> list[Log]:
    """The sessions of a case, children behind their parents."""
    out = []
    for path in (root / ROOT).glob("*/*/session.v4.jsonl.zstd"):
        head: Any = frames_of(path)[0][0]
        out.append(
            Log(head["id"], path, head.get("parentSession"), (path.parent / "session.lock",))
        )
    return sorted(out, key=lambda log: (log.parent is not None, log.native))


def turns(frames: Sequence[Sequence[Record]]) -> list[int]:
    """Where turns begin."""
    return [
        place
        for place, frame in enumerate(frames)
        if any(record["type"] == "turn/start" for record in frame)
    ]


def facts(frames: Sequence[Sequence[Record]]) -> Facts:
    """What a turn says."""
    out = Facts()
    for record in (record for frame in frames for record in frame):
        data: Any = record.get("data")
        match record["type"]:
            case "assistant/message":
                usage = data["usage"]
                out.responses[str(record["seq"])] = {
                    "input": usage["inputTokens"],
                    "cache_read": usage["cacheReadTokens"],
                    "cache_write": usage["cacheWriteTokens"],
                    "output": usage["outputTokens"],
                }
                for block in data["message"]["content"]:
                    if block["type"] == "text":
                        out.answers.append(block["text"])
            case "tool/call":
                out.tools.append(data["callId"])
            case "user/message" if data["source"]["kind"] == "user":
                out.prompts += [block["text"] for block in data["content"]]
            case "tool/result":
                out.outputs += [block["text"] for block in data["message"]["content"]]
            case _:
                pass
    return out


def path_of(native: str, cwd: str, _at: str) -> str:
    """Where a session lies below HOME."""
    return f"{ROOT}/-{cwd.replace('/', '-')}--/{native}/session.v4.jsonl.zstd"


def beside(path: str, _native: str) -> str:
    """The small file beside a session."""
    return path.rpartition("/")[0] + "/session.lock"
