"""Agent homes in; the files in them that an observer knows out, each real file once.

Only names and stats are read here. A folder that cannot be listed and a file that cannot be
stat'ed are reported, never raised; loops of links end; a link to a file that is there by its own
name is that file.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hub import framing
from hub.adapter import Found, Observer, Root
from hub.errors import why
from hub.paths import expanded

HEAD = 1 << 14
"""Bytes that `head()` gives."""


@dataclass(frozen=True)
class File:
    """A file that an observer knows."""

    agent: str
    root: str
    relative: str
    path: str
    found: Found
    device: int
    inode: int
    size: int
    mtime_ns: int


@dataclass
class Trouble:
    """A path that could not be read, and why."""

    agent: str
    root: str
    relative: str
    path: str
    reason: str
    found: Found | None = None
    """Set where the name alone says which session it is."""


@dataclass
class Tree:
    """What was found in one pass."""

    files: list[File] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    roots: list[tuple[str, Root, bool]] = field(default_factory=list)
    """(agent, root, is it there)"""
    skipped: int = 0
    """Entries that no observer claims."""
    foreign: list[File] = field(default_factory=list)
    """Files that are nobody's, which only a look into them could tell."""
    unchanged: set[str] = field(default_factory=set)
    """Paths of known files that are as they were."""


def roots_of(
    observer: Observer,
    env: Mapping[str, str],
    home: str,
    more: Sequence[str] = (),
    others: Iterable[Mapping[str, str]] = (),
) -> tuple[list[Root], set[str]]:
    """The observer's roots, each real path once, and the paths of those that somebody named.

    Args:
        observer: of the agent.
        env: the environment; then come the defaults.
        home: the user's home folder.
        more: configured homes.
        others: environments of the agent's live processes.
    """
    usual = observer.roots({}, home, read_small, names_in)
    shape = usual[0].folders if usual else ("",)
    found = [*observer.roots(env, home, read_small, names_in)]
    found += [Root(str(expanded(path)), shape) for path in more]
    for other in others:
        found += observer.roots(other, home, read_small, names_in)
    out: dict[str, Root] = {}
    for root in [*found, *usual]:
        if "\0" not in root.path:  # such a folder cannot be there
            out.setdefault(f"{os.path.realpath(root.path)}\0{root.folders}", root)
    return list(out.values()), {root.path for root in found} - {root.path for root in usual}


