"""Other tools that list or count sessions, installed into a scratch folder, scripts off.

Each sees a scratch HOME whose agent folders are links to the corpus, never a real one, and no
network. One that cannot be installed or started is named with the reason.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import clean_env


@dataclass
class Peer:
    """A tool, and what it is asked."""

    name: str
    version: str
    argv: tuple[str, ...]
    warm: bool
    """It keeps something between runs, so that a second run is another figure."""
    problem: str | None = None
    command: str = ""


PYTHON = (
    ("session-ls", "0.2.4", ("session-ls", "--json")),
    ("4top", "0.2.0a9", ("4top", "list", "--json")),
    ("agentsview", "0.46.1", ("agentsview", "sync")),
)
NODE = (("ccusage", "20.0.24", ("daily", "--json", "--offline"), False),)
TOOLS = ("orjson", "zstandard")


ALONE = {"AGENTSVIEW_NO_DAEMON": "1", "AGENTSVIEW_TELEMETRY_ENABLED": "0", "DO_NOT_TRACK": "1"}
"""What keeps a peer from leaving something running or from telling others."""
OFFLINE = ("unshare", "--map-root-user", "--net")
"""A process started by this has no network at all."""


def install(folder: Path) -> tuple[Path, list[Peer]]:
    """(a Python with orjson, the peers)"""
    home = folder / "install-home"
    home.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    place = folder / "python"
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, env=env)
    problem = _pip(python, env, *TOOLS)
    if problem:
        raise SystemExit(f"orjson cannot be installed: {problem}")
    found = [*_from_pip(place, python, env), *_from_npm(folder / "node", env)]
    if _said([*OFFLINE, "true"], env):
        for peer in found:
            peer.problem = "its network cannot be taken away here (unshare --net)"
    return python, found


def _from_pip(place: Path, python: Path, env: dict[str, str]) -> Iterator[Peer]:
    for name, version, argv in PYTHON:
        problem = _pip(python, env, f"{name}=={version}")
        started = (*OFFLINE, f"{place}/bin/{argv[0]}", *argv[1:])
        yield Peer(name, version, started, warm=True, problem=problem, command=" ".join(argv))


def _from_npm(place: Path, env: dict[str, str]) -> Iterator[Peer]:
    npm, node = shutil.which("npm"), shutil.which("node")
    for name, version, argv, warm in NODE:
        script = place / "node_modules" / ".bin" / name
        problem = None
        if npm is None or node is None:
            problem = "there is no npm here"
        elif not script.exists():
            place.mkdir(parents=True, exist_ok=True)
            problem = _said(
                [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix",
                 str(place), f"{name}@{version}"], env,
            )  # fmt: skip
        yield Peer(
            name, version, (*OFFLINE, str(node), str(script), *argv), warm, problem,
            " ".join((name, *argv)),
        )  # fmt: skip


def _pip(python: Path, env: dict[str, str], *names: str) -> str | None:
    """Wheels only: no package runs a script to be installed."""
    argv = [str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", *names]
    return _said(argv, env)


def _said(argv: list[str], env: dict[str, str]) -> str | None:
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return None
    lines = [line for line in ran.stderr.splitlines() if line.strip()] or ["it failed silently"]
    return lines[-1][:200]


def scratch_home(corpus: Path, place: Path) -> dict[str, str]:
    """The environment of a HOME of its own whose agents are the corpus's."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for folder in sorted((corpus / "home").iterdir()):
        (place / folder.name).symlink_to(folder)
    return clean_env(place, **ALONE)
