"""A client of the model server for tests: requests and answers in each of its protocols."""

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hub.modelserver import ModelServer
from hub.scripts import Act, Usage

PATHS = {
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
}
AGENTS = {
    "claude": ("Bash", "Read", "Write", "Agent"),
    "dsh": ("bash", "read", "write", "subagent"),
    "codex": ("exec_command",),
}


@dataclass
class Got:
    """An answer as a client understood it."""

    status: int = 200
    id: str = ""
    text: str = ""
    thinking: str = ""
    tools: list[tuple[str, str, Any]] = field(default_factory=list)
    stop: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    ended: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def scripted(*steps: tuple[Act, ...]) -> ModelServer:
    """A server whose script `own` has these steps."""
    return ModelServer({"own": steps})


def tools_of(protocol: str, agent: str) -> list[dict[str, Any]]:
    names = AGENTS[agent]
    if protocol == "chat":
        return [{"type": "function", "function": {"name": name}} for name in names]
    if protocol == "responses":
        return [{"type": "function", "name": name} for name in names]
    return [{"name": name, "input_schema": {}} for name in names]


def body_of(
    protocol: str,
    prompt: str,
    *,
    stream: bool = True,
    agent: str = "dsh",
    answers: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """A request: one prompt, then so many answers of the model with their tool results."""
    body: dict[str, Any] = {"model": "m-1", "stream": stream, "tools": tools_of(protocol, agent)}
    if protocol == "responses":
        body["input"] = [message("user", prompt)]
        for number in range(answers):
            call_id = f"call_{number:04}_0_x"
            body["input"] += [
                message("assistant", "working"),
                {"type": "function_call", "call_id": call_id, "name": "x", "arguments": "{}"},
                {"type": "function_call_output", "call_id": call_id, "output": "done"},
            ]
    else:
        body["messages"] = [{"role": "user", "content": prompt}]
        body["messages"] += [
            {"role": "assistant", "content": "working"},
            {"role": "user", "content": [{"type": "tool_result", "content": "done"}]},
        ] * answers
    return {**body, **more}


def message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def post(
    server: ModelServer,
    path: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Mapping[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {**(headers or {})})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def ask(server: ModelServer, protocol: str, prompt: str, **more: Any) -> Got:
    """Send one prompt and read the answer, streamed or whole."""
    body = body_of(protocol, prompt, **more)
    status, headers, data = post(server, PATHS[protocol], body)
    return understood(protocol, status, headers, data)


def understood(protocol: str, status: int, headers: Mapping[str, str], data: bytes) -> Got:
    got = Got(status=status, headers=headers)
    if headers["content-type"] == "application/json":
        document = json.loads(data)
        if status == 200:
            WHOLE[protocol](got, document)
            got.ended = True
        else:
            got.error = document["error"]["type"]
        return got
    for line in data.split(b"\n"):
        if line == b"data: [DONE]":
            got.ended = True
        elif line.startswith(b"data: "):
            EVENT[protocol](got, json.loads(line[6:]))
    return got


def whole_message(got: Got, document: dict[str, Any]) -> None:
    got.id, got.stop, got.usage = document["id"], document["stop_reason"], document["usage"]
    for block in document["content"]:
        match block["type"]:
            case "text":
                got.text += block["text"]
            case "thinking":
                got.thinking += block["thinking"]
                assert block["signature"]
            case _:
                got.tools.append((block["id"], block["name"], block["input"]))


def message_event(got: Got, event: dict[str, Any]) -> None:
    match event["type"]:
        case "message_start":
            got.id = event["message"]["id"]
            assert event["message"]["usage"]["output_tokens"] == 1
        case "content_block_start" if event["content_block"]["type"] == "tool_use":
            block = event["content_block"]
            got.tools.append((block["id"], block["name"], ""))
        case "content_block_delta":
            delta = event["delta"]
            got.text += delta.get("text", "")
            got.thinking += delta.get("thinking", "")
            if delta["type"] == "input_json_delta":
                call_id, name, sent = got.tools[-1]
                got.tools[-1] = (call_id, name, sent + delta["partial_json"])
        case "content_block_stop" if got.tools and isinstance(got.tools[-1][2], str):
            call_id, name, sent = got.tools[-1]
            got.tools[-1] = (call_id, name, json.loads(sent))
        case "message_delta":
            got.stop, got.usage = event["delta"]["stop_reason"], event["usage"]
        case "message_stop":
            got.ended = True
        case "error":
            got.error = event["error"]["type"]


def whole_response(got: Got, document: dict[str, Any]) -> None:
    got.id, got.usage = document["id"], document["usage"]
    got.stop = document.get("incomplete_details", {}).get("reason", document["status"])
    for item in document["output"]:
        match item["type"]:
            case "message":
                got.text += item["content"][0]["text"]
            case "reasoning":
                got.thinking += item["summary"][0]["text"]
            case "function_call":
                got.tools.append((item["call_id"], item["name"], json.loads(item["arguments"])))
            case "custom_tool_call":
                got.tools.append((item["call_id"], item["name"], item["input"]))
            case "local_shell_call":
                got.tools.append((item["call_id"], "local_shell", item["action"]))


def response_event(got: Got, event: dict[str, Any]) -> None:
    match event["type"].removeprefix("response."):
        case "created":
            got.id = event["response"]["id"]
        case "output_text.delta":
            got.text += event["delta"]
        case "completed" | "incomplete":
            streamed, got.text = got.text, ""
            whole_response(got, event["response"])
            assert got.text == streamed, "the deltas make up the whole"
            got.ended = True
        case "failed":
            got.error = event["response"]["error"]["code"]


def whole_chat(got: Got, document: dict[str, Any]) -> None:
    (choice,) = document["choices"]
    got.id, got.stop, got.usage = document["id"], choice["finish_reason"], document["usage"]
    got.text = choice["message"]["content"]
    got.thinking = choice["message"].get("reasoning_content", "")
    got.tools = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in choice["message"].get("tool_calls", [])
    ]


def chat_event(got: Got, event: dict[str, Any]) -> None:
    if "error" in event:
        got.error = event["error"]["type"]
        return
    got.id = event["id"]
    (choice,) = event["choices"]
    got.text += choice["delta"].get("content", "")
    got.thinking += choice["delta"].get("reasoning_content", "")
    for call in choice["delta"].get("tool_calls", []):
        if "id" in call:
            got.tools.append((call["id"], call["function"]["name"], ""))
        call_id, name, sent = got.tools[call["index"]]
        got.tools[call["index"]] = (call_id, name, sent + call["function"]["arguments"])
    if choice["finish_reason"]:
        got.stop, got.usage = choice["finish_reason"], event["usage"]
        got.tools = [(call_id, name, json.loads(sent)) for call_id, name, sent in got.tools]


WHOLE = {"messages": whole_message, "responses": whole_response, "chat": whole_chat}
EVENT = {"messages": message_event, "responses": response_event, "chat": chat_event}


def counted(protocol: str, usage: Mapping[str, Any]) -> Usage:
    """The counts of an answer in the ledger's terms."""
    if protocol == "messages":
        detail = usage["output_tokens_details"]["thinking_tokens"]
        assert (
            usage["cache_creation"]["ephemeral_5m_input_tokens"]
            == (usage["cache_creation_input_tokens"])
        )
        return Usage(
            usage["input_tokens"],
            usage["cache_read_input_tokens"],
            usage["cache_creation_input_tokens"],
            usage["output_tokens"],
            detail,
        )
    sent = usage["prompt_tokens"] if protocol == "chat" else usage["input_tokens"]
    out = usage["completion_tokens"] if protocol == "chat" else usage["output_tokens"]
    part = "prompt_tokens_details" if protocol == "chat" else "input_tokens_details"
    made = "completion_tokens_details" if protocol == "chat" else "output_tokens_details"
    assert usage["total_tokens"] == sent + out
    read, written = usage[part]["cached_tokens"], usage[part].get("cache_write_tokens", 0)
    return Usage(sent - read - written, read, written, out, usage[made]["reasoning_tokens"])


def request_open(server: ModelServer, protocol: str, prompt: str) -> socket.socket:
    """A connection with a request sent and nothing read."""
    data = json.dumps(body_of(protocol, prompt)).encode()
    head = f"POST {PATHS[protocol]} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(head.encode() + data)
    return connection
