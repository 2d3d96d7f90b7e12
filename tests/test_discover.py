"""hub.discover: every session file below a home once, and nothing that could hang or lead away."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from hub import discover
from hub.adapter import Found, Head, Root
from hub.discover import Tree, head, names_in, read_small, readable, roots_of, scan


def find(relative: str, head: Head) -> Found | None:
    """Takes every `*.log` for a session; one that begins with `#` is none."""
    if not relative.endswith(".log") or head().startswith(b"#"):
        return None
    return Found(Path(relative).stem)


def fake(*places: str) -> Any:
    """An observer of these homes: only what discovery asks for."""
    roots = [Root(one, ("logs",)) for one in places]
    return SimpleNamespace(VERSION=1, roots=lambda *_: roots, find=find)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "root" / "logs"
    folder.mkdir(parents=True)
    return folder


def look(logs: Path, *exclude: str) -> Tree:
    tree = Tree()
    scan("fake", fake(), [Root(str(logs.parent), ("logs",))], tree, exclude)
    return tree


def found(tree: Tree) -> list[str]:
    return sorted(file.relative for file in tree.files)


def test_files_are_found_below_and_nowhere_else(logs: Path) -> None:
    (logs / "a" / "b").mkdir(parents=True)
    (logs / "a" / "b" / "one.log").write_bytes(b"1")
    (logs / "none.log").write_bytes(b"#")
    (logs / "other.txt").write_bytes(b"")
    (logs.parent / "outside.log").write_bytes(b"")
    tree = look(logs)
    assert found(tree) == ["logs/a/b/one.log"]
    assert (tree.skipped, tree.troubles) == (2, [])
    (file,) = tree.files
    assert (file.size, file.path, file.found.id) == (1, str(logs / "a" / "b" / "one.log"), "one")


def test_what_is_no_file_is_no_session(logs: Path) -> None:
    os.mkfifo(logs / "fifo.log")
    (logs / "folder.log").mkdir()
    (logs / "device.log").symlink_to("/dev/zero")
    (logs / "to-fifo.log").symlink_to(logs / "fifo.log")
    (logs / "nowhere.log").symlink_to(logs / "missing")
    tree = look(logs)
    assert (tree.files, tree.troubles) == ([], [])


def test_links_in_circles_end_and_a_file_keeps_its_own_name(logs: Path) -> None:
    (logs / "deep").mkdir()
    (logs / "deep" / "one.log").write_bytes(b"")
    (logs / "deep" / "up").symlink_to(logs)
    (logs / "a-link.log").symlink_to("deep/one.log")
    os.link(logs / "deep" / "one.log", logs / "deep" / "same.log")
    (logs / "self.log").symlink_to("self.log")
    tree = look(logs)
    assert len(tree.files) == 1
    assert found(tree)[0].startswith("logs/deep/")
    assert [one.relative for one in tree.troubles] == ["logs/self.log"]


@pytest.mark.parametrize(
    "name", [b"a\xff.log", b"new\nline.log", b"\x1b[31m.log", "é中.log".encode()]
)
def test_odd_names_are_valid_text(logs: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(logs) + b"/" + name)).write_bytes(b"x")
    (file,) = look(logs).files
    assert file.relative.encode()
    assert Path(file.path).read_bytes() == b"x"


def test_names_that_differ_in_odd_bytes_stay_different(logs: Path) -> None:
    for name in (b"a\xff.log", b"a\xfe.log"):
        Path(os.fsdecode(os.fsencode(logs) + b"/" + name)).write_bytes(b"")
    assert found(look(logs)) == ["logs/a\\xfe.log", "logs/a\\xff.log"]
    assert readable("plain") == "plain"


def test_excluded_folders_are_not_entered_by_any_way(logs: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "one.log").write_bytes(b"")
    (tmp_path / "secret-not.log").write_bytes(b"")
    (logs / "folder").symlink_to(secret)
    (logs / "file.log").symlink_to(secret / "one.log")
    (logs / "other.log").symlink_to(tmp_path / "secret-not.log")
    assert len(look(logs).files) == 2
    for spelling in (str(secret), f"{secret}/", f"{secret}/../secret", str(logs / "folder")):
        assert found(look(logs, spelling)) == ["logs/other.log"], spelling
    assert look(logs, "/").files == []
    assert len(look(logs, "", "a\0b", "~nobody-of-that-name").files) == 2


def test_a_home_folder_can_be_excluded(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (logs / "one.log").write_bytes(b"")
    monkeypatch.setenv("HOME", str(logs.parent.parent))
    assert look(logs, "~/root").files == []


def test_a_home_that_is_not_there_is_told(tmp_path: Path) -> None:
    tree = Tree()
    (tmp_path / "file").write_bytes(b"")
    scan("fake", fake(), [Root(str(tmp_path / "no")), Root(str(tmp_path / "file"))], tree)
    assert [there for _, _, there in tree.roots] == [False, False]
    assert (tree.files, tree.troubles) == ([], [])


def test_each_home_once_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    own = fake(str(tmp_path / "home"), str(tmp_path / "link"))
    more = [f"{tmp_path}/./home/", "a\0b", "~nobody-of-that-name", "~"]
    roots, named = roots_of(own, {}, "/", more)
    paths = [root.path for root in roots]
    assert paths == [str(tmp_path / "home"), "~nobody-of-that-name", os.environ["HOME"]]
    assert {root.folders for root in roots} == {("logs",)}
    assert named >= {"~nobody-of-that-name", os.environ["HOME"]}
    assert not named & {str(tmp_path / "home"), str(tmp_path / "link")}


def test_a_home_that_somebody_names_and_that_is_not_there_is_a_trouble(tmp_path: Path) -> None:
    tree, missing = Tree(), str(tmp_path / "no")
    scan("fake", fake(), [Root(missing), Root(f"{missing}2")], tree, named={missing})
    assert [(one.path, one.root) for one in tree.troubles] == [(missing, missing)]


def test_the_homes_of_live_processes_are_looked_at(tmp_path: Path) -> None:
    own = fake()
    own.roots = lambda env, *_: [Root(env.get("AT", "/usual"), ("logs",))]
    roots, named = roots_of(own, {"AT": "/env"}, "/", ["/more"], [{"AT": "/live"}, {}])
    assert [root.path for root in roots] == ["/env", "/more", "/live", "/usual"]
    assert named == {"/env", "/more", "/live"}


def known(tree: Tree) -> dict[str, Any]:
    return {
        file.path: SimpleNamespace(
            device=file.device, inode=file.inode, size=file.size, mtime=file.mtime_ns, version=1
        )
        for file in tree.files
    }


def test_known_files_that_are_as_they_were_are_not_looked_into(logs: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (logs / f"{name}.log").write_bytes(b"1")
    rows = known(look(logs))
    with (logs / "a.log").open("ab") as stream:
        stream.write(b"2")
    (logs / "b.log").unlink()
    (logs / "new").write_bytes(b"1")
    (logs / "new").replace(logs / "b.log")
    os.utime(logs / "c.log", ns=(5, 5))
    tree = Tree()
    scan("fake", fake(), [Root(str(logs.parent), ("logs",))], tree, known=rows)
    assert found(tree) == ["logs/a.log", "logs/b.log", "logs/c.log"]
    assert tree.unchanged == {str(logs / "d.log")}
    newer = fake()
    newer.VERSION = 2
    tree = Tree()
    scan("fake", newer, [Root(str(logs.parent), ("logs",))], tree, known=rows)
    assert (len(tree.files), tree.unchanged) == (4, set())


def test_a_head_is_read_of_files_only_and_decompressed(logs: Path) -> None:
    os.mkfifo(logs / "fifo")
    assert head(str(logs / "fifo")) == head(str(logs / "missing")) == head(str(logs)) == b""
    (logs / "plain").write_bytes(b"x" * (discover.HEAD + 5))
    assert len(head(str(logs / "plain"))) == discover.HEAD
    packed = zstandard.compress(b"one\n") * 2
    (logs / "a.zst").write_bytes(packed + packed[:9])
    assert head(str(logs / "a.zst")).startswith(b"one\none\n")
    (logs / "bomb.zst").write_bytes(zstandard.compress(b"\0" * (1 << 27)))
    assert head(str(logs / "bomb.zst")) == b"\0" * discover.HEAD
    (logs / "junk.zst").write_bytes(b"junk")
    assert head(str(logs / "junk.zst")) == b""


def test_small_files_and_names_of_what_is_not_there(logs: Path) -> None:
    (logs / "small").write_bytes(b"x")
    (logs / "large").write_bytes(b"x" * ((1 << 20) + 1))
    os.mkfifo(logs / "fifo")
    assert read_small(str(logs / "small")) == b"x"
    for name in ("large", "fifo", "missing", "a\0b", "x" * 300):
        assert read_small(str(logs / name)) is None
    assert names_in(str(logs)) == ["fifo", "large", "small"]
    assert names_in(str(logs / "small")) == names_in("a\0b") == []
