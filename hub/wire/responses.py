"""A Responses API request (Codex) comes in; response, item and delta events go out."""

import json
import re
import uuid
from collections.abc import Iterator, Mapping
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

PROTOCOL: Final = "responses"
_STOPS = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
_CALL = re.compile(r"call_(\d{4})")
_SESSION_KEYS = ("thread-id", "thread_id", "session-id", "session_id", "conversation_id")


def read(body: Json, headers: Mapping[str, str]) -> Request:
    """Read a Responses request; the answers so far are counted by the numbers in call ids."""
    sent = [mapping(item) for item in items(body.get("input"))]
    if isinstance(body.get("input"), str):
        sent = [{"role": "user", "content": body["input"]}]
    offered = list(items(body.get("tools")))
    system = [string(body.get("instructions"))]
    context = list(system)
    for item in sent:
        if item.get("type") == "additional_tools":
            offered += items(item.get("tools"))
        if item.get("role") in ("system", "developer"):
            system += texts(item.get("content"))
        if item.get("role") in ("user", "system", "developer"):
            context += texts(item.get("content"))
    wanted = mapping(mapping(body.get("text")).get("format"))
    return Request(
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        session=_session(body, headers),
        system="\n".join(system),
        context="\n".join(context),
        turns=list(_turns(sent)),
        tools=by_name(tool for item in offered for tool in _tools(mapping(item))),
        schema=mapping(wanted.get("schema")) if wanted.get("type") == "json_schema" else None,
        agents=list(_agents(sent)),
    )


def _session(body: Json, headers: Mapping[str, str]) -> str:
    """The thread's id: a subagent has its own thread in its parent's session."""
    own = mapping(body.get("client_metadata"))
    for key in _SESSION_KEYS:
        if value := headers.get(key) or string(own.get(key)):
            return value
    return string(body.get("prompt_cache_key"))


def _turns(sent: list[Json]) -> Iterator[Turn]:
    """Items in a row are one answer; calls of one number are, whatever stands between them."""
    answering, number = False, ""
    for item in sent:
        kind = string(item.get("type")) or "message"
        said_by_user = item.get("role") == "user" or kind == "agent_message"
        if said_by_user or kind.endswith("_output"):
            answering = False
            if said_by_user:
                yield from user_turns(item.get("content"))
        elif item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call"):
            found = _CALL.match(string(item.get("call_id")))
            if not answering and not (found and found[1] == number):
                yield Turn("model")
            answering, number = True, found[1] if found else number


def _tools(tool: Json) -> Iterator[Offered]:
    name, kind = string(tool.get("name")), string(tool.get("type"))
    if kind != "namespace":
        yield Offered(name or kind, kind, parameters=parameters(tool.get("parameters")))
        return
    for part in map(mapping, items(tool.get("tools"))):
        own = string(part.get("type")) or "function"
        known = parameters(part.get("parameters"))
        yield Offered(string(part.get("name")), own, name, known)


def _agents(sent: list[Json]) -> Iterator[str]:
    """Ids of started subagents, read from the outputs of the calls that started them."""
    started = {item.get("call_id") for item in sent if item.get("name") == "spawn_agent"}
    for item in sent:
        if item.get("type") == "function_call_output" and item.get("call_id") in started:
            output = "".join(texts(item.get("output")))
            try:
                result = mapping(json.loads(output))
            except ValueError:
                continue
            if agent := string(result.get("agent_id")) or string(result.get("task_name")):
                yield agent


def response_id() -> str:
    """A response id."""
    return "resp_" + uuid.uuid4().hex


def call_id(number: int, place: int) -> str:
    """A call id that tells the request's number, since agents send back nothing else."""
    return f"call_{number:04}_{place}_{uuid.uuid4().hex[:12]}"


def error(code: int, kind: str, message: str, request_id: str) -> Json:
    """The error document of the OpenAI protocols."""
    own: Json = {"message": message or f"scripted error {code}", "param": None}
    own["type"] = own["code"] = kind or _ERRORS.get(code, "server_error")
    if kind == "usage_limit_reached":
        own |= {"plan_type": "plus", "resets_in_seconds": 3600}
    return {"error": own, "request_id": request_id}


_ERRORS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    402: "insufficient_balance",
    403: "forbidden",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    529: "server_is_overloaded",
}


