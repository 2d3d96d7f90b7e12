"""Measures agenthub beside one orjson pass and its peers, over one corpus, in one run.

python tests/bench/run.py [--scale S] [--write]

Everything is below .build/bench, which Git ignores. `--write` writes docs/benchmarks.md.
"""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import report
from measure import ORJSON, PARSE, Run, best, clean_env, run
from peers import Peer, install, scratch_home

REPO = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
AGENTHUB = str(Path(sys.executable).with_name("agenthub"))
PEER_LIMIT = 400


@dataclass(frozen=True)
class Figure:
    """One line of the report."""

    name: str
    bar: float
    measured: float
    unit: str
    note: str
    least: bool = False
    """The bar is a least, not a most."""

    @property
    def met(self) -> bool:
        return self.measured >= self.bar if self.least else self.measured <= self.bar


@dataclass
class Lists:
    """agenthub's runs over one corpus."""

    sessions: int
    quick: Run
    exact: Run
    warm: Run
    all_warm: Run
    grown: Run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=REPO / ".build" / "bench")
    parser.add_argument("--no-peers", action="store_true", help="only orjson and session-ls")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    said = parser.parse_args()
    python, peers = install(said.work / "tools")
    whole, half = said.work / "corpus", said.work / "half"
    differences = _made(whole, said.scale, said.seed)
    _made(half, said.scale / 2, said.seed)
    base = _base(python, whole)
    lists = _lists(whole, said.work)
    rows = _peers([one for one in peers if not said.no_peers or one.warm], whole, said.work)
    figures = _figures(base, lists, _lists(half, said.work), _parse(whole), rows)
    text = report.text(
        figures=[
            (one.name, ("at least " if one.least else "at most ") + f"{one.bar:g} {one.unit}",
             f"{one.measured:.3f} {one.unit}", "yes" if one.met else "**no**", one.note)
            for one in figures
        ],
        runs=_runs(base, lists),
        peers=[report.peer_row(peer, runs) for peer, runs in rows],
        corpus=_facts(whole, base[1]), differences=differences,
    )  # fmt: skip
    print(text)  # noqa: T201
    if said.write:
        (REPO / "docs" / "benchmarks.md").write_text(text, encoding="utf-8")
    return 0 if all(one.met for one in figures) and not differences else 1


