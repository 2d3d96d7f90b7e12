"""hub.workers: several processes give what one gives, whatever happens to them."""

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import World, plain

from hub import workers
from hub.adapter import Found
from hub.discover import File
from hub.fold import Fold
from hub.reading import Plan, SessionRead
from hub.workers import read_all


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is worth a process."""
    monkeypatch.setattr(workers, "WORTH", 0)
    monkeypatch.setattr(workers, "MANY", 0)


def plans(count: int) -> list[Plan]:
    return [
        Plan(f"fake:{n}", "fake", [File("fake", "/", "x", "/x", Found("x"), 1, 1, n, 1)])
        for n in range(count)
    ]


def how(plan: Plan) -> SessionRead:
    return SessionRead(plan.key, Fold(title=plan.key * 3_000), anew=True)


def keys(found: list[SessionRead]) -> list[str]:
    return sorted(one.key for one in found)


def child(action: Callable[[], Any], on: Callable[[Plan], bool]) -> Callable[[Plan], SessionRead]:
    """Reads, and in a worker does something to it."""
    parent = os.getpid()

    def look(plan: Plan) -> SessionRead:
        if os.getpid() != parent and on(plan):
            action()
        return how(plan)

    return look


def open_files() -> int:
    gc.collect()  # what earlier tests left open is not counted here
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("count", [0, 1, 2, 7, 200])
@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_every_plan_is_read_once(count: int, processes: int) -> None:
    before = open_files()
    found = list(read_all(plans(count), how, processes))
    assert keys(found) == sorted(plan.key for plan in plans(count))
    assert all(one.fold.title == one.key * 3_000 for one in found)
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise ValueError


@pytest.mark.parametrize("action", [die, fail, lambda: os._exit(0)])
@pytest.mark.parametrize("place", [0, 5, 28])
def test_what_a_dead_worker_did_not_send_is_read_here(
    action: Callable[[], Any], place: int
) -> None:
    look = child(action, lambda plan: int(plan.key[5:]) % 30 <= place)
    assert keys(list(read_all(plans(60), look, 3))) == keys(list(map(how, plans(60))))


def test_a_worker_that_is_killed_in_the_middle_of_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent, whole = os.getpid(), workers.packed

    def cut(value: object) -> Any:
        if os.getpid() == parent:
            return whole(value)

        class Half(bytes):
            """Says that it is longer than it is."""

            def __len__(self) -> int:
                return super().__len__() + 1_000_000

        return Half(whole(value))

    monkeypatch.setattr(workers, "packed", cut)
    assert keys(list(read_all(plans(40), how, 3))) == keys(list(map(how, plans(40))))


def test_a_message_that_is_none_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "packed", lambda _: b"\xc1junk")
    assert keys(list(read_all(plans(40), how, 3))) == keys(list(map(how, plans(40))))


def test_messages_that_arrive_byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, size: whole(descriptor, min(size, 7)))
    small = [SessionRead(plan.key, Fold(title="x" * 50), anew=True) for plan in plans(9)]
    found = list(read_all(plans(9), lambda plan: small[int(plan.key[5:])], 3))
    assert sorted(found, key=lambda one: one.key) == small


def test_where_no_process_can_be_had_this_one_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    before, whole, left = open_files(), os.fork, [1]

    def no() -> int:
        left[0] -= 1
        if left[0] < 0:
            raise BlockingIOError
        return whole()

    monkeypatch.setattr(os, "fork", no)
    assert len(list(read_all(plans(40), how, 4))) == 40
    assert open_files() == before


def test_a_reading_that_is_given_up_leaves_no_process_and_no_pipe() -> None:
    before = open_files()
    reading = read_all(plans(4_000), how, 4)
    next(reading)
    reading.close()  # type: ignore[attr-defined]  # a generator
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_list_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    for n in range(30):
        world.write(f"s{n}.log", "say x@01", "use r1@02=3", f"use o{n}@03={n}", "tool @04")
    alone = plain(world.fresh())
    world.processes = 3
    assert plain(world.look()) == alone
    for n in range(0, 30, 3):
        world.write(f"s{n}.log", f"use p{n}@05=1")
    grown = plain(world.look())
    assert grown == plain(world.fresh())
    world.processes = 1
    assert grown == plain(world.fresh())


def test_a_list_survives_every_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    for n in range(30):
        world.write(f"s{n}.log", "say x@01", f"use o{n}@03={n}")
    alone, whole = plain(world.fresh()), os.fork

    def doomed() -> int:
        pid = whole()
        if pid:
            os.kill(pid, signal.SIGKILL)
        return pid

    world.processes = 4
    monkeypatch.setattr(os, "fork", doomed)
    assert plain(world.look()) == alone
