"""The model server's acts as tool calls, in the words of each agent's tools."""

import json
from typing import Any

import pytest
from modelclient import AGENTS, PATHS, Got, ask, message, post, scripted, whole_response

from hub.scripts import (
    FINAL_ANSWER,
    Act,
    Ask,
    Call,
    CloseAgents,
    Plan,
    Read,
    Shell,
    Subagent,
    WaitAgents,
    Write,
)


@pytest.fixture(params=list(PATHS))
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


ACTS: list[tuple[Act, dict[str, tuple[str, Any]]]] = [
    (
        Shell("ls", escalate=True),
        {
            "claude": ("Bash", {"command": "ls", "description": "Run it"}),
            "dsh": (
                "bash",
                {
                    "command": "ls",
                    "description": "Run it",
                    "sandbox_permissions": "danger-full-access",
                    "justification": "The script asks for it.",
                },
            ),
            "codex": (
                "exec_command",
                {
                    "cmd": "ls",
                    "yield_time_ms": 30000,
                    "sandbox_permissions": "require_escalated",
                    "justification": "The script asks for it.",
                },
            ),
        },
    ),
    (
        Shell("ls", background=True),
        {
            "claude": (
                "Bash",
                {"command": "ls", "description": "Run it", "run_in_background": True},
            ),
            "codex": ("exec_command", {"cmd": "ls", "yield_time_ms": 250}),
        },
    ),
    (
        Read("a.txt"),
        {
            "claude": ("Read", {"file_path": "a.txt"}),
            "dsh": ("read", {"file_path": "a.txt"}),
            "codex": ("exec_command", {"cmd": "cat a.txt", "yield_time_ms": 30000}),
        },
    ),
    (
        Write("a.txt", "x\n"),
        {
            "claude": ("Write", {"file_path": "a.txt", "content": "x\n"}),
            "dsh": ("write", {"file_path": "a.txt", "content": "x\n"}),
            "codex": ("exec_command", {"cmd": "printf %s 'x\n' > a.txt", "yield_time_ms": 30000}),
        },
    ),
    (
        Plan("# P"),
        {"claude": ("ExitPlanMode", {"plan": "# P"}), "dsh": ("exit_plan_mode", {"plan": "# P"})},
    ),
    (
        Subagent("Count it", "Go"),
        {
            "claude": (
                "Agent",
                {"description": "Count it", "prompt": "Go", "subagent_type": "general-purpose"},
            ),
            "dsh": ("subagent", {"description": "Count it", "prompt": "Go"}),
        },
    ),
    (Call("odd", {"a": [1]}), {agent: ("odd", {"a": [1]}) for agent in AGENTS}),
]


@pytest.mark.parametrize(
    ("act", "agent", "expected"),
    [(act, agent, call) for act, calls in ACTS for agent, call in calls.items()],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_tools_in_each_agents_words(
    protocol: str, act: Act, agent: str, expected: tuple[str, Any]
) -> None:
    with scripted((act,)) as server:
        got = ask(server, protocol, "[[own]]", agent=agent)
    assert [(name, arguments) for _, name, arguments in got.tools] == [expected]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude", "AskUserQuestion"),
        ("dsh", "ask_user_question"),
        ("codex", "request_user_input"),
    ],
)
def test_ask(protocol: str, agent: str, name: str) -> None:
    with scripted((Ask("Which?", ("Red", "Blue")),)) as server:
        got = ask(server, protocol, "[[own]]", agent=agent)
    ((_, called, arguments),) = got.tools
    (question,) = arguments["questions"]
    assert (called, question["question"]) == (name, "Which?")
    assert [option["label"] for option in question["options"]] == ["Red", "Blue"]


def test_a_plan_is_text_to_codex(protocol: str) -> None:
    with scripted((Plan("# P"),)) as server:
        got = ask(server, protocol, "[[own]]", agent="codex")
    assert got.text == "\n<proposed_plan>\n# P\n</proposed_plan>\n"


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "function", "name": "shell_command"}, {"command": "ls"}),
        (
            {"type": "function", "name": "shell"},
            {"command": ["bash", "-lc", "ls"], "timeout_ms": 600000},
        ),
        (
            {"type": "local_shell"},
            {"type": "exec", "command": ["bash", "-lc", "ls"], "timeout_ms": 600000, "env": {}},
        ),
        (
            {"type": "custom", "name": "exec"},
            (
                'const result = await tools.exec_command({"cmd": "ls", "yield_time_ms": 30000}); '
                "text(result.output ?? JSON.stringify(result));"
            ),
        ),
    ],
)
def test_shells_of_older_and_newer_codex(tool: dict[str, Any], expected: Any) -> None:
    with scripted((Shell("ls"),)) as server:
        got = ask(server, "responses", "[[own]]", tools=[tool])
    ((_, name, arguments),) = got.tools
    assert (name, arguments) == (tool.get("name", "local_shell"), expected)


@pytest.mark.parametrize("kind", ["custom", "function"])
def test_codex_writes_by_patch(kind: str) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n+y\n*** End Patch\n"
    with scripted((Write("a.txt", "x\ny\n"),)) as server:
        got = ask(server, "responses", "[[own]]", tools=[{"type": kind, "name": "apply_patch"}])
        code = ask(server, "responses", "[[own]]", tools=[{"type": "custom", "name": "exec"}])
    assert got.tools[0][2] == (patch if kind == "custom" else {"input": patch})
    assert f"tools.apply_patch({json.dumps(patch)})" in code.tools[0][2]


def test_codex_waits_for_its_subagents_and_closes_them() -> None:
    spawn = {"type": "function", "name": "spawn_agent"}
    wait = {"name": "wait_agent", "parameters": {"properties": {"targets": {}}}}
    tools = [
        {"type": "namespace", "name": "many", "tools": [spawn, wait, {"name": "close_agent"}]},
    ]
    steps = ((Subagent("Count it", "Go"),), (WaitAgents(),), (CloseAgents(),))
    history = [message("user", "[[own]]")]
    with scripted(*steps) as server:
        body = {"stream": False, "tools": tools, "input": history}
        first = json.loads(post(server, PATHS["responses"], body)[2])["output"][0]
        assert (first["name"], first["namespace"]) == ("spawn_agent", "many")
        answer = json.dumps({"agent_id": "a-1"})
        out = {"type": "function_call_output", "call_id": first["call_id"], "output": answer}
        history += [first, out]
        second = json.loads(post(server, PATHS["responses"], body)[2])["output"][0]
        assert json.loads(second["arguments"])["targets"] == ["a-1"]
        history += [second, {**out, "call_id": second["call_id"], "output": "{}"}]
        third = json.loads(post(server, PATHS["responses"], body)[2])["output"][0]
        assert json.loads(third["arguments"]) == {"target": "a-1"}
        history += [third, {**out, "call_id": third["call_id"], "output": "{}"}]
        got = Got()
        whole_response(got, json.loads(post(server, PATHS["responses"], body)[2]))
        assert got.text == FINAL_ANSWER


@pytest.mark.parametrize("background", [True, False])
def test_claude_runs_a_subagent_in_the_background_unless_told(background: bool) -> None:
    schema: dict[str, Any] = {"properties": {"prompt": {}, "run_in_background": {}}}
    offered = [{"name": "Agent", "input_schema": schema}, {"name": "Bash"}]
    with scripted((Subagent("Count it", "Go", background),)) as server:
        got = ask(server, "messages", "[[own]]", tools=offered)
    assert got.tools[0][2]["run_in_background"] is background
