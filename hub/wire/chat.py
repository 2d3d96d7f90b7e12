"""A chat completions request (dsh before 0.2) comes in; completion chunks go out."""

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
    responses,
    sse,
    string,
    texts,
    user_turns,
)

PROTOCOL: Final = "chat"
_FINISH = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}

error = responses.error


def read(body: Json, headers: Mapping[str, str]) -> Request:
    """Read a chat completions request."""
    turns: list[Turn] = []
    system: list[str] = []
    context: list[str] = []
    for message in map(mapping, items(body.get("messages"))):
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            turns.append(Turn("model"))
        elif role != "tool":
            context += texts(content)
            system += texts(content) if role != "user" else []
            turns += user_turns(content) if role == "user" else []
    functions = (mapping(mapping(tool).get("function")) for tool in items(body.get("tools")))
    wanted = mapping(body.get("response_format"))
    asked = mapping(mapping(wanted.get("json_schema")).get("schema"))
    return Request(
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        session=headers.get("x-deepseek-harness-session-id", ""),
        system="\n".join(system),
        context="\n".join(context),
        turns=turns,
        tools=by_name(
            Offered(string(own.get("name")), parameters=parameters(own.get("parameters")))
            for own in functions
        ),
        schema=asked if wanted.get("type") == "json_schema" else None,
    )


def response_id() -> str:
    """A completion id."""
    return "chatcmpl-" + uuid.uuid4().hex[:24]


def call_id(number: int, place: int) -> str:
    """A tool call id."""
    return f"call_{number:04}_{place}_{uuid.uuid4().hex[:12]}"


def encoder(reply: Reply) -> Encoder:
    """The encoder of one completion."""
    return _Completion(reply)


def _usage(usage: Usage) -> Json:
    sent = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": sent,
        "completion_tokens": usage.output,
        "total_tokens": sent + usage.output,
        "prompt_cache_hit_tokens": usage.cache_read,
        "prompt_cache_miss_tokens": sent - usage.cache_read,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


class _Completion:
    """One completion: the message so far."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.said = ""
        self.thought = ""
        self.calls: list[Json] = []

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, piece: str) -> bytes:
        self.said += piece
        return self._chunk({"content": piece})

    def thinking(self, piece: str) -> bytes:
        self.thought += piece
        return self._chunk({"reasoning_content": piece})

    def tool(self, call: ToolCall) -> bytes:
        index, half = self.reply.calls, len(call.text) // 2
        self.reply.calls += 1
        head: Json = {"id": call.id, "type": "function"}
        self.calls.append({**head, "function": {"name": call.name, "arguments": call.text}})
        first = {"name": call.name, "arguments": call.text[:half]}
        rest = {"arguments": call.text[half:]}
        return self._chunk(
            {"tool_calls": [{"index": index, **head, "function": first}]}
        ) + self._chunk({"tool_calls": [{"index": index, "function": rest}]})

    def fail(self, kind: str, message: str) -> bytes:
        return sse({"error": {"type": kind, "code": kind, "message": message}})

    def end(self) -> bytes:
        finish = _FINISH.get(self.reply.reason, "stop")
        last = self._chunk({}, finish, _usage(self.reply.usage))
        return last + b"data: [DONE]\n\n"

    def whole(self) -> Json:
        message: Json = {"role": "assistant", "content": self.said}
        if self.thought:
            message["reasoning_content"] = self.thought
        if self.calls:
            message["tool_calls"] = self.calls
        finish = _FINISH.get(self.reply.reason, "stop")
        choice: Json = {"index": 0, "message": message, "finish_reason": finish}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(self.reply.usage),
        }

    def _head(self, kind: str) -> Json:
        reply = self.reply
        return {
            "id": reply.id,
            "object": kind,
            "created": reply.created_at,
            "model": reply.model,
        }

    def _chunk(self, delta: Json, finish: str | None = None, usage: Json | None = None) -> bytes:
        choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice]}
        return sse({**chunk, "usage": usage} if usage else chunk)
