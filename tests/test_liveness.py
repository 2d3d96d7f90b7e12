"""hub.liveness: what the kernel's tables say, and nothing that they do not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hub import liveness
from hub.liveness import Elsewhere, Fixed, Linux, Process, this_machine

STAT = "{pid} ({name}) {state} 1 1 1 34817 1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0"
LOCKS = b"""\
1: FLOCK  ADVISORY  WRITE 100 fe:01:2466409 0 EOF
1: -> FLOCK  ADVISORY  WRITE 999 fe:01:2466409 0 EOF
2: FLOCK  ADVISORY  READ 101 fe:01:2 0 EOF
3: POSIX  ADVISORY  WRITE 102 fe:01:3 0 EOF
4: FLOCK  ADVISORY  WRITE -1 00:2f:18446744073709551615 0 EOF
5: OFDLCK ADVISORY  WRITE -1 fe:01:5 0 EOF
garbage \xff
6: FLOCK  ADVISORY  WRITE 103 fe:01:
"""


@contextmanager
def table(monkeypatch: pytest.MonkeyPatch, **files: Any) -> Iterator[Linux]:
    """A machine whose /proc has these files (`_` for `/`)."""
    given = {f"/proc/{name.replace('_', '/').lstrip('/')}": data for name, data in files.items()}
    with monkeypatch.context() as patch:
        patch.setattr(liveness, "_read", lambda path: given.get(path, b""))
        patch.setattr(liveness, "_link", lambda path: given.get(path, ""))
        yield Linux()


def test_a_lock_belongs_to_its_holder_and_not_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with table(monkeypatch, locks=LOCKS) as machine:
        held = machine.locks()
    assert held == {
        (os.makedev(0xFE, 1), 2466409): 100,
        (os.makedev(0, 0x2F), 2**64 - 1): 0,
    }


@pytest.mark.parametrize("name", ["agent", "a b", "a) R 1 (b", ")", "\udcff"])
def test_a_process_is_told_by_its_start_whatever_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    stat = STAT.format(pid=5, name=name, state="S").encode(errors="surrogateescape")
    files = {
        "_5_stat": stat, "_5_cmdline": b"agent\0--x\0\0a\xff\0", "_5_exe": "/bin/agent",
        "_5_cwd": "/work", "_5_environ": b"TMUX_PANE=%7\0X\0",
    }  # fmt: skip
    with table(monkeypatch, **files) as machine:
        assert machine.process(5) == Process(
            5, "777", "/bin/agent", ("agent", "--x", "", "a\ufffd"), "/work", "/dev/pts/1", "%7"
        )


@pytest.mark.parametrize(
    ("line", "argv"),
    [(b"", ()), (b"agent", ("agent",)), (b"agent\0", ("agent",)), (b"a\0b", ("a", "b"))],
)
def test_a_title_that_was_written_over_is_still_an_argument(
    monkeypatch: pytest.MonkeyPatch, line: bytes, argv: tuple[str, ...]
) -> None:
    stat = STAT.format(pid=5, name="x", state="S").encode()
    with table(monkeypatch, _5_stat=stat, _5_cmdline=line) as machine:
        process = machine.process(5)
    assert process is not None
    assert (process.argv, process.cwd, process.tmux) == (argv, None, None)


@pytest.mark.parametrize("state", ["Z", "X"])
def test_the_dead_do_not_live(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    with table(monkeypatch, _5_stat=STAT.format(pid=5, name="x", state=state).encode()) as machine:
        assert machine.process(5) is None


@pytest.mark.parametrize("stat", [b"", b"5 (x", b"5 (x) S 1 2 3", b"\0\xff"])
def test_a_table_that_is_cut_is_nobody(monkeypatch: pytest.MonkeyPatch, stat: bytes) -> None:
    with table(monkeypatch, _5_stat=stat) as machine:
        assert machine.process(5) is None


def test_a_domain_is_a_machine_or_a_boot_and_a_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_link", lambda _: "pid:[7]")
    monkeypatch.setattr(liveness, "_read", lambda path: b"aa-bb\n" if "boot_id" in path else b"")
    assert Linux().domains() == frozenset({"linux:aabb:pid:[7]"})
    monkeypatch.setattr(liveness, "_read", lambda _: b"")
    assert Linux().domains() == frozenset()


def test_this_process_lives_and_odd_numbers_do_not() -> None:
    machine = this_machine()
    if sys.platform != "linux":
        assert isinstance(machine, Elsewhere)
        return
    assert isinstance(machine, Linux)
    me = machine.process(os.getpid())
    assert me is not None
    assert (os.path.realpath(me.exe), me.start.isdigit()) == (
        os.path.realpath(sys.executable),
        True,
    )
    for pid in (-1, 0, 2**31, 10**30):
        assert machine.process(pid) is None
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert machine.process(child.pid) is None
    assert machine.domains()


def test_elsewhere_nothing_is_guessed() -> None:
    machine = Elsewhere()
    assert machine.process(os.getpid()) is None
    assert (machine.locks(), machine.domains()) == ({}, None)
    assert Fixed(5.0).domains() == frozenset()
    assert (Fixed(5.0).now(), Fixed(5.0).process(1), Fixed(5.0).locks()) == (5.0, None, {})
