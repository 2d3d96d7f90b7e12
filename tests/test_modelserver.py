"""The scripted model server, over real loopback sockets, in each of its three protocols."""

import gzip
import http.client
import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from modelclient import (
    PATHS,
    Got,
    ask,
    body_of,
    counted,
    message,
    post,
    request_open,
    scripted,
    understood,
)

from hub.modelserver import ModelServer
from hub.scripts import (
    FINAL_ANSWER,
    SCRIPTS,
    Act,
    Before,
    HttpError,
    Pause,
    Stop,
    Text,
    Usage,
    find_directive,
)
from hub.wire.ledger import LedgerEntry
from hub.wire.play import usage_of

USAGE = Usage(11, 22, 33, 44, 5)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def ended(entries: Any) -> bool:
    return bool(entries) and all(entry.ended != "open" for entry in entries)


@pytest.fixture(params=list(PATHS))
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("stream", [True, False])
def test_text_and_ledger(server: ModelServer, protocol: str, stream: bool) -> None:
    got = ask(server, protocol, "What is it? [[answer]]", stream=stream)
    (entry,) = server.ledger
    assert (got.text, got.ended, got.tools) == (FINAL_ANSWER, True, [])
    assert got.stop == {"messages": "end_turn", "responses": "completed", "chat": "stop"}[protocol]
    assert got.id == entry.response_id
    assert got.headers["request-id"] == entry.request_id
    assert counted(protocol, got.usage) == entry.usage
    assert (entry.n, entry.protocol, entry.path) == (1, protocol, PATHS[protocol])
    assert (entry.model, entry.purpose, entry.script, entry.step) == ("m-1", "turn", "answer", 0)
    assert (entry.prompt, entry.answer) == ("What is it? [[answer]]", FINAL_ANSWER)
    assert (entry.status, entry.ended) == (200, "complete")


def test_thinking(server: ModelServer, protocol: str) -> None:
    for stream in (True, False):
        got = ask(server, protocol, "[[thinking]]", stream=stream)
        assert (got.thinking, got.text) == ("Let me think about it.", FINAL_ANSWER)
    assert [entry.thinking for entry in server.ledger] == ["Let me think about it."] * 2


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_then_the_answer(server: ModelServer, protocol: str, stream: bool) -> None:
    first = ask(server, protocol, "[[tool]]", stream=stream)
    ((call_id, name, arguments),) = first.tools
    assert (name, arguments["command"]) == ("bash", "echo hi from tool")
    assert first.text == "I will run a command."
    assert server.ledger[0].tools == [{"id": call_id, "name": "bash", "args": arguments}]
    second = ask(server, protocol, "[[tool]]", stream=stream, answers=1)
    assert (second.text, second.tools) == (FINAL_ANSWER, [])
    assert [entry.step for entry in server.ledger] == [0, 1]


def test_parallel_tools_have_ids_of_their_own(server: ModelServer, protocol: str) -> None:
    got = ask(server, protocol, "[[parallel]]")
    assert len({call_id for call_id, _, _ in got.tools}) == 3
    assert [arguments["command"] for _, _, arguments in got.tools] == [
        "sleep 1; echo one",
        "echo two",
        "sleep 0.3; echo three",
    ]


def test_multi_steps(server: ModelServer, protocol: str) -> None:
    said = [ask(server, protocol, "[[multi]]", answers=step).text for step in range(5)]
    assert said == ["Step 1.", "Step 2.", "Step 3.", FINAL_ANSWER, FINAL_ANSWER]


def test_waiting_is_no_step_where_nothing_waits(server: ModelServer, protocol: str) -> None:
    assert ask(server, protocol, "[[subagent]]", answers=1).text == FINAL_ANSWER


@pytest.mark.parametrize("stream", [True, False])
def test_http_error(server: ModelServer, protocol: str, stream: bool) -> None:
    got = ask(server, protocol, "[[http:401:odd_error]]", stream=stream)
    (entry,) = server.ledger
    assert (got.status, got.error) == (401, "odd_error")
    assert (entry.status, entry.ended, entry.usage) == (401, "error", None)
    assert (entry.script, entry.response_id) == ("http:401:odd_error", "")


