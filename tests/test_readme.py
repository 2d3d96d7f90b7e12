"""Every command of the README runs, in a home with sessions, and says what the README says."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from commands import Home
from conftest import FIXTURES, REPO

README = (REPO / "README.md").read_text("utf-8")
COMMANDS = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("agenthub")
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    target = tmp_path_factory.mktemp("readme") / "home"
    for root in sorted(FIXTURES.glob("*/answer/root")):
        subprocess.run(["cp", "-r", f"{root}/.", f"{target}/"], check=target.mkdir(
            parents=True, exist_ok=True) is None)  # fmt: skip
    return Home(target)


def test_it_begins_with_the_two_commands() -> None:
    first = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert first is not None
    assert [line.partition("#")[0].strip() for line in first[1].splitlines()] == [
        "make run",
        "make test",
    ]
    assert README.index("```sh") < 30


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command: str, home: Home) -> None:
    key = home.rows()[0]["key"]
    argv = [key if word == "KEY" else word for word in shlex.split(command)[1:]]
    ran = home.run(*[word.replace("~", str(home.path)) for word in argv], SHELL="/bin/bash")
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.strip()
    assert b"\x1b" not in ran.stdout, "a pipe gets no colour"


def test_paths_exist() -> None:
    for path in re.findall(r"\]\(([^)#]+)\)", README):
        assert (REPO / path).exists(), path
    assert Path(REPO / "LICENSE").is_file()
