"""The kernel's tables in; which processes live and which locks are held out.

`Machine` is the seam: the engine asks it for the clock, processes and locks, so that thousands of
runs can be tests. `Linux` reads /proc; nothing is ever probed with flock() or a signal.
"""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

Inode: TypeAlias = tuple[int, int]
"""(device, inode) as stat gives them."""

_LOCK = re.compile(
    r"^\d+: FLOCK\s+ADVISORY\s+WRITE\s+(-?\d+)\s+([0-9a-f]+):([0-9a-f]+):(\d+)\s",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Process:
    """A process that lives now."""

    pid: int
    start: str
    """Start time in clock ticks since boot."""
    exe: str = ""
    argv: tuple[str, ...] = ()
    cwd: str | None = None
    tty: str | None = None
    tmux: str | None = None
    """Pane id, where its environment names one."""


class Machine(Protocol):
    """What the engine may ask the system."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def process(self, pid: int) -> Process | None:
        """The process, or None where it does not live or cannot be seen."""
        ...

    def locks(self) -> Mapping[Inode, int]:
        """Exclusive flocks held now, by file, with the owner's pid (0 = in another namespace)."""
        ...

    def environments(self, home: str) -> Iterator[tuple[Process, Mapping[str, str]]]:
        """This user's processes with this HOME, and their environments."""
        ...

    def domains(self) -> frozenset[str] | None:
        """Spellings of this boot and pid namespace; None where pids cannot be judged."""
        ...


@dataclass
class Fixed:
    """A machine that is told what to say: for tests and fixtures."""

    clock: float
    processes: dict[int, Process] = field(default_factory=dict)
    held: dict[Inode, int] = field(default_factory=dict)
    domain: str | None = None

    def now(self) -> float:
        """The clock it was given."""
        return self.clock

    def process(self, pid: int) -> Process | None:
        """One of the processes it was given."""
        return self.processes.get(pid)

    def locks(self) -> Mapping[Inode, int]:
        """The locks it was given."""
        return self.held

    def environments(self, home: str) -> Iterator[tuple[Process, Mapping[str, str]]]:
        """It knows of no environment."""
        del home
        return iter(())

    def domains(self) -> frozenset[str] | None:
        """The domain it was given."""
        return frozenset({self.domain}) if self.domain else frozenset()


class Linux:
    """The machine this runs on, read from /proc."""

    def now(self) -> float:
        """The wall clock."""
        return time.time()

    def process(self, pid: int) -> Process | None:
        """What /proc/<pid> says; a zombie does not live."""
        base = f"/proc/{pid}"
        stat = _read(f"{base}/stat")
        if not stat:
            return None
        fields = stat[stat.rfind(b")") + 2 :].split()
        if len(fields) < 20 or fields[0] in {b"Z", b"X"}:
            return None
        argv = tuple(part.decode(errors="replace") for part in _arguments(_read(f"{base}/cmdline")))
        return Process(
            pid=pid,
            start=fields[19].decode(),
            exe=_link(f"{base}/exe"),
            argv=argv,
            cwd=_link(f"{base}/cwd") or None,
            tty=_tty(int(fields[4])),
            tmux=_environ(base).get("TMUX_PANE"),
        )

    def locks(self) -> Mapping[Inode, int]:
        """What /proc/locks says: `7: FLOCK ADVISORY WRITE 18032 fe:00:2466409 0 EOF`."""
        held: dict[Inode, int] = {}
        for match in _LOCK.finditer(_read("/proc/locks").decode(errors="replace")):
            pid, major, minor, inode = match.groups()
            held[os.makedev(int(major, 16), int(minor, 16)), int(inode)] = max(int(pid), 0)
        return held

    def environments(self, home: str) -> Iterator[tuple[Process, Mapping[str, str]]]:
        """What /proc/<pid>/environ says; other users' processes are not looked at."""
        mine, wanted = os.geteuid(), b"\0HOME=" + os.fsencode(home) + b"\0"
        for name in _names("/proc"):
            base = f"/proc/{name}"
            if not name.isdigit() or _owner(base) != mine:
                continue
            if wanted not in b"\0" + _read(f"{base}/environ") + b"\0":
                continue
            process = self.process(int(name))
            if process is not None:
                yield process, _environ(base)

    def domains(self) -> frozenset[str] | None:
        """`linux:<machine id>:<pid namespace>`, as Claude Code 2.1.332 writes it (measured)."""
        space = _link("/proc/self/ns/pid")
        names = {
            _read(path).decode(errors="replace").strip().replace("-", "")
            for path in (
                "/etc/machine-id",
                "/var/lib/dbus/machine-id",
                "/proc/sys/kernel/random/boot_id",
            )
        }
        return frozenset(f"linux:{name}:{space}" for name in names if name)


class Elsewhere:
    """A system without /proc: nothing can be said of processes, and nothing is guessed."""

    def now(self) -> float:
        """The wall clock."""
        return time.time()

    def process(self, pid: int) -> Process | None:  # noqa: ARG002
        """Nobody can be seen."""
        return None

    def locks(self) -> Mapping[Inode, int]:
        """No table of locks."""
        return {}

    def environments(self, home: str) -> Iterator[tuple[Process, Mapping[str, str]]]:
        """Nobody can be seen."""
        del home
        return iter(())

    def domains(self) -> frozenset[str] | None:
        """Pids cannot be judged."""
        return None


def this_machine() -> Machine:
    """The machine of this process."""
    return Linux() if sys.platform == "linux" and Path("/proc/self/stat").exists() else Elsewhere()


def _arguments(line: bytes) -> list[bytes]:
    """The words of a cmdline; one that a program wrote over may lack the last NUL."""
    return line.removesuffix(b"\0").split(b"\0") if line else []


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208
    except OSError:
        return []


def _owner(path: str) -> int:
    try:
        return os.stat(path).st_uid  # noqa: PTH116
    except OSError:
        return -1


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  # a Path would normalise "pid:[...]"
    except OSError:
        return ""


def _tty(number: int) -> str | None:
    """Device 136..143 are pseudo terminals: /dev/pts/<minor>."""
    major, minor = os.major(number), os.minor(number)
    if 136 <= major <= 143:
        return f"/dev/pts/{(major - 136) * 256 + minor}"
    return f"/dev/tty{minor}" if major == 4 else None


def _environ(base: str) -> dict[str, str]:
    pairs = (part.partition(b"=") for part in _read(f"{base}/environ").split(b"\0"))
    return {
        name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs
    }
