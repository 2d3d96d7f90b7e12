"""Faults that users of such tools met: each case's right outcome, through the real command."""

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Home, copy_home, texts
from conftest import REPO

CASES = REPO / "tests" / "cases"
WORK_SHOP = ".claude/projects/-home-dev-work-shop"


def case(name: str, tmp_path: Path) -> Home:
    folder = next(CASES.glob(f"{name}-*"))
    for script in ("setup.sh", "setup.py"):
        if (folder / script).is_file():
            (tmp_path / script).write_bytes((folder / script).read_bytes())
    home = copy_home(folder / "home", tmp_path / "home")
    for script, program in (("setup.sh", "sh"), ("setup.py", sys.executable)):
        if (tmp_path / script).is_file():
            subprocess.run(
                [program, script], cwd=tmp_path, check=True, capture_output=True,
                env={"PATH": os.defpath, "HOME": str(tmp_path)},
            )  # fmt: skip
    return home


def append(name: str, part: str, file: Path) -> None:
    with file.open("ab") as stream:
        stream.write((next(CASES.glob(f"{name}-*")) / part).read_bytes())


def only_log(home: Home) -> Path:
    (path,) = home.path.rglob("*.jsonl")
    return path


def one(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = rows
    return row


def test_01_torn_tail_then_completed(tmp_path: Path) -> None:
    home = case("01", tmp_path)
    log = only_log(home)
    key = one(home.rows())["key"]
    events = home.events(key)
    assert texts(events, "prompt") == ["Fix the login bug"]
    assert [event["text"] for event in events if event["kind"] == "tool_end"] == ["2 passed"]
    assert texts(events, "answer") == ["Fixed in auth.py."]
    assert not [event for event in events if event["kind"] == "note"]
    append("01", "append-1.bin", log)
    assert texts(home.events(key), "prompt") == ["Fix the login bug", "And the tests?"]
    row = one(home.rows())
    assert (row["prompts"], row["last_prompt"], row["notes"]) == (2, "And the tests?", [])
    append("01", "append-2.bin", log)
    assert texts(home.events(key), "answer") == ["Fixed in auth.py.", "All green."]
    assert one(home.rows())["last_answer"] == "All green."


def test_03_nul_blocks_after_crash(tmp_path: Path) -> None:
    home = case("03", tmp_path)
    row = one(home.rows())
    assert (row["title"], row["last_answer"]) == ("Fix the login bug", "Fixed in auth.py.")
    ends = [event["text"] for event in home.events(row["key"]) if event["kind"] == "tool_end"]
    assert ends == ["2 passed"]
    append("03", "append-1.bin", only_log(home))
    events = home.events(row["key"])
    assert sum("AFTER-NUL" in text for text in texts(events, "answer")) == 1
    for args in (("ls", "--all"), ("ls", "--all", "--json"), ("show", row["key"])):
        assert b"\0" not in home.run(*args).stdout


def test_04_invalid_utf8(tmp_path: Path) -> None:
    home = case("04", tmp_path)
    rows = home.rows()
    assert sorted(row["agent"] for row in rows) == ["claude", "codex"]
    said = " ".join(str(home.events(row["key"])) for row in rows)
    assert "area 12 m" in said
    assert "ok" in said
    assert "\ufffd" in said
    assert all(row["notes"] for row in rows), "damage is counted, not hidden"
    for row in rows:
        home.run("show", row["key"]).stdout.decode("utf-8")


def test_06_huge_line(tmp_path: Path) -> None:
    home = case("06", tmp_path)
    row = one(home.rows())
    assert row["last_answer"] == "Fixed in auth.py."
    shown = home.run("show", row["key"]).stdout
    assert len(shown) < 20_000
    assert b"AAAAAAAAAAAAAAAAAAAA" not in shown
    assert b"image" in shown
    peak = subprocess.run(
        [sys.executable, "-c", _PEAK, "ls", "--all", "--json"],
        env=home.env(), capture_output=True, check=True,
    )  # fmt: skip
    assert int(peak.stdout) < 150 * 1024, "KiB of resident memory"


_PEAK = """
import os, resource, subprocess, sys
from pathlib import Path
argv = [str(Path(sys.executable).with_name("agenthub")), *sys.argv[1:]]
subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_07_multibyte_split_across_reads(tmp_path: Path) -> None:
    home = case("07", tmp_path)
    log = only_log(home)
    row = one(home.rows())
    before = home.events(row["key"])
    append("07", "append-1.bin", log)
    assert home.events(row["key"]) == before
    assert one(home.rows())["prompts"] == row["prompts"]
    append("07", "append-2.bin", log)
    assert texts(home.events(row["key"]), "prompt")[-1] == "ship it 🚀你好 now"
    after = one(home.rows())
    assert (after["prompts"], after["last_prompt"]) == (
        row["prompts"] + 1,
        "ship it 🚀你好 now",
    )


def test_08_unknown_and_odd_records(tmp_path: Path) -> None:
    home = case("08", tmp_path)
    rows = {row["agent"]: row for row in home.rows()}
    codex, claude = rows["codex"], rows["claude"]
    assert (codex["state"], codex["outcome"]) == ("ended", "completed")
    assert texts(home.events(codex["key"]), "prompt") == ["odd records"]
    assert texts(home.events(codex["key"]), "answer") == ["ODD-OK"]
    assert claude["last_answer"] == "ODD-OK"
    assert texts(home.events(claude["key"]), "prompt") == ["hello odd", "list form"]
    assert (claude["usage"]["input"], claude["usage"]["output"]) == (5, 6)
    assert home.run("ls", "--all").stderr == b""
    unknown = {note["detail"] for note in codex["notes"] if note["code"] == "unknown_record"}
    assert "brand_new_2027_kind" in unknown


LINKS_OF_19 = (
    ".claude/projects",
    ".codex/sessions/2026/loop",
    ".codex/sessions/2026/03/06",
    ".codex/sessions/dangling.jsonl",
)
"""They are kept as files that hold their target: not every checkout can hold links."""


def test_19_symlinks(tmp_path: Path) -> None:
    home = case("19", tmp_path)
    copy_home(next(CASES.glob("19-*")) / "store", tmp_path / "store")
    for name in LINKS_OF_19:
        link = home.path / name
        target = link.read_text("utf-8").strip()
        link.unlink()
        link.symlink_to(target)
    rows = home.rows()
    assert sorted(row["agent"] for row in rows) == ["claude", "codex"]
    said = [texts(home.events(row["key"]), "answer") for row in rows]
    assert sum("LOOP-OK" in answers for answers in said) == 1


@pytest.fixture(scope="session")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[tuple[str, ...], int]]:
    """The command in an environment that an ordinary user can reach, and that user's id."""
    if os.geteuid() != 0:
        yield (str(Path(sys.executable).with_name("agenthub")),), os.geteuid()
        return
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="agenthub-ordinary-") as folder:
        Path(folder).chmod(0o755)
        wheel = next((REPO / ".build" / "dist").glob("*.whl"), REPO)
        subprocess.run(
            ["/usr/bin/python3", "-m", "venv", f"{folder}/venv"], check=True, capture_output=True
        )
        subprocess.run(
            [f"{folder}/venv/bin/pip", "install", "-q", str(wheel)], check=True,
            capture_output=True, env={**os.environ, "HOME": folder},
        )  # fmt: skip
        yield (f"{folder}/venv/bin/agenthub",), pwd.getpwnam("nobody").pw_uid


