"""Codex's records, for the copier."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recorded import Facts, Log
from template import Record, Rules

ROOT = ".codex/sessions"
TOTALS = {"thread_token_usage", "total_token_usage"}


def counter(path: tuple[str, ...]) -> str | None:
    if path == ("ordinal",):
        return "ordinal"
    return f"total.{path[-1]}" if len(path) > 1 and path[-2] in TOTALS else None


RULES = Rules(counter, lambda name: name.startswith("total."))


def logs(root: Path) -> list[Log]:
    """The rollouts of a case, children behind their parents."""
    out = []
    for path in (root / ROOT).glob("*/*/*/rollout-*.jsonl"):
        meta: Any = json.loads(path.read_bytes().splitlines()[0])["payload"]
        spawn = meta["source"]["subagent"]["thread_spawn"] if "subagent" in meta["source"] else {}
        extra = tuple((root / ".codex/thread-writer-locks").glob(f"{meta['id']}.lock"))
        out.append(Log(meta["id"], path, spawn.get("parent_thread_id"), extra))
    return sorted(out, key=lambda log: (log.parent is not None, log.native))


def turns(frames: Sequence[Sequence[Record]]) -> list[int]:
    """Where turns begin."""
    return [
        place
        for place, frame in enumerate(frames)
        if frame[0]["payload"].get("type") == "task_started"
    ]


def facts(frames: Sequence[Sequence[Record]]) -> Facts:
    """What a turn says."""
    out = Facts()
    for record in (record for frame in frames for record in frame):
        body: Any = record["payload"]
        if record["type"] == "token_usage_record":
            usage = body["usage"]
            cached, written = usage["cached_input_tokens"], usage["cache_write_input_tokens"]
            out.responses[body["response_id"]] = {
                "input": usage["input_tokens"] - cached - written,
                "cache_read": cached,
                "cache_write": written,
                "output": usage["output_tokens"],
                "reasoning": usage["reasoning_output_tokens"],
            }
        elif body.get("type") == "item_completed":
            item = body["item"]
            texts = [part.get("text") for part in item.get("content") or ()]
            if item["type"] == "UserMessage":
                out.prompts += texts
            elif item["type"] == "AgentMessage":
                out.answers += texts
            elif isinstance(item.get("aggregated_output"), str):
                out.outputs.append(item["aggregated_output"])
        elif body.get("type") in {"function_call", "custom_tool_call"}:
            out.tools.append(body["call_id"])
        elif body.get("type") in {"function_call_output", "custom_tool_call_output"}:
            said = body["output"]
            out.outputs += [said] if isinstance(said, str) and said[:1] != "{" else []
    return out


def path_of(native: str, _cwd: str, at: str) -> str:
    """Where a session lies below HOME."""
    day, clock = at[:10], at[11:19]
    return f"{ROOT}/{day.replace('-', '/')}/rollout-{day}T{clock.replace(':', '-')}-{native}.jsonl"


def beside(_path: str, native: str) -> str:
    """The small file beside a session."""
    return f".codex/thread-writer-locks/{native}.lock"