def test_http_error_has_the_protocols_type_and_headers(protocol: str) -> None:
    with scripted((HttpError(429, retry_after=7),)) as server:
        got = ask(server, protocol, "[[own]]")
    assert got.headers["retry-after"] == "7"
    expected = "rate_limit_error" if protocol == "messages" else "rate_limit_exceeded"
    assert got.error == expected


def test_an_error_for_some_tries_of_each_prompt(server: ModelServer, protocol: str) -> None:
    for prompt in ("One [[once:529:2]]", "Two [[once:529:2]]"):
        tries = [ask(server, protocol, prompt) for _ in range(3)]
        assert [got.status for got in tries] == [529, 529, 200]
        assert tries[-1].text == FINAL_ANSWER


def test_cut(server: ModelServer, protocol: str) -> None:
    got = ask(server, protocol, "[[cut]]")
    (entry,) = server.ledger
    assert (got.text, got.ended, got.usage) == ("Partial text that stops", False, {})
    assert (entry.ended, entry.usage, entry.answer) == ("cut", None, "Partial text that stops")
    assert ask(server, protocol, "[[cut]]", stream=False).ended


def test_stream_error(server: ModelServer, protocol: str) -> None:
    got = ask(server, protocol, "[[streamerror]]")
    assert (got.error, got.ended) == ("overloaded_error", False)
    assert server.ledger[0].ended == "error"
    assert ask(server, protocol, "[[streamerror]]", stream=False).ended


def test_silent(server: ModelServer, protocol: str) -> None:
    connection = request_open(server, protocol, "[[silent]]")
    server.wait(lambda entries: entries and entries[0].prompt)
    connection.close()
    (entry,) = server.wait(ended, timeout=5)
    assert (entry.ended, entry.answer, entry.usage) == ("silent", "", None)


def test_hold_sends_nothing_until_its_gate_opens(server: ModelServer, protocol: str) -> None:
    answers: list[Got] = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, protocol, "[[hold:g1]]")))
    thread.start()
    entry = server.holding("g1", timeout=5)
    assert (entry.script, entry.ended, answers) == ("hold:g1", "open", [])
    server.release("g1")
    thread.join()
    assert answers[0].text == FINAL_ANSWER
    assert ask(server, protocol, "[[hold:g1]]").text == FINAL_ANSWER, "an open gate stays open"


def test_a_stream_held_half_way(server: ModelServer, protocol: str) -> None:
    with request_open(server, protocol, "[[slowstream]]") as connection:
        assert server.holding("slowstream", timeout=5).answer == "The answer "
        got = b""
        while b'"er "' not in got:
            got += connection.recv(65536)
        assert b'"is"' not in got
        server.release("slowstream")
        while data := connection.recv(65536):
            got += data
    head, _, rest = got.partition(b"\r\n\r\n")
    assert b"text/event-stream" in head
    whole = understood(protocol, 200, {"content-type": "text/event-stream"}, rest)
    assert (whole.text, whole.ended) == (FINAL_ANSWER, True)


def test_a_client_that_leaves_is_noticed_at_the_gate(server: ModelServer, protocol: str) -> None:
    connection = request_open(server, protocol, "[[slowstream]]")
    server.holding("slowstream", timeout=5)
    connection.close()
    (entry,) = server.wait(ended, timeout=5)
    assert (entry.ended, entry.usage, entry.answer) == ("aborted", None, "The answer ")


@pytest.mark.parametrize("act", [Before(600), Pause(600), Text("a b c", pause=600)])
def test_a_client_that_leaves_a_slow_answer(protocol: str, act: Act) -> None:
    with scripted((act, Text("end"))) as server:
        connection = request_open(server, protocol, "[[own]]")
        server.wait(lambda entries: entries and entries[0].response_id)
        connection.close()
        assert [entry.ended for entry in server.wait(ended, timeout=5)] == ["aborted"]