def test_20_unreadable(ordinary: tuple[tuple[str, ...], int]) -> None:
    import tempfile  # noqa: PLC0415

    argv, uid = ordinary
    with tempfile.TemporaryDirectory(prefix="agenthub-case-") as folder:
        home = case("20", Path(folder))
        for path in [Path(folder), *Path(folder).rglob("*")]:
            os.chown(path, uid, -1)
        home = Home(home.path, argv, uid)
        ran = home.run("ls", "--all", "--json")
        assert ran.returncode == 0
        told = ran.stderr.decode()
        closed = home.path / ".claude/projects/-home-dev-work-closed"
        (rollout,) = (home.path / ".codex").rglob("*.jsonl")
        for path in (closed, rollout):
            lines = [line for line in told.splitlines() if str(path) in line]
            assert len(lines) == 1, told
            assert "permission denied" in lines[0]
        rows = home.rows()
        readable = [row for row in rows if not row["alerts"]]
        assert [row["cwd"] for row in readable] == ["/home/dev/work/open"]
        (alerted,) = [row for row in rows if row["alerts"]]
        assert alerted["alerts"][0]["kind"] == "unreadable"
        assert alerted["id"] in rollout.name
        closed.chmod(0o700)
        rollout.chmod(0o600)
        again = home.rows()
        assert len(again) == 3
        assert not [row for row in again if row["alerts"]]


