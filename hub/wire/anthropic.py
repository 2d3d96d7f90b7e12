"""A Messages API request (Claude Code, dsh) comes in; message and content block events go out."""

import json
import uuid
from collections.abc import Mapping
from typing import Final

from hub.scripts import Usage
from hub.wire import (
    Encoder,
    Json,
    Offered,
    Reply,
    Request,
    ToolCall,
    Turn,
    by_name,
    items,
    mapping,
    parameters,
    sse,
    string,
    texts,
    user_turns,
)

PROTOCOL: Final = "messages"
_SIGNATURE = "c2NyaXB0ZWQ="
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: Json, headers: Mapping[str, str]) -> Request:
    """Read a Messages request; system messages in mid conversation count as system text."""
    turns: list[Turn] = []
    system = texts(body.get("system"))
    context = list(system)
    for message in map(mapping, items(body.get("messages"))):
        role, content = message.get("role"), message.get("content")
        if role == "user":
            turns += user_turns(content)
            context += texts(content)
        elif role == "assistant":
            turns.append(Turn("model"))
        else:
            system += texts(content)
            context += texts(content)
    tools = (
        Offered(string(tool.get("name")), parameters=parameters(tool.get("input_schema")))
        for tool in map(mapping, items(body.get("tools")))
    )
    wanted = mapping(mapping(body.get("output_config")).get("format")) or mapping(
        body.get("output_format")
    )
    return Request(
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        session=_session(body, headers),
        system="\n".join(system),
        context="\n".join(context),
        turns=turns,
        tools=by_name(tools),
        schema=mapping(wanted.get("schema")) if wanted.get("type") == "json_schema" else None,
    )


def _session(body: Json, headers: Mapping[str, str]) -> str:
    for name in ("x-claude-code-session-id", "x-deepseek-harness-session-id"):
        if name in headers:
            return headers[name]
    user = string(mapping(body.get("metadata")).get("user_id"))
    if user.startswith("{"):  # Claude Code since 2.1: a JSON object in a string
        try:
            return string(mapping(json.loads(user)).get("session_id"))
        except ValueError:
            return ""
    return user.rpartition("_session_")[2] if "_session_" in user else ""


def response_id() -> str:
    """A message id."""
    return "msg_" + uuid.uuid4().hex[:24]


def call_id(number: int, place: int) -> str:
    """A tool use id."""
    return f"toolu_{number:04}{place:02}{uuid.uuid4().hex[:18]}"


def error(code: int, kind: str, message: str, request_id: str) -> Json:
    """The error document of the Messages API."""
    return {
        "type": "error",
        "error": {
            "type": kind or _ERRORS.get(code, "api_error"),
            "message": message or f"scripted error {code}",
        },
        "request_id": request_id,
    }


def encoder(reply: Reply) -> Encoder:
    """The encoder of one message."""
    return _Message(reply)


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


class _Message:
    """One message: its blocks so far, the last of them still open."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.blocks: list[Json] = []
        self.open = False

    def begin(self) -> bytes:
        first = {**self.whole(), "content": [], "stop_reason": None}
        first["usage"] = {**_usage(self.reply.usage), "output_tokens": 1}
        return sse({"type": "message_start", "message": first}, "message_start")

    def text(self, piece: str) -> bytes:
        before = self._block("text", {"type": "text", "text": ""})
        return before + self._delta("text", "text_delta", piece)

    def thinking(self, piece: str) -> bytes:
        before = self._block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        return before + self._delta("thinking", "thinking_delta", piece)

    def tool(self, call: ToolCall) -> bytes:
        self.reply.calls += 1
        use: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        before = self._block("", use)
        half = len(call.text) // 2
        sent = b"".join(
            self._event(
                "content_block_delta",
                delta={"type": "input_json_delta", "partial_json": part},
            )
            for part in (call.text[:half], call.text[half:])
        )
        self.blocks[-1]["input"] = json.loads(call.text)
        return before + sent

    def fail(self, kind: str, message: str) -> bytes:
        return sse({"type": "error", "error": {"type": kind, "message": message}}, "error")

    def end(self) -> bytes:
        delta: Json = {"stop_reason": self.reply.reason, "stop_sequence": None}
        last: Json = {"type": "message_delta", "delta": delta, "usage": _usage(self.reply.usage)}
        return (
            self._close()
            + sse(last, "message_delta")
            + sse({"type": "message_stop"}, "message_stop")
        )

    def whole(self) -> Json:
        return {
            "id": self.reply.id,
            "type": "message",
            "role": "assistant",
            "model": self.reply.model,
            "content": self.blocks,
            "stop_reason": self.reply.reason,
            "stop_sequence": None,
            "usage": _usage(self.reply.usage),
        }

    def _event(self, name: str, **fields: object) -> bytes:
        return sse({"type": name, "index": len(self.blocks) - 1, **fields}, name)

    def _block(self, kind: str, block: Json) -> bytes:
        """Open a block, unless one of this kind is open already."""
        if self.open and self.blocks[-1]["type"] == kind:
            return b""
        closed = self._close()
        self.blocks.append(block)
        self.open = True
        return closed + self._event("content_block_start", content_block=dict(block))

    def _delta(self, key: str, kind: str, piece: str) -> bytes:
        self.blocks[-1][key] = string(self.blocks[-1][key]) + piece
        return self._event("content_block_delta", delta={"type": kind, key: piece})

    def _close(self) -> bytes:
        if not self.open:
            return b""
        self.open = False
        signed = b""
        if self.blocks[-1]["type"] == "thinking":
            self.blocks[-1]["signature"] = _SIGNATURE
            delta = {"type": "signature_delta", "signature": _SIGNATURE}
            signed = self._event("content_block_delta", delta=delta)
        return signed + self._event("content_block_stop")