def test_pauses_end(protocol: str) -> None:
    with scripted((Before(0.01), Text("a b", pause=0.01), Pause(0.01), Text(" c"))) as server:
        assert ask(server, protocol, "[[own]]").text == "a b c"


def test_stopping_the_server_ends_what_is_open(protocol: str) -> None:
    with ModelServer() as server:
        connection = request_open(server, protocol, "[[hold:never]]")
        server.holding("never", timeout=5)
    assert [entry.ended for entry in server.ledger] == ["aborted"]
    assert connection.recv(1) == b""
    connection.close()


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        (
            "maxtokens",
            {"messages": "max_tokens", "responses": "max_output_tokens", "chat": "length"},
        ),
        (
            "refusal",
            {"messages": "refusal", "responses": "content_filter", "chat": "content_filter"},
        ),
    ],
)
def test_stop_reasons_stay(
    server: ModelServer, protocol: str, name: str, stops: Mapping[str, str]
) -> None:
    for answers in range(3):
        assert ask(server, protocol, f"[[{name}]]", answers=answers).stop == stops[protocol]


def test_any_stop_reason(protocol: str) -> None:
    with scripted((Text("x"), Stop("pause_turn"))) as server:
        got = ask(server, protocol, "[[own]]")
    assert (
        got.stop == {"messages": "pause_turn", "responses": "completed", "chat": "stop"}[protocol]
    )


@pytest.mark.parametrize("stream", [True, False])
def test_empty_answer(server: ModelServer, protocol: str, stream: bool) -> None:
    got = ask(server, protocol, "[[emptyanswer]]", stream=stream, answers=2)
    assert (got.text, got.tools, got.ended) == ("", [], True)
    assert server.ledger[0].ended == "complete"


def test_usage_as_scripted(protocol: str) -> None:
    with scripted((USAGE, Text("x"))) as server:
        got = ask(server, protocol, "[[own]]")
        expected = Usage(11, 22, 0, 44, 5) if protocol == "chat" else USAGE
        assert counted(protocol, got.usage) == server.ledger[0].usage == expected


def test_usage_by_directive(server: ModelServer) -> None:
    ask(server, "messages", "[[usage:1:2:3:4]]")
    assert server.ledger[0].usage == Usage(1, 2, 3, 4, 0)


def test_usages_differ_and_so_do_their_sums() -> None:
    assert len({usage_of(n) for n in range(1, 3000)}) == 2999
    seen: set[tuple[int, ...]] = set()
    for size in (1, 2, 3):
        for subset in itertools.combinations(range(1, 41), size):
            counts = [usage_of(n) for n in subset]
            total = (
                sum(usage.input for usage in counts),
                sum(usage.cache_read for usage in counts),
                sum(usage.output for usage in counts),
            )
            assert total not in seen
            seen.add(total)


def test_awkward_text_arrives_as_it_is(server: ModelServer, protocol: str) -> None:
    for stream in (True, False):
        got = ask(server, protocol, "[[unicode]]", stream=stream)
        for part in ("你好 🎉", "\u2028", "\x85", "\ud83d lone", '"quote" \\'):
            assert part in got.text


def test_long_answers(server: ModelServer, protocol: str) -> None:
    got = ask(server, protocol, "[[long:200001]]")
    assert len(got.text) == 200001
    assert got.text == server.ledger[0].answer


@pytest.mark.parametrize("frame", ["dsml", "epse"])
def test_leaked_frames(server: ModelServer, protocol: str, frame: str) -> None:
    assert frame.upper() in ask(server, protocol, f"[[leak:{frame}]]").text


@pytest.mark.parametrize("name", sorted(set(SCRIPTS) - {"hold", "silent", "slowstream"}))
def test_every_script_answers(server: ModelServer, protocol: str, name: str) -> None:
    for answers in range(5):
        got = ask(server, protocol, f"[[{name}]]", answers=answers)
        entry = server.ledger[-1]
        assert entry.ended == {"http": "error", "cut": "cut", "streamerror": "error"}.get(
            name, "error" if got.status == 529 else "complete"
        )