class Known(Protocol):
    """What a file was when it was read last."""

    @property
    def device(self) -> int: ...  # noqa: D102
    @property
    def inode(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def mtime(self) -> int: ...  # noqa: D102
    @property
    def version(self) -> int: ...  # noqa: D102


def scan(
    agent: str,
    observer: Observer,
    roots: Iterable[Root],
    tree: Tree,
    exclude: Sequence[str] = (),
    known: Mapping[str, Known] | None = None,
    named: Collection[str] = (),
) -> None:
    """Adds what is below the roots to `tree`: known files that changed, and new ones."""
    seen_files: set[tuple[int, int]] = set()
    for root in roots:
        there = Path(root.path).is_dir()
        tree.roots.append((agent, root, there))
        if not there:
            if root.path in named:
                reason = "this folder of the agent is named, and is not there"
                tree.troubles.append(Trouble(agent, root.path, "", root.path, reason))
            continue
        walker = _Walker(agent, observer, root, tree, seen_files, exclude, known or {})
        for folder in root.folders:
            walker.walk(folder)


class _Walker:
    """Walks one root; real folders before linked ones, so that a file keeps its own name."""

    def __init__(
        self,
        agent: str,
        observer: Observer,
        root: Root,
        tree: Tree,
        seen: set[tuple[int, int]],
        exclude: Sequence[str],
        known: Mapping[str, Known],
    ) -> None:
        self.agent, self.observer, self.root, self.tree = agent, observer, root, tree
        self.known, self.version = known, observer.VERSION
        self.seen_files = seen
        self.seen_folders: set[tuple[int, int]] = set()
        self.exclude = [
            os.path.join(os.path.realpath(expanded(path)), "")  # noqa: PTH118  # ends in one "/"
            for path in exclude
            if path and "\0" not in path
        ]

    def walk(self, start: str) -> None:
        later: list[tuple[str, str]] = []
        todo = [(start, f"{self.root.path}/{start}" if start else self.root.path)]
        while todo or later:
            relative, path = todo.pop() if todo else later.pop(0)
            try:
                state = os.stat(path)  # noqa: PTH116  # a Path per entry costs more than the stat
            except FileNotFoundError:
                continue
            except OSError as error:
                self._trouble(relative, path, error)
                continue
            if stat.S_ISREG(state.st_mode):
                if not self._excluded(path):  # a link may lead anywhere
                    self._file(relative, path, state)
                continue
            if not stat.S_ISDIR(state.st_mode):
                continue
            place = (state.st_dev, state.st_ino)
            if place in self.seen_folders or self._excluded(path):
                continue
            self.seen_folders.add(place)
            self._folder(relative, path, todo, later)

    def _folder(
        self,
        relative: str,
        path: str,
        todo: list[tuple[str, str]],
        later: list[tuple[str, str]],
    ) -> None:
        prefix = f"{relative}/" if relative else ""
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    below = prefix + entry.name
                    if entry.is_symlink():
                        later.append((below, entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        todo.append((below, entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        self._entry(below, entry)
        except FileNotFoundError:
            return
        except OSError as error:
            self._trouble(relative, path, error)

    def _entry(self, relative: str, entry: "os.DirEntry[str]") -> None:
        try:
            self._file(relative, entry.path, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return
        except OSError as error:
            self._trouble(relative, entry.path, error)

    def _file(self, relative: str, path: str, state: os.stat_result) -> None:
        row = self.known.get(path)
        if (
            row is not None
            and row.size == state.st_size
            and row.mtime == state.st_mtime_ns
            and row.inode == state.st_ino
            and row.device == state.st_dev
            and row.version == self.version
        ):
            self.seen_files.add((state.st_dev, state.st_ino))
            self.tree.unchanged.add(path)
            return
        looked: list[str] = []

        def look() -> bytes:
            looked.append(path)
            return head(path)

        found = self.observer.find(readable(relative), look)
        place = (state.st_dev, state.st_ino)
        if found is None and not looked:
            self.tree.skipped += 1
            return
        if place in self.seen_files:
            return
        file = File(
            self.agent,
            self.root.path,
            readable(relative),
            path,
            found or Found(""),
            state.st_dev,
            state.st_ino,
            state.st_size,
            state.st_mtime_ns,
        )
        if found is None:
            self.tree.skipped += 1
            self.tree.foreign.append(file)
            return
        self.seen_files.add(place)
        self.tree.files.append(file)

    def _excluded(self, path: str) -> bool:
        if not self.exclude:
            return False
        real = os.path.join(os.path.realpath(path), "")  # noqa: PTH118
        return any(real.startswith(one) for one in self.exclude)

    def _trouble(self, relative: str, path: str, error: OSError) -> None:
        if error.errno in {None, 0}:
            return
        self.tree.troubles.append(
            Trouble(self.agent, self.root.path, readable(relative), path, why(error), None)
        )


def readable(path: str) -> str:
    r"""The path as valid text: a byte that is not UTF-8 as `\xff`, so that names stay different."""
    return path if path.isprintable() else os.fsencode(path).decode(errors="backslashreplace")


def head(path: str) -> bytes:
    """The first 16 KiB of a regular file, decompressed; empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        data = os.read(descriptor, HEAD)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    if not path.endswith((".zst", ".zstd")):
        return data
    text = b""
    for _size, plain, _note in framing.frames(data, HEAD):
        text += plain
        if len(text) >= HEAD:
            break
    return text[:HEAD]


def read_small(path: str) -> bytes | None:
    """A configuration file of an agent, at most 1 MiB; None where there is none."""
    try:
        if not Path(path).is_file() or Path(path).stat().st_size > 1 << 20:
            return None
        return Path(path).read_bytes()
    except (OSError, ValueError):
        return None


def names_in(path: str) -> list[str]:
    """The names in a folder, sorted; empty where it cannot be listed."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208  # names, not Paths
    except (OSError, ValueError):
        return []
