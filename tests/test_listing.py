"""hub.listing over hub.observe: whatever happens to the files between looks, the list is exact."""

import contextlib
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from conftest import LOOPS
from fakes import World, encoded, output, plain

from hub import listing, observe, workers
from hub import step as looking
from hub.catalogue import catalogue
from hub.liveness import Process
from hub.memory import Memory
from hub.store import Store

OPENED: list[str] = []
"""What was opened, while somebody listens."""
LISTEN = [False]


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if LISTEN[0] and event == "open" and isinstance(args[0], str):
        OPENED.append(args[0])


sys.addaudithook(_hook)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch, roots=2)


def opened(world: World, look: Callable[[], object]) -> list[str]:
    """Names of the agent's files that a look opens."""
    OPENED.clear()
    LISTEN[0] = True
    try:
        look()
    finally:
        LISTEN[0] = False
    return sorted(Path(one).name for one in OPENED if Path(one).parent in world.roots)


def same(world: World) -> None:
    """What this cache gives is what none gives."""
    assert plain(world.look()) == plain(world.look(Store(None)))


def exact(world: World) -> None:
    """What this cache gives is what none gives; and so it stays."""
    same(world)
    assert opened(world, world.look) == []


def test_files_that_are_as_they_were_are_never_opened(world: World) -> None:
    world.write("a.log", "say x@01", "use r=1")
    world.write("a.log", "say y@01", *["use s=2"] * 9, root=1)
    world.write("b@1.log", "say x@01")
    world.write("b@2.log", "use r2=1")
    (world.logs / "c.log.zst").write_bytes(zstandard.compress(encoded("say x@01")))
    world.write("c.log", "say x@01")
    (world.logs / "one.side").write_text("a b\nnobody a\n")
    (world.logs / "a.lock").touch()
    (world.logs / "d.head").write_bytes(b"d\n" + encoded("say x@01"))
    (world.logs / "other.txt").touch()
    everything = opened(world, world.look)
    assert set(everything) == {
        "a.log", "b@1.log", "b@2.log", "c.log.zst", "one.side", "d.head",
    }  # fmt: skip
    assert opened(world, world.look) == []
    assert opened(world, lambda: world.look(quick=True)) == []
    world.write("b@2.log", "use r3=1")
    assert opened(world, world.look) == ["b@2.log"]
    world.write("a.log", "say z@03")  # the one that is not read, and still is the smaller one
    assert opened(world, world.look) == []
    world.write("c.log", "say z@03")
    assert opened(world, world.look) == []
    exact(world)


def test_one_id_in_two_homes_is_read_where_more_is(world: World) -> None:
    world.write("a.log", "say x@01", "use r1=1", "use r2=2")
    world.write("a.log", "say x@01", "use r1=1", root=1)
    assert output(world.look()) == {"a": 3}
    for turn in range(4):
        world.write("a.log", "say y@02", f"use n{turn}=10", f"use m{turn}=10", root=1 - turn % 2)
        world.write("a.log", "say y@02", f"use k{turn}=10", root=1 - turn % 2)
        found = world.look()
        assert len(found["a"].sources) == 1
        exact(world)


STEPS: list[Callable[[World], object]] = [
    lambda w: w.write("a.log", "say more@09", "use more=3"),
    lambda w: (w.logs / "a.log").unlink(),
    lambda w: (w.logs / "a.log").rename(w.roots[1] / "a.log"),
    lambda w: (w.logs / "a.log").rename(w.logs / "a@1.log"),
    lambda w: (w.logs / "a.log").rename(w.logs / "z.log"),
    lambda w: (w.logs / "a.log").replace(w.logs / "b.log"),
    lambda w: (w.logs / "a.log").write_bytes(encoded("say new@09")),
    lambda w: (w.logs / "a.log").write_bytes(b""),
    lambda w: squeeze(w),  # noqa: PLW0108  # it is made below
    lambda w: w.write("a@0.log", "say earlier@00"),
    lambda w: w.write("a@2.log", "say later@10", "use late=1"),
    lambda w: (w.logs / "b.log").unlink(),
    lambda w: swap(w.logs / "h.head", b"g\n" + encoded("say other@01")),
    lambda w: swap(w.logs / "h.head", b"a\n" + encoded("say another@01")),
    lambda w: (w.logs / "one.side").write_text("b a\n"),
    lambda w: (w.logs / "one.side").write_text("a b\nb a\n"),
    lambda w: (w.logs / "one.side").unlink(),
    lambda w: (w.roots[1]).rename(w.roots[1].with_name("away")),
    lambda w: setattr(w.fake, "VERSION", w.fake.VERSION + 1),
]


def swap(path: Path, data: bytes) -> None:
    """Replaces a file at once: two states of one size in one tick of the clock look the same."""
    new = path.with_name("new.txt")
    new.write_bytes(data)
    new.replace(path)


def squeeze(world: World) -> None:
    path = world.logs / "a.log"
    (world.logs / "a.log.zst").write_bytes(zstandard.compress(path.read_bytes()))
    path.unlink()


