"""What a command may import and cost: `ls` is called all day."""

import subprocess
import sys
from pathlib import Path

import pytest
from commands import Home
from conftest import FIXTURES

HEAVY = {"pydantic", "asyncio", "rich", "textual", "httpx", "psutil", "importlib.metadata",
         "wcwidth", "yaml", "watchdog", "logging", "http.client"}  # fmt: skip
IMPORTED = """
import sys
sys.argv = ["agenthub", *sys.argv[1:]]
from hub.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
sys.stderr.write("IMPORTED " + " ".join(sorted(sys.modules)) + "\\n")
sys.exit(code)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with plain sessions of an agent, read once already."""
    case = next(path for path in sorted(FIXTURES.glob("*/answer")))
    target = tmp_path / "home"
    subprocess.run(["cp", "-r", str(case / "root"), str(target)], check=True)
    found = Home(target)
    found.rows()
    return found


def imported(home: Home, *args: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTED, *args], env=home.env(), capture_output=True, check=True
    )
    line = next(one for one in ran.stderr.decode().splitlines() if one.startswith("IMPORTED"))
    return set(line.split()[1:])


def test_ls_imports_nothing_heavy(home: Home) -> None:
    for args in (("ls", "--all", "--json"), ("ls", "--all"), ("ls", "--quick", "--json"), ()):
        heavy = {name for name in imported(home, *args) if name in HEAVY}
        assert heavy == set(), args


def test_with_a_configuration_ls_validates_it_once(home: Home) -> None:
    own = Path(home.env()["AGENTHUB_HOME"])
    (own / "config.toml").write_text('[privacy]\nexclude = ["/nowhere"]\n', "utf-8")
    assert "pydantic" in imported(home, "ls", "--json")
    assert "pydantic" not in imported(home, "ls", "--json")


def cpu(argv: list[str], home: Home) -> float:
    """The least of several runs, in seconds of user and system time."""
    import resource  # noqa: PLC0415

    best = 1e9
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, env=home.env(), check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def test_help_is_at_most_ten_empty_pythons(home: Home) -> None:
    """The issue's figure, as a ratio of CPU time on the same machine."""
    empty = cpu([sys.executable, "-c", "pass"], home)
    ours = cpu([sys.executable, "-m", "hub", "--help"], home)
    assert ours <= 10 * empty, f"{ours / empty:.1f} times an empty Python"