def _made(folder: Path, scale: float, seed: int) -> int:
    """A corpus; the number of its facts that agenthub does not list as they are."""
    shutil.rmtree(folder, ignore_errors=True)
    argv = [sys.executable, str(HERE / "corpus.py"), str(folder), "--scale", str(scale)]
    subprocess.run([*argv, "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL)
    argv = [sys.executable, str(HERE / "check.py"), str(folder), "--most", "0"]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    return int(ran.stdout.rsplit("sessions, ", 1)[1].split()[0])


def _facts(folder: Path, decoded: int) -> dict[str, int]:
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return {
        "sessions": len(truth["sessions"]), "files": truth["files"], "bytes": truth["bytes"],
        "decoded": decoded,
    }  # fmt: skip


def _base(python: Path, folder: Path) -> tuple[Run, int]:
    """One orjson pass, and the bytes that it decoded."""
    home = folder / "home"
    ran = best([str(python), "-c", ORJSON, str(home)], clean_env(home), 3)
    return ran, int(ran.out)


def _parse(folder: Path) -> float:
    """MB/s of the parse path on one core."""
    home = folder / "home"
    rates = []
    for _ in range(2):
        size, cpu = run([sys.executable, "-c", PARSE, str(home)], clean_env(home)).out.split()
        rates.append(int(size) / float(cpu) / 1e6)
    return max(rates)


def _lists(folder: Path, work: Path) -> Lists:
    home, store = folder / "home", work / "agenthub-home"
    env = clean_env(home, AGENTHUB_HOME=str(store))

    def unseen() -> None:
        shutil.rmtree(store, ignore_errors=True)

    ls = [AGENTHUB, "ls", "--json"]
    quick = best([*ls, "--all", "--quick"], env, 3, unseen)
    exact = best([*ls, "--all"], env, 2, unseen)
    for ran in (quick, exact):
        if ran.code != 0:
            raise SystemExit("agenthub did not list the corpus")
    warm, all_warm = best(ls, env, 9), best([*ls, "--all"], env, 5)
    grown = _largest(home)
    line = [one for one in grown.read_bytes().split(b"\n")[:-1] if one][-1]

    def append() -> None:
        with grown.open("ab") as file:
            file.write(line + b"\n")

    after = best(ls, env, 7, append)
    return Lists(len(json.loads(exact.out)), quick, exact, warm, all_warm, after)


def _largest(home: Path) -> Path:
    """The largest transcript that ends with a whole line."""
    paths = sorted(home.rglob("*.jsonl"), key=lambda path: -path.stat().st_size)
    return next(path for path in paths if path.read_bytes().endswith(b"\n"))


def _peers(peers: list[Peer], folder: Path, work: Path) -> list[tuple[Peer, list[Run]]]:
    """(peer, its first and its later run); none where it could not run."""
    out = []
    for peer in peers:
        runs: list[Run] = []
        if peer.problem is None:
            env = scratch_home(folder, work / "peer-home")
            try:
                runs.append(run(peer.argv, env, limit=PEER_LIMIT))
                if peer.warm:
                    runs.append(best(peer.argv, env, 9 if runs[0].wall < 30 else 1))
            except (OSError, TimeoutError) as error:
                peer.problem = str(error)
        out.append((peer, runs))
    return out


def _figures(
    base: tuple[Run, int], lists: Lists, half: Lists, rate: float,
    rows: list[tuple[Peer, list[Run]]],
) -> list[Figure]:  # fmt: skip
    pass_, decoded = base
    orjson_rate = decoded / pass_.cpu / 1e6
    times = "x"
    out = [
        Figure("never seen, `ls --all --json --quick`", 0.15, lists.quick.cpu / pass_.cpu, times,
               "CPU, to the orjson pass"),
        Figure("never seen, `ls --all --json`", 1.5, lists.exact.cpu / pass_.cpu, times,
               "CPU, to the orjson pass"),
        Figure("parse path: lines, records, events, fold", 0.6, rate / orjson_rate, times,
               f"{rate:.0f} MB/s to {orjson_rate:.0f} MB/s on one core", least=True),
    ]  # fmt: skip
    listed = next(
        (runs for peer, runs in rows if peer.name == "session-ls" and len(runs) > 1), None
    )
    if listed is not None:
        out.append(Figure("warm `ls --json`, over session-ls warm", 0.1,
                          lists.warm.wall - listed[1].wall, "s",
                          f"wall, {lists.warm.wall:.3f} s to {listed[1].wall:.3f} s"))  # fmt: skip
    out.append(Figure("after one appended line, over warm", 0.02,
                      lists.grown.wall - lists.warm.wall, "s",
                      "wall, the largest file grows"))  # fmt: skip
    peak = max(
        one.rss for one in (lists.quick, lists.exact, lists.warm, lists.all_warm, lists.grown)
    )
    out.append(Figure("peak memory of every list", 100, peak, "MB", "largest resident set"))
    for name, whole, part in (
        ("`ls --all --json`, never seen", lists.exact, half.exact),
        ("`ls --all --json`, warm", lists.all_warm, half.all_warm),
    ):
        more = (whole.cpu - part.cpu) / (lists.sessions - half.sessions) * 1000
        each = part.cpu / half.sessions * 1000
        out.append(Figure(f"cost of further 1,000 sessions, {name}", 1.15, more / each, times,
                          f"{more:.3f} s CPU to {each:.3f} s for the first ones"))  # fmt: skip
    return out


def _runs(base: tuple[Run, int], lists: Lists) -> list[tuple[str, Run]]:
    return [
        ("one orjson pass over every line", base[0]),
        ("agenthub ls --all --json --quick, never seen", lists.quick),
        ("agenthub ls --all --json, never seen", lists.exact),
        ("agenthub ls --all --json, warm", lists.all_warm),
        ("agenthub ls --json, warm", lists.warm),
        ("agenthub ls --json, one line appended", lists.grown),
    ]


if __name__ == "__main__":
    sys.exit(main())
