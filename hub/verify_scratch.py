"""A temporary HOME with an empty environment; every process started in it is ended by its id."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from hub.adapter import Launch
from hub.liveness import this_machine

PATIENCE = 60.0
"""Seconds that a CLI may take for a step of a scenario."""
_POLL = 0.04
_SAID = 200
_KEPT = ("PATH", "LANG", "LC_ALL")
"""What of the user's environment a CLI needs: a wrapper's interpreter is found by PATH."""

_NOWHERE = {
    **dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9"),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1"),
}
"""A proxy where nobody listens: what a CLI would send elsewhere is not sent."""


class StoppedError(Exception):
    """The command is to end: somebody pressed Ctrl-C."""


class Running:
    """A program whose input and output are files, as the hub runs every CLI."""

    def __init__(
        self, argv: list[str], launch: Launch, env: Mapping[str, str], cwd: Path, out: Path
    ) -> None:
        self.out, self._err = out.with_suffix(".out"), out.with_suffix(".err")
        given = out.with_suffix(".in")
        given.write_bytes(launch.stdin)
        with given.open("rb") as reads, self.out.open("wb") as o, self._err.open("wb") as e:
            self._popen = subprocess.Popen(
                argv, cwd=cwd, env=dict(env), stdin=reads, stdout=o, stderr=e,
                start_new_session=True,
            )  # fmt: skip
        self.pid = self._popen.pid

    def ended(self) -> bool:
        """Whether it has ended."""
        return self._popen.poll() is not None

    def printed(self) -> bytes:
        """What it has printed so far."""
        return self.out.read_bytes()

    def said(self) -> str:
        """How it ended and the last it said, for a person."""
        code = self._popen.poll()
        how = "it runs still" if code is None else f"exit {code}"
        said = self._err.read_bytes() or (self.printed() if code else b"")
        words = said[-2000:].decode(errors="replace").split()
        return f"{how}: {_last(' '.join(words))}" if words else how


def _last(text: str) -> str:
    return text if len(text) <= _SAID else f"… {text[-_SAID:]}"


class Scratch:
    """The HOME of one run; used as a context manager, it leaves nothing behind."""

    def __init__(self, env: Mapping[str, str], stop: threading.Event, folder: str = "proj") -> None:
        self.top = Path(tempfile.mkdtemp(prefix="agenthub-verify-")).resolve()
        self.home, self.work = self.top / "home", self.top / "home" / folder
        for path in (self.work, self.top / "tmp"):
            path.mkdir(parents=True)
        self._stop, self._runs, self._machine = stop, list[Running](), this_machine()
        self._env = {
            **{name: env[name] for name in _KEPT if env.get(name)},
            "HOME": str(self.home),
            "TMPDIR": str(self.top / "tmp"),
            "TERM": "dumb",
            **_NOWHERE,
        }
        self._env.setdefault("PATH", os.defpath)
        self._env.setdefault("LANG", "C.UTF-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, program: str, launch: Launch) -> Running:
        """Starts a program in the working folder, with nothing of the user's in its environment."""
        if self._stop.is_set():
            raise StoppedError
        for name, data in launch.files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        env, out = {**self._env, **launch.env}, self.top / f"run{len(self._runs)}"
        running = Running([program, *launch.argv], launch, env, self.work, out)
        self._runs.append(running)
        return running

    def until(self, ready: Callable[[], object], seconds: float = PATIENCE) -> bool:
        """Waits until it is so; False when it is not so in time.

        Raises:
            StoppedError: the command ends.
        """
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                return False
            if self._stop.wait(_POLL):
                raise StoppedError
        return True

    def processes(self) -> list[int]:
        """What lives in this home: ids of the processes with it as HOME, and of what was started.

        Tools run in process groups of their own, so the environment is what all of them share.
        """
        found = {process.pid for process, _ in self._machine.environments(str(self.home))}
        return sorted(found | {one.pid for one in self._runs if not one.ended()})

    def send(self, pid: int | None, with_signal: signal.Signals) -> None:
        """Sends a signal to a process of this home; to the program itself where `pid` is none."""
        if pid not in self.processes():
            pid = self._runs[-1].pid
        if pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, with_signal)

    def close(self) -> None:
        """Ends every process of this home, and removes it."""
        for _ in range(250):
            left = self.processes()
            if not left:
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL / 2)
        shutil.rmtree(self.top, ignore_errors=True)