@pytest.mark.parametrize("directive", ["nosuch", "http:many", "leak:odd"])
def test_a_directive_that_makes_no_sense_is_told(
    server: ModelServer, protocol: str, directive: str
) -> None:
    assert directive.partition(":")[0] in ask(server, protocol, f"[[{directive}]]").text


def test_the_last_directive_wins_and_context_does_not_count(
    server: ModelServer, protocol: str
) -> None:
    body = body_of(protocol, "First [[tool]]", answers=2)
    history = body["input"] if protocol == "responses" else body["messages"]
    injected = "<system-reminder>\nsaid: [[http:500]]\n</system-reminder>"
    history += [message("user", "Second [[multi]] please"), message("user", injected)]
    status, headers, data = post(server, PATHS[protocol], body)
    got = understood(protocol, status, headers, data)
    assert got.text == "Step 1."
    assert server.ledger[0].prompt == "Second [[multi]] please"


def test_a_prompt_without_a_directive(server: ModelServer, protocol: str) -> None:
    assert ask(server, protocol, "Hello").text == FINAL_ANSWER
    assert server.ledger[0].prompt == "Hello"


def test_directives() -> None:
    found = find_directive("a [[one]] b [[two:x:y z]] c")
    assert found is not None
    assert (found.name, found.args) == ("two", ("x", "y z"))
    assert find_directive("[[Not one]] [not]") is None


def test_relative_paths_are_below_the_working_directory(server: ModelServer) -> None:
    told = "Primary working directory: /some where/w\nother: x"
    got = ask(server, "messages", "[[write]]", agent="claude", system=told)
    assert got.tools[0][2]["file_path"] == "/some where/w/new.txt"


SESSIONS = [
    ("messages", {"x-claude-code-session-id": "s1"}, {}),
    ("messages", {"x-deepseek-harness-session-id": "s1"}, {}),
    ("messages", {}, {"metadata": {"user_id": json.dumps({"session_id": "s1"})}}),
    ("messages", {}, {"metadata": {"user_id": "user_x_account__session_s1"}}),
    ("responses", {"thread-id": "s1", "session-id": "root"}, {}),
    ("responses", {"session_id": "s1"}, {}),
    ("responses", {}, {"client_metadata": {"thread_id": "s1"}}),
    ("responses", {}, {"prompt_cache_key": "s1"}),
    ("chat", {"x-deepseek-harness-session-id": "s1"}, {}),
]


@pytest.mark.parametrize(("protocol_", "headers", "more"), SESSIONS)
def test_native_session_ids(
    server: ModelServer, protocol_: str, headers: Mapping[str, str], more: Mapping[str, Any]
) -> None:
    post(server, PATHS[protocol_], body_of(protocol_, "x", **more), headers)
    assert server.ledger[0].session == "s1"


def test_titles_are_side_requests(server: ModelServer) -> None:
    plain: dict[str, Any] = {"system": "Create a concise title.", "tools": []}
    assert ask(server, "messages", "From this JSON: [[tool]]", **plain).text == "Mock title"
    asked: dict[str, Any] = {"system": "Answer with a title, as JSON.", "tools": []}
    assert json.loads(ask(server, "messages", "x", **asked).text) == {"title": "Mock title"}
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "new": {"type": "boolean"},
            "n": {"type": "integer"},
            "tags": {"type": "array"},
        },
    }
    filled = {"title": "Mock title", "kind": "a", "new": True, "n": 1, "tags": []}
    wanted = {"type": "json_schema", "schema": schema}
    for protocol, more in (
        ("messages", {"output_config": {"format": wanted}}),
        ("responses", {"text": {"format": wanted}}),
        ("chat", {"response_format": {"type": "json_schema", "json_schema": wanted}}),
    ):
        assert json.loads(ask(server, protocol, "x", tools=[], **more).text) == filled
    assert {entry.purpose for entry in server.ledger} == {"title"}


