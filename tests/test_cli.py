"""The commands as a person or a script meets them: filters, keys, exit codes, safe output."""

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import Home, agenthub_argv
from conftest import CASES, FIXTURES

from hub.paths import SCHEMA

SCENARIOS = frozenset(
    "answer tool parallel failtool multiturn subagent resume interrupt kill-in-tool kill-in-stream"
    " api-error retry permission question cjk working".split()
)
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The scenarios that every agent was recorded in, in one home."""
    target = tmp_path_factory.mktemp("cli") / "home"
    for case in CASES:
        if case.name in SCENARIOS:
            shutil.copytree(case / "root", target, dirs_exist_ok=True)
    return Home(target)


def test_an_empty_home_says_where_it_looked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    ran = home.run()
    assert ran.returncode == 0
    said = ran.stdout.decode()
    assert "No sessions yet" in said
    for folder in (".claude", ".codex", ".dsh"):
        assert f"{tmp_path}/{folder}" in said
    assert "agenthub" in said.splitlines()[-1]
    assert home.rows() == []


def test_alone_is_the_list(home: Home) -> None:
    def bare(out: bytes) -> list[bytes]:
        return [line.rsplit(b" ", 1)[0].rstrip() for line in out.splitlines()]

    assert bare(home.run().stdout) == bare(home.run("ls").stdout)


def test_json_is_one_document_and_has_the_filters_of_the_table(home: Home) -> None:
    rows = home.rows()
    assert {row["agent"] for row in rows} == {"claude", "codex", "dsh"}
    assert {row["agent"] for row in home.rows("--agent", "dsh")} == {"dsh"}
    assert {row["state"] for row in home.rows("--state", "ended")} == {"ended"}
    assert len(home.rows("--limit", "3")) == 3
    assert home.rows("--limit", "3") == rows[:3]
    cjk = home.rows("--cwd", "/home/dev/项目 一号 🎉")
    assert len(cjk) == 3
    assert home.rows("--cwd", "/home/dev/proje") == []
    assert home.rows("--since", "2100-01-01") == []
    assert home.rows("--since", "2026-11-01") == rows
    table = home.run("ls", "--all", "--tree").stdout.decode().splitlines()
    assert len(table) == 1 + len(rows)


def test_order_is_live_then_newest_then_key(home: Home) -> None:
    rows = home.rows()
    order = sorted(rows, key=lambda row: row["key"])
    order.sort(key=lambda row: row["updated_at"], reverse=True)
    order.sort(key=lambda row: row["live"] is not True)
    assert [row["key"] for row in rows] == [row["key"] for row in order]


def test_sub_agents_are_folded_with_a_count(home: Home) -> None:
    subs = [row for row in home.rows() if row["relation"] == "subagent"]
    assert len(subs) == 3
    folded = home.run("ls", "--all").stdout.decode()
    assert folded.count("(+1) ") == len(subs)
    tree = home.run("ls", "--all", "--tree").stdout.decode()
    assert tree.count("└ ") == len(subs)
    for row in subs:
        parent = next(one for one in home.rows() if one["key"] == row["parent"])
        usage, whole = parent["usage"], parent["usage_with_children"]
        assert whole["output"] == usage["output"] + row["usage"]["output"]


@pytest.mark.parametrize("columns", ["80", "100", "200"])
def test_the_table_fits(home: Home, columns: str) -> None:
    from hub.text import width  # noqa: PLC0415

    lines = home.run("ls", "--all", "--tree", COLUMNS=columns).stdout.decode().splitlines()
    assert max(width(line) for line in lines) <= int(columns)
    assert any("项目" in line for line in lines)


def test_quick_has_no_counts_and_says_so(home: Home, tmp_path: Path) -> None:
    fresh = Home(home.path)
    rows = fresh.rows("--quick", AGENTHUB_HOME=str(tmp_path / "fresh"))
    exact = {row["key"]: row for row in home.rows()}
    assert {row["key"] for row in rows} == set(exact)
    for row in rows:
        assert row["complete"] is False
        for name in ("usage", "turns", "prompts", "tool_calls"):
            assert row[name] is None
        for name in ("state", "outcome", "title", "cwd", "model", "last_answer"):
            assert row[name] == exact[row["key"]][name], name


def test_keys_and_prefixes(home: Home) -> None:
    key = home.rows("--agent", "claude")[0]["key"]
    agent, _, native = key.partition(":")
    for word in (key, native, native[:12], f"{agent}:{native[:12]}"):
        assert home.json("explain", word)["key"] == key
    assert home.run("show", "claude:").returncode == 1
    many = home.run("show", "codex:01a2")
    assert many.returncode == 2
    assert many.stderr.decode().count("codex:01a2") > 2
    none = home.run("show", "ffff-none")
    assert none.returncode == 1
    assert b"no session fits" in none.stderr
    assert home.run("show", native[:3]).returncode == 1


def test_usage_errors_exit_2(home: Home) -> None:
    unknown = home.run("ls", "--agent", "cursor")
    assert unknown.returncode == 2
    assert b"claude, codex, dsh" in unknown.stderr
    assert home.run("ls", "--state", "busy").returncode == 2
    assert home.run("ls", "--since", "yesterday").returncode == 2
    assert home.run("nonsense").returncode == 2
    for odd in ("²d", f"{'9' * 5000}d", f"{'9' * 400}d", "9999-12-31T23:59-23:00", "0001-01-01"):
        ran = home.run("ls", "--since", odd)
        assert ran.returncode in {0, 2}, odd
        assert b"Traceback" not in ran.stderr
    assert home.run("show", few(home)[0]["key"], "--raw", "1", "--tail", "1").returncode == 2


def test_a_limit_is_one_of_rows(home: Home) -> None:
    """Sub-agents that are folded away take none, and are counted whatever the limit."""
    whole = home.run("ls", "--all").stdout.splitlines()
    assert any(b"(+" in line for line in whole)
    for limit in range(1, len(whole)):
        some = home.run("ls", "--all", "--limit", str(limit)).stdout.splitlines()
        assert [line.split()[:3] for line in some[1:]] == [
            line.split()[:3] for line in whole[1 : limit + 1]
        ]
        assert sum(b"(+" in line for line in some) == sum(b"(+" in x for x in whole[: limit + 1])


def test_who_names_a_time_means_that_one(home: Home) -> None:
    """The seven days bound only a list that names no other time."""
    rows = home.rows()
    since = [row["key"] for row in home.json("ls", "--since", "2000-01-01")]
    assert since == [row["key"] for row in rows]
    zoned = [row["updated_at"] for row in rows if row["live"] is not True]
    newest = max(zoned)
    local = newest[:19]  # no zone: of this machine, here 8 hours before UTC
    told = home.json("ls", "--since", local, TZ="Etc/GMT+8")
    assert all(row["live"] is True for row in told)
    assert home.json("ls", "--since", f"{local}Z", TZ="Etc/GMT+8") != []


def test_states_are_found_by_the_word_that_the_table_has(home: Home) -> None:
    rows = home.rows()
    for word in ("lost", "failed", "interrupted"):
        wanted = [row["key"] for row in rows if row["outcome"] == word]
        assert wanted
        assert [row["key"] for row in home.rows("--state", word)] == wanted


def few(home: Home) -> list[dict[str, Any]]:
    """Some sessions of every agent: each call of the command costs a moment."""
    rows = home.rows()
    return [row for agent in ("claude", "codex", "dsh") for row in rows if row["agent"] == agent][
        ::6
    ]


def test_show_tail_and_raw(home: Home) -> None:
    for row in few(home):
        key = row["key"]
        events = home.events(key)
        assert [event["n"] for event in events] == list(range(len(events)))
        tail = home.json("show", key, "--tail", "3")
        assert tail == events[-3:]
        (line,) = home.run("show", key, "--raw", "1").stdout.splitlines()
        json.loads(line)
    key = few(home)[0]["key"]
    assert home.json("show", key, "--tail", "0") == []
    lines = home.json("show", key, "--raw", "3")
    assert [json.loads(line) for line in lines]
    assert b"\x1b" not in on_terminal(home, "show", key, "--raw", "3")


@pytest.mark.parametrize("agent", ["claude", "codex", "dsh"])
def test_show_says_what_is_asked(home: Home, agent: str) -> None:
    (row,) = [row for row in home.rows("--agent", agent) if row["title"] and (
        "question" in str(row["activity"]) or row["waiting_for"] == "question"
        or b"Which colour?" in home.run("show", row["key"]).stdout)][:1]  # fmt: skip
    said = home.run("show", row["key"]).stdout.decode()
    (line,) = [line for line in said.splitlines() if line.endswith(": Which colour?")]
    assert line.startswith("  * ")


def test_explain_gives_evidence_with_its_place(home: Home) -> None:
    for row in few(home):
        told = home.json("explain", row["key"])
        assert told["state"]["value"] == row["state"]
        assert told["state"]["evidence"], row["key"]
        for one in told["state"]["evidence"]:
            if one["tier"] == "record":
                path = Path(row["root"]) / one["path"]
                assert path.is_file()
                assert one["offset"] is not None
        text = home.run("explain", row["key"]).stdout.decode()
        assert f"state: {row['state']}" in text
        assert "tokens:" in text


def test_explain_says_what_was_not_counted(home: Home) -> None:
    key = next(row["key"] for row in home.rows("--agent", "claude") if row["tool_calls"])
    rules = [one["rule"] for one in home.json("explain", key)["usage"]["dropped"]]
    assert rules == ["a record repeats the response it belongs to"]


def test_doctor(home: Home) -> None:
    told = home.json("doctor")
    assert set(told["agents"]) == {"claude", "codex", "dsh"}
    for agent in told["agents"].values():
        assert agent["sessions"] > 0
        assert agent["unknown_records"] == {}, "every record of the newest CLIs is known"
        assert [root["exists"] for root in agent["roots"]].count(True) == 1
    assert told["unreadable"] == []
    assert "bubblewrap" in told["sandbox"]
    assert b"not readable: nothing" in home.run("doctor").stdout


def test_version_help_and_completion(home: Home) -> None:
    assert home.run("--version").stdout.startswith(b"agenthub ")
    for args in (("--help",), ("ls", "-h"), ("show", "--help")):
        assert b"Usage: agenthub" in home.run(*args).stdout
    for shell in ("bash", "zsh", "fish"):
        script = home.run("completion", shell)
        assert script.returncode == 0
        assert b"_AGENTHUB_COMPLETE" in script.stdout
    assert home.run("completion", "tcsh").returncode == 2


def test_completion_completes(home: Home) -> None:
    told = home.run(
        _AGENTHUB_COMPLETE="complete_bash", COMP_WORDS="agenthub ex", COMP_CWORD="1"
    ).stdout.split()
    assert told == [b"explain"]
    told = home.run(
        _AGENTHUB_COMPLETE="complete_bash", COMP_WORDS="agenthub ls --qu", COMP_CWORD="2"
    ).stdout.split()
    assert told == [b"--quick"]


def hostile(tmp_path: Path) -> Home:
    """A session whose every text tries to reach the terminal."""
    case = FIXTURES / "claude" / "answer"
    shutil.copytree(case / "root", tmp_path / "home")
    (log,) = (tmp_path / "home").rglob("projects/*/*.jsonl")
    evil = "\\u001b]0;owned\\u0007\\u001b[31mred\\u009b2J\\u202egnp\\u0000\\r\\n\\u2028end\x9b\x7f"
    text = log.read_text("utf-8").replace("The answer is 42.", evil)
    log.write_text(text.replace("What is the answer?", evil), "utf-8")
    return Home(tmp_path / "home")


def test_control_characters_never_reach_a_terminal(tmp_path: Path) -> None:
    home = hostile(tmp_path)
    key = home.rows()[0]["key"]
    assert "\x1b" in home.rows()[0]["last_answer"], "JSON keeps the text, escaped"
    for args in (
        ("ls", "--all"), ("show", key), ("explain", key), ("ls", "--all", "--json"),
        ("show", key, "--json"), ("explain", key, "--json"),
    ):  # fmt: skip
        out = home.run(*args).stdout
        assert not CONTROL.search(out), args
        assert "\u202e".encode() not in out


def test_colour_only_on_a_terminal(home: Home) -> None:
    assert b"\x1b" not in home.run("ls", "--all").stdout
    assert b"\x1b[" in on_terminal(home)
    assert b"\x1b[" not in on_terminal(home, NO_COLOR="1")


def on_terminal(home: Home, *args: str, **more: str) -> bytes:
    """What the command writes to a terminal."""
    leader, follower = pty.openpty()
    ran = subprocess.Popen(
        [*agenthub_argv(), *(args or ("ls", "--all", "--agent", "claude"))],
        env=home.env(TERM="xterm", **more),
        stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    out = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(leader)
    assert ran.wait(60) == 0
    return out


def test_a_plain_locale_and_a_closed_pipe(home: Home) -> None:
    for locale in ("C", "POSIX"):
        ran = home.run("ls", "--all", LC_ALL=locale, LANG=locale, PYTHONUTF8="0")
        assert "项目" in ran.stdout.decode("utf-8")
    shell = f"{agenthub_argv()[0]} ls --all --json | head -c 10"
    piped = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}"],
        env=home.env(),
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in piped.stderr


@pytest.mark.parametrize("args", [("ls", "--all"), ("ls", "--all", "--json"), ("doctor",)])
def test_output_that_cannot_be_written_is_said(home: Home, args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*agenthub_argv(), *args], env=home.env(), stdout=full, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr == b"agenthub: the output cannot be written: no space left on device\n"
    for closing in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
        shell = f"{agenthub_argv()[0]} {' '.join(args)} {closing}"
        closed = subprocess.run(
            ["bash", "-c", shell], env=home.env(), capture_output=True, check=False
        )
        assert closed.returncode == 0
        assert closed.stderr == b""


def test_bad_input_gets_a_sentence(tmp_path: Path) -> None:
    """A broken configuration and a cache that is a folder: said, and the list goes on."""
    case = FIXTURES / "codex" / "answer"
    shutil.copytree(case / "root", tmp_path / "home")
    home = Home(tmp_path / "home")
    own = Path(home.env()["AGENTHUB_HOME"])
    (own / f"cache-{SCHEMA}.db").mkdir(parents=True)
    ran = home.run("ls", "--all")
    assert ran.returncode == 0
    assert len(ran.stdout.splitlines()) == 2
    assert b"cache" in ran.stderr
    (own / "config.toml").write_text("[privacy]\nexlude = []\n", "utf-8")
    ran = home.run("ls")
    assert ran.returncode == 2
    assert b"config.toml" in ran.stderr
    assert b"exlude" in ran.stderr
    assert b"Traceback" not in ran.stderr
    (own / "config.toml").write_text("[agents.cluade]\nroots = []\n", "utf-8")
    ran = home.run("ls")
    assert ran.returncode == 2
    assert b"[agents.cluade] is no agent; the agents are claude, codex, dsh" in ran.stderr


def test_excluded_folders_are_never_entered(tmp_path: Path) -> None:
    case = FIXTURES / "claude" / "answer"
    shutil.copytree(case / "root", tmp_path / "home")
    home = Home(tmp_path / "home")
    assert len(home.rows()) == 1
    own = Path(home.env()["AGENTHUB_HOME"])
    (own / "config.toml").write_text('[privacy]\nexclude = ["~/.claude/projects"]\n', "utf-8")
    assert home.rows() == []
