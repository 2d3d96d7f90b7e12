"""Cases of the full depth: counts taken once, moved and compressed files, moved homes."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import Home, copy_home, texts
from test_cases import CASES, append, case, one, only_log

KINDS = ("input", "output", "cache_read", "cache_write")


def folder(name: str) -> Path:
    return next(CASES.glob(f"{name}-*"))


def usage(row: dict[str, Any], which: str = "usage") -> tuple[int, int]:
    return row[which]["input"], row[which]["output"]


def over_all(rows: list[dict[str, Any]]) -> tuple[int, int]:
    return sum(usage(row)[0] for row in rows), sum(usage(row)[1] for row in rows)


def test_09_file_rewritten_shorter(tmp_path: Path) -> None:
    home = case("09", tmp_path)
    log = only_log(home)
    key = one(home.rows())["key"]
    assert "THREE" in str(home.events(key))
    rewrite = (folder("09") / "rewrite.jsonl").read_bytes()
    with log.open("r+b") as stream:
        stream.write(rewrite)
        stream.truncate()
    row = one(home.rows())
    events = home.events(key)
    assert "THREE" not in str(events)
    assert row["last_answer"] == "REWRITTEN"
    fresh = Home(home.path)
    again = one(fresh.rows(AGENTHUB_HOME=str(tmp_path / "other")))
    assert row["usage"] == again["usage"], "the new content's, not old plus new"
    last = rewrite.splitlines()[-1]
    with log.open("ab") as stream:
        stream.write(last.replace(b'"uuid":"', b'"uuid":"f') + b"\n")
    assert len(texts(home.events(key), "answer")) == len(texts(events, "answer")) + 1


def test_11_codex_archive_move(tmp_path: Path) -> None:
    home = case("11", tmp_path)
    row = one(home.rows())
    subprocess.run(["sh", str(folder("11") / "move.sh")], cwd=tmp_path, check=True)
    moved = one(home.rows())
    assert moved["key"] == row["key"]
    assert moved["usage"] == row["usage"]
    append("11", "append-1.bin", only_log(home))
    row = one(home.rows())
    events = home.events(row["key"])
    assert texts(events, "prompt") + texts(events, "answer") == [
        "archive me", "more", "FIRST", "SECOND",
    ]  # fmt: skip


def test_12_codex_zst_rollouts(tmp_path: Path) -> None:
    home = case("12", tmp_path)
    rows = home.rows()
    assert len({row["id"] for row in rows}) == len(rows) == 3
    by_answer = {row["last_answer"]: row for row in rows}
    assert by_answer["ZST-A"]["complete"]
    assert by_answer["BOTH-2"]["turns"] == 2
    (broken,) = [row for row in rows if row["last_answer"] not in {"ZST-A", "BOTH-2"}]
    assert broken["complete"] is False
    assert broken["id"] in str(list(home.path.rglob("*.zst")))
    assert home.rows() == rows


def test_14_dsh_future_version(tmp_path: Path) -> None:
    home = case("14", tmp_path)
    rows = home.rows()
    assert {row["last_answer"] for row in rows} == {"FUT-OK", "OLD-OK"}
    assert all(row["title"] for row in rows)
    told = [note for row in rows for note in row["notes"] if "unverified" in note["code"]]
    assert len(told) <= 1
    assert home.run("ls", "--all").stderr == b""


def test_15_deleted_and_begun_anew(tmp_path: Path) -> None:
    home = case("15", tmp_path)
    assert home.rows()
    old = only_log(home)
    old.unlink()
    assert home.rows() == []
    target = old.with_name("04c3a130-e92f-5506-bd47-3c3c7fc6e75d.jsonl")
    shutil.copy(folder("15") / "new.jsonl", target)
    row = one(home.rows())
    assert "SECOND-SESSION" in str(home.events(row["key"]))


def test_16_root_created_later(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    home = Home(tmp_path / "home")
    assert home.rows() == []
    shutil.copytree(folder("16") / "late", home.path, dirs_exist_ok=True)
    assert len(home.rows()) == 3


def test_28_subagent_files(tmp_path: Path) -> None:
    home = case("28", tmp_path)
    rows = home.rows()
    (top,) = [row for row in rows if row["relation"] is None]
    assert (top["title"], top["last_answer"]) == ("Fix the login bug", "Fixed in auth.py.")
    subs = {row["id"].rpartition("/")[2]: row for row in rows if row["parent"] == top["key"]}
    assert {name: row["last_answer"] for name, row in subs.items()} == {
        "a1": "SUB-a1", "a2": "SUB-a2", "b3": "SUB-b3",
    }  # fmt: skip
    assert subs["a1"]["title"] == "desc a1"
    assert usage(top) == (250, 50)
    assert usage(top, "usage_with_children") == (3250, 350)


def test_29_one_id_in_two_places(tmp_path: Path) -> None:
    home = case("29", tmp_path)
    row = one(home.rows())
    assert row["last_answer"] == "CONTINUED"
    assert usage(row) == (257, 53)
    assert home.json("explain", row["id"])["key"] == row["key"]
    assert home.rows() == [row]


def test_31_resumed_copy_double_count(tmp_path: Path) -> None:
    home = case("31", tmp_path)
    rows = home.rows()
    assert over_all(rows) == (259, 54)
    (fork,) = [row for row in rows if row["last_answer"] == "FORKED"]
    (first,) = [row for row in rows if row is not fork]
    assert usage(fork) == (9, 4)
    assert (fork["relation"], fork["parent"]) == ("fork", first["key"])
    assert (fork["prompts"], fork["turns"], fork["tool_calls"]) == (1, 1, 0)
    dropped = home.json("explain", fork["key"])["usage"]["dropped"]
    assert [one_["owner"] for one_ in dropped if "owner" in one_] == [first["key"]]


def test_31_an_owner_that_is_deleted_stays_the_owner(tmp_path: Path) -> None:
    home = case("31", tmp_path)
    rows = home.rows()
    (fork,) = [row for row in rows if row["last_answer"] == "FORKED"]
    (first,) = [row for row in rows if row is not fork]
    next(home.path.rglob(f"{first['id']}.jsonl")).unlink()
    assert usage(one(home.rows())) == (9, 4)
    own = Path(home.env()["AGENTHUB_HOME"])
    for cache in own.glob("cache-*"):
        cache.unlink()
    assert usage(one(home.rows())) == (9, 4)


def test_32_codex_reemitted_counts(tmp_path: Path) -> None:
    row = one(case("32", tmp_path).rows())
    counts = row["usage"]
    assert counts["input"] + counts["cache_read"] + (counts["cache_write"] or 0) == 3000
    assert counts["cache_read"] == 1100
    assert (counts["output"], counts["reasoning"]) == (200, 50)


def test_34_codex_child_from_zero(tmp_path: Path) -> None:
    rows = case("34", tmp_path).rows()
    (child,) = [row for row in rows if row["parent"]]
    (parent,) = [row for row in rows if not row["parent"]]

    def whole(row: dict[str, Any], which: str = "usage") -> tuple[int, int]:
        counts = row[which]
        return sum(counts[kind] or 0 for kind in KINDS if kind != "output"), counts["output"]

    assert whole(child) == (20000, 150)
    both = (whole(child)[0] + whole(parent)[0], whole(child)[1] + whole(parent)[1])
    assert both == (70000, 650)
    assert whole(parent, "usage_with_children") == (70000, 650)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Shanghai", "UTC"])
def test_35_time_zones_and_dst(tmp_path: Path, zone: str) -> None:
    from datetime import datetime, timedelta  # noqa: PLC0415

    row = one(case("35", tmp_path).rows(TZ=zone))
    assert row["started_at"].endswith("Z")
    assert row["updated_at"].endswith("Z")
    lasted = datetime.fromisoformat(row["updated_at"]) - datetime.fromisoformat(row["started_at"])
    assert lasted == timedelta(hours=26, minutes=29)


def test_40_three_thousand_sessions(tmp_path: Path) -> None:
    home = case("40", tmp_path)
    rows = home.rows()
    assert len(rows) == 3301
    quick = home.rows("--quick", AGENTHUB_HOME=str(tmp_path / "fresh"))
    assert {row["key"] for row in quick} == {row["key"] for row in rows}
    counted = [row for row in rows if row["agent"] == "claude" and row["usage"]["output"]]
    assert len(counted) == 1, "all of them are copies of one conversation"
    log = next(home.path.rglob("-home-dev-work-p7/*.jsonl"))
    before = next(row for row in rows if row["id"] == log.stem)
    with log.open("ab") as stream:
        stream.write(
            b'{"type":"user","isSidechain":false,"uuid":"u9","timestamp":"2026-03-06T10:00:00.000Z",'
            b'"sessionId":"' + log.stem.encode() + b'","cwd":"/home/dev/work/shop","version":'
            b'"2.1.197","message":{"role":"user","content":"one more"}}\n'
        )
    after = next(row for row in home.rows() if row["id"] == log.stem)
    assert after["last_prompt"] == "one more"
    assert after["updated_at"] > before["updated_at"]


def moved(tmp_path: Path) -> tuple[Home, Path]:
    home = case("67", tmp_path)
    copy_home(folder("67") / "alt", tmp_path / "alt")
    return home, tmp_path / "alt"


def said(home: Home, **env: str) -> set[str]:
    rows = home.rows(**env)
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["last_answer"] for row in rows} | {row["title"] for row in rows}


def test_67_homes_of_the_environment_join_the_defaults(tmp_path: Path) -> None:
    home, alt = moved(tmp_path)
    usual = home.rows()
    assert len(usual) == 1
    rows = home.rows(
        CLAUDE_CONFIG_DIR=str(alt / "claude-work"), CODEX_HOME=str(alt / "codex"),
        DSH_HOME=str(alt / "dsh"),
    )  # fmt: skip
    assert len(rows) == 4
    assert {row["last_answer"] for row in rows} >= {"ALT-CX", "ALT-DS"}
    assert usual[0]["key"] in {row["key"] for row in rows}


def test_67_configured_homes_count_once_each(tmp_path: Path) -> None:
    home, alt = moved(tmp_path)
    (tmp_path / "link").symlink_to(home.path / ".claude")
    own = Path(home.env()["AGENTHUB_HOME"])
    own.mkdir()
    (own / "config.toml").write_text(
        f'[agents.claude]\nroots = ["{home.path}/.claude/", "{tmp_path}/link",'
        f' "{alt}/claude-work"]\n', "utf-8",
    )  # fmt: skip
    rows = home.rows()
    assert len(rows) == 2
    assert len({row["root"] for row in rows}) == 2


def test_67_empty_is_unset_and_missing_is_said_once(tmp_path: Path) -> None:
    home, alt = moved(tmp_path)
    usual = home.rows()
    assert home.rows(CLAUDE_CONFIG_DIR="") == usual
    ran = home.run(
        "ls", "--all", "--json", CLAUDE_CONFIG_DIR=str(tmp_path / "gone"),
        CODEX_HOME=str(alt / "codex"),
    )  # fmt: skip
    assert ran.returncode == 0
    assert ran.stderr.decode().count(str(tmp_path / "gone")) == 1
    assert b"ALT-CX" in ran.stdout


def test_67_homes_of_live_agents_are_found(tmp_path: Path) -> None:
    """A process that looks like the agent, with this HOME and a home of its own."""
    home, alt = moved(tmp_path)
    program = tmp_path / "claude"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    live = subprocess.Popen(
        [str(program), "600"],
        env={"HOME": str(home.path), "CLAUDE_CONFIG_DIR": str(alt / "claude-work")},
    )
    try:
        assert len(home.rows()) == 2
    finally:
        live.kill()
        live.wait()
    assert len(home.rows()) == 1
