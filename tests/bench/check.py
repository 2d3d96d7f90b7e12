"""Compares what `agenthub ls --all --json` says of a corpus with its truth, row by row.

python tests/bench/check.py OUT [--agenthub COMMAND]
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def listed(command: list[str], home: Path, scratch: Path) -> list[dict[str, Any]]:
    """Every row, from a process of its own that knows no other HOME."""
    env = {"HOME": str(home), "PATH": os.defpath, "AGENTHUB_HOME": str(scratch)}
    ran = subprocess.run(
        [*command, "ls", "--all", "--json"], env=env, stdin=subprocess.DEVNULL,
        capture_output=True, check=True,
    )  # fmt: skip
    rows: list[dict[str, Any]] = json.loads(ran.stdout)
    return rows


def differences(rows: list[dict[str, Any]], truth: dict[str, Any]) -> list[str]:
    """One line for each fact that is not as it should be."""
    out = []
    seen = {row["key"]: row for row in rows}
    if len(seen) != len(rows):
        out.append(f"{len(rows) - len(seen)} keys stand there twice")
    for key, wanted in truth["sessions"].items():
        row = seen.get(key)
        if row is None:
            out.append(f"{key}: not listed")
            continue
        for name, value in wanted.items():
            if row[name] != value:
                out.append(f"{key}: {name}: truth {value!r}, listed {row[name]!r}")
    out += [f"{key}: in no truth" for key in seen if key not in truth["sessions"]]
    return out + _totals(rows, truth)


def _totals(rows: list[dict[str, Any]], truth: dict[str, Any]) -> list[str]:
    out = []
    for agent, wanted in truth["totals"].items():
        for name, value in wanted["usage"].items():
            counts = [
                row["usage"][name]
                for row in rows
                if row["agent"] == agent and row["usage"] and row["usage"][name] is not None
            ]
            got = sum(counts) if counts else None
            if got != value:
                out.append(f"{agent}: {name} in all: truth {value}, listed {got}")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--agenthub", default=str(Path(sys.executable).with_name("agenthub")))
    parser.add_argument("--most", type=int, default=40, help="lines that are printed")
    said = parser.parse_args()
    truth = json.loads((said.corpus / "truth.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        rows = listed(shlex.split(said.agenthub), said.corpus / "home", Path(scratch))
    found = differences(rows, truth)
    for line in found[: said.most]:
        print(line)  # noqa: T201
    print(f"{len(truth['sessions'])} sessions, {len(found)} differences")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
