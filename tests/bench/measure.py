"""Runs commands and says what they took: CPU of the whole process tree, wall time, peak memory."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    cpu: float
    wall: float
    rss: float
    """Peak of its largest process, MB."""
    code: int
    out: bytes = b""


LAUNCH = """
import os, sys
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
code = os.waitstatus_to_exitcode(status)
os.write(int(sys.argv[1]), f"{used.ru_utime + used.ru_stime} {used.ru_maxrss} {code}".encode())
"""
"""Between us and the command: a new process inherits the peak of the one that starts it."""


def run(argv: Sequence[str], env: dict[str, str], *, limit: float = 900) -> Run:
    """Runs a command to its end, or to the limit."""
    said, tell = os.pipe()
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", LAUNCH, str(tell), *argv], env=env, cwd=env["HOME"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        pass_fds=(tell,), start_new_session=True,
    ) as child:  # fmt: skip
        os.close(tell)
        try:
            out, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            os.close(said)
            raise TimeoutError(f"not done after {limit:.0f} s") from None
    wall = time.monotonic() - begun
    with os.fdopen(said, "rb") as pipe:
        cpu, peak, code = pipe.read().split()
    return Run(float(cpu), wall, int(peak) * _unit() / 1e6, int(code), out)


def _unit() -> int:
    return 1 if sys.platform == "darwin" else 1024


def best(
    argv: Sequence[str], env: dict[str, str], times: int, before: Callable[[], None] | None = None
) -> Run:
    """The least of several runs, each figure for itself; memory is the most that was seen.

    Args:
        argv: the command.
        env: all of its environment.
        times: how often.
        before: called before each run.
    """
    runs = []
    for _ in range(times):
        if before is not None:
            before()
        runs.append(run(argv, env))
        if runs[-1].code != 0:
            break
    return Run(
        min(one.cpu for one in runs), min(one.wall for one in runs),
        max(one.rss for one in runs), runs[-1].code, runs[-1].out,
    )  # fmt: skip


ORJSON = """
import pathlib, sys
import orjson, zstandard
size = 0
for path in pathlib.Path(sys.argv[1]).rglob("*"):
    name = path.name
    if not path.is_file() or not name.endswith((".jsonl", ".zstd", ".json")):
        continue
    data = path.read_bytes()
    if name.endswith(".zstd"):
        data = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(data)
    size += len(data)
    for line in data.split(b"\\n"):
        try:
            orjson.loads(line)
        except ValueError:
            pass
print(size)
"""
"""Every line of every file, decoded, once: what all figures are ratios of."""

PARSE = """
import gc, sys, time
from hub import discover, registry
from hub.cursor import Place, Reader
from hub.discover import Tree
from hub.fold import Fold
from hub.keys import key_of
from hub.reading import SessionRead, Taker, no_price
gc.disable()
home, size = sys.argv[1], 0
begun = time.process_time()
for agent in registry.agents():
    observer, tree = registry.observer(agent), Tree()
    roots, named = discover.roots_of(observer, {}, home, ())
    discover.scan(agent, observer, roots, tree, ())
    for file in tree.files:
        if file.found.role != "log":
            continue
        state, place = observer.start(file.found), Place()
        take = Taker(SessionRead(key_of(agent, file.found.id), Fold(), anew=True), no_price)
        with Reader(file.path, file.found.framing, place) as reader:
            for lines in reader.pieces():
                for offset, line in lines:
                    size += len(line) + 1
                    for event in observer.events(line, offset, state):
                        take.one(event)
print(size, time.process_time() - begun)
"""
"""The parse path alone: framing, typed records, events, fold; nothing stored."""


def clean_env(home: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing but the corpus can be found."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.defpath))
    return {"HOME": str(home), "PATH": path, "LC_ALL": "C.UTF-8", **more}
