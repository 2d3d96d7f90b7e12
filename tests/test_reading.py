"""hub.reading: a session's growth, or all of it, read from what is handed in."""

from pathlib import Path

import pytest
from fakes import World, encoded, output, plain

from hub import reading
from hub.adapter import Found
from hub.decode import packed
from hub.discover import File
from hub.reading import Kept, Plan, SessionRead, read

LINES = [
    "say one@01", "use r1@02=5", "use r1@03=5", "tool @04", "use r2@05=7", "tool @06", "end @07",
    "say two@08", "use r2@09=8", "use r1@10=5", "say three@11", "use r3@12=1", "tool @13",
]  # fmt: skip


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def file(path: Path, order: str = "") -> File:
    stat = path.stat()
    return File(
        "fake", str(path.parent), path.name, str(path), Found("a", order=order),
        stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns,
    )  # fmt: skip


def on(before: SessionRead, *files: File) -> Plan:
    return Plan("fake:a", "fake", list(files), fold=packed(before.fold), last=before.files[-1].body)


@pytest.mark.parametrize("cut", range(len(LINES) + 1))
@pytest.mark.parametrize("middle", [False, True])
def test_growth_is_what_reading_at_once_is(world: World, cut: int, middle: bool) -> None:
    data = b"".join(map(encoded, LINES))
    size = len(b"".join(map(encoded, LINES[:cut]))) + (9 if middle else 0)
    path = world.logs / "a.log"
    path.write_bytes(data[:size])
    first = read(Plan("fake:a", "fake", [file(path)]))
    with path.open("ab") as stream:
        stream.write(data[size:])
    second = read(on(first, file(path)))
    once = read(Plan("fake:a", "fake", [file(path)]))
    assert (first.anew, second.anew, once.anew) == (True, False, True)
    assert first.read_bytes + second.read_bytes == once.read_bytes == len(data)
    assert second.fold == once.fold
    assert first.responses | second.responses == once.responses
    assert second.files == once.files


def test_what_a_copy_inherits_stands_at_each_response(world: World) -> None:
    path = world.write("a.log", *LINES)
    found = read(Plan("fake:a", "fake", [file(path)]))
    kept = found.responses
    assert {name: one.upto for name, one in kept.items()} == {
        "r2": (2, 2, 2, 2, 0), "r1": (2, 2, 2, 2, 0), "r3": (3, 3, 3, 3, 0),
    }  # fmt: skip
    assert kept["r1"].next_at == "2026-11-01T00:00:11.000Z"
    assert (kept["r2"].next_at, kept["r3"].next_at) == (None, None)


@pytest.mark.parametrize("how", ["shrunk", "replaced", "filled anew"])
def test_another_file_is_read_from_its_start(world: World, how: str) -> None:
    path = world.write("a.log", *LINES)
    first = read(Plan("fake:a", "fake", [file(path)]))
    if how == "replaced":
        path.rename(world.logs / "old")
    data = b"".join(map(encoded, ["say new@01", "use n=1"] * (20 if how != "shrunk" else 1)))
    path.write_bytes(data)
    second = read(on(first, file(path)))
    assert (second.anew, set(second.responses)) == (True, {"n"})
    assert second == read(Plan("fake:a", "fake", [file(path)]))


def test_only_the_last_file_is_read_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = world.write("a.log", *LINES[:4]), world.write("a@2.log", *LINES[4:7])
    first = read(Plan("fake:a", "fake", [file(one), file(two, "2")]))
    world.write("a@2.log", *LINES[7:])
    opened: list[str] = []
    whole = reading.Reader
    monkeypatch.setattr(
        reading, "Reader", lambda path, *rest: (opened.append(path), whole(path, *rest))[1]
    )
    second = read(on(first, file(one), file(two, "2")))
    assert opened == [str(two)]
    assert second.fold == read(Plan("fake:a", "fake", [file(one), file(two, "2")])).fold


def test_a_file_that_is_gone_or_cannot_be_read_costs_only_itself(world: World) -> None:
    one, two = world.write("a.log", *LINES[:4]), world.write("a@2.log", *LINES[4:7])
    files = [file(one), file(two, "2")]
    one.unlink()
    found = read(Plan("fake:a", "fake", files))
    assert ([Path(each.path).name for each in found.files], found.troubles) == (["a@2.log"], [])
    one.symlink_to(one)
    found = read(Plan("fake:a", "fake", files))
    assert [Path(path).name for path, _ in found.troubles] == ["a.log"]
    assert set(found.responses) == {"r2"}


def test_what_is_kept_of_a_file_is_where_it_ended(world: World) -> None:
    path = world.write("a.log", *LINES)
    (one,) = read(Plan("fake:a", "fake", [file(path)])).files
    kept = reading.msgspec.msgpack.decode(one.body, type=Kept)
    assert kept.place.position == one.position == one.size == path.stat().st_size


def test_a_price_is_kept_with_its_response(world: World) -> None:
    path = world.write("a.log", *LINES)
    found = read(Plan("fake:a", "fake", [file(path)]), lambda _: (0.5, "EUR", "table:1"))
    assert {(one.cost, one.currency, one.basis) for one in found.responses.values()} == {
        (0.5, "EUR", "table:1")
    }


def test_a_quick_reading_counts_nothing_and_keeps_nothing(world: World) -> None:
    world.write("a.log", "say first@01", *["use r=3"] * 3_000, "say last@02", "end @03")
    found = world.look(quick=True)["a"]
    assert (found.complete, found.usage, found.turns) == (False, None, None)
    assert (found.last_prompt, found.title) == ("last", "first")
    assert plain(world.look()) == plain(world.fresh())
    assert output(world.look(quick=True)) == {"a": 3}
