"""Registry x fixtures: golden events and sessions, truth, cuts, junk, growth; names no agent."""

from pathlib import Path

import pytest
from conftest import CASES, FIXTURES, case_id

from hub import framing, registry, testing
from hub.adapter import Found
from hub.catalogue import catalogue
from hub.cursor import Place, Reader
from hub.store import Store

every_case = pytest.mark.parametrize("case", CASES, ids=case_id)


def logs(case: Path) -> list[tuple[Found, Path]]:
    tree = testing.engine(case).scan()
    return [(file.found, Path(file.path)) for file in tree.files if file.found.role == "log"]


def lines(found: Found, path: Path) -> list[tuple[int, bytes]]:
    with Reader(str(path), found.framing, Place()) as reader:
        return [line for piece in reader.pieces() for line in piece]


def test_every_agent_has_cases() -> None:
    assert {case.parent.name for case in CASES} == set(registry.agents())


@every_case
def test_golden(case: Path) -> None:
    assert testing.golden_problems(case) == []


@every_case
def test_truth(case: Path) -> None:
    assert testing.truth_problems(case) == []


@every_case
def test_any_cut_is_a_prefix(case: Path) -> None:
    observer = registry.observer(case.parent.name)
    problems = [
        problem
        for found, path in logs(case)
        for problem in testing.cut_problems(observer, found, lines(found, path))
    ]
    assert problems == []


@every_case
def test_any_byte_cut_never_raises(case: Path) -> None:
    """Cuts inside lines and frames give what the complete lines give."""
    observer = registry.observer(case.parent.name)
    for found, path in logs(case):
        data = path.read_bytes()
        whole = testing.log_events(observer, found, data)
        encoded = [testing.encode(event) for event in whole]
        for cut in range(0, len(data), max(1, len(data) // 97)):
            some = testing.log_events(observer, found, data[:cut])
            assert [testing.encode(event) for event in some] == encoded[: len(some)]


@every_case
def test_junk_costs_only_itself(case: Path) -> None:
    observer = registry.observer(case.parent.name)
    problems = []
    for found, path in logs(case):
        every = lines(found, path)
        problems += testing.junk_problems(observer, found, every[:60])
    assert problems == []


@every_case
def test_growing_equals_whole(case: Path, tmp_path: Path) -> None:
    """A home that is listed while its files grow gives the same list as one read at once."""
    home = tmp_path / "grow" / "agent"
    (home / "root").parent.mkdir(parents=True)
    for path in sorted((case / "root").rglob("*")):
        target = home / "root" / path.relative_to(case / "root")
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"" if path.stat().st_size else path.read_bytes())
    (home / "SOURCE.toml").write_text((case / "SOURCE.toml").read_text("utf-8"), "utf-8")
    store = Store(tmp_path / "cache.db")
    for part in (1, 2, 3):
        for path in sorted((case / "root").rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                target = home / "root" / path.relative_to(case / "root")
                whole = part == 3 or path.suffix == ".json"
                piece = data if whole else data[: len(data) * part // 3]
                with target.open("r+b") as stream:
                    stream.seek(target.stat().st_size if path.suffix != ".json" else 0)
                    stream.write(piece[stream.tell() :])
        found = catalogue(testing.engine(home, store), host="test")
    once = catalogue(testing.engine(home), host="test")
    assert testing.sessions_of(found, home) == testing.sessions_of(once, home)
    store.close()


def test_frames_of_nothing() -> None:
    assert framing.unpack(b"", 0, 0)[0].lines == []
    assert FIXTURES.is_dir()