def compaction(usage: Usage) -> Json:
    """The answer to a request to compact the conversation."""
    return {
        "id": response_id(),
        "object": "response.compaction",
        "output": [{"type": "compaction", "encrypted_content": "c2NyaXB0ZWQ="}],
        "usage": _usage(usage),
    }


def encoder(reply: Reply) -> Encoder:
    """The encoder of one response."""
    return _Response(reply)


def _usage(usage: Usage) -> Json:
    sent = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": sent,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": sent + usage.output,
    }


class _Response:
    """One response: its items so far, the last of them still open."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.output: list[Json] = []
        self.open = ""

    def begin(self) -> bytes:
        first = {**self.whole(), "status": "in_progress", "output": [], "usage": None}
        return self._event("response.created", response=first) + self._event(
            "response.in_progress", response=first
        )

    def text(self, piece: str) -> bytes:
        part: Json = {"type": "output_text", "text": "", "annotations": []}
        before = b""
        if self.open != "message":
            message: Json = {"type": "message", "id": "msg_" + uuid.uuid4().hex[:24]}
            before = self._open({**message, "role": "assistant", "content": [part]}, content=[])
        own = mapping(items(self.output[-1]["content"])[0])
        own["text"] = string(own["text"]) + piece
        return before + self._delta("response.output_text.delta", piece, content_index=0)

    def thinking(self, piece: str) -> bytes:
        before = b""
        if self.open != "reasoning":
            item: Json = {"type": "reasoning", "id": "rs_" + uuid.uuid4().hex[:24]}
            part: Json = {"type": "summary_text", "text": ""}
            item |= {"summary": [part], "encrypted_content": "c2NyaXB0ZWQ="}
            before = self._open(item, summary=[])
        own = mapping(items(self.output[-1]["summary"])[0])
        own["text"] = string(own["text"]) + piece
        return before + self._delta("response.reasoning_summary_text.delta", piece, summary_index=0)

    def tool(self, call: ToolCall) -> bytes:
        self.reply.calls += 1
        item: Json = {"id": "fc_" + uuid.uuid4().hex[:24], "call_id": call.id}
        if call.kind == "local_shell":
            item |= {"type": "local_shell_call", "status": "completed", "action": call.arguments}
        elif call.kind == "custom":
            item |= {"type": "custom_tool_call", "name": call.name, "input": call.text}
        else:
            item |= {"type": "function_call", "name": call.name, "arguments": call.text}
        if call.namespace:
            item["namespace"] = call.namespace
        return self._open(item) + self._close()

    def fail(self, kind: str, message: str) -> bytes:
        failed = {**self.whole(), "status": "failed", "usage": None}
        failed["error"] = {"code": kind, "message": message}
        return self._event("response.failed", response=failed)

    def end(self) -> bytes:
        closed = self._close()
        whole = self.whole()
        return closed + self._event(f"response.{whole['status']}", response=whole)

    def whole(self) -> Json:
        whole: Json = {
            "id": self.reply.id,
            "object": "response",
            "created_at": self.reply.created_at,
            "model": self.reply.model,
            "status": "completed",
            "output": self.output,
            "usage": _usage(self.reply.usage),
        }
        if self.reply.reason in _STOPS:
            whole["status"] = "incomplete"
            whole["incomplete_details"] = {"reason": _STOPS[self.reply.reason]}
        return whole

    def _event(self, name: str, **fields: object) -> bytes:
        return sse({"type": name, **fields}, name)

    def _open(self, item: Json, **shown: object) -> bytes:
        """Add an item; `shown` replaces the fields that only its deltas will fill."""
        closed = self._close()
        self.output.append(item)
        self.open = string(item["type"])
        return closed + self._event(
            "response.output_item.added",
            output_index=len(self.output) - 1,
            item={**item, **shown},
        )

    def _delta(self, name: str, piece: str, **place: object) -> bytes:
        item = self.output[-1]
        index = len(self.output) - 1
        return self._event(name, item_id=item["id"], output_index=index, delta=piece, **place)

    def _close(self) -> bytes:
        if not self.open:
            return b""
        self.open = ""
        return self._event(
            "response.output_item.done", output_index=len(self.output) - 1, item=self.output[-1]
        )