def test_21_not_sessions_in_tree(tmp_path: Path) -> None:
    home = case("21", tmp_path)
    ended = [row for row in home.rows() if row["turns"]]
    row = one(ended)
    assert (row["state"], row["outcome"]) == ("ended", "completed")
    assert len(home.rows()) == 1
    assert home.run("ls", "--all").stderr == b""


def test_26_windows_and_odd_cwds(tmp_path: Path) -> None:
    home = case("26", tmp_path)
    assert {row["cwd"] for row in home.rows()} == {
        "C:\\Users\\dev\\my app",
        "\\\\wsl.localhost\\Ubuntu\\home\\dev\\x",
        "/home/dev/BYM+Finie",
        "/home/dev/项目",
        "/",
    }
    table = home.run("ls", "--all").stdout.decode()
    where = table.splitlines()[0].index("WHERE")
    short = {_cells(line, where).split("  ")[0] for line in table.splitlines()[1:]}
    assert short == {"my app", "x", "BYM+Finie", "项目", "/"}


def _cells(line: str, start: int) -> str:
    """The line from a terminal cell on."""
    from hub.text import width  # noqa: PLC0415

    used = 0
    for place, character in enumerate(line):
        if used >= start:
            return line[place:]
        used += width(character)
    return ""


def test_27_gone_cwd(tmp_path: Path) -> None:
    home = case("27", tmp_path)
    ran = home.run("ls", "--all")
    assert ran.stderr == b""
    assert one(home.rows())["cwd"] == "/nonexistent/tree"


def test_30_split_message_usage(tmp_path: Path) -> None:
    home = case("30", tmp_path)
    row = one(home.rows())
    usage = {name: row["usage"][name] for name in ("input", "output", "cache_write", "cache_read")}
    assert usage == {"input": 20, "output": 130, "cache_write": 200, "cache_read": 2000}
    answers = [event for event in home.events(row["key"]) if event["kind"] == "answer"]
    assert "part one" in row["last_answer"]
    assert "part two" in row["last_answer"]
    assert len({event["response"] for event in answers}) == 2


def test_36_dead_agent_running(tmp_path: Path) -> None:
    home = case("36", tmp_path)
    for _ in range(2):
        rows = home.rows()
        assert sorted(row["agent"] for row in rows) == ["claude", "codex", "dsh"]
        assert {(row["state"], row["outcome"]) for row in rows} == {("ended", "lost")}
        for path in home.path.rglob("*"):
            path.touch()


def test_38_waiting_for_permission(tmp_path: Path) -> None:
    home = case("38", tmp_path)
    row = one(home.rows())
    assert (row["state"], row["outcome"]) == ("ended", "lost")
    assert row["updated_at"].startswith("2026-03-05")
    assert "Edit" in str(row["evidence"])
    start = Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    entry = home.path / ".claude/sessions" / f"{os.getpid()}.json"
    entry.parent.mkdir()
    entry.write_text(
        f'{{"pid":{os.getpid()},"sessionId":"{row["id"]}","cwd":"/home/dev/work/shop",'
        f'"procStart":"{start}","version":"2.1.197","kind":"interactive","entrypoint":"cli",'
        '"status":"waiting","waitingFor":"permission prompt"}',
        "utf-8",
    )
    row = one(home.rows())
    assert (row["state"], row["waiting_for"], row["live"]) == ("waiting", "permission", True)
    assert row["certain"], "the registry says it"
    assert row["activity"]["tool"] == "Edit"
    assert "Edit" in home.run("ls").stdout.decode()


def test_39_future_and_touched_mtime(tmp_path: Path) -> None:
    home = case("39", tmp_path)
    rows = home.rows()
    order = [row["title"] for row in rows if row["title"] != "from the future"]
    assert [title[-1] for title in order] == ["Z", "X", "Y"]
    assert not [row for row in rows if row["state"] == "working" or row["live"]]
    table = home.run("ls", "--all").stdout.decode()
    (future,) = [line for line in table.splitlines() if "future" in line]
    assert "2031-01-01" in future
    assert "-1" not in future.replace("2031-01-01", "")