def test_auto_mode_lets_every_call_pass(server: ModelServer) -> None:
    got = ask(server, "messages", "[[tool]] Begin your answer with <block>.", tools=[])
    assert (got.text, server.ledger[0].purpose) == ("<block>no</block>", "other")


def test_another_schema_is_no_title(server: ModelServer) -> None:
    wanted = {"type": "json_schema", "schema": {"properties": {"ok": {}}, "type": "object"}}
    got = ask(server, "messages", "x", tools=[], output_config={"format": wanted})
    assert (json.loads(got.text), server.ledger[0].purpose) == ({"ok": "Mock title"}, "other")


def test_compaction_is_a_side_request(server: ModelServer, protocol: str) -> None:
    got = ask(server, protocol, "Your task is to create a detailed summary of [[tool]].")
    assert "<summary>" in got.text
    assert server.ledger[0].purpose == "other"


def test_the_other_paths(server: ModelServer) -> None:
    status, _, data = post(server, "/v1/messages/count_tokens", {})
    assert (status, json.loads(data)) == (200, {"input_tokens": 100})
    status, _, data = post(server, "/v1/responses/compact", {})
    assert json.loads(data)["output"][0]["type"] == "compaction"
    assert post(server, "/v1/nothing", {})[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for method, path, expected in (
        ("GET", "/v1/models", 200),
        ("GET", "/other", 404),
        ("HEAD", "/", 200),
        ("POST", "/v1/messages", 400),
    ):
        connection.request(method, path, b"[no json" if method == "POST" else None)
        response = connection.getresponse()
        response.read()
        assert response.status == expected
    connection.close()
    assert [entry.purpose for entry in server.ledger] == ["other"] * 6
    assert [entry.status for entry in server.ledger] == [200, 200, 404, 200, 404, 400]
    assert server.ledger[1].usage == usage_of(2)


def test_chunked_and_compressed_requests(server: ModelServer) -> None:
    data = json.dumps(body_of("messages", "[[answer]]")).encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request(
        "POST",
        "/v1/messages",
        iter([data[:10], data[10:]]),
        {"transfer-encoding": "chunked"},
        encode_chunked=True,
    )
    assert b"message_stop" in connection.getresponse().read()
    connection.request("POST", "/v1/messages", gzip.compress(data), {"content-encoding": "gzip"})
    assert b"message_stop" in connection.getresponse().read()
    connection.close()


def test_the_ledger_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with ModelServer(ledger_path=path) as server:
        ask(server, "messages", "[[unicode]]")
        ask(server, "chat", "[[http:500]]")
        entries = server.ledger
    lines = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert [line["n"] for line in lines] == [1, 2]
    assert lines[0]["usage"]["input"] == usage_of(1).input
    assert set(lines[0]) == set(LedgerEntry.__slots__)
    assert lines[0]["answer"] == entries[0].answer


def test_waiting_gives_up(server: ModelServer) -> None:
    with pytest.raises(TimeoutError):
        server.wait(lambda entries: entries, timeout=0.01)
    with pytest.raises(TimeoutError):
        server.holding("none", timeout=0.01)


def test_only_loopback_is_bound(server: ModelServer) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)


def test_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    argv = [sys.executable, "-m", "hub.modelserver", "--port", "0", "--ledger", str(path)]
    root = Path(__file__).parents[1]
    with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = urlsplit(process.stdout.readline().strip())
        assert (url.scheme, url.hostname) == ("http", "127.0.0.1")
        connection = http.client.HTTPConnection("127.0.0.1", url.port or 0, timeout=30)
        connection.request("POST", "/v1/messages", json.dumps(body_of("messages", "[[answer]]")))
        assert b"message_stop" in connection.getresponse().read()
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert json.loads(path.read_text("ascii"))["answer"] == FINAL_ANSWER
