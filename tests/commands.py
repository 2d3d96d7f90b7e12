"""Runs `agenthub` as a person would: a process of its own, a scratch HOME, an empty environment."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def agenthub_argv() -> list[str]:
    """The installed command beside this interpreter."""
    return [str(Path(sys.executable).with_name("agenthub"))]


@dataclass
class Home:
    """A HOME that agenthub looks at."""

    path: Path
    argv: tuple[str, ...] = ()
    uid: int | None = None

    def env(self, **more: str) -> dict[str, str]:
        return {
            "HOME": str(self.path),
            "PATH": os.defpath,
            "AGENTHUB_HOME": str(self.path.parent / "agenthub-home"),
            **more,
        }

    def run(self, *args: str, **more: str) -> "subprocess.CompletedProcess[bytes]":
        """The command with these arguments."""
        return subprocess.run(
            [*(self.argv or agenthub_argv()), *args], env=self.env(**more), capture_output=True,
            timeout=120, check=False, stdin=subprocess.DEVNULL, cwd=self.path,
            user=self.uid, group=self.uid, extra_groups=None if self.uid is None else [],
        )  # fmt: skip

    def json(self, *args: str, **more: str) -> Any:
        """The JSON document of the command, which must succeed."""
        ran = self.run(*args, "--json", **more)
        assert ran.returncode == 0, ran.stderr.decode()
        return json.loads(ran.stdout.decode("utf-8"))

    def rows(self, *args: str, **more: str) -> list[dict[str, Any]]:
        """`ls --all --json`."""
        rows = self.json("ls", "--all", *args, **more)
        assert isinstance(rows, list)
        return rows

    def events(self, key: str) -> list[dict[str, Any]]:
        """`show KEY --json`."""
        events = self.json("show", key)
        assert isinstance(events, list)
        return events


def copy_home(source: Path, target: Path) -> Home:
    """A copy of a case's home; nothing is ever written into the case."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        target.mkdir(parents=True)
    return Home(target)


def texts(events: list[dict[str, Any]], kind: str) -> list[str]:
    """The texts of the events of one kind."""
    return [event["text"] for event in events if event["kind"] == kind]
