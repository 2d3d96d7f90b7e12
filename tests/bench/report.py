"""Figures in; docs/benchmarks.md out. It names no host and no folder of the machine."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from measure import Run
from peers import Peer

Row = Sequence[str]
INTRODUCTION = """\
Written by `python tests/bench/run.py --write`, never by hand. Figures are ratios to one orjson pass
over every line of the same files, or differences to a peer's figure, all of one run."""
CORPUS = """\
The corpus: {sessions:,} sessions in {files:,} transcripts, {size:.2f} GB ({lines:.2f} GB of lines),
multiplied from the recorded fixtures. Facts listed otherwise than its truth: {differences}."""


def text(
    *, figures: Sequence[Row], runs: Sequence[tuple[str, Run]], peers: Sequence[Row],
    corpus: Mapping[str, int], differences: int,
) -> str:  # fmt: skip
    """The whole document."""
    parts = [
        "# Benchmarks",
        INTRODUCTION,
        CORPUS.format(
            sessions=corpus["sessions"],
            files=corpus["files"],
            size=corpus["bytes"] / 1e9,
            lines=corpus["decoded"] / 1e9,
            differences=differences,
        ),  # fmt: skip
        table(("figure", "bar", "measured", "met", "how"), figures),
        "## Single runs",
        "Least of several runs; each file lay in the page cache.",
        table(
            ("command", "CPU s", "wall s", "peak MB"), [(name, *_three(ran)) for name, ran in runs]
        ),
        "## Peers on the same files",
        table(("command", "first CPU s / wall s", "later CPU s / wall s", "peak MB"), peers),
        "## Machine",
        table(("", ""), list(machine().items())),
    ]
    return "\n\n".join(parts) + "\n"


def table(head: Row, rows: Sequence[Row]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def peer_row(peer: Peer, runs: Sequence[Run]) -> Row:
    """A peer's line: its figures, or why there are none."""
    name = f"`{peer.command}` ({peer.name} {peer.version})"
    if peer.problem is not None or not runs:
        return name, f"not measured: {_plain(peer.problem or 'no run')}", "", ""
    if runs[-1].code != 0:
        name += f", ended with exit code {runs[-1].code}"
    later = f"{runs[1].cpu:.2f} / {runs[1].wall:.2f}" if len(runs) > 1 else "the same"
    peak = max(one.rss for one in runs)
    return name, f"{runs[0].cpu:.2f} / {runs[0].wall:.2f}", later, f"{peak:.0f}"


def _plain(problem: str) -> str:
    """Without folders of this machine."""
    return re.sub(r"(?:/[\w.+-]+){2,}", "...", problem).replace("|", "/")


def _three(ran: Run) -> Row:
    return f"{ran.cpu:.3f}", f"{ran.wall:.3f}", f"{ran.rss:.0f}"


def machine() -> dict[str, str]:
    """What a reader must know of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processors": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{memory:.0f} GB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
        "agenthub": version("agenthub"),
        "msgspec": version("msgspec"),
        "zstandard": version("zstandard"),
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        found = re.search(
            r"^model name\s*:\s*(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        if found:
            return found.group(1).strip()
    return platform.machine()
