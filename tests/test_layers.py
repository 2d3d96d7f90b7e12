"""Who may import whom: the leaves <- observers, backends <- hub.registry <- the rest."""

import ast
import sys
from pathlib import Path

import hub

ROOT = Path(hub.__file__).resolve().parent.parent
LEAVES = {"hub", "hub.model", "hub.events", "hub.errors", "hub.adapter", "hub.decode"}
ABOVE_REGISTRY = {"hub.registry"}
LIBRARIES = {"msgspec", "yaml"}
"""What an adapter may use beside the standard library."""
IMPURE = {"os", "io", "pathlib", "socket", "subprocess", "time", "shutil", "tempfile", "threading"}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def known(names: set[str]) -> set[str]:
    """Only modules of ours, no names in them."""
    every = {
        name_of(path) for folder in ("hub", "observers", "backends") for path in modules(folder)
    }
    return names & every


def test_leaves_import_only_leaves() -> None:
    for leaf in LEAVES - {"hub"}:
        path = ROOT / (leaf.replace(".", "/") + ".py")
        assert known(imports(path)) <= LEAVES, leaf


def test_adapters_import_only_leaves_and_themselves() -> None:
    for folder in ("observers", "backends"):
        for path in modules(folder):
            mine = ".".join(name_of(path).split(".")[:2])
            others = {
                name
                for name in known(imports(path))
                if name not in LEAVES and not name.startswith(mine) and name != folder
            }
            assert others == set(), path


def test_adapters_are_pure() -> None:
    for folder in ("observers", "backends"):
        for path in modules(folder):
            outside = {name.split(".")[0] for name in imports(path)} - {
                "hub",
                "observers",
                "backends",
            }
            assert outside & IMPURE == set(), path
            assert {name for name in outside if name not in sys.stdlib_module_names} <= LIBRARIES, (
                path
            )


def test_only_the_registry_imports_adapters() -> None:
    for path in modules("hub"):
        names = {name.split(".")[0] for name in imports(path)}
        assert not names & {"observers", "backends"}, path


def test_no_module_of_the_hub_names_an_agent() -> None:
    """A fourth agent is no line here; help texts and docstrings may give examples."""
    from hub import registry  # noqa: PLC0415

    for path in modules("hub"):
        if path.name in {"scripts.py", "modelserver.py"} or "wire" in path.parts:
            continue  # the model server speaks the model vendors' protocols
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not texts & set(registry.agents()), path