def begin(world: World) -> None:
    world.write("a.log", "say x@01", "use r1@02=1", "tool @03", "use r2@04=2")
    world.write("b.log", "say x@01", "use r1@02=1", "say y@05", "use r3@06=4")
    world.write("c.log", "say y@05", "use r3@06=4", "use r4@01=4", root=1)
    (world.logs / "h.head").write_bytes(b"h\n" + encoded("say x@01"))
    (world.logs / "one.side").write_text("c b\n")


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_any_change_between_two_looks(world: World, step: int) -> None:
    begin(world)
    exact(world)
    STEPS[step](world)
    exact(world)


@pytest.mark.parametrize("seed", range(30 * LOOPS))
def test_many_changes_between_looks(world: World, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311  # no secret
    begin(world)
    for _ in range(8):
        for _ in range(dice.randrange(3)):
            try:
                dice.choice(STEPS)(world)
            except FileNotFoundError:
                continue
        same(world)


@pytest.mark.parametrize("seed", range(10 * LOOPS))
def test_kills_at_any_moment(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(looking, "BATCH", 1)
    dice = random.Random(seed)  # noqa: S311  # no secret
    begin(world)
    for _ in range(6):
        with contextlib.suppress(FileNotFoundError):
            dice.choice(STEPS)(world)
        left = dice.randrange(60)
        pid = os.fork()
        if pid == 0:
            _die_after(left)
            try:
                world.look()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        if dice.randrange(2):
            exact(world)
    exact(world)


def _die_after(statements: int) -> None:
    left, whole = [statements], Store._rows

    def rows(self: Store, sql: str, *values: object) -> list[Any]:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(self, sql, *values)

    Store._rows = rows  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", range(4 * LOOPS))
def test_two_processes_at_once(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(looking, "BATCH", 1)
    dice = random.Random(seed)  # noqa: S311  # no secret
    begin(world)
    for _ in range(3):
        pids = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    for _ in range(3):
                        world.look()
                    code = 0
                finally:
                    os._exit(code)
            pids.append(pid)
        for _ in range(4):
            try:
                dice.choice(STEPS)(world)
            except FileNotFoundError:
                continue
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
        exact(world)


def test_a_sidecar_that_another_process_saw_empty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process takes for unchanged is changed in the cache meanwhile."""
    begin(world)
    side = world.logs / "one.side"
    side.write_text("b a\n")
    world.look()
    side.write_text("b a\nnobody a\n")
    at = side.stat().st_mtime_ns
    whole, once = looking.Step._sidecars, [True]

    def meanwhile(self: Any, *args: Any) -> None:
        if once.pop() if once else False:
            side.write_text("")
            world.look()
            side.write_text("b a\nnobody a\n")
            os.utime(side, ns=(at, at))  # one tick of the clock
        whole(self, *args)

    monkeypatch.setattr(looking.Step, "_sidecars", meanwhile)
    assert world.look()["b"].parent == "fake:a"
    assert not once
    exact(world)


@pytest.mark.parametrize("when", ["scan", "_plans", "_sidecars", "_read", "_drop", "_settle"])
@pytest.mark.parametrize("step", [0, 4, 5, 10, 14])
def test_another_process_in_the_middle(
    world: World, monkeypatch: pytest.MonkeyPatch, when: str, step: int
) -> None:
    """It reads on what this one is about to read on."""
    begin(world)
    world.look()
    world.write("b.log", "say z@07", "use r5@08=4")
    owner: Any = observe.Engine if when == "scan" else looking.Step
    whole, once = getattr(owner, when), [True]

    def meanwhile(self: Any, *args: Any) -> Any:
        # this process holds no lock before its first write
        if once[0] and not (self.store._base.in_transaction):
            once[0] = False
            STEPS[step](world)
            world.write("d.log", "say x@01", "use r1@02=1", "use r9@03=1")
            world.look()
        return whole(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(owner, when, meanwhile)
        world.look()
    exact(world)


def test_a_kill_between_batches_leaves_no_session_unsettled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "BATCH", 0)
    begin(world)
    whole = looking.Step._drop

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(looking.Step, "_drop", stop)
        with pytest.raises(KeyboardInterrupt):
            world.look()
    assert whole is looking.Step._drop
    exact(world)


def test_thousands_of_sub_agents_below_each_other(world: World) -> None:
    world.write("s0.log", "say x@01", "use r=1")
    for n in range(1, 5_000):
        world.write(f"s{n}.log", f"parent s{n - 1}", f"use r{n}=1", "use r=1")
    found = world.look()
    assert found["s0"].usage_with_children is not None
    assert found["s0"].usage_with_children.output == 5_000
    assert sum(output(found).values()) == 5_000  # type: ignore[arg-type]
    (world.logs / "s0.log").unlink()
    assert len(world.look()) == 4_999


def test_parents_in_circles_end(world: World) -> None:
    world.write("a.log", "parent b@01", "use r=1", "say x@01")
    world.write("b.log", "parent c@01", "use r=1", "say x@01")
    world.write("c.log", "parent a@01", "use r=1", "say x@01")
    world.write("d.log", "parent d@01", "use r=1", "say x@01")
    found = world.look()
    assert sum(tokens or 0 for tokens in output(found).values()) == 1
    exact(world)


def test_a_file_that_cannot_be_read_is_told_until_it_can(world: World) -> None:
    path = world.write("a.log", "say x@01", "use r=1")
    path.rename(world.logs / "kept")
    world.write("b@1.log", "say x@01", "use s=1")
    path.symlink_to(world.logs / "a@9.log")
    (world.logs / "a@9.log").symlink_to(path)
    world.look()
    assert output(world.look()) == {"b": 1}
    path.unlink()
    (world.logs / "kept").rename(path)
    assert output(world.look()) == {"a": 1, "b": 1}
    exact(world)


@pytest.mark.parametrize("anew", [False, True])
def test_what_could_not_be_opened_is_read_as_soon_as_it_can(
    world: World, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    world.write("a.log", "say x@01", "use r=1")
    world.write("a@2.log", "use s=2")
    if not anew:
        world.look()
    world.write("a.log" if not anew else "a@2.log", "use t=4")
    refused = world.logs / "a@2.log"

    def no(path: str, *rest: Any) -> Any:
        if path == str(refused):
            raise PermissionError(13, "Permission denied", path)
        return whole(path, *rest)

    whole = looking.reading.Reader
    with monkeypatch.context() as patch:
        patch.setattr(looking.reading, "Reader", no)
        found = world.look()["a"]
        assert not found.complete
        assert [alert.kind for alert in found.alerts] == ["unreadable"]
        assert not world.look()["a"].complete
    exact(world)
    assert output(world.look()) == {"a": 7}


def test_a_session_whose_only_file_cannot_be_opened_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.write("a.log", "say x@01", "use r=1")

    def no(path: str, *_: Any) -> Any:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(looking.reading, "Reader", no)
        assert not world.look()["a"].complete
    path.unlink()
    assert world.look() == {}


def claim(world: World, session: str, pid: int) -> Path:
    path = world.logs / f"{pid}.reg"
    path.write_text(f"{session} {pid} 7")
    return path


@pytest.mark.parametrize("kind", ["registry", "lock"])
def test_a_crash_is_remembered_after_its_trace_is_gone(world: World, kind: str) -> None:
    world.write("a.log", "say x@01", "use r=1")
    if kind == "registry":
        trace = claim(world, "a", 5)
    else:
        trace = world.logs / "a.lock"
        trace.touch()
    seen = world.look()["a"]
    assert (seen.state, seen.outcome, seen.live) == ("ended", "lost", False)
    trace.unlink()
    world.forget()
    for _ in range(2):
        after = world.look()["a"]
        assert (after.outcome, after.certain) == (seen.outcome, seen.certain)
        assert after.evidence[0].path == trace.name
        assert "remembered" in after.evidence[0].text
    world.write("a.log", "tool @05")
    assert not any("remembered" in one.text for one in world.look()["a"].evidence)


def test_no_crash_is_remembered_of_who_lives_or_is_done(world: World) -> None:
    world.write("a.log", "say x@01", "use r=1")
    world.write("b.log", "say x@01", "end @02")
    world.machine.processes[5] = Process(5, "7")
    claim(world, "a", 5)
    claim(world, "b", 6)
    assert world.look()["a"].live is True
    memory = Memory(world.memory)
    assert memory.crashes() == {}
    memory.close()


def test_nothing_is_judged_before_it_is_asked_for(world: World) -> None:
    world.write("a.log", "say x@01")
    world.write("b.log", "say x@02")
    engine = world.engine()
    found = catalogue(engine)
    assert found.keys() == {"fake:a", "fake:b"}
    assert (found._sessions, found._folds) == ({}, {})
    assert found.session("fake:a") is found.session("fake:a")
    assert list(found._folds) == ["fake:a"]
    assert [one.relative for one in found.files("fake:b")] == ["b.log"]
    assert found.totals("fake:none").responses == 0
    far = listing.Filters()
    found.now = 1.9e9
    assert listing.listed(found, far) == []
    everything = listing.Filters(everything=True)
    assert [one.key for one in listing.listed(found, everything)] == ["fake:b", "fake:a"]
    engine.store.close()
    engine.memory.close()


def test_a_session_that_another_process_found_gone_is_still_told(world: World) -> None:
    path = world.write("a.log", "say x@01")
    engine = world.engine()
    found = catalogue(engine)
    path.unlink()
    world.look()
    assert found.session("fake:a").key == "fake:a"
    engine.store.close()
    engine.memory.close()


def test_several_workers_and_a_kill_of_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH", 0)
    monkeypatch.setattr(workers, "MANY", 0)
    world.processes = 3
    begin(world)
    exact(world)
    world.write("a.log", "use q=3")
    exact(world)
